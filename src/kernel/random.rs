//! Random numbers.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, Src, ViewMut},
    op::RngKey,
};

/// Random numbers by Philox4x32-10: element `i` depends on the key and on `i` alone, so every
/// device gives the same bits. What `host` documents is binding for all.
pub trait Random: Memory {
    /// `yᵢ ~ U[lo, hi)`
    #[doc(alias = "caffe_rng_uniform")]
    #[track_caller]
    fn uniform<T: Element>(
        &self,
        key: RngKey,
        lo: f64,
        hi: f64,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::uniform(self, key, lo, hi, y)
    }

    /// `yᵢ ~ N(mean, std²)`
    #[doc(alias = "caffe_rng_gaussian")]
    #[track_caller]
    fn gaussian<T: Element>(
        &self,
        key: RngKey,
        mean: f64,
        std: f64,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gaussian(self, key, mean, std, y)
    }

    /// `yᵢ ← 1` with probability `p`, else 0.
    #[doc(alias = "caffe_rng_bernoulli")]
    #[track_caller]
    fn bernoulli(&self, key: RngKey, p: f64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        fallback::bernoulli(self, key, p, y)
    }

    /// `yᵢ ← xᵢ / keep` where [`bernoulli`](Self::bernoulli) of the same key and of `p = keep`
    /// gives 1, else 0. The same key takes a gradient the same way.
    #[track_caller]
    fn dropout<T: Element>(
        &self,
        key: RngKey,
        keep: f64,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::dropout(self, key, keep, x, y)
    }

    /// `yᵢ ~` the integers below `bound`, which is at most 2³².
    #[doc(alias = "caffe_rng_rand")]
    #[track_caller]
    fn random_integers(&self, key: RngKey, bound: u64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        fallback::integer(self, key, bound, y)
    }
}
