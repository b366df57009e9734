//! The host as a device.

use crate::{
    element::Element,
    error::{Error, Result},
    families,
    host::{Workers, advise_huge_pages, simd_instruction_set},
    kernel::{Conv, fallback},
    memory::{HostBytes, KernelCall, Mapping, Memory, View, ViewMut},
    op::{Convolution, Unary},
};
use std::{fs, ops::Range};

/// The host's processor. Its memory *is* host memory, so nothing is ever copied, and every kernel
/// is the host's, run in place on this value's threads.
#[derive(Clone, Debug)]
pub struct CpuDevice {
    workers: Workers,
}

impl CpuDevice {
    /// With as many threads as the machine runs at once, shared by the whole process.
    pub fn new() -> Self {
        Self { workers: Workers::global().clone() }
    }

    /// With `threads` threads of its own, shared by its clones; 1 runs on the calling thread, 0
    /// is as [`new`](Self::new).
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) if the threads cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        match threads {
            0 => Ok(Self::new()),
            _ => Ok(Self { workers: Workers::new(threads)? }),
        }
    }
}

impl Default for CpuDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory for CpuDevice {
    type Buffer = HostBytes;

    fn name(&self) -> String {
        "cpu".into()
    }
    fn alloc(&self, bytes: usize) -> Result<HostBytes> {
        let mut bytes = HostBytes::zeroed(bytes)?;
        advise_huge_pages(&mut bytes);
        Ok(bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut HostBytes, at: usize) -> Result<()> {
        let len = dst.len();
        range(at, src.len())
            .and_then(|bytes| dst.get_mut(bytes))
            .ok_or_else(|| outside(at, src.len(), len))?
            .copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &HostBytes, at: usize, dst: &mut [u8]) -> Result<()> {
        let bytes = range(at, dst.len()).and_then(|bytes| src.get(bytes));
        dst.copy_from_slice(bytes.ok_or_else(|| outside(at, dst.len(), src.len()))?);
        Ok(())
    }
    fn host_mapping(&self) -> Option<&dyn Mapping<HostBytes>> {
        Some(self)
    }
    fn host_workers(&self) -> &Workers {
        &self.workers
    }
    fn properties(&self) -> Vec<(&'static str, String)> {
        let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        let known = [
            ("processor", processor()),
            ("vector instructions", Some(simd_instruction_set().to_owned())),
            ("memory", memory().map(gibibytes)),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
    /// The host's kernels are this device's own.
    fn on_fallback(&self, _: &KernelCall) -> Result<()> {
        Ok(())
    }
}

/// The processor's name, where the system tells (Linux on x86).
fn processor() -> Option<String> {
    Some(told("/proc/cpuinfo", "model name")?.trim().to_owned())
}

/// Bytes of memory, where the system tells (Linux).
fn memory() -> Option<u64> {
    let kibibytes = told("/proc/meminfo", "MemTotal")?;
    kibibytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What a file of the system says behind `name` and a colon.
fn told(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(of, _)| of.trim() == name).map(|(_, value)| value.to_owned())
}

fn range(at: usize, len: usize) -> Option<Range<usize>> {
    Some(at..at.checked_add(len)?)
}

fn outside(at: usize, len: usize, held: usize) -> Error {
    Error::Range { what: "a buffer", start: at, end: at.saturating_add(len), len: held }
}

impl Mapping<HostBytes> for CpuDevice {
    fn map<'a>(&self, buffer: &'a HostBytes) -> Result<&'a [u8]> {
        Ok(buffer)
    }
    fn map_mut<'a>(&self, buffer: &'a mut HostBytes) -> Result<&'a mut [u8]> {
        Ok(buffer)
    }
    fn adopt(&self, bytes: HostBytes) -> Result<HostBytes, HostBytes> {
        Ok(bytes)
    }
}

families!(
    CpuDevice: Blas, Elementwise, Reductions, Random, Pooling, Normalize, Losses, Indexing, Update
);

impl Conv for CpuDevice {
    fn convolve_with_activation<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        function: Unary<T::Acc>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convolve_with_activation(self, op, x, filters, bias, function, y)
    }
}
