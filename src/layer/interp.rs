//! The Interp layer, which resizes images by bilinear interpolation.

use super::prelude::*;
use crate::{
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Permute, RowIndexing},
    proto::InterpParameter,
    shape::Shape,
};

/// Bilinear interpolation. The corners of the top are those of the bottom: element i of an output
/// axis of extent `o` lies at the position `i · (e − 1) / (o − 1)` of an input axis of extent `e`.
///
/// Negative values of `pad_beg` and `pad_end` first remove elements at the beginning and at the end
/// of both axes. One of the following combinations of fields gives the top's size, where e is the
/// extent of an axis without the removed elements:
/// - only `shrink_factor`: `(e − 1) / shrink_factor + 1`, rounded down
/// - only `zoom_factor`: `e + (e − 1) · (zoom_factor − 1)`
/// - `height` and `width`
/// - both factors: `zoom_factor` enlarges the extent that `shrink_factor` gives
///
/// The layer comes from the forks of Caffe for DeepLab and PSPNet: Chen et al., DeepLab (2018), and
/// Zhao et al., Pyramid scene parsing network (2017).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
///     layer { type: "Interp" bottom: "x" top: "y" interp_param { height: 1 width: 3 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 1.5, 2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct InterpLayer<T: Element> {
    param: InterpParameter,
    horizontal: AxisInterpolation<T>,
    vertical: AxisInterpolation<T>,
}

impl<T: Element> InterpLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if a factor or a size is not positive, if the fields give no
    /// size, or if `pad_beg` or `pad_end` is positive.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.interp_param.unwrap_or_default();
        let reject = |reason: String| invalid(format!("interp_param: {reason}"));
        for (name, pad) in [("pad_beg", param.pad_beg()), ("pad_end", param.pad_end())] {
            if pad > 0 {
                return reject(format!("{name} must not be positive, found {pad}"));
            }
        }
        let InterpParameter { height, width, zoom_factor, shrink_factor, .. } = param;
        for (name, value) in [
            ("height", height),
            ("width", width),
            ("zoom_factor", zoom_factor),
            ("shrink_factor", shrink_factor),
        ] {
            if value.is_some_and(|value| value <= 0) {
                return reject(format!("{name} must be positive, found {}", value.unwrap_or(0)));
            }
        }
        let has_size = height.is_some() && width.is_some();
        if !has_size && zoom_factor.is_none() && shrink_factor.is_none() {
            return reject("give zoom_factor, shrink_factor, or both height and width".into());
        }
        let axis = || AxisInterpolation::new(cx.device);
        Ok(Self { param, horizontal: axis()?, vertical: axis()? })
    }
}

/// Returns the number of elements that are removed at the beginning of each axis, the remaining
/// extents and the extents of the top.
pub(crate) fn interpolated_extents(
    param: &InterpParameter,
    shape: &Shape,
) -> Result<(usize, [usize; 2], [usize; 2])> {
    let [_, _, height, width] = image_extents(shape)?;
    let [begin, end] = [param.pad_beg(), param.pad_end()].map(|pad| pad.unsigned_abs() as usize);
    let remaining = [height, width].map(|extent| extent.saturating_sub(begin + end));
    if remaining.contains(&0) {
        return wrong_shape(format!(
            "interp_param: pad_beg {} and pad_end {} leave no element of height {height} and width \
             {width}",
            param.pad_beg(),
            param.pad_end()
        ));
    }
    let (zoom, shrink) = (param.zoom_factor() as usize, param.shrink_factor() as usize);
    let output = |axis: usize| -> Result<usize> {
        let extent = remaining[axis];
        let size = [param.height, param.width][axis];
        let shrunk = (extent - 1) / shrink + 1;
        match (param.shrink_factor, param.zoom_factor, size) {
            (Some(_), None, _) => Ok(shrunk),
            (None, Some(_), _) => Ok(Shape::new(&[extent - 1, zoom])?.count() + 1),
            (_, _, Some(size)) if param.height.is_some() && param.width.is_some() => {
                Ok(size as usize)
            }
            _ => Ok(Shape::new(&[shrunk - 1, zoom])?.count() + 1),
        }
    };
    Ok((begin, remaining, [output(0)?, output(1)?]))
}

