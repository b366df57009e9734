//! Custom layer in candle, with a gradient from automatic differentiation.

use candle_core::{Device, Module, Result, Tensor, Var};

/// Custom layer that computes `y = x / (knee + |x|)`.
struct Softsign {
    knee: f64,
}

impl Module for Softsign {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x / (x.abs()? + self.knee)?
    }
}

/// Returns the sum of `y`, and the gradient of the sum with respect to `x`.
fn gradient(layer: &Softsign, x: &Tensor) -> Result<(f64, Vec<f64>)> {
    let sum = x.apply(layer)?.sum_all()?;
    let gradients = sum.backward()?;
    let gradient = gradients.get(x).map(Tensor::to_vec1).transpose()?;
    Ok((sum.to_scalar()?, gradient.unwrap_or_default()))
}

fn main() -> Result<()> {
    let layer = Softsign { knee: 2.0 };
    let x = Var::new(&[-6.0, -2.0, 0.0, 2.0], &Device::Cpu)?;
    let (sum, dx) = gradient(&layer, &x)?;
    println!("sum {sum}, gradient {dx:?}");
    assert_eq!(sum, -0.75 - 0.5 + 0.5);
    assert_eq!(dx, [2.0 / 64.0, 2.0 / 16.0, 2.0 / 4.0, 2.0 / 16.0]);
    shared::time("pass", 1, || gradient(&layer, &x));
    Ok(())
}
