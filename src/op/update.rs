//! Solver steps.

use crate::element::Element;

/// What weight decay pulls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regularization {
    /// The weight's sign.
    L1,
    /// The weight.
    L2,
}

/// One step of stochastic gradient descent with momentum, in Caffe's form:
///
/// ```text
/// g ← scale · dw + decay · r(w)      r by the regularisation
/// h ← momentum · h + rate · g
/// w ← w − h
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd<T: Element> {
    /// Learning rate, the parameter's multiplier included.
    pub rate: T::Acc,
    /// Share of the last step that is kept.
    pub momentum: T::Acc,
    /// Weight decay, the parameter's multiplier included.
    pub decay: T::Acc,
    /// Factor of the gradient: of clipping, and one over `iter_size`.
    pub scale: T::Acc,
    /// What decay pulls on.
    pub regularization: Regularization,
}
