//! How a device is opened, where there is a choice.

/// What multiplies matrices on an NVIDIA GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GemmBackend {
    /// The crate's own kernels.
    #[default]
    Builtin,
    /// NVIDIA's cuBLAS, found at run time: the library or folder that `CORTADO_CUBLAS` names, else
    /// where the loader looks, and `/usr/local/cuda/lib64`. It multiplies matrices; products with
    /// vectors and those of convolutions are the crate's own.
    Cublas,
}

/// How [`on_device_with`](super::on_device_with) opens a device; the default is how
/// [`on_device`](super::on_device) does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Host threads; 0 takes as many as the machine runs at once.
    pub threads: usize,
    /// What multiplies matrices; of NVIDIA GPUs only.
    pub products: GemmBackend,
    /// Whether operands of `f32`'s products may be rounded to TF32; of NVIDIA GPUs only.
    pub tf32: bool,
}

impl DeviceOptions {
    /// With as many host threads.
    #[must_use]
    pub fn with_threads(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }

    /// What it asks for that NVIDIA GPUs alone have.
    pub(super) fn of_gpus(self) -> Option<&'static str> {
        match (self.products, self.tf32) {
            (GemmBackend::Cublas, _) => Some("cuBLAS"),
            (_, true) => Some("TF32"),
            _ => None,
        }
    }
}
