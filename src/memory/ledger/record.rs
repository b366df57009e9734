//! The record itself.

use super::{DIRECT, KernelCall, Watch, with};
use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt, marker::PhantomData, panic::Location, sync::Arc};

/// What an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A copy from host to device.
    Upload,
    /// A copy from device to host.
    Download,
    /// A kernel that a device left to the host.
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

/// Events, and the bytes that they copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of events.
    pub count: u64,
    /// Bytes copied; 0 for fallbacks, whose copies are events of their own.
    pub bytes: u64,
}

impl Total {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Events of one kind with one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What they were.
    pub kind: EventKind,
    /// The kernel that caused them; none if the memory was asked for directly.
    pub kernel: Option<&'static str>,
    /// The kernel's element type, or nothing.
    pub element: &'static str,
    /// The call of the kernel, or what asked for the memory.
    pub site: &'static Location<'static>,
    /// Name of the device.
    pub device: String,
    /// Number of events.
    pub count: u64,
    /// Bytes copied.
    pub bytes: u64,
}

/// Events by cause, with the device's name, and what they were.
type Book = BTreeMap<(KernelCall, String), BTreeMap<EventKind, Total>>;

/// A record of copies and fallbacks. Clones are the same record.
///
/// ```
/// use cortado::{CpuDevice, Blob, ledger::{EventKind, Ledger}};
///
/// let ledger = Ledger::new();
/// {
///     let _open = ledger.open();
///     let blob = Blob::from_vec(&CpuDevice::new(), &[3], vec![1.0f32, 2.0, 3.0])?;
///     blob.data()?.host()?;
/// }
/// assert_eq!(ledger.total(EventKind::Download).count, 0, "on the CPU nothing is ever copied");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Ledger {
    book: Arc<Mutex<Book>>,
}

impl Ledger {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records what the calling thread does, and threads that read data on its behalf, until the
    /// guard is dropped. Ledgers nest: all that are open record.
    pub fn open(&self) -> LedgerGuard {
        let watch = Watch::new();
        with(|here| here.ledgers.push(self.clone()));
        LedgerGuard { ledger: self.clone(), _watch: watch, thread: PhantomData }
    }

    /// Everything so far, by kernel, element type, call and device.
    pub fn entries(&self) -> Vec<Entry> {
        let book = self.book.lock();
        let rows = book.iter().flat_map(|((kernel, device), kinds)| {
            kinds.iter().map(move |(&kind, total)| Entry {
                kind,
                kernel: (kernel.name != DIRECT).then_some(kernel.name),
                element: kernel.element,
                site: kernel.site,
                device: device.clone(),
                count: total.count,
                bytes: total.bytes,
            })
        });
        rows.collect()
    }

    /// All events of a kind.
    pub fn total(&self, kind: EventKind) -> Total {
        let mut sum = Total::default();
        for kinds in self.book.lock().values() {
            sum.add(kinds.get(&kind).copied().unwrap_or_default());
        }
        sum
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.book.lock().clear();
    }

    pub(super) fn record(&self, kind: EventKind, cause: KernelCall, device: String, bytes: u64) {
        let mut book = self.book.lock();
        let kinds = book.entry((cause, device)).or_default();
        kinds.entry(kind).or_default().add(Total { count: 1, bytes });
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

/// A table: one line for each cause, the greatest in bytes first, and a line of totals.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let book = self.book.lock();
        let sum =
            |kinds: &BTreeMap<EventKind, Total>| kinds.values().map(|total| total.bytes).sum();
        let mut rows: Vec<(u64, _, _)> =
            book.iter().map(|(cause, kinds)| (sum(kinds), cause, kinds)).collect();
        rows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        writeln!(
            f,
            "{:<26} {:<5} {:>9} {:>9} {:>14} {:>9} {:>14}  called at",
            "kernel", "type", "fallbacks", "uploads", "bytes", "downloads", "bytes"
        )?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, element: &str, kinds: [Total; 3]| {
            let [fallbacks, up, down] = kinds;
            write!(
                f,
                "{name:<26} {element:<5} {:>9} {:>9} {:>14} {:>9} {:>14}",
                fallbacks.count, up.count, up.bytes, down.count, down.bytes
            )
        };
        let mut totals = [Total::default(); 3];
        for (_, (kernel, device), kinds) in rows {
            let of = EventKind::ALL.map(|kind| kinds.get(&kind).copied().unwrap_or_default());
            let name = if kernel.name == DIRECT { "(direct access)" } else { kernel.name };
            line(f, name, kernel.element, of)?;
            writeln!(f, "  {} on {device}", kernel.site)?;
            for (total, of) in totals.iter_mut().zip(of) {
                total.add(of);
            }
        }
        line(f, "total", "", totals)?;
        writeln!(f)
    }
}

/// Keeps a [`Ledger`] open on the thread that opened it.
#[must_use = "the ledger is closed when this is dropped"]
#[derive(Debug)]
pub struct LedgerGuard {
    ledger: Ledger,
    _watch: Watch,
    thread: PhantomData<*const ()>,
}

impl Drop for LedgerGuard {
    fn drop(&mut self) {
        with(|here| {
            let is_this = |ledger: &Ledger| Arc::ptr_eq(&ledger.book, &self.ledger.book);
            if let Some(at) = here.ledgers.iter().rposition(is_this) {
                here.ledgers.remove(at);
            }
        });
    }
}

/// Runs a block and asserts how many copies it makes on this thread, in each direction; its value
/// is the block's. A failure prints the [`Ledger`].
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, assert_transfers};
///
/// let memory = SyncedMemory::new(&CpuDevice::new(), 4);
/// let bytes = assert_transfers!(uploads: 0, downloads: 0, { memory.host()? });
/// assert_eq!(bytes, [0; 4]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[macro_export]
macro_rules! assert_transfers {
    (uploads: $uploads:expr, downloads: $downloads:expr, $body:block) => {{
        use $crate::ledger::{EventKind, Ledger};
        let ledger = Ledger::new();
        let open = ledger.open();
        let value = $body;
        drop(open);
        let copies = [EventKind::Upload, EventKind::Download].map(|kind| ledger.total(kind).count);
        assert_eq!(copies, [$uploads, $downloads], "uploads and downloads:\n{ledger}");
        value
    }};
}
