//! The DetectionOutput layer, which converts predicted offsets and scores to boxes.

use super::{
    detection_boxes::{
        Box, BoxCoder, Suppression, image_count, prior_count, quadruple, rows_without_boxes,
    },
    prelude::*,
};
use crate::proto::DetectionOutputParameter;

/// Converts the offsets and scores that a net predicts for prior boxes to boxes of detected objects.
///
/// The bottoms are the offsets (`4·n` per image for `n` prior boxes, or `4·n·num_classes` without
/// `share_location`), the scores (`n · num_classes` per image) and the prior boxes, in the format
/// of the layer [PriorBox](super::PriorBoxLayer). The top has the shape `1 × 1 × boxes × 7`. Each
/// row holds the index of the image, the label, the score, and the left, top, right and bottom
/// edges of a box, usually as fractions of the image's size. If no box is found in any image, the
/// top has one row per image with the index of the image and −1 in all other columns.
///
/// For each class except the background, the layer takes the `top_k` highest scores above
/// `confidence_threshold`, and removes each box whose overlap (intersection over union) with a kept
/// box of a higher score exceeds `nms_threshold`. For each image, the layer then keeps the
/// `keep_top_k` boxes with the highest scores. Rows are ordered by image, label and descending
/// score. The layer compares at most `top_k` boxes of a class with each other. Without `top_k`, the
/// layer may compare every prior box with every other. The time then grows with the square of the
/// number of prior boxes, so nets with many prior boxes need `top_k`.
///
/// The DetectionOutput layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where
/// the field `detection_output_param` of a layer has the number 204. The fields `clip` and
/// `normalized_bbox` come from OpenCV; without `normalized_bbox`, edges are indices of pixels, and
/// `clip` takes the size of the image from a fourth bottom. cortado ignores `save_output_param` and
/// `visualize` with a warning.
///
/// The number of rows depends on the values of the bottoms, so the layer computes the boxes on the
/// host, in `reshape`. The first `reshape` finds no boxes, because the bottoms have no values yet.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "loc" top: "conf" top: "priors"
///       input_param { shape { dim: 1 dim: 4 } shape { dim: 1 dim: 2 } shape { dim: 1 dim: 2 dim: 4 } } }
///     layer { type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "boxes"
///       detection_output_param { num_classes: 2 code_type: CENTER_SIZE confidence_threshold: 0.5 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("conf").unwrap().copy_from_slice(&[0.25, 0.75])?;
/// net.blob("priors").unwrap().copy_from_slice(&[0.25, 0.5, 0.5, 1.0, 0.1, 0.1, 0.2, 0.2])?;
/// net.forward()?;
/// let boxes = net.blob("boxes").unwrap().to_vec()?;
/// assert_eq!(boxes, [0.0, 1.0, 0.75, 0.25, 0.5, 0.5, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DetectionOutputLayer {
    classes: usize,
    shares_location: bool,
    /// Label of the background; `None` if no class is the background.
    background: Option<usize>,
    coder: BoxCoder,
    suppression: Suppression,
    /// Maximum number of boxes per image; `None` keeps all boxes.
    keep_top_k: Option<usize>,
    clip: bool,
    is_normalized: bool,
    has_reshaped: bool,
    /// The values of the top.
    rows: Vec<f32>,
    /// The reason why the boxes could not be decoded. The forward pass, and not `reshape`, returns
    /// this error, because a net is also reshaped before the layer's bottoms have values.
    failure: Option<Error>,
}

/// A detected object in one image.
struct Detection {
    label: usize,
    score: f32,
    edges: Box,
}

