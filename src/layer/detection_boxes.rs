//! Boxes of detected objects: decoding of predicted offsets, overlaps and the suppression of
//! overlapping boxes.

use super::prelude::*;
use crate::{
    proto::{NonMaximumSuppressionParameter, prior_box_parameter::CodeType},
    shape::Shape,
};
use std::ops::RangeInclusive;

/// The left, top, right and bottom edges of a box.
pub(super) type Box = [f32; 4];

/// Returns the number of prior boxes in the top of a PriorBox layer with the shape `priors`.
///
/// # Errors
/// Returns [`Error::Shape`] unless the shape is `1 × channels × 4·n`.
pub(super) fn prior_count(priors: &Shape, channels: RangeInclusive<usize>) -> Result<usize> {
    match priors[..] {
        [1, c, edges] | [1, c, edges, 1] if channels.contains(&c) && edges % 4 == 0 => {
            Ok(edges / 4)
        }
        _ => wrong_shape(format!(
            "bottom 2 (prior boxes): expected a shape of 1 × 2 × 4·n, found {priors}"
        )),
    }
}

/// Returns the number of images of the first two bottoms, which hold the predicted offsets and
/// scores. `factors` are the numbers of offsets and scores for each of `boxes` prior boxes.
///
/// # Errors
/// Returns [`Error::Shape`] unless both bottoms hold the right number of values for each image.
pub(super) fn image_count<T: Element>(
    bottom: &[Blob<T>],
    boxes: usize,
    factors: [usize; 2],
) -> Result<usize> {
    let images = bottom[0].shape().split_at_axis(0)?.1;
    for (i, (name, factor)) in ["offsets", "scores"].into_iter().zip(factors).enumerate() {
        let shape = bottom[i].shape();
        let (_, items, found) = shape.split_at_axis(0)?;
        let expected = boxes.checked_mul(factor);
        if items != images || expected != Some(found) {
            return wrong_shape(format!(
                "bottom {i} ({name}): expected {images} × {boxes}·{factor} values for {boxes} \
                 prior boxes, found shape {shape}"
            ));
        }
    }
    Ok(images)
}

/// Returns the quadruple with the index `i` in `values`, a list of quadruples.
pub(super) fn quadruple(values: &[f32], i: usize) -> Option<[f32; 4]> {
    values.as_chunks().0.get(i).copied()
}

/// Returns the rows of a blob of detected objects if no object is found in any of `images` images:
/// one row per image, with the index of the image and −1 in all other columns.
pub(super) fn rows_without_boxes(images: usize) -> Vec<f32> {
    (0..images).flat_map(|image| [image as f32, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]).collect()
}

/// The conversion of offsets, which a net predicts relative to prior boxes, to boxes.
pub(super) struct BoxCoder {
    pub(super) code: CodeType,
    /// Whether the offsets are already scaled by the variances.
    pub(super) has_scaled_offsets: bool,
    /// Length to add to the difference of two opposite edges to get the width or height of a box: 0
    /// if edges are fractions of the image's size, 1 if edges are indices of pixels.
    pub(super) edge: f32,
}

impl BoxCoder {
    /// Decodes the offsets `offsets` relative to the prior box `prior`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the code type uses the size of the prior box, and the
    /// width or the height of the prior box is not positive.
    pub(super) fn decode(&self, prior: Box, variance: Box, offsets: Box) -> Result<Box> {
        let offsets: Box = match self.has_scaled_offsets {
            true => offsets,
            false => std::array::from_fn(|i| variance[i] * offsets[i]),
        };
        let size = self.prior_size(prior)?;
        Ok(match self.code {
            CodeType::Corner => std::array::from_fn(|i| prior[i] + offsets[i]),
            CodeType::CornerSize => std::array::from_fn(|i| prior[i] + offsets[i] * size[i % 2]),
            CodeType::CenterSize => {
                let center = |i: usize| offsets[i] * size[i] + (prior[i] + size[i] * 0.5);
                let half = |i: usize| offsets[i + 2].exp() * size[i] * 0.5;
                let edge = |i: usize, side: f32| center(i) + side * half(i);
                [edge(0, -1.0), edge(1, -1.0), edge(0, 1.0), edge(1, 1.0)]
            }
        })
    }

