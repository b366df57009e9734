//! The PSROIPooling layer, which averages position-sensitive feature maps over regions.

use super::{
    prelude::*,
    roi::{Region, clipped, pixel, region_count, regions},
};
use std::ops::Range;

/// Position-sensitive average pooling of regions. The first bottom holds `output_dim · group_size²`
/// feature maps. The second bottom holds regions of interest, as for
/// [`RoiPoolingLayer`](super::RoiPoolingLayer). The layer divides each region into `group_size` ×
/// `group_size` bins. Element (c, i, j) of the top is the mean of bin (i, j) in the feature map `(c
/// · group_size + i) · group_size + j`. For a bin outside of the feature map, the top is 0. The
/// gradient of the regions is zero.
///
/// The layer runs on the host. The layer comes from R-FCN: Dai, Li, He and Sun, R-FCN: object
/// detection via region-based fully convolutional networks (2016).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 2 dim: 2 } } }
///     layer { type: "Input" top: "rois" input_param { shape { dim: 1 dim: 5 } } }
///     layer { type: "PSROIPooling" bottom: "x" bottom: "rois" top: "y"
///       psroi_pooling_param { spatial_scale: 1 output_dim: 1 group_size: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
/// net.blob("x").unwrap().copy_from_slice(&x)?;
/// net.blob("rois").unwrap().copy_from_slice(&[0.0, 0.0, 0.0, 1.0, 1.0])?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.0, 5.0, 10.0, 15.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "PSROIPoolingLayer")]
pub struct PsroiPoolingLayer {
    spatial_scale: f32,
    outputs: usize,
    groups: usize,
}

/// A bin of a region, the index of its feature map among all feature maps of the batch, and the
/// index of its element of the top.
struct Bin {
    plane: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    top: usize,
}

impl Bin {
    fn area(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

impl PsroiPoolingLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `psroi_pooling_param` is missing, or if `output_dim` or
    /// `group_size` is not positive.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let Some(param) = param.psroi_pooling_param else {
            return invalid("psroi_pooling_param: output_dim and group_size are required");
        };
        if param.output_dim <= 0 || param.group_size <= 0 {
            return invalid(format!(
                "psroi_pooling_param: output_dim {} and group_size {} must be positive",
                param.output_dim, param.group_size
            ));
        }
        let (outputs, groups) = (param.output_dim as usize, param.group_size as usize);
        Ok(Self { spatial_scale: param.spatial_scale, outputs, groups })
    }

    /// Returns the rows or the columns of each bin of a region that extends from `start` to `end`.
    fn ranges(&self, start: f32, end: f32, extent: usize) -> Vec<Range<usize>> {
        let start = start.round() * self.spatial_scale;
        let end = (end.round() + 1.0) * self.spatial_scale;
        let size = (end - start).max(0.1) / self.groups as f32;
        let bin = |i: usize| {
            let (first, last) = (i as f32 * size + start, (i + 1) as f32 * size + start);
            clipped(pixel(first.floor()), pixel(last.ceil()), extent)
        };
        (0..self.groups).map(bin).collect()
    }

    /// Calls `body` for each bin of each region.
    fn bins(&self, regions: &[Region], [height, width]: [usize; 2], mut body: impl FnMut(Bin)) {
        let (outputs, groups) = (self.outputs, self.groups);
        let mut top = 0;
        for region in regions {
            let rows = self.ranges(region.top, region.bottom, height);
            let columns = self.ranges(region.left, region.right, width);
            let first_plane = region.image * outputs * groups * groups;
            for plane in 0..outputs * groups * groups {
                let (row, column) = (plane / groups % groups, plane % groups);
                let (rows, columns) = (rows[row].clone(), columns[column].clone());
                body(Bin { plane: first_plane + plane, rows, columns, top });
                top += 1;
            }
        }
    }
}

impl<T: Element> Layer<T> for PsroiPoolingLayer {
    fn kind(&self) -> &'static str {
        "PSROIPooling"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom == 0
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [_, channels, ..] = image_extents(bottom[0].shape())?;
        let (outputs, groups) = (self.outputs, self.groups);
        let expected = groups.checked_mul(groups).and_then(|bins| bins.checked_mul(outputs));
        if expected != Some(channels) {
            return wrong_shape(format!(
                "psroi_pooling_param: output_dim {outputs} and group_size {groups} do not fit \
                 {channels} channels"
            ));
        }
        top[0].reshape(&[region_count(&bottom[1])?, outputs, groups, groups])
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let [images, _, height, width] = image_extents(bottom[0].shape())?;
        let regions = regions(&bottom[1], images)?;
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (x, y) = (x.host()?, y.host_write_only()?);
        self.bins(&regions, [height, width], |bin| {
            let mut sum = 0.0;
            for row in bin.rows.clone() {
                let start = (bin.plane * height + row) * width;
                let columns =
                    start + bin.columns.start..start + bin.columns.end.max(bin.columns.start);
                sum += x[columns].iter().map(|x| x.to_f64()).sum::<f64>();
            }
            y[bin.top] = T::from_f64(if bin.area() > 0 { sum / bin.area() as f64 } else { 0.0 });
        });
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
        let [images, _, height, width] = image_extents(bottom[0].shape())?;
        let regions = regions(&bottom[1], images)?;
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (dy, dx) = (dy.host()?, dx.host_write_only()?);
        dx.fill(T::default());
        self.bins(&regions, [height, width], |bin| {
            let share = dy[bin.top].to_f64() / bin.area().max(1) as f64;
            for row in bin.rows.clone() {
                let start = (bin.plane * height + row) * width;
                for column in bin.columns.clone() {
                    let dx = &mut dx[start + column];
                    *dx = T::from_f64(dx.to_f64() + share);
                }
            }
        });
        Ok(())
    }
}
