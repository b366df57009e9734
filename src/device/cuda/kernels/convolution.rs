//! Convolution: `kernels/convolution.cu`.
//!
//! - Products with columns that are never stored, one a group; gradients of images too, where
//!   windows are one element apart.
//! - Where they are further apart, most taps of such products would see nothing: the gradients of
//!   the columns are made, some images at a time, and folded.
//! - Filters of one channel are no products.

use super::{
    gemm::{THREADS, TileShape},
    window_axis::{AXES, WindowAxis, window_axes},
};
use crate::{
    device::CudaDevice,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
    op::{Convolution, Gemm, GemmBatch, Transpose},
};
use bytemuck::{Pod, Zeroable};

/// Bytes of columns at a time, about.
const COLUMNS: usize = 256 << 20;

/// What taps see along an axis, as the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct TapAxis {
    range: u32,
    columns: u32,
    taps: u32,
    stride: u32,
    step: i32,
    origin: i32,
    advance: u32,
}

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ForwardArgs {
    axes: [TapAxis; AXES],
    batch: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    advance: u32,
    plane: u32,
    positions: u32,
    k: u32,
}

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct GradientArgs {
    axes: [TapAxis; AXES],
    batch: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    splits: u32,
    chunk: u32,
}

/// As the kernels declare it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DepthwiseArgs {
    window: [WindowAxis; AXES],
    batch: u64,
    channels: u64,
    outputs: u64,
}

/// A convolution that is counted in 32 bits, and its parts that belong together.
pub(super) struct Groups<'a> {
    op: &'a Convolution,
    along: [WindowAxis; AXES],
    /// Channels of a group.
    channels: usize,
    /// Output planes of a group.
    outputs: usize,
}

impl<'a> Groups<'a> {
    /// None if kernels cannot count it.
    pub(super) fn of(op: &'a Convolution) -> Option<Self> {
        let along = window_axes(op.window())?;
        let (channels, outputs) =
            (op.window().channels() / op.groups(), op.outputs() / op.groups());
        let most = i32::MAX as usize / 4;
        let counted = op.batch().checked_mul(op.window().positions().max(op.window().plane_len()))?
            <= most
            && op.outputs().checked_mul(op.window().positions())? <= most
            && op.filter_len() <= most
            && op.groups() <= most
            // Of no images, channels or outputs as well.
            && [op.window().taps(), op.window().positions(), op.window().plane_len()]
                .into_iter()
                .all(|count| count <= most);
        counted.then_some(Self { op, along, channels, outputs })
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1
    }

    fn depthwise(&self) -> DepthwiseArgs {
        DepthwiseArgs {
            window: self.along,
            batch: self.op.batch() as u64,
            channels: self.op.groups() as u64,
            outputs: self.outputs as u64,
        }
    }

    /// What taps of the windows see of the images.
    fn sights(&self) -> [TapAxis; AXES] {
        self.along.map(|axis| TapAxis {
            range: axis.input as u32,
            columns: axis.output as u32,
            taps: axis.kernel as u32,
            stride: axis.stride as u32,
            step: axis.dilation,
            origin: -axis.pad,
            advance: 0,
        })
    }

    /// What taps see of the results, from an element of an image that windows are at each of.
    fn reversed(&self) -> [TapAxis; AXES] {
        self.along.map(|axis| TapAxis {
            range: axis.output as u32,
            columns: axis.input as u32,
            taps: axis.kernel as u32,
            stride: 1,
            step: -axis.dilation,
            origin: axis.pad,
            advance: 0,
        })
    }

