//! What crossed between host and device, and what fell back to the host: counted, and on request
//! warned of or refused.
//!
//! Decisions:
//! - A [`Ledger`] is a value; whoever wants one opens it on a thread. There is no global book.
//! - Policies belong to a thread too, and end with the guard that set them.
//! - A copy is on the account of the kernel that caused it, and of the place that called that
//!   kernel. Without one it is on the account of the place that asked for the memory.
//! - While no ledger is open and no policy set anywhere in the process, all of this costs one
//!   relaxed load a kernel and a copy.

mod record;
mod policy;

pub use record::{Entry, EventKind, Ledger, LedgerGuard, Total};
pub use policy::{Policy, PolicyGuard, set_fallback_policy, set_transfer_policy};

use super::Memory;
use crate::error::Result;
use std::{
    cell::RefCell,
    fmt,
    marker::PhantomData,
    panic::Location,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A kernel that was called: its name as in its family, its element type, and who called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelCall {
    /// Name of the method, such as `gemm`.
    pub name: &'static str,
    /// Element type, such as `f32`.
    pub element: &'static str,
    /// The call.
    pub site: &'static Location<'static>,
}

impl KernelCall {
    /// The kernel `name` for elements called `element`, called where this function's caller was
    /// called.
    #[track_caller]
    pub fn new(name: &'static str, element: &'static str) -> Self {
        Self { name, element, site: Location::caller() }
    }

    /// Puts what this thread copies on this kernel's account until the guard is dropped.
    pub fn enter(self) -> KernelScope {
        let before = is_watched().then(|| with(|here| here.kernel.replace(self)));
        KernelScope { before, thread: PhantomData }
    }
}

impl fmt::Display for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} at {}", self.name, self.element, self.site)
    }
}

/// Opens the account of a device's own kernel: the first line of every override.
///
/// ```
/// # fn launch<T: cortado::Element>() {
/// let _kernel = cortado::ledger::kernel("gemm", T::DTYPE.name());
/// # }
/// ```
#[track_caller]
pub fn enter_kernel(name: &'static str, element: &'static str) -> KernelScope {
    KernelCall::new(name, element).enter()
}

/// Keeps a kernel's account open. Belongs to the thread that made it.
#[must_use = "the account is closed when this is dropped"]
pub struct KernelScope {
    /// What ran outside this kernel, if anybody is watching.
    before: Option<Option<KernelCall>>,
    thread: PhantomData<*const ()>,
}

impl Drop for KernelScope {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            with(|here| here.kernel = before);
        }
    }
}

/// What a thread's events are subject to: open ledgers and policies. Hand it to a thread that
/// works on this one's behalf.
#[derive(Clone, Debug, Default)]
pub struct LedgerContext {
    ledgers: Vec<Ledger>,
    transfers: Policy,
    fallbacks: Policy,
    kernel: Option<KernelCall>,
}

impl LedgerContext {
    /// That of the calling thread.
    pub fn current() -> Self {
        if is_watched() { with(|here| here.clone()) } else { Self::default() }
    }

    /// Makes it the calling thread's, until the guard is dropped.
    pub fn enter(self) -> ContextGuard {
        let watch = (!self.is_default()).then(Watch::new);
        let before = with(|here| std::mem::replace(here, self));
        ContextGuard { before, _watch: watch, thread: PhantomData }
    }

    fn is_default(&self) -> bool {
        self.ledgers.is_empty()
            && self.transfers == Policy::Allow
            && self.fallbacks == Policy::Allow
    }
}

/// Gives a thread its own [`Context`] back when dropped.
#[must_use = "the context is left when this is dropped"]
pub struct ContextGuard {
    before: LedgerContext,
    _watch: Option<Watch>,
    thread: PhantomData<*const ()>,
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.before);
        with(|here| *here = before);
    }
}

/// The default of [`Memory::on_fallback`]: records that `device` leaves `kernel` to the host.
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if this thread denies fallbacks.
pub fn record_fallback<D: Memory>(device: &D, kernel: &KernelCall) -> Result<()> {
    if !is_watched() {
        return Ok(());
    }
    let here = with(|here| here.clone());
    here.fallbacks.rule(|| format!("fallback to the host on `{}`: {kernel}", device.name()))?;
    here.record(EventKind::Fallback, *kernel, || device.name(), 0);
    Ok(())
}

/// Runs `copy`, which takes `bytes` bytes across in the direction `kind`, and records it if it
/// succeeds. [`SyncedMemory`](super::SyncedMemory) copies through this; so should a device that
/// brings a kernel's scalar result to the host.
///
/// # Errors
/// [`Error::Denied`](crate::Error::Denied) if this thread denies transfers; those of `copy`.
#[track_caller]
pub fn record_transfer<D: Memory>(
    device: &D,
    kind: EventKind,
    bytes: usize,
    copy: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_watched() {
        return copy();
    }
    let here = with(|here| here.clone());
    let direct = KernelCall::new(DIRECT, ""); // not in a closure, which would be the caller
    let cause = here.kernel.unwrap_or(direct);
    here.transfers.rule(|| match cause.name {
        DIRECT => format!("{kind} of {bytes} bytes on `{}` at {}", device.name(), cause.site),
        _ => format!("{kind} of {bytes} bytes on `{}` by {cause}", device.name()),
    })?;
    copy()?;
    here.record(kind, cause, || device.name(), bytes);
    Ok(())
}

/// Stands for the kernel where memory was asked for outside any.
const DIRECT: &str = "";

/// Ledgers, policies and contexts alive in the process: events look no further while there are
/// none.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn is_watched() -> bool {
    WATCHES.load(Relaxed) != 0
}

/// Makes events look at their thread's context while it lives.
#[derive(Debug)]
struct Watch;

impl Watch {
    fn new() -> Self {
        WATCHES.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Relaxed);
    }
}

thread_local! {
    static HERE: RefCell<LedgerContext> = RefCell::default();
}

/// Works on the calling thread's context; `f` must not come back here.
fn with<R>(f: impl FnOnce(&mut LedgerContext) -> R) -> R {
    HERE.with_borrow_mut(f)
}

impl LedgerContext {
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
