//! GEMM by NVIDIA's cuBLASLt, the default on GPUs of compute capability 9.0 or later.
//!
//! Decisions:
//! - The queues of a device share one handle, which any number of threads may use. Each queue has
//!   its own workspace, so that queues do not wait for each other.
//! - cuBLASLt chooses an algorithm by a heuristic, which takes longer than a kernel launch. A queue
//!   therefore caches the algorithm of each problem.
//! - If cuBLASLt has no algorithm for a GEMM, the built-in kernels compute the GEMM.

mod library;
mod plan;

pub(in crate::device::cuda) use library::Library;
pub(super) use plan::Problem;

use super::functions::{WORKSPACE, check_status};
use crate::{
    device::cuda::{buffer::CudaBuffer, context::Context, error::PendingLaunch, stream::Stream},
    element::Element,
    error::{Error, Result},
    ledger,
    memory::DeviceWork,
    op::Gemm,
    sync::Mutex,
};
use library::Raw;
use plan::Plan;
use std::{collections::HashMap, ffi::c_void, panic::Location, ptr, sync::Arc};

/// Maximum number of problems whose algorithms a queue caches.
const MAX_PLANS: usize = 1024;

/// The cuBLASLt handle of a device, and the algorithms and the workspace of one queue.
pub(in crate::device::cuda) struct CublasLt {
    handle: Arc<Handle>,
    stream: Arc<Stream>,
    tf32: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The workspace, which the first search for an algorithm allocates; `Some(None)` if the
    /// workspace does not fit in the GPU's memory.
    workspace: Option<Option<CudaBuffer>>,
    /// The plan of each problem, or the reason why cuBLASLt has none.
    plans: HashMap<Problem, Result<Plan, String>>,
}

impl CublasLt {
    /// Prepares cuBLASLt for a queue; if `tf32` is set, cuBLASLt rounds `f32` operands to TF32.
    ///
    /// # Errors
    /// Fails if cuBLASLt does not support the driver or the GPU.
    pub(super) fn new(library: Library, stream: &Arc<Stream>, tf32: bool) -> Result<Self> {
        let handle = Arc::new(Handle::new(library, &stream.context)?);
        Ok(Self { handle, stream: Arc::clone(stream), tf32, state: Mutex::default() })
    }

    pub(super) fn fork(&self, stream: &Arc<Stream>) -> Self {
        let (handle, stream) = (Arc::clone(&self.handle), Arc::clone(stream));
        Self { handle, stream, tf32: self.tf32, state: Mutex::default() }
    }

    pub(super) fn version(&self) -> Option<String> {
        let [major, minor, patch] = self.handle.library.version().ok()?;
        Some(format!("{major}.{minor}.{patch}"))
    }

    /// Returns whether cuBLASLt has an algorithm for the problem.
    ///
    /// # Errors
    /// Returns the driver's errors, except if the GPU has too little memory for a workspace. In this
    /// case, cuBLASLt uses algorithms without a workspace.
    pub(super) fn has_algorithm(&self, problem: &Problem) -> Result<bool> {
        let context = &self.stream.context;
        context.enter()?;
        let mut state = self.state.lock();
        if let Some(plan) = state.plans.get(problem) {
            return Ok(plan.is_ok());
        }
        let workspace = match &state.workspace {
            Some(workspace) => workspace.is_some(),
            None => {
                let workspace = match CudaBuffer::new(&self.stream, WORKSPACE) {
                    Ok(workspace) => Some(workspace),
                    Err(Error::OutOfMemory { .. }) => None,
                    Err(error) => return Err(error),
                };
                state.workspace.insert(workspace).is_some()
            }
        };
        let bytes = if workspace { WORKSPACE } else { 0 };
        let Handle { library, raw, .. } = &*self.handle;
        let plan = Plan::new(library, *raw, problem, self.tf32, bytes);
        let has_algorithm = plan.is_ok();
        if state.plans.len() >= MAX_PLANS {
            state.plans.clear();
        }
        state.plans.insert(problem.clone(), plan);
        Ok(has_algorithm)
    }

