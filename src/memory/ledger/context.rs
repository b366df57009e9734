//! The ledger context of each thread: the open ledgers and traces, the policies and the running
//! kernel.

use super::{
    diagnosis::{
        history::{Actor, FallbackDownloads, Symptom},
        place::{LayerPass, Place},
        recorder::Diagnosis,
        waste::Waste,
    },
    kernel_call::{DIRECT_ACCESS, KernelCall, mark_device_use},
    policy::Policy,
    record::{EventKind, Ledger},
};
use crate::{
    error::Result,
    host::{RegionObserver, RegionWatch},
    memory::trace::{kernel_size::KernelSize, recorder::Trace, span::Work},
};
use std::{
    cell::RefCell,
    marker::PhantomData,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// The ledger context of a thread: its open ledgers, traces and diagnoses, policies and running
/// kernel. A thread that works on behalf of another thread enters the context of that other thread.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory};
/// use cortado::ledger::{EventKind, Ledger, LedgerContext};
///
/// let (ledger, mut memory) = (Ledger::new(), SyncedMemory::new(&SimulatedDevice::new(), 8));
/// memory.host_mut()?.fill(1);
/// let _ledger_guard = ledger.open();
/// let context = LedgerContext::current();
/// let thread = std::thread::spawn(move || {
///     let _context_guard = context.enter();
///     memory.device().map(drop)
/// });
/// thread.join().unwrap()?;
/// assert_eq!(ledger.total(EventKind::Upload).bytes, 8);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LedgerContext {
    ledgers: Vec<Ledger>,
    pub(super) traces: Vec<Trace>,
    pub(super) diagnoses: Vec<Diagnosis>,
    pub(super) transfer_policy: Policy,
    pub(super) fallback_policy: Policy,
    /// The policy for each kind in [`Waste::ALL`].
    pub(super) waste_policies: [Policy; Waste::ALL.len()],
    pub(super) layer: Option<LayerPass>,
    pub(super) kernel: Option<KernelCall>,
    pub(super) fallback_state: FallbackState,
    /// The size of the kernel call that is about to start, and the names of the ledger scopes that
    /// may record the size.
    pub(super) kernel_size: Option<([&'static str; 2], Arc<KernelSize>)>,
    /// The fallback that is about to start.
    pub(super) fallback: Option<KernelCall>,
}

/// Whether the running kernel is a fallback, and the downloads that it has caused so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FallbackState {
    pub(super) is_fallback: bool,
    pub(super) downloads: FallbackDownloads,
}

impl FallbackState {
    /// Returns the state of a kernel that starts.
    pub(super) fn start(is_fallback: bool) -> Self {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let call = if is_fallback { CALLS.fetch_add(1, Relaxed) + 1 } else { 0 };
        Self { is_fallback, downloads: FallbackDownloads { call, ..FallbackDownloads::default() } }
    }
}

thread_local! {
    static CONTEXT: RefCell<LedgerContext> = RefCell::default();
}

/// Calls `f` with the ledger context of the calling thread. The closure `f` must not call
/// `with_context`, which panics while the context is borrowed.
pub(super) fn with_context<R>(f: impl FnOnce(&mut LedgerContext) -> R) -> R {
    CONTEXT.with_borrow_mut(f)
}

/// Number of [`Watch`]es that exist in the process. While no `Watch` exists, transfers and
/// fallbacks do not read the ledger context of their thread.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub(super) fn is_watched() -> bool {
    WATCHES.load(Relaxed) != 0
}

/// A guard, counted by [`WATCHES`], that makes transfers and fallbacks read the ledger context of
/// their thread. A `Watch` is not `Send`.
#[derive(Debug)]
pub(super) struct Watch(PhantomData<*const ()>);

impl Watch {
    pub(super) fn new() -> Self {
        WATCHES.fetch_add(1, Relaxed);
        Self(PhantomData)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Relaxed);
    }
}

/// Number of [`DiagnosisWatch`]es that exist in the process.
static DIAGNOSES: AtomicUsize = AtomicUsize::new(0);

/// Number of times that a [`DiagnosisWatch`] was created while none existed. The access history of
/// a memory is out of date if this number has changed since the history started.
static GENERATION: AtomicU64 = AtomicU64::new(0);

#[inline]
pub(super) fn is_diagnosed() -> bool {
    DIAGNOSES.load(Relaxed) != 0
}

pub(super) fn diagnosis_generation() -> u64 {
    GENERATION.load(Relaxed)
}

/// A guard, counted by [`DIAGNOSES`], that makes memories record their accesses.
#[derive(Debug)]
pub(super) struct DiagnosisWatch(Watch);

