//! GEMM by NVIDIA's cuBLAS, which the user can select instead of the built-in kernels.
//!
//! Decisions:
//! - Each queue has a separate cuBLAS handle, with a separate workspace, so that queues do not
//!   wait for each other.
//! - cuBLAS is column-major, so it computes a row-major `C = A·B` as `Cᵀ = Bᵀ·Aᵀ`.
//! - If k or α is 0, a built-in kernel, not cuBLAS, scales `C` by β.

mod library;

pub(in crate::device::cuda) use library::Library;

use super::functions::{WORKSPACE, check_status, cuda_types, operation};
use crate::{
    device::cuda::{buffer::CudaBuffer, context::Context, error::PendingLaunch, stream::Stream},
    element::Element,
    error::{Error, Result},
    ledger,
    memory::DeviceWork,
    op::{Gemm, GemmBatch},
    sync::Mutex,
};
use library::RawHandle;
use std::{
    ffi::{c_int, c_longlong, c_void},
    panic::Location,
    ptr,
    sync::Arc,
};

/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`: keeps sums of 16-bit elements in 32 bits.
const WIDE_SUMS: c_int = 16;
/// The math mode `CUBLAS_TF32_TENSOR_OP_MATH`.
const TF32: c_int = 3;
/// The value `CUBLAS_GEMM_DEFAULT`, which lets cuBLAS choose the algorithm.
const DEFAULT_ALGORITHM: c_int = -1;

/// The cuBLAS library and the cuBLAS handle of one queue.
pub(in crate::device::cuda) struct Cublas {
    library: Arc<Library>,
    stream: Arc<Stream>,
    tf32: bool,
    /// The cuBLAS handle, which the first GEMM creates.
    handle: Mutex<Option<Handle>>,
}

impl Cublas {
    /// Prepares cuBLAS for a queue; if `tf32` is set, cuBLAS rounds `f32` operands to TF32.
    pub(in crate::device::cuda) fn new(
        library: &Arc<Library>,
        stream: &Arc<Stream>,
        tf32: bool,
    ) -> Self {
        let (library, stream) = (Arc::clone(library), Arc::clone(stream));
        Self { library, stream, tf32, handle: Mutex::default() }
    }

    pub(in crate::device::cuda) fn fork(&self, stream: &Arc<Stream>) -> Self {
        Self::new(&self.library, stream, self.tf32)
    }

    pub(in crate::device::cuda) fn version(&self) -> Option<String> {
        let [major, minor, patch] = self.library.version().ok()?;
        Some(format!("{major}.{minor}.{patch}"))
    }

    /// Computes `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for GEMMs that the library
    /// [supports](super::supports). The caller has checked the operand lengths. Each operand is a
    /// buffer and an offset in bytes; the ledger records the call as `kernel_name`.
    #[track_caller]
    pub(in crate::device::cuda) fn multiply<T: Element>(
        &self,
        kernel_name: &'static str,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: (&CudaBuffer, usize),
        b: (&CudaBuffer, usize),
        c: (&CudaBuffer, usize),
    ) -> Result<()> {
        let scope = ledger::enter_kernel(kernel_name, T::DTYPE.name());
        let (site, context) = (Location::caller(), &self.stream.context);
        let address = |(buffer, offset): (&CudaBuffer, usize)| {
            (buffer.used_by(&self.stream) + offset as u64) as *mut c_void
        };
        let [a, b, c] = [a, b, c].map(address);
        let (alpha, beta) = ((&raw const op.alpha).cast(), (&raw const op.beta).cast());
        let [left, right] = [op.trans_b, op.trans_a].map(operation);
        let [m, n, k] = [op.n, op.m, op.k].map(|extent| extent as c_int);
        let [lda, ldb, ldc] = [op.lda, op.ldb, op.ldc].map(|leading| leading as c_int);
        let (kind, sums) = cuda_types(T::DTYPE);
        let kernel = if batch.count == 1 { "cublasGemmEx" } else { "cublasGemmStridedBatchedEx" };

        context.enter()?;
        let mut handle_guard = self.handle.lock();
        let handle = match &mut *handle_guard {
            Some(handle) => handle.raw,
            none => none.insert(Handle::new(&self.library, &self.stream, self.tf32)?).raw,
        };
        context.launches.add(self.stream.raw(), PendingLaunch { kernel, site });
        let strides = [batch.stride_a, batch.stride_b, batch.stride_c];
        let [stride_a, stride_b, stride_c] = strides.map(|stride| stride as c_longlong);
        // SAFETY: `GemmBatch::check` passed, so the operands hold all elements that the GEMMs
        // access, and the output matrices do not overlap. α and β have the compute type, and cuBLAS
        // reads them during the call.
        #[rustfmt::skip]
        let status = || unsafe {
            match batch.count {
                1 => (self.library.gemm)(
                    handle, left, right, m, n, k, alpha,
                    b, kind, ldb, a, kind, lda, beta,
                    c, kind, ldc, sums, DEFAULT_ALGORITHM,
                ),
                count => (self.library.gemm_batched)(
                    handle, left, right, m, n, k, alpha,
                    b, kind, ldb, stride_b, a, kind, lda, stride_a, beta,
                    c, kind, ldc, stride_c, count as c_int, sums, DEFAULT_ALGORITHM,
                ),
            }
        };
        let multiply = || check(context, kernel, status());
        let work = || DeviceWork::Kernel { call: scope.call(), function: kernel };
        self.stream.enqueue(work, multiply)?;
        drop(handle_guard);
        if context.synchronous { self.stream.wait() } else { Ok(()) }
    }
}

/// A cuBLAS handle of a queue, with its workspace.
struct Handle {
    raw: RawHandle,
    library: Arc<Library>,
    context: Arc<Context>,
    _workspace: CudaBuffer,
}

// SAFETY: any thread may use a handle, but only one thread at a time, which a mutex ensures.
unsafe impl Send for Handle {}

impl Handle {
    /// Creates a handle in the queue's context, which must be current.
    fn new(library: &Arc<Library>, stream: &Arc<Stream>, tf32: bool) -> Result<Self> {
        let context = &stream.context;
        let check_call = |call, status| check(context, call, status);
        let workspace = CudaBuffer::new(stream, WORKSPACE)?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writing the handle.
        check_call("cublasCreate", unsafe { (library.create)(&mut raw) })?;
        let address = workspace.used_by(stream) as *mut c_void;
        let handle = Self {
            raw,
            library: Arc::clone(library),
            context: Arc::clone(context),
            _workspace: workspace,
        };
        // Setting the stream resets the workspace, so the stream is set before the workspace.
        // SAFETY: the handle and the stream are live.
        check_call("cublasSetStream", unsafe { (library.set_stream)(raw, stream.raw().cast()) })?;
        // SAFETY: the handle owns the workspace, which has `WORKSPACE` bytes.
        let set = unsafe { (library.set_workspace)(raw, address, WORKSPACE) };
        check_call("cublasSetWorkspace", set)?;
        let mode = if tf32 { TF32 | WIDE_SUMS } else { WIDE_SUMS };
        // SAFETY: the handle is live.
        check_call("cublasSetMathMode", unsafe { (library.set_math_mode)(raw, mode) })?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: `self` owns the handle. Destroying the handle does not cancel queued work.
        let _ = unsafe { (self.library.destroy)(self.raw) };
    }
}

fn check(context: &Context, call: &str, status: c_int) -> Result<()> {
    check_status(call, status).map_err(|reason| Error::device(&*context.name, reason))
}
