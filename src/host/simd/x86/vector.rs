//! Implementations of [`SimdVector`] for AVX-512 and AVX2 registers.

use crate::{
    element::Element,
    host::simd::{
        vector::{MAX_LANES, SimdVector},
        x86::half::{narrow_256, narrow_512, widen_256, widen_512},
    },
};
use std::arch::x86_64::*;

/// Defines inlined methods of [`SimdVector`] whose bodies are one unsafe expression each.
macro_rules! methods {
    ($($name:ident($($param:ident $(: $type:ty)?),*) $(-> $result:ty)? = $body:expr;)*) => { $(
        #[allow(unused_unsafe)] // `$body` of an AVX-512 mask is safe integer code.
        #[inline(always)]
        unsafe fn $name($($param $(: $type)?),*) $(-> $result)? {
            // SAFETY: the callers of the trait's functions guarantee the processor's features and
            // the validity of `p` for the documented elements. The intrinsics access only the
            // elements of one vector, or the elements that the mask selects.
            unsafe { $body }
        }
    )* };
}

/// Implements [`SimdVector`] for one register type with the given intrinsics, or with functions of
/// the same signatures.
macro_rules! simd_vector {
    (
        $vector:ty, $scalar:ty, $width:expr, $features:literal,
        32 registers: $has_32_registers:expr,
        mask: $mask:ty, $mask_first:ident $mask_range:ident,
        load: $splat:ident $load:ident $load_masked:ident $load_merge:ident,
        store: $store:ident $store_masked:ident,
        arithmetic: $add:ident $mul:ident $mul_add:ident, sum4: $sum4:ident, rotate: $rotate:ident,
        transpose4: $transpose4:ident
        $(, half: $widen:ident $narrow:ident)?
        $(, transpose: $transpose:ident)?
        $(, sum8: $sum8:ident)?
    ) => {
        impl SimdVector for $vector {
            type Scalar = $scalar;
            type Mask = $mask;
            const WIDTH: usize = $width;
            const HAS_32_REGISTERS: bool = $has_32_registers;

            #[inline(always)]
            unsafe fn outline(kernel: impl FnOnce()) {
                #[target_feature(enable = $features)]
                #[inline(never)]
                fn run(kernel: impl FnOnce()) {
                    kernel();
                }
                // SAFETY: the callers of the trait's functions guarantee the processor's features.
                unsafe { run(kernel) };
            }

            methods! {
                splat(x: $scalar) -> Self = $splat(x);
                load(p: *const $scalar) -> Self = $load(p);
                load_first(p: *const $scalar, count: usize) -> Self =
                    $load_masked(p, $mask_first(count));
                mask(start: usize, end: usize) -> $mask = $mask_range(start, end);
                load_masked(p: *const $scalar, mask: $mask) -> Self = $load_masked(p, mask);
                load_merge(self, p: *const $scalar, mask: $mask) -> Self =
                    $load_merge(self, p, mask);
                store(self, p: *mut $scalar) = $store(p, self);
                store_first(self, p: *mut $scalar, count: usize) =
                    $store_masked(p, $mask_first(count), self);
                store_masked(self, p: *mut $scalar, mask: $mask) = $store_masked(p, mask, self);
                add(self, x: Self) -> Self = $add(self, x);
                mul(self, x: Self) -> Self = $mul(self, x);
                mul_add(self, x: Self, y: Self) -> Self = $mul_add(self, x, y);
                horizontal_sum4(vectors: [Self; 4]) -> [$scalar; 4] = $sum4(vectors);
                rotate(self, count: usize) -> Self = $rotate(self, count);
                store_transposed4(v: [Self; 4], count: usize, p: *mut $scalar, stride: usize) =
                    $transpose4(v, count, p, stride);
                $(
                    transpose(rows: [*const $scalar; MAX_LANES], p: *mut $scalar, stride: usize) =
                        $transpose(rows, p, stride);
                )?
                $(
                    horizontal_sum8(vectors: [Self; 8]) -> Self = $sum8(vectors);
                )?
            }

            $(
                #[inline(always)]
                unsafe fn widen<T: Element<Acc = $scalar>>(p: *const T, count: usize) -> Self {
                    // SAFETY: the callers of the trait's functions meet the requirements of the
                    // called function, and a `T` that is narrower than `T::Acc` has 16 bits.
                    unsafe { $widen(p, count) }
                }

                #[inline(always)]
                unsafe fn narrow<T: Element<Acc = $scalar>>(self, p: *mut T, count: usize) {
                    // SAFETY: the callers of the trait's functions meet the requirements of the
                    // called function, and a `T` that is narrower than `T::Acc` has 16 bits.
                    unsafe { $narrow(self, p, count) };
                }
            )?
        }
    };
}

