//! The mutants.

use super::edit::Edit::{self, *};

/// A committed PTX file with one bug.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// File in `kernels/ptx/sm_80`, without its extension.
    pub(crate) file: &'static str,
    pub(crate) kernel: &'static str,
    /// A part of the line to change, and the number of earlier lines of the kernel that contain
    /// this part.
    pub(crate) line: &'static str,
    pub(crate) occurrence: usize,
    pub(crate) edit: Edit,
    /// Check of the conformance kit that runs the kernel.
    pub(crate) check: &'static str,
    /// Part of the message by which the machine or the kit reports the bug.
    pub(crate) caught_by: &'static str,
}

/// The kit found a wrong result, and the machine no fault.
const WRONG: &str = "the check fails";

macro_rules! mutants {
    ($($name:ident: $file:ident, $kernel:ident, $line:literal, $occurrence:literal, $edit:expr,
        $check:ident, $caught_by:expr;)*) => {
        /// All mutants.
        pub(crate) const MUTANTS: &[Mutant] = &[$(Mutant {
            name: stringify!($name),
            file: stringify!($file),
            kernel: stringify!($kernel),
            line: $line,
            occurrence: $occurrence,
            edit: $edit,
            check: stringify!($check),
            caught_by: $caught_by,
        }),*];
    };
}

