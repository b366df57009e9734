//! Launches of convolutions (`kernels/convolution.cu`).
//!
//! - The forward pass is an implicit GEMM for each group: the im2col matrix is never stored. With
//!   stride 1, an implicit GEMM also computes the gradient of the images.
//! - With a stride above 1, a GEMM stores the gradient of the im2col matrix for a few images at a
//!   time, and col2im sums that gradient into the gradient of the images. With a stride above 1,
//!   most taps of an implicit GEMM for the gradient of the images would read zeros.
//! - Separate kernels compute depthwise convolutions, whose filters have one channel.

use super::window_axis::{AXES, WindowAxis, window_axes};
use crate::{
    device::{CudaDevice, cuda::launch::Launch},
    element::Element,
    error::Result,
    memory::{View, ViewMut, ledger},
    op::{Convolution, Gemm, GemmBatch, Transpose},
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Approximate limit on the total size, in bytes, of the im2col matrices that exist at the same
/// time.
const COLUMNS_BYTES: usize = 256 << 20;

/// Positions that the taps of each window read along an axis; equivalent to the argument struct
/// `TapAxis` of the CUDA kernels.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct TapAxis {
    range: u32,
    columns: u32,
    taps: u32,
    stride: u32,
    step: i32,
    origin: i32,
}

/// Rust equivalent of the argument struct `Product` of the CUDA kernels.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct ForwardArgs {
    axes: [TapAxis; AXES],
    batch: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    positions: u32,
    k: u32,
}

/// Rust equivalent of the argument struct `Gradient` of the CUDA kernels.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct GradientArgs {
    axes: [TapAxis; AXES],
    batch: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    splits: u32,
    chunk: u32,
}

/// Rust equivalent of the argument struct `Depthwise` of the CUDA kernels.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct DepthwiseArgs {
    window: [WindowAxis; AXES],
    batch: u64,
    channels: u64,
    outputs: u64,
}

/// A grouped convolution that the kernels support: the GPU has kernels for the element type, and
/// the operands are small enough for the kernels' 32-bit indices.
pub(super) struct Groups<'a> {
    op: &'a Convolution,
    axes: [WindowAxis; AXES],
    /// Number of input channels per group.
    channels: usize,
    /// Number of output planes per group.
    outputs: usize,
}

impl<'a> Groups<'a> {
    /// Returns `None` if the kernels do not support the convolution.
    pub(super) fn new<T: Element>(device: &CudaDevice, op: &'a Convolution) -> Option<Self> {
        let window = op.window();
        let axes = window_axes(window)?;
        let (taps, positions, plane) = (window.taps(), window.positions(), window.plane_len());
        let columns = op.batch().checked_mul(positions.max(plane))?;
        let output_len = op.outputs().checked_mul(positions)?;
        // `taps`, `positions` and `plane` are checked separately, because their products with the
        // numbers of images, channels and outputs can be 0.
        let counts = [columns, output_len, op.filter_len(), op.groups(), taps, positions, plane];
        let (channels, outputs) = (window.channels() / op.groups(), op.outputs() / op.groups());
        let fits_i32 = counts.into_iter().all(|count| count <= i32::MAX as usize / 4);
        let groups = fits_i32.then_some(Self { op, axes, channels, outputs })?;
        (groups.is_depthwise() || device.has_tiles::<T>()).then_some(groups)
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1
    }

    fn depthwise_args(&self) -> DepthwiseArgs {
        DepthwiseArgs {
            window: self.axes,
            batch: self.op.batch() as u64,
            channels: self.op.groups() as u64,
            outputs: self.outputs as u64,
        }
    }

    /// Returns, for each axis, the positions in the image that the taps of each window read.
    fn image_axes(&self) -> [TapAxis; AXES] {
        self.axes.map(|axis| TapAxis {
            range: axis.input as u32,
            columns: axis.output as u32,
            taps: axis.kernel as u32,
            stride: axis.stride as u32,
            step: axis.dilation,
            origin: -axis.pad,
        })
    }