simd_vector!(
    __m512, f32, 16, "avx512f,avx512bw,avx512dq,avx512vl", 32 registers: true,
    mask: __mmask16, mask_first_512 mask_range_512,
    load: _mm512_set1_ps _mm512_loadu_ps load_masked_512 load_merge_512,
    store: _mm512_storeu_ps _mm512_mask_storeu_ps,
    arithmetic: _mm512_add_ps _mm512_mul_ps _mm512_fmadd_ps, sum4: sum4_512, rotate: rotate_512,
    transpose4: transpose4_512, half: widen_512 narrow_512,
    transpose: transpose_512, sum8: sum8_512
);
simd_vector!(
    __m512d, f64, 8, "avx512f,avx512bw,avx512dq,avx512vl", 32 registers: true,
    mask: __mmask8, mask_first_512d mask_range_512d,
    load: _mm512_set1_pd _mm512_loadu_pd load_masked_512d load_merge_512d,
    store: _mm512_storeu_pd _mm512_mask_storeu_pd,
    arithmetic: _mm512_add_pd _mm512_mul_pd _mm512_fmadd_pd, sum4: sum4_512d, rotate: rotate_512d,
    transpose4: transpose4_512d, transpose: transpose_512d, sum8: sum8_512d
);
simd_vector!(
    __m256, f32, 8, "avx2,fma,f16c", 32 registers: false,
    mask: __m256i, mask_first_256 mask_range_256,
    load: _mm256_set1_ps _mm256_loadu_ps _mm256_maskload_ps load_merge_256,
    store: _mm256_storeu_ps _mm256_maskstore_ps,
    arithmetic: _mm256_add_ps _mm256_mul_ps _mm256_fmadd_ps, sum4: sum4_256, rotate: rotate_256,
    transpose4: transpose4_256, half: widen_256 narrow_256, sum8: sum8_256
);
simd_vector!(
    __m256d, f64, 4, "avx2,fma,f16c", 32 registers: false,
    mask: __m256i, mask_first_256d mask_range_256d,
    load: _mm256_set1_pd _mm256_loadu_pd _mm256_maskload_pd load_merge_256d,
    store: _mm256_storeu_pd _mm256_maskstore_pd,
    arithmetic: _mm256_add_pd _mm256_mul_pd _mm256_fmadd_pd, sum4: sum4_256d, rotate: rotate_256d,
    transpose4: transpose4_256d
);

/// Defines an unsafe function that is inlined into callers compiled for the features of the vector
/// type.
///
/// # Safety
/// The requirements of the implemented [`SimdVector`] function hold: the processor has the
/// features, and pointers are valid for the elements accessed.
macro_rules! simd_fn {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $result:ty { $body:expr }) => {
        $(#[$doc])*
        #[inline(always)]
        unsafe fn $name($($arg: $ty),*) -> $result {
            // SAFETY: the body consists of intrinsics whose features the caller guarantees, and
            // accesses only elements that the caller guarantees.
            unsafe { $body }
        }
    };
}

