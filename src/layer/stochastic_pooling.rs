//! Stochastic pooling: random elements during training, weighted means in the TEST phase.

use super::prelude::*;
use crate::{
    memory::{Src, View, ViewMut},
    op::{Binary, Pool2d, RngKey, Unary},
    shape::Shape,
};

/// Draws an element of each window with a probability proportional to `max(x, 0)`. In the TEST
/// phase, computes the weighted mean `Σ x² / Σ x` over the positive elements of each window. For a
/// window without positive elements, the weighted mean is 0.
pub(super) struct StochasticPooling<T: Element> {
    key: RngKey,
    /// The number of forward passes that have drawn elements; each of these passes uses a separate
    /// random number stream.
    draws: u64,
    uniform: Blob<f32>,
    /// `max(x, 0)` for each element `x` of the bottom; the diff is scratch space.
    positive_part: Blob<T>,
    /// The mean of `max(x, 0)` over each window, or 1 if the mean is 0; the diff is scratch space.
    means: Blob<T>,
}

impl<T: Element> StochasticPooling<T> {
    pub(super) fn new(cx: &LayerContext<'_>) -> Result<Self> {
        let (positive_part, means) = (Blob::new(cx.device, &[0])?, Blob::new(cx.device, &[0])?);
        Ok(Self {
            key: cx.pass_key(),
            draws: 0,
            uniform: Blob::new(cx.device, &[0])?,
            positive_part,
            means,
        })
    }

    /// Returns the number of forward passes that have drawn elements.
    pub(super) fn draws(&self) -> u64 {
        self.draws
    }

    pub(super) fn set_draws(&mut self, draws: u64) {
        self.draws = draws;
    }

    pub(super) fn reshape(&mut self, input: &Shape, output: &Shape) -> Result<()> {
        self.uniform.reshape(output)?;
        self.positive_part.reshape(input)?;
        self.means.reshape(output)
    }

    pub(super) fn draw(
        &mut self,
        device: &AnyDevice,
        op: &Pool2d,
        x: View<'_, T, AnyDevice>,
        y: ViewMut<'_, T, AnyDevice>,
        mask: ViewMut<'_, i32, AnyDevice>,
    ) -> Result<()> {
        let mut uniform = self.uniform.data_mut()?;
        device.uniform(self.key.child(self.draws), 0.0, 1.0, uniform.view_mut())?;
        self.draws += 1;
        device.stochastic_pool(op, x, uniform.view(), y, mask)
    }

    /// Computes the weighted mean of each window: the mean of `max(x, 0)²` divided by the mean of
    /// `max(x, 0)`.
    pub(super) fn mean(
        &self,
        device: &AnyDevice,
        op: &Pool2d,
        x: View<'_, T, AnyDevice>,
        mut y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let (mut positive_part, mut squares) =
            (self.positive_part.data_mut()?, self.positive_part.diff_mut()?);
        let mut means = self.means.data_mut()?;
        device.unary(Unary::Relu { slope: T::acc(0.0) }, x.into(), positive_part.view_mut())?;
        device.average_pool(op, positive_part.view(), means.view_mut())?;
        // Replace each mean of 0 by 1, so that the later division yields 0 instead of NaN.
        let mut is_zero = self.means.diff_mut()?;
        device.unary(Unary::Sign, means.view().into(), is_zero.view_mut())?;
        device.unary(Unary::Neg, Src::InPlace, is_zero.view_mut())?;
        device.unary(Unary::AddScalar(T::acc(1.0)), Src::InPlace, is_zero.view_mut())?;
        device.binary(Binary::Add, Src::InPlace, is_zero.view(), means.view_mut())?;
        device.unary(Unary::Sqr, positive_part.view().into(), squares.view_mut())?;
        device.average_pool(op, squares.view(), y.reborrow())?;
        device.binary(Binary::Div, Src::InPlace, means.view(), y)
    }

    /// Computes the gradient of the weighted mean: `dx ← Σ dy · (2x − y) / Σ x` where x is
    /// positive, otherwise `dx ← 0`. The operand `y` holds the weighted means that
    /// [`mean`](Self::mean) has computed.
    pub(super) fn mean_backward(
        &self,
        device: &AnyDevice,
        op: &Pool2d,
        y: View<'_, T, AnyDevice>,
        dy: View<'_, T, AnyDevice>,
        mut dx: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let (positive_part, means) = (self.positive_part.data()?, self.means.data()?);
        let (mut scaled, mut spread) = (self.means.diff_mut()?, self.positive_part.diff_mut()?);
        device.binary(Binary::Div, dy.into(), means.view(), scaled.view_mut())?;
        device.average_pool_backward(op, scaled.view(), spread.view_mut())?;
        device.binary(Binary::Mul, Src::InPlace, positive_part.view(), spread.view_mut())?;
        device.binary(Binary::Mul, Src::InPlace, y, scaled.view_mut())?;
        device.average_pool_backward(op, scaled.view(), dx.reborrow())?;
        device.axpby(T::acc(2.0), spread.view(), T::acc(-1.0), dx.reborrow())?;
        device.binary(
            Binary::ReluGrad { slope: T::acc(0.0) },
            Src::InPlace,
            positive_part.view(),
            dx,
        )
    }
}