    /// Returns the offsets that [`decode`](Self::decode) converts to the box `target`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] like [`decode`](Self::decode), or if a variance is not
    /// positive, or if the code type uses the size of `target`, and the
    /// width or the height of `target` is not positive.
    pub(super) fn encode(&self, prior: Box, variance: Box, target: Box) -> Result<[f64; 4]> {
        let size = self.prior_size(prior)?.map(f64::from);
        let (prior, target) = (prior.map(f64::from), target.map(f64::from));
        let length = |edges: [f64; 4], i: usize| edges[i + 2] - edges[i];
        let offsets: [f64; 4] = match self.code {
            CodeType::Corner => std::array::from_fn(|i| target[i] - prior[i]),
            CodeType::CornerSize => std::array::from_fn(|i| (target[i] - prior[i]) / size[i % 2]),
            CodeType::CenterSize => {
                if !(length(target, 0) > 0.0 && length(target, 1) > 0.0) {
                    return invalid(format!(
                        "a labelled box has the edges {target:?}, so its width or height is not \
                         positive"
                    ));
                }
                let center = |edges: [f64; 4], i: usize| (edges[i] + edges[i + 2]) / 2.0;
                std::array::from_fn(|i| match i {
                    0 | 1 => (center(target, i) - center(prior, i)) / size[i],
                    _ => (length(target, i - 2) / size[i - 2]).ln(),
                })
            }
        };
        if let Some(variance) = variance.iter().find(|value| value.is_nan() || **value <= 0.0) {
            return invalid(format!("a variance must be positive, found {variance}"));
        }
        Ok(match self.has_scaled_offsets {
            true => offsets,
            false => std::array::from_fn(|i| offsets[i] / f64::from(variance[i])),
        })
    }

    /// Returns the width and the height of a prior box.
    fn prior_size(&self, prior: Box) -> Result<[f32; 2]> {
        let size = [prior[2] - prior[0] + self.edge, prior[3] - prior[1] + self.edge];
        if self.code != CodeType::Corner && !(size[0] > 0.0 && size[1] > 0.0) {
            return invalid(format!(
                "a prior box has the edges {prior:?}, so its width or height is not positive"
            ));
        }
        Ok(size)
    }

    /// Returns the area of a box, or 0 if the box has a negative width or height.
    pub(super) fn area(&self, [left, top, right, bottom]: Box) -> f32 {
        if right < left || bottom < top {
            return 0.0;
        }
        (right - left + self.edge) * (bottom - top + self.edge)
    }

    /// Returns the area of the intersection of two boxes divided by the area of their union.
    pub(super) fn overlap(&self, a: Box, b: Box) -> f32 {
        if b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1] {
            return 0.0;
        }
        let [left, top] = [a[0].max(b[0]), a[1].max(b[1])];
        let [right, bottom] = [a[2].min(b[2]), a[3].min(b[3])];
        let intersection = self.area([left, top, right, bottom]);
        match intersection > 0.0 {
            true => intersection / (self.area(a) + self.area(b) - intersection),
            false => 0.0,
        }
    }
}

/// Non-maximum suppression: selection of boxes by score, without boxes that overlap too much with a
/// selected box of a higher score.
pub(super) struct Suppression {
    /// Scores must exceed this threshold.
    pub(super) score_threshold: f32,
    /// Largest permitted overlap of two kept boxes.
    overlap_threshold: f32,
    /// Factor by which an overlap threshold above 0.5 is multiplied after each kept box.
    eta: f32,
    /// Maximum number of boxes that take part in the selection, those with the highest scores;
    /// `None` for no maximum.
    top_k: Option<usize>,
}

impl Suppression {
    /// Reads the fields of `nms_param`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `nms_threshold` is negative or NaN, or if `eta` is not in
    /// (0, 1].
    pub(super) fn new(
        score_threshold: f32,
        param: &NonMaximumSuppressionParameter,
    ) -> Result<Self> {
        let (overlap_threshold, eta) = (param.nms_threshold(), param.eta());
        if overlap_threshold.is_nan() || overlap_threshold < 0.0 {
            return invalid(format!(
                "nms_param: nms_threshold must be 0 or more, found {overlap_threshold}"
            ));
        }
        if !(eta > 0.0 && eta <= 1.0) {
            return invalid(format!("nms_param: eta must be in (0, 1], found {eta}"));
        }
        let top_k = param.top_k.and_then(|top_k| usize::try_from(top_k).ok());
        Ok(Self { score_threshold, overlap_threshold, eta, top_k })
    }

    /// Returns the indices of the kept boxes, by descending score. Of boxes with equal scores, the
    /// first has priority.
    pub(super) fn select(&self, coder: &BoxCoder, boxes: &[Box], scores: &[f32]) -> Vec<usize> {
        let mut candidates: Vec<usize> =
            (0..scores.len()).filter(|&i| scores[i] > self.score_threshold).collect();
        candidates.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        candidates.truncate(self.top_k.unwrap_or(usize::MAX));
        let mut kept: Vec<usize> = Vec::new();
        let mut threshold = self.overlap_threshold;
        for i in candidates {
            // Boxes with infinite edges can have a NaN overlap, which removes the box, as in the
            // SSD fork of Caffe.
            if kept.iter().all(|&other| coder.overlap(boxes[i], boxes[other]) <= threshold) {
                kept.push(i);
                if self.eta < 1.0 && threshold > 0.5 {
                    threshold *= self.eta;
                }
            }
        }
        kept
    }
}