simd_fn!(load_masked_512(p: *const f32, mask: __mmask16) -> __m512 {
    _mm512_maskz_loadu_ps(mask, p)
});
simd_fn!(load_masked_512d(p: *const f64, mask: __mmask8) -> __m512d {
    _mm512_maskz_loadu_pd(mask, p)
});
simd_fn!(load_merge_512(v: __m512, p: *const f32, mask: __mmask16) -> __m512 {
    _mm512_mask_loadu_ps(v, mask, p)
});
simd_fn!(load_merge_512d(v: __m512d, p: *const f64, mask: __mmask8) -> __m512d {
    _mm512_mask_loadu_pd(v, mask, p)
});
simd_fn!(load_merge_256(v: __m256, p: *const f32, mask: __m256i) -> __m256 {
    _mm256_blendv_ps(v, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask))
});
simd_fn!(load_merge_256d(v: __m256d, p: *const f64, mask: __m256i) -> __m256d {
    _mm256_blendv_pd(v, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask))
});

fn mask_first_512(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

fn mask_first_512d(count: usize) -> __mmask8 {
    ((1u32 << count) - 1) as __mmask8
}

fn mask_range_512(start: usize, end: usize) -> __mmask16 {
    mask_first_512(end) & !mask_first_512(start)
}

fn mask_range_512d(start: usize, end: usize) -> __mmask8 {
    mask_first_512d(end) & !mask_first_512d(start)
}

simd_fn!(mask_range_256(start: usize, end: usize) -> __m256i {
    _mm256_andnot_si256(mask_first_256(start), mask_first_256(end))
});
simd_fn!(mask_range_256d(start: usize, end: usize) -> __m256i {
    _mm256_andnot_si256(mask_first_256d(start), mask_first_256d(end))
});
simd_fn!(mask_first_256(count: usize) -> __m256i {
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
});
simd_fn!(mask_first_256d(count: usize) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3))
});
// One addition adds the two halves of vector `a`, and at the same time those of vector `b`. A blend
// combines the lower half of `a` with the upper half of `b`, and a shuffle combines the other two
// halves. One of the two is a blend, because a blend does not occupy the processor's shuffle unit.
simd_fn!(
    /// Adds the two halves of `a`, and the two halves of `b`. The lower half of the result is the
    /// sum for `a`, and the upper half the sum for `b`.
    add_halves_256(a: __m256, b: __m256) -> __m256 {
        _mm256_add_ps(_mm256_blend_ps::<0xf0>(a, b), _mm256_permute2f128_ps::<0x21>(a, b))
    }
);
simd_fn!(
    /// Adds the two halves of each 128-bit half of `a`, and of each 128-bit half of `b`. In each
    /// 128-bit half of the result, the lower half is the sum for `a`.
    add_quarters_256(a: __m256, b: __m256) -> __m256 {
        _mm256_add_ps(_mm256_blend_ps::<0b1100_1100>(a, b), _mm256_shuffle_ps::<0x4e>(a, b))
    }
);
simd_fn!(sum4_256(v: [__m256; 4]) -> [f32; 4] {{
    let pairs = add_quarters_256(add_halves_256(v[0], v[2]), add_halves_256(v[1], v[3]));
    let (a, b) = (_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
    let sums = _mm_add_ps(_mm_shuffle_ps::<0x88>(a, b), _mm_shuffle_ps::<0xdd>(a, b));
    std::mem::transmute::<__m128, [f32; 4]>(sums)
}});
simd_fn!(sum8_256(v: [__m256; 8]) -> __m256 {{
    let a = add_quarters_256(add_halves_256(v[0], v[4]), add_halves_256(v[1], v[5]));
    let b = add_quarters_256(add_halves_256(v[2], v[6]), add_halves_256(v[3], v[7]));
    _mm256_add_ps(_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b))
}});
simd_fn!(
    /// Adds the two halves of `a`, and the two halves of `b`. The lower half of the result is the
    /// sum for `a`, and the upper half the sum for `b`.
    add_halves_256d(a: __m256d, b: __m256d) -> __m256d {
        _mm256_add_pd(_mm256_blend_pd::<0b1100>(a, b), _mm256_permute2f128_pd::<0x21>(a, b))
    }
);
simd_fn!(sum4_256d(v: [__m256d; 4]) -> [f64; 4] {{
    let (a, b) = (add_halves_256d(v[0], v[2]), add_halves_256d(v[1], v[3]));
    let sums =
        _mm256_add_pd(_mm256_blend_pd::<0b1010>(a, b), _mm256_shuffle_pd::<0b0101>(a, b));
    std::mem::transmute::<__m256d, [f64; 4]>(sums)
}});
simd_fn!(add_halves_512(v: __m512) -> __m256 {{
    let upper_half = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
    _mm256_add_ps(_mm512_castps512_ps256(v), upper_half)
}});
simd_fn!(add_halves_512d(v: __m512d) -> __m256d {
    _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd::<1>(v))
});
simd_fn!(sum4_512(v: [__m512; 4]) -> [f32; 4] {{
    let [a, b, c, d] = v;
    sum4_256([add_halves_512(a), add_halves_512(b), add_halves_512(c), add_halves_512(d)])
}});
simd_fn!(sum4_512d(v: [__m512d; 4]) -> [f64; 4] {{
    let [a, b, c, d] = v;
    sum4_256d([add_halves_512d(a), add_halves_512d(b), add_halves_512d(c), add_halves_512d(d)])
}});

