//! GEMM on one thread, structured like BLIS: packing, micro-kernels and the loops around them.
//!
//! [`macro_kernel`] packs panels of both operands and runs [`micro_kernel`] over the panels:
//!
//! ```text
//! for ic in 0..m, step MC                   block of rows of A and C
//!   for jc in 0..n, step NC                 block of columns of B and C ┐ exchanged if A
//!     for pc in 0..k, step KC               block of terms              ┘ is packed
//!       pack B[pc, jc] into a KC×NC panel, which stays in L2
//!       pack A[ic, pc] into an MC×KC panel, unless A is read in place
//!       for ir in 0..MC, step MR            MR×KC micro-panel of A, which stays in L1
//!         for jr in 0..NC, step NR          KC×NR micro-panel of B
//!           micro-kernel: MR×NR tile of C in registers, summed over KC
//!
//!   A, MC×KC                panel of A: micro-panels of MR rows, step by step along k
//! ┌───────────────┐
//! │ a00 a01 a02 … │         ┌─────────────────────┬─────────────────────┬───
//! │ a10 a11 a12 … │  pack   │ a00 a10 … a(MR−1)0  │ a01 a11 … a(MR−1)1  │ …
//! │  …            │ ──────► ├─────────────────────┼─────────────────────┼───
//! │               │         │ rows MR to 2·MR − 1 │                     │
//! └───────────────┘         └─────────────────────┴─────────────────────┴───
//! ```
//!
//! The loops of BLIS are described for a column-major `C`, but `C` is row-major in cortado. Because
//! `C` is row-major, the roles of `A` and `B` are exchanged compared with BLIS: the panel of `A` is
//! the larger panel, and the panel of `B` stays in L2.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | `RawGemm`, `BatchStrides`: arguments by raw pointers |
//! | [`half_block`] | `HalfBlock`: block of a 16-bit GEMM |
//! | [`blocking`] | choice of MR, MC, KC and NC, and the workspace for panels |
//! | [`packing`], [`indirect_packing`] | packing of matrices with strides or with address tables |
//! | [`micro_kernel`] | kernel that computes an MR×NR tile of `C` from rows of `B` |
//! | [`dot_kernel`] | kernel that computes an MR×NR tile of `C` by dot products with rows of `Bᵀ` |
//! | [`packed_dot`] | dot kernel with a packed `A`, for few rows of `A` and a large `B` |
//! | [`portable`] | portable loops that add in the order of the micro-kernel and the dot kernel |
//! | [`unpacked`] | unpacked GEMM, with the micro-kernel or the dot kernel |
//! | [`macro_kernel`] | packed GEMM |
//!
//! The micro-kernel and the dot kernel are generic over
//! [`SimdVector`](crate::host::simd::vector::SimdVector), and `SimdScalar::dispatch` selects AVX-512,
//! AVX2 or NEON vectors at run time. Each of the two kernels computes every element of `C` by the
//! same operations, whatever the width of a vector. The loops of [`portable`] compute the same
//! operations without vectors, and are the reference with which tests compare the two kernels bit for
//! bit.

pub(crate) mod args;
pub(crate) mod half_block;
pub(crate) mod blocking;
pub(crate) mod packing;
pub(crate) mod indirect_packing;
pub(crate) mod micro_kernel;
pub(crate) mod dot_kernel;
pub(crate) mod packed_dot;
pub(crate) mod portable;
pub(crate) mod unpacked;
pub(crate) mod macro_kernel;
