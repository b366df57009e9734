//! A layer wrapper that checks the numbers and shapes of blobs and the order of calls.

use super::prelude::*;
use crate::{op::Unary, proto::LayerState, shape::Shape};
use std::{any::Any, time::Duration};

/// A layer, together with the numbers of bottoms and tops that the layer's methods accept.
pub(super) struct CheckedLayer<T: Element> {
    layer: Box<dyn Layer<T>>,
    name: String,
    /// The layer's arity, narrowed to the numbers of bottoms and tops that `setup` and `reshape`
    /// received.
    arity: Arity,
    stage: Stage,
    /// Shapes of the bottoms and tops after the last call of `reshape`.
    shapes: [Vec<Shape>; 2],
}

/// The last method that has completed: the constructor, `setup` or `reshape`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Constructor,
    Setup,
    Reshape,
}

impl<T: Element> CheckedLayer<T> {
    pub(super) fn new(layer: Box<dyn Layer<T>>, param: &LayerParameter) -> Self {
        let (name, arity) = (param.name().to_owned(), layer.arity());
        Self { layer, name, arity, stage: Stage::Constructor, shapes: Default::default() }
    }

    /// Checks the numbers of bottoms and tops, and checks that the layer has reached the stage
    /// `required`.
    fn check(&self, method: &str, required: Stage, [bottoms, tops]: [usize; 2]) -> Result<()> {
        let result = self.arity.check(bottoms, tops);
        let check_result = result.and_then(|()| match required {
            required if self.stage >= required => Ok(()),
            Stage::Reshape => invalid("called before reshape"),
            _ => invalid("called before setup"),
        });
        self.in_method(method, check_result)
    }

    /// Checks that the layer may run a pass on `bottom` and `top`: their numbers and shapes must be
    /// those that the last call of `reshape` received and set.
    fn check_pass(&self, method: &str, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.check(method, Stage::Reshape, [bottom.len(), top.len()])?;
        for ((role, blobs), shapes) in [("bottom", bottom), ("top", top)].iter().zip(&self.shapes) {
            for (i, (blob, shape)) in blobs.iter().zip(shapes).enumerate() {
                if blob.shape() != shape {
                    let found = blob.shape();
                    let remedy =
                        if method == "forward" { "reshape" } else { "reshape and forward" };
                    let error = wrong_shape(format!(
                        "{role} {i} has the shape {found}, but had {shape} after the last call of \
                         reshape; call {remedy} first"
                    ));
                    return self.in_method(method, error);
                }
            }
        }
        Ok(())
    }

    /// Adds the method and the layer to an error.
    fn in_method(&self, method: &str, result: Result<()>) -> Result<()> {
        let (name, kind) = (&self.name, self.layer.kind());
        result.map_err(|error| error.context(format!("{method} of layer `{name}` ({kind})")))
    }
}

impl<T: Element> dyn Layer<T> {
    /// Returns the layer as its concrete type `L`, or `None` if the layer has another type.
    pub fn downcast_mut<L: Layer<T>>(&mut self) -> Option<&mut L> {
        let layer: &mut dyn Any = self;
        if layer.is::<CheckedLayer<T>>() {
            return layer.downcast_mut::<CheckedLayer<T>>()?.layer.downcast_mut();
        }
        layer.downcast_mut()
    }
}

impl<T: Element> Layer<T> for CheckedLayer<T> {
    fn kind(&self) -> &'static str {
        self.layer.kind()
    }

    fn arity(&self) -> Arity {
        self.layer.arity()
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let bottoms = bottom.len();
        let fitting_tops =
            if self.arity.tops_equal_bottoms { bottoms } else { *self.arity.top.start() };
        self.check("setup", Stage::Constructor, [bottoms, fitting_tops])?;
        self.layer.setup(cx, bottom)?;
        self.arity.bottom = bottoms..=bottoms;
        self.stage = self.stage.max(Stage::Setup);
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.check("reshape", Stage::Setup, [bottom.len(), top.len()])?;
        self.layer.reshape(bottom, top)?;
        self.arity.top = top.len()..=top.len();
        self.stage = Stage::Reshape;
        for (shapes, blobs) in self.shapes.iter_mut().zip([bottom, &*top]) {
            // Nets call `reshape` before every forward pass, usually with the same shapes.
            if !shapes.iter().eq(blobs.iter().map(Blob::shape)) {
                *shapes = blobs.iter().map(|blob| blob.shape().clone()).collect();
            }
        }
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.check_pass("forward", bottom, top)?;
        self.layer.forward(device, bottom, top)
    }

    fn fusible_activation(&self) -> Option<Unary<f64>> {
        self.layer.fusible_activation()
    }

    fn forward_fused(
        &mut self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Unary<f64>,
    ) -> Result<bool> {
        self.check_pass("forward", bottom, top)?;
        self.layer.forward_fused(device, bottom, top, function)
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        self.check_pass("backward", bottom, top)?;
        let flags = [propagate.bottom.len(), propagate.params.len()];
        let expected = [bottom.len(), self.layer.params().len()];
        if flags != expected {
            let (name, kind) = (&self.name, self.layer.kind());
            return invalid(format!(
                "backward of layer `{name}` ({kind}): expected {expected:?} propagate flags for \
                 bottoms and parameters, found {flags:?}"
            ));
        }
        match propagate.bottom.contains(&true) || propagate.params.contains(&true) {
            true => self.layer.backward(device, top, propagate, bottom),
            false => Ok(()),
        }
    }

    fn allows_in_place(&self) -> bool {
        self.layer.allows_in_place()
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        self.layer.allow_force_backward(bottom)
    }

    fn is_loss(&self) -> bool {
        self.layer.is_loss()
    }

    fn params_are_trainable(&self) -> bool {
        self.layer.params_are_trainable()
    }

    fn keeps_param(&self, index: usize) -> bool {
        self.layer.keeps_param(index)
    }

    fn data_wait_time(&self) -> Option<Duration> {
        self.layer.data_wait_time()
    }

    fn source_records(&self) -> Option<u64> {
        self.layer.source_records()
    }

    fn state(&self) -> Result<Option<LayerState>> {
        self.layer.state()
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        match self.stage {
            Stage::Reshape => self.layer.set_state(state),
            _ => invalid("set_state: called before reshape"),
        }
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        match self.stage {
            Stage::Reshape => self.layer.skip_passes(passes),
            _ => invalid("skip_passes: called before reshape"),
        }
    }

    fn params(&self) -> &[Blob<T>] {
        self.layer.params()
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        self.layer.params_mut()
    }
}
