//! Matrix products, the crate's own beside cuBLAS'.

use crate::{Bench, clock};
use cortado::op::{Gemm, RngKey};
use cortado::{Blob, Element, Filler, Memory, Result, bf16, device::CudaDevice, kernel::Blas};

/// m, n, k: LeNet's products, of a batch of 64; AlexNet's convolutions by image and group, and its
/// inner products of a batch of 10; some of GoogLeNet's convolutions.
const NETS: [[usize; 3]; 12] = [
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

/// TFLOP/s of each shape. That there is no cuBLAS is an error if it is `required`.
pub(crate) fn table(bench: &Bench, required: bool) -> Result<()> {
    println!("\n### Matrix products\n");
    let (exact, rounding) = (&bench.device, bench.builder.clone().tf32(true).open(0)?);
    let theirs = match bench.cublas(false) {
        Err(error) if !required => {
            println!("Nothing to compare with: {error}\n");
            None
        }
        opened => Some(opened?),
    };
    let theirs_rounding = theirs.as_ref().map(|_| bench.cublas(true)).transpose()?;
    if let Some((_, version)) =
        theirs.iter().flat_map(CudaDevice::properties).find(|(name, _)| *name == "cuBLAS")
    {
        println!("Beside cuBLAS {version}, in the same run.\n");
    }
    println!("TFLOP/s.\n");
    println!(
        "| m × n × k | f32 | cuBLAS | share | TF32 | cuBLAS | share | bf16 | cuBLAS | share |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let squares = (8..=13).map(|power| [1 << power; 3]);
    let shapes: Vec<[usize; 3]> =
        if bench.brief { vec![[16, 8, 24]] } else { squares.chain(NETS).collect() };
    for shape in shapes {
        let cells = [
            pair::<f32>(exact, &theirs, bench.brief, shape)?,
            pair::<f32>(&rounding, &theirs_rounding, bench.brief, shape)?,
            pair::<bf16>(exact, &theirs, bench.brief, shape)?,
        ];
        let [m, n, k] = shape;
        println!("| {m} × {n} × {k} |{}", cells.concat());
    }
    Ok(())
}

/// Cells of a row: what is reached, by cuBLAS too, and its share.
fn pair<T: Element>(
    own: &CudaDevice,
    theirs: &Option<CudaDevice>,
    brief: bool,
    shape: [usize; 3],
) -> Result<String> {
    let own = rate::<T>(own, brief, shape)?;
    Ok(match theirs {
        Some(device) => {
            let theirs = rate::<T>(device, brief, shape)?;
            format!(" {own:.2} | {theirs:.2} | {:.0} % |", 100.0 * own / theirs)
        }
        None => format!(" {own:.2} | | |"),
    })
}

/// TFLOP/s of a product of random operands.
fn rate<T: Element>(device: &CudaDevice, brief: bool, [m, n, k]: [usize; 3]) -> Result<f64> {
    let random = |shape: [usize; 2]| -> Result<Blob<T, CudaDevice>> {
        let blob = Blob::new(device, &shape)?;
        Filler::Uniform { min: -1.0, max: 1.0 }.fill(&blob, RngKey::new(1))?;
        Ok(blob)
    };
    let (a, b, c) = (random([m, k])?, random([k, n])?, random([m, n])?);
    let (op, a, b, mut c) = (Gemm::new(m, n, k), a.data()?, b.data()?, c.data_mut()?);
    let seconds =
        clock::seconds(device, brief, || device.gemm(&op, a.view(), b.view(), c.view_mut()))?;
    Ok(op.flops() as f64 / seconds / 1e12)
}
