//! Launches of the CUDA kernels. Each module contains the launches of one kernel family or of one
//! CUDA source file.

use super::{CudaBuffer, CudaDevice, launch::Launch};
use crate::{
    element::{Element, Storable},
    error::Result,
    memory::{DeviceSliceMut, Memory, Src, View, ViewMut},
    op::Axis,
};

mod blas;
mod convolution;
mod elementwise;
mod gemm;
mod gemv;
mod im2col;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reduce_launch;
mod reductions;
mod split_reduction;
mod update;
mod window_axis;

/// Returns the device memory of an output, which the kernel overwrites or updates. The caller first
/// uploads the inputs and allocates workspaces, so that the output keeps its value if an upload or
/// an allocation fails.
#[track_caller]
fn output_slice<'a, T: Element>(
    y: &'a mut ViewMut<'_, T, CudaDevice>,
    overwrites: bool,
) -> Result<DeviceSliceMut<'a, CudaDevice>> {
    if overwrites { y.device_write_only() } else { y.device_mut() }
}

impl<'a> Launch<'a> {
    /// Adds an axis as an argument: the struct `Axis` of the CUDA kernels.
    fn axis(self, axis: &Axis) -> Self {
        self.struct_of([axis.outer, axis.extent, axis.inner])
    }

    /// Adds a struct of `uint64_t` fields as an argument.
    fn struct_of<const N: usize>(self, fields: [usize; N]) -> Self
    where
        [u64; N]: Storable,
    {
        self.arg(fields.map(|field| field as u64))
    }

    /// Adds an operand that the kernel reads, or a null pointer if `x` is `None`.
    fn read_optional<T: Element>(self, x: Option<View<'a, T, CudaDevice>>) -> Result<Self> {
        match x {
            Some(x) => Ok(self.read(x.device()?)),
            None => Ok(self.null()),
        }
    }

    /// Adds an operand that the kernel updates, or a null pointer if `y` is `None`.
    fn write_optional<T: Element>(
        self,
        y: Option<&'a mut ViewMut<'_, T, CudaDevice>>,
    ) -> Result<Self> {
        match y {
            Some(y) => Ok(self.write(y.device_mut()?)),
            None => Ok(self.null()),
        }
    }

    /// Adds a scratch buffer as an operand, or a null pointer if `buffer` is `None`.
    fn scratch(self, buffer: Option<&'a CudaBuffer>) -> Self {
        match buffer {
            Some(buffer) => self.operand(buffer, 0),
            None => self.null(),
        }
    }
}

/// Returns the length of the input operand, or `None` if the kernel works in place.
fn src_len<T: Storable, D: Memory>(x: &Src<'_, T, D>) -> Option<usize> {
    match x {
        Src::View(x) => Some(x.len()),
        Src::InPlace => None,
    }
}
