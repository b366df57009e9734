//! Loops of BLAS level 1 for `f32` with AVX-512 or AVX2: sums of two operands, and elementwise
//! updates.

use crate::host::{
    blas::x86::row::Row,
    cache::{
        cache_line::{PAGE_4K, PREFETCH_DISTANCE, store_peel_len_at},
        x86::prefetch_l1,
    },
    reduction::tree::{ACCUMULATOR_ROWS, LANES},
    simd::level::{Processor, SimdLevel},
};
use std::arch::x86_64::*;

/// Number of elements that a loop processes at a time, one for each accumulator.
const BLOCK: usize = LANES * ACCUMULATOR_ROWS;

/// Smallest length, in elements, at which sums on AMD's processors before Zen 5 are faster with AVX2
/// than with AVX-512. These processors execute an instruction of AVX-512 on units of 256 bits, so
/// AVX2 is not slower. The two loads of each cache line probably train the hardware prefetchers
/// better than one load (decision 55).
const LONG: usize = 1 << 16;

/// Greatest length, in elements, at which sums of two operands on AMD's processors before Zen 5 are
/// faster with AVX2 than with AVX-512, if the operands are in L1 (decision 55).
const SHORT: usize = 1 << 11;

/// Accumulates `f(sum, xᵢ, yᵢ)` over all pairs (xᵢ, yᵢ), and returns the sum of the accumulators.
/// Returns `None` at SIMD levels for which this file has no loop, and if the level has not been
/// detected yet. `f(sum, 0, 0)` must return `sum`. Prefetches `x` in software if `prefetch` is
/// true.
///
/// # Panics
/// Panics if the lengths of `x` and `y` differ.
#[inline(always)]
pub(crate) fn sum(
    prefetch: bool,
    x: &[f32],
    y: &[f32],
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> Option<f32> {
    let processor = Processor::known()?;
    match processor.level {
        SimdLevel::Avx512 if is_faster_with_avx2(processor, x, y) => {
            // SAFETY: AVX-512 includes AVX2 and FMA.
            Some(unsafe { sum_avx2(prefetch, x, y, f) })
        }
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx512 => Some(unsafe { sum_avx512(prefetch, x, y, f) }),
        // SAFETY: the features of the SIMD level were detected.
        SimdLevel::Avx2 => Some(unsafe { sum_avx2(prefetch, x, y, f) }),
        SimdLevel::Portable | SimdLevel::WithoutFma => None,
    }
}

/// Returns the sums of two parts of operands, as [`sum`] returns them for each part. The parts end at
/// index `middle` and at the end of `x` and `y`. Accumulates 4 KiB of one part and 4 KiB of the
/// other part in turn, so that the hardware prefetchers of Zen 4 follow more places in memory
/// (decision 63). Returns `None` unless [`has_alternating_sums`].
///
/// # Panics
/// Panics if the lengths of `x` and `y` differ, or if `middle` exceeds them.
#[inline(always)]
pub(crate) fn alternating_sums(
    middle: usize,
    x: &[f32],
    y: &[f32],
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> Option<[f32; 2]> {
    let (x, y) = (x.split_at(middle), y.split_at(middle));
    // SAFETY: the features of the SIMD level were detected, and AVX-512 includes AVX2 and FMA.
    has_alternating_sums().then(|| unsafe { alternating_sums_avx2(x, y, f) })
}

/// Returns whether [`alternating_sums`] has a loop for the current SIMD level. Returns false if the
/// level has not been detected yet.
#[inline(always)]
pub(crate) fn has_alternating_sums() -> bool {
    Processor::known()
        .is_some_and(|processor| matches!(processor.level, SimdLevel::Avx512 | SimdLevel::Avx2))
}

#[target_feature(enable = "avx2,fma")]
fn alternating_sums_avx2(
    x: (&[f32], &[f32]),
    y: (&[f32], &[f32]),
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> [f32; 2] {
    const BLOCKS: usize = PAGE_4K / size_of::<f32>() / BLOCK;
    // SAFETY: this function is compiled for AVX2, and the slices are valid.
    unsafe {
        let mut first = PartialSum::<[__m256; 2]>::start(x.0, y.0, f);
        let mut second = PartialSum::<[__m256; 2]>::start(x.1, y.1, f);
        while first.rest_len.max(second.rest_len) >= BLOCK {
            first = first.advance::<false>(BLOCKS, f);
            second = second.advance::<false>(BLOCKS, f);
        }
        [first.finish(f), second.finish(f)]
    }
}

/// Returns whether a sum over `x` and `y` is faster with AVX2 than with AVX-512. Both results are
/// bit-identical. On Zen 5, AVX2 is faster for two operands that exceed L1 but fill less than half
/// of L2 (decision 48).
#[inline(always)]
fn is_faster_with_avx2(processor: Processor, x: &[f32], y: &[f32]) -> bool {
    let (len, has_two_operands) = (x.len(), x.as_ptr() != y.as_ptr());
    // 64 KiB to 512 KiB in total.
    let is_medium = (1 << 13..LONG).contains(&len) && has_two_operands;
    let is_short = len <= SHORT && has_two_operands;
    is_medium && processor.is_amd || (is_short || len >= LONG) && processor.is_amd_with_small_l1
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sum_avx512(
    prefetch: bool,
    x: &[f32],
    y: &[f32],
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> f32 {
    // SAFETY: this function is compiled for AVX-512.
    unsafe { sum_rows::<__m512>(prefetch, x, y, f) }
}

#[target_feature(enable = "avx2,fma")]
fn sum_avx2(prefetch: bool, x: &[f32], y: &[f32], f: impl Fn(f32, f32, f32) -> f32 + Copy) -> f32 {
    // SAFETY: this function is compiled for AVX2.
    unsafe { sum_rows::<[__m256; 2]>(prefetch, x, y, f) }
}

/// `yᵢ ← f(xᵢ, yᵢ)`. Returns false, and leaves `y` unchanged, at SIMD levels for which this file
/// has no loop, and if the level has not been detected yet. Prefetches `x` and `y` in software if
/// `prefetch` is true.
///
/// # Panics
/// Panics if the lengths of `x` and `y` differ.
#[inline(always)]
pub(crate) fn update(
    prefetch: bool,
    x: &[f32],
    y: &mut [f32],
    f: impl Fn(f32, f32) -> f32 + Copy,
) -> bool {
    assert!(x.len() == y.len());
    // SAFETY: `x` and `y` are equally long, and `y` is borrowed exclusively.
    unsafe { update_at::<false>(prefetch, x.as_ptr(), (y.as_mut_ptr(), y.len()), f) }
}

/// Like [`update`], but for `yᵢ ← f(yᵢ)`.
#[inline(always)]
pub(crate) fn update_in_place(
    prefetch: bool,
    y: &mut [f32],
    f: impl Fn(f32) -> f32 + Copy,
) -> bool {
    // Both pointers of `update_at` come from this one, because a borrow of `y` would exclude reads
    // through another pointer.
    let (y, len) = (y.as_mut_ptr(), y.len());
    // SAFETY: `y` is valid for reads and writes of `len` elements.
    unsafe {
        update_at::<true>(
            prefetch,
            y,
            (y, len),
            #[inline(always)]
            move |x, _| f(x),
        )
    }
}

/// Implements [`update`] and, if `IN_PLACE` is true, [`update_in_place`], for which `x` is ignored.
/// `IN_PLACE` is a const generic, so that the in-place loops keep one address in a register instead
/// of two.
///
/// # Safety
/// `x` is valid for reads, and `y` for reads and writes, of `len` elements. `x` and `y` may be
/// equal.
#[inline(always)]
unsafe fn update_at<const IN_PLACE: bool>(
    prefetch: bool,
    x: *const f32,
    (y, len): (*mut f32, usize),
    f: impl Fn(f32, f32) -> f32 + Copy,
) -> bool {
    let Some(processor) = Processor::known() else { return false };
    // SAFETY: the features of the SIMD level were detected, and the caller guarantees that `x` and
    // `y` are valid.
    unsafe {
        match processor.level {
            // AMD's processors before Zen 5 are faster with AVX2 at every length (decision 55).
            SimdLevel::Avx512 if processor.is_amd_with_small_l1 => {
                update_avx2::<IN_PLACE>(prefetch, x, (y, len), f)
            }
            SimdLevel::Avx512 => update_avx512::<IN_PLACE>(prefetch, x, (y, len), f),
            SimdLevel::Avx2 => update_avx2::<IN_PLACE>(prefetch, x, (y, len), f),
            SimdLevel::Portable | SimdLevel::WithoutFma => return false,
        }
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn update_avx512<const IN_PLACE: bool>(
    prefetch: bool,
    x: *const f32,
    (y, len): (*mut f32, usize),
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    let x = if IN_PLACE { y.cast_const() } else { x };
    // SAFETY: this function is compiled for AVX-512, and the caller guarantees that `x` and `y` are
    // valid.
    unsafe { update_rows::<__m512>(prefetch, x, (y, len), f) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn update_avx2<const IN_PLACE: bool>(
    prefetch: bool,
    x: *const f32,
    (y, len): (*mut f32, usize),
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    let x = if IN_PLACE { y.cast_const() } else { x };
    // SAFETY: this function is compiled for AVX2, and the caller guarantees that `x` and `y` are
    // valid.
    unsafe { update_rows::<[__m256; 2]>(prefetch, x, (y, len), f) }
}

/// A sum in registers of type `R`, which can be computed in parts: [`start`](Self::start),
/// [`advance`](Self::advance) any number of times, and [`finish`](Self::finish).
///
/// Loads of `x` are aligned to cache lines. Aligning the loads rotates the assignment of elements
/// to accumulators, which only swaps operands of additions in the tree reduction of the
/// accumulators. Swapping the operands of an addition does not change its result, so the portable
/// loop and the loops of this file give bit-identical results.
struct PartialSum<R> {
    sums: [R; ACCUMULATOR_ROWS],
    x: *const f32,
    y: *const f32,
    /// Number of elements that have not been accumulated.
    rest_len: usize,
}

impl<R: Row> PartialSum<R> {
    /// Accumulates the elements before the first whole block.
    ///
    /// # Safety
    /// The calling function is compiled for the features of `R`.
    #[inline(always)]
    unsafe fn start(x: &[f32], y: &[f32], f: impl Fn(f32, f32, f32) -> f32 + Copy) -> Self {
        assert!(x.len() == y.len());
        let prefix = x.as_ptr().addr() / size_of::<f32>() % LANES;
        // Number of elements from the start of the cache line that contains the first element of
        // `x` to the end of `x`.
        let mut rest_len = prefix + x.len();
        let (mut x, mut y) = (x.as_ptr().wrapping_sub(prefix), y.as_ptr());
        // SAFETY: the caller guarantees the features of `R`. Masks exclude all addresses before the
        // first element and after the last element.
        unsafe {
            let mut sums = [R::zero(); ACCUMULATOR_ROWS];
            if prefix > 0 {
                let mask = u16::MAX << prefix & first_lanes(rest_len);
                let head_y = R::load_shifted(mask, prefix, y);
                sums[0] = map3(sums[0], R::load_masked(mask, x), head_y, f);
                y = y.wrapping_sub(prefix);
                sums = accumulate_tail::<R, 1>(sums, (x, y), rest_len, f);
                (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
                rest_len = rest_len.saturating_sub(BLOCK);
            }
            Self { sums, x, y, rest_len }
        }
    }

    /// Accumulates the next `blocks` whole blocks, or as many as are left. Returns the new state by
    /// value, because the compiler would keep accumulators behind a reference in memory, which costs
    /// 4 ns per sum.
    ///
    /// # Safety
    /// The calling function is compiled for the features of `R`, and the operands are still valid.
    #[inline(always)]
    unsafe fn advance<const PREFETCH: bool>(
        self,
        blocks: usize,
        f: impl Fn(f32, f32, f32) -> f32,
    ) -> Self {
        let Self { sums, x, y, rest_len } = self;
        let blocks = blocks.min(rest_len / BLOCK);
        let len = blocks * BLOCK;
        // SAFETY: the caller guarantees the features of `R` and valid operands, of which the blocks
        // are a part.
        let sums = unsafe { accumulate_blocks::<R, PREFETCH>(sums, (x, y), blocks, f) };
        Self { sums, x: x.wrapping_add(len), y: y.wrapping_add(len), rest_len: rest_len - len }
    }

    /// Accumulates the last elements, which are less than a block, and returns the sum.
    ///
    /// # Safety
    /// The calling function is compiled for the features of `R`, and the operands are still valid.
    #[inline(always)]
    unsafe fn finish(self, f: impl Fn(f32, f32, f32) -> f32) -> f32 {
        let Self { mut sums, x, y, rest_len } = self;
        // SAFETY: the caller guarantees the features of `R` and valid operands.
        unsafe {
            if rest_len > 0 {
                sums = accumulate_tail::<R, 0>(sums, (x, y), rest_len, f);
            }
            reduce(sums)
        }
    }
}

/// Computes [`sum`] in registers of type `R`.
///
/// # Safety
/// The calling function is compiled for the features of `R`.
#[inline(always)]
unsafe fn sum_rows<R: Row>(
    prefetch: bool,
    x: &[f32],
    y: &[f32],
    f: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> f32 {
    // SAFETY: the caller guarantees the features of `R`, and the slices are valid.
    unsafe {
        let sum = PartialSum::<R>::start(x, y, f);
        let sum = if prefetch {
            sum.advance::<true>(usize::MAX, f)
        } else {
            sum.advance::<false>(usize::MAX, f)
        };
        sum.finish(f)
    }
}

/// Accumulates `blocks` blocks of [`BLOCK`] elements of `x` and `y`. Prefetches `x` in software if
/// `PREFETCH` is true. `PREFETCH` is a constant, because a branch for each vector costs 6 % to 20 %
/// of the time for operands in the caches.
///
/// # Safety
/// The calling function is compiled for the features of `R`, and `x` and `y` are valid for reads of
/// the accumulated elements.
#[inline(always)]
unsafe fn accumulate_blocks<R: Row, const PREFETCH: bool>(
    mut sums: [R; ACCUMULATOR_ROWS],
    (mut x, mut y): (*const f32, *const f32),
    blocks: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) -> [R; ACCUMULATOR_ROWS] {
    for _ in 0..blocks {
        for (row, sum) in sums.iter_mut().enumerate() {
            let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
            if PREFETCH {
                prefetch_l1(x.wrapping_byte_add(PREFETCH_DISTANCE));
            }
            // SAFETY: the caller guarantees the features of `R`, and that `x` and `y` hold `blocks`
            // whole blocks.
            *sum = unsafe { map3(*sum, R::load(x), R::load(y), &f) };
        }
        (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
    }
    sums
}

/// Accumulates at most [`BLOCK`] of the `rest_len` elements of `x` and `y`. Skips the accumulator
/// rows before row `FIRST`, and the elements that belong to these rows.
///
/// # Safety
/// The calling function is compiled for the features of `R`, and `x` and `y` are valid for reads of
/// the accumulated elements.
#[inline(always)]
unsafe fn accumulate_tail<R: Row, const FIRST: usize>(
    mut sums: [R; ACCUMULATOR_ROWS],
    (x, y): (*const f32, *const f32),
    rest_len: usize,
    f: impl Fn(f32, f32, f32) -> f32,
) -> [R; ACCUMULATOR_ROWS] {
    for (row, sum) in (FIRST..).zip(&mut sums[FIRST..]) {
        let start = row * LANES;
        if rest_len <= start {
            break;
        }
        let (x, y) = (x.wrapping_add(start), y.wrapping_add(start));
        let mask = first_lanes(rest_len - start);
        // SAFETY: the mask excludes all lanes after the last of the `rest_len` elements.
        unsafe {
            *sum = map3(*sum, R::load_masked(mask, x), R::load_masked(mask, y), &f);
        }
    }
    sums
}

/// Computes [`update`] in registers of type `R`. Stores are aligned to cache lines, because a store
/// that straddles two cache lines costs two accesses.
///
/// # Safety
/// The calling function is compiled for the features of `R`. `x` is valid for reads, and `y` for
/// reads and writes, of `len` elements. `x` and `y` may be equal.
#[inline(always)]
unsafe fn update_rows<R: Row>(
    prefetch: bool,
    mut x: *const f32,
    (mut y, len): (*mut f32, usize),
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    let peel_len = store_peel_len_at(y, len);
    let mut rest_len = len;
    // SAFETY: the caller guarantees the features of `R`. Rows are loaded and stored without a mask
    // only while at least `LANES` elements are left, and masks exclude all lanes after the last
    // element.
    unsafe {
        if peel_len > 0 {
            update_masked::<R>(first_lanes(peel_len), x, y, f);
            (x, y, rest_len) =
                (x.wrapping_add(peel_len), y.wrapping_add(peel_len), rest_len - peel_len);
        }
        let blocks = rest_len / BLOCK;
        if prefetch {
            update_blocks::<R, true>(x, y, blocks, f);
        } else {
            update_blocks::<R, false>(x, y, blocks, f);
        }
        (x, y) = (x.wrapping_add(blocks * BLOCK), y.wrapping_add(blocks * BLOCK));
        rest_len %= BLOCK;
        while rest_len >= LANES {
            map2(R::load(x), R::load(y), f).store(y);
            (x, y, rest_len) = (x.wrapping_add(LANES), y.wrapping_add(LANES), rest_len - LANES);
        }
        if rest_len > 0 {
            update_masked::<R>(first_lanes(rest_len), x, y, f);
        }
    }
}

/// `yᵢ ← f(xᵢ, yᵢ)` for `blocks` blocks of [`BLOCK`] elements.
///
/// # Safety
/// The calling function is compiled for the features of `R`. `x` is valid for reads, and `y` for
/// reads and writes, of the blocks.
#[inline(always)]
unsafe fn update_blocks<R: Row, const PREFETCH: bool>(
    mut x: *const f32,
    mut y: *mut f32,
    blocks: usize,
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    for _ in 0..blocks {
        for row in 0..ACCUMULATOR_ROWS {
            let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
            if PREFETCH {
                prefetch_l1(x.wrapping_byte_add(PREFETCH_DISTANCE));
                prefetch_l1(y.wrapping_byte_add(PREFETCH_DISTANCE));
            }
            // SAFETY: the caller guarantees the features of `R`, and that `x` and `y` hold `blocks`
            // whole blocks.
            unsafe { map2(R::load(x), R::load(y), f).store(y) };
        }
        (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
    }
}

/// `yᵢ ← f(xᵢ, yᵢ)` for the lanes that the mask selects.
///
/// # Safety
/// The calling function is compiled for the features of `R`. `x` is valid for reads, and `y` for
/// reads and writes, of the lanes in `mask`.
#[inline(always)]
unsafe fn update_masked<R: Row>(
    mask: u16,
    x: *const f32,
    y: *mut f32,
    f: impl Fn(f32, f32) -> f32,
) {
    // SAFETY: the mask restricts each access to lanes that the caller guarantees to be valid.
    unsafe {
        map2(R::load_masked(mask, x), R::load_masked(mask, y), f).store_masked(mask, y);
    }
}

/// Returns the mask of the first `count` lanes, or of all lanes if `count` exceeds [`LANES`].
#[inline(always)]
fn first_lanes(count: usize) -> u16 {
    ((1u32 << count.min(LANES)) - 1) as u16
}

/// Returns `f(xᵢ, yᵢ)` for each lane.
///
/// # Safety
/// The calling function is compiled for the features of `R`.
#[inline(always)]
unsafe fn map2<R: Row>(x: R, y: R, f: impl Fn(f32, f32) -> f32) -> R {
    // SAFETY: the caller guarantees the features of `R`.
    unsafe {
        let (x, mut y) = (x.to_array(), y.to_array());
        for i in 0..LANES {
            y[i] = f(x[i], y[i]);
        }
        R::from_array(y)
    }
}

/// Returns `f(sumᵢ, xᵢ, yᵢ)` for each lane.
///
/// # Safety
/// The calling function is compiled for the features of `R`.
#[inline(always)]
unsafe fn map3<R: Row>(sum: R, x: R, y: R, f: impl Fn(f32, f32, f32) -> f32) -> R {
    // SAFETY: the caller guarantees the features of `R`.
    unsafe {
        let (mut sum, x, y) = (sum.to_array(), x.to_array(), y.to_array());
        for i in 0..LANES {
            sum[i] = f(sum[i], x[i], y[i]);
        }
        R::from_array(sum)
    }
}

/// Returns the sum of all accumulators. Each round adds the upper half of the accumulators to the
/// lower half.
///
/// # Safety
/// The calling function is compiled for the features of `R`.
#[inline(always)]
unsafe fn reduce<R: Row>([a, b, c, d]: [R; ACCUMULATOR_ROWS]) -> f32 {
    // SAFETY: the caller guarantees the features of `R`.
    unsafe {
        let sums8 = a.add(c).add(b.add(d)).add_halves();
        let sums4 = _mm_add_ps(_mm256_castps256_ps128(sums8), _mm256_extractf128_ps::<1>(sums8));
        let sums2 = _mm_add_ps(sums4, _mm_movehl_ps(sums4, sums4));
        _mm_cvtss_f32(_mm_add_ss(sums2, _mm_movehdup_ps(sums2)))
    }
}
