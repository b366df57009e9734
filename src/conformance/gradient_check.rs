//! Gradients of one layer against differences of its tops.

use super::{
    finite_difference::{FiniteDifference, ROUNDINGS},
    values::{Values, epsilon, wide},
};
use crate::{
    blob::Blob,
    data::SourceRegistry,
    device::Device,
    element::{Element, bf16, f16},
    error::{Error, Result},
    layer::{Layer, LayerContext, LayerRegistry, PropagateDown},
    op::RngKey,
    proto::{LayerParameter, parse_text},
};

/// Roundings to the element on the way to a gradient: of what a layer stores in between.
const STORED: f64 = 16.0;

/// Compares a layer's gradients with differences of `Σ weight · top`, in `f64`; then its tops and
/// gradients in the other element types with those.
///
/// Besides, a backward pass has to overwrite the gradients of bottoms, to add to those of
/// parameters, and to leave alone what it is not asked for.
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
/// Layers of your own come from a registry of yours, by [`run_with`](Self::run_with).
///
/// The differences are over steps of 10⁻⁴, so functions have to be smooth that far about the
/// values they are tried at; those that are drawn are no nearer to 0.
#[must_use]
pub struct GradientCheck {
    layer: String,
    bottoms: Vec<Bottom>,
    params: Vec<(usize, Function)>,
    in_place: bool,
}

/// Values by place.
type Function = Box<dyn Fn(usize) -> f64>;

struct Bottom {
    shape: Vec<usize>,
    /// Drawn if not given.
    values: Option<Function>,
    /// Whether a gradient reaches it.
    propagates: bool,
}

impl GradientCheck {
    /// Of the layer that this text defines, the fields of a `LayerParameter`: at least its `type`.
    /// It has as many tops as it names, or else as few as it can.
    pub fn new(layer: &str) -> Self {
        let (bottoms, params) = (Vec::new(), Vec::new());
        Self { layer: layer.to_owned(), bottoms, params, in_place: false }
    }

    /// Adds a bottom that holds numbers of [−1, 1].
    pub fn bottom(self, shape: &[usize]) -> Self {
        self.add(shape, None, true)
    }

    /// Adds a bottom that holds `value(i)`.
    pub fn bottom_with(self, shape: &[usize], value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.add(shape, Some(Box::new(value)), true)
    }

    /// Adds a bottom that holds `value(i)` and that no gradient reaches, such as labels.
    pub fn constant(self, shape: &[usize], value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.add(shape, Some(Box::new(value)), false)
    }

    fn add(mut self, shape: &[usize], values: Option<Function>, propagates: bool) -> Self {
        self.bottoms.push(Bottom { shape: shape.to_owned(), values, propagates });
        self
    }

    /// Sets a parameter to `value(i)`; those that are learned hold numbers of [−1, 1] if not set,
    /// others what the layer gives them.
    pub fn param(mut self, index: usize, value: impl Fn(usize) -> f64 + 'static) -> Self {
        self.params.push((index, Box::new(value)));
        self
    }

    /// Lets the first top be the first bottom.
    pub fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// Runs the check on a layer of the standard registry, in all element types.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] names the gradient that is wrong; what the layer returns.
    pub fn run<D: Device>(&self, device: &D) -> Result<()> {
        let want = self.run_in_f64(device, &LayerRegistry::standard())?;
        self.compare_in::<f32, D>(device, &want)?;
        self.compare_in::<f16, D>(device, &want)?;
        self.compare_in::<bf16, D>(device, &want)
    }

    /// Runs the check on a layer of a registry, in `f64`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with<D: Device>(&self, device: &D, registry: &LayerRegistry<f64, D>) -> Result<()> {
        self.run_in_f64(device, registry).map(|_| ())
    }

    /// Checks the gradients in `f64`; yields the results.
    fn run_in_f64<D: Device>(
        &self,
        device: &D,
        registry: &LayerRegistry<f64, D>,
    ) -> Result<Results> {
        let mut trial = Trial::new(self, device, registry)?;
        let results = trial.results()?;
        for subject in trial.subjects() {
            let slopes = trial.slopes(subject)?;
            let (name, got) = (trial.name(subject), &results.gradients[subject]);
            let greatest = slopes.iter().fold(0.0f64, |max, slope| max.max(slope.value.abs()));
            for FiniteDifference { place, value, unsure } in slopes {
                let bound = unsure + ROUNDINGS * f64::EPSILON * greatest;
                expect_near(&format!("the gradient of {name}"), place, got[place], value, bound)?;
            }
        }
        trial.expect_apart(&results)?;
        Ok(results)
    }

    /// Compares a narrower type's results with those in `f64`.
    fn compare_in<T: Element, D: Device>(&self, device: &D, want: &Results) -> Result<()> {
        let mut trial = Trial::<T, D>::new(self, device, &LayerRegistry::standard())?;
        let got = trial.results()?;
        let rounding = ROUNDINGS * epsilon::<T::Acc>() + STORED * epsilon::<T>();
        let tops = got.tops.iter().zip(&want.tops).enumerate();
        let tops = tops.map(|(i, pair)| (format!("top {i}"), pair));
        let gradients = got.gradients.iter().zip(&want.gradients).enumerate();
        let gradients =
            gradients.map(|(i, pair)| (format!("the gradient of {}", trial.name(i)), pair));
        for (name, (got, want)) in tops.chain(gradients) {
            let name = format!("in {}: {name}", T::DTYPE.name());
            let greatest = want.iter().fold(0.0f64, |max, value| max.max(value.abs()));
            for (place, (&got, &want)) in got.iter().zip(want).enumerate() {
                expect_near(&name, place, got, want, rounding * greatest)?;
            }
        }
        Ok(())
    }
}

