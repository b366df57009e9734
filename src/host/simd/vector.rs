//! Vectors of one processor: the few operations that the direct kernels are written in.

use crate::{element::Element, host::simd::accumulator::is_wide};
use num_traits::{Float, Zero};

/// A vector register.
///
/// # Safety
/// Everything here may only be called where the processor has the features the implementor is
/// named after, from functions compiled for them.
#[allow(unsafe_code)]
pub(crate) trait SimdVector: Copy {
    /// One element.
    type Scalar: Element + Float;
    /// Elements in a vector.
    const WIDTH: usize;
    /// Whether there are 32 registers rather than 16.
    const MANY: bool;
    /// All elements `x`.
    unsafe fn splat(x: Self::Scalar) -> Self;
    /// The elements at `p`, which need not be aligned.
    unsafe fn load(p: *const Self::Scalar) -> Self;
    /// The first `count` elements at `p`, the others zero and not read.
    unsafe fn load_first(p: *const Self::Scalar, count: usize) -> Self;
    /// Which elements of a vector are meant.
    type Mask: Copy;
    /// Elements `start..end`.
    unsafe fn mask(start: usize, end: usize) -> Self::Mask;
    /// The elements at `p` that are meant, the others zero and not read.
    unsafe fn load_masked(p: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// The elements at `p` that are meant, in the place of `self`'s.
    unsafe fn load_merge(self, p: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// The first `count` elements at `p`, widened where they are narrower, the others zero and not
    /// read.
    #[inline(always)]
    unsafe fn load_as<T: Element<Acc = Self::Scalar>>(p: *const T, count: usize) -> Self {
        // SAFETY: the caller's; what is wide is of this type.
        unsafe {
            if is_wide::<T>() { Self::load_first(p.cast(), count) } else { Self::widen(p, count) }
        }
    }
    /// The first `count` of narrower elements.
    #[inline(always)]
    unsafe fn widen<T: Element<Acc = Self::Scalar>>(p: *const T, count: usize) -> Self {
        let mut room = [Self::Scalar::zero(); MAX_LANES];
        for (i, x) in room.iter_mut().enumerate().take(count) {
            // SAFETY: the caller's: `count` elements at `p`.
            *x = unsafe { *p.add(i) }.to_acc();
        }
        // SAFETY: no vector is longer.
        unsafe { Self::load(room.as_ptr()) }
    }
    /// Writes all elements to `p`, which need not be aligned.
    unsafe fn store(self, p: *mut Self::Scalar);
    /// Writes the first `count` elements to `p` and nothing else.
    unsafe fn store_first(self, p: *mut Self::Scalar, count: usize);
    /// Writes the elements that are meant to `p` and nothing else.
    unsafe fn store_masked(self, p: *mut Self::Scalar, mask: Self::Mask);
    /// Writes the first `count` elements to `p`, rounded to nearest, ties to even, where those there
    /// are narrower, and nothing else.
    #[inline(always)]
    unsafe fn store_as<T: Element<Acc = Self::Scalar>>(self, p: *mut T, count: usize) {
        // SAFETY: the caller's; what is wide is of this type.
        unsafe {
            if is_wide::<T>() { self.store_first(p.cast(), count) } else { self.narrow(p, count) }
        }
    }
    /// The same of narrower elements.
    #[inline(always)]
    unsafe fn narrow<T: Element<Acc = Self::Scalar>>(self, p: *mut T, count: usize) {
        let mut room = [Self::Scalar::zero(); MAX_LANES];
        // SAFETY: no vector is longer; the caller's: room for `count` elements at `p`.
        unsafe {
            self.store(room.as_mut_ptr());
            for (i, &x) in room.iter().enumerate().take(count) {
                *p.add(i) = T::from_acc(x);
            }
        }
    }
    /// Says that what lies at `p` will soon be used, if the processor listens; it need not be
    /// readable.
    #[inline(always)]
    unsafe fn prefetch(p: *const Self::Scalar) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing that a program could see.
            #[allow(unused_unsafe)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(p.cast());
            }
        }
        let _ = p;
    }
    /// `self + x`.
    unsafe fn add(self, x: Self) -> Self;
    /// `self · x`.
    unsafe fn mul(self, x: Self) -> Self;
    /// `self · x + y`, rounded once where the processor can.
    unsafe fn mul_add(self, x: Self, y: Self) -> Self;
    /// The sum of the elements of each.
    unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [Self::Scalar; 4];
    /// The sum of the elements of each, in a vector: of all eight, or as many as it has elements.
    #[inline(always)]
    unsafe fn horizontal_sum8(vectors: [Self; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = vectors;
        // SAFETY: the caller has the instructions; what is loaded is there.
        unsafe {
            let [a, b, c, d] = Self::horizontal_sum4([a, b, c, d]);
            let [e, f, g, h] = Self::horizontal_sum4([e, f, g, h]);
            Self::load_first([a, b, c, d, e, f, g, h].as_ptr(), Self::WIDTH.min(8))
        }
    }
    /// Element `i` is what was `by` further on, all the way round.
    unsafe fn rotate(self, by: usize) -> Self;
    /// Writes their elements `i` side by side to `p + i·step`, for `i < count` and up to three
    /// more.
    unsafe fn store_transposed4(
        vectors: [Self; 4],
        count: usize,
        p: *mut Self::Scalar,
        step: usize,
    );
    /// Writes elements `i` of as many lines as a vector has elements, of which `lines` tells where
    /// they begin, side by side to `p + i·step`, for all `i` of a vector.
    #[inline(always)]
    unsafe fn transpose(
        lines: [*const Self::Scalar; MAX_LANES],
        p: *mut Self::Scalar,
        step: usize,
    ) {
        // SAFETY: the caller's: a vector at each of these lines, room for one at each place.
        // Backwards: nothing is written beyond the last of the lines.
        unsafe {
            for four in (0..Self::WIDTH).step_by(4).rev() {
                let mut vectors = [Self::splat(Self::Scalar::zero()); 4];
                for (j, vector) in vectors.iter_mut().enumerate() {
                    *vector = Self::load(lines[four + j]);
                }
                Self::store_transposed4(vectors, Self::WIDTH, p.add(four), step);
            }
        }
    }
}