/// Returns, for each element of an output axis, the indices of the two neighbours in the input axis
/// and the weight of the second neighbour. Computes in `f32`, as Caffe's forks do.
pub(crate) fn interpolation_weights(
    begin: usize,
    extent: usize,
    output: usize,
) -> Vec<(u32, u32, f32)> {
    let step = if output > 1 { (extent - 1) as f32 / (output - 1) as f32 } else { 0.0 };
    let neighbour = |i: usize| {
        let position = step * i as f32;
        let lower = (position as usize).min(extent - 1);
        let upper = (lower + 1).min(extent - 1);
        ((begin + lower) as u32, (begin + upper) as u32, position - lower as f32)
    };
    (0..output).map(neighbour).collect()
}

/// Interpolation between the rows of a matrix.
struct AxisInterpolation<T: Element> {
    /// The indices of the two rows from which each row of the output is computed.
    rows: [Blob<u32>; 2],
    /// The weights of these two rows in each row of the output.
    weights: [Blob<T>; 2],
    input: Blob<T>,
    output: Blob<T>,
    /// Scratch blob with the shape of the output.
    scratch: Blob<T>,
}

impl<T: Element> AxisInterpolation<T> {
    fn new(device: &AnyDevice) -> Result<Self> {
        let blob = || Blob::new(device, &[0]);
        Ok(Self {
            rows: [Blob::new(device, &[0])?, Blob::new(device, &[0])?],
            weights: [blob()?, blob()?],
            input: blob()?,
            output: blob()?,
            scratch: blob()?,
        })
    }

    /// Prepares the interpolation of an input with `rows` rows of `width` elements, of which `extent`
    /// rows from `begin` on are used.
    fn reshape(
        &mut self,
        [rows, width]: [usize; 2],
        [begin, extent, output]: [usize; 3],
    ) -> Result<()> {
        let neighbours = interpolation_weights(begin, extent, output);
        for blob in &mut self.rows {
            blob.reshape(&[output])?;
        }
        for blob in &mut self.weights {
            blob.reshape(&[output])?;
        }
        let lower: Vec<u32> = neighbours.iter().map(|row| row.0).collect();
        let upper: Vec<u32> = neighbours.iter().map(|row| row.1).collect();
        let weight = |weight: f32| T::from_f64(weight.into());
        let lower_weights: Vec<T> = neighbours.iter().map(|row| weight(1.0 - row.2)).collect();
        let upper_weights: Vec<T> = neighbours.iter().map(|row| weight(row.2)).collect();
        self.rows[0].data_mut()?.host_write_only()?.copy_from_slice(&lower);
        self.rows[1].data_mut()?.host_write_only()?.copy_from_slice(&upper);
        self.weights[0].data_mut()?.host_write_only()?.copy_from_slice(&lower_weights);
        self.weights[1].data_mut()?.host_write_only()?.copy_from_slice(&upper_weights);
        self.input.reshape(&[rows, width])?;
        self.output.reshape(&[output, width])?;
        self.scratch.reshape(&[output, width])
    }

    fn ops(&self) -> Result<(RowIndexing, Axis)> {
        let (table, width) = (self.input.shape()[0], self.input.shape()[1]);
        let count = self.output.shape()[0];
        Ok((RowIndexing { table, width, count }, Axis::new(1, count, width)?))
    }

    /// Writes the interpolated rows of `input` to `output`.
    fn forward(&self, device: &AnyDevice) -> Result<()> {
        let ((indexing, axis), x) = (self.ops()?, self.input.data()?);
        let (mut y, mut scratch) = (self.output.data_mut()?, self.scratch.data_mut()?);
        for (i, y) in [&mut y, &mut scratch].into_iter().enumerate() {
            let (rows, weights) = (self.rows[i].data()?, self.weights[i].data()?);
            device.gather(&indexing, x.view(), rows.view(), y.view_mut())?;
            device.broadcast(Binary::Mul, &axis, Src::InPlace, weights.view(), y.view_mut())?;
        }
        device.binary(Binary::Add, Src::InPlace, scratch.view(), y.view_mut())
    }

