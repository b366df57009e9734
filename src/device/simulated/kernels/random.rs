//! Random numbers. The host's kernels check parameters even when they fill nothing.

use crate::{
    device::{SimulatedDevice, simulated::launch::Launch},
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Random,
    memory::{Memory, Src, ViewMut},
    op::RngKey,
};

impl Random for SimulatedDevice {
    fn uniform<T: Element>(
        &self,
        key: RngKey,
        lo: f64,
        hi: f64,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::uniform::<T>(self.host_workers(), key, lo, hi, &mut [])?;
        let mut launch = self.launch::<T>("uniform")?;
        let y = launch.writes(y)?;
        launch.queue(move |workers| host::uniform::<T>(workers, key, lo, hi, &mut y.write()))
    }

    fn gaussian<T: Element>(
        &self,
        key: RngKey,
        mean: f64,
        std: f64,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::gaussian::<T>(self.host_workers(), key, mean, std, &mut [])?;
        let mut launch = self.launch::<T>("gaussian")?;
        let y = launch.writes(y)?;
        launch.queue(move |workers| host::gaussian::<T>(workers, key, mean, std, &mut y.write()))
    }

    fn bernoulli(&self, key: RngKey, p: f64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        host::bernoulli(self.host_workers(), key, p, &mut [])?;
        let mut launch = Launch::new(self, "bernoulli", "u32")?;
        let y = launch.writes(y)?;
        launch.queue(move |workers| host::bernoulli(workers, key, p, &mut y.write()))
    }

    fn dropout<T: Element>(
        &self,
        key: RngKey,
        keep: f64,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::dropout_in_place::<T>(self.host_workers(), key, keep, &mut [])?;
        if let Src::View(x) = x {
            check_len("dropout", "y", x.len(), y.len())?;
        }
        let mut launch = self.launch::<T>("dropout")?;
        match x {
            Src::View(x) => {
                let (x, y) = (launch.reads(x)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    host::dropout::<T>(workers, key, keep, &x.read(), &mut y.write())
                })
            }
            Src::InPlace => {
                let y = launch.updates(y)?;
                launch.queue(move |workers| {
                    host::dropout_in_place::<T>(workers, key, keep, &mut y.write())
                })
            }
        }
    }

    fn random_integers(&self, key: RngKey, bound: u64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        host::random_integers(self.host_workers(), key, bound, &mut [])?;
        let mut launch = Launch::new(self, "integer", "u32")?;
        let y = launch.writes(y)?;
        launch.queue(move |workers| host::random_integers(workers, key, bound, &mut y.write()))
    }
}
