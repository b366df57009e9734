//! Timing of work that is queued on a CUDA device.

use cortado::{Memory, Result, device::CudaDevice};
use std::time::Instant;

/// Approximate total time of all samples of one measurement, in seconds.
const BUDGET: f64 = 0.1;

const SAMPLES: usize = 5;

/// Calls `work` `repeats` times, then waits until the device has finished the queued work. Returns
/// the mean time of a call of `work`, in seconds.
pub(crate) fn mean_seconds(
    device: &CudaDevice,
    repeats: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let start = Instant::now();
    (0..repeats).try_for_each(|_| work())?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / repeats as f64)
}

/// Returns the time of a call of `work` in seconds: the median of several sample means, after a
/// warm-up call. If `brief` is true, returns the time of a single call after the warm-up.
pub(crate) fn seconds(
    device: &CudaDevice,
    brief: bool,
    mut work: impl FnMut() -> Result<()>,
) -> Result<f64> {
    mean_seconds(device, 1, &mut work)?;
    if brief {
        return mean_seconds(device, 1, work);
    }
    let first = mean_seconds(device, 2, &mut work)?;
    let repeats = (BUDGET / SAMPLES as f64 / first).clamp(1.0, 2000.0) as usize;
    let mut samples = [0.0; SAMPLES];
    for sample in &mut samples {
        *sample = mean_seconds(device, repeats, &mut work)?;
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}
