//! Example of a custom device, which implements the four required methods of `Memory` and one
//! kernel, and is checked by the conformance kit.
//!
//! `cargo run --profile quick --features conformance --example custom_backend`
//!
//! With the feature `report` and the flag `--report`, the example also times the kernels of the
//! device, and writes the results to the HTML page `target/report/index.html`:
//!
//! `cargo run --profile quick --features conformance,report --example custom_backend -- --report`

use cortado::{
    Element, Error, Memory, View, ViewMut,
    conformance::Kit,
    kernel::Blas,
    ledger::{self, EventKind, Ledger},
    prelude::*,
};

/// A device whose memory the host cannot access. A `Vec<u8>` on the host simulates the memory of
/// the device.
#[derive(Clone, Debug)]
struct Npu;

impl Memory for Npu {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "npu".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        // `vec![0; bytes]` would abort the program if the allocation failed.
        buffer
            .try_reserve_exact(bytes)
            .map_err(|_| Error::OutOfMemory { device: self.name(), bytes })?;
        buffer.resize(bytes, 0);
        Ok(buffer)
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

// All kernels of the listed families run on the host.
cortado::families!(Npu: Elementwise, Reductions, Random, Conv, Pooling, Normalize, Losses, Indexing,
    Update);

/// The kernel `copy` runs on the device, and all other BLAS kernels run on the host.
impl Blas for Npu {
    fn copy<T: Element>(&self, x: View<'_, T, Self>, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        let _kernel = ledger::enter_kernel("copy", T::DTYPE.name());
        cortado::error::check_len("copy", "y", x.len(), y.len())?;
        let x = x.device()?;
        let y = y.device_write_only()?;
        let source = &x.buffer[x.offset..x.offset + x.bytes];
        y.buffer[y.offset..y.offset + y.bytes].copy_from_slice(source);
        Ok(())
    }
}

fn main() -> Result<()> {
    // Blobs and operations on blobs accept the custom device like any other device.
    let a = Blob::from_slice(&Npu, &[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
    let ledger = Ledger::new();
    {
        let _guard = ledger.open();
        println!("A·Aᵀ = {:?}", matmul(&a, a.t())?.to_vec()?);
    }
    println!("GEMM ran on the host: {} fallback", ledger.total(EventKind::Fallback).count);

    // The conformance kit compares the results of each kernel with `f64` oracles, and checks the
    // coherence of the memory.
    let report = Kit::new().cases(2).run(&Npu);
    let (native, all) = report.coverage().native_cells();
    println!("{native} of {all} pairs of kernel and element type are native");
    if let Some(failure) = report.failures().next() {
        println!("failed: {failure}");
        std::process::exit(1);
    }
    println!("all checks passed");

    // The report compares the kernels of the device with one thread of the CPU.
    #[cfg(feature = "report")]
    if std::env::args().any(|argument| argument == "--report") {
        println!("report: {}", cortado::bench_kit::report(&Npu)?.display());
    }
    Ok(())
}
