//! Runs of `f32` by AVX-512: sums along them, and functions of each element.
//!
//! For sums, lines of the first operand are read whole, wherever it begins: an element's accumulator
//! is that of its place from there, and the tree in which they are added is the same for each turn,
//! but for the order of what is added. So the bits are those of [`over_run`](super::over_run).

use crate::host::{
    blas::level1::{LANES, ROWS},
    cache::cache_line::{PREFETCH_DISTANCE, store_peel_len},
};
use std::arch::x86_64::{
    __m512, _MM_HINT_T0, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps,
    _mm_prefetch, _mm256_add_ps, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm512_add_ps,
    _mm512_castps512_ps256, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_expandloadu_ps,
    _mm512_maskz_loadu_ps, _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_storeu_ps,
};
use std::mem::transmute;

/// Elements taken in at a time, by an accumulator each.
const BLOCK: usize = LANES * ROWS;

/// The sum of all accumulators after `take(sum, xᵢ, yᵢ)` of each pair, equal lengths; zeros change
/// none. Of what is `far`, more is asked for meanwhile.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn sum(
    far: bool,
    x: &[f32],
    y: &[f32],
    take: impl Fn(f32, f32, f32) -> f32 + Copy,
) -> f32 {
    assert!(x.len() == y.len());
    let mut sums = [_mm512_setzero_ps(); ROWS];
    let before = x.as_ptr().addr() / size_of::<f32>() % LANES;
    // Places from the beginning of a line to behind the last element.
    let mut left = before + x.len();
    let (mut x, mut y) = (x.as_ptr().wrapping_sub(before), y.as_ptr());
    // SAFETY: the masks leave out what is before the first element and behind the last; vectors
    // without one are between. The second operand's elements are taken from the first on: before
    // it there may be a page that is not there, and then masks take long.
    #[allow(unsafe_code)]
    unsafe {
        if before > 0 {
            let first = u16::MAX << before & mask_of(left);
            let head = (_mm512_maskz_loadu_ps(first, x), _mm512_maskz_expandloadu_ps(first, y));
            sums[0] = taken(sums[0], head.0, head.1, take);
            y = y.wrapping_sub(before);
            sums = part::<1>(sums, (x, y), left, take);
            (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
            left = left.saturating_sub(BLOCK);
        }
        while left >= BLOCK {
            for (row, sum) in sums.iter_mut().enumerate() {
                let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
                if far {
                    _mm_prefetch::<_MM_HINT_T0>(x.cast::<i8>().wrapping_add(PREFETCH_DISTANCE));
                }
                *sum = taken(*sum, _mm512_loadu_ps(x), _mm512_loadu_ps(y), take);
            }
            (x, y) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK));
            left -= BLOCK;
        }
        if left > 0 {
            sums = part::<0>(sums, (x, y), left, take);
        }
    }
    total(sums)
}

/// `yᵢ ← f(xᵢ, yᵢ)`, equal lengths.
///
/// Lines of `y` are written whole: a store into two lines takes as long as both.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn update(x: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32 + Copy) {
    assert!(x.len() == y.len());
    let (mut left, before) = (y.len(), store_peel_len(y));
    let (mut x, mut y) = (x.as_ptr(), y.as_mut_ptr());
    // SAFETY: vectors without a mask end with the last element at the latest, and masks leave out
    // what is behind it.
    #[allow(unsafe_code)]
    unsafe {
        if before > 0 {
            put(mask_of(before), x, y, f);
            (x, y, left) = (x.wrapping_add(before), y.wrapping_add(before), left - before);
        }
        while left >= BLOCK {
            for row in 0..ROWS {
                let (x, y) = (x.wrapping_add(row * LANES), y.wrapping_add(row * LANES));
                _mm512_storeu_ps(y, of_each(_mm512_loadu_ps(x), _mm512_loadu_ps(y), f));
            }
            (x, y, left) = (x.wrapping_add(BLOCK), y.wrapping_add(BLOCK), left - BLOCK);
        }
        while left > 0 {
            put(mask_of(left), x, y, f);
            (x, y) = (x.wrapping_add(LANES), y.wrapping_add(LANES));
            left = left.saturating_sub(LANES);
        }
    }
}

/// `yᵢ ← f(xᵢ, yᵢ)` where the mask says so.
///
/// # Safety
/// The processor has AVX-512, and there are elements where the mask says so.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn put(mask: u16, x: *const f32, y: *mut f32, f: impl Fn(f32, f32) -> f32) {
    // SAFETY: as of this.
    unsafe {
        let values = of_each(_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_loadu_ps(mask, y), f);
        _mm512_mask_storeu_ps(y, mask, values);
    }
}

/// `f(xᵢ, yᵢ)`
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn of_each(x: __m512, y: __m512, f: impl Fn(f32, f32) -> f32) -> __m512 {
    // SAFETY: vectors are as many elements.
    let [x, mut y]: [[f32; LANES]; 2] = unsafe { transmute([x, y]) };
    for i in 0..LANES {
        y[i] = f(x[i], y[i]);
    }
    // SAFETY: as above.
    unsafe { transmute(y) }
}

/// Takes in what is left, or of more a block, from the vector of row `FROM` on.
///
/// # Safety
/// The processor has AVX-512, and there is as much left of both.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn part<const FROM: usize>(
    mut sums: [__m512; ROWS],
    (x, y): (*const f32, *const f32),
    left: usize,
    take: impl Fn(f32, f32, f32) -> f32,
) -> [__m512; ROWS] {
    for (row, sum) in sums.iter_mut().enumerate().skip(FROM) {
        let at = row * LANES;
        if left <= at {
            break;
        }
        let (x, y) = (x.wrapping_add(at), y.wrapping_add(at));
        let mask = mask_of(left - at);
        // SAFETY: as of this: the mask leaves out what is behind the last.
        unsafe {
            let (x, y) = (_mm512_maskz_loadu_ps(mask, x), _mm512_maskz_loadu_ps(mask, y));
            *sum = taken(*sum, x, y, &take);
        }
    }
    sums
}

/// Which places of a vector are among the first `count`.
#[inline(always)]
fn mask_of(count: usize) -> u16 {
    ((1u32 << count.min(LANES)) - 1) as u16
}

/// `take(sumᵢ, xᵢ, yᵢ)`
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn taken(sum: __m512, x: __m512, y: __m512, take: impl Fn(f32, f32, f32) -> f32) -> __m512 {
    // SAFETY: vectors are as many elements.
    let [mut sum, x, y]: [[f32; LANES]; 3] = unsafe { transmute([sum, x, y]) };
    for i in 0..LANES {
        sum[i] = take(sum[i], x[i], y[i]);
    }
    // SAFETY: as above.
    unsafe { transmute(sum) }
}

/// The sum of all accumulators: those at half the distance are added until one is left.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn total([a, b, c, d]: [__m512; ROWS]) -> f32 {
    let all = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
    let high = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0xee>(all, all));
    let eight = _mm256_add_ps(_mm512_castps512_ps256(all), high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
