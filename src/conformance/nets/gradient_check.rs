//! Gradient check of one layer: compares the layer's gradients with finite differences of the tops.

use super::{
    blobs::{data, diff, set_data},
    finite_difference::{FiniteDifference, ROUNDINGS, compare_all, compare_gradient},
};
use crate::{
    blob::Blob,
    conformance::{
        expected::epsilon,
        values::{ValueStream, Values},
    },
    data::SourceRegistry,
    device::{AnyDevice, Device},
    element::{Element, bf16, f16},
    error::{Error, Result},
    layer::{Layer, LayerContext, LayerRegistry, PropagateDown, Shard},
    op::RngKey,
    proto::{LayerParameter, parse_text},
};

/// Tolerance of a gradient, as a number of rounding errors of the element type. A layer rounds the
/// intermediate results that it stores.
const STORED_ROUNDINGS: f64 = 16.0;

/// Gradient check of one layer. Compares the gradients in `f64` with finite differences of `Σ
/// weight · top`, and the tops and gradients in narrower element types with the `f64` results.
///
/// The check also fails unless a backward pass overwrites the gradients of bottoms, adds to the
/// gradients of parameters, and does not change gradients that were not requested.
///
/// ```
/// use cortado::{CpuDevice, conformance::GradientCheck};
///
/// # fn main() -> cortado::Result<()> {
/// let layer = "type: 'InnerProduct' inner_product_param { num_output: 3 }";
/// GradientCheck::new(layer).bottom(&[4, 5]).run(&CpuDevice::new())
/// # }
/// ```
///
/// [`run_with`](Self::run_with) checks a layer of a custom registry.
///
/// The finite differences have the steps 10⁻⁴ and 2 · 10⁻⁴, so the layer must be smooth within a
/// distance of 2 · 10⁻⁴ around its inputs. Random inputs are at least 1/16 away from 0.
#[must_use]
pub struct GradientCheck {
    layer: String,
    bottoms: Vec<Bottom>,
    params: Vec<(usize, Function)>,
    in_place: bool,
}

/// Function that maps the index of an element to the element's value.
type Function = Box<dyn Fn(usize) -> f64>;

struct Bottom {
    shape: Vec<usize>,
    /// Function that computes the values of the bottom, or `None` for random values.
    values: Option<Function>,
    /// Whether the layer computes a gradient for the bottom.
    propagates: bool,
}

impl GradientCheck {
    /// Creates a check of a layer. `layer` contains the fields of a `LayerParameter` in text
    /// format, of which only `type` is required. If `layer` has no `top` fields, the layer has the
    /// minimum number of tops for the layer type.
    pub fn new(layer: &str) -> Self {
        let (bottoms, params) = (Vec::new(), Vec::new());
        Self { layer: layer.to_owned(), bottoms, params, in_place: false }
    }

    /// Adds a bottom that holds random numbers in [−1, 1].
    pub fn bottom(self, shape: &[usize]) -> Self {
        self.add(shape, None, true)
    }

    /// Adds a bottom whose element `i` is `value(i)`.
    pub fn bottom_with(self, shape: &[usize], value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.add(shape, Some(Box::new(value)), true)
    }

    /// Adds a bottom without a gradient, such as labels, whose element `i` is `value(i)`.
    pub fn constant(self, shape: &[usize], value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.add(shape, Some(Box::new(value)), false)
    }

    fn add(mut self, shape: &[usize], values: Option<Function>, propagates: bool) -> Self {
        self.bottoms.push(Bottom { shape: shape.to_owned(), values, propagates });
        self
    }

    /// Sets element `i` of parameter number `index` to `value(i)`. By default, a trainable
    /// parameter holds random numbers in [−1, 1], and any other parameter keeps the layer's initial
    /// values.
    pub fn param(mut self, index: usize, value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.params.push((index, Box::new(value)));
        self
    }

