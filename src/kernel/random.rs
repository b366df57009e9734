//! Random numbers.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, ViewMut},
    op::RngKey,
};

/// Random numbers by Philox4x32-10: element `i` depends on the key and on `i` alone, so every
/// device gives the same bits. What `host` documents is binding for all.
pub trait Random: Memory {
    /// `yᵢ ~ U[lo, hi)`
    #[doc(alias = "caffe_rng_uniform")]
    fn uniform<T: Element>(
        &self,
        key: RngKey,
        lo: f64,
        hi: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::uniform(self.workers(), key, lo, hi, y.host_write_only()?)
    }

    /// `yᵢ ~ N(mean, std²)`
    #[doc(alias = "caffe_rng_gaussian")]
    fn gaussian<T: Element>(
        &self,
        key: RngKey,
        mean: f64,
        std: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::gaussian(self.workers(), key, mean, std, y.host_write_only()?)
    }

    /// `yᵢ ← 1` with probability `p`, else 0.
    #[doc(alias = "caffe_rng_bernoulli")]
    fn bernoulli(&self, key: RngKey, p: f64, mut y: ViewMut<'_, u32, Self>) -> Result<()> {
        host::bernoulli(self.workers(), key, p, y.host_write_only()?)
    }

    /// `yᵢ ~` the integers below `bound`, which is at most 2³².
    #[doc(alias = "caffe_rng_rand")]
    fn integer(&self, key: RngKey, bound: u64, mut y: ViewMut<'_, u32, Self>) -> Result<()> {
        host::integer(self.workers(), key, bound, y.host_write_only()?)
    }
}