mutants! {
    // Barriers. The order of the warps decides which fault the machine finds first: a conflict, or a
    // word that is not yet written.
    first_barrier_of_a_sum_is_missing: reduce, reduce_rows_sum_f32, "bar.sync", 0, Delete,
        reduce_sum, "shared memory";
    barrier_of_column_sums_is_missing: reduce, reduce_columns_sum_f32, "bar.sync", 0, Delete,
        reduce_sum, "shared memory";
    barrier_of_moments_is_missing: moments, moment_sums_f32, "bar.sync", 0, Delete,
        moments, "shared memory";
    barrier_of_gemv_is_missing: gemv, gemv_columns_f32, "bar.sync", 0, Delete,
        gemv, "shared memory";
    barrier_of_gemm_is_missing: gemm, gemm_small_f32, "bar.sync", 0, Delete,
        gemm, "shared memory";
    barrier_of_tensor_core_gemm_is_missing: gemm, gemm_small_f16, "bar.sync", 0, Delete,
        gemm, "shared memory";
    barrier_of_convolution_is_missing: convolution, convolve_small_f32, "bar.sync", 0, Delete,
        convolve, "shared memory";
    barrier_before_the_next_tile_is_missing: indexing, transpose_f32, "bar.sync", 1, Delete,
        permute, "conflicts with";
    barrier_of_softmax_is_missing: softmax, softmax_by_block_f32, "bar.sync", 0, Delete,
        softmax, "shared memory";
    barrier_of_a_loss_is_missing: class_loss, softmax_loss_f32, "bar.sync", 0, Delete,
        softmax_loss, "shared memory";
    barrier_in_a_branch: softmax, softmax_f32, "st.global", 0, Insert("bar.sync 0;"),
        softmax, "bar.sync: of the lanes";

    // Exchange between lanes.
    shuffle_with_half_of_the_lanes: reduce, reduce_rows_sum_f32, "shfl.sync", 0, Operand(4, "65535"),
        reduce_sum, "shfl.sync: the mask is";
    shuffle_by_the_wrong_distance: reduce, reduce_rows_sum_f32, "shfl.sync", 2, Operand(2, "3"),
        reduce_sum, WRONG;
    shuffle_within_half_a_warp: gemv, gemv_rows_f32, "shfl.sync", 0, Operand(3, "4127"),
        gemv, WRONG;
    vote_with_half_of_the_lanes: indexing, scatter_add_f32, "vote.sync", 0, Operand(2, "65535"),
        scatter_add, "vote.sync: the mask is";

    // Fragments of matrices.
    rows_of_a_fragment_swapped: gemm, gemm_small_f16, "mma.sync", 0, SwapElements(1, 0, 1),
        gemm, WRONG;
    columns_of_a_fragment_swapped: gemm, gemm_small_bf16, "mma.sync", 1, SwapElements(1, 1, 2),
        gemm, WRONG;
    fragment_of_b_swapped: gemm, gemm_small_f16, "mma.sync", 3, SwapElements(2, 0, 1),
        gemm, WRONG;
    fragment_of_the_result_swapped: gemm, gemm_small_f16, "mma.sync", 2,
        SwapElements(0, 1, 2), gemm, WRONG;
    fragment_transposed: gemm, gemm_small_f16, "ldmatrix.sync.aligned.m8n8.x4.trans", 0,
        Replace(".trans", ""), gemm, WRONG;
    fragment_not_transposed: gemm, gemm_small_f16, "ldmatrix.sync.aligned.m8n8.x4.shared", 0,
        Replace(".x4.shared", ".x4.trans.shared"), gemm, WRONG;
    matrices_of_a_fragment_swapped: gemm, gemm_small_bf16, "ldmatrix", 0, SwapElements(0, 1, 2),
        gemm, WRONG;
    fragment_from_the_next_row: gemm, gemm_small_f16, "ldmatrix", 1, Offset(16),
        gemm, WRONG;
    fragment_between_rows: gemm, gemm_small_f16, "ldmatrix", 1, Offset(8),
        gemm, "misaligned";
    bf16_read_as_f16: gemm, gemm_small_bf16, "mma.sync", 0, Replace("bf16.bf16", "f16.f16"),
        gemm, WRONG;

    // Bounds and addresses.
    one_element_too_many: level1, axpy_f32, "setp.ge.u64", 1, Replace("setp.ge", "setp.gt"),
        axpy, "outside every allocation";
    one_vector_too_many: level1, fill_f32, "setp.ge.u64", 0, Replace("setp.ge", "setp.gt"),
        fill, "outside every allocation";
    bound_of_elements_is_missing: unary, exp_f32, "@%p1 bra", 0, Delete,
        unary_exp, "outside every allocation";
    unscaled_stride: level1, axpy_f32, "shl.b64", 2, Operand(2, "0"),
        axpy, "misaligned";
    stride_of_doubles: unary, exp_f32, "shl.b64", 0, Operand(2, "3"),
        unary_exp, "outside every allocation";
    vectors_at_any_address: level1, copy_f32, "and.b64", 0, Operand(2, "3"),
        copy, "misaligned";
    halves_of_a_parameter_swapped: indexing, gather_f32, "ld.param.u64", 1, Offset(8),
        gather, WRONG;
    store_behind_the_tile: indexing, transpose_f32, "st.shared", 0, Offset(4),
        permute, "shared memory";
    load_before_the_store: gemm, gemm_small_f32, "st.shared", 0, Delete,
        gemm, "uninitialized";
    quotient_instead_of_remainder: indexing, transpose_f32, "rem.u32", 0, Replace("rem.u32", "div.u32"),
        permute, WRONG;

    // Predicates and selections.
    padding_counts_as_input: convolution, convolve_small_f32, "setp.lt.s32", 0,
        Replace("setp.lt", "setp.gt"), convolve, WRONG;
    branch_negated: pooling, average_pool_f32, "@%p", 0, Replace("@%p", "@!%p"),
        average_pool, WRONG;
    least_instead_of_greatest: pooling, max_pool_f32, "setp.gt.f32", 0,
        Replace("setp.gt", "setp.lt"), max_pool, WRONG;
    selection_swapped: pooling, max_pool_f32, "selp.b32", 0, SwapOperands(1, 2),
        max_pool, WRONG;
    slope_of_positive_elements: unary, relu_f32, "setp.gt.f32", 0, Replace("setp.gt", "setp.lt"),
        unary_relu, WRONG;

    // Arithmetic.
    exponential_is_missing: softmax, softmax_f32, "ex2.approx", 0, Delete,
        softmax, "uninitialized register";
    addend_instead_of_factor: level1, axpy_f32, "fma.rn.f32", 4, SwapOperands(2, 3),
        axpy, WRONG;
    rounding_of_halves_is_missing: solver_update, sgd_f16, "cvt.rn.f16.f32", 0,
        Replace("cvt.rn.f16.f32", "cvt.u16.u32"), solver_update_sgd, WRONG;
    random_round_without_exclusive_or: random, uniform_f32, "xor.b64", 3,
        Replace("xor.b64", "or.b64"),
        uniform, WRONG;
    invalid_index_is_not_reported: indexing, gather_f32, "atom.global.max", 0, Delete,
        gather, WRONG;
    report_replaces_an_earlier_one: indexing, gather_f32, "not.b64", 0, Replace("not.b64", "mov.b64"),
        gather, WRONG;
}
