//! Program that computes one matrix product on the CPU, without any Cargo feature of cortado.

use cortado::prelude::*;

/// Computes the square of a 2×2 matrix.
fn square<D: Device>(device: &D) -> Result<Vec<f32>> {
    let a = Blob::from_slice(device, &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
    matmul(&a, &a)?.to_vec()
}

fn main() -> Result<()> {
    println!("{:?}", square(&CpuDevice::new())?);
    Ok(())
}
