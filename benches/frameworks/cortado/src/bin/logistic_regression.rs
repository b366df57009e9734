//! Logistic regression with cortado, like `examples/logistic_regression.rs` but with a timer.

use cortado::{op::RngKey, prelude::*};

/// Trains by gradient descent, and returns the weights. `x` has a row for each point; `y` holds the
/// class of each point, 0 or 1.
fn train<D: Device>(x: &Blob<f32, D>, y: &Blob<f32, D>) -> Result<Blob<f32, D>> {
    let weights = Blob::zeros(x.device(), &[x.shape()[1], 1])?;
    for _ in 0..100 {
        let error = matmul(x, &weights)?.sigmoid()?.sub(y)?;
        weights.add_scaled(-2.0 / x.shape()[0] as f64, &matmul(x.t(), &error)?)?;
    }
    Ok(weights)
}

/// Returns the fraction of points that `weights` classify correctly.
fn accuracy<D: Device>(x: &Blob<f32, D>, y: &Blob<f32, D>, weights: &Blob<f32, D>) -> Result<f32> {
    let class = matmul(x, weights)?.apply(Unary::Threshold(0.0))?;
    Ok(1.0 - class.sub(y)?.apply(Unary::Abs)?.mean_all()?)
}

fn main() -> Result<()> {
    let (device, points) = (CpuDevice::new(), shared::points());
    // Points of class 0 lie around (−1, −1), and points of class 1 around (1, 1).
    let y = Blob::from_fn(&device, &[points, 1], |i| (i % 2) as f32)?;
    let noise = Blob::new(&device, &[points, 2])?;
    Filler::Gaussian { mean: 0.0, std: 0.7, sparse: None }.fill(&noise, RngKey::new(1))?;
    let x = noise.add(&y.scale(2.0)?)?.apply(Unary::AddScalar(-1.0))?;

    let weights = train(&x, &y)?;
    println!("weights {:.2?}, accuracy {}", weights.to_vec()?, accuracy(&x, &y, &weights)?);
    shared::time("step", 100, || train(&x, &y));
    Ok(())
}