fn expect_near(name: &str, place: usize, got: f64, want: f64, bound: f64) -> Result<()> {
    let off = (got - want).abs();
    if off <= bound {
        return Ok(());
    }
    wrong(format!("{name}[{place}] is {got:e}, not {want:e}: off by {off:e}, not {bound:e}"))
}

fn wrong(why: String) -> Result<()> {
    Err(Error::invalid_input("gradient check", why))
}

/// What a pass in both directions gives.
struct Results {
    tops: Vec<Vec<f64>>,
    /// By subject; nothing for those that no gradient reaches.
    gradients: Vec<Vec<f64>>,
}

/// A layer, what is put into it, and what comes of it.
struct Trial<T: Element, D: Device> {
    device: D,
    layer: Box<dyn Layer<T, D>>,
    bottom: Vec<Blob<T, D>>,
    top: Vec<Blob<T, D>>,
    in_place: bool,
    /// Of the bottoms and then of the parameters: the subjects.
    values: Vec<Vec<f64>>,
    /// Which subjects a gradient reaches.
    reached: Vec<bool>,
    /// Of the tops in the objective.
    weights: Vec<Vec<f64>>,
}

impl<T: Element, D: Device> Trial<T, D> {
    fn new(check: &GradientCheck, device: &D, registry: &LayerRegistry<T, D>) -> Result<Self> {
        let param: LayerParameter = parse_text(check.layer.as_str(), "the layer")?;
        let (sources, key) = (SourceRegistry::default(), RngKey::new(1));
        let cx = LayerContext { device, phase: param.phase(), key, sources: &sources };
        let mut layer = registry.make(&param, &cx)?;
        let shapes = check.bottoms.iter().map(|bottom| Blob::new(device, &bottom.shape));
        let bottom: Vec<Blob<T, D>> = shapes.collect::<Result<_>>()?;
        let arity = layer.arity();
        let tops = match (param.top.len(), arity.equal) {
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
        let mut draw = Draws::new();
        let mut values: Vec<_> =
            check.bottoms.iter().map(|bottom| bottom.values(&mut draw)).collect();
        put(&bottom, &values)?;
        layer.setup(&cx, &bottom)?;
        layer.reshape(&bottom, &mut top)?;
        let learns = layer.params_are_trainable();
        for (index, blob) in layer.params().iter().enumerate() {
            let set = check.params.iter().find(|(i, _)| *i == index);
            values.push(match set {
                Some((_, value)) => (0..blob.count()).map(value).collect(),
                None if learns => draw.take(blob.count()),
                None => wide(blob.data()?.host()?),
            });
        }
        let weights = top.iter().map(|top| draw.take(top.count())).collect();
        let reached = check.bottoms.iter().map(|bottom| bottom.propagates);
        let reached = reached.chain(layer.params().iter().map(|_| learns)).collect();
        let (device, in_place) = (device.clone(), check.in_place);
        Ok(Self { device, layer, bottom, top, in_place, values, reached, weights })
    }

    /// The subjects that a gradient reaches.
    fn subjects(&self) -> Vec<usize> {
        (0..self.reached.len()).filter(|&subject| self.reached[subject]).collect()
    }

    fn name(&self, subject: usize) -> String {
        match subject.checked_sub(self.bottom.len()) {
            None => format!("bottom {subject}"),
            Some(param) => format!("parameter {param}"),
        }
    }

    fn blob(&self, subject: usize) -> &Blob<T, D> {
        match subject.checked_sub(self.bottom.len()) {
            None => &self.bottom[subject],
            Some(param) => &self.layer.params()[param],
        }
    }

    /// A forward pass from the values.
    fn forward(&mut self) -> Result<()> {
        let (bottom, params) = self.values.split_at(self.bottom.len());
        put(&self.bottom, bottom)?;
        put(self.layer.params(), params)?;
        self.layer.reshape(&self.bottom, &mut self.top)?;
        self.layer.forward(&self.device, &self.bottom, &self.top)
    }

    /// The terms of the objective.
    fn terms(&self) -> Result<Vec<f64>> {
        let mut terms = Vec::new();
        for (top, weights) in self.top.iter().zip(&self.weights) {
            terms.extend(wide(top.data()?.host()?).iter().zip(weights).map(|(y, w)| y * w));
        }
        Ok(terms)
    }

    /// A backward pass to some subjects, of which the others have to be left alone.
    fn backward(&mut self, reached: &[bool]) -> Result<Vec<Vec<f64>>> {
        for subject in 0..self.values.len() {
            fill(self.blob(subject), if subject < self.bottom.len() { f64::NAN } else { BEFORE })?;
        }
        for (top, weights) in self.top.iter().zip(&self.weights) {
            let mut diff = top.diff_mut()?;
            diff.host_mut()?.iter_mut().zip(weights).for_each(|(d, &w)| *d = T::from_f64(w));
        }
        let (bottom, params) = reached.split_at(self.bottom.len());
        let propagate = PropagateDown { bottom, params };
        self.layer.backward(&self.device, &self.top, propagate, &self.bottom)?;
        let mut gradients = Vec::new();
        for (subject, &reached) in reached.iter().enumerate() {
            let diff = wide(self.blob(subject).diff()?.host()?);
            let is_bottom = subject < self.bottom.len();
            let shared = self.in_place && subject == 0;
            let untouched = |d: &f64| if is_bottom { d.is_nan() } else { *d == BEFORE };
            if !reached && !shared && self.reached[subject] && !diff.iter().all(untouched) {
                let name = self.name(subject);
                wrong(format!("{name} has a gradient that nobody asked for"))?;
            }
            let before = if is_bottom { 0.0 } else { BEFORE };
            let diff = diff.into_iter().map(|d| d - before);
            gradients.push(if reached { diff.collect() } else { Vec::new() });
        }
        Ok(gradients)
    }

    fn results(&mut self) -> Result<Results> {
        self.forward()?;
        let tops = self.top.iter().map(|top| Ok(wide(top.data()?.host()?)));
        let tops = tops.collect::<Result<_>>()?;
        let gradients = self.backward(&self.reached.clone())?;
        Ok(Results { tops, gradients })
    }

    /// Each gradient by itself has to be that among all.
    fn expect_apart(&mut self, all: &Results) -> Result<()> {
        for subject in self.subjects() {
            let only: Vec<_> = (0..self.reached.len()).map(|other| other == subject).collect();
            self.forward()?;
            let alone = self.backward(&only)?;
            for (place, (&got, &want)) in
                alone[subject].iter().zip(&all.gradients[subject]).enumerate()
            {
                let name = format!("by itself, the gradient of {}", self.name(subject));
                expect_near(&name, place, got, want, 0.0)?;
            }
        }
        Ok(())
    }
}

impl<D: Device> Trial<f64, D> {
    fn slopes(&mut self, subject: usize) -> Result<Vec<FiniteDifference>> {
        self.forward()?;
        let magnitude = self.terms()?.iter().map(|term| term.abs()).sum();
        let places = 0..self.values[subject].len();
        places.map(|place| self.slope(subject, place, magnitude)).collect()
    }

