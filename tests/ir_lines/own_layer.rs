//! Program that trains a net on the CPU, with a layer that the program itself defines.

use cortado::{
    AnyDevice, Blob, CpuDevice, Element, Layer, LayerRegistry, Result, Solver,
    kernel::traits::*,
    layer::{LayerContext, PropagateDown},
    op::{Binary, Unary},
    proto::{self, LayerParameter},
};

/// Layer that computes `y = x²`.
struct Square;

impl Square {
    fn new(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl<T: Element> Layer<T> for Square {
    fn kind(&self) -> &'static str {
        "Square"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        device.unary(Unary::Sqr, bottom[0].data()?.view().into(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (x, dy, mut dx) = (bottom[0].data()?, top[0].diff()?, bottom[0].diff_mut()?);
        device.binary(Binary::Mul, x.view().into(), dy.view(), dx.view_mut())?;
        device.scal(T::acc(2.0), dx.view_mut())
    }
}

const SOLVER: &str = r#"
    base_lr: 0.05
    lr_policy: "fixed"
    max_iter: 10
    snapshot_after_train: false
    net_param {
      layer {
        name: "digits"
        type: "Data"
        top: "image"
        top: "label"
        transform_param { scale: 0.00390625 }
        data_param { source: "digits:train?count=64&seed=1" batch_size: 16 }
      }
      layer {
        name: "hidden"
        type: "InnerProduct"
        bottom: "image"
        top: "hidden"
        inner_product_param { num_output: 20 weight_filler { type: "xavier" } }
      }
      layer { name: "square" type: "Square" bottom: "hidden" top: "square" }
      layer {
        name: "scores"
        type: "InnerProduct"
        bottom: "square"
        top: "scores"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
      }
      layer {
        name: "loss"
        type: "SoftmaxWithLoss"
        bottom: "scores"
        bottom: "label"
        top: "loss"
      }
    }
"#;

fn main() -> Result<()> {
    let param = proto::parse_text(SOLVER, "the solver above")?;
    let layers = LayerRegistry::standard().with("Square", Square::new);
    Solver::<f32>::builder(&CpuDevice::new()).layers(layers).build(param)?.solve()
}
