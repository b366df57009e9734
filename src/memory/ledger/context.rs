//! The ledger context of each thread: the open ledgers and traces, the policies and the running
//! kernel.

use super::{
    kernel_call::{DIRECT_ACCESS, KernelCall, end_scope, mark_device_use, mark_scope},
    policy::Policy,
    record::{EventKind, Ledger},
};
use crate::{
    error::Result,
    host::{RegionObserver, RegionWatch},
    memory::trace::{recorder::Trace, span::Work},
};
use std::{
    cell::RefCell,
    marker::PhantomData,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// The ledger context of a thread: its open ledgers and traces, policies and running kernel. A
/// thread that works on behalf of another thread enters the context of that other thread.
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
    transfer_policy: Policy,
    fallback_policy: Policy,
    kernel: Option<KernelCall>,
    /// The fallback that is about to start.
    fallback: Option<KernelCall>,
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

impl LedgerContext {
    /// Returns the ledger context of the calling thread.
    pub fn current() -> Self {
        if is_watched() { with_context(|context| context.clone()) } else { Self::default() }
    }

    /// Replaces the ledger context of the calling thread until the returned guard is dropped.
    pub fn enter(self) -> ContextGuard {
        let is_default = self.ledgers.is_empty()
            && self.traces.is_empty()
            && self.transfer_policy == Policy::Allow
            && self.fallback_policy == Policy::Allow;
        let watch = (!is_default).then(Watch::new);
        let region_watch = (!self.traces.is_empty()).then(region_watch);
        let previous_context = with_context(|context| mem::replace(context, self));
        ContextGuard {
            previous_context,
            _watch: watch,
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

/// A guard that keeps a [`Policy`] in force on the thread that set the policy.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory};
/// use cortado::ledger::{Policy, set_transfer_policy};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
/// memory.host_mut()?.fill(1);
/// let policy = set_transfer_policy(Policy::Deny);
/// assert!(memory.device().is_err());
/// drop(policy);
/// assert!(memory.device().is_ok());
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard restores the previous policy"]
#[derive(Debug)]
pub struct PolicyGuard {
    subject: Subject,
    previous_policy: Policy,
    _watch: Watch,
}

/// The kind of events to which a policy applies: transfers or fallbacks.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Transfers,
    Fallbacks,
}

/// Sets the calling thread's policy for copies between host and device until the returned guard is
/// dropped. If policies are nested, the innermost policy applies.
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, ledger::{self, Policy}};
///
/// let _policy = ledger::set_transfer_policy(Policy::Deny);
/// let mut memory = SyncedMemory::new(&CpuDevice::new(), 16);
/// memory.host_mut()?.fill(1);
/// assert!(memory.device().is_ok(), "the CPU never copies");
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn set_transfer_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Transfers, policy)
}

/// Like [`set_transfer_policy`], but sets the policy for fallbacks, that is, for kernels that run
/// on the host because the device does not override them.
pub fn set_fallback_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Fallbacks, policy)
}

impl PolicyGuard {
    fn new(subject: Subject, policy: Policy) -> Self {
        let watch = Watch::new();
        Self { subject, previous_policy: replace_policy(subject, policy), _watch: watch }
    }
}

impl Drop for PolicyGuard {
    fn drop(&mut self) {
        replace_policy(self.subject, self.previous_policy);
    }
}

fn replace_policy(subject: Subject, policy: Policy) -> Policy {
    with_context(|context| {
        let current_policy = match subject {
            Subject::Transfers => &mut context.transfer_policy,
            Subject::Fallbacks => &mut context.fallback_policy,
        };
        mem::replace(current_policy, policy)
    })
}

impl KernelCall {
    /// Attributes the calling thread's transfers to this kernel call until the returned guard is
    /// dropped. Open traces record the time until the guard is dropped as the span of the kernel.
    pub fn enter(self) -> KernelScope {
        self.enter_at(LedgerContext::span_start)
    }

