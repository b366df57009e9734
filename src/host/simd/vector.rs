//! SIMD vector trait and its portable implementation, an array of four elements.
//!
//! The kernels of GEMM, packing, col2im and the transpositions in `lanes` are generic over
//! [`SimdVector`]. `x86::vector` implements [`SimdVector`] for AVX-512 and AVX2 registers, and
//! `aarch64::vector` for NEON registers.

use crate::{
    element::Element,
    host::{
        cache::cache_line,
        simd::{accumulator::is_wide, fma::FmaMode},
    },
};
use num_traits::{Float, Zero};

/// SIMD vector type, whose values are registers of `WIDTH` elements.
///
/// # Safety
/// Every function of the trait requires that the processor has the features of the implementing
/// type, and that the caller is compiled for these features. Each pointer argument must be valid
/// for the elements that the called function is documented to read or write, but need not be
/// aligned.
pub(crate) trait SimdVector: Copy {
    type Scalar: Element + Float;
    /// Number of elements in a vector.
    const WIDTH: usize;
    /// Whether the instruction set has 32 vector registers instead of 16.
    const HAS_32_REGISTERS: bool;
    /// Runs `kernel`, which must be `#[inline(always)]`, in a separate function that is compiled
    /// for the features of this type. A function that selects among many large kernels must call
    /// the kernels through `outline`, because compile time grows faster than linearly with the
    /// length of a function.
    unsafe fn outline(kernel: impl FnOnce());
    /// Returns a vector whose elements are all `x`.
    unsafe fn splat(x: Self::Scalar) -> Self;
    /// Loads `WIDTH` elements from `p`.
    unsafe fn load(p: *const Self::Scalar) -> Self;
    /// Loads only the first `count` elements from `p`, and sets all other lanes to zero.
    unsafe fn load_first(p: *const Self::Scalar, count: usize) -> Self;
    /// Mask type: a set of lanes of a vector.
    type Mask: Copy;
    /// Returns the mask that selects the lanes `start..end`.
    unsafe fn mask(start: usize, end: usize) -> Self::Mask;
    /// Loads only the masked elements from `p`, and sets all other lanes to zero.
    unsafe fn load_masked(p: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// Loads only the masked elements from `p`, and takes all other lanes from `self`.
    unsafe fn load_merge(self, p: *const Self::Scalar, mask: Self::Mask) -> Self;
    /// Loads only the first `count` elements from `p`, and sets all other lanes to zero. If `T` is
    /// a 16-bit type, the loaded elements are widened.
    #[inline(always)]
    unsafe fn load_as<T: Element<Acc = Self::Scalar>>(p: *const T, count: usize) -> Self {
        // SAFETY: `p` is valid for `count` elements; if `T` has 32 or 64 bits, it is its own
        // accumulator type, so the cast does not change the element type.
        unsafe {
            if const { is_wide::<T>() } {
                Self::load_first(p.cast(), count)
            } else {
                Self::widen(p, count)
            }
        }
    }
    /// Loads and widens only the first `count` 16-bit elements from `p`, and sets all other lanes
    /// to zero.
    #[inline(always)]
    unsafe fn widen<T: Element<Acc = Self::Scalar>>(p: *const T, count: usize) -> Self {
        let mut elements = [Self::Scalar::zero(); MAX_LANES];
        for (i, x) in elements.iter_mut().enumerate().take(count) {
            // SAFETY: `p` is valid for `count` elements, and `i < count`.
            *x = unsafe { *p.add(i) }.to_acc();
        }
        // SAFETY: `WIDTH` is at most `MAX_LANES`, the length of `elements`.
        unsafe { Self::load(elements.as_ptr()) }
    }
    /// Stores `WIDTH` elements to `p`.
    unsafe fn store(self, p: *mut Self::Scalar);
    /// Stores only the first `count` elements to `p`.
    unsafe fn store_first(self, p: *mut Self::Scalar, count: usize);
    /// Stores only the masked elements to `p`.
    unsafe fn store_masked(self, p: *mut Self::Scalar, mask: Self::Mask);
    /// Stores only the first `count` elements to `p`. If `T` is a 16-bit type, the stored elements
    /// are rounded to nearest, ties to even.
    #[inline(always)]
    unsafe fn store_as<T: Element<Acc = Self::Scalar>>(self, p: *mut T, count: usize) {
        // SAFETY: `p` is valid for `count` elements; if `T` has 32 or 64 bits, it is its own
        // accumulator type, so the cast does not change the element type.
        unsafe {
            if const { is_wide::<T>() } {
                self.store_first(p.cast(), count)
            } else {
                self.narrow(p, count)
            }
        }
    }
    /// Rounds the first `count` elements to the 16-bit type `T`, to nearest, ties to even, and
    /// stores them to `p`.
    #[inline(always)]
    unsafe fn narrow<T: Element<Acc = Self::Scalar>>(self, p: *mut T, count: usize) {
        let mut elements = [Self::Scalar::zero(); MAX_LANES];
        // SAFETY: `WIDTH` is at most `MAX_LANES`, the length of `elements`; `p` is valid for
        // `count` elements.
        unsafe {
            self.store(elements.as_mut_ptr());
            for (i, &x) in elements.iter().enumerate().take(count) {
                *p.add(i) = T::from_acc(x);
            }
        }
    }
    /// Prefetches the cache line at `p` into L1. The address `p` need not be readable.
    #[inline(always)]
    unsafe fn prefetch(p: *const Self::Scalar) {
        cache_line::prefetch(p);
    }
    /// Prefetches the cache line at `p` into L2. The address `p` need not be readable.
    #[inline(always)]
    unsafe fn prefetch_l2(p: *const Self::Scalar) {
        cache_line::prefetch_l2(p);
    }
    /// Returns `self + x`.
    unsafe fn add(self, x: Self) -> Self;
    /// Returns `self · x`.
    unsafe fn mul(self, x: Self) -> Self;
    /// Returns `self · x + y`, rounded once. The portable implementation emulates the FMA
    /// instruction if the compilation target lacks it.
    unsafe fn mul_add(self, x: Self, y: Self) -> Self;
    /// Returns the sum of the elements of each of the four vectors. Adds the upper half of the
    /// elements to the lower half, repeatedly, until one element is left.
    unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [Self::Scalar; 4];
    /// Returns a vector whose element `i` is the sum of the elements of `vectors[i]`, in the order
    /// of additions of [`Self::horizontal_sum4`]. If `WIDTH` is below eight, sums only the first
    /// `WIDTH` vectors. If `WIDTH` exceeds eight, the elements of the result after the eighth are
    /// unspecified.
    #[inline(always)]
    unsafe fn horizontal_sum8(vectors: [Self; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = vectors;
        // SAFETY: the caller guarantees the processor's features, and at most eight elements are
        // loaded from the array of eight.
        unsafe {
            let [a, b, c, d] = Self::horizontal_sum4([a, b, c, d]);
            let [e, f, g, h] = Self::horizontal_sum4([e, f, g, h]);
            Self::load_first([a, b, c, d, e, f, g, h].as_ptr(), Self::WIDTH.min(8))
        }
    }
    /// Returns the elements rotated by `count`: lane `i` gets element `i + count` modulo `WIDTH`.
    unsafe fn rotate(self, count: usize) -> Self;
    /// Stores element `i` of all four vectors contiguously at `p + i·stride`, for every `i <
    /// count`. Implementations may also store up to three elements of each vector after the first
    /// `count`; `p` must be valid for these elements, too.
    unsafe fn store_transposed4(
        vectors: [Self; 4],
        count: usize,
        p: *mut Self::Scalar,
        stride: usize,
    );
    /// Transposes a `WIDTH`×`WIDTH` matrix: reads row `j` from `rows[j]`, and stores column `i` to
    /// `p + i·stride`.
    #[inline(always)]
    unsafe fn transpose(
        rows: [*const Self::Scalar; MAX_LANES],
        p: *mut Self::Scalar,
        stride: usize,
    ) {
        // SAFETY: each of the first `WIDTH` rows is valid for reads of a vector, and `p + i·stride`
        // is valid for writes of a vector for every `i < WIDTH`.
        unsafe {
            for group_start in (0..Self::WIDTH).step_by(4) {
                let mut vectors = [Self::splat(Self::Scalar::zero()); 4];
                for (j, vector) in vectors.iter_mut().enumerate() {
                    *vector = Self::load(rows[group_start + j]);
                }
                Self::store_transposed4(vectors, Self::WIDTH, p.add(group_start), stride);
            }
        }
    }
}

/// Number of elements in the widest vector type: 16 elements of `f32` with AVX-512.
pub(crate) const MAX_LANES: usize = 16;

/// Portable vector: an array of four elements, whose operations the compiler may or may not
/// vectorize.
impl<S: Element + Float> SimdVector for [S; 4] {
    type Scalar = S;
    type Mask = [bool; 4];
    const WIDTH: usize = 4;
    const HAS_32_REGISTERS: bool = false;

    #[inline(never)]
    unsafe fn outline(kernel: impl FnOnce()) {
        kernel();
    }

    #[inline(always)]
    unsafe fn splat(x: S) -> Self {
        [x; 4]
    }

    #[inline(always)]
    unsafe fn load(p: *const S) -> Self {
        // SAFETY: `p` is valid for four elements.
        unsafe { p.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const S, count: usize) -> Self {
        // SAFETY: `p` is valid for `count` elements.
        std::array::from_fn(|i| if i < count { unsafe { *p.add(i) } } else { S::zero() })
    }

    #[inline(always)]
    unsafe fn mask(start: usize, end: usize) -> Self::Mask {
        std::array::from_fn(|i| (start..end).contains(&i))
    }

    #[inline(always)]
    unsafe fn load_masked(p: *const S, mask: Self::Mask) -> Self {
        // SAFETY: `p` is valid for the masked elements.
        std::array::from_fn(|i| if mask[i] { unsafe { *p.wrapping_add(i) } } else { S::zero() })
    }

    #[inline(always)]
    unsafe fn load_merge(self, p: *const S, mask: Self::Mask) -> Self {
        // SAFETY: `p` is valid for the masked elements.
        std::array::from_fn(|i| if mask[i] { unsafe { *p.wrapping_add(i) } } else { self[i] })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut S) {
        // SAFETY: `p` is valid for four elements.
        unsafe { p.cast::<Self>().write_unaligned(self) };
    }

    #[inline(always)]
    unsafe fn store_first(self, p: *mut S, count: usize) {
        for (i, x) in self.into_iter().take(count).enumerate() {
            // SAFETY: `p` is valid for `count` elements.
            unsafe { *p.add(i) = x };
        }
    }

    #[inline(always)]
    unsafe fn store_masked(self, p: *mut S, mask: Self::Mask) {
        for (i, x) in self.into_iter().enumerate() {
            if mask[i] {
                // SAFETY: `p` is valid for the masked elements.
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
        std::array::from_fn(|i| FmaMode::BASE.fused_mul_add(self[i], x[i], y[i]))
    }

    #[inline(always)]
    unsafe fn horizontal_sum4(vectors: [Self; 4]) -> [S; 4] {
        vectors.map(|v| (v[0] + v[2]) + (v[1] + v[3]))
    }

    #[inline(always)]
    unsafe fn rotate(self, count: usize) -> Self {
        std::array::from_fn(|i| self[(i + count) % 4])
    }

    #[inline(always)]
    unsafe fn store_transposed4(vectors: [Self; 4], count: usize, p: *mut S, stride: usize) {
        for i in 0..count {
            // SAFETY: `p + i·stride` is valid for four elements for every `i < count`.
            unsafe { p.add(i * stride).cast::<Self>().write_unaligned(vectors.map(|v| v[i])) };
        }
    }
}
