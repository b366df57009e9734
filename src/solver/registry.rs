//! From `type: "Adam"` to a method.

use super::Method;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    op::UpdateRule,
    proto::SolverParameter,
    words::did_you_mean,
};
use std::collections::BTreeMap;

type Maker<T, D> = Box<dyn Fn(&SolverParameter) -> Result<Box<dyn Method<T, D>>> + Send + Sync>;

/// Methods by name. A value, not a global: a solver is built with one.
///
/// A method of one's own, descent by the gradient's sign:
///
/// ```
/// use cortado::{
///     CpuDevice, Device, Element, Result, Solver, Src,
///     op::Unary,
///     proto::{self, SolverParameter},
///     solver::{Learned, Method, MethodRegistry, Stride},
/// };
///
/// struct Signs;
///
/// impl<T: Element, D: Device> Method<T, D> for Signs {
///     fn histories(&self) -> usize {
///         0
///     }
///     fn update(&mut self, stride: &Stride, param: &Learned<'_, T, D>) -> Result<()> {
///         param.regularize(stride)?;
///         let (mut w, mut dw) = (param.blob.data_mut()?, param.blob.diff_mut()?);
///         let device = param.blob.device();
///         device.unary(Unary::Sign, Src::InPlace, dw.view_mut())?;
///         device.axpy(T::acc(-stride.rate), dw.view(), w.view_mut())
///     }
/// }
///
/// let text = r#"
///     type: "Signs" base_lr: 0.001 lr_policy: "fixed" snapshot_after_train: false
///     net_param {
///       layer { name: "data" type: "Data" top: "data" top: "label"
///         data_param { source: "digits:train?count=64&seed=1" batch_size: 16 } }
///       layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
///         inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
///       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
///     }"#;
/// let definition: SolverParameter = proto::parse_text(text, "solver.prototxt")?;
/// let methods = MethodRegistry::standard().with("Signs", |_| Ok(Signs));
/// let mut solver =
///     Solver::<f32, _>::builder(&CpuDevice::new()).methods(methods).build(definition)?;
/// solver.step(5)?;
/// assert_eq!(solver.iteration(), 5);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "SolverRegistry")]
pub struct MethodRegistry<T: Element, D: Device> {
    makers: BTreeMap<String, Maker<T, D>>,
}

impl<T: Element, D: Device> MethodRegistry<T, D> {
    /// No methods.
    pub fn empty() -> Self {
        Self { makers: BTreeMap::new() }
    }

    /// Caffe's methods.
    #[doc(alias = "SGDSolver")]
    #[doc(alias = "NesterovSolver")]
    #[doc(alias = "AdaGradSolver")]
    #[doc(alias = "RMSPropSolver")]
    #[doc(alias = "AdaDeltaSolver")]
    #[doc(alias = "AdamSolver")]
    pub fn standard() -> Self {
        Self::empty()
            .with("AdaDelta", |param| {
                let (momentum, delta) = (acc::<T>(param.momentum()), acc::<T>(param.delta()));
                Ok(UpdateRule::AdaDelta { momentum, delta })
            })
            .with("AdaGrad", |param| {
                without_momentum(param)?;
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
                without_momentum(param)?;
                let decay = param.rms_decay();
                if !(0.0..1.0).contains(&decay) {
                    let why = format!("rms_decay {decay} is not between 0 and 1 (exclusive)");
                    return Err(Error::InvalidData(why));
                }
                Ok(UpdateRule::RmsProp { decay: acc::<T>(decay), delta: acc::<T>(param.delta()) })
            })
            .with("SGD", |param| Ok(UpdateRule::Sgd { momentum: acc::<T>(param.momentum()) }))
    }

    /// Adds or replaces a method.
    #[must_use]
    #[doc(alias = "REGISTER_SOLVER_CLASS")]
    pub fn with<M, F>(mut self, kind: &str, make: F) -> Self
    where
        M: Method<T, D> + 'static,
        F: Fn(&SolverParameter) -> Result<M> + Send + Sync + 'static,
    {
        let make: Maker<T, D> = Box::new(move |param| Ok(Box::new(make(param)?)));
        self.makers.insert(kind.to_owned(), make);
        self
    }

    /// The methods there are, in order.
    #[doc(alias = "SolverTypeList")]
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.makers.keys().map(String::as_str)
    }

    /// Makes the method that a solver's definition asks for.
    ///
    /// # Errors
    /// [`Error::InvalidData`] names the methods there are; else what the maker returns.
    #[doc(alias = "CreateSolver")]
    pub fn make(&self, param: &SolverParameter) -> Result<Box<dyn Method<T, D>>> {
        let kind = param.r#type();
        let make = self.makers.get(kind).ok_or_else(|| {
            let known = self.kinds().collect::<Vec<_>>().join(", ");
            let meant = did_you_mean(kind, self.kinds());
            Error::InvalidData(format!("unknown solver type `{kind}`{meant}; known types: {known}"))
        })?;
        make(param)
    }
}

impl<T: Element, D: Device> Default for MethodRegistry<T, D> {
    fn default() -> Self {
        Self::standard()
    }
}

fn acc<T: Element>(value: f32) -> T::Acc {
    T::acc(value.into())
}

/// Fails for a momentum that the method has no use for.
fn without_momentum(param: &SolverParameter) -> Result<()> {
    match param.momentum() {
        0.0 => Ok(()),
        momentum => {
            let why = format!("momentum {momentum}: {} takes none", param.r#type());
            Err(Error::InvalidData(why))
        }
    }
}
