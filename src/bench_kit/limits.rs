//! Limits: measured peak rates of a device, which give the least time of a benchmark case.

use super::{Sampling, Work, machine::cache_levels, survey::device_label};
use crate::{
    blob::Blob,
    device::{AnyDevice, Device},
    element::{DType, Element, bf16, f16},
    error::Result,
    filler::Filler,
    host,
    kernel::traits::*,
    memory::ledger::{EventKind, Ledger},
    op::{Gemm, RngKey},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Measured peak rates of a device: floating-point operations per second by element type, and bytes
/// per second by cache level.
///
/// The arithmetic peak of a device whose kernels run on the host is the rate of multiply-adds on
/// registers, on all threads of the device. 16-bit elements have the peak rate of `f32`, in which
/// the kernels compute. The arithmetic peak of another device is the rate of its `gemm` with 1024
/// rows. The bandwidth of a level is that of the fastest of `copy`, `axpy` and `dot`, with operands
/// that together fill half of a cache, or that have 256 MiB for the main memory. Rates of kernels
/// that fall back to the host are omitted.
///
/// ```no_run
/// use cortado::{CpuDevice, bench_kit::{Limits, Work}};
///
/// let limits = Limits::measure(&CpuDevice::with_threads(1)?)?;
/// let work = Work { bytes: 3 * 4 * 512 * 512, flops: 2 * 512 * 512 * 512 };
/// println!("a GEMM of 512 rows takes at least {:?} s", limits.seconds("f32", work));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Name of the device, with its number of threads.
    pub device: String,
    /// Names of element types, each with the peak rate in floating-point operations per second.
    pub flops: Vec<(String, f64)>,
    /// Levels of memory, in ascending order of size.
    pub levels: Vec<Level>,
}

/// Level of memory: a cache, or the main memory.
///
/// [`Limits`] has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Name, such as `L2`.
    pub name: String,
    /// Largest number of bytes that the level holds; `u64::MAX` for the main memory.
    pub capacity: u64,
    /// Bytes that the device reads and writes per second.
    pub bandwidth: f64,
}

/// Bytes of the operands with which the bandwidth of the main memory is measured.
const LARGE: u64 = 256 << 20;

impl Limits {
    /// Measures the peak rates of a device, in about a second.
    ///
    /// # Errors
    /// Returns an error if the device cannot allocate the operands, or if a kernel fails.
    pub fn measure(device: &impl Device) -> Result<Self> {
        let device = &AnyDevice::new(device);
        let flops = if device.host_mapping().is_some() {
            let single = multiply_add_rate(device, host::multiply_adds::<f32>)?;
            let double = multiply_add_rate(device, host::multiply_adds::<f64>)?;
            vec![
                (DType::F32, single),
                (DType::F64, double),
                (DType::F16, single),
                (DType::Bf16, single),
            ]
        } else {
            let rates = [
                (DType::F32, gemm_rate::<f32>(device)?),
                (DType::F64, gemm_rate::<f64>(device)?),
                (DType::F16, gemm_rate::<f16>(device)?),
                (DType::Bf16, gemm_rate::<bf16>(device)?),
            ];
            rates.into_iter().filter_map(|(element, rate)| Some((element, rate?))).collect()
        };
        let flops = flops.into_iter().map(|(element, rate)| (element.name().to_owned(), rate));
        let mut levels = Vec::new();
        for (name, capacity) in capacities(device) {
            let bytes = (capacity / 2).min(LARGE);
            if let Some(bandwidth) = bandwidth(device, bytes as usize)? {
                levels.push(Level { name, capacity, bandwidth });
            }
        }
        Ok(Self { device: device_label(device), flops: flops.collect(), levels })
    }

