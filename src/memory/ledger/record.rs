//! Ledgers: counts of transfers and fallbacks by kernel call and device.

use super::kernel_call::{DIRECT_ACCESS, KernelCall};
use crate::sync::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    panic::Location,
    sync::Arc,
};

/// The kind of an event that a ledger records.
///
/// ```
/// use cortado::{kernel::Blas, ledger::{EventKind, Ledger}, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let x = Blob::from_slice(&device, &[2], &[3.0f32, -4.0])?;
/// let ledger = Ledger::new();
/// let _ledger_guard = ledger.open();
/// assert_eq!(device.asum(x.data()?.view())?, 7.0);
/// let [up, down] = [EventKind::Upload, EventKind::Download].map(|kind| ledger.total(kind).bytes);
/// assert_eq!((up, down), (8, 4)); // the elements, and their sum
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// An upload: a copy from host to device.
    Upload,
    /// A download: a copy from device to host.
    Download,
    /// A fallback: a kernel that ran on the host because the device does not override the kernel.
    Fallback,
}

impl EventKind {
    const ALL: [Self; 3] = [Self::Fallback, Self::Upload, Self::Download];
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Fallback => "fallback",
        })
    }
}

/// The number of recorded transfers or fallbacks, and the number of bytes that the transfers
/// copied.
///
/// ```
/// use cortado::{ledger::{EventKind, Ledger, Total}, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let [a, b] = [[1.0f32, 2.0], [3.0, 4.0]].map(|x| Blob::from_slice(&device, &[2], &x));
/// let (a, b, ledger) = (a?, b?, Ledger::new());
/// let _ledger_guard = ledger.open();
/// a.add(&b)?;
/// assert_eq!(ledger.total(EventKind::Upload), Total { count: 2, bytes: 16 });
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of events.
    pub count: u64,
    /// Number of bytes copied; 0 for fallbacks, because a fallback's copies are recorded as
    /// separate events.
    pub bytes: u64,
}

impl Total {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// A ledger entry: the events of one kind that a kernel call, or a memory access outside of
/// kernels, caused on one device.
///
/// ```
/// use cortado::{ledger::Ledger, prelude::*};
///
/// let x = Blob::from_slice(&SimulatedDevice::new(), &[2], &[1.0f32, 2.0])?;
/// let ledger = Ledger::new();
/// let _ledger_guard = ledger.open();
/// x.scale_data(2.0)?;
/// let entry = &ledger.entries()[0];
/// assert_eq!((entry.kernel, entry.element, entry.bytes), (Some("scal"), "f32", 8));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the events: upload, download or fallback.
    pub kind: EventKind,
    /// Name of the kernel that caused the events; `None` for memory accesses outside of kernels.
    pub kernel: Option<&'static str>,
    /// Element type of the kernel; empty for memory accesses outside of kernels.
    pub element: &'static str,
    /// Call site of the kernel, or source location of the memory access.
    pub site: &'static Location<'static>,
    /// Name of the device.
    pub device: String,
    /// Number of events.
    pub count: u64,
    /// Bytes copied.
    pub bytes: u64,
}

/// Totals of the recorded events, grouped by kernel call and device name, and then by event kind.
type EventTable = BTreeMap<(KernelCall, String), BTreeMap<EventKind, Total>>;

