//! GEMM benchmark of cortado's CUDA kernels and cuBLAS, in TFLOP/s.

use crate::{Bench, check, clock};
use cortado::op::{Gemm, RngKey};
use cortado::{Blob, Element, Filler, Memory, Result, bf16, device::CudaDevice, kernel::Blas};

/// `[m, n, k]` of LeNet's GEMMs (batch 64), AlexNet's convolutions per image and group, AlexNet's
/// inner products (batch 10), and some of GoogLeNet's convolutions.
const NET_SHAPES: [[usize; 3]; 12] = [
    [20, 576, 25],
    [50, 64, 500],
    [64, 500, 800],
    [64, 10, 500],
    [96, 3025, 363],
    [128, 729, 1200],
    [384, 169, 2304],
    [10, 4096, 9216],
    [10, 4096, 4096],
    [64, 12544, 147],
    [192, 3136, 576],
    [128, 784, 864],
];

/// Prints a table of GEMM rates in TFLOP/s, with a row for each shape. Fails if `cublas_required`
/// is true and cuBLAS is missing.
pub(crate) fn table(bench: &Bench, cublas_required: bool) -> Result<()> {
    println!("\n### GEMM\n");
    let (device, tf32_device) = (bench.builtin(false)?, bench.builtin(true)?);
    let cublas = match bench.cublas(false) {
        Err(error) if !cublas_required => {
            println!("cuBLAS is missing: {error}\n");
            None
        }
        device => Some(device?),
    };
    let cublas_tf32 = cublas.as_ref().map(|_| bench.cublas(true)).transpose()?;
    if let Some((_, version)) =
        cublas.iter().flat_map(CudaDevice::properties).find(|(name, _)| *name == "cuBLAS")
    {
        println!("TFLOP/s of cortado and of cuBLAS {version}, measured in the same run.\n");
    }
    println!("TFLOP/s.\n");
    println!(
        "| m × n × k | f32 | cuBLAS | ratio | TF32 | cuBLAS | ratio | bf16 | cuBLAS | ratio |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let square_shapes = (8..=13).map(|power| [1 << power; 3]);
    let shapes: Vec<[usize; 3]> =
        if bench.brief { vec![[16, 8, 24]] } else { square_shapes.chain(NET_SHAPES).collect() };
    for shape in shapes {
        let cells = [
            rate_cells::<f32>(&device, &cublas, (bench.brief, false), shape)?,
            rate_cells::<f32>(&tf32_device, &cublas_tf32, (bench.brief, true), shape)?,
            rate_cells::<bf16>(&device, &cublas, (bench.brief, false), shape)?,
        ];
        let [m, n, k] = shape;
        println!("| {m} × {n} × {k} |{}", cells.concat());
    }
    Ok(())
}

/// Returns three table cells for one shape and element type: cortado's rate, cuBLAS's rate, and
/// their ratio.
fn rate_cells<T: Element>(
    device: &CudaDevice,
    cublas_device: &Option<CudaDevice>,
    (brief, tf32): (bool, bool),
    shape: [usize; 3],
) -> Result<String> {
    let cortado_rate = rate::<T>(device, (brief, tf32), shape)?;
    Ok(match cublas_device {
        Some(cublas_device) => {
            let cublas_rate = rate::<T>(cublas_device, (brief, tf32), shape)?;
            format!(
                " {cortado_rate:.2} | {cublas_rate:.2} | {:.0} % |",
                100.0 * cortado_rate / cublas_rate
            )
        }
        None => format!(" {cortado_rate:.2} | | |"),
    })
}

/// Returns the rate of a GEMM with random operands, in TFLOP/s. Checks the product; if `tf32` is
/// true, the tolerance covers the rounding of the operands to TF32.
fn rate<T: Element>(
    device: &CudaDevice,
    (brief, tf32): (bool, bool),
    [m, n, k]: [usize; 3],
) -> Result<f64> {
    let random_blob = |shape: [usize; 2]| -> Result<Blob<T, CudaDevice>> {
        let blob = Blob::new(device, &shape)?;
        Filler::Uniform { min: -1.0, max: 1.0 }.fill(&blob, RngKey::new(1))?;
        Ok(blob)
    };
    let (a, b, c) = (random_blob([m, k])?, random_blob([k, n])?, random_blob([m, n])?);
    let op = Gemm::new(m, n, k);
    let seconds = {
        let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
        clock::seconds(device, brief, || device.gemm(&op, a.view(), b.view(), c.view_mut()))?
    };
    check::product(&op, [&a.to_vec()?, &b.to_vec()?, &c.to_vec()?], tf32)?;
    Ok(op.flops() as f64 / seconds / 1e12)
}
