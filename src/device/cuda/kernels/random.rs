//! Launches of random number kernels, whose results are bit-identical to the host's.

use super::src_len;
use crate::{
    device::{CudaDevice, cuda::launch::Launch},
    element::Element,
    error::{Result, check_len},
    host::{bounds, expect_bound, expect_interval, expect_keep, expect_normal, expect_probability},
    kernel::Random,
    ledger,
    memory::{Src, ViewMut},
    op::RngKey,
};

impl CudaDevice {
    /// Prepares a launch of the kernel `{symbol}_u32`, which the ledger records as `name`.
    #[track_caller]
    fn u32_kernel(&self, name: &'static str, symbol: &str) -> Result<Launch<'_>> {
        self.symbol(ledger::enter_kernel(name, "u32"), &format!("{symbol}_u32"))
    }
}

impl Launch<'_> {
    fn key(self, key: RngKey) -> Self {
        self.arg([key.seed, key.stream])
    }
}

impl Random for CudaDevice {
    fn uniform<T: Element>(
        &self,
        key: RngKey,
        lo: f64,
        hi: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let width = expect_interval(lo, hi)?;
        let (min, max) = bounds::<T>(lo, hi);
        let n = y.len();
        let launch = self.kernel::<T>("uniform")?.size(n).key(key).arg(lo).arg(width);
        launch.arg(min).arg(max).write(y.device_write_only()?).grid_1d(n.div_ceil(2))
    }

    fn gaussian<T: Element>(
        &self,
        key: RngKey,
        mean: f64,
        std: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_normal(mean, std)?;
        let n = y.len();
        let launch = self.kernel::<T>("gaussian")?.size(n).key(key).arg(mean).arg(std);
        launch.write(y.device_write_only()?).grid_1d(n.div_ceil(2))
    }

    fn bernoulli(&self, key: RngKey, p: f64, mut y: ViewMut<'_, u32, Self>) -> Result<()> {
        let threshold = expect_probability(p)?;
        let n = y.len();
        let launch = self.u32_kernel("bernoulli", "bernoulli")?.size(n).key(key).arg(threshold);
        launch.write(y.device_write_only()?).grid_1d(n.div_ceil(4))
    }

    fn dropout<T: Element>(
        &self,
        key: RngKey,
        keep: f64,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let threshold = expect_keep(keep)?;
        let n = y.len();
        check_len("dropout", "y", src_len(&x).unwrap_or(n), n)?;
        let launch = self.kernel::<T>("dropout")?.size(n).key(key).arg(threshold);
        launch.arg(T::acc(1.0 / keep)).src_dst(x, &mut y)?.grid_1d(n.div_ceil(4))
    }

    fn random_integers(
        &self,
        key: RngKey,
        bound: u64,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        expect_bound(bound)?;
        let n = y.len();
        let launch = self.u32_kernel("random_integers", "integer")?.size(n).key(key).arg(bound);
        launch.write(y.device_write_only()?).grid_1d(n.div_ceil(4))
    }
}
