//! Sliding windows, and convolution as products with columns that are never stored: the tiles of
//! a product read elements of the images where those of the columns are asked for.
//!
//! The geometry is written into the shaders as constants, so that places are found without
//! divisions; a window of other extents is another pipeline.

use super::{
    fold::{Items, Rule, Steps, fold, sum_of},
    gemm::{TILES, Tiles},
    scratch::Scratch,
};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, View, ViewMut,
    error::expect_len,
    kernel::{Windows, fallback},
    memory::DeviceSlice,
    op::{Convolution, Extent, Window},
};
use std::fmt::Write;

/// Terms of a filter's gradient that pay for a product of their own.
const CHUNK: usize = 2048;

/// Products at most that the gradient of the filters is summed of.
const SPLITS: usize = 32;

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
    body: &[include_str!("../shaders/convolve.wgsl"), TILES],
};

const BACKWARD_INPUT: Kernel = Kernel {
    name: "convolve_backward_input",
    reads: &["filters", "dy"],
    writes: &["dx"],
    scalars: &["rows", "columns", "k"],
    body: &[include_str!("../shaders/convolve_backward_input.wgsl"), TILES],
};

const BACKWARD_FILTERS: Kernel = Kernel {
    name: "convolve_backward_filters",
    reads: &["x", "dy"],
    writes: &["parts"],
    scalars: &["rows", "columns", "k", "chunk"],
    body: &[include_str!("../shaders/convolve_backward_filters.wgsl"), TILES],
};

