//! The identity of a kernel call in a ledger: kernel name, element type and call site.

use std::{cell::Cell, fmt, panic::Location};

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
    /// Name of the kernel's method in its kernel family, such as `gemm`. If the method computes one
    /// of several functions, the name includes the function, as in `unary_exp`.
    pub name: &'static str,
    /// Name of the element type, such as `f32`.
    pub element: &'static str,
    /// Source location of the kernel call.
    pub site: &'static Location<'static>,
}

impl KernelCall {
    /// Describes a call of the kernel `name` with the element type `element`. If the function that
    /// calls `new` is `#[track_caller]`, the call site is the caller of that function.
    ///
    /// While an [`AnyDevice`](crate::AnyDevice) runs a kernel that computes one of several
    /// functions, `new` appends the function to the method's name: `unary` becomes `unary_exp`.
    #[track_caller]
    pub fn new(name: &'static str, element: &'static str) -> Self {
        let caller = Location::caller();
        match RUNNING.get() {
            Some(running) => Self { name: running.full_name(name), element, site: running.site },
            None => Self { name, element, site: caller },
        }
    }
}

/// The kernel call that an [`AnyDevice`](crate::AnyDevice) runs on a thread.
#[derive(Clone, Copy)]
pub(super) struct RunningCall {
    /// Name under which the ledger records the kernel.
    pub(super) name: &'static str,
    /// Name of a method such as `unary`, and its full name including the function, such as
    /// `unary_exp`.
    pub(super) full_name: (&'static str, &'static str),
    /// Names of the ledger scopes in which the kernel may use the device side of an operand.
    pub(super) scopes: [&'static str; 4],
    pub(super) site: &'static Location<'static>,
    /// Whether the kernel is in one of `scopes`, or in a scope inside one of them.
    pub(super) has_scope: bool,
    /// Whether the kernel has used the device side of an operand outside of `scopes`.
    pub(super) is_unscoped: bool,
}

impl RunningCall {
    fn full_name(&self, name: &'static str) -> &'static str {
        let (method, full_name) = self.full_name;
        if name == method { full_name } else { name }
    }
}

thread_local! {
    static RUNNING: Cell<Option<RunningCall>> = const { Cell::new(None) };
}

/// Replaces the kernel call that an [`AnyDevice`](crate::AnyDevice) runs on this thread.
pub(super) fn replace_running(call: Option<RunningCall>) -> Option<RunningCall> {
    RUNNING.replace(call)
}

/// Records in the running kernel call that the kernel enters the ledger scope `name`. Returns
/// whether the kernel was already in one of its ledger scopes.
pub(super) fn mark_scope(name: &'static str) -> bool {
    let Some(mut call) = RUNNING.get() else { return false };
    let had_scope = call.has_scope;
    call.has_scope |= call.scopes.contains(&name);
    RUNNING.set(Some(call));
    had_scope
}

/// Records in the running kernel call that a ledger scope ends. `had_scope` is the value that
/// [`mark_scope`] returned at the start of the scope.
pub(super) fn end_scope(had_scope: bool) {
    RUNNING.set(RUNNING.get().map(|call| RunningCall { has_scope: had_scope, ..call }));
}

/// Records in the running kernel call that the kernel uses the device side of an operand.
pub(super) fn mark_device_use() {
    if let Some(mut call) = RUNNING.get() {
        call.is_unscoped |= !call.has_scope;
        RUNNING.set(Some(call));
    }
}

impl fmt::Display for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} at {}", self.name, self.element, self.site)
    }
}