impl DetectionOutputLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field is missing or has an
    /// invalid or unsupported value.
    pub fn new(layer: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = layer.detection_output_param.clone().unwrap_or_default();
        let classes = param.num_classes() as usize;
        if classes == 0 {
            return invalid("detection_output_param: num_classes is required and must be positive");
        }
        if !param.normalized() {
            return invalid(
                "detection_output_param: normalized: false is not supported; divide the prior \
                 boxes by the size of the image",
            );
        }
        warn_of_ignored_fields(layer.name(), &param);
        let threshold = param.confidence_threshold.unwrap_or(f32::MIN);
        let suppression = Suppression::new(threshold, &param.nms_param.unwrap_or_default());
        let is_normalized = param.normalized_bbox();
        Ok(Self {
            classes,
            shares_location: param.share_location(),
            background: usize::try_from(param.background_label_id()).ok(),
            coder: BoxCoder {
                code: param.code_type(),
                has_scaled_offsets: param.variance_encoded_in_target(),
                edge: if is_normalized { 0.0 } else { 1.0 },
            },
            suppression: suppression.map_err(|error| error.context("detection_output_param"))?,
            keep_top_k: usize::try_from(param.keep_top_k()).ok(),
            clip: param.clip(),
            is_normalized,
            has_reshaped: false,
            rows: Vec::new(),
            failure: None,
        })
    }

    /// Returns the number of images and the number of prior boxes, after checking the shapes.
    fn counts<T: Element>(&self, bottom: &[Blob<T>]) -> Result<[usize; 2]> {
        let channels = if self.coder.has_scaled_offsets { 1..=2 } else { 2..=2 };
        let boxes = prior_count(bottom[2].shape(), channels)?;
        let locations = if self.shares_location { 1 } else { self.classes };
        Ok([image_count(bottom, boxes, [4 * locations, self.classes])?, boxes])
    }

    /// Returns the largest horizontal and vertical positions of an edge, to which boxes are
    /// clipped; `None` without `clip`.
    fn bounds<T: Element>(&self, bottom: &[Blob<T>]) -> Result<Option<[f32; 2]>> {
        match (self.clip, self.is_normalized, bottom.get(3)) {
            (false, ..) => Ok(None),
            (true, true, _) => Ok(Some([1.0, 1.0])),
            (true, false, Some(image)) => {
                let [_, _, height, width] = image_extents(image.shape())?;
                Ok(Some([width as f32 - 1.0, height as f32 - 1.0]))
            }
            (true, false, None) => invalid(
                "detection_output_param: clip without normalized_bbox needs the image as bottom 3",
            ),
        }
    }

    /// Returns the values of the top; the result is empty if no box is found.
    fn rows<T: Element>(
        &self,
        bottom: &[Blob<T>],
        [images, boxes]: [usize; 2],
    ) -> Result<Vec<f32>> {
        let values = |i: usize| -> Result<Vec<f32>> {
            let data = bottom[i].data()?;
            Ok(data.host()?.iter().map(|value| value.to_f64() as f32).collect())
        };
        let (offsets, scores, priors) = (values(0)?, values(1)?, values(2)?);
        let bounds = self.bounds(bottom)?;
        let mut rows = Vec::new();
        for image in 0..images {
            let item = |values: &[f32]| {
                let len = values.len() / images;
                image * len..(image + 1) * len
            };
            let (offsets, scores) = (&offsets[item(&offsets)], &scores[item(&scores)]);
            let found = self.detections(boxes, offsets, scores, &priors, bounds)?;
            for Detection { label, score, edges } in found {
                rows.extend([image as f32, label as f32, score]);
                rows.extend(edges);
            }
        }
        Ok(rows)
    }

    /// Returns the detected objects of one image, ordered by label and descending score.
    fn detections(
        &self,
        boxes: usize,
        offsets: &[f32],
        scores: &[f32],
        priors: &[f32],
        bounds: Option<[f32; 2]>,
    ) -> Result<Vec<Detection>> {
        let locations = if self.shares_location { 1 } else { self.classes };
        let mut decoded = Vec::new();
        let mut found = Vec::new();
        for label in (0..self.classes).filter(|label| Some(*label) != self.background) {
            if decoded.is_empty() || !self.shares_location {
                let location = if self.shares_location { 0 } else { label };
                decoded.clear();
                for i in 0..boxes {
                    let variance = quadruple(priors, boxes + i).unwrap_or([1.0; 4]);
                    let prior = quadruple(priors, i).unwrap_or_default();
                    let offsets = quadruple(offsets, i * locations + location).unwrap_or_default();
                    let edges = self.coder.decode(prior, variance, offsets);
                    let edges = edges.map_err(|error| error.context(format!("prior box {i}")))?;
                    decoded.push(clipped(edges, bounds));
                }
            }
            let scores: Vec<f32> =
                scores.iter().skip(label).step_by(self.classes).copied().collect();
            let kept = self.suppression.select(&self.coder, &decoded, &scores);
            found.extend(kept.into_iter().map(|i| Detection {
                label,
                score: scores[i],
                edges: decoded[i],
            }));
        }
        if let Some(keep_top_k) = self.keep_top_k.filter(|&keep_top_k| found.len() > keep_top_k) {
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            found.truncate(keep_top_k);
            found.sort_by_key(|detection| detection.label);
        }
        Ok(found)
    }
}

/// Logs a warning for each field that makes the SSD fork of Caffe write or show the boxes.
fn warn_of_ignored_fields(layer: &str, param: &DetectionOutputParameter) {
    let saves = param.save_output_param.as_ref();
    if saves.is_some_and(|save| !save.output_directory().is_empty()) {
        log::warn!("layer `{layer}`: detection_output_param: save_output_param is ignored");
    }
    if param.visualize() {
        log::warn!("layer `{layer}`: detection_output_param: visualize is ignored");
    }
}

fn clipped(edges: Box, bounds: Option<[f32; 2]>) -> Box {
    let Some(bounds) = bounds else { return edges };
    std::array::from_fn(|i| edges[i].min(bounds[i % 2]).max(0.0))
}

impl<T: Element> Layer<T> for DetectionOutputLayer {
    fn kind(&self) -> &'static str {
        "DetectionOutput"
    }

    fn arity(&self) -> Arity {
        Arity::between(3..=4, 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let counts = self.counts(bottom)?;
        self.rows.clear();
        self.failure = None;
        if std::mem::replace(&mut self.has_reshaped, true) {
            match self.rows(bottom, counts) {
                Ok(rows) => self.rows = rows,
                Err(error) => self.failure = Some(error),
            }
        }
        if self.rows.is_empty() {
            self.rows = rows_without_boxes(counts[0]);
        }
        top[0].reshape(&[1, 1, self.rows.len() / 7, 7])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let mut y = top[0].data_mut()?;
        for (y, &value) in y.host_write_only()?.iter_mut().zip(&self.rows) {
            *y = T::from_f64(value.into());
        }
        Ok(())
    }
}