    fn slope(&mut self, subject: usize, place: usize, magnitude: f64) -> Result<FiniteDifference> {
        let middle = self.values[subject][place];
        let slope = FiniteDifference::of(place, middle, magnitude, |value| {
            self.values[subject][place] = value;
            self.forward()?;
            Ok(self.terms()?.iter().sum())
        });
        self.values[subject][place] = middle;
        slope
    }
}

/// What gradients of parameters are added to.
const BEFORE: f64 = 0.25;

impl Bottom {
    fn values(&self, draw: &mut Draws) -> Vec<f64> {
        let count = self.shape.iter().product();
        match &self.values {
            Some(value) => (0..count).map(value).collect(),
            None => draw.take(count),
        }
    }
}

/// Numbers that all element types have, and none of which is near 0.
struct Draws(super::values::ValueStream);

impl Draws {
    fn new() -> Self {
        Self(Values::Reals.from(1))
    }

    fn take(&mut self, count: usize) -> Vec<f64> {
        let drawn = self.0.take::<f64>(count).into_iter();
        drawn
            .map(|x| bf16::from_f64(x.signum() * (1.0 / 16.0 + x.abs() * 15.0 / 16.0)).to_f64())
            .collect()
    }
}

fn put<T: Element, D: Device>(blobs: &[Blob<T, D>], values: &[Vec<f64>]) -> Result<()> {
    for (blob, values) in blobs.iter().zip(values) {
        let mut data = blob.data_mut()?;
        data.host_mut()?.iter_mut().zip(values).for_each(|(x, &v)| *x = T::from_f64(v));
    }
    Ok(())
}

fn fill<T: Element, D: Device>(blob: &Blob<T, D>, value: f64) -> Result<()> {
    blob.diff_mut()?.host_mut()?.fill(T::from_f64(value));
    Ok(())
}
