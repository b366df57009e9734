//! Random numbers.

use crate::{element::Element, op::RngKey};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Random numbers by Philox4x32-10: element `i` depends on the key and on `i` alone, so
            /// results are bit-identical on every device. Every device must follow the
            /// documentation of the functions of [`host`](crate::host).
            trait Random {}

            /// `yᵢ ~ U[lo, hi)`
            #[doc(alias = "caffe_rng_uniform")]
            fn uniform<T: Element>(key: RngKey, lo: f64, hi: f64, y: overwrite T) {
                expect_interval(lo, hi).map(drop)
            }

            /// `yᵢ ~ N(mean, std²)`
            #[doc(alias = "caffe_rng_gaussian")]
            fn gaussian<T: Element>(key: RngKey, mean: f64, std: f64, y: overwrite T) {
                expect_normal(mean, std)
            }

            /// `yᵢ ← 1` with probability `p`, else 0.
            #[doc(alias = "caffe_rng_bernoulli")]
            fn bernoulli(key: RngKey, p: f64, y: overwrite u32) { expect_probability(p).map(drop) }

            /// `yᵢ ← xᵢ / keep` where [`bernoulli`](Self::bernoulli) with `p = keep` and the same
            /// key gives 1, else 0. Applied to `dy` with the same key, it computes the gradient.
            fn dropout<T: Element>(
                key: RngKey, keep: f64, x: src(dropout_in_place) T, y: overwrite T
            ) {
                expect_keep(keep)?;
                check_len("dropout", "y", x.unwrap_or(y), y)
            }

            /// `yᵢ ~` uniform over the integers below `bound`, which is at most 2³².
            #[doc(alias = "caffe_rng_rand")]
            fn random_integers(key: RngKey, bound: u64, y: overwrite u32) { expect_bound(bound) }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
