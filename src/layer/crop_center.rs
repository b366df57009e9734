//! The CropCenter layer, which removes elements at both ends of each axis.

use super::{
    crop_region::{AxisCrop, CropRegion},
    prelude::*,
};

/// Removes the first and the last `crop_size[i]` elements of each axis i. The layer comes from the
/// fork of Caffe for waifu2x.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 5 } } }
///     layer { type: "CropCenter" bottom: "x" top: "y"
///       crop_center_param { crop_size: 0 crop_size: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct CropCenterLayer {
    crop_sizes: Vec<usize>,
    region: CropRegion,
}

impl CropCenterLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.crop_center_param.clone().unwrap_or_default();
        let crop_sizes = param.crop_size.iter().map(|&size| size as usize).collect();
        Ok(Self { crop_sizes, region: CropRegion::default() })
    }
}

impl<T: Element> Layer<T> for CropCenterLayer {
    fn kind(&self) -> &'static str {
        "CropCenter"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (shape, crop_sizes) = (bottom[0].shape(), &self.crop_sizes);
        if crop_sizes.len() != shape.len() {
            let (axes, found) = (shape.len(), crop_sizes.len());
            return wrong_shape(format!(
                "crop_center_param: crop_size: expected one value per axis ({axes}), found {found}"
            ));
        }
        let crops: Vec<_> = shape
            .iter()
            .zip(crop_sizes)
            .map(|(&extent, &offset)| match extent.checked_sub(offset.saturating_mul(2)) {
                Some(cropped_extent @ 1..) => Ok(AxisCrop { extent, cropped_extent, offset }),
                _ => wrong_shape(format!(
                    "crop_center_param: crop_size {offset} leaves no element of an axis of extent \
                     {extent}"
                )),
            })
            .collect::<Result<_>>()?;
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
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        self.region.crop_backward(device, dy.view(), dx.view_mut())
    }
}