    /// Runs the layer in place, so that the first bottom is also the first top.
    pub fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// Checks a layer of the standard registry in all element types.
    ///
    /// # Errors
    /// Fails with [`Error::InvalidInput`], which names the first wrong gradient, or with an error
    /// of the layer.
    pub fn run(&self, device: &impl Device) -> Result<()> {
        let device = &AnyDevice::new(device);
        let want = self.run_in_f64(device, &LayerRegistry::standard())?;
        self.compare_in::<f32>(device, &want)?;
        self.compare_in::<f16>(device, &want)?;
        self.compare_in::<bf16>(device, &want)
    }

    /// Checks a layer of a custom registry in `f64`.
    ///
    /// # Errors
    /// Fails like [`run`](Self::run).
    pub fn run_with(&self, device: &impl Device, registry: &LayerRegistry<f64>) -> Result<()> {
        self.run_in_f64(&AnyDevice::new(device), registry).map(|_| ())
    }

    /// Checks the gradients in `f64`, and returns the gradients and the tops.
    fn run_in_f64(&self, device: &AnyDevice, registry: &LayerRegistry<f64>) -> Result<Results> {
        let mut trial = Trial::new(self, device, registry)?;
        let results = trial.results()?;
        for operand in trial.differentiated() {
            let differences = trial.differences(operand)?;
            let (name, got) = &results[operand];
            compare_gradient::<f64>(name, got, &differences).or_else(wrong_gradient)?;
        }
        trial.expect_independent(&results)?;
        Ok(results)
    }

    /// Compares tops and gradients in a narrower element type with the tops and gradients in `f64`.
    fn compare_in<T: Element>(&self, device: &AnyDevice, want: &Results) -> Result<()> {
        let got = Trial::<T>::new(self, device, &LayerRegistry::standard())?.results()?;
        let rounding = ROUNDINGS * epsilon::<T::Acc>() + STORED_ROUNDINGS * epsilon::<T>();
        got.iter().zip(want).try_for_each(|((name, got), (_, want))| {
            let name = format!("in {}: {name}", T::DTYPE.name());
            let max_magnitude = want.iter().fold(0.0f64, |max, value| max.max(value.abs()));
            compare_all(&name, got, want, rounding * max_magnitude).or_else(wrong_gradient)
        })
    }
}

fn wrong_gradient(reason: String) -> Result<()> {
    Err(Error::invalid_input("gradient check", reason))
}

/// Names and values of the operands' gradients, followed by the names and values of the tops. The
/// list of values is empty for an operand without a gradient.
type Results = Vec<(String, Vec<f64>)>;

/// Layer under test, with its bottoms and tops.
struct Trial<T: Element> {
    device: AnyDevice,
    layer: Box<dyn Layer<T>>,
    bottom: Vec<Blob<T>>,
    top: Vec<Blob<T>>,
    in_place: bool,
    /// Values of the operands: bottoms, followed by parameters.
    values: Vec<Vec<f64>>,
    /// For each operand, whether the layer computes the operand's gradient.
    propagates: Vec<bool>,
    /// Weights of the elements of each top in the objective.
    weights: Vec<Vec<f64>>,
}

