//! Run-time dispatch of kernels that are generic over the [`SimdVector`] type.

use crate::{
    element::Element,
    host::simd::{level::SimdLevel, vector::SimdVector},
};
use num_traits::Float;

/// Kernel that can be compiled for every [`SimdVector`] type with elements of type `S`.
pub(crate) trait SimdKernel<S: Element + Float>: Sized {
    /// Runs the kernel with vectors of type `V`. An implementation of `run`, and all functions that
    /// it calls, must be `#[inline(always)]`, because only inlined code is compiled for the
    /// features of `V`.
    ///
    /// # Safety
    /// The processor has the features of `V`, and the calling function is compiled for these
    /// features. Implementations of `run` may have further safety requirements.
    unsafe fn run<V: SimdVector<Scalar = S>>(self);
    /// Runs the kernel at the levels [`SimdLevel::Portable`] and [`SimdLevel::WithoutFma`].
    ///
    /// # Safety
    /// The safety requirements of [`Self::run`] hold, except those on the processor's features.
    unsafe fn run_portable(self) {
        // SAFETY: the caller meets the requirements of `run`, and the portable vector type needs no
        // features of the processor.
        unsafe { self.run::<[S; 4]>() }
    }
}

/// Element type `f32` or `f64`, with a vector type for each SIMD level.
pub(crate) trait SimdScalar: Element<Acc = Self> + Float {
    /// Runs `kernel` with the vector type of the SIMD level [`SimdLevel::current`].
    ///
    /// # Safety
    /// The requirements of [`SimdKernel::run`] for `kernel` hold, except those on the processor's
    /// features.
    unsafe fn dispatch<K: SimdKernel<Self>>(kernel: K);
}

macro_rules! simd_scalar {
    ($scalar:ty, $vector_512:ident, $vector_256:ident, $vector_neon:ident) => {
        impl SimdScalar for $scalar {
            unsafe fn dispatch<K: SimdKernel<Self>>(kernel: K) {
                // SAFETY: a SIMD level becomes the current level only after the features of the
                // level were detected. The caller guarantees all other safety requirements of the
                // kernel.
                unsafe {
                    match SimdLevel::current() {
                        #[cfg(target_arch = "x86_64")]
                        SimdLevel::Avx512 => avx512::<std::arch::x86_64::$vector_512>(kernel),
                        #[cfg(target_arch = "x86_64")]
                        SimdLevel::Avx2 => avx2::<std::arch::x86_64::$vector_256>(kernel),
                        #[cfg(target_arch = "aarch64")]
                        SimdLevel::Neon => kernel.run::<std::arch::aarch64::$vector_neon>(),
                        SimdLevel::Portable | SimdLevel::WithoutFma => kernel.run_portable(),
                    }
                }
            }
        }
    };
}
simd_scalar!(f32, __m512, __m256, float32x4_t);
simd_scalar!(f64, __m512d, __m256d, float64x2_t);

/// # Safety
/// The processor has the features in the attribute `target_feature`, and `V` needs no other
/// features. All further safety requirements of `kernel` hold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<V: SimdVector>(kernel: impl SimdKernel<V::Scalar>) {
    // SAFETY: the enclosing function is compiled for the features of `V`; the caller guarantees all
    // other safety requirements of the kernel.
    unsafe { kernel.run::<V>() }
}

