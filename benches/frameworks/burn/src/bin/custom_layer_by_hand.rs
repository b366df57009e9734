//! Custom layer in burn, with the gradient written by hand.

use burn::{
    backend::{
        Autodiff, Backend, Dispatch, Flex,
        autodiff::{
            checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind, unary},
        },
        backend_extension,
        ops::FloatTensorOps,
        tensor::FloatTensor,
    },
    prelude::*,
    tensor::DType,
};

/// burn backend with the additional function `y = x / (knee + |x|)`.
#[backend_extension(Autodiff, Flex)]
trait SoftsignBackend: Backend {
    fn softsign(x: FloatTensor<Self>, knee: f64) -> FloatTensor<Self>;
}

fn denominator<B: Backend>(x: FloatTensor<B>, knee: f64) -> FloatTensor<B> {
    B::float_add_scalar(B::float_abs(x), knee.into())
}

impl SoftsignBackend for Flex {
    fn softsign(x: FloatTensor<Self>, knee: f64) -> FloatTensor<Self> {
        Self::float_div(x.clone(), denominator::<Self>(x, knee))
    }
}

/// Gradient `dx = dy · knee / (knee + |x|)²`.
#[derive(Debug)]
struct SoftsignBackward;

impl<B: Backend> Backward<B, 1> for SoftsignBackward {
    type State = (FloatTensor<B>, f64);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (x, knee) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let denominator = denominator::<B>(x, knee);
            let dx = B::float_div(B::float_div(dy, denominator.clone()), denominator);
            B::float_mul_scalar(dx, knee.into())
        });
    }
}

impl<B: SoftsignBackend, C: CheckpointStrategy> SoftsignBackend for Autodiff<B, C> {
    fn softsign(x: FloatTensor<Self>, knee: f64) -> FloatTensor<Self> {
        let operation = SoftsignBackward.prepare::<C>([x.node()]).compute_bound().stateful();
        let x = x.into_primitive();
        match operation {
            OpsKind::Tracked(ops) => ops.finish((x.clone(), knee), B::softsign(x, knee)),
            OpsKind::UnTracked(ops) => ops.finish(B::softsign(x, knee)),
        }
    }
}

/// Custom layer that computes `y = x / (knee + |x|)`.
#[derive(Module, Debug)]
struct Softsign {
    knee: f64,
}

impl Softsign {
    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        Tensor::from_dispatch(Dispatch::softsign(x.into_dispatch(), self.knee))
    }
}

/// Returns the sum of `y`, and the gradient of the sum with respect to `x`.
fn gradient(layer: &Softsign, x: &Tensor<1>) -> (f64, Vec<f64>) {
    let sum = layer.forward(x.clone()).sum();
    let gradient = x.grad(&sum.backward());
    let gradient = gradient.expect("x requires a gradient").into_data().iter().collect();
    (sum.into_scalar(), gradient)
}

fn main() {
    let device = Device::flex().autodiff();
    let layer = Softsign { knee: 2.0 };
    let x = Tensor::from_data([-6.0, -2.0, 0.0, 2.0], (&device, DType::F64)).require_grad();
    let (sum, dx) = gradient(&layer, &x);
    println!("sum {sum}, gradient {dx:?}");
    assert_eq!(sum, -0.75 - 0.5 + 0.5);
    assert_eq!(dx, [2.0 / 64.0, 2.0 / 16.0, 2.0 / 4.0, 2.0 / 16.0]);
    shared::time("pass", 1, || gradient(&layer, &x));
}