impl DiagnosisWatch {
    pub(super) fn new() -> Self {
        if DIAGNOSES.fetch_add(1, Relaxed) == 0 {
            GENERATION.fetch_add(1, Relaxed);
        }
        Self(Watch::new())
    }
}

impl Drop for DiagnosisWatch {
    fn drop(&mut self) {
        DIAGNOSES.fetch_sub(1, Relaxed);
    }
}

impl LedgerContext {
    /// Returns the ledger context of the calling thread.
    pub fn current() -> Self {
        if is_watched() { with_context(|context| context.clone()) } else { Self::default() }
    }

    /// Replaces the ledger context of the calling thread until the returned guard is dropped.
    pub fn enter(self) -> ContextGuard {
        let is_default = self.ledgers.is_empty()
            && self.traces.is_empty()
            && self.diagnoses.is_empty()
            && self.transfer_policy == Policy::Allow
            && self.fallback_policy == Policy::Allow;
        let watch = (!is_default).then(Watch::new);
        let diagnosis_watch = (!self.diagnoses.is_empty()).then(DiagnosisWatch::new);
        let region_watch = (!self.traces.is_empty()).then(region_watch);
        let previous_context = with_context(|context| mem::replace(context, self));
        ContextGuard {
            previous_context,
            _watch: watch,
            _diagnosis_watch: diagnosis_watch,
            _region_watch: region_watch,
            thread: PhantomData,
        }
    }

    /// Returns the current time if a trace is open.
    pub(super) fn span_start(&self) -> Option<Instant> {
        (!self.traces.is_empty()).then(Instant::now)
    }

    /// Records in the open traces the span of `work`, which the calling thread started at `start`
    /// and has just ended.
    pub(super) fn record_span(&self, start: Instant, work: Work) {
        self.traces.iter().for_each(|trace| trace.record(start, work.clone()));
    }

    /// Returns the actor of an access: the running kernel, or `direct_access` if no kernel is
    /// running.
    pub(super) fn actor(&self, direct_access: KernelCall) -> Actor {
        let FallbackState { is_fallback, downloads } = self.fallback_state;
        let call = self.kernel.unwrap_or(direct_access);
        Actor { place: Place { call, is_fallback, layer: self.layer.clone() }, downloads }
    }

    /// Applies the policy for the kind of needless work that `symptom` shows, and records this work
    /// in the open diagnoses if the policy permits it. `device` and `memory` are the names of the
    /// device and of the memory.
    ///
    /// # Errors
    /// Returns [`Error::Denied`](crate::Error::Denied) if the policy denies the work.
    pub(super) fn report(
        &self,
        (device, memory): (&str, Option<&Arc<str>>),
        symptom: Symptom,
    ) -> Result<()> {
        self.waste_policies[symptom.waste.index()].apply(|| symptom.describe(device, memory))?;
        for diagnosis in &self.diagnoses {
            diagnosis.record_finding((device.to_owned(), memory.cloned()), symptom.clone());
        }
        Ok(())
    }

    fn record(
        &self,
        kind: EventKind,
        cause: KernelCall,
        device: impl Fn() -> String,
        bytes: usize,
    ) {
        for ledger in &self.ledgers {
            ledger.record(kind, cause, device(), bytes as u64);
        }
    }
}

/// A guard that restores a thread's previous [`LedgerContext`] on drop.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory};
/// use cortado::ledger::{LedgerContext, Policy, set_transfer_policy};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
/// memory.host_mut()?.fill(1);
/// let _policy = set_transfer_policy(Policy::Deny);
/// assert!(memory.device().is_err());
/// {
///     let _without_policies = LedgerContext::default().enter();
///     assert!(memory.device().is_ok());
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard restores the previous context"]
pub struct ContextGuard {
    previous_context: LedgerContext,
    _watch: Option<Watch>,
    _diagnosis_watch: Option<DiagnosisWatch>,
    _region_watch: Option<RegionWatch>,
    thread: PhantomData<*const ()>,
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        let previous_context = mem::take(&mut self.previous_context);
        with_context(|context| *context = previous_context);
    }
}

/// Makes the threads of parallel regions record their parts in the open traces of the thread that
/// starts the region.
pub(super) fn region_watch() -> RegionWatch {
    RegionWatch::new(|| {
        with_context(|context| {
            let (traces, kernel) = (context.traces.clone(), context.kernel);
            (!traces.is_empty()).then(|| {
                let record = move |start| {
                    traces.iter().for_each(|trace| trace.record(start, Work::Region { kernel }));
                };
                Arc::new(record) as RegionObserver
            })
        })
    })
}

