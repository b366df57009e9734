//! The identity of a kernel call in a ledger: kernel name, element type and call site.

use std::{cell::Cell, fmt, marker::PhantomData, panic::Location};

/// Kernel name under which ledgers record memory accesses outside of any kernel.
pub(super) const DIRECT_ACCESS: &str = "";

/// A kernel call: name, element type and call site.
///
/// ```
/// use cortado::ledger::KernelCall;
///
/// let call = KernelCall::new("gemm", "f32");
/// assert_eq!((call.site.file(), call.site.line()), (file!(), line!() - 1));
/// assert!(call.to_string().starts_with("gemm of f32 at "));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelCall {
    /// Name of the kernel's method in its kernel family, such as `gemm`.
    pub name: &'static str,
    /// Name of the element type, such as `f32`.
    pub element: &'static str,
    /// Source location of the kernel call.
    pub site: &'static Location<'static>,
}

impl KernelCall {
    /// Describes a call of the kernel `name` with the element type `element`. If the function that
    /// calls `new` is `#[track_caller]`, the call site is the caller of that function.
    #[track_caller]
    pub fn new(name: &'static str, element: &'static str) -> Self {
        let caller = Location::caller();
        Self { name, element, site: CALL_SITE.get().unwrap_or(caller) }
    }
}

thread_local! {
    /// The call site of the kernel that an [`AnyDevice`](crate::AnyDevice) currently runs on this
    /// thread.
    static CALL_SITE: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// A guard that makes kernel calls on this thread report the caller of [`enter`](Self::enter) as
/// their call site. The guard is needed because `#[track_caller]` does not propagate through a call
/// of a trait object.
pub(crate) struct CallSite {
    outer: Option<&'static Location<'static>>,
    thread: PhantomData<*const ()>,
}

impl CallSite {
    #[track_caller]
    pub(crate) fn enter() -> Self {
        Self { outer: CALL_SITE.replace(Some(Location::caller())), thread: PhantomData }
    }
}

impl Drop for CallSite {
    fn drop(&mut self) {
        CALL_SITE.set(self.outer);
    }
}

impl fmt::Display for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} at {}", self.name, self.element, self.site)
    }
}