/// Most elements of a vector.
pub(crate) const MAX_LANES: usize = 16;

/// What compilers make of arrays of four: for processors not named below.
#[allow(unsafe_code)]
impl<S: Element + Float> SimdVector for [S; 4] {
    type Scalar = S;
    type Mask = [bool; 4];
    const WIDTH: usize = 4;
    const MANY: bool = false;

    #[inline(always)]
    unsafe fn splat(x: S) -> Self {
        [x; 4]
    }

    #[inline(always)]
    unsafe fn load(p: *const S) -> Self {
        // SAFETY: the caller's: four elements at `p`.
        unsafe { p.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const S, count: usize) -> Self {
        // SAFETY: the caller's: `count` elements at `p`.
        std::array::from_fn(|i| if i < count { unsafe { *p.add(i) } } else { S::zero() })
    }

    #[inline(always)]
    unsafe fn mask(start: usize, end: usize) -> Self::Mask {
        std::array::from_fn(|i| (start..end).contains(&i))
    }

    #[inline(always)]
    unsafe fn load_masked(p: *const S, mask: Self::Mask) -> Self {
        // SAFETY: the caller's: these elements at `p`.
        std::array::from_fn(|i| if mask[i] { unsafe { *p.wrapping_add(i) } } else { S::zero() })
    }

    #[inline(always)]
    unsafe fn load_merge(self, p: *const S, mask: Self::Mask) -> Self {
        // SAFETY: the caller's: these elements at `p`.
        std::array::from_fn(|i| if mask[i] { unsafe { *p.wrapping_add(i) } } else { self[i] })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut S) {
        // SAFETY: the caller's: room for four elements at `p`.
        unsafe { p.cast::<Self>().write_unaligned(self) };
    }

    #[inline(always)]
    unsafe fn store_first(self, p: *mut S, count: usize) {
        for (i, x) in self.into_iter().take(count).enumerate() {
            // SAFETY: the caller's: room for `count` elements at `p`.
            unsafe { *p.add(i) = x };
        }
    }

    #[inline(always)]
    unsafe fn store_masked(self, p: *mut S, mask: Self::Mask) {
        for (i, x) in self.into_iter().enumerate() {
            if mask[i] {
                // SAFETY: the caller's: room for these elements at `p`.
                unsafe { *p.wrapping_add(i) = x };
            }
        }
    }

    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        std::array::from_fn(|i| self[i] + x[i])
    }

