//! The registry of solver methods by `type`, such as `"Adam"`.

use super::method::Method;
use crate::{
    element::{Element, compiled_for},
    error::{Error, Result},
    op::UpdateRule,
    proto::SolverParameter,
    suggest::did_you_mean,
};
use std::collections::BTreeMap;

type Constructor<T> = Box<dyn Fn(&SolverParameter) -> Result<Box<dyn Method<T>>> + Send + Sync>;

/// The constructors of solver methods, keyed by the solver's `type`. Unlike Caffe, cortado has no
/// global registry: [`SolverBuilder::methods`](super::SolverBuilder::methods) sets the method
/// registry of a solver.
///
/// The following custom solver method subtracts the sign of the gradient:
///
/// ```
/// use cortado::{
///     CpuDevice, Element, Result, Solver, Src,
///     kernel::traits::*,
///     op::Unary,
///     proto::{self, SolverParameter},
///     solver::{LearnableParam, Method, MethodRegistry, UpdateParams},
/// };
///
/// struct SignDescent;
///
/// impl<T: Element> Method<T> for SignDescent {
///     fn histories(&self) -> usize {
///         0
///     }
///     fn update(
///         &mut self,
///         update: &UpdateParams,
///         param: &LearnableParam<'_, T>,
///     ) -> Result<()> {
///         param.regularize(update)?;
///         let (mut w, mut dw) = (param.blob.data_mut()?, param.blob.diff_mut()?);
///         let device = param.blob.device();
///         device.unary(Unary::Sign, Src::InPlace, dw.view_mut())?;
///         device.axpy(T::acc(-update.rate), dw.view(), w.view_mut())
///     }
/// }
///
/// let text = r#"
///     type: "SignDescent" base_lr: 0.001 lr_policy: "fixed" snapshot_after_train: false
///     net_param {
///       layer { name: "data" type: "Data" top: "data" top: "label"
///         data_param { source: "digits:train?count=64&seed=1" batch_size: 16 } }
///       layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
///         inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
///       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
///     }"#;
/// let definition: SolverParameter = proto::parse_text(text, "solver.prototxt")?;
/// let methods = MethodRegistry::standard().with("SignDescent", |_| Ok(SignDescent));
/// let mut solver =
///     Solver::<f32>::builder(&CpuDevice::new()).methods(methods).build(definition)?;
/// solver.step(5)?;
/// assert_eq!(solver.iteration(), 5);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "SolverRegistry")]
pub struct MethodRegistry<T: Element> {
    constructors: BTreeMap<String, Constructor<T>>,
}

impl<T: Element> MethodRegistry<T> {
    /// Creates an empty registry of solver methods.
    pub fn empty() -> Self {
        Self { constructors: BTreeMap::new() }
    }

    /// Creates a registry with Caffe's solver methods.
    #[doc(alias = "SGDSolver")]
    #[doc(alias = "NesterovSolver")]
    #[doc(alias = "AdaGradSolver")]
    #[doc(alias = "RMSPropSolver")]
    #[doc(alias = "AdaDeltaSolver")]
    #[doc(alias = "AdamSolver")]
    pub fn standard() -> Self {
        compiled_for!(T, fn() -> MethodRegistry<T> = MethodRegistry::caffe_methods)()
    }

    fn caffe_methods() -> Self {
        Self::empty()
            .with("AdaDelta", |param| {
                let (momentum, delta) = (acc::<T>(param.momentum()), acc::<T>(param.delta()));
                Ok(UpdateRule::AdaDelta { momentum, delta })
            })
            .with("AdaGrad", |param| {
                check_no_momentum(param)?;
                Ok(UpdateRule::AdaGrad { delta: acc::<T>(param.delta()) })
            })
            .with("Adam", |param| {
                let (beta1, beta2) = (acc::<T>(param.momentum()), acc::<T>(param.momentum2()));
                Ok(UpdateRule::Adam { beta1, beta2, delta: acc::<T>(param.delta()) })
            })
            .with("Nesterov", |param| {
                Ok(UpdateRule::Nesterov { momentum: acc::<T>(param.momentum()) })
            })
            .with("RMSProp", |param| {
                check_no_momentum(param)?;
                let decay = param.rms_decay();
                if !(0.0..1.0).contains(&decay) {
                    let reason = format!("rms_decay {decay} is out of range; it must be in [0, 1)");
                    return Err(Error::InvalidData(reason));
                }
                Ok(UpdateRule::RmsProp { decay: acc::<T>(decay), delta: acc::<T>(param.delta()) })
            })
            .with("SGD", |param| Ok(UpdateRule::Sgd { momentum: acc::<T>(param.momentum()) }))
    }

    /// Adds or replaces the constructor of a solver method.
    #[must_use]
    #[doc(alias = "REGISTER_SOLVER_CLASS")]
    pub fn with<M, F>(mut self, kind: &str, make: F) -> Self
    where
        M: Method<T> + 'static,
        F: Fn(&SolverParameter) -> Result<M> + Send + Sync + 'static,
    {
        let make: Constructor<T> = Box::new(move |param| Ok(Box::new(make(param)?)));
        self.constructors.insert(kind.to_owned(), make);
        self
    }

    /// Returns the names of the solver methods in alphabetical order.
    #[doc(alias = "SolverTypeList")]
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.constructors.keys().map(String::as_str)
    }

    /// Creates the solver method that a solver's definition names.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for an unknown `type`, and any error from the method's
    /// constructor.
    #[doc(alias = "CreateSolver")]
    pub fn make(&self, param: &SolverParameter) -> Result<Box<dyn Method<T>>> {
        let kind = param.r#type();
        let make = self.constructors.get(kind).ok_or_else(|| {
            let known = self.kinds().collect::<Vec<_>>().join(", ");
            let suggestion = did_you_mean(kind, self.kinds());
            let reason = format!("unknown solver type `{kind}`{suggestion}; known types: {known}");
            Error::InvalidData(reason)
        })?;
        make(param)
    }
}

impl<T: Element> Default for MethodRegistry<T> {
    fn default() -> Self {
        Self::standard()
    }
}

fn acc<T: Element>(value: f32) -> T::Acc {
    T::acc(value.into())
}

/// Fails if the solver's definition sets a momentum, because the solver method has none.
fn check_no_momentum(param: &SolverParameter) -> Result<()> {
    match param.momentum() {
        0.0 => Ok(()),
        momentum => {
            let reason = format!("momentum {momentum}: not supported by {}", param.r#type());
            Err(Error::InvalidData(reason))
        }
    }
}
