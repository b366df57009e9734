//! Matrix products by NVIDIA's cuBLAS, where that is asked for and there.
//!
//! Decisions:
//! - A queue has a handle of its own, with memory to work in from the queue: nothing is shared
//!   that another queue would have to wait for, or that cuBLAS would take for itself.
//! - It counts columns first: what it calls `A·B` is `Bᵀ·Aᵀ` here.
//! - It is given products only: where `k` or α is 0 there is none, and the crate's own kernels do
//!   what is left.

mod library;

pub(super) use library::Library;

use super::{buffer::CudaBuffer, context::Context, error::PendingLaunch, stream::Stream};
use crate::{
    element::{DType, Element},
    error::{Error, Result},
    ledger,
    op::{Gemm, GemmBatch, Transpose},
};
use library::{RawHandle, check_status};
use num_traits::Zero;
use parking_lot::Mutex;
use std::{
    ffi::{c_int, c_longlong, c_void},
    panic::Location,
    ptr,
    sync::Arc,
};

/// Bytes that products work in: as many as fast ones on the newest GPUs take.
const WORKSPACE: usize = 32 << 20;

/// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`: sums of 16-bit elements stay in 32 bits.
const WIDE_SUMS: c_int = 16;
/// `CUBLAS_TF32_TENSOR_OP_MATH`
const TF32: c_int = 3;
/// `CUBLAS_GEMM_DEFAULT`
const ANY_ALGORITHM: c_int = -1;

/// cuBLAS for one queue.
pub(super) struct Cublas {
    library: Arc<Library>,
    stream: Arc<Stream>,
    tf32: bool,
    /// Once there is a product.
    handle: Mutex<Option<Handle>>,
}

impl Cublas {
    /// For a queue; operands of `f32` are rounded if `tf32` says so.
    pub(super) fn new(library: &Arc<Library>, stream: &Arc<Stream>, tf32: bool) -> Self {
        let (library, stream) = (Arc::clone(library), Arc::clone(stream));
        Self { library, stream, tf32, handle: Mutex::default() }
    }

    /// For another queue.
    pub(super) fn fork(&self, stream: &Arc<Stream>) -> Self {
        Self::new(&self.library, stream, self.tf32)
    }

    /// Whether it is a product that cuBLAS counts.
    pub(super) fn takes<T: Element>(op: &Gemm<T>, batch: &GemmBatch) -> bool {
        let counted = [op.m, op.n, op.k, op.lda, op.ldb, op.ldc, batch.count];
        let is_product = !op.alpha.is_zero() && ![op.m, op.n, op.k, batch.count].contains(&0);
        is_product && counted.iter().all(|&extent| c_int::try_from(extent).is_ok())
    }

    /// The library's version, as it is written.
    pub(super) fn version(&self) -> Option<String> {
        let [major, minor, patch] = self.library.version().ok()?;
        Some(format!("{major}.{minor}.{patch}"))
    }