    /// Returns the least time in seconds that a case with this work needs at the peak rates: the
    /// longer of the time of its arithmetic and the time of its memory accesses (roofline model,
    /// Williams et al., 2009). Returns `None` if neither peak rate is known, or if the case neither
    /// computes nor moves bytes.
    pub fn seconds(&self, element: &str, work: Work) -> Option<f64> {
        let flops = self.flops.iter().find(|(name, _)| name == element).map(|(_, rate)| *rate);
        let arithmetic = flops.map(|rate| work.flops as f64 / rate);
        let level = self.levels.iter().find(|level| work.bytes <= level.capacity);
        let memory = level.map(|level| work.bytes as f64 / level.bandwidth);
        arithmetic.into_iter().chain(memory).reduce(f64::max).filter(|seconds| *seconds > 0.0)
    }

    /// Replaces each rate by that of `other` if the latter is greater. Another program that runs
    /// during a measurement can lower a measured rate, but never raises it.
    pub(super) fn raise_to(&mut self, other: &Self) {
        for (name, rate) in &mut self.flops {
            let others = other.flops.iter().filter(|(other_name, _)| other_name == name);
            *rate = others.map(|(_, rate)| *rate).fold(*rate, f64::max);
        }
        for level in &mut self.levels {
            let others = other.levels.iter().filter(|other| other.name == level.name);
            level.bandwidth = others.map(|other| other.bandwidth).fold(level.bandwidth, f64::max);
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let level = |level: &Level| json!([level.name, level.capacity, level.bandwidth]);
        json!({
            "device": self.device, "flops": self.flops,
            "levels": self.levels.iter().map(level).collect::<Vec<_>>(),
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let rate = |rate: &Value| Some((rate[0].as_str()?.to_owned(), rate[1].as_f64()?));
        let level = |level: &Value| {
            let (name, capacity) = (level[0].as_str()?.to_owned(), level[1].as_u64()?);
            Some(Level { name, capacity, bandwidth: level[2].as_f64()? })
        };
        Some(Self {
            device: value["device"].as_str()?.to_owned(),
            flops: value["flops"].as_array()?.iter().map(rate).collect::<Option<_>>()?,
            levels: value["levels"].as_array()?.iter().map(level).collect::<Option<_>>()?,
        })
    }
}

/// Returns the names and capacities of the memory levels of a device. The capacities of L1 and L2
/// are those of all threads together, because each thread is assumed to have its own.
fn capacities(device: &AnyDevice) -> Vec<(String, u64)> {
    let threads = device.host_workers().count() as u64;
    let caches = if device.host_mapping().is_some() { cache_levels() } else { Vec::new() };
    let capacity = |(level, bytes): (u64, u64)| {
        (format!("L{level}"), if level < 3 { threads * bytes } else { bytes })
    };
    caches.into_iter().map(capacity).chain([("memory".into(), u64::MAX)]).collect()
}

/// Returns the highest measured rate of `run`, which computes multiply-adds, on all threads of the
/// device at once. `run` takes a number of repeats and returns the number of floating-point
/// operations.
fn multiply_add_rate(device: &AnyDevice, run: fn(usize) -> u64) -> Result<f64> {
    const REPEATS: usize = 20_000;
    let (workers, flops) = (device.host_workers(), run(1) * REPEATS as u64);
    let tasks = 4 * workers.count();
    let sampling = Sampling { samples: 15, sample_time: Duration::from_millis(3) };
    let samples = sampling.sample(|| {
        workers.run(tasks, |_| {
            run(REPEATS);
        });
        Ok(())
    })?;
    Ok(tasks as f64 * flops as f64 / samples.fastest().as_secs_f64())
}

/// Returns the rate of the device's `gemm`, or `None` if the kernel falls back to the host.
fn gemm_rate<T: Element>(device: &AnyDevice) -> Result<Option<f64>> {
    let native = |n: usize| -> Result<Option<f64>> {
        let op = Gemm::<T>::new(n, n, n);
        let [a, b, c] = operands::<T, 3>(device, n * n)?;
        let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
        let seconds =
            native_seconds(device, || device.gemm(&op, a.view(), b.view(), c.view_mut()))?;
        Ok(seconds.map(|seconds| op.flops() as f64 / seconds))
    };
    // The small product detects a fallback, without the time that the large product would take on
    // the host.
    match native(16)? {
        Some(_) => native(1024),
        None => Ok(None),
    }
}

/// Returns the bandwidth of the fastest of three kernels whose operands have `bytes` bytes in
/// total, or `None` if all of them fall back to the host.
fn bandwidth(device: &AnyDevice, bytes: usize) -> Result<Option<f64>> {
    let len = (bytes / 8).max(1);
    let [x, y] = operands::<f32, 2>(device, len)?;
    let (x, mut y) = (x.data()?, y.data_mut()?);
    let copy = native_seconds(device, || device.copy(x.view(), y.view_mut()))?;
    let axpy = native_seconds(device, || device.axpy(1e-6, x.view(), y.view_mut()))?;
    let dot = native_seconds(device, || device.dot(x.view(), y.view()).map(drop))?;
    let rate = |vectors: usize| move |seconds: f64| (4 * vectors * len) as f64 / seconds;
    let rates = [copy.map(rate(2)), axpy.map(rate(3)), dot.map(rate(2))];
    Ok(rates.into_iter().flatten().reduce(f64::max))
}

fn operands<T: Element, const N: usize>(device: &AnyDevice, len: usize) -> Result<[Blob<T>; N]> {
    let blobs: [Result<Blob<T>>; N] = std::array::from_fn(|i| {
        let blob = Blob::new(device, &[len])?;
        Filler::Uniform { min: 0.25, max: 1.0 }.fill(&blob, RngKey::new(i as u64))?;
        Ok(blob)
    });
    let blobs = blobs.into_iter().collect::<Result<Vec<_>>>()?;
    blobs.try_into().map_err(|_| crate::Error::Shape("operands: wrong count".into()))
}

/// Returns the least time of a kernel in seconds, or `None` if the kernel falls back to the host.
fn native_seconds(device: &AnyDevice, mut run: impl FnMut() -> Result<()>) -> Result<Option<f64>> {
    let ledger = Ledger::new();
    let guard = ledger.open();
    let first_run = run();
    drop(guard);
    first_run?;
    if ledger.total(EventKind::Fallback).count > 0 {
        return Ok(None);
    }
    let samples = Sampling::QUICK.sample(|| {
        run()?;
        device.synchronize()
    })?;
    Ok(Some(samples.fastest().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_is_the_longer_of_arithmetic_and_memory() {
        let level =
            |name: &str, capacity, bandwidth| Level { name: name.into(), capacity, bandwidth };
        let limits = Limits {
            device: "d".into(),
            flops: vec![("f32".into(), 100.0)],
            levels: vec![level("L1", 1000, 50.0), level("memory", u64::MAX, 10.0)],
        };
        let seconds = |element, bytes, flops| limits.seconds(element, Work { bytes, flops });
        assert_eq!(seconds("f32", 100, 300), Some(3.0)); // 2 s of memory, 3 s of arithmetic
        assert_eq!(seconds("f32", 1000, 300), Some(20.0));
        assert_eq!(seconds("f32", 2000, 300), Some(200.0)); // exceeds L1
        assert_eq!(seconds("f64", 100, 300), Some(2.0));
        assert_eq!(seconds("f32", 0, 0), None);
        assert_eq!(Limits::from_json(&limits.to_json()), Some(limits));
    }

    #[test]
    fn raised_limits_have_the_greatest_rate_of_each_kind() {
        let limits = |flops: [f64; 2], bandwidths: [f64; 2]| {
            let names = ["f32", "f64"].map(String::from);
            let level = |(name, bandwidth): (&str, f64)| Level {
                name: name.into(),
                capacity: 1,
                bandwidth,
            };
            Limits {
                device: "d".into(),
                flops: names.into_iter().zip(flops).collect(),
                levels: ["L1", "memory"].into_iter().zip(bandwidths).map(level).collect(),
            }
        };
        let mut raised = limits([100.0, 25.0], [40.0, 9.0]);
        raised.raise_to(&limits([60.0, 50.0], [80.0, 8.0]));
        assert_eq!(raised, limits([100.0, 50.0], [80.0, 9.0]));
    }
}
