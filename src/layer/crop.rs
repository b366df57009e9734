//! The Crop layer, which cuts a region out of a blob.

use super::{
    crop_region::{AxisCrop, CropRegion},
    prelude::*,
};
use crate::shape::Shape;

/// Crops each axis of the first bottom, from `axis` on, to the extent of the same axis in the
/// second bottom. The field `offset` holds the first index that the layer keeps, as one value for
/// all cropped axes or one value per cropped axis. The layer ignores the values of the second
/// bottom, so the gradient of this bottom is zero.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 3 } } }
///     layer { type: "Input" top: "like" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }
///     layer { type: "Crop" bottom: "x" bottom: "like" top: "y"
///       crop_param { axis: 3 offset: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 2.0, 4.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct CropLayer {
    axis: isize,
    offsets: Vec<usize>,
    region: CropRegion,
}

impl CropLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.crop_param.clone().unwrap_or_default();
        let offsets = param.offset.iter().map(|&offset| offset as usize).collect();
        Ok(Self { axis: param.axis() as isize, offsets, region: CropRegion::default() })
    }

    /// Returns the crop of each axis of `shape` to the extent of the same axis in `like`.
    fn axis_crops(&self, shape: &Shape, like: &Shape) -> Result<Vec<AxisCrop>> {
        let axis = shape.canonical_axis(self.axis)?;
        let (axes, offsets) = (shape.len() - axis, self.offsets.len());
        if offsets > 1 && offsets != axes {
            return wrong_shape(format!(
                "offset: expected 1 or {axes} values for shape {shape}, found {offsets}"
            ));
        }
        if like.len() != shape.len() {
            return wrong_shape(format!(
                "bottoms of shapes {shape} and {like} differ in their number of axes"
            ));
        }
        let crop = |(i, (&extent, &cropped_extent)): (usize, (&usize, &usize))| {
            let Some(index) = i.checked_sub(axis) else {
                return Ok(AxisCrop { extent, cropped_extent: extent, offset: 0 });
            };
            let offset = self.offsets.get(index).or(self.offsets.first()).copied().unwrap_or(0);
            if offset.checked_add(cropped_extent).is_none_or(|end| end > extent) {
                return wrong_shape(format!(
                    "axis {i} of shape {shape} does not have {cropped_extent} indices from {offset} \
                     on"
                ));
            }
            Ok(AxisCrop { extent, cropped_extent, offset })
        };
        shape.iter().zip(like.iter()).enumerate().map(crop).collect()
    }
}

impl<T: Element> Layer<T> for CropLayer {
    fn kind(&self) -> &'static str {
        "Crop"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let crops = self.axis_crops(bottom[0].shape(), bottom[1].shape())?;
        top[0].reshape(&crops.iter().map(|crop| crop.cropped_extent).collect::<Vec<_>>())?;
        self.region = CropRegion::new(crops);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        self.region.crop(device, x.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            device.fill(T::default(), bottom[1].diff_mut()?.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        self.region.crop_backward(device, dy.view(), dx.view_mut())
    }
}
