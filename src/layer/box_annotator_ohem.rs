//! The BoxAnnotatorOHEM layer, which selects the regions with the highest losses.

use super::prelude::*;
use std::collections::HashMap;

/// Online hard example mining: keeps the labels and the loss weights of the `roi_per_img` regions
/// with the highest losses of each image. The four bottoms hold the regions, as for
/// [`RoiPoolingLayer`](super::RoiPoolingLayer), and the loss, the label and the loss weights of
/// each region. The two tops hold the labels and the loss weights. For all regions that the layer
/// does not keep, the label is `ignore_label` and the weights are 0. Among regions with equal
/// losses, the layer keeps the first.
///
/// The layer runs on the host, and its bottoms have no gradients. The layer comes from R-FCN: Dai,
/// Li, He and Sun, R-FCN: object detection via region-based fully convolutional networks (2016);
/// the method is from Shrivastava, Gupta and Girshick, Training region-based object detectors with
/// online hard example mining (2016).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "rois" input_param { shape { dim: 3 dim: 5 } } }
///     layer { type: "Input" top: "loss" top: "label" top: "weights" input_param { shape { dim: 3 } } }
///     layer { type: "BoxAnnotatorOHEM" bottom: "rois" bottom: "loss" bottom: "label"
///       bottom: "weights" top: "labels" top: "y" box_annotator_ohem_param { roi_per_img: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("loss").unwrap().copy_from_slice(&[0.5, 2.0, 1.0])?;
/// net.blob("label").unwrap().copy_from_slice(&[7.0, 8.0, 9.0])?;
/// net.forward()?; // all regions belong to image 0
/// assert_eq!(net.blob("labels").unwrap().to_vec()?, [-1.0, 8.0, -1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "BoxAnnotatorOHEMLayer")]
pub struct BoxAnnotatorOhemLayer {
    regions_per_image: u32,
    ignore_label: i32,
}

impl BoxAnnotatorOhemLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `box_annotator_ohem_param` is missing, or if `roi_per_img`
    /// is 0.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        match param.box_annotator_ohem_param {
            Some(param) if param.roi_per_img > 0 => Ok(Self {
                regions_per_image: param.roi_per_img,
                ignore_label: param.ignore_label(),
            }),
            Some(_) => invalid("box_annotator_ohem_param: roi_per_img must be positive"),
            None => invalid("box_annotator_ohem_param: roi_per_img is required"),
        }
    }
}

/// Returns the numbers of regions, values per region and positions of a bottom.
fn extents<T: Element>(bottom: &Blob<T>) -> Result<[usize; 3]> {
    Ok([bottom.num()?, bottom.channels()?, bottom.height()? * bottom.width()?])
}

impl<T: Element> Layer<T> for BoxAnnotatorOhemLayer {
    fn kind(&self) -> &'static str {
        "BoxAnnotatorOHEM"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(4, 2)
    }

    fn allow_force_backward(&self, _: usize) -> bool {
        false
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [regions, _, positions] = extents(&bottom[0])?;
        let weights = extents(&bottom[3])?[1];
        let expected = [("regions", 5), ("losses", 1), ("labels", 1), ("loss weights", weights)];
        for (i, (content, values)) in expected.into_iter().enumerate() {
            if extents(&bottom[i])? != [regions, values, positions] {
                return wrong_shape(format!(
                    "bottom {i} ({content}): expected {regions} × {values} × {positions} values, \
                     found shape {}",
                    bottom[i].shape()
                ));
            }
        }
        let (height, width) = (bottom[0].height()?, bottom[0].width()?);
        top[0].reshape(&[regions, 1, height, width])?;
        top[1].reshape(&[regions, weights, height, width])
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let [_, channels, positions] = extents(&bottom[3])?;
        let (regions, losses) = (bottom[0].data()?, bottom[1].data()?);
        let (labels, weights) = (bottom[2].data()?, bottom[3].data()?);
        let (regions, losses) = (regions.host()?, losses.host()?);
        let (labels, weights) = (labels.host()?, weights.host()?);
        let (mut kept_labels, mut kept_weights) = (top[0].data_mut()?, top[1].data_mut()?);
        let kept_labels = kept_labels.host_write_only()?;
        let kept_weights = kept_weights.host_write_only()?;
        kept_labels.fill(T::from_f64(self.ignore_label.into()));
        kept_weights.fill(T::default());

        let mut order: Vec<usize> = (0..losses.len()).collect();
        order.sort_by(|&a, &b| losses[b].to_f64().total_cmp(&losses[a].to_f64()));
        // As in R-FCN, the index of the image is truncated to an integer.
        let mut kept = HashMap::<i64, u32>::new();
        for index in order {
            let (region, position) = (index / positions, index % positions);
            let image = regions[region * 5 * positions + position].to_f64();
            let kept = kept.entry(image as i64).or_default();
            if *kept == self.regions_per_image {
                continue;
            }
            *kept += 1;
            kept_labels[index] = labels[index];
            for channel in 0..channels {
                let weight = (region * channels + channel) * positions + position;
                kept_weights[weight] = weights[weight];
            }
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        _: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}
