//! im2col, col2im, and convolution by implicit GEMM. Implicit GEMM never stores the im2col matrix:
//! the tiled GEMM reads the matrix elements from the images.
//!
//! The shape of the convolution is a constant in the shaders, so that the compiler can replace
//! divisions by cheaper operations. Because the shape is a constant, each shape of a convolution
//! has a separate pipeline.

use super::{
    gemm::{TILED_GEMM, TileShape},
    reduce_launch::{Layout, Reducer, ReductionShape, reduce, sum_reducer},
    scratch::Scratch,
};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, View, ViewMut,
    error::check_len,
    kernel::{Conv, fallback},
    memory::DeviceSlice,
    op::{Convolution, SpatialAxis, Window},
};
use std::fmt::Write;

/// Largest number of terms per partial sum of the filters' gradient, if at most [`MAX_SPLITS`]
/// partial sums suffice. A separate GEMM for a partial sum of fewer than `CHUNK` terms does not pay
/// off.
const CHUNK: usize = 2048;

/// Largest number of partial sums of the filters' gradient, each computed by a GEMM. The number of
/// partial sums exceeds `MAX_SPLITS` only if a partial sum would otherwise have more than
/// [`MAX_CHUNK`] terms.
const MAX_SPLITS: usize = 32;

/// Largest number of terms per partial sum. With 49 loop iterations per 16 terms, a thread runs at
/// most 50,176 iterations. Mesa's llvmpipe silently ends a thread's loops after 65,535 iterations.
const MAX_CHUNK: usize = 16_384;

const IM2COL: Kernel = Kernel {
    name: "im2col",
    reads: &["x"],
    writes: &["y"],
    scalars: &[],
    body: &[include_str!("../shaders/im2col.wgsl"), EACH],
};

const COL2IM: Kernel = Kernel {
    name: "col2im",
    reads: &["x"],
    writes: &["y"],
    scalars: &[],
    body: &[include_str!("../shaders/col2im.wgsl"), EACH],
};

const CONVOLVE: Kernel = Kernel {
    name: "convolve",
    reads: &["x", "filters", "bias"],
    writes: &["y"],
    scalars: &["rows", "columns", "k"],
    body: &[include_str!("../shaders/convolve.wgsl"), TILED_GEMM],
};

const BACKWARD_INPUT: Kernel = Kernel {
    name: "convolve_backward_input",
    reads: &["filters", "dy"],
    writes: &["dx"],
    scalars: &["rows", "columns", "k"],
    body: &[include_str!("../shaders/convolve_backward_input.wgsl"), TILED_GEMM],
};

const BACKWARD_FILTERS: Kernel = Kernel {
    name: "convolve_backward_filters",
    reads: &["x", "dy"],
    writes: &["parts"],
    scalars: &["rows", "columns", "k", "chunk"],
    body: &[include_str!("../shaders/convolve_backward_filters.wgsl"), TILED_GEMM],
};

/// Returns the WGSL source of the constants and the two index functions of `window`:
///
/// - `place(row, position)`: the index in the image of an element of the im2col matrix, or NOWHERE
///   in the padding;
/// - `position(tap, pixel)`: the position at which a tap reads an element of a plane, or NOWHERE if
///   no such position exists.
///
/// Indices are unsigned: a negative index wraps around to a large value, which the bounds check of
/// the shader rejects.
fn geometry_source(window: &Window) -> String {
    let (mut place, mut position) = (String::new(), String::new());
    let (mut plane, mut positions) = (1, 1);
    for (axis, output) in window.axes().iter().zip(window.output()).rev() {
        let &SpatialAxis { input, kernel, stride, pad, dilation } = axis;
        let _ = write!(
            place,
            "    i = q % {output}u * {stride}u + r % {kernel}u * {dilation}u - {pad}u;
    if i >= {input}u {{ return NOWHERE; }}
    at += i * {plane}u; r /= {kernel}u; q /= {output}u;
"
        );
        let (divisor, end) = (input.max(1), output * stride);
        let stride_check =
            if stride == 1 { String::new() } else { format!(" || i % {stride}u != 0u") };
        let _ = write!(
            position,
            "    i = q % {divisor}u + {pad}u - r % {kernel}u * {dilation}u;
    if i >= {end}u{stride_check} {{ return NOWHERE; }}
    at += i / {stride}u * {positions}u; r /= {kernel}u; q /= {divisor}u;
"
        );
        plane *= input;
        positions *= output;
    }
    let (image, taps) = (window.image_len(), window.taps());
    format!(
        "const NOWHERE = 0xffffffffu;
const IMAGE = {image}u;
const PLANE = {plane}u;
const TAPS = {taps}u;
const POSITIONS = {positions}u;
fn place(row: u32, position: u32) -> u32 {{
    var r = row; var q = position; var at = 0u; var i = 0u;
{place}    return at + r * PLANE;
}}
fn position(tap: u32, pixel: u32) -> u32 {{
    var r = tap; var q = pixel; var at = 0u; var i = 0u;
{position}    return at;
}}
"
    )
}

fn window_key(window: &Window) -> String {
    let mut key = window.channels().to_string();
    for axis in window.axes() {
        let SpatialAxis { input, kernel, stride, pad, dilation } = axis;
        let _ = write!(key, " {input}:{kernel}/{stride}+{pad}*{dilation}");
    }
    key
}

/// Shape of a convolution's groups, and the shader source that depends on this shape.
struct Groups {
    /// Number of input channels per group of the convolution.
    channels: usize,
    /// Number of output planes (filters) per group of the convolution.
    outputs: usize,
    source: String,
    key: String,
}

