//! The kernel call that an [`AnyDevice`](crate::AnyDevice) runs on a thread.

use super::{
    context::record_unscoped,
    kernel_call::{KernelCall, RunningCall, replace_running},
};
use std::{marker::PhantomData, panic::Location};

/// A guard for a kernel call of an [`AnyDevice`](crate::AnyDevice). While the guard exists, kernel
/// calls on this thread report the caller of [`enter`](Self::enter) as their call site. The guard
/// is needed because `#[track_caller]` does not propagate through a method call on a trait object.
///
/// A native kernel must enter its ledger scope before it uses the device side of an operand. If the
/// kernel uses an operand outside its ledger scope, the open ledgers record the kernel call as
/// unscoped when the guard is dropped.
pub(crate) struct AnyCall {
    outer_call: Option<RunningCall>,
    thread: PhantomData<*const ()>,
}

impl AnyCall {
    /// Marks the start of a call of the kernel `method`. Ledgers record the call as `name`.
    #[track_caller]
    pub(crate) fn enter(method: &'static str, name: &'static str) -> Self {
        Self::new(name, (method, name), [method, name, name, name])
    }

    /// Marks the start of a call of the kernel `name`, whose default implementation runs `kernels`
    /// and `unary`. Ledgers record the kernel `unary` under the name `activation`.
    #[track_caller]
    pub(crate) fn enter_fused(
        name: &'static str,
        kernels: [&'static str; 2],
        activation: &'static str,
    ) -> Self {
        let [first, second] = kernels;
        Self::new(name, ("unary", activation), [name, first, second, activation])
    }

    #[track_caller]
    fn new(
        name: &'static str,
        full_name: (&'static str, &'static str),
        scopes: [&'static str; 4],
    ) -> Self {
        let site = Location::caller();
        let call =
            RunningCall { name, full_name, scopes, site, has_scope: false, is_unscoped: false };
        Self { outer_call: replace_running(Some(call)), thread: PhantomData }
    }
}

impl Drop for AnyCall {
    fn drop(&mut self) {
        if let Some(call) = replace_running(self.outer_call)
            && call.is_unscoped
        {
            record_unscoped(KernelCall { name: call.name, element: "", site: call.site });
        }
    }
}
