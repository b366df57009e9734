//! GEMMs as cuBLASLt describes them, and the algorithms that cuBLASLt chooses.

use super::{
    super::{
        epilogue::Epilogue,
        functions::{COMPUTE_32F, check_status, cuda_types, operation},
    },
    library::{Algorithm, Descriptor, FoundAlgorithm, Library, Raw},
};
use crate::{
    element::{DType, Element},
    op::{Gemm, GemmBatch, Transpose},
};
use std::ffi::c_int;

/// Attributes of `cublasLtMatmulDesc_t`.
mod operation_attribute {
    pub(super) const TRANS_A: i32 = 3;
    pub(super) const TRANS_B: i32 = 4;
    pub(super) const EPILOGUE: i32 = 7;
    pub(super) const BIAS_POINTER: i32 = 8;
    pub(super) const BIAS_TYPE: i32 = 26;
}

/// Attributes of `cublasLtMatrixLayout_t`.
mod layout_attribute {
    pub(super) const BATCH_COUNT: i32 = 5;
    pub(super) const BATCH_STRIDE: i32 = 6;
}

/// Attributes of `cublasLtMatmulPreference_t`.
mod preference_attribute {
    pub(super) const MAX_WORKSPACE: i32 = 1;
    pub(super) const REDUCTION_SCHEMES: i32 = 3;
    /// Attributes for the minimum alignments of the matrices A, B, C and D.
    pub(super) const ALIGNMENTS: [i32; 4] = [5, 6, 7, 8];
}

/// `CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE`: partial sums are stored and added in the type of the
/// accumulator, not in 16 bits.
const WIDE_SUMS: u32 = 2;

/// The compute type `CUBLAS_COMPUTE_32F_FAST_TF32`: rounds `f32` operands to TF32.
const COMPUTE_TF32: c_int = 77;

/// Largest alignment, in bytes, that is reported to cuBLASLt: that of memory that the driver
/// allocates.
const MAX_ALIGNMENT: usize = 256;

/// Everything on which the choice of an algorithm depends, except α and β. cuBLASLt is
/// column-major, so the first matrix is the row-major `B`, and the second is `A`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::device::cuda) struct Problem {
    element: DType,
    trans: [bool; 2],
    extents: [usize; 3],
    leading: [usize; 3],
    count: usize,
    strides: [usize; 3],
    /// Alignments of `B`, `A`, `C` and the bias in bytes, at most `MAX_ALIGNMENT`.
    alignments: [usize; 4],
    epilogue: Epilogue,
}

impl Problem {
    /// Describes a GEMM whose operands `a`, `b`, `c` and bias start at the given offsets in bytes in
    /// their buffers.
    pub(in crate::device::cuda) fn new<T: Element>(
        op: &Gemm<T>,
        batch: &GemmBatch,
        epilogue: Epilogue,
        [a, b, c, bias]: [usize; 4],
    ) -> Self {
        let alignment = |offset: usize| MAX_ALIGNMENT.min(1 << offset.trailing_zeros().min(8));
        Self {
            element: T::DTYPE,
            trans: [op.trans_b, op.trans_a].map(|trans| trans == Transpose::Yes),
            extents: [op.n, op.m, op.k],
            leading: [op.ldb, op.lda, op.ldc],
            count: batch.count,
            strides: [batch.stride_b, batch.stride_a, batch.stride_c],
            alignments: [b, a, c, bias].map(alignment),
            epilogue,
        }
    }

    /// Returns a description of the problem without its sizes, such as `f32 with bias and ReLU`.
    pub(super) fn kind(&self) -> String {
        format!("{}{}", self.element.name(), self.epilogue.description())
    }
}

/// A GEMM as cuBLASLt describes it, and the algorithm for it.
pub(super) struct Plan {
    pub(super) operation: Descriptor,
    /// The layouts of the first matrix, the second matrix and the result.
    pub(super) layouts: [Descriptor; 3],
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
}