impl Groups {
    fn new(op: &Convolution) -> Self {
        let (window, groups) = (op.window(), op.groups());
        let (channels, outputs) = (window.channels() / groups, op.outputs() / groups);
        let constants = format!(
            "const GROUPS = {groups}u; const CHANNELS = {channels}u; const OUTPUTS = {outputs}u;\n"
        );
        let key = format!("{} {groups} {outputs}", window_key(window));
        Self { channels, outputs, source: constants + &geometry_source(window), key }
    }
}

/// Returns whether an operand of the convolution is empty; if so, the gradient of the filters does
/// not change and needs no launch.
fn is_empty(op: &Convolution) -> bool {
    op.input_len() == 0 || op.filter_len() == 0 || op.output_len() == 0
}

impl Conv for WgpuDevice {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("im2col") else {
            return fallback::im2col(self, op, x, columns);
        };
        op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
        let n = columns.len();
        let launch = IM2COL.variant(self, &window_key(op), || geometry_source(op));
        launch.read(x.device()?).write(columns.device_write_only()?).each(n)
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("col2im") else {
            return fallback::col2im(self, op, columns, x);
        };
        op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
        let n = x.len();
        if n == 0 {
            return Ok(());
        }
        let launch = COL2IM.variant(self, &window_key(op), || geometry_source(op));
        launch.read(columns.device()?).write(x.device_write_only()?).each(n)
    }

    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("convolve") else {
            return fallback::convolve(self, op, x, filters, bias, y);
        };
        op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
        if let Some(bias) = &bias {
            check_len("convolve", "bias", op.outputs(), bias.len())?;
        }
        let groups = Groups::new(op);
        let (rows, columns) = (groups.outputs, op.batch() * op.window().positions());
        let tile_shape = TileShape::new(rows, columns);
        let variant = format!("{} {} {}", tile_shape.key(), groups.key, bias.is_some());
        let launch = CONVOLVE.variant(self, &variant, || {
            let bias = if bias.is_some() { "bias[p.bias + plane]" } else { "0.0" };
            let bias = format!("fn bias_of(plane: u32) -> f32 {{ return {bias}; }}\n");
            [&groups.source, &tile_shape.constants(true, false), &bias]
                .map(|part| &part[..])
                .concat()
        });
        let launch = launch.read(x.device()?).read(filters.device()?);
        // A WGSL binding needs a buffer, so the filters are bound in place of a missing bias.
        let launch = launch.read(bias.unwrap_or(filters).device()?);
        let k = groups.channels * op.window().taps();
        let launch = launch.write(y.device_write_only()?).sizes([rows, columns, k]);
        tile_shape.launch(launch, op.groups())
    }

    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("convolve_backward_input") else {
            return fallback::convolve_backward_input(self, op, filters, dy, dx);
        };
        let kernel = "convolve_backward_input";
        op.check(kernel, ("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len()))?;
        if dx.is_empty() {
            return Ok(());
        }
        let groups = Groups::new(op);
        let (rows, columns) = (groups.channels, op.batch() * op.window().plane_len());
        let tile_shape = TileShape::new(rows, columns);
        let variant = format!("{} {}", tile_shape.key(), groups.key);
        let source = || groups.source.clone() + &tile_shape.constants(false, false);
        let launch = BACKWARD_INPUT.variant(self, &variant, source);
        let launch = launch.read(filters.device()?).read(dy.device()?);
        let k = groups.outputs * op.window().taps();
        let launch = launch.write(dx.device_write_only()?).sizes([rows, columns, k]);
        tile_shape.launch(launch, op.groups())
    }

    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("convolve_backward_filters") else {
            return fallback::convolve_backward_filters(self, op, x, dy, dfilters);
        };
        let kernel = "convolve_backward_filters";
        op.check(kernel, ("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len()))?;
        if is_empty(op) {
            return Ok(());
        }
        let groups = Groups::new(op);
        let (rows, columns) = (groups.outputs, groups.channels * op.window().taps());
        let k = op.batch() * op.window().positions();
        let splits = k.div_ceil(CHUNK).min(MAX_SPLITS).max(k.div_ceil(MAX_CHUNK));
        let tile_shape = TileShape::new(rows, columns);
        let variant = format!("{} {}", tile_shape.key(), groups.key);
        let source = || groups.source.clone() + &tile_shape.constants(true, true);
        let launch = BACKWARD_FILTERS.variant(self, &variant, source);
        let len = op.filter_len();
        let parts = Scratch::new(self, splits * len)?;
        let launch = launch.read(x.device()?).read(dy.device()?).operand(&parts, 0);
        let chunk = k.div_ceil(splits);
        tile_shape.launch(launch.sizes([rows, columns, k, chunk]), splits * op.groups())?;
        // Adds the partial sums of all GEMMs, in order, to the previous gradient of the filters.
        let reducer = Reducer { finish: "y[at] + v", ..sum_reducer("accumulate", "x") };
        let shape = ReductionShape {
            outputs: len,
            items: splits,
            q: Layout::CONTIGUOUS,
            t: Layout::strided(len),
        };
        let parts = DeviceSlice { buffer: &*parts, offset: 0, bytes: 4 * splits * len };
        let dfilters = dfilters.device_mut()?;
        reduce(self, reducer, shape, parts, None, [0.0; 2], (dfilters.buffer, dfilters.offset / 4))
    }
}