    /// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ`, of what it [`takes`](Self::takes), for the kernel `account`;
    /// lengths were checked.
    #[track_caller]
    pub(super) fn multiply<T: Element>(
        &self,
        account: &'static str,
        op: &Gemm<T>,
        batch: &GemmBatch,
        a: (&CudaBuffer, usize),
        b: (&CudaBuffer, usize),
        c: (&CudaBuffer, usize),
    ) -> Result<()> {
        let _account = ledger::enter_kernel(account, T::DTYPE.name());
        let (site, context) = (Location::caller(), &self.stream.context);
        let address = |(buffer, offset): (&CudaBuffer, usize)| {
            (buffer.used_by(&self.stream) + offset as u64) as *mut c_void
        };
        let [a, b, c] = [a, b, c].map(address);
        let (alpha, beta) = ((&raw const op.alpha).cast(), (&raw const op.beta).cast());
        let [left, right] = [op.trans_b, op.trans_a].map(operation);
        let [m, n, k] = [op.n, op.m, op.k].map(|extent| extent as c_int);
        let [lda, ldb, ldc] = [op.lda, op.ldb, op.ldc].map(|leading| leading as c_int);
        let (kind, sums) = types(T::DTYPE);
        let kernel = if batch.count == 1 { "cublasGemmEx" } else { "cublasGemmStridedBatchedEx" };

        context.enter()?;
        let mut held = self.handle.lock();
        let handle = match &mut *held {
            Some(known) => known.raw,
            none => none.insert(Handle::new(&self.library, &self.stream, self.tf32)?).raw,
        };
        context.launches.add(self.stream.raw(), PendingLaunch { kernel, site });
        let steps = [batch.stride_a, batch.stride_b, batch.stride_c];
        let [step_a, step_b, step_c] = steps.map(|step| step as c_longlong);
        // SAFETY: the operands have as many elements as the extents tell, and results of a batch
        // are apart. The scalars are of the type that is computed in, and read during the call.
        #[rustfmt::skip]
        let status = unsafe {
            match batch.count {
                1 => (self.library.gemm)(
                    handle, left, right, m, n, k, alpha,
                    b, kind, ldb, a, kind, lda, beta,
                    c, kind, ldc, sums, ANY_ALGORITHM,
                ),
                count => (self.library.gemm_batched)(
                    handle, left, right, m, n, k, alpha,
                    b, kind, ldb, step_b, a, kind, lda, step_a, beta,
                    c, kind, ldc, step_c, count as c_int, sums, ANY_ALGORITHM,
                ),
            }
        };
        drop(held);
        checked(context, kernel, status)?;
        if context.synchronous { self.stream.wait() } else { Ok(()) }
    }
}

/// A handle of a queue, and the memory that its products work in.
struct Handle {
    raw: RawHandle,
    library: Arc<Library>,
    context: Arc<Context>,
    _workspace: CudaBuffer,
}

// SAFETY: the library's functions may be called from any thread, by one at a time.
unsafe impl Send for Handle {}

impl Handle {
    /// In the queue's context, which is current.
    fn new(library: &Arc<Library>, stream: &Arc<Stream>, tf32: bool) -> Result<Self> {
        let context = &stream.context;
        let check = |call, status| checked(context, call, status);
        let workspace = CudaBuffer::new(stream, WORKSPACE)?;
        let mut raw = ptr::null_mut();
        // SAFETY: there is room for the handle.
        check("cublasCreate", unsafe { (library.create)(&mut raw) })?;
        let address = workspace.used_by(stream) as *mut c_void;
        let handle = Self {
            raw,
            library: Arc::clone(library),
            context: Arc::clone(context),
            _workspace: workspace,
        };
        // The queue first, for which the library would have memory of its own.
        // SAFETY: handle and stream live.
        check("cublasSetStream", unsafe { (library.set_stream)(raw, stream.raw().cast()) })?;
        // SAFETY: as many bytes are the handle's for as long as it lives.
        let set = unsafe { (library.set_workspace)(raw, address, WORKSPACE) };
        check("cublasSetWorkspace", set)?;
        let mode = if tf32 { TF32 | WIDE_SUMS } else { WIDE_SUMS };
        // SAFETY: the handle lives.
        check("cublasSetMathMode", unsafe { (library.set_math_mode)(raw, mode) })?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: nobody else has the handle. What is queued still runs.
        let _ = unsafe { (self.library.destroy)(self.raw) };
    }
}

fn checked(context: &Context, call: &str, status: c_int) -> Result<()> {
    check_status(call, status).map_err(|why| Error::device(&*context.name, why))
}

/// `cublasOperation_t`
fn operation(trans: Transpose) -> c_int {
    match trans {
        Transpose::No => 0,
        Transpose::Yes => 1,
    }
}

/// An element's `cudaDataType`, and the `cublasComputeType_t` of its sums.
fn types(element: DType) -> (c_int, c_int) {
    const SUMS_IN_32: c_int = 68;
    const SUMS_IN_64: c_int = 70;
    match element {
        DType::F32 => (0, SUMS_IN_32),
        DType::F64 => (1, SUMS_IN_64),
        DType::F16 => (2, SUMS_IN_32),
        DType::Bf16 => (14, SUMS_IN_32),
    }
}
