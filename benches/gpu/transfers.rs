//! Benchmarks of copies between host and GPU, with and without GEMM on another queue.

use crate::{Bench, check, clock};
use cortado::{Blob, Memory, Result, device::CudaDevice, kernel::Blas, op::Gemm};

/// Prints the rates, in GB/s, of copies between the GPU and pageable or pinned host memory. Also
/// prints the time of a copy that overlaps with GEMM on another queue.
pub(crate) fn table(bench: &Bench) -> Result<()> {
    let (device, brief) = (&bench.device, bench.brief);
    println!(
        "\n### Copies\n\nRates in GB/s of copies to the GPU (upload) and to the host (download). \
         `alloc_host` allocates the pinned memory.\n"
    );
    println!(
        "| bytes | upload, pageable | upload, pinned | download, pageable | download, pinned |"
    );
    println!("|--:|--:|--:|--:|--:|");
    let sizes: &[usize] =
        if brief { &[1 << 16] } else { &[1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28] };
    for &bytes in sizes {
        let mut buffer = device.alloc(bytes)?;
        let (mut pageable, mut pinned) = (vec![1; bytes], device.alloc_host(bytes)?);
        let mut times = Vec::new();
        for host in [&mut pageable[..], &mut pinned[..]] {
            times.push(clock::seconds(device, brief, || device.upload(host, &mut buffer, 0))?);
            times.push(clock::seconds(device, brief, || device.download(&buffer, 0, host))?);
        }
        let [up, down, pinned_up, pinned_down] =
            [0, 1, 2, 3].map(|i| bytes as f64 / times[i] / 1e9);
        check_copies(device, bytes)?;
        println!("| {bytes} | {up:.2} | {pinned_up:.2} | {down:.2} | {pinned_down:.2} |");
    }
    overlap(bench)
}

/// Copies bytes to the GPU and back, and checks the bytes.
fn check_copies(device: &CudaDevice, bytes: usize) -> Result<()> {
    let mut pinned = device.alloc_host(bytes)?;
    pinned.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8);
    let (mut buffer, mut copied) = (device.alloc(bytes)?, vec![0; bytes]);
    device.upload(&pinned, &mut buffer, 0)?;
    device.download(&buffer, 0, &mut copied)?;
    let position = copied.iter().zip(pinned.iter()).position(|(found, expected)| found != expected);
    let wrong_bytes = position.map(|at| [f64::from(copied[at]), f64::from(pinned[at])]);
    let [found, expected] = wrong_bytes.unwrap_or_default();
    check::values("copied byte", &[found], &[expected], |_| 0.0)
}

/// Times a pinned upload on one queue while another queue runs GEMM for about the same time.
fn overlap(bench: &Bench) -> Result<()> {
    let (device, brief) = (&bench.device, bench.brief);
    let (bytes, n) = if brief { (1 << 16, 16) } else { (1 << 28, 2048) };
    let copy_queue = device.fork_queue()?;
    let (pinned, mut buffer) = (device.alloc_host(bytes)?, copy_queue.alloc(bytes)?);
    let a = Blob::<f32, CudaDevice>::ones(device, &[n, n])?;
    let c = Blob::<f32, CudaDevice>::new(device, &[n, n])?;
    let (op, operand, mut result) = (Gemm::new(n, n, n), a.data()?, c.data_mut()?);
    let mut multiply = || device.gemm(&op, operand.view(), operand.view(), result.view_mut());
    let copy_time =
        clock::seconds(&copy_queue, brief, || copy_queue.upload(&pinned, &mut buffer, 0))?;
    let gemm_time = clock::seconds(device, brief, &mut multiply)?;
    let count = (copy_time / gemm_time).ceil().clamp(1.0, 10_000.0);
    let total_gemm_time = gemm_time * count;
    let total_time = clock::seconds(device, brief, || {
        (0..count as usize).try_for_each(|_| multiply())?;
        copy_queue.upload(&pinned, &mut buffer, 0)?;
        device.synchronize()
    })?;
    drop(result);
    let elements: Vec<f64> = c.to_vec()?.into_iter().map(f64::from).collect();
    check::values("gemm during an upload", &elements, &vec![n as f64; n * n], |_| 0.0)?;
    let overlap_percent =
        100.0 * (copy_time + total_gemm_time - total_time) / copy_time.min(total_gemm_time);
    let [copy_ms, gemms_ms, total_ms] =
        [copy_time, total_gemm_time, total_time].map(|seconds| seconds * 1e3);
    println!(
        "\nA pinned upload of {bytes} bytes takes {copy_ms:.2} ms, and GEMM on another queue \
         {gemms_ms:.2} ms. The two together take {total_ms:.2} ms, so {overlap_percent:.0} % of \
         the shorter time overlaps with the longer one."
    );
    Ok(())
}
