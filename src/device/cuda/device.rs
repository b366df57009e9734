//! The CUDA device (a GPU, a queue and host threads) and its builder.

use super::{
    context::Context, driver, error::from_cust, gemm_library::GemmLibrary,
    launch_counts::LaunchCounts, memory_budget::MemoryBudget, requirements, stream::Stream,
};
use crate::{
    device::options::GemmBackend,
    error::{Error, Result},
    host::Workers,
};
use cust::{CudaFlags, device::Device};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// An NVIDIA GPU, with one in-order queue of work. Clones of a `CudaDevice` share the queue; a
/// device that [`fork_queue`](crate::Memory::fork_queue) returns has a separate queue.
///
/// ```no_run
/// use cortado::{device::CudaDevice, prelude::*};
///
/// let gpu = CudaDevice::new(0)?;
/// let x = Blob::from_slice(&gpu, &[2], &[1.0f32, 2.0])?;
/// assert_eq!(x.scale(2.0)?.to_vec()?, [2.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone)]
pub struct CudaDevice {
    pub(super) stream: Arc<Stream>,
    pub(super) workers: Workers,
    pub(super) gemm_library: GemmLibrary,
    /// Whether GEMM and convolution may round `f32` operands to TF32.
    pub(super) tf32: bool,
    /// Number of multiprocessors for which launches size their grids.
    pub(super) multiprocessors: usize,
    /// Whether GEMM and convolution use large tiles for matrices of any size; for tests.
    pub(super) large_tiles: bool,
}

impl CudaDevice {
    /// Opens GPU number `ordinal`, counted from 0.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or the GPU is missing, if the driver is older than R450
    /// (CUDA 11.0), or if the GPU's compute capability is below 7.5.
    pub fn new(ordinal: u32) -> Result<Self> {
        Self::builder().open(ordinal)
    }

    /// Returns a builder, which opens a GPU with options.
    pub fn builder() -> CudaBuilder {
        CudaBuilder::default()
    }

    /// Returns the number of GPUs.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver is missing.
    pub fn count() -> Result<u32> {
        Self::builder().count()
    }

    /// Frees cached memory of the GPU and cached pinned host memory, after waiting for queued work.
    ///
    /// # Errors
    /// [`Error::Device`] if queued work fails.
    pub fn trim_pools(&self) -> Result<()> {
        self.stream.wait()?;
        let context = self.context();
        context.pinned.release();
        context.pool.release().map_err(|failure| context.error(failure))
    }

    /// Returns the counts of this queue's launches. Kernels that the queue still defers
    /// ([`CudaBuilder::graphs`]) and kernels of cuBLAS and cuBLASLt are not counted.
    pub fn launch_counts(&self) -> LaunchCounts {
        self.stream.launch_counts()
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.stream.context
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaDevice({})", self.context().name)
    }
}

/// A builder that opens a [`CudaDevice`] with options.
///
/// ```no_run
/// use cortado::{Error, Memory, device::CudaDevice};
///
/// let gpu = CudaDevice::builder().memory_limit(1 << 30).tf32(true).open(0)?;
/// assert!(matches!(gpu.alloc(2 << 30), Err(Error::OutOfMemory { .. })));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CudaBuilder {
    memory_limit: Option<usize>,
    threads: usize,
    gemm_backend: GemmBackend,
    tf32: bool,
    multiprocessors: Option<usize>,
    large_tiles: bool,
    graphs: bool,
    driver: Option<PathBuf>,
    cublas: Option<PathBuf>,
}

impl CudaBuilder {
    /// Limits the device and its forked queues to `bytes` bytes of the GPU's memory. An allocation
    /// beyond the limit returns [`Error::OutOfMemory`]. By default, the device can use all of the
    /// GPU's memory.
    #[must_use]
    pub fn memory_limit(self, bytes: usize) -> Self {
        Self { memory_limit: Some(bytes), ..self }
    }

    /// Sets the number of host threads for fallbacks; 0 uses the global thread pool.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Sets the GEMM backend. The default, [`GemmBackend::Auto`], selects cuBLASLt if the GPU has
    /// compute capability 9.0 or later and cuBLASLt is found, and otherwise the built-in kernels.
    #[must_use]
    pub fn gemm_backend(self, gemm_backend: GemmBackend) -> Self {
        Self { gemm_backend, ..self }
    }

