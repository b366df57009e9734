//! A diagnosis: counts of transfers and findings by their places.

use super::{
    history::{Actor, CopyEvent, Cost, Symptom},
    place::Place,
    waste::Waste,
};
use crate::{memory::ledger::record::EventKind, sync::Mutex};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

/// Options of a [`Diagnosis`].
///
/// ```
/// use cortado::ledger::{Diagnosis, DiagnosisOptions};
///
/// let options = DiagnosisOptions { compare_contents: false };
/// let diagnosis = Diagnosis::with_options(options);
/// assert!(diagnosis.findings().is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisOptions {
    /// Whether the diagnosis computes a 64-bit hash of each transfer, which finds round trips and
    /// repeated transfers. A hash takes about 1 ns per byte.
    pub compare_contents: bool,
}

impl Default for DiagnosisOptions {
    /// Compares contents.
    fn default() -> Self {
        Self { compare_contents: true }
    }
}

/// The transfers between one read and one write, with their cost.
///
/// ```
/// use cortado::{ledger::{self, EventKind}, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let ((), diagnosis) = ledger::diagnose(|| {
///     let x = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
///     let written = line!() - 1;
///     x.scale_data(2.0)?;
///     assert_eq!(x.to_vec()?, [2.0, 4.0]);
///     Ok(())
/// })?;
/// let [download, upload] = &diagnosis.transfers()[..] else { panic!("two transfers") };
/// assert_eq!((upload.kind, upload.bytes), (EventKind::Upload, 8));
/// assert_eq!(upload.reader.call.name, "scal");
/// assert_eq!(download.writer.as_ref().unwrap().call.name, "scal");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferCause {
    /// Direction of the transfers: upload or download.
    pub kind: EventKind,
    /// Name of the device.
    pub device: String,
    /// Name of the memory ([`SyncedMemory::set_name`](crate::SyncedMemory::set_name)), if it has
    /// one.
    pub memory: Option<Arc<str>>,
    /// The read that needed the transfers.
    pub reader: Place,
    /// The write that had made the reader's side stale. `None` if the write preceded the diagnosis.
    pub writer: Option<Place>,
    /// Number of transfers.
    pub count: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Total time of the calls that copied. A device with a queue may copy later.
    pub time: Duration,
}

/// Needless work of one kind at one place, with what the program would save without it.
///
/// ```
/// use cortado::{ledger::{self, Waste}, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let ((), diagnosis) = ledger::diagnose(|| {
///     let x = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
///     x.scale_data(2.0)?;
///     let sum: f32 = x.data_mut()?.host_mut()?.iter().sum(); // should be `x.data()?.host()?`
///     x.scale_data(sum)
/// })?;
/// let [finding] = &diagnosis.findings()[..] else { panic!("one finding") };
/// assert_eq!((finding.waste, finding.bytes), (Waste::RoundTrip, 8));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of needless work.
    pub waste: Waste,
    /// Name of the device.
    pub device: String,
    /// Name of the memory, if it has one. `None` for waits.
    pub memory: Option<Arc<str>>,
    /// The place of the needless work: the read that needed a copy, the write that replaced unread
    /// data, the kernel that fell back, or the wait.
    pub place: Place,
    /// The other place: the write that changed nothing, the write or prefetch whose data nothing
    /// read, the kernel that used the result of a fallback, the write that completed the
    /// overwriting, or the previous wait. `None` if it preceded the diagnosis.
    pub other: Option<Place>,
    /// Number of times.
    pub count: u64,
    /// Number of copies that the program would save.
    pub copies: u64,
    /// Number of bytes that the program would not copy, or, for an unread write, would not write.
    pub bytes: u64,
    /// Time of the needless copies or waits.
    pub time: Duration,
}

/// The diagnosis of a program's transfers: for each transfer, the read that needed it and the write
/// that had made the reader's side stale; and the needless work of each kind in [`Waste`]. Clones
/// of a diagnosis share one record.
///
/// A diagnosis records the threads on which it is [open](Self::open), and the threads that work for
/// them. It does not see the accesses of other threads. The kernels of a device must enter their
/// ledger scopes ([`enter_kernel`](crate::ledger::enter_kernel)).
///
/// ```
/// use cortado::{ledger::{Diagnosis, Waste}, prelude::*};
///
/// let x = Blob::from_slice(&SimulatedDevice::new(), &[2], &[1.0f32, 2.0])?;
/// let diagnosis = Diagnosis::new();
/// {
///     let _guard = diagnosis.open();
///     x.scale_data(2.0)?;
///     x.data_mut()?.host_mut()?; // writes nothing, but makes the device side stale
///     x.scale_data(2.0)?;
/// }
/// assert_eq!(diagnosis.findings()[0].waste, Waste::RoundTrip);
/// assert!(diagnosis.to_string().contains("round trip"), "{diagnosis}");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Diagnosis {
    options: DiagnosisOptions,
    record: Arc<Mutex<Record>>,
}

