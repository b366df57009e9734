//! Times of work that is queued.

use cortado::{Memory, Result, device::CudaDevice};
use std::time::Instant;

/// Seconds of all samples of a measurement, about.
const BUDGET: f64 = 0.1;

const SAMPLES: usize = 5;

/// Seconds from the first call of `work` to when the device is done, for each of `repeats` calls.
pub(crate) fn once(
    device: &CudaDevice,
    repeats: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let start = Instant::now();
    (0..repeats).try_for_each(|_| work())?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() / repeats as f64)
}

/// Median seconds of `work`, queued again and again, after some of it to warm up; of one call if
/// `brief`.
pub(crate) fn seconds(
    device: &CudaDevice,
    brief: bool,
    mut work: impl FnMut() -> Result<()>,
) -> Result<f64> {
    once(device, 1, &mut work)?;
    if brief {
        return once(device, 1, work);
    }
    let first = once(device, 2, &mut work)?;
    let repeats = (BUDGET / SAMPLES as f64 / first).clamp(1.0, 2000.0) as usize;
    let mut samples = [0.0; SAMPLES];
    for sample in &mut samples {
        *sample = once(device, repeats, &mut work)?;
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}
