//! Ledger scopes of kernels: the time in which a thread runs a kernel.

use super::{
    context::{FallbackState, LedgerContext, is_watched, with_context},
    kernel_call::{KernelCall, end_scope, mark_scope},
};
use crate::memory::trace::{kernel_size::KernelSize, span::Work};
use std::{marker::PhantomData, mem, sync::Arc, time::Instant};

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
            with_context(|context| {
                let state = FallbackState::start(context.fallback.take() == Some(self));
                OuterScope {
                    kernel: context.kernel.replace(self),
                    had_scope,
                    fallback_state: mem::replace(&mut context.fallback_state, state),
                    span_start: span_start(context),
                    size: context
                        .kernel_size
                        .take_if(|(scopes, _)| scopes.contains(&self.name))
                        .map(|(_, size)| size),
                }
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
    /// The fallback state of the enclosing kernel call.
    fallback_state: FallbackState,
    /// The start of the kernel's span, if a trace is open.
    span_start: Option<Instant>,
    /// The size of the kernel call, if it is known.
    size: Option<Arc<KernelSize>>,
}

impl KernelScope {
    /// Returns the kernel call of this scope.
    pub fn call(&self) -> KernelCall {
        self.call
    }
}

impl Drop for KernelScope {
    fn drop(&mut self) {
        if let Some(outer_scope) = self.outer_scope.take() {
            let OuterScope { kernel, had_scope, fallback_state, span_start, size } = outer_scope;
            end_scope(had_scope);
            with_context(|context| {
                let FallbackState { is_fallback, .. } =
                    mem::replace(&mut context.fallback_state, fallback_state);
                if let Some(start) = span_start {
                    let call = self.call;
                    context.record_span(start, Work::Kernel { call, is_fallback, size });
                }
                context.kernel = kernel;
            });
        }
    }
}