/// A record of transfers and fallbacks. Clones of a ledger share one record.
///
/// ```
/// use cortado::{CpuDevice, Blob, ledger::{EventKind, Ledger}};
///
/// let ledger = Ledger::new();
/// {
///     let _ledger_guard = ledger.open();
///     let blob = Blob::from_vec(&CpuDevice::new(), &[3], vec![1.0f32, 2.0, 3.0])?;
///     blob.data()?.host()?;
/// }
/// assert_eq!(ledger.total(EventKind::Download).count, 0, "the CPU never copies");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Ledger {
    events: Arc<Mutex<EventTable>>,
    unscoped_calls: Arc<Mutex<BTreeSet<KernelCall>>>,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether `self` and `other` are clones of one ledger.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.events, &other.events)
    }

    /// Returns the recorded events, grouped by kernel, element type, call site, device and kind.
    pub fn entries(&self) -> Vec<Entry> {
        let events = self.events.lock();
        let rows = events.iter().flat_map(|((kernel, device), totals_by_kind)| {
            totals_by_kind.iter().map(move |(&kind, total)| Entry {
                kind,
                kernel: (kernel.name != DIRECT_ACCESS).then_some(kernel.name),
                element: kernel.element,
                site: kernel.site,
                device: device.clone(),
                count: total.count,
                bytes: total.bytes,
            })
        });
        rows.collect()
    }

    /// Returns the native kernels that used the device side of an operand outside of their own
    /// ledger scope ([`enter_kernel`](super::enter_kernel)). The ledger cannot attribute the
    /// transfers of unscoped kernels to a call. The ledger detects unscoped kernels only in calls
    /// through an [`AnyDevice`](crate::AnyDevice), and leaves the element type of their
    /// [`KernelCall`] empty.
    pub fn unscoped_kernels(&self) -> Vec<KernelCall> {
        self.unscoped_calls.lock().iter().copied().collect()
    }

    /// Returns the total count and bytes of all recorded events of kind `kind`.
    pub fn total(&self, kind: EventKind) -> Total {
        let mut sum = Total::default();
        for totals_by_kind in self.events.lock().values() {
            sum.add(totals_by_kind.get(&kind).copied().unwrap_or_default());
        }
        sum
    }

    /// Removes all events.
    pub fn clear(&self) {
        self.events.lock().clear();
        self.unscoped_calls.lock().clear();
    }

    pub(super) fn record_unscoped(&self, kernel: KernelCall) {
        self.unscoped_calls.lock().insert(kernel);
    }

    pub(super) fn record(&self, kind: EventKind, cause: KernelCall, device: String, bytes: u64) {
        let mut events = self.events.lock();
        let totals_by_kind = events.entry((cause, device)).or_default();
        totals_by_kind.entry(kind).or_default().add(Total { count: 1, bytes });
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

/// Formats the ledger as a table with one line per kernel call and device, in descending order of
/// bytes, followed by a line of totals. An empty ledger is formatted as one line of text.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.events.lock();
        if events.is_empty() {
            return writeln!(f, "no copies between host and device, no fallbacks to the host");
        }
        let sum = |totals_by_kind: &BTreeMap<EventKind, Total>| {
            totals_by_kind.values().map(|total| total.bytes).sum()
        };
        let mut rows: Vec<(u64, _, _)> = events
            .iter()
            .map(|(cause, totals_by_kind)| (sum(totals_by_kind), cause, totals_by_kind))
            .collect();
        rows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        writeln!(
            f,
            "{:<26} {:<5} {:>9} {:>9} {:>14} {:>9} {:>14}  called at",
            "kernel", "type", "fallbacks", "uploads", "bytes", "downloads", "bytes"
        )?;
        let write_row = |f: &mut fmt::Formatter<'_>, name: &str, element: &str, row: [Total; 3]| {
            let [fallbacks, up, down] = row;
            write!(
                f,
                "{name:<26} {element:<5} {:>9} {:>9} {:>14} {:>9} {:>14}",
                fallbacks.count, up.count, up.bytes, down.count, down.bytes
            )
        };
        let mut totals = [Total::default(); 3];
        for (_, (kernel, device), totals_by_kind) in rows {
            let row =
                EventKind::ALL.map(|kind| totals_by_kind.get(&kind).copied().unwrap_or_default());
            let name = if kernel.name == DIRECT_ACCESS { "(direct access)" } else { kernel.name };
            write_row(f, name, kernel.element, row)?;
            writeln!(f, "  {} on {device}", kernel.site)?;
            for (total, other) in totals.iter_mut().zip(row) {
                total.add(other);
            }
        }
        write_row(f, "total", "", totals)?;
        writeln!(f)
    }
}

/// Runs a block, and asserts the numbers of uploads and downloads that the block causes on the
/// calling thread. The value of the macro is the value of the block. A failed assertion prints the
/// [`Ledger`].
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, assert_transfers};
///
/// let memory = SyncedMemory::new(&CpuDevice::new(), 4);
/// let bytes = assert_transfers!(uploads: 0, downloads: 0, { memory.host()? });
/// assert_eq!(bytes, [0; 4]);
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Panics
/// The macro panics if the block causes other numbers of uploads or downloads.
#[macro_export]
macro_rules! assert_transfers {
    (uploads: $uploads:expr, downloads: $downloads:expr, $body:block) => {{
        use $crate::ledger::{EventKind, Ledger};
        let ledger = Ledger::new();
        let guard = ledger.open();
        let value = $body;
        drop(guard);
        let copies = [EventKind::Upload, EventKind::Download].map(|kind| ledger.total(kind).count);
        assert_eq!(copies, [$uploads, $downloads], "uploads and downloads:\n{ledger}");
        value
    }};
}