/// # Safety
/// The processor has the features in the attribute `target_feature`, and `V` needs no other
/// features. All further safety requirements of `kernel` hold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<V: SimdVector>(kernel: impl SimdKernel<V::Scalar>) {
    // SAFETY: the enclosing function is compiled for the features of `V`; the caller guarantees all
    // other safety requirements of the kernel.
    unsafe { kernel.run::<V>() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        element::{bf16, f16},
        host::{
            simd::{level::with_each_simd_level, vector::MAX_LANES},
            testing::integers,
        },
    };

    /// Checks every function of a vector type against its definition in [`SimdVector`], on small
    /// integers with exact sums.
    struct CheckVector;

    impl<S: SimdScalar> SimdKernel<S> for CheckVector {
        unsafe fn run<V: SimdVector<Scalar = S>>(self) {
            let (n, zero) = (V::WIDTH, S::zero());
            let x = integers::<S>(1, 20 * n);
            let row = |i: usize| x[i * n..][..n].to_vec();
            // SAFETY: `dispatch` runs this kernel at the SIMD level of `V`. Each pointer points
            // into `x`, which is long enough for all accesses, or into an array that is at least
            // one vector long.
            unsafe {
                let load = |i: usize| V::load(x[i * n..].as_ptr());
                let lanes_of = |v: V| {
                    let mut y = vec![S::one(); n + 1];
                    v.store(y.as_mut_ptr());
                    assert!(
                        y.pop() == Some(S::one()),
                        "SimdVector::store writes beyond the vector"
                    );
                    y
                };
                let each_lane = |f: &dyn Fn(usize) -> S| (0..n).map(f).collect::<Vec<_>>();
                let (a, b, c) = (row(0), row(1), row(2));
                assert_eq!(lanes_of(V::splat(a[0])), each_lane(&|_| a[0]));
                assert_eq!(lanes_of(load(0).add(load(1))), each_lane(&|i| a[i] + b[i]));
                assert_eq!(lanes_of(load(0).mul(load(1))), each_lane(&|i| a[i] * b[i]));
                assert_eq!(
                    lanes_of(load(0).mul_add(load(1), load(2))),
                    each_lane(&|i| a[i] * b[i] + c[i])
                );
                for count in 0..=n {
                    let rotated_lanes = lanes_of(load(0).rotate(count));
                    assert_eq!(rotated_lanes, each_lane(&|i| a[(i + count) % n]));
                    let first_elements = |i: usize| if i < count { a[i] } else { zero };
                    assert_eq!(
                        lanes_of(V::load_first(a.as_ptr(), count)),
                        each_lane(&first_elements)
                    );
                    for start in 0..=count {
                        let (mask, masked_range) = (V::mask(start, count), start..count);
                        let merge =
                            |other: S, i| if masked_range.contains(&i) { a[i] } else { other };
                        let loaded_lanes = lanes_of(V::load_masked(a.as_ptr(), mask));
                        assert_eq!(loaded_lanes, each_lane(&|i| merge(zero, i)));
                        let merged_lanes = lanes_of(load(1).load_merge(a.as_ptr(), mask));
                        assert_eq!(merged_lanes, each_lane(&|i| merge(b[i], i)));
                        let mut y = b.clone();
                        load(0).store_masked(y.as_mut_ptr(), mask);
                        assert_eq!(y, each_lane(&|i| merge(b[i], i)));
                    }
                    let mut y = b.clone();
                    load(0).store_first(y.as_mut_ptr(), count);
                    assert_eq!(y, each_lane(&|i| if i < count { a[i] } else { b[i] }));
                    let mut y = vec![zero; 5 * (n + 4)];
                    V::store_transposed4(
                        [load(0), load(1), load(2), load(3)],
                        count,
                        y.as_mut_ptr(),
                        5,
                    );
                    for (i, j) in (0..count).flat_map(|i| (0..4).map(move |j| (i, j))) {
                        assert!(y[i * 5 + j] == row(j)[i]);
                    }
                }
                let sum = |i: usize| row(i).into_iter().fold(zero, |sum, x| sum + x);
                let sums = V::horizontal_sum4([load(0), load(1), load(2), load(3)]);
                assert_eq!(sums, [sum(0), sum(1), sum(2), sum(3)]);
                let sums = lanes_of(V::horizontal_sum8(std::array::from_fn(load)));
                assert!((0..n.min(8)).all(|i| sums[i] == sum(i)));
                let rows = std::array::from_fn::<_, MAX_LANES, _>(|i| x[i * n..].as_ptr());
                let mut y = vec![zero; n * (n + 1)];
                V::transpose(rows, y.as_mut_ptr(), n + 1);
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    assert!(y[i * (n + 1) + j] == row(j)[i]);
                }
            }
        }
    }

    /// Checks loads of all values of a 16-bit type, and stores of `f32` values between neighbouring
    /// 16-bit values and at their midpoints.
    struct CheckHalf<T>(fn(u16) -> T);

    impl<T: Element<Acc = f32>> SimdKernel<f32> for CheckHalf<T> {
        unsafe fn run<V: SimdVector<Scalar = f32>>(self) {
            let is_same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
            let marker = T::from_f64(1.0);
            for start in (0..=u16::MAX).step_by(V::WIDTH) {
                let count = start as usize / V::WIDTH % (V::WIDTH + 1);
                let x: [T; MAX_LANES] =
                    std::array::from_fn(|i| self.0(start.wrapping_add(i as u16)));
                let wide_x =
                    x.map(|x| f32::from_bits(x.to_acc().to_bits() ^ 0x8000 >> (start % 5)));
                let (mut loaded_x, mut stored_x) = ([0.0f32; MAX_LANES], [marker; MAX_LANES + 1]);
                // SAFETY: `dispatch` runs this kernel at the SIMD level of `V`, and each array is
                // long enough for the vector that is loaded or stored.
                unsafe {
                    V::load_as(x.as_ptr(), count).store(loaded_x.as_mut_ptr());
                    V::load(wide_x.as_ptr()).store_as(stored_x.as_mut_ptr(), count);
                }
                for i in 0..V::WIDTH {
                    let (x, y) = if i < count {
                        (x[i].to_f64(), T::from_acc(wide_x[i]).to_f64())
                    } else {
                        (0.0, 1.0)
                    };
                    assert!(is_same(loaded_x[i].into(), x), "loads {} for {x}", loaded_x[i]);
                    assert!(
                        is_same(stored_x[i].to_f64(), y),
                        "stores {} for {}",
                        stored_x[i],
                        wide_x[i]
                    );
                }
            }
        }
    }

    #[test]
    fn every_vector_type_matches_the_trait_definition() {
        // SAFETY: `CheckVector` and `CheckHalf` require nothing but the processor's features.
        with_each_simd_level(|| unsafe {
            f32::dispatch(CheckVector);
            f64::dispatch(CheckVector);
            f32::dispatch(CheckHalf(f16::from_bits));
            f32::dispatch(CheckHalf(bf16::from_bits));
        });
    }
}