    /// Allows GEMM and convolution to round `f32` operands to TF32 (10-bit mantissa), an input
    /// format of tensor cores. By default, `f32` operands are not rounded to TF32. A GPU of compute
    /// capability below 8.0 never rounds to TF32.
    #[must_use]
    pub fn tf32(self, allowed: bool) -> Self {
        Self { tf32: allowed, ..self }
    }

    /// Makes the device and its forked queues launch kernels by CUDA graphs. A graph launches up to
    /// 32 kernels by one call of the driver, so that the host spends less time on launches. By
    /// default, each kernel is launched by a separate call.
    ///
    /// The results are bit-identical with and without graphs. With graphs, the queue defers kernels
    /// until it has enough of them for a graph, or until it transfers data or waits. An error of
    /// the launch of a kernel is returned by the next wait. A sequence of kernels becomes a graph
    /// when it occurs for the second time. Graphs need driver R470 (CUDA 11.4) or later; with an
    /// older driver, the option has no effect. Graphs do not include kernels of cuBLAS and
    /// cuBLASLt.
    #[must_use]
    pub fn graphs(self, graphs: bool) -> Self {
        Self { graphs, ..self }
    }

    /// Sizes the grids of kernels for a GPU with `count` multiprocessors, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn multiprocessors(self, count: usize) -> Self {
        Self { multiprocessors: Some(count.max(1)), ..self }
    }

    /// Makes GEMM and convolution use large tiles for matrices of any size, for tests. By default,
    /// a kernel uses large tiles only if the matrix has enough large tiles to fill the GPU. The
    /// kernels of `f64` have no large tiles.
    #[doc(hidden)]
    #[must_use]
    pub fn large_tiles(self, always: bool) -> Self {
        Self { large_tiles: always, ..self }
    }

    /// Sets the path of the driver library. A process can open only one driver library.
    #[doc(hidden)]
    #[must_use]
    pub fn driver_path(self, path: impl AsRef<Path>) -> Self {
        Self { driver: Some(path.as_ref().to_owned()), ..self }
    }

    /// Sets the path of cuBLAS or of the folder that contains cuBLAS and cuBLASLt.
    #[doc(hidden)]
    #[must_use]
    pub fn cublas_path(self, path: impl AsRef<Path>) -> Self {
        Self { cublas: Some(path.as_ref().to_owned()), ..self }
    }

    /// Opens GPU number `ordinal`, counted from 0. Devices on the same GPU share the GPU's context,
    /// compiled kernels and cached memory, which are freed when all devices on the GPU and all of
    /// their buffers have been dropped.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver, the GPU or the requested cuBLAS or cuBLASLt is
    /// missing, if the driver is older than R450 (CUDA 11.0), or if the GPU's compute capability is below 7.5.
    pub fn open(self, ordinal: u32) -> Result<CudaDevice> {
        let count = self.count()?;
        if ordinal >= count {
            let reason = format!("no such GPU ({count} found)");
            return Err(Error::device(format!("cuda:{ordinal}"), reason));
        }
        let workers = match self.threads {
            0 => Workers::global().clone(),
            threads => Workers::new(threads)?,
        };
        let context = Context::open(ordinal)?;
        let budget = Arc::new(MemoryBudget::new(self.memory_limit));
        let graphs = self.graphs && !context.synchronous && requirements::has_graphs(&context.name);
        let stream = Stream::new(&context, &budget, graphs)?;
        let (path, queue) = (self.cublas.as_deref(), (&stream, self.tf32));
        let gemm_library = GemmLibrary::open(self.gemm_backend, path, queue, context.capability)?;
        let multiprocessors = self.multiprocessors.unwrap_or(context.multiprocessors);
        let Self { tf32, large_tiles, .. } = self;
        Ok(CudaDevice { stream, workers, gemm_library, tf32, multiprocessors, large_tiles })
    }

    fn count(&self) -> Result<u32> {
        driver::open(self.driver.as_deref()).map_err(|reason| Error::device("cuda", reason))?;
        let count = cust::init(CudaFlags::empty())
            .map_err(from_cust("cuInit"))
            .and_then(|()| Device::num_devices().map_err(from_cust("cuDeviceGetCount")));
        count.map_err(|failure| failure.on("cuda"))
    }
}