    /// Products of `rows` × k filters of each group with columns of `channels`.
    fn product(
        &self,
        mut axes: [TapAxis; AXES],
        tiles: TileShape,
        rows: usize,
        channels: usize,
    ) -> ForwardArgs {
        // From one k of a thread's to the next.
        let mut advance = THREADS / tiles.across as u32;
        for axis in axes.iter_mut().rev() {
            (axis.advance, advance) = (advance % axis.taps, advance / axis.taps);
        }
        let plane = axes.iter().map(|axis| axis.range).product();
        let taps: u32 = axes.iter().map(|axis| axis.taps).product();
        ForwardArgs {
            axes,
            batch: self.op.batch() as u32,
            groups: self.op.groups() as u32,
            rows: rows as u32,
            channels: channels as u32,
            advance: advance * plane,
            plane,
            positions: axes.iter().map(|axis| axis.columns).product(),
            k: channels as u32 * taps,
        }
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
        let columns = self.op.batch() * self.op.window().positions();
        let tiles = device.tiles(T::DTYPE, self.outputs, columns, self.op.groups());
        let launch = if self.is_depthwise() {
            device.variant::<T>("convolve", "depthwise")?.arg(self.depthwise())
        } else {
            let product = self.product(self.sights(), tiles, self.outputs, self.channels);
            device.variant::<T>("convolve", &tiles.symbol("convolve"))?.arg(product)
        };
        let launch = launch.read(x.device()?).read(filters.device()?);
        let launch = match bias {
            Some(bias) => launch.read(bias.device()?),
            None => launch.arg(0u64),
        };
        let n = y.len();
        let launch = launch.write(y.device_write_only()?);
        if self.is_depthwise() {
            return launch.grid_1d(n);
        }
        let blocks = tiles.count(self.outputs, columns) * self.op.groups();
        launch.grid([blocks, 1, 1], [THREADS, 1, 1])
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
            let launch = device.variant::<T>(NAME, "depthwise_input")?.arg(self.depthwise());
            let launch = launch.read(filters.device()?).read(dy.device()?);
            return launch.write(dx.device_write_only()?).grid_1d(n);
        }
        if self.along.iter().any(|axis| axis.stride > 1) {
            return self.fold_columns(device, filters, dy, dx);
        }
        let (op, count) = (self.op, filters.len());
        let transposed = device.scratch::<T>(count)?;
        let launch = device.variant::<T>(NAME, "transpose_filters")?;
        let launch = launch.sizes([count, self.outputs, self.channels, op.window().taps()]);
        launch.read(filters.device()?).operand(&transposed, 0).grid_1d(count)?;
        let columns = op.batch() * op.window().plane_len();
        let tiles = device.tiles(T::DTYPE, self.channels, columns, op.groups());
        let product = self.product(self.reversed(), tiles, self.channels, self.outputs);
        let launch = device.variant::<T>(NAME, &tiles.symbol("convolve"))?.arg(product);
        let launch = launch.read(dy.device()?).operand(&transposed, 0).arg(0u64);
        let blocks = tiles.count(self.channels, columns) * op.groups();
        launch.write(dx.device_write_only()?).grid([blocks, 1, 1], [THREADS, 1, 1])
    }

    /// `dx ← filtersᵀ · dy`, folded.
    #[track_caller]
    fn fold_columns<T: Element>(
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
        let together = (COLUMNS / bytes).clamp(1, op.batch());
        let columns = device.scratch::<T::Acc>(together * window.columns_len())?;
        let gemm =
            Gemm::<T>::with_transpose(Transpose::Yes, Transpose::No, k, positions, self.outputs);
        let result = op.outputs() * positions;
        let into = dx.device_write_only()?;
        for first in (0..op.batch()).step_by(together) {
            let count = together.min(op.batch() - first);
            let batch = GemmBatch { count, stride_a: 0, stride_b: result, stride_c: k * positions };
            for group in 0..op.groups() {
                let filters = filters.slice(group * self.outputs * k..filters.len())?;
                let start = first * result + group * self.outputs * positions;
                let operands = (filters.device()?, dy.slice(start..dy.len())?.device()?);
                let at = group * count * k * positions;
                device.multiply_wide(NAME, &gemm, &batch, operands, (&columns, at))?;
            }
            let launch = device.variant::<T>(NAME, "fold_images")?.arg(self.along);
            let launch = launch.sizes([count, op.groups(), self.channels]).operand(&columns, 0);
            let offset = into.offset + first * image * size_of::<T>();
            launch.operand(into.buffer, offset).grid_1d(count * image)?;
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
            let launch = device.variant::<T>(NAME, "depthwise_filters")?.arg(self.depthwise());
            let launch = launch.read(x.device()?).read(dy.device()?);
            return launch.write(dfilters.device_mut()?).grid_1d(n.saturating_mul(32));
        }
        let columns = self.channels * op.window().taps();
        let k = op.batch() * op.window().positions();
        // Sums are long, and split anyway: large tiles pay even if there are few.
        let tiles = device.tiles(T::DTYPE, self.outputs, columns, k.div_ceil(1024) * op.groups());
        let blocks = tiles.count(self.outputs, columns) * op.groups();
        let split = device.split_tiles(blocks, k);
        let parts = device.scratch::<T::Acc>(split.parts * n)?;
        let launch = device.variant::<T>(NAME, &tiles.symbol("convolve_filters"))?;
        let launch = launch.arg(GradientArgs {
            axes: self.sights(),
            batch: op.batch() as u32,
            groups: op.groups() as u32,
            rows: self.outputs as u32,
            channels: self.channels as u32,
            splits: split.parts as u32,
            chunk: split.chunk as u32,
        });
        let launch = launch.read(x.device()?).read(dy.device()?).operand(&parts, 0);
        launch.grid([blocks * split.parts, 1, 1], [THREADS, 1, 1])?;
        let launch = device.variant::<T>(NAME, "add_filter_parts")?.sizes([n, split.parts]);
        launch.operand(&parts, 0).write(dfilters.device_mut()?).grid_1d(n)
    }
}
