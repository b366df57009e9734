//! Logistic regression in burn, with the gradient written by hand.

use burn::{prelude::*, tensor::activation::sigmoid};

/// Trains by gradient descent, and returns the weights. `x` has a row for each point; `y` holds the
/// class of each point, 0 or 1.
fn train(x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
    let [points, features] = x.dims();
    let mut weights = Tensor::zeros([features, 1], &x.device());
    for _ in 0..100 {
        let error = sigmoid(x.clone().matmul(weights.clone())) - y.clone();
        weights = weights - x.clone().transpose().matmul(error) * (2.0 / points as f32);
    }
    weights
}

/// Returns the fraction of points that `weights` classify correctly.
fn accuracy(x: Tensor<2>, y: Tensor<2>, weights: Tensor<2>) -> f32 {
    let class = x.matmul(weights).greater_elem(0).float();
    class.equal(y).float().mean().into_scalar()
}

fn main() {
    let (device, points) = (Device::flex(), shared::points());
    // Points of class 0 lie around (−1, −1), and points of class 1 around (1, 1).
    let y = Tensor::<1, Int>::arange(0..points as i64, &device).remainder_scalar(2).float();
    let y = y.unsqueeze_dim(1);
    let noise = Tensor::<2>::from_data(TensorData::new(shared::noise(), [points, 2]), &device);
    let x = noise + y.clone() * 2 - 1;

    let weights = train(&x, &y);
    let values = weights.to_data().iter::<f32>().collect::<Vec<_>>();
    println!("weights {values:.2?}, accuracy {}", accuracy(x.clone(), y.clone(), weights));
    shared::time("step", 100, || train(&x, &y));
}
