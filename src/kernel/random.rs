//! Random number kernels.

use crate::{element::Element, op::RngKey};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Random number kernels based on Philox4x32-10: element `i` depends only on the key
            /// and on `i`. The [module page](crate::kernel) lists the rules that all kernels share.
            ///
            /// Random numbers are bit-identical on every device, because every device follows the
            /// same rules:
            /// - [`bernoulli`](Self::bernoulli), [`random_integers`](Self::random_integers) and
            ///   [`dropout`](Self::dropout) compute element `i` from word `i mod 4` of the Philox
            ///   output for counter `i / 4`.
            /// - [`uniform`](Self::uniform) and [`gaussian`](Self::gaussian) compute elements `2j`
            ///   and `2j + 1` from the four words of the Philox output for counter `j`. Two random
            ///   words `a` and `b` form the 53-bit fraction `((a·2³² + b) >> 11) / 2⁵³`. Words 0
            ///   and 1 of the output form the fraction `u`, and words 2 and 3 form the fraction
            ///   `v`.
            /// - All arithmetic is in IEEE `f64`: additions, multiplications, divisions and square
            ///   roots in the order of the formulas, without FMA. Each result is rounded once to
            ///   the element type.
            ///
            /// ```
            /// use cortado::{op::RngKey, prelude::*};
            ///
            /// fn noise<D: Device>(device: &D) -> Result<Vec<f32>> {
            ///     let y = Blob::zeros(device, &[100])?;
            ///     device.gaussian(RngKey::new(42), 0.0, 1.0, y.data_mut()?.view_mut())?;
            ///     y.to_vec()
            /// }
            ///
            /// assert_eq!(noise(&CpuDevice::new())?, noise(&SimulatedDevice::new())?);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Random {}

            /// `yᵢ ~ U[lo, hi)`, computed as `lo + (hi − lo)·u` for even `i` and as `lo + (hi −
            /// lo)·v` for odd `i`. The elements of `y` lie in `[lo, hi)` even after rounding to
            /// `T`, if `T` can represent a value in that interval. If `lo = hi`, all elements are
            /// `lo`. The kernel refuses `lo > hi`, NaN, and an infinite `hi − lo`.
            ///
            /// Lengths: `y` may have any length.
            #[doc(alias = "caffe_rng_uniform")]
            fn uniform<T: Element>(key: RngKey, lo: f64, hi: f64, y: overwrite T) {
                expect_interval(lo, hi).map(drop)
            }

            /// `yᵢ ~ N(mean, std²)`, computed by the Box–Muller transform (Box and Muller, 1958).
            /// With `r = √(−2 ln(u + 2⁻⁵³))`, the elements are `mean + std·r·cos 2πv` for even `i`
            /// and `mean + std·r·sin 2πv` for odd `i`. The kernel refuses a negative `std`, NaN and
            /// infinities.
            ///
            /// Lengths: `y` may have any length.
            #[doc(alias = "caffe_rng_gaussian")]
            fn gaussian<T: Element>(key: RngKey, mean: f64, std: f64, y: overwrite T) {
                expect_normal(mean, std)
            }

            /// `yᵢ ← 1` with probability `p`, else 0; `p` is rounded up to a multiple of 2⁻³². An
            /// element is 1 if its random word is less than `p·2³²`. The kernel refuses a `p`
            /// outside [0, 1].
            ///
            /// Lengths: `y` may have any length.
            #[doc(alias = "caffe_rng_bernoulli")]
            fn bernoulli(key: RngKey, p: f64, y: overwrite u32) { expect_probability(p).map(drop) }

            /// `yᵢ ← xᵢ / keep` where [`bernoulli`](Self::bernoulli) with `p = keep` and the same
            /// key gives 1, else 0. The backward pass calls `dropout` on `dy` with the same key to
            /// compute the gradient. A dropped element is 0, even if `xᵢ` is NaN or infinite. A
            /// kept element is rounded at most twice. The kernel refuses a `keep` outside (0, 1].
            ///
            /// Lengths: `y` has as many elements as `x`.
            fn dropout<T: Element>(
                key: RngKey, keep: f64, x: src(dropout_in_place) T, y: overwrite T
            ) {
                expect_keep(keep)?;
                check_len("dropout", "y", x.unwrap_or(y), y)
            }

            /// Each `yᵢ` is uniform over the integers from 0 to `bound − 1`; `bound` is at most
            /// 2³². Each element is the upper half of the 64-bit product of its random word and
            /// `bound`. The kernel refuses a `bound` of 0 or above 2³².
            ///
            /// Lengths: `y` may have any length.
            #[doc(alias = "caffe_rng_rand")]
            fn random_integers(key: RngKey, bound: u64, y: overwrite u32) { expect_bound(bound) }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
