//! Example that prints a line for each allocation and each transfer of coherent memory, and the
//! diagnosis of a program with needless transfers.
//!
//! `cargo run --release --example tour`

use cortado::{
    Blob, CpuDevice, Device, Memory, Result,
    kernel::{Blas, Elementwise},
    ledger,
    op::Unary,
};

/// A device whose memory is separate from the host's memory, so that accesses cause transfers. A
/// device only has to implement four methods of the trait `Memory`.
#[derive(Clone, Debug)]
struct Discrete;

impl Memory for Discrete {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "discrete".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        println!("             … allocates {bytes} bytes on the device");
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        println!("             … copies {} bytes to the device", src.len());
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        println!("             … copies {} bytes to the host", dst.len());
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

cortado::families!(Discrete: Blas, Reductions, Random, Conv, Pooling, Normalize, Losses,
    Indexing, Update);

/// Overrides one kernel of the family `Elementwise`, so that `fill` runs on the device.
impl Elementwise for Discrete {
    #[track_caller]
    fn fill<T: cortado::Element>(
        &self,
        value: T,
        mut y: cortado::ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let _kernel = ledger::enter_kernel("fill", T::DTYPE.name());
        let y = y.device_write_only()?;
        let value = T::bytes_of(&[value]).to_vec();
        let bytes = &mut y.buffer[y.offset..y.offset + y.bytes];
        bytes.chunks_mut(value.len()).for_each(|element| element.copy_from_slice(&value));
        Ok(())
    }
}

fn tour<D: Device>(device: &D) -> Result<()> {
    println!("\non {}:", device.name());
    let show = |step: &str, blob: &Blob<f32, D>| -> Result<()> {
        println!("{:>14}  after {step}", format!("{:?}", blob.data_head()?));
        Ok(())
    };
    let x = Blob::<f32, D>::new(device, &[2, 3])?;
    show("creating a blob", &x)?;
    device.fill(1.5, x.data_mut()?.view_mut())?;
    show("filling the blob with 1.5", &x)?;
    println!("{:>14}  x[1,2] = {}", "", x.data_at(&[1, 2])?);
    show("reading an element on the host", &x)?;
    device.unary(Unary::Sqr, cortado::Src::InPlace, x.data_mut()?.view_mut())?;
    show("squaring the blob with a kernel that `Discrete` does not override", &x)?;
    println!("{:>14}  Σ|x| = {}", "", x.asum_data()?);
    show("summing the blob on the host, without a transfer", &x)?;
    device.fill(0.0, x.data_mut()?.view_mut())?;
    show("filling the blob again, without a transfer of the old values", &x)
}

/// Runs a program with two needless transfers, and prints their diagnosis: the kernel `unary` falls
/// back to the host between two calls of `fill`, and `host_mut` writes nothing.
fn diagnose() -> Result<()> {
    println!("\na diagnosis:");
    let x = Blob::<f32, _>::new(&Discrete, &[2, 3])?;
    let (sum, diagnosis) = ledger::diagnose(|| {
        Discrete.fill(1.5, x.data_mut()?.view_mut())?;
        Discrete.unary(Unary::Sqr, cortado::Src::InPlace, x.data_mut()?.view_mut())?;
        Discrete.fill(2.0, x.data_mut()?.view_mut().slice(0..3)?)?;
        let sum: f32 = x.data_mut()?.host_mut()?.iter().sum(); // `x.data()?.host()?` suffices
        Discrete.fill(3.0, x.data_mut()?.view_mut().slice(0..3)?)?;
        Ok(sum)
    })?;
    println!("\nΣx = {sum}\n\n{diagnosis}");
    Ok(())
}

fn main() -> Result<()> {
    tour(&CpuDevice::new())?;
    tour(&Discrete)?;
    diagnose()?;
    let device = CpuDevice::new();
    let x = Blob::from_vec(&device, &[4], vec![1.0f32, 2.0, 3.0, 4.0])?;
    println!("\nx·x = {}", device.dot(x.data()?.view(), x.data()?.view())?);
    Ok(())
}