    /// Returns, for each axis, the positions in `dy` that contribute to the gradient of each image
    /// element, for a convolution with stride 1.
    fn gradient_axes(&self) -> [TapAxis; AXES] {
        self.image_axes().map(|axis| TapAxis {
            range: axis.columns,
            columns: axis.range,
            step: -axis.step,
            origin: -axis.origin,
            ..axis
        })
    }

    /// Prepares one implicit GEMM per group, which multiplies the `rows` × k filter matrix by the
    /// im2col matrix of `channels` channels. Returns the prepared launch, the number of thread blocks
    /// and the number of threads of a block.
    #[track_caller]
    fn implicit_gemm<'d, T: Element>(
        &self,
        (device, name): (&'d CudaDevice, &'static str),
        axes: [TapAxis; AXES],
        rows: usize,
        channels: usize,
    ) -> Result<(Launch<'d>, usize, u32)> {
        let positions: u32 = axes.iter().map(|axis| axis.columns).product();
        let columns = self.op.batch() * positions as usize;
        let tiles = device.tiles(T::DTYPE, rows, columns, self.op.groups());
        let taps: u32 = axes.iter().map(|axis| axis.taps).product();
        let args = ForwardArgs {
            axes,
            batch: self.op.batch() as u32,
            groups: self.op.groups() as u32,
            rows: rows as u32,
            channels: channels as u32,
            positions,
            k: channels as u32 * taps,
        };
        let launch = device.variant::<T>(name, &tiles.symbol("convolve"))?.arg(args);
        Ok((launch, tiles.count(rows, columns) * self.op.groups(), tiles.threads))
    }

    #[track_caller]
    pub(super) fn convolve<T: Element>(
        &self,
        device: &CudaDevice,
        x: View<'_, T, CudaDevice>,
        filters: View<'_, T, CudaDevice>,
        bias: Option<View<'_, T, CudaDevice>>,
        mut y: ViewMut<'_, T, CudaDevice>,
    ) -> Result<()> {
        const NAME: &str = "convolve";
        let n = y.len();
        let (launch, blocks, threads) = if self.is_depthwise() {
            (device.variant::<T>(NAME, "depthwise")?.arg(self.depthwise_args()), 0, 0)
        } else {
            let axes = self.image_axes();
            self.implicit_gemm::<T>((device, NAME), axes, self.outputs, self.channels)?
        };
        let launch = launch.read(x.device()?).read(filters.device()?).read_optional(bias)?;
        let launch = launch.write(y.device_write_only()?);
        if self.is_depthwise() {
            return launch.grid_1d(n);
        }
        launch.grid([blocks, 1, 1], [threads, 1, 1])
    }

    #[track_caller]
    pub(super) fn backward_input<T: Element>(
        &self,
        device: &CudaDevice,
        filters: View<'_, T, CudaDevice>,
        dy: View<'_, T, CudaDevice>,
        mut dx: ViewMut<'_, T, CudaDevice>,
    ) -> Result<()> {
        const NAME: &str = "convolve_backward_input";
        let n = dx.len();
        if self.is_depthwise() {
            let launch = device.variant::<T>(NAME, "depthwise_input")?.arg(self.depthwise_args());
            let launch = launch.read(filters.device()?).read(dy.device()?);
            return launch.write(dx.device_write_only()?).grid_1d(n);
        }
        if self.axes.iter().any(|axis| axis.stride > 1) {
            return self.backward_input_by_col2im(device, filters, dy, dx);
        }
        let (op, count) = (self.op, filters.len());
        let transposed = device.scratch::<T>(count)?;
        let launch = device.variant::<T>(NAME, "transpose_filters")?;
        let launch = launch.sizes([count, self.outputs, self.channels, op.window().taps()]);
        launch.read(filters.device()?).operand(&transposed, 0).grid_1d(count)?;
        let axes = self.gradient_axes();
        let (launch, blocks, threads) =
            self.implicit_gemm::<T>((device, NAME), axes, self.channels, self.outputs)?;
        let launch = launch.read(dy.device()?).operand(&transposed, 0).null();
        launch.write(dx.device_write_only()?).grid([blocks, 1, 1], [threads, 1, 1])
    }

    /// Computes `dx ← col2im(filtersᵀ · dy)`, for a few images at a time.
    #[track_caller]
    fn backward_input_by_col2im<T: Element>(
        &self,
        device: &CudaDevice,
        filters: View<'_, T, CudaDevice>,
        dy: View<'_, T, CudaDevice>,
        mut dx: ViewMut<'_, T, CudaDevice>,
    ) -> Result<()> {
        const NAME: &str = "convolve_backward_input";
        let (op, window) = (self.op, self.op.window());
        let (k, positions, image) =
            (self.channels * window.taps(), window.positions(), window.image_len());
        if dx.is_empty() {
            return Ok(());
        }
        let bytes = window.columns_len().max(1) * size_of::<T::Acc>();
        let batch_len = (COLUMNS_BYTES / bytes).clamp(1, op.batch());
        let columns = device.scratch::<T::Acc>(batch_len * window.columns_len())?;
        let gemm =
            Gemm::<T>::new(k, positions, self.outputs).transpose(Transpose::Yes, Transpose::No);
        let stride_b = op.outputs() * positions;
        let _scope = ledger::enter_kernel(NAME, T::DTYPE.name());
        // If the upload of an input fails, the output must keep its value.
        filters.device()?;
        dy.device()?;
        let dx = dx.device_write_only()?;
        for first in (0..op.batch()).step_by(batch_len) {
            let count = batch_len.min(op.batch() - first);
            let batch = GemmBatch { count, stride_a: 0, stride_b, stride_c: k * positions };
            for group in 0..op.groups() {
                let filters = filters.slice(group * self.outputs * k..filters.len())?;
                let start = first * stride_b + group * self.outputs * positions;
                let operands = (filters.device()?, dy.slice(start..dy.len())?.device()?);
                let first_c = group * count * k * positions;
                device.gemm_to_accumulators(NAME, &gemm, &batch, operands, (&columns, first_c))?;
            }
            let launch = device.variant::<T>(NAME, "col2im_images")?.arg(self.axes);
            let launch = launch.sizes([count, op.groups(), self.channels]).operand(&columns, 0);
            let offset = dx.offset + first * image * size_of::<T>();
            launch.operand(dx.buffer, offset).grid_1d(count * image)?;
        }
        Ok(())
    }

    #[track_caller]
    pub(super) fn backward_filters<T: Element>(
        &self,
        device: &CudaDevice,
        x: View<'_, T, CudaDevice>,
        dy: View<'_, T, CudaDevice>,
        mut dfilters: ViewMut<'_, T, CudaDevice>,
    ) -> Result<()> {
        const NAME: &str = "convolve_backward_filters";
        let (op, n) = (self.op, dfilters.len());
        if n == 0 || x.is_empty() || dy.is_empty() {
            return Ok(());
        }
        if self.is_depthwise() {
            let launch = device.variant::<T>(NAME, "depthwise_filters")?.arg(self.depthwise_args());
            let launch = launch.read(x.device()?).read(dy.device()?);
            return launch.write(dfilters.device_mut()?).grid_1d(n.saturating_mul(32));
        }
        let columns = self.channels * op.window().taps();
        let k = op.batch() * op.window().positions();
        // Large tiles are faster even if there are only a few tiles, because the sums are long
        // enough to be split among many blocks.
        let tiles = device.tiles(T::DTYPE, self.outputs, columns, k.div_ceil(1024) * op.groups());
        let blocks = tiles.count(self.outputs, columns) * op.groups();
        let split = device.split_tiles(blocks, k);
        let parts = device.scratch::<T::Acc>(split.parts * n)?;
        let launch = device.variant::<T>(NAME, &tiles.symbol("convolve_filters"))?;
        let launch = launch.arg(GradientArgs {
            axes: self.image_axes(),
            batch: op.batch() as u32,
            groups: op.groups() as u32,
            rows: self.outputs as u32,
            channels: self.channels as u32,
            splits: split.parts as u32,
            chunk: split.part_len as u32,
        });
        let launch = launch.read(x.device()?).read(dy.device()?).operand(&parts, 0);
        launch.grid([blocks * split.parts, 1, 1], [tiles.threads, 1, 1])?;
        let launch = device.variant::<T>(NAME, "add_filter_parts")?.sizes([n, split.parts]);
        launch.operand(&parts, 0).write(dfilters.device_mut()?).grid_1d(n)
    }
}
