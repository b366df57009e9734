//! The ROIPooling layer, which pools regions of images to a fixed size.

use super::{
    prelude::*,
    roi::{Region, clipped, pixel, region_count, regions},
};
use std::ops::Range;

/// Maximum pooling of regions. The first bottom holds feature maps. The second bottom holds regions
/// of interest: each row contains the index of the image in the batch, and the left, top, right and
/// bottom edges in pixels of the image. The layer multiplies the edges by `spatial_scale`, rounds
/// them, divides each region into `pooled_h` × `pooled_w` bins, and computes the maximum of each
/// bin. Bins may overlap. The top has the shape `[regions, channels, pooled_h, pooled_w]`. For a
/// bin outside of the feature map, the top is 0. The gradient of the regions is zero.
///
/// The layer runs on the host. The layer comes from Fast R-CNN: Girshick, Fast R-CNN (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 4 } } }
///     layer { type: "Input" top: "rois" input_param { shape { dim: 1 dim: 5 } } }
///     layer { type: "ROIPooling" bottom: "x" bottom: "rois" top: "y"
///       roi_pooling_param { pooled_h: 1 pooled_w: 2 spatial_scale: 0.5 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let x = net.blob("x").unwrap();
/// x.data_mut()?.host_mut()?.copy_from_slice(&[1.0, 5.0, 2.0, 0.0, 3.0, 4.0, 8.0, 6.0]);
/// let rois = net.blob("rois").unwrap();
/// rois.data_mut()?.host_mut()?.copy_from_slice(&[0.0, 2.0, 0.0, 4.0, 0.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [5.0, 2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ROIPoolingLayer")]
pub struct RoiPoolingLayer {
    pooled: [usize; 2],
    spatial_scale: f32,
    /// For each element of the top, the index of the maximum in the first bottom; `None` for a bin
    /// without a maximum.
    maxima: Vec<Option<usize>>,
}

impl RoiPoolingLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `pooled_h` or `pooled_w` is 0.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.roi_pooling_param.unwrap_or_default();
        let pooled = [param.pooled_h(), param.pooled_w()].map(|size| size as usize);
        if pooled.contains(&0) {
            return invalid("roi_pooling_param: pooled_h and pooled_w must be positive");
        }
        Ok(Self { pooled, spatial_scale: param.spatial_scale(), maxima: Vec::new() })
    }

    /// Returns the rows or the columns of each bin of a region that extends from `start` to `end`.
    fn bins(&self, axis: usize, start: f32, end: f32, extent: usize) -> Vec<Range<usize>> {
        let [start, end] = [start, end].map(|edge| pixel((edge * self.spatial_scale).round()));
        let size = (end - start + 1).max(1) as f32 / self.pooled[axis] as f32;
        let bin = |i: usize| {
            let (first, last) = ((i as f32 * size).floor(), ((i + 1) as f32 * size).ceil());
            clipped(start + pixel(first), start + pixel(last), extent)
        };
        (0..self.pooled[axis]).map(bin).collect()
    }

    fn rows_and_columns(
        &self,
        region: &Region,
        [height, width]: [usize; 2],
    ) -> [Vec<Range<usize>>; 2] {
        [
            self.bins(0, region.top, region.bottom, height),
            self.bins(1, region.left, region.right, width),
        ]
    }
}

/// Returns the index of the maximum of one bin of a plane; `None` if no element exceeds the lowest
/// finite `f32`.
fn maximum<T: Element>(
    plane: &[T],
    width: usize,
    rows: &Range<usize>,
    columns: &Range<usize>,
) -> Option<usize> {
    let (mut maximum, mut index) = (f64::from(f32::MIN), None);
    for row in rows.clone() {
        for column in columns.clone() {
            let value = plane[row * width + column].to_f64();
            if value > maximum {
                (maximum, index) = (value, Some(row * width + column));
            }
        }
    }
    index
}

impl<T: Element> Layer<T> for RoiPoolingLayer {
    fn kind(&self) -> &'static str {
        "ROIPooling"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom == 0
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [_, channels, ..] = image_extents(bottom[0].shape())?;
        let [height, width] = self.pooled;
        top[0].reshape(&[region_count(&bottom[1])?, channels, height, width])
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let [images, channels, height, width] = image_extents(bottom[0].shape())?;
        let regions = regions(&bottom[1], images)?;
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (x, y) = (x.host()?, y.host_write_only()?);
        let plane_len = height * width;
        self.maxima.clear();
        for region in &regions {
            let [rows, columns] = self.rows_and_columns(region, [height, width]);
            for channel in 0..channels {
                let plane = (region.image * channels + channel) * plane_len;
                for rows in &rows {
                    for columns in &columns {
                        let is_empty = rows.is_empty() || columns.is_empty();
                        let index = maximum(&x[plane..plane + plane_len], width, rows, columns);
                        y[self.maxima.len()] = match index {
                            Some(index) => x[plane + index],
                            None if is_empty => T::default(),
                            None => T::from_f64(f32::MIN.into()),
                        };
                        self.maxima.push(index.map(|index| plane + index));
                    }
                }
            }
        }
        Ok(())
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
        let dx = dx.host_write_only()?;
        dx.fill(T::default());
        for (dy, index) in dy.host()?.iter().zip(&self.maxima) {
            if let Some(index) = *index {
                dx[index] = T::from_f64(dx[index].to_f64() + dy.to_f64());
            }
        }
        Ok(())
    }
}
