//! Custom layer with cortado, like `examples/custom_layer.rs` but with a timer.

use cortado::{
    AnyDevice, Blob, CpuDevice, Element, Error, Layer, LayerRegistry, Net, Result,
    kernel::traits::*,
    layer::{LayerContext, PropagateDown},
    memory::Src,
    op::{Binary, Unary},
    proto::{self, LayerParameter, NetParameter},
};

/// Custom layer that computes `y = x / (knee + |x|)`.
///
/// The parameter `knee` is in `python_param`, which Caffe's schema provides for layers written in
/// Python.
struct Softsign<T: Element> {
    knee: f64,
    denominator: Blob<T>,
}

impl<T: Element> Softsign<T> {
    fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let text = param.python_param.as_ref().map_or("", |python| python.param_str());
        let knee = text.strip_prefix("knee:").and_then(|knee| knee.trim().parse().ok());
        let knee = knee.ok_or_else(|| {
            Error::InvalidData("python_param: expected param_str `knee: NUMBER`".into())
        })?;
        Ok(Self { knee, denominator: Blob::new(cx.device, &[0])? })
    }
}

impl<T: Element> Layer<T> for Softsign<T> {
    fn kind(&self) -> &'static str {
        "Softsign"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.denominator.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        bottom[0].apply_into(Unary::Abs, &self.denominator)?;
        self.denominator.apply_into(Unary::AddScalar(self.knee), &self.denominator)?;
        bottom[0].combine_into(Binary::Div, &self.denominator, &top[0])
    }

    /// Computes `dx = dy · knee / (knee + |x|)²`.
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
        let (dy, mut dx, denominator) =
            (top[0].diff()?, bottom[0].diff_mut()?, self.denominator.data()?);
        device.binary(Binary::Div, dy.view().into(), denominator.view(), dx.view_mut())?;
        device.binary(Binary::Div, Src::InPlace, denominator.view(), dx.view_mut())?;
        device.scal(T::acc(self.knee), dx.view_mut())
    }
}

const NET: &str = r#"
    name: "squashed"
    force_backward: true
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }
    layer {
      name: "squash"
      type: "Softsign"
      bottom: "x"
      top: "y"
      python_param { param_str: "knee: 2" }
    }
    layer { name: "sum" type: "Reduction" bottom: "y" top: "sum" loss_weight: 1 }
"#;

fn main() -> Result<()> {
    let registry = LayerRegistry::standard().with("Softsign", Softsign::new);
    let definition: NetParameter = proto::parse_text(NET, "the net above")?;
    let device = CpuDevice::new();
    let mut net = Net::<f64>::builder(&device).registry(registry).build(&definition)?;

    if let Some(x) = net.blob("x") {
        x.data_mut()?.host_mut()?.copy_from_slice(&[-6.0, -2.0, 0.0, 2.0]);
    }
    let sum = net.forward()?;
    net.backward()?;
    for (name, blob) in net.blobs() {
        println!("{name:>4}: {:?}, gradient {:?}", blob.data()?.host()?, blob.diff()?.host()?);
    }
    assert_eq!(sum, -0.75 - 0.5 + 0.5);
    if let Some(x) = net.blob("x") {
        assert_eq!(x.diff()?.host()?, [2.0 / 64.0, 2.0 / 16.0, 2.0 / 4.0, 2.0 / 16.0]);
    }
    shared::time("pass", 1, || net.forward().and_then(|_| net.backward()));
    Ok(())
}
