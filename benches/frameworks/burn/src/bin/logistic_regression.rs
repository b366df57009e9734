//! Logistic regression in burn that separates two clusters of points.

use burn::{
    module::Initializer,
    nn::{Linear, LinearConfig, loss::BinaryCrossEntropyLossConfig},
    optim::{GradientsParams, SgdConfig},
    prelude::*,
};

/// Trains by gradient descent, and returns the model. `x` has a row for each point; `y` holds the
/// class of each point, 0 or 1.
fn train(x: &Tensor<2>, y: &Tensor<2, Int>) -> Linear {
    let config = LinearConfig::new(x.dims()[1], 1).with_bias(false);
    let mut model = config.with_initializer(Initializer::Zeros).init(&x.device());
    let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&x.device());
    let mut optimizer = SgdConfig::new().init();
    for _ in 0..100 {
        let loss = loss.forward(model.forward(x.clone()), y.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(2.0, model, gradients);
    }
    model
}

/// Returns the fraction of points that `model` classifies correctly.
fn accuracy(x: Tensor<2>, y: Tensor<2, Int>, model: &Linear) -> f32 {
    let class = model.valid().forward(x).greater_elem(0).int();
    class.equal(y).float().mean().into_scalar()
}

fn main() {
    let (device, points) = (Device::flex().autodiff(), shared::points());
    // Points of class 0 lie around (−1, −1), and points of class 1 around (1, 1).
    let y =
        Tensor::<1, Int>::arange(0..points as i64, &device).remainder_scalar(2).unsqueeze_dim(1);
    let noise = Tensor::<2>::from_data(TensorData::new(shared::noise(), [points, 2]), &device);
    let x = noise + y.clone().float() * 2 - 1;

    let model = train(&x, &y);
    let values = model.weight.val().into_data().iter::<f32>().collect::<Vec<_>>();
    println!("weights {values:.2?}, accuracy {}", accuracy(x.clone(), y.clone(), &model));
    shared::time("step", 100, || train(&x, &y));
}
