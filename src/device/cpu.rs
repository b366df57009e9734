//! The host's processor as a device.

use crate::{
    element::Element,
    error::{Error, Result},
    families,
    host::{Workers, advise_huge_pages, simd_instruction_set},
    kernel::{Conv, fallback},
    memory::{CompiledHere, HostBytes, KernelCall, Mapping, Memory, View, ViewMut},
    op::{Convolution, Unary},
};
use std::{fs, ops::Range};

/// The host's processor. The device's memory is host memory, so nothing is ever transferred. Every
/// kernel is a host kernel, which runs on the threads of this device.
///
/// ```
/// use cortado::prelude::*;
///
/// let sum = |device: CpuDevice| -> Result<f32> {
///     Blob::from_fn(&device, &[100_000], |i| 1.0 / (i + 1) as f32)?.sum_all()
/// };
/// let (one, two) = (CpuDevice::with_threads(1)?, CpuDevice::with_threads(2)?);
/// assert_eq!(two.host_workers().count(), 2);
/// assert_eq!(sum(one)?.to_bits(), sum(two)?.to_bits());
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CpuDevice {
    workers: Workers,
}

impl CpuDevice {
    /// Creates a device on the process-wide thread pool, which has one thread per core that the
    /// process may use ([`default_threads`](crate::host::default_threads)).
    pub fn new() -> Self {
        Self { workers: Workers::global().clone() }
    }

    /// Creates a device with a separate pool of `threads` threads, which clones of the device
    /// share. With one thread, kernels run on the calling thread. If `threads` is 0, behaves like
    /// [`new`](Self::new).
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
    const COMPILED_HERE: CompiledHere = CompiledHere::YES;

    fn name(&self) -> String {
        "cpu".into()
    }
    fn alloc(&self, bytes: usize) -> Result<HostBytes> {
        let mut bytes = HostBytes::zeroed(bytes)?;
        advise_huge_pages(&mut bytes);
        Ok(bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut HostBytes, at: usize) -> Result<()> {
        let range = checked_range(at, src.len(), dst.len())?;
        dst[range].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &HostBytes, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[checked_range(at, dst.len(), src.len())?]);
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
        let properties = [
            ("processor", processor_name()),
            ("vector instructions", Some(simd_instruction_set().to_owned())),
            ("memory", host_memory_bytes().map(gibibytes)),
        ];
        properties.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
    /// Records no fallback, because host kernels are the native kernels of this device.
    fn on_fallback(&self, _: &KernelCall) -> Result<()> {
        Ok(())
    }
}

/// Returns the processor's name; `None` unless the system is Linux on x86.
fn processor_name() -> Option<String> {
    Some(proc_entry("/proc/cpuinfo", "model name")?.trim().to_owned())
}

/// Returns the size of main memory in bytes; `None` unless the system is Linux.
///
/// ```
/// assert_ne!(cortado::device::host_memory_bytes(), Some(0));
/// ```
pub fn host_memory_bytes() -> Option<u64> {
    let kibibytes = proc_entry("/proc/meminfo", "MemTotal")?;
    kibibytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the text that follows the first `key:` in the file `file`.
fn proc_entry(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut entries = text.lines().filter_map(|line| line.split_once(':'));
    entries.find(|(name, _)| name.trim() == key).map(|(_, value)| value.to_owned())
}

/// Returns the range of `len` bytes from `start`; fails if a buffer of `size` bytes is too small.
fn checked_range(start: usize, len: usize, size: usize) -> Result<Range<usize>> {
    let end = start.saturating_add(len);
    if end > size {
        return Err(Error::Range { what: "a buffer", start, end, len: size });
    }
    Ok(start..end)
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