impl<T: Element> Trial<T> {
    fn new(check: &GradientCheck, device: &AnyDevice, registry: &LayerRegistry<T>) -> Result<Self> {
        let param: LayerParameter = parse_text(check.layer.as_str(), "the layer")?;
        let (sources, key) = (SourceRegistry::default(), RngKey::new(1));
        let cx = LayerContext {
            device,
            phase: param.phase(),
            key,
            shard: Shard::WHOLE,
            sources: &sources,
        };
        let mut layer = registry.make(&param, &cx)?;
        let shapes = check.bottoms.iter().map(|bottom| Blob::new(device, &bottom.shape));
        let bottom: Vec<Blob<T>> = shapes.collect::<Result<_>>()?;
        let arity = layer.arity();
        let tops = match (param.top.len(), arity.tops_equal_bottoms) {
            (0, true) => bottom.len(),
            (0, false) => *arity.top.start(),
            (named, _) => named,
        };
        arity.check(bottom.len(), tops)?;
        let mut top = (0..tops).map(|_| Blob::new(device, &[])).collect::<Result<Vec<_>>>()?;
        if check.in_place {
            if !layer.allows_in_place() {
                return Err(Error::InvalidData(format!("{} cannot run in place", layer.kind())));
            }
            top[0] = bottom[0].share();
        }
        let mut stream = Values::Reals.stream(1);
        let mut values_of = |function: Option<&Function>, count| match function {
            Some(value) => (0..count).map(value).collect(),
            None => away_from_zero(&mut stream, count),
        };
        let bottoms = check.bottoms.iter().zip(&bottom);
        let mut values: Vec<_> =
            bottoms.map(|(bottom, blob)| values_of(bottom.values.as_ref(), blob.count())).collect();
        set_all(&bottom, &values)?;
        layer.setup(&cx, &bottom)?;
        layer.reshape(&bottom, &mut top)?;
        let is_trainable = layer.params_are_trainable();
        for (index, blob) in layer.params().iter().enumerate() {
            let function = check.params.iter().find(|(i, _)| *i == index).map(|(_, value)| value);
            values.push(match function {
                None if !is_trainable || layer.keeps_param(index) => data(blob)?,
                _ => values_of(function, blob.count()),
            });
        }
        let weights = top.iter().map(|top| values_of(None, top.count())).collect();
        let propagates = check.bottoms.iter().map(|bottom| bottom.propagates);
        let params = 0..layer.params().len();
        let is_learned = params.map(|index| is_trainable && !layer.keeps_param(index));
        let propagates = propagates.chain(is_learned).collect();
        let (device, in_place) = (device.clone(), check.in_place);
        Ok(Self { device, layer, bottom, top, in_place, values, propagates, weights })
    }

    /// Returns the indices of the operands for which the layer computes a gradient.
    fn differentiated(&self) -> Vec<usize> {
        (0..self.propagates.len()).filter(|&operand| self.propagates[operand]).collect()
    }

    fn gradient_name(&self, operand: usize) -> String {
        match operand.checked_sub(self.bottom.len()) {
            None => format!("the gradient of bottom {operand}"),
            Some(param) => format!("the gradient of parameter {param}"),
        }
    }

    fn blob(&self, operand: usize) -> &Blob<T> {
        self.bottom
            .get(operand)
            .unwrap_or_else(|| &self.layer.params()[operand - self.bottom.len()])
    }

    /// Copies `values` to the bottoms and parameters, and runs a forward pass.
    fn forward(&mut self) -> Result<()> {
        let (bottom, params) = self.values.split_at(self.bottom.len());
        set_all(&self.bottom, bottom)?;
        set_all(self.layer.params(), params)?;
        self.layer.reshape(&self.bottom, &mut self.top)?;
        self.layer.forward(&self.device, &self.bottom, &self.top)
    }

    /// Returns the terms of the objective: each element of a top times its weight.
    fn terms(&self) -> Result<Vec<f64>> {
        let mut terms = Vec::new();
        for (top, weights) in self.top.iter().zip(&self.weights) {
            terms.extend(data(top)?.iter().zip(weights).map(|(y, w)| y * w));
        }
        Ok(terms)
    }