    /// Computes the gradient of the input from the gradient of the output.
    fn backward(&self, device: &AnyDevice) -> Result<()> {
        let ((indexing, axis), dy) = (self.ops()?, self.output.diff()?);
        let (mut dx, mut scratch) = (self.input.diff_mut()?, self.scratch.diff_mut()?);
        device.fill(T::default(), dx.view_mut())?;
        for (rows, weights) in self.rows.iter().zip(&self.weights) {
            let (rows, weights, dy) = (rows.data()?, weights.data()?, dy.view().into());
            device.broadcast(Binary::Mul, &axis, dy, weights.view(), scratch.view_mut())?;
            device.scatter_add(&indexing, scratch.view(), rows.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

/// Moves the last axis of `x`, which has the shape `shape`, to the front.
fn last_axis_to_front<T: Element>(
    device: &AnyDevice,
    shape: [usize; 3],
    x: View<'_, T, AnyDevice>,
    y: ViewMut<'_, T, AnyDevice>,
) -> Result<()> {
    device.permute(&Permute::new(Shape::new(&shape)?, &[2, 0, 1])?, x, y)
}

/// Moves the first axis of `x`, which has the shape `shape`, to the end.
fn first_axis_to_end<T: Element>(
    device: &AnyDevice,
    shape: [usize; 3],
    x: View<'_, T, AnyDevice>,
    y: ViewMut<'_, T, AnyDevice>,
) -> Result<()> {
    device.permute(&Permute::new(Shape::new(&shape)?, &[1, 2, 0])?, x, y)
}

impl<T: Element> Layer<T> for InterpLayer<T> {
    fn kind(&self) -> &'static str {
        "Interp"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let (begin, remaining, [rows, columns]) = interpolated_extents(&self.param, shape)?;
        let [num, channels, height, width] = image_extents(shape)?;
        let planes = Shape::new(&[num, channels])?.count();
        let pixels = |extent| Ok::<_, Error>(Shape::new(&[planes, extent])?.count());
        self.horizontal.reshape([width, pixels(height)?], [begin, remaining[1], columns])?;
        self.vertical.reshape([height, pixels(columns)?], [begin, remaining[0], rows])?;
        top[0].reshape(&[num, channels, rows, columns])
    }

    /// Interpolates first between columns, after a permutation that makes the columns the rows of a
    /// matrix, and then between rows.
    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let Self { horizontal, vertical, .. } = self;
        let [num, channels, height, width] = image_extents(bottom[0].shape())?;
        let [_, _, rows, columns] = image_extents(top[0].shape())?;
        let planes = num * channels;
        let (x, mut columns_of_x) = (bottom[0].data()?, horizontal.input.data_mut()?);
        let shape = [planes, height, width];
        last_axis_to_front(device, shape, x.view(), columns_of_x.view_mut())?;
        drop(columns_of_x);
        horizontal.forward(device)?;
        let (stretched, mut stretched_rows) =
            (horizontal.output.data()?, vertical.input.data_mut()?);
        let shape = [columns, planes, height];
        last_axis_to_front(device, shape, stretched.view(), stretched_rows.view_mut())?;
        drop(stretched_rows);
        vertical.forward(device)?;
        let (output, mut y) = (vertical.output.data()?, top[0].data_mut()?);
        last_axis_to_front(device, [rows, columns, planes], output.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let Self { horizontal, vertical, .. } = self;
        let [num, channels, height, width] = image_extents(bottom[0].shape())?;
        let [_, _, rows, columns] = image_extents(top[0].shape())?;
        let planes = num * channels;
        let (dy, mut output) = (top[0].diff()?, vertical.output.diff_mut()?);
        first_axis_to_end(device, [planes, rows, columns], dy.view(), output.view_mut())?;
        drop(output);
        vertical.backward(device)?;
        let (stretched_rows, mut stretched) =
            (vertical.input.diff()?, horizontal.output.diff_mut()?);
        let shape = [height, columns, planes];
        first_axis_to_end(device, shape, stretched_rows.view(), stretched.view_mut())?;
        drop(stretched);
        horizontal.backward(device)?;
        let (columns_of_x, mut dx) = (horizontal.input.diff()?, bottom[0].diff_mut()?);
        first_axis_to_end(device, [width, planes, height], columns_of_x.view(), dx.view_mut())
    }
}
