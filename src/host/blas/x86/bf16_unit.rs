//! GEMM of 16-bit elements with instructions that multiply `bf16`.
//!
//! A *unit* is an instruction that multiplies packed pairs of `bf16` and adds the products in
//! `f32`:
//!
//! - [`amx`] multiplies tiles of 16×32 elements, if the processor has AMX and Linux permits its
//!   use. AMX also multiplies `f16`, as sums of two `bf16`.
//! - [`vdpbf16ps`] multiplies vectors of 16 pairs, on AMD processors with AVX512-BF16.
//!
//! Both units treat subnormal operands as zero and flush subnormal sums to zero, for any
//! floating-point settings of the thread. On a processor without a unit, GEMM widens the operands
//! to `f32`.

#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
use crate::host::blas::x86::amx;
use crate::{
    element::{DType, Element},
    host::{
        blas::{
            kernel::half_block::HalfBlock,
            x86::{
                bf16_pack::{PairOrder, PairSource, pack},
                bf16_tile::{BLOCK_ROWS, TILE_K, bf16_terms},
                vdpbf16ps,
            },
        },
        cache::scratch::with_scratch,
        simd::vectorized,
    },
    op::{Gemm, Transpose},
};

/// Number of columns of `B` that are packed at a time, so that packing reads 256 contiguous bytes
/// of each row of `B`.
const B_PACK_COLUMNS: usize = 4 * BLOCK_ROWS;

/// Smallest number of floating-point operations at which AMX was faster in measurements than an
/// `f32` GEMM of widened operands. The same limit applies to `vdpbf16ps`.
const MIN_FLOPS: u64 = 1 << 15;

/// Smallest number of elements of `C` at which AMX was faster for `bf16` in measurements than an
/// `f32` GEMM of widened operands. The same limit applies to `vdpbf16ps`.
const BF16_MIN_OUTPUTS: usize = 256;

/// Smallest m at which at least half of the rows of a `vdpbf16ps` tile are rows of `A`.
const VDPBF16PS_MIN_M: usize = 4;

/// Instruction that multiplies `bf16` elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bf16Unit {
    /// The AMX instruction `tdpbf16ps`.
    #[cfg(target_os = "linux")]
    Amx,
    /// The AVX-512 instruction `vdpbf16ps`.
    Vdpbf16ps,
}

#[cfg(test)]
thread_local! {
    /// Unit that a test has chosen for GEMMs of every size on this thread.
    static TEST_UNIT: std::cell::Cell<Option<Bf16Unit>> = const { std::cell::Cell::new(None) };
}

/// Calls `body` with `unit` for GEMMs of any size that `unit` supports. The processor must have
/// `unit`.
#[cfg(test)]
pub(crate) fn with_unit(unit: Bf16Unit, body: impl FnOnce()) {
    TEST_UNIT.set(Some(unit));
    body();
    TEST_UNIT.set(None);
}

impl Bf16Unit {
    /// Returns the unit that computes `op` faster than an `f32` GEMM of widened operands, if any.
    /// `op` must be the whole GEMM rather than the part of one thread, so that all threads choose
    /// the same kernel.
    pub(crate) fn choose<H: Element>(op: &Gemm<H>) -> Option<Self> {
        #[cfg(test)]
        if crate::host::simd::level::has_test_level() {
            return None;
        } else if let Some(unit) = TEST_UNIT.get() {
            return (unit != Self::Vdpbf16ps || H::DTYPE == DType::Bf16).then_some(unit);
        }
        if op.flops() < MIN_FLOPS {
            return None;
        }
        #[cfg(target_os = "linux")]
        if amx_is_efficient(op) && amx::is_available() {
            return Some(Self::Amx);
        }
        let is_efficient =
            H::DTYPE == DType::Bf16 && op.m >= VDPBF16PS_MIN_M && op.m * op.n >= BF16_MIN_OUTPUTS;
        (is_efficient && vdpbf16ps::is_fast()).then_some(Self::Vdpbf16ps)
    }