/// Device name, name of the memory, and two places: the key of a transfer or finding.
type Key<K> = (K, String, Option<Arc<str>>, Place, Option<Place>);

#[derive(Default)]
struct Record {
    transfers: BTreeMap<Key<EventKind>, Cost>,
    /// Number and cost of the occurrences.
    findings: BTreeMap<Key<Waste>, (u64, Cost)>,
    /// The last memory that each kind of transfer has copied with each content.
    sent: HashMap<SentKey, Weak<()>>,
    /// The number of uses of devices so far.
    device_uses: u64,
    /// The last wait for each queue, and the number of uses of devices at that time.
    waits: BTreeMap<usize, (u64, Place)>,
}

/// Direction, places, bytes and hash of a transfer.
type SentKey = (bool, KeyPlace, Option<KeyPlace>, u64, u64);

/// Source file, line and column of a place.
type KeyPlace = (&'static str, u32, u32);

impl Diagnosis {
    /// Creates an empty diagnosis with the default [`DiagnosisOptions`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty diagnosis.
    pub fn with_options(options: DiagnosisOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns whether `self` and `other` are clones of one diagnosis.
    pub(in crate::memory::ledger) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.record, &other.record)
    }

    pub(in crate::memory::ledger) fn compares_contents(&self) -> bool {
        self.options.compare_contents
    }

    /// Returns the transfers, in descending order of bytes.
    pub fn transfers(&self) -> Vec<TransferCause> {
        let record = self.record.lock();
        let rows = record.transfers.iter().map(|(key, &Cost { copies, bytes, time })| {
            let (kind, device, memory, reader, writer) = key.clone();
            TransferCause { kind, device, memory, reader, writer, count: copies, bytes, time }
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.kind != EventKind::Download));
        rows
    }

    /// Returns the needless work, in descending order of the bytes and then of the time that the
    /// program would save.
    pub fn findings(&self) -> Vec<Finding> {
        let record = self.record.lock();
        let rows = record.findings.iter().map(|(key, &(count, saved))| {
            let (waste, device, memory, place, other) = key.clone();
            let Cost { copies, bytes, time } = saved;
            Finding { waste, device, memory, place, other, count, copies, bytes, time }
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.time)));
        rows
    }

    /// Removes all transfers and findings.
    pub fn clear(&self) {
        *self.record.lock() = Record::default();
    }

    pub(in crate::memory::ledger) fn record_transfer(
        &self,
        (kind, device, memory): (EventKind, String, Option<Arc<str>>),
        (reader, writer): (Place, Option<Place>),
        cost: Cost,
    ) {
        let mut record = self.record.lock();
        let row = record.transfers.entry((kind, device, memory, reader, writer)).or_default();
        row.add(cost);
    }

    pub(in crate::memory::ledger) fn record_finding(
        &self,
        (device, memory): (String, Option<Arc<str>>),
        symptom: Symptom,
    ) {
        let Symptom { waste, place, other, saved } = symptom;
        let mut record = self.record.lock();
        let row = record.findings.entry((waste, device, memory, place, other)).or_default();
        row.0 += 1;
        row.1.add(saved);
    }

    /// Records that the memory with the given lifetime got the content of `copy`. Returns the
    /// transfer as needless if an earlier transfer at the same places copied the same content to a
    /// memory that the program has dropped since.
    pub(in crate::memory::ledger) fn sent(
        &self,
        copy: &CopyEvent,
        reader: &Actor,
        writer: Option<&Place>,
        lifetime: Weak<()>,
    ) -> Option<Symptom> {
        let site = |place: &Place| {
            let site = place.call.site;
            (site.file(), site.line(), site.column())
        };
        let is_upload = copy.kind == EventKind::Upload;
        let (hash, bytes) = (copy.content?.hash, copy.cost.bytes);
        let key = (is_upload, site(&reader.place), writer.map(site), bytes, hash);
        let earlier = self.record.lock().sent.insert(key, lifetime)?;
        (earlier.strong_count() == 0).then(|| Symptom {
            waste: Waste::SentAgain,
            place: reader.place.clone(),
            other: writer.cloned(),
            saved: copy.cost,
        })
    }

    /// Records that a kernel or transfer uses a device.
    pub(in crate::memory::ledger) fn use_device(&self) {
        self.record.lock().device_uses += 1;
    }

    /// Records a wait for `queue`, and returns the place of the previous wait if no device has been
    /// used since.
    pub(in crate::memory::ledger) fn wait(&self, queue: usize, place: &Place) -> Option<Place> {
        let mut record = self.record.lock();
        let uses = record.device_uses;
        let earlier = record.waits.insert(queue, (uses, place.clone()));
        earlier.filter(|(earlier_uses, _)| *earlier_uses == uses).map(|(_, place)| place)
    }
}
