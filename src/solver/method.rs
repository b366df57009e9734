//! What a method of descent is.

use crate::{
    blob::{Blob, WriteGuard},
    device::Device,
    element::Element,
    error::Result,
    memory::Src,
    op::{Regularization, SolverUpdate, Unary, UpdateRule, adam_correction},
};

/// A way from gradients to updates. Object-safe; made by a maker of a
/// [`MethodRegistry`](super::MethodRegistry).
///
/// A method keeps nothing itself: its history lies in blobs of the solver's, which snapshots hold.
/// A [`Rule`] is a method of one kernel.
pub trait Method<T: Element, D: Device>: Send {
    /// How many blobs of history it keeps of each parameter.
    fn histories(&self) -> usize;

    /// Updates a parameter from its gradient.
    ///
    /// # Errors
    /// Those of the device.
    #[doc(alias = "ComputeUpdateValue")]
    fn update(&mut self, stride: &UpdateParams, param: &LearnableParam<'_, T, D>) -> Result<()>;
}

/// How far one update goes, whatever the method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateParams {
    /// Updates made before.
    pub iteration: usize,
    /// Learning rate, the parameter's multiplier included.
    pub rate: f64,
    /// Factor of the gradient: of clipping, and one over `iter_size`.
    pub scale: f64,
    /// Weight decay, the parameter's multiplier included.
    pub decay: f64,
    /// What decay pulls on.
    pub regularization: Regularization,
}

/// A parameter and what its solver keeps of it.
pub struct LearnableParam<'a, T: Element, D: Device> {
    /// Values and gradient.
    pub blob: &'a Blob<T, D>,
    /// The same values in the type that steps are computed in, if weights have 16 bits. See
    /// [`Update::solver_update`](crate::kernel::Update::solver_update).
    pub masters: Option<&'a Blob<T::Acc, D>>,
    /// As many blobs as the method keeps, in the parameter's shape; zero at first.
    pub history: &'a [Blob<T::Acc, D>],
}

impl<T: Element, D: Device> LearnableParam<'_, T, D> {
    /// Takes one step, in one pass over all blobs.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) unless there are as many blobs of history as the
    /// rule keeps; [`Error::Borrowed`](crate::Error::Borrowed); those of the device.
    pub fn apply_update(&self, op: &SolverUpdate<T>) -> Result<()> {
        let (dw, mut w) = (self.blob.diff()?, self.blob.data_mut()?);
        let mut masters = self.masters.map(Blob::data_mut).transpose()?;
        let history = self.history.iter().map(Blob::data_mut);
        let mut history = history.collect::<Result<Vec<_>>>()?;
        let mut history: Vec<_> = history.iter_mut().map(WriteGuard::view_mut).collect();
        let masters = masters.as_mut().map(WriteGuard::view_mut);
        self.blob.device().solver_update(op, dw.view(), w.view_mut(), masters, &mut history)
    }

    /// `dw ← scale · dw + decay · r(w)`: for methods that are composed of kernels.
    ///
    /// # Errors
    /// [`Error::Borrowed`](crate::Error::Borrowed); those of the device.
    #[doc(alias = "Normalize")]
    #[doc(alias = "Regularize")]
    pub fn regularize(&self, stride: &UpdateParams) -> Result<()> {
        let device = self.blob.device();
        let (w, mut dw) = (self.blob.data()?, self.blob.diff_mut()?);
        let (scale, decay) = (T::acc(stride.scale), T::acc(stride.decay));
        if stride.regularization == Regularization::L2 {
            return device.axpby(decay, w.view(), scale, dw.view_mut());
        }
        let signs = Blob::<T, D>::new(device, self.blob.shape())?;
        device.unary(Unary::Sign, Src::View(w.view()), signs.data_mut()?.view_mut())?;
        device.axpby(decay, signs.data()?.view(), scale, dw.view_mut())
    }
}

impl<T: Element, D: Device> Method<T, D> for UpdateRule<T> {
    fn histories(&self) -> usize {
        Self::history_count(self)
    }

    fn update(&mut self, stride: &UpdateParams, param: &LearnableParam<'_, T, D>) -> Result<()> {
        let correction = match *self {
            Self::Adam { beta1, beta2, .. } => {
                adam_correction(beta1.to_f64(), beta2.to_f64(), stride.iteration)
            }
            _ => 1.0,
        };
        param.apply_update(&SolverUpdate {
            rate: T::acc(stride.rate * correction),
            scale: T::acc(stride.scale),
            decay: T::acc(stride.decay),
            regularization: stride.regularization,
            rule: *self,
        })
    }
}
