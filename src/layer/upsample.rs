//! The Upsample layer, which enlarges images: it moves elements to the positions of maxima, or
//! repeats elements.

use super::prelude::*;
use crate::{
    op::{RowIndexing, Tile},
    shape::Shape,
};

/// Upsampling of images. With two bottoms, the layer is that of SegNet: the second bottom gives,
/// for each element of the first bottom, the position in the plane of the top to which the layer
/// moves the element. The other elements of the top are 0. The second bottom is the second top of a
/// Pooling layer with the method `MAX`. If several elements move to one position, the layer adds
/// them.
///
/// The top has the size `upsample_h` × `upsample_w`, or else the size of the bottom multiplied by
/// `scale`, or by `scale_h` and `scale_w`. `pad_out_h` and `pad_out_w` reduce the height and the
/// width of the top by 1, for a pooling layer whose bottom has an odd height or width.
///
/// With one bottom, the layer is that of MobileNet-YOLO: it repeats each element `scale` times along
/// both axes.
///
/// The layer with two bottoms comes from Badrinarayanan, Kendall and Cipolla, SegNet (2017).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 4 } } }
///     layer { type: "Pooling" bottom: "x" top: "y" top: "mask"
///       pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
///     layer { type: "Upsample" bottom: "y" bottom: "mask" top: "z" upsample_param { scale: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let x = net.blob("x").unwrap();
/// x.data_mut()?.host_mut()?.copy_from_slice(&[1.0, 5.0, 2.0, 0.0, 3.0, 4.0, 8.0, 6.0]);
/// net.forward()?;
/// assert_eq!(net.blob("z").unwrap().to_vec()?, [0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "Unpooling")]
pub struct UpsampleLayer<T: Element> {
    size: OutputSize,
    /// The positions in the second bottom, as integers.
    positions: Blob<u32>,
    /// Scratch blob for a layer with one bottom: the bottom, repeated horizontally only.
    rows: Blob<T>,
}

#[derive(Clone, Copy)]
enum OutputSize {
    Exact([usize; 2]),
    Scaled { scale: [usize; 2], subtract: [usize; 2] },
}

impl<T: Element> UpsampleLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the fields of `upsample_param` are contradictory or do not
    /// fit the number of bottoms.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let size = output_size(param)?;
        Ok(Self { size, positions: Blob::new(cx.device, &[0])?, rows: Blob::new(cx.device, &[0])? })
    }

    /// Returns the height and width of the top for a bottom of shape `shape`.
    fn output(&self, shape: &Shape) -> Result<[usize; 2]> {
        let [_, _, height, width] = image_extents(shape)?;
        match self.size {
            OutputSize::Exact(size) => Ok(size),
            OutputSize::Scaled { scale, subtract } => {
                let extent = |axis: usize, input: usize| -> Result<usize> {
                    let scaled = Shape::new(&[input, scale[axis]])?.count();
                    Ok(scaled.saturating_sub(subtract[axis]))
                };
                Ok([extent(0, height)?, extent(1, width)?])
            }
        }
    }

    /// Calls `body` for each plane, with the range of the plane's elements in the bottom, the range
    /// in the top, and the descriptor of the kernels that move the elements.
    fn planes(
        &self,
        shape: &Shape,
        mut body: impl FnMut([std::ops::Range<usize>; 2], RowIndexing) -> Result<()>,
    ) -> Result<()> {
        let [num, channels, height, width] = image_extents(shape)?;
        let [rows, columns] = self.output(shape)?;
        let (count, table) = (height * width, rows * columns);
        let op = RowIndexing { table, width: 1, count };
        for plane in 0..num * channels {
            let ranges = [count, table].map(|len| plane * len..(plane + 1) * len);
            body(ranges, op)?;
        }
        Ok(())
    }

    /// Returns the descriptors of the horizontal and the vertical repetition.
    fn tiles(&self, shape: &Shape) -> Result<[Tile; 2]> {
        let [num, channels, height, width] = image_extents(shape)?;
        let [rows, columns] = self.output(shape)?;
        let planes = num * channels;
        let times = |output: usize, input: usize| output.checked_div(input).unwrap_or(1);
        Ok([
            Tile { outer: planes * height * width, inner: 1, tiles: times(columns, width) },
            Tile { outer: planes * height, inner: columns, tiles: times(rows, height) },
        ])
    }
}

