//! Program that runs one GEMM on the CPU, without optional features of cortado.

use cortado::{Blob, CpuDevice, Device, Result, op::Gemm};

/// Computes the square of a 2 × 2 matrix.
fn square<D: Device>(device: &D) -> Result<Vec<f32>> {
    let a = Blob::from_vec(device, &[2, 2], vec![1.0f32, 2.0, 3.0, 4.0])?;
    let c = Blob::new(device, &[2, 2])?;
    device.gemm(
        &Gemm::new(2, 2, 2),
        a.data()?.view(),
        a.data()?.view(),
        c.data_mut()?.view_mut(),
    )?;
    Ok(c.data()?.host()?.to_vec())
}

fn main() -> Result<()> {
    println!("{:?}", square(&CpuDevice::new())?);
    Ok(())
}
