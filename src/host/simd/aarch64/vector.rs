//! Implementations of [`SimdVector`] for NEON registers.
//!
//! NEON has no masked loads and stores. A load or store of a part of a vector copies the elements
//! through an array.

use crate::host::simd::vector::{MAX_LANES, SimdVector};
use std::{arch::aarch64::*, ops::Range};

/// Lanes of a vector that a load or store accesses.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    start: usize,
    end: usize,
}

impl Lanes {
    #[inline(always)]
    fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Implements [`SimdVector`] for one register type with the given intrinsics, or with functions of
/// the same signatures.
macro_rules! simd_vector {
    (
        $vector:ty, $scalar:ty, $width:literal,
        load: $splat:ident $load:ident, store: $store:ident,
        arithmetic: $add:ident $mul:ident $mul_add:ident, sum4: $sum4:ident, rotate: $rotate:ident,
        transpose4: $transpose4:ident, transpose: $transpose:ident
    ) => {
        impl SimdVector for $vector {
            type Scalar = $scalar;
            type Mask = Lanes;
            const WIDTH: usize = $width;
            const HAS_32_REGISTERS: bool = true;

            #[inline(never)]
            unsafe fn outline(kernel: impl FnOnce()) {
                kernel();
            }

            #[inline(always)]
            unsafe fn splat(x: $scalar) -> Self {
                // SAFETY: every AArch64 processor has NEON.
                unsafe { $splat(x) }
            }

            #[inline(always)]
            unsafe fn load(p: *const $scalar) -> Self {
                // SAFETY: `p` is valid for `WIDTH` elements.
                unsafe { $load(p) }
            }

            #[inline(always)]
            unsafe fn load_first(p: *const $scalar, count: usize) -> Self {
                // SAFETY: `p` is valid for `count` elements.
                unsafe { Self::load_masked(p, Lanes { start: 0, end: count }) }
            }

            #[inline(always)]
            unsafe fn mask(start: usize, end: usize) -> Lanes {
                Lanes { start, end }
            }

            #[inline(always)]
            unsafe fn load_masked(p: *const $scalar, mask: Lanes) -> Self {
                // SAFETY: `p` is valid for the masked elements.
                unsafe { Self::splat(0.0).load_merge(p, mask) }
            }

            #[inline(always)]
            unsafe fn load_merge(self, p: *const $scalar, mask: Lanes) -> Self {
                // SAFETY: `p` is valid for the masked elements. The code accesses only these
                // elements of `p`.
                unsafe {
                    if mask.range() == (0..$width) {
                        return Self::load(p);
                    }
                    let mut elements = [0.0; $width];
                    self.store(elements.as_mut_ptr());
                    for i in mask.range() {
                        elements[i] = *p.wrapping_add(i);
                    }
                    Self::load(elements.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn store(self, p: *mut $scalar) {
                // SAFETY: `p` is valid for `WIDTH` elements.
                unsafe { $store(p, self) }
            }

            #[inline(always)]
            unsafe fn store_first(self, p: *mut $scalar, count: usize) {
                // SAFETY: `p` is valid for `count` elements.
                unsafe { self.store_masked(p, Lanes { start: 0, end: count }) }
            }

            #[inline(always)]
            unsafe fn store_masked(self, p: *mut $scalar, mask: Lanes) {
                // SAFETY: `p` is valid for the masked elements. The code accesses only these
                // elements of `p`.
                unsafe {
                    if mask.range() == (0..$width) {
                        return self.store(p);
                    }
                    let mut elements = [0.0; $width];
                    self.store(elements.as_mut_ptr());
                    for i in mask.range() {
                        *p.wrapping_add(i) = elements[i];
                    }
                }
            }

            #[inline(always)]
            unsafe fn add(self, x: Self) -> Self {
                // SAFETY: every AArch64 processor has NEON.
                unsafe { $add(self, x) }
            }

            #[inline(always)]
            unsafe fn mul(self, x: Self) -> Self {
                // SAFETY: every AArch64 processor has NEON.
                unsafe { $mul(self, x) }
            }

            #[inline(always)]
            unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                // SAFETY: every AArch64 processor has NEON.
                unsafe { $mul_add(y, self, x) }
            }

            #[inline(always)]
            unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [$scalar; 4] {
                $sum4(vectors)
            }

            #[inline(always)]
            unsafe fn rotate(self, count: usize) -> Self {
                $rotate(self, count)
            }

            #[inline(always)]
            unsafe fn store_transposed4(
                vectors: [Self; 4],
                count: usize,
                p: *mut $scalar,
                stride: usize,
            ) {
                // SAFETY: `p` is valid for `count` rows of four elements, and for the rows after
                // them to which the trait allows writes.
                unsafe { $transpose4(vectors, count, p, stride) }
            }

            #[inline(always)]
            unsafe fn transpose(rows: [*const $scalar; MAX_LANES], p: *mut $scalar, stride: usize) {
                // SAFETY: each of the first `WIDTH` rows is valid for reads of a vector, and
                // `p + i·stride` is valid for writes of a vector for every `i < WIDTH`.
                unsafe { $transpose(rows, p, stride) }
            }
        }
    };
}

simd_vector!(
    float32x4_t, f32, 4,
    load: vdupq_n_f32 vld1q_f32, store: vst1q_f32,
    arithmetic: vaddq_f32 vmulq_f32 vfmaq_f32, sum4: sum4_f32, rotate: rotate_f32,
    transpose4: transpose4_f32, transpose: transpose_f32
);
simd_vector!(
    float64x2_t, f64, 2,
    load: vdupq_n_f64 vld1q_f64, store: vst1q_f64,
    arithmetic: vaddq_f64 vmulq_f64 vfmaq_f64, sum4: sum4_f64, rotate: rotate_f64,
    transpose4: transpose4_f64, transpose: transpose_f64
);

/// Returns the sum of the elements of each vector. First adds the two halves of each vector.
#[inline(always)]
fn sum4_f32([a, b, c, d]: [float32x4_t; 4]) -> [f32; 4] {
    let mut sums = [0.0; 4];
    // SAFETY: every AArch64 processor has NEON, and `sums` has four elements.
    unsafe {
        let add_halves = |a, b| {
            let (a, b) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
            let [low, high] = [vzip1q_f64(a, b), vzip2q_f64(a, b)];
            vaddq_f32(vreinterpretq_f32_f64(low), vreinterpretq_f32_f64(high))
        };
        vst1q_f32(sums.as_mut_ptr(), vpaddq_f32(add_halves(a, b), add_halves(c, d)));
    }
    sums
}

#[inline(always)]
fn sum4_f64([a, b, c, d]: [float64x2_t; 4]) -> [f64; 4] {
    // SAFETY: every AArch64 processor has NEON.
    unsafe { [vaddvq_f64(a), vaddvq_f64(b), vaddvq_f64(c), vaddvq_f64(d)] }
}

#[inline(always)]
fn rotate_f32(v: float32x4_t, count: usize) -> float32x4_t {
    // SAFETY: every AArch64 processor has NEON.
    unsafe {
        match count % 4 {
            1 => vextq_f32::<1>(v, v),
            2 => vextq_f32::<2>(v, v),
            3 => vextq_f32::<3>(v, v),
            _ => v,
        }
    }
}

#[inline(always)]
fn rotate_f64(v: float64x2_t, count: usize) -> float64x2_t {
    // SAFETY: every AArch64 processor has NEON.
    if count % 2 == 1 { unsafe { vextq_f64::<1>(v, v) } } else { v }
}

/// Returns the four columns of the matrix whose rows are `a`, `b`, `c` and `d`.
#[inline(always)]
fn transposed_f32([a, b, c, d]: [float32x4_t; 4]) -> [float32x4_t; 4] {
    // SAFETY: every AArch64 processor has NEON.
    unsafe {
        // Each register holds elements of two rows as pairs, for example `a0 b0 a2 b2`.
        let pairs = |even, odd| (vreinterpretq_f64_f32(even), vreinterpretq_f64_f32(odd));
        let (ab_even, ab_odd) = pairs(vtrn1q_f32(a, b), vtrn2q_f32(a, b));
        let (cd_even, cd_odd) = pairs(vtrn1q_f32(c, d), vtrn2q_f32(c, d));
        [
            vreinterpretq_f32_f64(vzip1q_f64(ab_even, cd_even)),
            vreinterpretq_f32_f64(vzip1q_f64(ab_odd, cd_odd)),
            vreinterpretq_f32_f64(vzip2q_f64(ab_even, cd_even)),
            vreinterpretq_f32_f64(vzip2q_f64(ab_odd, cd_odd)),
        ]
    }
}

/// Implements [`SimdVector::store_transposed4`].
///
/// # Safety
/// The requirements of [`SimdVector::store_transposed4`] hold.
#[inline(always)]
unsafe fn transpose4_f32(v: [float32x4_t; 4], count: usize, p: *mut f32, stride: usize) {
    if count > 0 {
        for (i, column) in transposed_f32(v).into_iter().enumerate() {
            // SAFETY: the first `count` rows and up to three rows after them are valid for writes.
            unsafe { vst1q_f32(p.add(i * stride), column) };
        }
    }
}

/// Implements [`SimdVector::store_transposed4`].
///
/// # Safety
/// The requirements of [`SimdVector::store_transposed4`] hold.
#[inline(always)]
unsafe fn transpose4_f64(v: [float64x2_t; 4], count: usize, p: *mut f64, stride: usize) {
    if count > 0 {
        let [a, b, c, d] = v;
        // SAFETY: the first `count` rows and up to three rows after them are valid for writes of
        // four elements.
        unsafe {
            vst1q_f64(p, vzip1q_f64(a, b));
            vst1q_f64(p.add(2), vzip1q_f64(c, d));
            vst1q_f64(p.add(stride), vzip2q_f64(a, b));
            vst1q_f64(p.add(stride + 2), vzip2q_f64(c, d));
        }
    }
}

/// Implements [`SimdVector::transpose`].
///
/// # Safety
/// The requirements of [`SimdVector::transpose`] hold.
#[inline(always)]
unsafe fn transpose_f32(rows: [*const f32; MAX_LANES], p: *mut f32, stride: usize) {
    let [a, b, c, d, ..] = rows;
    // SAFETY: each of the four rows is valid for reads of four elements, and `p + i·stride` is
    // valid for writes of four elements for every `i < 4`.
    unsafe {
        transpose4_f32([vld1q_f32(a), vld1q_f32(b), vld1q_f32(c), vld1q_f32(d)], 4, p, stride);
    }
}

/// Implements [`SimdVector::transpose`].
///
/// # Safety
/// The requirements of [`SimdVector::transpose`] hold.
#[inline(always)]
unsafe fn transpose_f64(rows: [*const f64; MAX_LANES], p: *mut f64, stride: usize) {
    let [a, b, ..] = rows;
    // SAFETY: each of the two rows is valid for reads of two elements, and `p` and `p + stride` are
    // valid for writes of two elements.
    unsafe {
        let (a, b) = (vld1q_f64(a), vld1q_f64(b));
        vst1q_f64(p, vzip1q_f64(a, b));
        vst1q_f64(p.add(stride), vzip2q_f64(a, b));
    }
}