    /// Returns descriptions of the kinds of problems for which cuBLASLt was asked for an algorithm
    /// and has none.
    pub(super) fn missing_algorithms(&self) -> Vec<String> {
        let state = self.state.lock();
        let failures = state.plans.iter().filter_map(|(problem, plan)| match plan {
            Err(reason) => Some(format!("{} ({reason})", problem.kind())),
            Ok(_) => None,
        });
        let mut failures: Vec<_> = failures.collect();
        failures.sort();
        failures.dedup();
        failures
    }

    /// Computes `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` and the epilogue of `problem`, which describes `op`
    /// and has an [algorithm](Self::has_algorithm). The caller has checked the operand lengths. Each
    /// operand is a buffer and an offset in bytes; the ledger records the call as `kernel_name`.
    #[track_caller]
    pub(super) fn multiply<T: Element>(
        &self,
        (kernel_name, problem): (&'static str, &Problem),
        op: &Gemm<T>,
        a: (&CudaBuffer, usize),
        b: (&CudaBuffer, usize),
        bias: Option<(&CudaBuffer, usize)>,
        c: (&CudaBuffer, usize),
    ) -> Result<()> {
        const KERNEL: &str = "cublasLtMatmul";
        let scope = ledger::enter_kernel(kernel_name, T::DTYPE.name());
        let (site, context) = (Location::caller(), &self.stream.context);
        let address = |(buffer, offset): (&CudaBuffer, usize)| {
            (buffer.used_by(&self.stream) + offset as u64) as *mut c_void
        };
        let [a, b, c] = [a, b, c].map(address);
        let (alpha, beta) = ((&raw const op.alpha).cast(), (&raw const op.beta).cast());
        let error = |reason: String| Error::device(&*context.name, reason);

        context.enter()?;
        let state = self.state.lock();
        let Some(Ok(plan)) = state.plans.get(problem) else {
            return Err(error(format!("{KERNEL}: no algorithm")));
        };
        if let Some(bias) = bias {
            plan.set_bias(address(bias) as u64).map_err(error)?;
        }
        let workspace = state.workspace.iter().flatten().next();
        let workspace = workspace.map_or(ptr::null_mut(), |workspace| address((workspace, 0)));
        let [b_layout, a_layout, c_layout] = plan.layouts.each_ref().map(|layout| layout.raw);
        context.launches.add(self.stream.raw(), PendingLaunch { kernel: KERNEL, site });
        // SAFETY: `GemmBatch::check` passed, so the operands hold all elements that the GEMMs
        // access, and the output matrices do not overlap. α and β have the type of the scalars, and
        // cuBLASLt reads them during the call. The workspace has at least `plan.workspace` bytes.
        #[rustfmt::skip]
        let multiply = || unsafe {
            (self.handle.library.multiply)(
                self.handle.raw, plan.operation.raw, alpha, b, b_layout, a, a_layout, beta,
                c, c_layout, c, c_layout, &plan.algorithm, workspace, plan.workspace,
                self.stream.raw().cast(),
            )
        };
        let multiply = || check_status(KERNEL, multiply()).map_err(error);
        let work = || DeviceWork::Kernel { call: scope.call(), function: KERNEL };
        self.stream.enqueue(work, multiply)?;
        drop(state);
        if context.synchronous { self.stream.wait() } else { Ok(()) }
    }
}

/// A cuBLASLt handle, which the queues of a device share.
struct Handle {
    raw: Raw,
    library: Library,
    context: Arc<Context>,
}

// SAFETY: any thread may use a cuBLASLt handle.
unsafe impl Send for Handle {}
// SAFETY: any number of threads may use a cuBLASLt handle at the same time.
unsafe impl Sync for Handle {}

impl Handle {
    fn new(library: Library, context: &Arc<Context>) -> Result<Self> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writing the handle.
        let status = unsafe { (library.create)(&mut raw) };
        check_status("cublasLtCreate", status)
            .map_err(|reason| Error::device(&*context.name, reason))?;
        Ok(Self { raw, library, context: Arc::clone(context) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: `self` owns the handle. Destroying the handle does not cancel queued work.
        let _ = unsafe { (self.library.destroy)(self.raw) };
    }
}
