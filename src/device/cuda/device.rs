//! The device: a GPU, a queue and host threads; and its builder.

use super::{
    context::Context,
    cublas::{Cublas, Library},
    driver,
    error::from_cust,
    stream::Stream,
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

/// An NVIDIA GPU, and one in-order queue of work for it. Clones share both; a
/// [`fork`](crate::Memory::fork_queue) has a queue of its own.
#[derive(Clone)]
pub struct CudaDevice {
    pub(super) stream: Arc<Stream>,
    pub(super) workers: Workers,
    /// What multiplies matrices, if that is not the crate's own.
    pub(super) cublas: Option<Arc<Cublas>>,
    /// Whether operands of `f32`'s products are rounded.
    pub(super) tf32: bool,
}

impl CudaDevice {
    /// The GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no driver, or no such GPU.
    pub fn new(ordinal: u32) -> Result<Self> {
        Self::builder().open(ordinal)
    }

    /// To open one otherwise than [`new`](Self::new) does.
    pub fn builder() -> CudaBuilder {
        CudaBuilder::default()
    }

    /// How many GPUs there are.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no driver.
    pub fn count() -> Result<u32> {
        Self::builder().count()
    }

    /// Gives back what is kept for reuse: memory of the GPU, and pinned memory of the host.
    ///
    /// # Errors
    /// [`Error::Device`] if queued work fails, which is waited for.
    pub fn trim_pools(&self) -> Result<()> {
        self.stream.wait()?;
        let context = self.context();
        context.pinned.release();
        context.pool.release().map_err(|failure| context.error(failure))
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

/// Opens GPUs.
#[derive(Clone, Debug, Default)]
pub struct CudaBuilder {
    memory_limit: Option<usize>,
    threads: usize,
    products: GemmBackend,
    tf32: bool,
    driver: Option<PathBuf>,
    cublas: Option<PathBuf>,
}

impl CudaBuilder {
    /// At most this many bytes of the GPU's memory: more is [`Error::OutOfMemory`]. Without it,
    /// all there are.
    #[must_use]
    pub fn memory_limit(self, bytes: usize) -> Self {
        Self { memory_limit: Some(bytes), ..self }
    }

    /// As many host threads for what is left to the host; 0 takes the process' own.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// What multiplies matrices; without it, the crate's own kernels.
    #[must_use]
    pub fn gemm_backend(self, products: GemmBackend) -> Self {
        Self { products, ..self }
    }

    /// Whether the operands of `f32`'s products of matrices, convolutions' too, may be rounded to ten
    /// bits (TF32), as tensor cores take them; without it, products are exact but for the rounding
    /// of sums.
    #[must_use]
    pub fn tf32(self, allowed: bool) -> Self {
        Self { tf32: allowed, ..self }
    }

    /// The driver's library at this place. A process has one: another than the one in use is an
    /// error.
    #[doc(hidden)]
    #[must_use]
    pub fn driver_path(self, path: &Path) -> Self {
        Self { driver: Some(path.to_owned()), ..self }
    }

    /// cuBLAS at this place, or in this folder.
    #[doc(hidden)]
    #[must_use]
    pub fn cublas_path(self, path: &Path) -> Self {
        Self { cublas: Some(path.to_owned()), ..self }
    }

    /// Opens the GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no driver, no such GPU, or no cuBLAS that was asked for.
    pub fn open(self, ordinal: u32) -> Result<CudaDevice> {
        let count = self.count()?;
        if ordinal >= count {
            let why = format!("there is no GPU of this number, only {count} of them");
            return Err(Error::device(format!("cuda:{ordinal}"), why));
        }
        let workers = match self.threads {
            0 => Workers::global().clone(),
            threads => Workers::new(threads)?,
        };
        let context = Arc::new(Context::new(ordinal, self.memory_limit)?);
        let stream = Arc::new(Stream::new(&context)?);
        let cublas = match self.products {
            GemmBackend::Builtin => None,
            GemmBackend::Cublas => {
                let library = Library::open(self.cublas.as_deref());
                let library = library.map_err(|why| Error::device(&*context.name, why))?;
                Some(Arc::new(Cublas::new(&Arc::new(library), &stream, self.tf32)))
            }
        };
        Ok(CudaDevice { stream, workers, cublas, tf32: self.tf32 })
    }

    /// How many GPUs there are.
    fn count(&self) -> Result<u32> {
        driver::open(self.driver.as_deref()).map_err(|why| Error::device("cuda", why))?;
        let count = cust::init(CudaFlags::empty())
            .map_err(from_cust("cuInit"))
            .and_then(|()| Device::num_devices().map_err(from_cust("cuDeviceGetCount")));
        count.map_err(|failure| failure.on("cuda"))
    }
}
