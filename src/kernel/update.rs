//! The kernel that updates weights by one step of a solver.

use super::fallback;
use crate::{
    element::Element,
    error::Result,
    memory::{Memory, View, ViewMut},
    op::SolverUpdate,
};

// The trait `Update` is written without `declare_family!`, because only `solver_update` has an
// optional output and a list of outputs.
/// Solver updates, each of which is a single pass over a parameter's weights, gradient and history.
///
/// ```
/// use cortado::{kernel::Update, op::{Regularization, SolverUpdate, UpdateRule}, prelude::*};
///
/// let device = CpuDevice::new();
/// let w = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
/// w.diff_mut()?.host_mut()?.copy_from_slice(&[4.0, -4.0]);
/// let h = Blob::zeros(&device, &[2])?;
/// let (regularization, rule) = (Regularization::L2, UpdateRule::Sgd { momentum: 0.9 });
/// let op = SolverUpdate { rate: 0.25, scale: 1.0, decay: 0.0, regularization, rule };
/// let (dw, mut weights, mut history) = (w.diff()?, w.data_mut()?, h.data_mut()?);
/// device.solver_update(&op, dw.view(), weights.view_mut(), None, &mut [history.view_mut()])?;
/// assert_eq!(weights.host_mut()?, [0.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Update: Memory {
    /// Updates the weights by one step of a solver; see [`SolverUpdate`]. `history` holds one
    /// operand for each history value that the update rule keeps per weight.
    ///
    /// `masters` holds the master weights of 16-bit weights in the accumulator type. Master weights
    /// accumulate steps that are too small to change a 16-bit weight. If other code has changed a
    /// weight, so that the weight differs from its rounded master weight, the update starts from
    /// the weight.
    ///
    /// An intermediate result may be rounded to `T::Acc` or not (FMA). The new weight is the new
    /// master weight, rounded to `T`. L1 regularization does not change a weight of 0. A NaN in
    /// `dw` or `history` makes the weight at the same position NaN, and no other weight. The
    /// [module page](crate::kernel) lists the rules that all kernels share.
    ///
    /// Lengths: `dw`, `masters` and each operand of `history` have as many elements as `weights`.
    #[track_caller]
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        fallback::solver_update(self, op, dw, weights, masters, history)
    }
}

pub(super) const NAMES: &[&str] = &["solver_update"];
