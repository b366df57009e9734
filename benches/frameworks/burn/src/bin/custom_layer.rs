//! Custom layer in burn, with a gradient from automatic differentiation.

use burn::{prelude::*, tensor::DType};

/// Custom layer that computes `y = x / (knee + |x|)`.
#[derive(Module, Debug)]
struct Softsign {
    knee: f64,
}

impl Softsign {
    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.clone() / (x.abs() + self.knee)
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
