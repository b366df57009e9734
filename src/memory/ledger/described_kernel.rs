//! The size of the kernel that an [`AnyDevice`](crate::AnyDevice) is about to run, for traces.

use super::context::{is_watched, with_context};
use crate::memory::trace::kernel_size::KernelSize;
use std::{marker::PhantomData, sync::Arc};

/// A guard for the size of a kernel call. Without the guard, a call that fails before its ledger
/// scope would pass its size to a later kernel.
pub(crate) struct DescribedKernel {
    is_described: bool,
    thread: PhantomData<*const ()>,
}

/// Describes the kernel call that the thread is about to start, if a trace is open. The first ledger
/// scope with one of the names `scopes` records the size that `describe` computes.
#[inline]
pub(crate) fn describe_kernel(
    scopes: [&'static str; 2],
    describe: &dyn Fn(&mut KernelSize),
) -> DescribedKernel {
    let is_described = is_watched() && set_size(scopes, describe);
    DescribedKernel { is_described, thread: PhantomData }
}

#[cold]
fn set_size(scopes: [&'static str; 2], describe: &dyn Fn(&mut KernelSize)) -> bool {
    if with_context(|context| context.traces.is_empty()) {
        return false;
    }
    let mut size = KernelSize::default();
    describe(&mut size);
    with_context(|context| context.kernel_size = Some((scopes, Arc::new(size))));
    true
}

impl Drop for DescribedKernel {
    fn drop(&mut self) {
        if self.is_described {
            with_context(|context| context.kernel_size = None);
        }
    }
}
