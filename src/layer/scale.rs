//! `y = x · s + b`

use super::{Arity, Layer, LayerContext, PropagateDown, axis_operand::AxisOperand, saved_input::SavedInput};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    filler::Filler,
    op::{Axis, Binary},
    proto::{LayerParameter, ScaleParameter},
};

/// Product with an operand along some axes, `y = x · s + b`: `s` is learned or a second bottom,
/// and `b`, if there is one, is learned.
///
/// One pass forward; backward one for each gradient.
pub struct ScaleLayer<T: Element, D: Device> {
    param: ScaleParameter,
    along: AxisOperand,
    /// For the bottoms' present shapes.
    axis: Option<Axis>,
    kept: SavedInput<T, D>,
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> ScaleLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.scale_param.clone().unwrap_or_default();
        let along = AxisOperand { axis: param.axis(), num_axes: param.num_axes() };
        Ok(Self { param, along, axis: None, kept: SavedInput::new(cx.device)?, params: Vec::new() })
    }

    fn axis(&self) -> Result<Axis> {
        self.axis.ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }

    fn scale<'a>(&'a self, bottom: &'a [Blob<T, D>]) -> &'a Blob<T, D> {
        bottom.get(1).unwrap_or_else(|| &self.params[0])
    }

    /// The bias, which is the last parameter, if there is one.
    fn bias(&self) -> Option<&Blob<T, D>> {
        self.params.last().filter(|_| self.param.bias_term())
    }
}

impl<T: Element, D: Device> Layer<T, D> for ScaleLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Scale"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=2, 1..=1)
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let filler = |param: &Option<_>| param.as_ref().map(Filler::from_proto).transpose();
        let shape = match bottom.get(1) {
            Some(scale) => &scale.shape()[..],
            None => {
                let shape = self.along.shape(bottom[0].shape())?;
                let scale = Blob::new(cx.device, shape)?;
                let one = Filler::Constant { value: 1.0 };
                filler(&self.param.filler)?.unwrap_or(one).fill(&scale, cx.key.child(0))?;
                self.params.push(scale);
                shape
            }
        };
        if self.param.bias_term() {
            let bias = Blob::new(cx.device, shape)?;
            let filler = filler(&self.param.bias_filler)?.unwrap_or_default();
            filler.fill(&bias, cx.key.child(1))?;
            self.params.push(bias);
        }
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let scale = self.scale(bottom).shape();
        let axis = self.along.axis(bottom[0].shape(), scale)?;
        if let Some(bias) = self.bias()
            && *bias.shape() != *scale
        {
            let why = format!("a bias of shape {} beside a scale of shape {scale}", bias.shape());
            return Err(Error::Shape(why));
        }
        self.axis = Some(axis);
        top[0].reshape_like(&bottom[0])?;
        self.kept.reshape(&bottom[0], &top[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (axis, scale) = (self.axis()?, self.scale(bottom).data()?);
        let (x, mut y) = top[0].data_mut_from(self.kept.keep(&bottom[0], &top[0])?)?;
        match self.bias() {
            Some(bias) => {
                let bias = bias.data()?;
                device.affine(&axis, x.src(), scale.view(), bias.view(), y.view_mut())
            }
            None => device.broadcast(Binary::Mul, &axis, x.src(), scale.view(), y.view_mut()),
        }
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let axis = self.axis()?;
        if let (Some(bias), Some(true)) = (self.bias(), propagate.params.last()) {
            let (dy, mut db) = (top[0].diff()?, bias.diff_mut()?);
            device.sum_to_axis(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
        }
        // A bottom's gradient is overwritten, a parameter's added to.
        let (wanted, beta) = match bottom.get(1) {
            Some(_) => (propagate.bottom[1], 0.0),
            None => (propagate.params[0], 1.0),
        };
        if wanted {
            let (x, dy) = (self.kept.input(&bottom[0], &top[0]).data()?, top[0].diff()?);
            let mut ds = self.scale(bottom).diff_mut()?;
            device.dot_to_axis(&axis, T::acc(beta), dy.view(), x.view(), ds.view_mut())?;
        }
        if propagate.bottom[0] {
            let scale = self.scale(bottom).data()?;
            let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
            device.broadcast(Binary::Mul, &axis, dy.src(), scale.view(), dx.view_mut())?;
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