/// Returns the size of the top that `upsample_param` defines.
fn output_size(param: &LayerParameter) -> Result<OutputSize> {
    let has_positions = param.bottom.len() > 1;
    let param = param.upsample_param.unwrap_or_default();
    let reject = |reason: &str| invalid(format!("upsample_param: {reason}"));
    let pads = [param.pad_out_h(), param.pad_out_w()];
    let size = [param.upsample_h, param.upsample_w];
    let scales = [param.scale_h, param.scale_w];
    if !has_positions && (size != [None; 2] || scales != [None; 2] || pads != [false; 2]) {
        return reject("with one bottom, only scale is allowed");
    }
    if let [Some(height), Some(width)] = size {
        if height == 0 || width == 0 {
            return reject("upsample_h and upsample_w must be positive");
        }
        return Ok(OutputSize::Exact([height as usize, width as usize]));
    }
    if size != [None; 2] {
        return reject("give both upsample_h and upsample_w, or neither");
    }
    let scale = match scales {
        [Some(height), Some(width)] => [height, width],
        [None, None] => [param.scale.unwrap_or(if has_positions { 2 } else { 1 }); 2],
        _ => return reject("give both scale_h and scale_w, or neither"),
    };
    if scale.contains(&0) {
        return reject("a scale must be positive");
    }
    if [0, 1].iter().any(|&axis| pads[axis] && scale[axis] != 2) {
        return reject("pad_out_h and pad_out_w need a scale of 2");
    }
    let scale = scale.map(|scale| scale as usize);
    Ok(OutputSize::Scaled { scale, subtract: pads.map(usize::from) })
}

impl<T: Element> Layer<T> for UpsampleLayer<T> {
    fn kind(&self) -> &'static str {
        "Upsample"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=2, 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let [num, channels, height, _] = image_extents(shape)?;
        let [rows, columns] = self.output(shape)?;
        match bottom.get(1).map(Blob::shape) {
            Some(positions) if positions[..] != shape[..] => {
                return wrong_shape(format!(
                    "bottoms of shapes {shape} and {positions} have different shapes"
                ));
            }
            Some(positions) => self.positions.reshape(positions)?,
            None => self.rows.reshape(&[num, channels, height, columns])?,
        }
        top[0].reshape(&[num, channels, rows, columns])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (shape, x, mut y) = (bottom[0].shape(), bottom[0].data()?, top[0].data_mut()?);
        let Some(mask) = bottom.get(1) else {
            let ([horizontal, vertical], mut rows) = (self.tiles(shape)?, self.rows.data_mut()?);
            device.tile(&horizontal, x.view(), rows.view_mut())?;
            return device.tile(&vertical, rows.view(), y.view_mut());
        };
        let [rows, columns] = self.output(shape)?;
        let bound = u32::try_from(rows * columns).unwrap_or(u32::MAX);
        let positions = &self.positions;
        device.to_indices(bound, mask.data()?.view(), positions.data_mut()?.view_mut())?;
        let positions = positions.data()?;
        let (x, positions, mut y) = (x.view(), positions.view(), y.view_mut());
        device.fill(T::default(), y.reborrow())?;
        self.planes(shape, |[from, to], op| {
            let (x, positions) = (x.slice(from.clone())?, positions.slice(from)?);
            device.scatter_add(&op, x, positions, y.slice_mut(to)?)
        })
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let shape = bottom[0].shape();
        if propagate.bottom.get(1) == Some(&true) {
            device.fill(T::default(), bottom[1].diff_mut()?.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        if bottom.len() == 1 {
            let ([horizontal, vertical], mut rows) = (self.tiles(shape)?, self.rows.diff_mut()?);
            device.tile_backward(&vertical, dy.view(), rows.view_mut())?;
            return device.tile_backward(&horizontal, rows.view(), dx.view_mut());
        }
        let positions = self.positions.data()?;
        let (dy, positions, mut dx) = (dy.view(), positions.view(), dx.view_mut());
        self.planes(shape, |[to, from], op| {
            let (dy, positions) = (dy.slice(from)?, positions.slice(to.clone())?);
            device.gather(&op, dy, positions, dx.slice_mut(to)?)
        })
    }
}