    /// Like [`enter`](Self::enter), but records no span, because the span of the kernel call has
    /// already ended. The simulated device executes queued kernels after their calls.
    pub(crate) fn reenter(self) -> KernelScope {
        self.enter_at(|_| None)
    }

    fn enter_at(self, span_start: fn(&LedgerContext) -> Option<Instant>) -> KernelScope {
        let outer_scope = is_watched().then(|| {
            let had_scope = mark_scope(self.name);
            with_context(|context| OuterScope {
                kernel: context.kernel.replace(self),
                had_scope,
                is_fallback: context.fallback.take() == Some(self),
                span_start: span_start(context),
            })
        });
        KernelScope { call: self, outer_scope, thread: PhantomData }
    }
}

/// Marks the start of a native kernel. Ledgers attribute the calling thread's transfers to the
/// kernel `name` until the returned guard is dropped. Every override of a kernel must call
/// `enter_kernel` before it uses the device side of an operand. `name` is the name of the kernel's
/// method, such as `unary`, or of the method and its function, such as `unary_exp`
/// ([`Unary::kernel_name`](crate::op::Unary::kernel_name)).
///
/// ```
/// # fn launch<T: cortado::Element>() {
/// let _kernel = cortado::ledger::enter_kernel("gemm", T::DTYPE.name());
/// # }
/// ```
#[track_caller]
pub fn enter_kernel(name: &'static str, element: &'static str) -> KernelScope {
    KernelCall::new(name, element).enter()
}

/// A guard that attributes the transfers of its thread to a running kernel until the guard is
/// dropped.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, ledger::{Ledger, enter_kernel}};
///
/// let (ledger, mut memory) = (Ledger::new(), SyncedMemory::new(&SimulatedDevice::new(), 4));
/// memory.host_mut()?.fill(1);
/// let _ledger_guard = ledger.open();
/// {
///     let _kernel = enter_kernel("blur", "f32");
///     memory.device()?;
/// }
/// assert_eq!(ledger.entries()[0].kernel, Some("blur"));
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard ends the kernel's ledger scope"]
pub struct KernelScope {
    call: KernelCall,
    /// `None` if no [`Watch`] existed when the kernel started.
    outer_scope: Option<OuterScope>,
    thread: PhantomData<*const ()>,
}

/// The state of the thread before a kernel scope, and the start of the kernel's span.
struct OuterScope {
    /// The enclosing kernel call, if any.
    kernel: Option<KernelCall>,
    /// Whether the running kernel was already in one of its ledger scopes.
    had_scope: bool,
    /// Whether the kernel of the new scope is a fallback.
    is_fallback: bool,
    /// The start of the kernel's span, if a trace is open.
    span_start: Option<Instant>,
}

impl KernelScope {
    /// Returns the kernel call of this scope.
    pub fn call(&self) -> KernelCall {
        self.call
    }
}

impl Drop for KernelScope {
    fn drop(&mut self) {
        if let Some(OuterScope { kernel, had_scope, is_fallback, span_start }) = self.outer_scope {
            end_scope(had_scope);
            with_context(|context| {
                if let Some(start) = span_start {
                    context.record_span(start, Work::Kernel { call: self.call, is_fallback });
                }
                context.kernel = kernel;
            });
        }
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
/// if `copy` succeeds.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if the policy denies transfers. Propagates
/// errors from `copy`.
#[track_caller]
pub(in crate::memory) fn transfer_event(
    device: impl Fn() -> String,
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_watched() {
        return copy();
    }
    let mut copy = Some(copy);
    watched_transfer_event(&device, kind, bytes, &mut || copy.take().map_or(Ok(()), |copy| copy()))
}

/// Like [`transfer_event`], but for a process in which a [`Watch`] exists. `watched_transfer_event`
/// calls `copy` at most once. The closures are trait objects, so that `watched_transfer_event` is
/// compiled once and not for every caller.
#[track_caller]
fn watched_transfer_event(
    device: &dyn Fn() -> String,
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
        let (device, bytes) = (device().into(), bytes as u64);
        context.record_span(start, Work::Transfer { kind, bytes, device, cause });
    }
    Ok(())
}