impl Plan {
    /// Asks cuBLASLt for the algorithm that it expects to be fastest among those that need at most
    /// `workspace` bytes of workspace.
    ///
    /// # Errors
    /// Fails with the reason if cuBLASLt has no algorithm.
    pub(super) fn new(
        library: &Library,
        handle: Raw,
        problem: &Problem,
        tf32: bool,
        workspace: usize,
    ) -> Result<Self, String> {
        let (kind, sums) = cuda_types(problem.element);
        let sums = if tf32 && problem.element == DType::F32 { COMPUTE_TF32 } else { sums };
        let scalars = if sums == COMPUTE_32F || sums == COMPUTE_TF32 { 0 } else { kind };
        let operation_descriptor = library.operation(sums, scalars)?;
        let trans = |yes| operation(if yes { Transpose::Yes } else { Transpose::No });
        operation_descriptor.set(operation_attribute::TRANS_A, trans(problem.trans[0]))?;
        operation_descriptor.set(operation_attribute::TRANS_B, trans(problem.trans[1]))?;
        operation_descriptor.set(operation_attribute::EPILOGUE, problem.epilogue.code())?;
        if problem.epilogue.bias {
            operation_descriptor.set(operation_attribute::BIAS_TYPE, kind)?;
            // cuBLASLt derives the alignment of the bias from its address, so the alignment itself
            // serves as a placeholder for the address.
            operation_descriptor
                .set(operation_attribute::BIAS_POINTER, problem.alignments[3] as u64)?;
        }
        let [m, n, k] = problem.extents;
        let stored =
            |transposed, rows, columns| if transposed { (columns, rows) } else { (rows, columns) };
        let shapes = [stored(problem.trans[0], m, k), stored(problem.trans[1], k, n), (m, n)];
        let layout = |index: usize| {
            let (rows, columns) = shapes[index];
            let layout = library.layout(kind, (rows, columns, problem.leading[index]))?;
            if problem.count > 1 {
                layout.set(layout_attribute::BATCH_COUNT, problem.count as c_int)?;
                layout.set(layout_attribute::BATCH_STRIDE, problem.strides[index] as i64)?;
            }
            Ok::<_, String>(layout)
        };
        let layouts = [layout(0)?, layout(1)?, layout(2)?];
        let preference = library.preference()?;
        preference.set(preference_attribute::MAX_WORKSPACE, workspace as u64)?;
        preference.set(preference_attribute::REDUCTION_SCHEMES, WIDE_SUMS)?;
        let [first, second, result, _] = problem.alignments;
        let alignments = [first, second, result, result];
        for (attribute, bytes) in preference_attribute::ALIGNMENTS.into_iter().zip(alignments) {
            preference.set(attribute, bytes as u32)?;
        }

        let (mut found, mut count) = (FoundAlgorithm::default(), 0);
        let [first, second, result] = layouts.each_ref().map(|layout| layout.raw);
        let (operation, preference) = (operation_descriptor.raw, preference.raw);
        // SAFETY: the handle and the descriptors are live, and `found` has room for one algorithm.
        let status = unsafe {
            (library.find_algorithms)(
                handle, operation, first, second, result, result, preference, 1, &mut found,
                &mut count,
            )
        };
        check_status("cublasLtMatmulAlgoGetHeuristic", status)?;
        check_status("cublasLtMatmulAlgoGetHeuristic", found.status)?;
        if count < 1 || found.workspace > workspace {
            return Err("cublasLtMatmulAlgoGetHeuristic: no algorithm".into());
        }
        let FoundAlgorithm { algorithm, workspace, .. } = found;
        Ok(Self { operation: operation_descriptor, layouts, algorithm, workspace })
    }

    /// Sets the device address of the bias.
    pub(super) fn set_bias(&self, address: u64) -> Result<(), String> {
        self.operation.set(operation_attribute::BIAS_POINTER, address)
    }
}