    /// Returns KC, the number of steps along k in a block. For [`Self::Vdpbf16ps`], KC is
    /// `widened_kc`, so that the order of additions is the same as in a GEMM of widened operands.
    /// AMX has its own KC.
    fn kc<H: Element>(self, widened_kc: usize) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Self::Amx => amx::kc(bf16_terms::<H>()),
            Self::Vdpbf16ps => widened_kc,
        }
    }

    /// Computes the `f32` sums of `block`. Calls `finish(column, sums)` for each group of
    /// [`BLOCK_ROWS`] columns of C; `column` is the first column of the group. Each row of `sums`
    /// has [`BLOCK_ROWS`] elements. `widened_kc` is KC of a GEMM of widened operands.
    pub(crate) fn accumulate_block<H: Element>(
        self,
        block: &HalfBlock<'_, H>,
        widened_kc: usize,
        mut finish: impl FnMut(usize, &mut [f32]),
    ) {
        let (op, m, n) = (block.op, block.rows.len(), block.columns.len());
        let terms = bf16_terms::<H>();
        let kc = self.kc::<H>(widened_kc).min(op.k);
        // Number of 32-bit words in a packed row of `A`, or in a packed column of `B`.
        let row_words = kc.next_multiple_of(TILE_K) / 2 * terms;
        let (padded_m, padded_n) = (m.next_multiple_of(BLOCK_ROWS), n.next_multiple_of(BLOCK_ROWS));
        let b_columns = B_PACK_COLUMNS.min(padded_n);
        // If k fits in one block, the sums of a micro-panel of `B` are complete before the next
        // micro-panel starts, so the buffer needs to hold the sums of only one micro-panel.
        let sum_columns = if op.k > kc { padded_n } else { BLOCK_ROWS };
        let words = (padded_m + b_columns) * row_words + sum_columns * padded_m;
        let order = match self {
            #[cfg(target_os = "linux")]
            Self::Amx => PairOrder::FirstLow,
            Self::Vdpbf16ps => vdpbf16ps::PAIR_ORDER,
        };
        with_scratch(words, |scratch: &mut [f32]| {
            let (a, scratch) = scratch.split_at_mut(padded_m * row_words);
            let (b, sums) = scratch.split_at_mut(b_columns * row_words);
            for start in (0..op.k).step_by(kc) {
                let k = kc.min(op.k - start);
                let (ld, k_contiguous) = (op.lda, op.trans_a == Transpose::No);
                let (first, transpose) = ([block.rows.start, start], !k_contiguous);
                let x = block.a;
                pack(&PairSource { x, ld, k_contiguous, first, mn: m, k, transpose, order }, a);
                let panel = BLOCK_ROWS / 2 * terms * k.next_multiple_of(TILE_K);
                for column in (0..n).step_by(BLOCK_ROWS) {
                    if column % B_PACK_COLUMNS == 0 {
                        let (ld, k_contiguous) = (op.ldb, op.trans_b == Transpose::Yes);
                        let (first, transpose) =
                            ([block.columns.start + column, start], k_contiguous);
                        let (x, mn) = (block.b, B_PACK_COLUMNS.min(n - column));
                        pack(
                            &PairSource { x, ld, k_contiguous, first, mn, k, transpose, order },
                            b,
                        );
                    }
                    let a = &a[..padded_m / BLOCK_ROWS * panel];
                    let b = &b[column % B_PACK_COLUMNS / BLOCK_ROWS * panel..][..panel];
                    let sums = &mut sums[if op.k > kc { column * padded_m } else { 0 }..];
                    let sums = &mut sums[..padded_m * BLOCK_ROWS];
                    match self {
                        #[cfg(target_os = "linux")]
                        Self::Amx => amx::multiply_panels(terms, a, b, start > 0, sums),
                        Self::Vdpbf16ps => {
                            let shape = [m, BLOCK_ROWS.min(n - column), k.div_ceil(2)];
                            vdpbf16ps::multiply_panels(shape, a, b, start > 0, sums);
                        }
                    }
                    if start + k == op.k {
                        finish(column, &mut sums[..m * BLOCK_ROWS]);
                    }
                }
            }
        });
    }
}

/// Returns whether AMX computes `op` faster than an `f32` GEMM of widened operands, if the
/// processor has AMX and `op` has at least [`MIN_FLOPS`] operations.
#[cfg(target_os = "linux")]
fn amx_is_efficient<H: Element>(op: &Gemm<H>) -> bool {
    match H::DTYPE {
        DType::Bf16 => op.m * op.n >= BF16_MIN_OUTPUTS,
        DType::F16 => useful_share(op) > 0.5,
        _ => false,
    }
}

/// Returns the fraction of AMX multiplications that use matrix elements rather than padding.
#[cfg(target_os = "linux")]
fn useful_share<H: Element>(op: &Gemm<H>) -> f64 {
    let used_fraction = |len: usize, unit: usize| len as f64 / len.next_multiple_of(unit) as f64;
    used_fraction(op.m, BLOCK_ROWS) * used_fraction(op.n, BLOCK_ROWS) * used_fraction(op.k, TILE_K)
}

/// Returns whether all sums are finite.
pub(crate) fn are_finite(sums: &[f32]) -> bool {
    let max_bits = vectorized(
        #[inline(always)]
        |_| {
            let mut max_bits = 0;
            for sum in sums {
                // Without the sign bit, the bit patterns of floating-point numbers are ordered like
                // their absolute values.
                max_bits = max_bits.max(sum.to_bits() << 1);
            }
            max_bits
        },
    );
    max_bits < f32::INFINITY.to_bits() << 1
}
