//! Logistic regression in candle that separates two clusters of points.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{Optimizer, SGD, loss::binary_cross_entropy_with_logit};

/// Trains by gradient descent, and returns the weights. `x` has a row for each point; `y` holds the
/// class of each point, 0 or 1.
fn train(x: &Tensor, y: &Tensor) -> Result<Var> {
    let weights = Var::zeros((x.dim(1)?, 1), DType::F32, x.device())?;
    let mut optimizer = SGD::new(vec![weights.clone()], 2.0)?;
    for _ in 0..100 {
        let loss = binary_cross_entropy_with_logit(&x.matmul(&weights)?, y)?;
        optimizer.backward_step(&loss)?;
    }
    Ok(weights)
}

/// Returns the fraction of points that `weights` classify correctly.
fn accuracy(x: &Tensor, y: &Tensor, weights: &Tensor) -> Result<f32> {
    let class = x.matmul(weights)?.gt(0f32)?.to_dtype(DType::F32)?;
    class.eq(y)?.to_dtype(DType::F32)?.mean_all()?.to_scalar()
}

fn main() -> Result<()> {
    let (device, points) = (Device::Cpu, shared::points());
    // Points of class 0 lie around (−1, −1), and points of class 1 around (1, 1).
    let y = Tensor::from_iter((0..points).map(|i| (i % 2) as f32), &device)?.unsqueeze(1)?;
    let noise = Tensor::from_vec(shared::noise(), (points, 2), &device)?;
    let x = (noise.broadcast_add(&(&y * 2.0)?)? - 1.0)?;

    let weights = train(&x, &y)?;
    let values: Vec<f32> = weights.flatten_all()?.to_vec1()?;
    println!("weights {values:.2?}, accuracy {}", accuracy(&x, &y, &weights)?);
    shared::time("step", 100, || train(&x, &y));
    Ok(())
}