    #[inline(always)]
    unsafe fn mul(self, x: Self) -> Self {
        std::array::from_fn(|i| self[i] * x[i])
    }

    #[inline(always)]
    unsafe fn mul_add(self, x: Self, y: Self) -> Self {
        std::array::from_fn(|i| self[i] * x[i] + y[i])
    }

    #[inline(always)]
    unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [S; 4] {
        vectors.map(|v| (v[0] + v[2]) + (v[1] + v[3]))
    }

    #[inline(always)]
    unsafe fn rotate(self, by: usize) -> Self {
        std::array::from_fn(|i| self[(i + by) % 4])
    }

    #[inline(always)]
    unsafe fn store_transposed4(vectors: [Self; 4], count: usize, p: *mut S, step: usize) {
        for i in 0..count {
            // SAFETY: the caller's: room for four elements at each of these places.
            unsafe { p.add(i * step).cast::<Self>().write_unaligned(vectors.map(|v| v[i])) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{MAX_LANES, SimdVector};
    use crate::{
        element::Element,
        host::simd::x86::half::{narrow_256, narrow_512, widen_256, widen_512},
    };
    use std::arch::x86_64::*;

    macro_rules! lanes {
        (
            $vector:ty, $scalar:ty, $width:expr, $many:expr,
            $mask:ty, $first:ident $range:ident, $sums:ident, $rotate:ident, $interleave:ident,
            $splat:ident $load:ident $load_first:ident $load_onto:ident
            $store:ident $store_first:ident $add:ident $mul:ident $mul_add:ident
            $(, $widen:ident $narrow:ident)?
            $(; $transpose:ident $fold:ident)?
        ) => {
            // SAFETY: of every block below: the processor has the instructions and the pointers
            // are good for the elements, as the trait requires of its callers; masked loads and
            // stores touch nothing past `count`.
            #[allow(unsafe_code, clippy::undocumented_unsafe_blocks)]
            impl SimdVector for $vector {
                type Scalar = $scalar;
                type Mask = $mask;
                const WIDTH: usize = $width;
                const MANY: bool = $many;

                #[inline(always)]
                unsafe fn splat(x: $scalar) -> Self {
                    unsafe { $splat(x) }
                }

                #[inline(always)]
                unsafe fn load(p: *const $scalar) -> Self {
                    unsafe { $load(p) }
                }

                #[inline(always)]
                unsafe fn load_first(p: *const $scalar, count: usize) -> Self {
                    unsafe { $load_first(p, $first(count)) }
                }

                // Of some vectors masks are numbers.
                #[allow(unused_unsafe)]
                #[inline(always)]
                unsafe fn mask(start: usize, end: usize) -> $mask {
                    unsafe { $range(start, end) }
                }

                #[inline(always)]
                unsafe fn load_masked(p: *const $scalar, mask: $mask) -> Self {
                    unsafe { $load_first(p, mask) }
                }

                #[inline(always)]
                unsafe fn load_merge(self, p: *const $scalar, mask: $mask) -> Self {
                    unsafe { $load_onto(self, p, mask) }
                }

                $(
                    #[inline(always)]
                    unsafe fn widen<T: Element<Acc = $scalar>>(p: *const T, count: usize) -> Self {
                        unsafe { $widen(p, count) }
                    }

                    #[inline(always)]
                    unsafe fn narrow<T: Element<Acc = $scalar>>(self, p: *mut T, count: usize) {
                        unsafe { $narrow(self, p, count) };
                    }
                )?

                #[inline(always)]
                unsafe fn store(self, p: *mut $scalar) {
                    unsafe { $store(p, self) };
                }

                #[inline(always)]
                unsafe fn store_first(self, p: *mut $scalar, count: usize) {
                    unsafe { $store_first(p, $first(count), self) };
                }

                #[inline(always)]
                unsafe fn store_masked(self, p: *mut $scalar, mask: $mask) {
                    unsafe { $store_first(p, mask, self) };
                }

                #[inline(always)]
                unsafe fn add(self, x: Self) -> Self {
                    unsafe { $add(self, x) }
                }

                #[inline(always)]
                unsafe fn mul(self, x: Self) -> Self {
                    unsafe { $mul(self, x) }
                }

                #[inline(always)]
                unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                    unsafe { $mul_add(self, x, y) }
                }

                #[inline(always)]
                unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [$scalar; 4] {
                    unsafe { $sums(vectors) }
                }

                #[inline(always)]
                unsafe fn rotate(self, by: usize) -> Self {
                    unsafe { $rotate(self, by) }
                }

                #[inline(always)]
                unsafe fn store_transposed4(v: [Self; 4], count: usize, p: *mut $scalar, step: usize) {
                    unsafe { $interleave(v, count, p, step) };
                }

                $(
                    #[inline(always)]
                    unsafe fn transpose(
                        lines: [*const $scalar; MAX_LANES],
                        p: *mut $scalar,
                        step: usize,
                    ) {
                        unsafe { $transpose(lines, p, step) };
                    }

                    #[inline(always)]
                    unsafe fn horizontal_sum8(vectors: [Self; 8]) -> Self {
                        unsafe { $fold(vectors) }
                    }
                )?
            }
        };
    }

    /// Stamps a function of the features its vectors need, inlined into such functions.
    macro_rules! helper {
        ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $result:ty { $body:expr }) => {
            $(#[$doc])*
            #[allow(unsafe_code)]
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) -> $result {
                // SAFETY: the caller's: the instructions are there, pointers are good.
                unsafe { $body }
            }
        };
    }

    helper!(load_512(p: *const f32, mask: __mmask16) -> __m512 { _mm512_maskz_loadu_ps(mask, p) });
    helper!(load_512d(p: *const f64, mask: __mmask8) -> __m512d { _mm512_maskz_loadu_pd(mask, p) });
    helper!(onto_512(v: __m512, p: *const f32, mask: __mmask16) -> __m512 {
        _mm512_mask_loadu_ps(v, mask, p)
    });
    helper!(onto_512d(v: __m512d, p: *const f64, mask: __mmask8) -> __m512d {
        _mm512_mask_loadu_pd(v, mask, p)
    });
    helper!(onto_256(v: __m256, p: *const f32, mask: __m256i) -> __m256 {
        _mm256_blendv_ps(v, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask))
    });
    helper!(onto_256d(v: __m256d, p: *const f64, mask: __m256i) -> __m256d {
        _mm256_blendv_pd(v, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask))
    });

    /// A mask of the first elements.
    fn first_512(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }

    /// A mask of the first elements.
    fn first_512d(count: usize) -> __mmask8 {
        ((1u32 << count) - 1) as __mmask8
    }

    /// A mask of some elements.
    fn range_512(start: usize, end: usize) -> __mmask16 {
        first_512(end) & !first_512(start)
    }

    /// A mask of some elements.
    fn range_512d(start: usize, end: usize) -> __mmask8 {
        first_512d(end) & !first_512d(start)
    }

    helper!(range_256(start: usize, end: usize) -> __m256i {
        _mm256_andnot_si256(first_256(start), first_256(end))
    });
    helper!(range_256d(start: usize, end: usize) -> __m256i {
        _mm256_andnot_si256(first_256d(start), first_256d(end))
    });
    helper!(first_256(count: usize) -> __m256i {
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    });
    helper!(first_256d(count: usize) -> __m256i {
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3))
    });
    helper!(
        /// Sums of elements, neighbours first.
        sums_256(v: [__m256; 4]) -> [f32; 4] {{
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
            let high = _mm256_extractf128_ps::<1>(pairs);
            std::mem::transmute::<__m128, [f32; 4]>(_mm_add_ps(_mm256_castps256_ps128(pairs), high))
        }}
    );
    helper!(
        /// Sums of elements, neighbours first.
        sums_256d(v: [__m256d; 4]) -> [f64; 4] {{
            let (low, high) = (_mm256_hadd_pd(v[0], v[1]), _mm256_hadd_pd(v[2], v[3]));
            let even = _mm256_permute2f128_pd::<0x20>(low, high);
            let odd = _mm256_permute2f128_pd::<0x31>(low, high);
            std::mem::transmute::<__m256d, [f64; 4]>(_mm256_add_pd(even, odd))
        }}
    );
    helper!(halves(v: __m512) -> __m256 {{
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
        _mm256_add_ps(_mm512_castps512_ps256(v), high)
    }});
    helper!(halves_d(v: __m512d) -> __m256d {
        _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd::<1>(v))
    });
    helper!(sums_512(v: [__m512; 4]) -> [f32; 4] {
        sums_256([halves(v[0]), halves(v[1]), halves(v[2]), halves(v[3])])
    });
    helper!(sums_512d(v: [__m512d; 4]) -> [f64; 4] {
        sums_256d([halves_d(v[0]), halves_d(v[1]), halves_d(v[2]), halves_d(v[3])])
    });

    // Of places only the last bits are looked at.
    helper!(rotate_512(v: __m512, by: usize) -> __m512 {{
        let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm512_permutexvar_ps(_mm512_add_epi32(places, _mm512_set1_epi32(by as i32)), v)
    }});
    helper!(rotate_512d(v: __m512d, by: usize) -> __m512d {{
        let places = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        _mm512_permutexvar_pd(_mm512_add_epi64(places, _mm512_set1_epi64(by as i64)), v)
    }});
    helper!(rotate_256(v: __m256, by: usize) -> __m256 {{
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_permutevar8x32_ps(v, _mm256_add_epi32(places, _mm256_set1_epi32(by as i32)))
    }});
    helper!(rotate_256d(v: __m256d, by: usize) -> __m256d {
        _mm256_castps_pd(rotate_256(_mm256_castpd_ps(v), 2 * by))
    });

    /// Stamps `interleave` of `f32`: in each quarter of 128 bits a 4×4 transposition.
    macro_rules! interleave {
        ($name:ident, $vector:ty, $quarters:literal, $low:ident $high:ident
            $low_pair:ident $high_pair:ident, $pairs:ident, $singles:ident) => {
            helper!($name(v: [$vector; 4], count: usize, p: *mut f32, step: usize) -> () {{
                let (a, b) = ($pairs($low(v[0], v[1])), $pairs($high(v[0], v[1])));
                let (c, d) = ($pairs($low(v[2], v[3])), $pairs($high(v[2], v[3])));
                let [a, b, c, d] =
                    [$low_pair(a, c), $high_pair(a, c), $low_pair(b, d), $high_pair(b, d)];
                let rows = [$singles(a), $singles(b), $singles(c), $singles(d)];
                let rows = std::mem::transmute::<[$vector; 4], [[__m128; $quarters]; 4]>(rows);
                let put = |i: usize| _mm_storeu_ps(p.add(i * step), rows[i % 4][i / 4]);
                // All indices are constants, so that nothing goes through memory.
                for quarter in 0..$quarters {
                    if count > 4 * quarter {
                        put(4 * quarter);
                        put(4 * quarter + 1);
                        put(4 * quarter + 2);
                        put(4 * quarter + 3);
                    }
                }
            }});
        };
    }

    /// Stamps `interleave` of `f64`: in each quarter of 128 bits two 2×2 transpositions.
    macro_rules! interleave_d {
        ($name:ident, $vector:ty, $quarters:literal, $low:ident $high:ident) => {
            helper!($name(v: [$vector; 4], count: usize, p: *mut f64, step: usize) -> () {{
                let left = [$low(v[0], v[1]), $high(v[0], v[1])];
                let right = [$low(v[2], v[3]), $high(v[2], v[3])];
                let left = std::mem::transmute::<[$vector; 2], [[__m128d; $quarters]; 2]>(left);
                let right = std::mem::transmute::<[$vector; 2], [[__m128d; $quarters]; 2]>(right);
                let put = |i: usize| {
                    _mm_storeu_pd(p.add(i * step), left[i % 2][i / 2]);
                    _mm_storeu_pd(p.add(i * step + 2), right[i % 2][i / 2]);
                };
                for quarter in 0..$quarters {
                    if count > 2 * quarter {
                        put(2 * quarter);
                        put(2 * quarter + 1);
                    }
                }
            }});
        };
    }

    interleave!(
        interleave_512, __m512, 4, _mm512_unpacklo_ps _mm512_unpackhi_ps
        _mm512_unpacklo_pd _mm512_unpackhi_pd, _mm512_castps_pd, _mm512_castpd_ps
    );
    interleave!(
        interleave_256, __m256, 2, _mm256_unpacklo_ps _mm256_unpackhi_ps
        _mm256_unpacklo_pd _mm256_unpackhi_pd, _mm256_castps_pd, _mm256_castpd_ps
    );
    interleave_d!(interleave_512d, __m512d, 4, _mm512_unpacklo_pd _mm512_unpackhi_pd);
    interleave_d!(interleave_256d, __m256d, 2, _mm256_unpacklo_pd _mm256_unpackhi_pd);

    helper!(
        /// In each quarter, sums of two elements of `a` and of `b` in turn.
        pairs_512(a: __m512, b: __m512) -> __m512 {
            _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b))
        }
    );
    helper!(pairs_512d(a: __m512d, b: __m512d) -> __m512d {
        _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b))
    });
    helper!(
        /// The even quarters of both, and the odd ones.
        quarters_of(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
            (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b))
        }
    );
    helper!(fold_512d(v: [__m512d; 8]) -> __m512d {{
        let (a, b) = (pairs_512d(v[0], v[1]), pairs_512d(v[2], v[3]));
        let (c, d) = (pairs_512d(v[4], v[5]), pairs_512d(v[6], v[7]));
        let ((a, b), (c, d)) = (quarters_of(a, b), quarters_of(c, d));
        let (a, b) = quarters_of(_mm512_add_pd(a, b), _mm512_add_pd(c, d));
        _mm512_add_pd(a, b)
    }});
    helper!(fold_512(v: [__m512; 8]) -> __m512 {{
        let (a, b) = (pairs_512(v[0], v[1]), pairs_512(v[2], v[3]));
        let (c, d) = (pairs_512(v[4], v[5]), pairs_512(v[6], v[7]));
        let four = |a, b| {
            let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
            let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
            _mm512_castps_pd(_mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high)))
        };
        let (a, b) = quarters_of(four(a, b), four(c, d));
        let sums = _mm512_add_ps(_mm512_castpd_ps(a), _mm512_castpd_ps(b));
        // Of each four two sums are left: in quarters 0 and 1, and in 2 and 3.
        let (a, b) = quarters_of(_mm512_castps_pd(sums), _mm512_castps_pd(sums));
        _mm512_add_ps(_mm512_castpd_ps(a), _mm512_castpd_ps(b))
    }});
    // Quarters are put side by side as they are loaded, which needs no shuffling.
    helper!(
        /// Elements `i..i + 4` of every fourth line.
        quarters_512(lines: &[*const f32; MAX_LANES], first: usize, i: usize) -> __m512 {{
            let quarter = |line: usize| _mm_loadu_ps(lines[first + line].add(i));
            let x = _mm512_castps128_ps512(quarter(0));
            let x = _mm512_insertf32x4::<1>(x, quarter(4));
            let x = _mm512_insertf32x4::<2>(x, quarter(8));
            _mm512_insertf32x4::<3>(x, quarter(12))
        }}
    );
    helper!(
        /// Elements `i..i + 2` of every second line.
        quarters_512d(lines: &[*const f64; MAX_LANES], first: usize, i: usize) -> __m512d {{
            let quarter = |line: usize| _mm_loadu_pd(lines[first + line].add(i));
            let x = _mm512_castpd128_pd512(quarter(0));
            let x = _mm512_insertf64x2::<1>(x, quarter(2));
            let x = _mm512_insertf64x2::<2>(x, quarter(4));
            _mm512_insertf64x2::<3>(x, quarter(6))
        }}
    );
    helper!(transpose_512(lines: [*const f32; MAX_LANES], p: *mut f32, step: usize) -> () {
        for i in (0..16).step_by(4) {
            let (a, b) = (quarters_512(&lines, 0, i), quarters_512(&lines, 1, i));
            let (c, d) = (quarters_512(&lines, 2, i), quarters_512(&lines, 3, i));
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
                _mm512_storeu_ps(p.add((i + j) * step), _mm512_castpd_ps(row));
            }
        }
    });
    helper!(transpose_512d(lines: [*const f64; MAX_LANES], p: *mut f64, step: usize) -> () {
        for i in (0..8).step_by(2) {
            let (a, b) = (quarters_512d(&lines, 0, i), quarters_512d(&lines, 1, i));
            _mm512_storeu_pd(p.add(i * step), _mm512_unpacklo_pd(a, b));
            _mm512_storeu_pd(p.add((i + 1) * step), _mm512_unpackhi_pd(a, b));
        }
    });

    lanes!(
        __m512, f32, 16, true,
        __mmask16, first_512 range_512, sums_512, rotate_512, interleave_512,
        _mm512_set1_ps _mm512_loadu_ps load_512 onto_512
        _mm512_storeu_ps _mm512_mask_storeu_ps _mm512_add_ps _mm512_mul_ps _mm512_fmadd_ps,
        widen_512 narrow_512; transpose_512 fold_512
    );
    lanes!(
        __m512d, f64, 8, true,
        __mmask8, first_512d range_512d, sums_512d, rotate_512d, interleave_512d,
        _mm512_set1_pd _mm512_loadu_pd load_512d onto_512d
        _mm512_storeu_pd _mm512_mask_storeu_pd _mm512_add_pd _mm512_mul_pd _mm512_fmadd_pd; transpose_512d fold_512d
    );
    lanes!(
        __m256, f32, 8, false,
        __m256i, first_256 range_256, sums_256, rotate_256, interleave_256,
        _mm256_set1_ps _mm256_loadu_ps _mm256_maskload_ps onto_256
        _mm256_storeu_ps _mm256_maskstore_ps _mm256_add_ps _mm256_mul_ps _mm256_fmadd_ps,
        widen_256 narrow_256
    );
    lanes!(
        __m256d, f64, 4, false,
        __m256i, first_256d range_256d, sums_256d, rotate_256d, interleave_256d,
        _mm256_set1_pd _mm256_loadu_pd _mm256_maskload_pd onto_256d
        _mm256_storeu_pd _mm256_maskstore_pd _mm256_add_pd _mm256_mul_pd _mm256_fmadd_pd
    );
}
