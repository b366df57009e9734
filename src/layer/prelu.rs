//! `y = max(x, 0) + a · min(x, 0)` with learned slopes

use super::{Layer, LayerContext, PropagateDown, saved_input::SavedInput};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    filler::Filler,
    memory::Src,
    op::{Axis, Binary},
    proto::{LayerParameter, PReLuParameter},
};

/// Parametric ReLU: `y = x` where `x > 0`, else `a · x`, where the slope `a` is learned, one for
/// each channel, the second axis, or one for all if `channel_shared`.
///
/// Source: He, Zhang, Ren, Sun 2015.
#[doc(alias = "PReLULayer")]
pub struct PreluLayer<T: Element, D: Device> {
    param: PReLuParameter,
    /// For the bottom's present shape.
    axis: Option<Axis>,
    kept: SavedInput<T, D>,
    /// Terms of the slopes' gradient, then the slope of each element.
    terms: Blob<T, D>,
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> PreluLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// Those of the fillers.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        Ok(Self {
            param: param.prelu_param.clone().unwrap_or_default(),
            axis: None,
            kept: SavedInput::new(cx.device)?,
            terms: Blob::new(cx.device, &[0])?,
            params: Vec::new(),
        })
    }

    fn axis(&self) -> Result<Axis> {
        self.axis.ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }
}

impl<T: Element, D: Device> Layer<T, D> for PreluLayer<T, D> {
    fn kind(&self) -> &'static str {
        "PReLU"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let slopes = match self.param.channel_shared() {
            true => Blob::new(cx.device, &[])?,
            false => Blob::new(cx.device, &[bottom[0].channels()?])?,
        };
        let filler = match &self.param.filler {
            Some(filler) => Filler::from_proto(filler)?,
            None => Filler::Constant { value: 0.25 },
        };
        filler.fill(&slopes, cx.key.child(0))?;
        self.params = vec![slopes];
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        // Caffe's limit of four axes, and no fewer than two.
        bottom[0].channels()?;
        let channels = Axis::of(shape, 1)?;
        let axis = match self.param.channel_shared() {
            true => Axis::new(1, 1, shape.count())?,
            false => channels,
        };
        if axis.extent != self.params[0].count() {
            let slopes = self.params[0].count();
            return Err(Error::Shape(format!("{} channels, {slopes} slopes", axis.extent)));
        }
        self.axis = Some(axis);
        self.terms.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])?;
        self.kept.reshape(&bottom[0], &top[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (axis, slopes) = (self.axis()?, self.params[0].data()?);
        let (x, mut y) = top[0].data_mut_from(self.kept.keep(&bottom[0], &top[0])?)?;
        device.broadcast(Binary::Prelu, &axis, x.src(), slopes.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let (axis, x) = (self.axis()?, self.kept.input(&bottom[0], &top[0]).data()?);
        let mut terms = self.terms.data_mut()?;
        if propagate.params[0] {
            let (dy, mut da) = (top[0].diff()?, self.params[0].diff_mut()?);
            device.binary(Binary::MulNegative, dy.view().into(), x.view(), terms.view_mut())?;
            device.sum_to_axis(&axis, T::acc(1.0), terms.view(), da.view_mut())?;
        }
        if propagate.bottom[0] {
            let (x, slopes) = (Src::View(x.view()), self.params[0].data()?);
            device.broadcast(Binary::PreluSlope, &axis, x, slopes.view(), terms.view_mut())?;
            let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
            device.binary(Binary::Mul, dy.src(), terms.view(), dx.view_mut())?;
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.params
    }
}