// Permutation instructions use only the low bits of each index, so indices wrap around in a
// rotation.
simd_fn!(rotate_512(v: __m512, count: usize) -> __m512 {{
    let indices = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_permutexvar_ps(_mm512_add_epi32(indices, _mm512_set1_epi32(count as i32)), v)
}});
simd_fn!(rotate_512d(v: __m512d, count: usize) -> __m512d {{
    let indices = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    _mm512_permutexvar_pd(_mm512_add_epi64(indices, _mm512_set1_epi64(count as i64)), v)
}});
simd_fn!(rotate_256(v: __m256, count: usize) -> __m256 {{
    let indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_permutevar8x32_ps(v, _mm256_add_epi32(indices, _mm256_set1_epi32(count as i32)))
}});
simd_fn!(rotate_256d(v: __m256d, count: usize) -> __m256d {
    _mm256_castps_pd(rotate_256(_mm256_castpd_ps(v), 2 * count))
});

/// Defines `store_transposed4` for `f32`, which transposes a 4×4 matrix in each 128-bit quarter.
macro_rules! transpose4 {
    ($name:ident, $vector:ty, $quarters:literal, $low:ident $high:ident
        $low_pair:ident $high_pair:ident, $pairs:ident, $singles:ident) => {
        simd_fn!($name(v: [$vector; 4], count: usize, p: *mut f32, stride: usize) -> () {{
            let (a, b) = ($pairs($low(v[0], v[1])), $pairs($high(v[0], v[1])));
            let (c, d) = ($pairs($low(v[2], v[3])), $pairs($high(v[2], v[3])));
            let [a, b, c, d] =
                [$low_pair(a, c), $high_pair(a, c), $low_pair(b, d), $high_pair(b, d)];
            let rows = [$singles(a), $singles(b), $singles(c), $singles(d)];
            let rows = std::mem::transmute::<[$vector; 4], [[__m128; $quarters]; 4]>(rows);
            let store_row = |i: usize| _mm_storeu_ps(p.add(i * stride), rows[i % 4][i / 4]);
            // The loop over rows is unrolled by hand, so that all indices are constants and `rows`
            // stays in registers.
            for quarter in 0..$quarters {
                if count > 4 * quarter {
                    store_row(4 * quarter);
                    store_row(4 * quarter + 1);
                    store_row(4 * quarter + 2);
                    store_row(4 * quarter + 3);
                }
            }
        }});
    };
}

