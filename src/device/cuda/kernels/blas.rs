//! Basic linear algebra.

use crate::{
    device::CudaDevice,
    element::Element,
    error::{Result, expect_len},
    kernel::Blas,
    memory::{View, ViewMut},
};
use num_traits::Zero;

impl Blas for CudaDevice {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        expect_len("copy", "y", x.len(), y.len())?;
        let n = y.len();
        self.kernel::<T>("copy")?.size(n).read(x.device()?).write(y.device_write_only()?).each(n)
    }

    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        let n = x.len();
        self.kernel::<T>("scal")?.size(n).arg(alpha).write(x.device_mut()?).each(n)
    }

    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len("axpy", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.kernel::<T>("axpy")?.size(n).arg(alpha);
        launch.read(x.device()?).write(y.device_mut()?).each(n)
    }

    fn axpby<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        beta: T::Acc,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        expect_len("axpby", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.kernel::<T>("axpby")?.size(n).arg(alpha).read(x.device()?).arg(beta);
        let y = if beta.is_zero() { y.device_write_only()? } else { y.device_mut()? };
        launch.write(y).each(n)
    }
}
