//! Solver methods, which update parameters from their gradients.

use crate::{
    blob::{Blob, WriteGuard},
    element::Element,
    error::Result,
    kernel::traits::*,
    memory::Src,
    op::{Regularization, SolverUpdate, Unary, UpdateRule, adam_correction},
};

/// A solver method, which updates parameters from their gradients. A
/// [`MethodRegistry`](super::MethodRegistry) creates solver methods. The trait `Method` is
/// object-safe.
///
/// A solver method has no state: the solver owns the history blobs and saves them in snapshots. An
/// [`UpdateRule`] is a solver method that runs as a single kernel.
///
/// ```
/// use cortado::{proto::parse_text, solver::MethodRegistry};
///
/// let adam = parse_text(r#"type: "Adam" base_lr: 0.001 momentum: 0.9"#, "solver")?;
/// let method = MethodRegistry::<f32>::standard().make(&adam)?;
/// assert_eq!(method.histories(), 2); // the means of gradients and of squared gradients
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Method<T: Element>: Send {
    /// Returns the number of history blobs that the solver method needs for each parameter.
    fn histories(&self) -> usize;

    /// Updates a learnable parameter from its gradient.
    ///
    /// # Errors
    /// Returns any error that the device returns.
    #[doc(alias = "ComputeUpdateValue")]
    fn update(&mut self, update: &UpdateParams, param: &LearnableParam<'_, T>) -> Result<()>;
}

/// The scalars that a solver passes to its solver method for every update, such as the learning
/// rate.
///
/// ```
/// use cortado::{op::{Regularization, UpdateRule}, prelude::*};
/// use cortado::solver::{LearnableParam, Method, UpdateParams};
///
/// let device = AnyDevice::new(&CpuDevice::new());
/// let (w, history) = (Blob::<f32>::ones(&device, &[1])?, [Blob::new(&device, &[1])?]);
/// w.diff_mut()?.host_mut()?.fill(2.0);
/// let (scale, decay, regularization) = (1.0, 0.0, Regularization::L2);
/// let update = UpdateParams { iteration: 0, rate: 0.25, scale, decay, regularization };
/// let param = LearnableParam { blob: &w, masters: None, history: &history };
/// UpdateRule::Sgd { momentum: 0.0 }.update(&update, &param)?;
/// assert_eq!(w.item()?, 0.5); // 1 − 0.25 · 2
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateParams {
    /// The number of updates made so far.
    pub iteration: usize,
    /// The learning rate times the parameter's `lr_mult`.
    pub rate: f64,
    /// The factor that scales the gradient: the clipping factor divided by `iter_size`.
    pub scale: f64,
    /// The weight decay times the parameter's `decay_mult`.
    pub decay: f64,
    /// The norm that the weight decay penalizes.
    pub regularization: Regularization,
}

/// A learnable parameter with its master weights and history blobs.
///
/// ```
/// use cortado::{op::Regularization, prelude::*, solver::{LearnableParam, UpdateParams}};
///
/// let w = Blob::<f32>::full(&AnyDevice::new(&CpuDevice::new()), &[1], 3.0)?;
/// w.diff_mut()?.host_mut()?.fill(1.0);
/// let regularization = Regularization::L2;
/// let update = UpdateParams { iteration: 0, rate: 0.1, scale: 2.0, decay: 0.5, regularization };
/// LearnableParam { blob: &w, masters: None, history: &[] }.regularize(&update)?;
/// assert_eq!(w.diff()?.host()?, [2.0 * 1.0 + 0.5 * 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LearnableParam<'a, T: Element> {
    /// The blob with the values and the gradient of the parameter.
    pub blob: &'a Blob<T>,
    /// The master weights in the accumulator type; `None` unless the weights have 16 bits. See
    /// [`Update::solver_update`](crate::kernel::Update::solver_update).
    pub masters: Option<&'a Blob<T::Acc>>,
    /// The history blobs of the solver method, which have the parameter's shape and are initially
    /// zero.
    pub history: &'a [Blob<T::Acc>],
}

impl<T: Element> LearnableParam<'_, T> {
    /// Updates the parameter, its master weights and its history with a single kernel.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length) if `history` does not have the number of
    /// blobs that the update rule needs. Returns [`Error::Borrowed`](crate::Error::Borrowed) while
    /// one of the blobs is borrowed, and any error that the device returns.
    pub fn apply_update(&self, op: &SolverUpdate<T>) -> Result<()> {
        let (dw, mut w) = (self.blob.diff()?, self.blob.data_mut()?);
        let mut masters = self.masters.map(Blob::data_mut).transpose()?;
        let history = self.history.iter().map(Blob::data_mut);
        let mut history = history.collect::<Result<Vec<_>>>()?;
        let mut history: Vec<_> = history.iter_mut().map(WriteGuard::view_mut).collect();
        let masters = masters.as_mut().map(WriteGuard::view_mut);
        self.blob.device().solver_update(op, dw.view(), w.view_mut(), masters, &mut history)
    }

    /// Scales the gradient and adds the weight decay: `dw ← scale · dw + decay · r(w)`, where
    /// `r(w)` is `w` for L2 and `sign(w)` for L1. A solver method that consists of several kernels
    /// calls `regularize` first.
    ///
    /// # Errors
    /// Returns [`Error::Borrowed`](crate::Error::Borrowed) while the parameter's blob is borrowed,
    /// and any error that the device returns.
    #[doc(alias = "Normalize")]
    #[doc(alias = "Regularize")]
    pub fn regularize(&self, update: &UpdateParams) -> Result<()> {
        let device = self.blob.device();
        let (w, mut dw) = (self.blob.data()?, self.blob.diff_mut()?);
        let (scale, decay) = (T::acc(update.scale), T::acc(update.decay));
        if update.regularization == Regularization::L2 {
            return device.axpby(decay, w.view(), scale, dw.view_mut());
        }
        let signs = Blob::<T>::new(device, self.blob.shape())?;
        device.unary(Unary::Sign, Src::View(w.view()), signs.data_mut()?.view_mut())?;
        device.axpby(decay, signs.data()?.view(), scale, dw.view_mut())
    }
}

impl<T: Element> Method<T> for UpdateRule<T> {
    fn histories(&self) -> usize {
        Self::history_count(self)
    }

    fn update(&mut self, update: &UpdateParams, param: &LearnableParam<'_, T>) -> Result<()> {
        let correction = match *self {
            Self::Adam { beta1, beta2, .. } => {
                adam_correction(beta1.to_f64(), beta2.to_f64(), update.iteration)
            }
            _ => 1.0,
        };
        param.apply_update(&SolverUpdate {
            rate: T::acc(update.rate * correction),
            scale: T::acc(update.scale),
            decay: T::acc(update.decay),
            regularization: update.regularization,
            rule: *self,
        })
    }
}
