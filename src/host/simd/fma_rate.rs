//! Loop of multiply-adds on registers, whose rate is the peak rate of one core's arithmetic.

use crate::host::simd::{
    dispatch::{SimdKernel, SimdScalar},
    level::SimdLevel,
    vector::{MAX_LANES, SimdVector},
};
use std::hint::black_box;

/// Number of independent sums. A core with two multiply-add units and a latency of four cycles
/// needs eight; twelve sums and two operands fit in 16 registers.
const SUMS: usize = 12;

/// Applies `repeats` multiply-adds to each of [`SUMS`] vectors.
struct MultiplyAdds<'a, S> {
    repeats: usize,
    /// Receives a value that depends on all sums, so that the compiler does not remove the loop.
    result: &'a mut S,
    /// Receives the number of floating-point operations.
    flops: &'a mut u64,
}

impl<S: SimdScalar> SimdKernel<S> for MultiplyAdds<'_, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        // SAFETY: `dispatch` runs this kernel at the SIMD level of `V`.
        unsafe { self.repeat::<V>(|x, y, z| x.mul_add(y, z)) };
    }

    unsafe fn run_portable(self) {
        // SAFETY: the portable vector type needs no features of the processor.
        unsafe {
            match SimdLevel::current() {
                SimdLevel::WithoutFma => self.repeat::<[S; 4]>(|x, y, z| x.mul(y).add(z)),
                _ => self.run::<[S; 4]>(),
            }
        }
    }
}

impl<S: SimdScalar> MultiplyAdds<'_, S> {
    /// Applies `mul_add` `self.repeats` times to each of [`SUMS`] vectors.
    ///
    /// # Safety
    /// The processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn repeat<V: SimdVector<Scalar = S>>(self, mul_add: impl Fn(V, V, V) -> V) {
        // SAFETY: the caller guarantees the processor's features, and `lanes` is at least one
        // vector long.
        unsafe {
            let [factor, addend] = [S::one(), S::zero()].map(|x| V::splat(black_box(x)));
            let mut sums = [factor; SUMS];
            for _ in 0..self.repeats {
                for sum in &mut sums {
                    *sum = mul_add(*sum, factor, addend);
                }
            }
            let total = sums.into_iter().reduce(|a, b| a.add(b)).unwrap_or(factor);
            let mut lanes = [S::zero(); MAX_LANES];
            total.store(lanes.as_mut_ptr());
            *self.result = lanes[0];
            *self.flops = (2 * SUMS * V::WIDTH * self.repeats) as u64;
        }
    }
}

/// Runs `repeats` multiply-adds on each of several vectors in registers, on this thread. Returns
/// the number of floating-point operations.
pub(crate) fn multiply_adds<S: SimdScalar>(repeats: usize) -> u64 {
    let (mut result, mut flops) = (S::zero(), 0);
    // SAFETY: `MultiplyAdds` requires nothing but the processor's features.
    unsafe { S::dispatch(MultiplyAdds { repeats, result: &mut result, flops: &mut flops }) };
    black_box(result);
    flops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::simd::level::with_each_simd_level;

    #[test]
    fn multiply_adds_count_two_operations_per_lane() {
        with_each_simd_level(|| {
            let [single, double] = [multiply_adds::<f32>(5), multiply_adds::<f64>(5)];
            assert!(single > 0 && single % (2 * SUMS as u64 * 5) == 0);
            // A register has half as many lanes for elements of twice the size; the portable vector
            // has four lanes for either size.
            assert!(single == 2 * double || single == double);
        });
    }
}