/// Defines `store_transposed4` for `f64`. A 128-bit quarter of the four vectors holds two 2×2
/// matrices, each of which is transposed separately.
macro_rules! transpose4_d {
    ($name:ident, $vector:ty, $quarters:literal, $low:ident $high:ident) => {
        simd_fn!($name(v: [$vector; 4], count: usize, p: *mut f64, stride: usize) -> () {{
            let left_halves = [$low(v[0], v[1]), $high(v[0], v[1])];
            let right_halves = [$low(v[2], v[3]), $high(v[2], v[3])];
            let left_halves =
                std::mem::transmute::<[$vector; 2], [[__m128d; $quarters]; 2]>(left_halves);
            let right_halves =
                std::mem::transmute::<[$vector; 2], [[__m128d; $quarters]; 2]>(right_halves);
            let store_row = |i: usize| {
                _mm_storeu_pd(p.add(i * stride), left_halves[i % 2][i / 2]);
                _mm_storeu_pd(p.add(i * stride + 2), right_halves[i % 2][i / 2]);
            };
            for quarter in 0..$quarters {
                if count > 2 * quarter {
                    store_row(2 * quarter);
                    store_row(2 * quarter + 1);
                }
            }
        }});
    };
}

transpose4!(
    transpose4_512, __m512, 4, _mm512_unpacklo_ps _mm512_unpackhi_ps
    _mm512_unpacklo_pd _mm512_unpackhi_pd, _mm512_castps_pd, _mm512_castpd_ps
);
transpose4!(
    transpose4_256, __m256, 2, _mm256_unpacklo_ps _mm256_unpackhi_ps
    _mm256_unpacklo_pd _mm256_unpackhi_pd, _mm256_castps_pd, _mm256_castpd_ps
);
transpose4_d!(transpose4_512d, __m512d, 4, _mm512_unpacklo_pd _mm512_unpackhi_pd);
transpose4_d!(transpose4_256d, __m256d, 2, _mm256_unpacklo_pd _mm256_unpackhi_pd);

/// Defines a function for the first two steps of the horizontal sums of four vectors. The function
/// adds the two halves of each vector, and then the two halves of each sum. The 128-bit quarter `i`
/// of the result is the partial sum of `v[i]`.
macro_rules! add_quarters {
    ($name:ident, $vector:ty, $add:ident $to_f64:ident $from_f64:ident) => {
        simd_fn!($name(v: [$vector; 4]) -> $vector {{
            let add = |a, b| $to_f64($add($from_f64(a), $from_f64(b)));
            let add_halves = |a, b| {
                let (a, b) = ($to_f64(a), $to_f64(b));
                add(_mm512_mask_blend_pd(0xf0, a, b), _mm512_shuffle_f64x2::<0x4e>(a, b))
            };
            let (a, b) = (add_halves(v[0], v[2]), add_halves(v[1], v[3]));
            let odd_even = _mm512_mask_blend_pd(0b1100_1100, b, a);
            let sums = add(
                _mm512_mask_blend_pd(0b1100_1100, a, b),
                _mm512_shuffle_f64x2::<0xb1>(odd_even, odd_even),
            );
            $from_f64(sums)
        }});
    };
}
add_quarters!(add_quarters_512, __m512, _mm512_add_ps _mm512_castps_pd _mm512_castpd_ps);
add_quarters!(add_quarters_512d, __m512d, _mm512_add_pd identity identity);

fn identity(v: __m512d) -> __m512d {
    v
}

