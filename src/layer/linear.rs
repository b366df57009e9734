//! The linear map `y = x·Wᵀ`, the matrix product of inputs and transposed weights, and its
//! gradients.

use super::prelude::*;
use crate::{
    memory::{View, ViewMut},
    op::{Gemm, Transpose},
};

/// The linear map `y = x·Wᵀ`, where `x` is rows × inputs and `W` is outputs × inputs.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    pub(super) rows: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Linear {
    /// Computes the outputs, `y ← x·Wᵀ`.
    pub(super) fn forward<T: Element>(
        self,
        device: &AnyDevice,
        x: View<'_, T, AnyDevice>,
        weights: &Blob<T>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let Self { rows, inputs, outputs } = self;
        let op = Gemm::new(rows, outputs, inputs).transpose(Transpose::No, Transpose::Yes);
        device.gemm(&op, x, weights.data()?.view(), y)
    }

    /// Computes the gradient of the inputs, `dx ← dy·W`.
    pub(super) fn backward<T: Element>(
        self,
        device: &AnyDevice,
        dy: View<'_, T, AnyDevice>,
        weights: &Blob<T>,
        dx: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let Self { rows, inputs, outputs } = self;
        device.gemm(&Gemm::new(rows, inputs, outputs), dy, weights.data()?.view(), dx)
    }

    /// Adds to the gradient of the weights, `dW ← dW + dyᵀ·x`.
    pub(super) fn weights_gradient<T: Element>(
        self,
        device: &AnyDevice,
        x: View<'_, T, AnyDevice>,
        dy: View<'_, T, AnyDevice>,
        weights: &Blob<T>,
    ) -> Result<()> {
        let Self { rows, inputs, outputs } = self;
        let op =
            Gemm::new(outputs, inputs, rows).transpose(Transpose::Yes, Transpose::No).accumulate();
        device.gemm(&op, dy, x, weights.diff_mut()?.view_mut())
    }
}
