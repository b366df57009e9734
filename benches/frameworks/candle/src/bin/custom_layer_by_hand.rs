//! Custom layer in candle, with the gradient written by hand.

use candle_core::{
    CpuStorage, CustomOp1, Device, Layout, Module, Result, Shape, Tensor, Var, bail,
};

/// Custom layer that computes `y = x / (knee + |x|)`.
#[derive(Clone)]
struct Softsign {
    knee: f64,
}

impl CustomOp1 for Softsign {
    fn name(&self) -> &'static str {
        "softsign"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (CpuStorage::F64(x), Some((start, end))) = (storage, layout.contiguous_offsets())
        else {
            bail!("softsign: expected contiguous f64 elements")
        };
        let y = x[start..end].iter().map(|x| x / (self.knee + x.abs())).collect();
        Ok((CpuStorage::F64(y), layout.shape().clone()))
    }

    /// Computes `dx = dy · knee / (knee + |x|)²`.
    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let denominator = (x.abs()? + self.knee)?;
        Ok(Some((dy.div(&denominator)?.div(&denominator)? * self.knee)?))
    }
}

impl Module for Softsign {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply_op1(self.clone())
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