/// Constants of a window and the functions between its places:
///
/// - `place(row, position)`, the element of the image that row `row` of the columns sees at a
///   position, or NOWHERE in the padding;
/// - `position(tap, pixel)`, the position at which a tap of the kernel sees an element of a plane,
///   or NOWHERE.
///
/// Differences that would be negative wrap, and are too large then.
fn geometry(window: &Window) -> String {
    let (mut place, mut position) = (String::new(), String::new());
    let (mut plane, mut positions) = (1, 1);
    for (extent, output) in window.axes().iter().zip(window.output()).rev() {
        let &Extent { input, kernel, stride, pad, dilation } = extent;
        let _ = write!(
            place,
            "    i = q % {output}u * {stride}u + r % {kernel}u * {dilation}u - {pad}u;
    if i >= {input}u {{ return NOWHERE; }}
    at += i * {plane}u; r /= {kernel}u; q /= {output}u;
"
        );
        let (nonzero, reach) = (input.max(1), output * stride);
        let skipped = if stride == 1 { String::new() } else { format!(" || i % {stride}u != 0u") };
        let _ = write!(
            position,
            "    i = q % {nonzero}u + {pad}u - r % {kernel}u * {dilation}u;
    if i >= {reach}u{skipped} {{ return NOWHERE; }}
    at += i / {stride}u * {positions}u; r /= {kernel}u; q /= {nonzero}u;
"
        );
        plane *= input;
        positions *= output;
    }
    let (image, taps) = (window.image(), window.taps());
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

/// Tells windows apart.
fn name(window: &Window) -> String {
    let mut name = format!("{}", window.channels());
    for axis in window.axes() {
        let Extent { input, kernel, stride, pad, dilation } = axis;
        let _ = write!(name, " {input}:{kernel}/{stride}+{pad}*{dilation}");
    }
    name
}

/// A convolution's groups, and the rows and columns of their products.
struct Groups {
    /// Channels of a group.
    channels: usize,
    /// Output planes of a group.
    outputs: usize,
    source: String,
    name: String,
}

impl Groups {
    fn of(op: &Convolution) -> Self {
        let (window, groups) = (op.window(), op.groups());
        let (channels, outputs) = (window.channels() / groups, op.outputs() / groups);
        let constants = format!(
            "const GROUPS = {groups}u;\nconst CHANNELS = {channels}u;\nconst OUTPUTS = {outputs}u;\n"
        );
        let name = format!("{} {groups} {outputs}", name(window));
        Self { channels, outputs, source: constants + &geometry(window), name }
    }
}

/// Whether there is anything to compute but zeros. What is not there need not be bound.
fn is_empty(op: &Convolution) -> bool {
    op.input_len() == 0 || op.filter_len() == 0 || op.output_len() == 0
}

impl Windows for WgpuDevice {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("im2col") else {
            return fallback::im2col(self, op, x, columns);
        };
        op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
        let n = columns.len();
        let launch = IM2COL.variant(self, &name(op), || geometry(op));
        launch.read(x.device()?).write(columns.device_write_only()?).each(n)
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("col2im") else {
            return fallback::col2im(self, op, columns, x);
        };
        op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
        let n = x.len();
        if n == 0 {
            return Ok(());
        }
        let launch = COL2IM.variant(self, &name(op), || geometry(op));
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
        let Some(_running) = self.native::<T>("convolve") else {
            return fallback::convolve(self, op, x, filters, bias, y);
        };
        op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
        if let Some(bias) = &bias {
            expect_len("convolve", "bias", op.outputs(), bias.len())?;
        }
        let groups = Groups::of(op);
        let (rows, columns) = (groups.outputs, op.batch() * op.window().positions());
        let tiles = Tiles::of(rows, columns);
        let variant = format!("{} {} {}", tiles.name(), groups.name, bias.is_some());
        let launch = CONVOLVE.variant(self, &variant, || {
            let bias = if bias.is_some() { "bias[p.bias + plane]" } else { "0.0" };
            let bias = format!("fn bias_of(plane: u32) -> f32 {{ return {bias}; }}\n");
            [&groups.source, &tiles.constants(true, false), &bias].map(|part| &part[..]).concat()
        });
        let launch = launch.read(x.device()?).read(filters.device()?);
        // Something has to be bound.
        let launch = launch.read(bias.unwrap_or(filters).device()?);
        let k = groups.channels * op.window().taps();
        let launch = launch.write(y.device_write_only()?).sizes([rows, columns, k]);
        tiles.launch(launch, op.groups())
    }

    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("convolve_backward_input") else {
            return fallback::convolve_backward_input(self, op, filters, dy, dx);
        };
        let kernel = "convolve_backward_input";
        op.check(kernel, ("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len()))?;
        if dx.is_empty() {
            return Ok(());
        }
        let groups = Groups::of(op);
        let (rows, columns) = (groups.channels, op.batch() * op.window().plane());
        let tiles = Tiles::of(rows, columns);
        let variant = format!("{} {}", tiles.name(), groups.name);
        let source = || groups.source.clone() + &tiles.constants(false, false);
        let launch = BACKWARD_INPUT.variant(self, &variant, source);
        let launch = launch.read(filters.device()?).read(dy.device()?);
        let k = groups.outputs * op.window().taps();
        let launch = launch.write(dx.device_write_only()?).sizes([rows, columns, k]);
        tiles.launch(launch, op.groups())
    }

    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("convolve_backward_filters") else {
            return fallback::convolve_backward_filters(self, op, x, dy, dfilters);
        };
        let kernel = "convolve_backward_filters";
        op.check(kernel, ("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len()))?;
        if is_empty(op) {
            return Ok(());
        }
        let groups = Groups::of(op);
        let (rows, columns) = (groups.outputs, groups.channels * op.window().taps());
        let k = op.batch() * op.window().positions();
        let splits = k.div_ceil(CHUNK).min(SPLITS);
        let tiles = Tiles::of(rows, columns);
        let variant = format!("{} {}", tiles.name(), groups.name);
        let source = || groups.source.clone() + &tiles.constants(true, true);
        let launch = BACKWARD_FILTERS.variant(self, &variant, source);
        let len = op.filter_len();
        let parts = Scratch::new(self, splits * len)?;
        let launch = launch.read(x.device()?).read(dy.device()?).operand(&parts, 0);
        let chunk = k.div_ceil(splits);
        tiles.launch(launch.sizes([rows, columns, k, chunk]), splits * op.groups())?;
        // Each element is the sum of its parts, in order, added to what was there.
        let rule = Rule { finish: "y[at] + v", ..sum_of("added", "x") };
        let place = Items { outputs: len, items: splits, q: Steps::NEXT, t: Steps::by(len) };
        let parts = DeviceSlice { buffer: &*parts, offset: 0, bytes: 4 * splits * len };
        let dfilters = dfilters.device_mut()?;
        fold(self, rule, place, parts, None, [0.0; 2], (dfilters.buffer, dfilters.offset / 4))
    }
}