impl Ledger {
    /// Opens the ledger on the calling thread until the returned guard is dropped. The ledger
    /// records the transfers and fallbacks of the calling thread, and of threads that read data for
    /// the calling thread. Ledgers nest: every open ledger of a thread records each event.
    pub fn open(&self) -> LedgerGuard {
        let watch = Watch::new();
        with_context(|context| context.ledgers.push(self.clone()));
        LedgerGuard { ledger: self.clone(), _watch: watch }
    }
}

/// A guard that keeps a [`Ledger`] open on the thread that opened the ledger.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, ledger::{EventKind, Ledger}};
///
/// let (ledger, mut memory) = (Ledger::new(), SyncedMemory::new(&SimulatedDevice::new(), 4));
/// memory.host_mut()?.fill(1);
/// let guard = ledger.open();
/// memory.device()?;
/// drop(guard);
/// memory.device_mut()?;
/// memory.host()?; // a download after the ledger is closed
/// assert_eq!(ledger.total(EventKind::Upload).count, 1);
/// assert_eq!(ledger.total(EventKind::Download).count, 0);
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard closes the ledger"]
#[derive(Debug)]
pub struct LedgerGuard {
    ledger: Ledger,
    _watch: Watch,
}

impl Drop for LedgerGuard {
    fn drop(&mut self) {
        with_context(|context| {
            let is_this_ledger = |ledger: &Ledger| ledger.is_same(&self.ledger);
            if let Some(index) = context.ledgers.iter().rposition(is_this_ledger) {
                context.ledgers.remove(index);
            }
        });
    }
}

/// Records in the running kernel call that the calling thread uses the device side of a view. If an
/// [`AnyDevice`](crate::AnyDevice) runs the kernel, the kernel must already have entered its ledger
/// scope.
#[inline]
pub(in crate::memory) fn device_use_event() {
    if is_watched() {
        mark_device_use();
    }
}

/// Records in the calling thread's open ledgers that `kernel` used the device side of an operand
/// outside of the kernel's ledger scope.
pub(super) fn record_unscoped(kernel: KernelCall) {
    if is_watched() {
        LedgerContext::current().ledgers.iter().for_each(|ledger| ledger.record_unscoped(kernel));
    }
}

/// Applies the calling thread's fallback policy to the call `kernel` on the device with the name
/// `device()`. Records the fallback if the policy permits it.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if the policy denies fallbacks.
pub(in crate::memory) fn fallback_event(
    device: impl Fn() -> String,
    kernel: &KernelCall,
) -> Result<()> {
    if !is_watched() {
        return Ok(());
    }
    let context = LedgerContext::current();
    let describe = || format!("fallback to the host on `{}`: {kernel}", device());
    context.fallback_policy.apply(describe)?;
    context.record(EventKind::Fallback, *kernel, device, 0);
    with_context(|context| context.fallback = Some(*kernel));
    Ok(())
}

/// Runs `copy` if the calling thread's transfer policy permits the transfer. Records the transfer
/// if `copy` succeeds. `device` and `memory` return the names of the device and of the memory.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if the policy denies transfers. Propagates
/// errors from `copy`.
#[track_caller]
pub(in crate::memory) fn transfer_event(
    (device, memory): (impl Fn() -> String, impl Fn() -> Option<Arc<str>>),
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_watched() {
        return copy();
    }
    let mut copy = Some(copy);
    let copy = &mut || copy.take().map_or(Ok(()), |copy| copy());
    watched_transfer_event((&device, &memory), kind, bytes, copy)
}

/// Like [`transfer_event`], but for a process in which a [`Watch`] exists. `watched_transfer_event`
/// calls `copy` at most once. The closures are trait objects, so that `watched_transfer_event` is
/// compiled once and not for every caller.
#[track_caller]
fn watched_transfer_event(
    (device, memory): (&dyn Fn() -> String, &dyn Fn() -> Option<Arc<str>>),
    kind: EventKind,
    bytes: usize,
    copy: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let context = LedgerContext::current();
    // `KernelCall::new` is called outside the closures, because inside a closure `#[track_caller]`
    // would report the closure as the caller.
    let direct_access = KernelCall::new(DIRECT_ACCESS, "");
    let cause = context.kernel.unwrap_or(direct_access);
    context.transfer_policy.apply(|| match cause.name {
        DIRECT_ACCESS => format!("{kind} of {bytes} bytes on `{}` at {}", device(), cause.site),
        _ => format!("{kind} of {bytes} bytes on `{}` by {cause}", device()),
    })?;
    let start = context.span_start();
    copy()?;
    context.record(kind, cause, device, bytes);
    if let Some(start) = start {
        let (device, memory, bytes) = (device().into(), memory(), bytes as u64);
        context.record_span(start, Work::Transfer { kind, bytes, device, memory, cause });
    }
    Ok(())
}