simd_fn!(sum8_512d(v: [__m512d; 8]) -> __m512d {{
    let a = add_quarters_512d([v[0], v[2], v[4], v[6]]);
    let b = add_quarters_512d([v[1], v[3], v[5], v[7]]);
    _mm512_add_pd(_mm512_mask_blend_pd(0xaa, a, b), _mm512_shuffle_pd::<0x55>(a, b))
}});
simd_fn!(sum8_512(v: [__m512; 8]) -> __m512 {{
    let a = add_quarters_512([v[0], v[2], v[4], v[6]]);
    let b = add_quarters_512([v[1], v[3], v[5], v[7]]);
    let pairs = _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps::<0x4e>(a, b));
    let sums = _mm512_add_ps(pairs, _mm512_permute_ps::<0xb1>(pairs));
    // Elements `2·i` and `2·i + 1` of `sums` both hold the sum of `v[i]`.
    let indices = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14);
    _mm512_permutexvar_ps(indices, sums)
}});
simd_fn!(
    /// Loads elements `i..i + 4` of every fourth row, from row `first` on. Inserting a 128-bit
    /// quarter that is loaded from memory does not occupy the processor's shuffle unit.
    load_quarters_512(rows: &[*const f32; MAX_LANES], first: usize, i: usize) -> __m512 {{
        let quarter = |row: usize| _mm_loadu_ps(rows[first + row].add(i));
        let x = _mm512_castps128_ps512(quarter(0));
        let x = _mm512_insertf32x4::<1>(x, quarter(4));
        let x = _mm512_insertf32x4::<2>(x, quarter(8));
        _mm512_insertf32x4::<3>(x, quarter(12))
    }}
);
simd_fn!(
    /// Loads elements `i..i + 4` of rows `row` and `row + 2`.
    load_halves_512d(rows: &[*const f64; MAX_LANES], row: usize, i: usize) -> __m512d {{
        let x = _mm512_castpd256_pd512(_mm256_loadu_pd(rows[row].add(i)));
        _mm512_insertf64x4::<1>(x, _mm256_loadu_pd(rows[row + 2].add(i)))
    }}
);
simd_fn!(transpose_512(rows: [*const f32; MAX_LANES], p: *mut f32, stride: usize) -> () {
    for i in (0..16).step_by(4) {
        let (a, b) = (load_quarters_512(&rows, 0, i), load_quarters_512(&rows, 1, i));
        let (c, d) = (load_quarters_512(&rows, 2, i), load_quarters_512(&rows, 3, i));
        let pairs = |a, b| {
            let (low, high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            (_mm512_castps_pd(low), _mm512_castps_pd(high))
        };
        let ((a, b), (c, d)) = (pairs(a, b), pairs(c, d));
        let rows = [
            _mm512_unpacklo_pd(a, c),
            _mm512_unpackhi_pd(a, c),
            _mm512_unpacklo_pd(b, d),
            _mm512_unpackhi_pd(b, d),
        ];
        for (j, row) in rows.into_iter().enumerate() {
            _mm512_storeu_ps(p.add((i + j) * stride), _mm512_castpd_ps(row));
        }
    }
});
simd_fn!(transpose_512d(rows: [*const f64; MAX_LANES], p: *mut f64, stride: usize) -> () {
    for i in (0..8).step_by(4) {
        let (a, b) = (load_halves_512d(&rows, 0, i), load_halves_512d(&rows, 1, i));
        let (c, d) = (load_halves_512d(&rows, 4, i), load_halves_512d(&rows, 5, i));
        let (even, odd) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
        let (even_2, odd_2) = (_mm512_unpacklo_pd(c, d), _mm512_unpackhi_pd(c, d));
        let rows = [
            _mm512_shuffle_f64x2::<0x88>(even, even_2),
            _mm512_shuffle_f64x2::<0x88>(odd, odd_2),
            _mm512_shuffle_f64x2::<0xdd>(even, even_2),
            _mm512_shuffle_f64x2::<0xdd>(odd, odd_2),
        ];
        for (j, row) in rows.into_iter().enumerate() {
            _mm512_storeu_pd(p.add((i + j) * stride), row);
        }
    }
});