    /// Runs a backward pass that computes the gradients of the `requested` operands. Returns an
    /// error if the backward pass changes a gradient that was not requested.
    fn backward(&mut self, is_requested: &[bool]) -> Result<Vec<Vec<f64>>> {
        for operand in 0..self.values.len() {
            let old_value = if operand < self.bottom.len() { f64::NAN } else { INITIAL_GRADIENT };
            self.blob(operand).diff_mut()?.host_mut()?.fill(T::from_f64(old_value));
        }
        for (top, weights) in self.top.iter().zip(&self.weights) {
            let mut diff = top.diff_mut()?;
            diff.host_mut()?.iter_mut().zip(weights).for_each(|(d, &w)| *d = T::from_f64(w));
        }
        let (bottom, params) = is_requested.split_at(self.bottom.len());
        let propagate = PropagateDown { bottom, params };
        self.layer.backward(&self.device, &self.top, propagate, &self.bottom)?;
        let mut gradients = Vec::new();
        for (operand, &is_requested) in is_requested.iter().enumerate() {
            let diff = diff(self.blob(operand))?;
            let is_bottom = operand < self.bottom.len();
            let is_shared = self.in_place && operand == 0;
            let is_unchanged =
                |d: &f64| if is_bottom { d.is_nan() } else { *d == INITIAL_GRADIENT };
            if !is_requested
                && !is_shared
                && self.propagates[operand]
                && !diff.iter().all(is_unchanged)
            {
                let name = self.gradient_name(operand);
                wrong_gradient(format!(
                    "{name} was not requested, but the layer has written the gradient"
                ))?;
            }
            let old_value = if is_bottom { 0.0 } else { INITIAL_GRADIENT };
            let diff = diff.into_iter().map(|d| d - old_value);
            gradients.push(if is_requested { diff.collect() } else { Vec::new() });
        }
        Ok(gradients)
    }

    fn results(&mut self) -> Result<Results> {
        self.forward()?;
        let tops: Vec<_> = self.top.iter().map(data).collect::<Result<_>>()?;
        let gradients = self.backward(&self.propagates.clone())?.into_iter().enumerate();
        let gradients = gradients.map(|(i, gradient)| (self.gradient_name(i), gradient));
        let tops = tops.into_iter().enumerate().map(|(i, top)| (format!("top {i}"), top));
        Ok(gradients.chain(tops).collect())
    }

    /// Returns an error unless a backward pass for one operand gives the same gradient as a
    /// backward pass for all operands.
    fn expect_independent(&mut self, all: &Results) -> Result<()> {
        for operand in self.differentiated() {
            let is_requested: Vec<_> =
                (0..self.propagates.len()).map(|other| other == operand).collect();
            self.forward()?;
            let gradients = self.backward(&is_requested)?;
            let (name, want) = &all[operand];
            let name = format!("with no other gradient requested, {name}");
            compare_all(&name, &gradients[operand], want, 0.0).or_else(wrong_gradient)?;
        }
        Ok(())
    }
}

impl Trial<f64> {
    fn differences(&mut self, operand: usize) -> Result<Vec<FiniteDifference>> {
        self.forward()?;
        let magnitude = self.terms()?.iter().map(|term| term.abs()).sum();
        let mut differences = Vec::new();
        for i in 0..self.values[operand].len() {
            let x = self.values[operand][i];
            let difference = FiniteDifference::new(i, x, magnitude, |value| {
                self.values[operand][i] = value;
                self.forward()?;
                Ok(self.terms()?.iter().sum())
            });
            self.values[operand][i] = x;
            differences.push(difference?);
        }
        Ok(differences)
    }
}

/// Value of each element of a parameter's gradient before a backward pass, which must add to this
/// value.
const INITIAL_GRADIENT: f64 = 0.25;

/// Returns random numbers that every element type represents exactly, at least 1/16 away from 0.
fn away_from_zero(stream: &mut ValueStream, count: usize) -> Vec<f64> {
    let numbers = stream.take::<f64>(count).into_iter();
    let away_from_zero = |x: f64| x.signum() * (1.0 / 16.0 + x.abs() * 15.0 / 16.0);
    numbers.map(|x| bf16::from_f64(away_from_zero(x)).to_f64()).collect()
}

fn set_all<T: Element>(blobs: &[Blob<T>], values: &[Vec<f64>]) -> Result<()> {
    blobs.iter().zip(values).try_for_each(|(blob, values)| set_data(blob, values))
}
