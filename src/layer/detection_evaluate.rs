//! The DetectionEvaluate layer, which compares detected boxes with labelled boxes.

use super::{
    detection_boxes::{Box, BoxCoder},
    image_sizes::ImageSizes,
    labelled_boxes::{check_shape, labelled_boxes, whole},
    position,
    prelude::*,
};
use crate::proto::{DetectionEvaluateParameter, LayerState, prior_box_parameter::CodeType};
use std::collections::BTreeMap;

/// Compares detected boxes with labelled boxes, to compute the average precision of a detection
/// net. A solver with the `eval_type` `detection` computes the mean average precision from the top.
///
/// The bottoms are the rows of a [DetectionOutput](super::DetectionOutputLayer) layer, and labelled
/// boxes in the format of the layer AnnotatedData. The top has the shape `1 × 1 × rows × 5`:
/// - a row `−1, label, count, −1, −1` for each class except the background, with the number of
///   labelled boxes of this class,
/// - a row `image, label, score, true positive, false positive` for each detected box, ordered by
///   image, label and descending score.
///
/// A detected box is a true positive if its overlap with the labelled box of its image and class
/// that it overlaps most is at least `overlap_threshold`, and no detected box with a higher score
/// is a true positive for the same labelled box. Otherwise, it is a false positive. The overlap is
/// the area of the intersection divided by the area of the union. With `evaluate_difficult_gt:
/// false`, labelled boxes that are marked as difficult are not counted, and a detected box that
/// overlaps such a box enough is neither a true nor a false positive.
///
/// With `name_size_file`, a text file with the name, the height and the width of each image of the
/// data set in order, the layer compares boxes in pixels of the original image. The width and the
/// height of such a box are one pixel larger than the differences of its edges. `resize_param` then
/// says how the images were resized. The layer reads the size of image `i` of a batch from the line
/// that is `i` lines after the first line of the batch. The first line of the next batch follows
/// the line of the last image that has a row in a bottom.
///
/// The DetectionEvaluate layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where
/// its field `detection_evaluate_param` has the number 205. The fork advances in `name_size_file`
/// only for images with detected boxes, and so uses the wrong sizes after an image without detected
/// boxes.
///
/// The number of rows depends on the values of the bottoms, so the layer compares the boxes on the
/// host, in `reshape`. The first `reshape` finds no boxes, because the bottoms have no values yet.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "boxes" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 7 } } }
///     layer { type: "Input" top: "label" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 8 } } }
///     layer { type: "DetectionEvaluate" bottom: "boxes" bottom: "label" top: "rows"
///       detection_evaluate_param { num_classes: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("boxes").unwrap().copy_from_slice(&[0.0, 1.0, 0.75, 0.1, 0.1, 0.5, 0.5])?;
/// net.blob("label").unwrap().copy_from_slice(&[0.0, 1.0, 0.0, 0.1, 0.1, 0.5, 0.4, 0.0])?;
/// net.forward()?;
/// let rows = net.blob("rows").unwrap().to_vec()?;
/// assert_eq!(rows, [-1.0, 1.0, 1.0, -1.0, -1.0, 0.0, 1.0, 0.75, 1.0, 0.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DetectionEvaluateLayer {
    classes: usize,
    background: usize,
    overlap_threshold: f32,
    counts_difficult: bool,
    /// The sizes of the images; `None` to compare fractions of the image's size.
    sizes: Option<ImageSizes>,
    /// The index of the first image of the next batch in `sizes`.
    next_image: usize,
    has_reshaped: bool,
    /// The rows of the top and the number of images of the batch, or an error, which the forward
    /// pass and not `reshape` returns, because a net is also reshaped before the layer's bottoms
    /// have values.
    result: Result<(Vec<f32>, usize)>,
}

/// A detected box.
struct Detection {
    score: f32,
    edges: Box,
}

impl DetectionEvaluateLayer {
    /// Creates the layer, and reads `name_size_file`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field is missing or has an
    /// invalid value; errors of reading `name_size_file`.
    pub fn new(layer: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = layer.detection_evaluate_param.clone().unwrap_or_default();
        Self::from_param(&param).map_err(|error| error.context("detection_evaluate_param"))
    }

    fn from_param(param: &DetectionEvaluateParameter) -> Result<Self> {
        if param.num_classes() == 0 {
            return invalid("num_classes is required and must be positive");
        }
        let overlap_threshold = param.overlap_threshold();
        if overlap_threshold.is_nan() || overlap_threshold <= 0.0 {
            return invalid(format!(
                "overlap_threshold must be positive, found {overlap_threshold}"
            ));
        }
        let sizes = param.name_size_file.as_ref();
        Ok(Self {
            classes: param.num_classes() as usize,
            background: param.background_label_id() as usize,
            overlap_threshold,
            counts_difficult: param.evaluate_difficult_gt(),
            sizes: sizes
                .map(|file| ImageSizes::read(file, param.resize_param.as_ref()))
                .transpose()?,
            next_image: 0,
            has_reshaped: false,
            result: Ok((Vec::new(), 0)),
        })
    }

    /// Returns the labels of the objects that the layer evaluates.
    fn labels(&self) -> impl Iterator<Item = usize> {
        let background = self.background;
        (0..self.classes).filter(move |label| *label != background)
    }

    /// Returns the detected boxes by image and label, and the number of images.
    #[allow(clippy::type_complexity)] // a type alias for one use would not be clearer
    fn detections<T: Element>(
        &self,
        blob: &Blob<T>,
    ) -> Result<(BTreeMap<usize, BTreeMap<usize, Vec<Detection>>>, usize)> {
        let mut images: BTreeMap<usize, BTreeMap<usize, Vec<Detection>>> = BTreeMap::new();
        let (data, mut count) = (blob.data()?, 0);
        for (row, values) in data.host()?.as_chunks::<7>().0.iter().enumerate() {
            let values = values.map(|value| value.to_f64());
            let Some(image) = whole(values[0]) else {
                return invalid(format!(
                    "row {row} of the detected boxes: the image must be a whole number, found {}",
                    values[0]
                ));
            };
            count = count.max(image + 1);
            // A row of an image without detected boxes has the label −1.
            if values[1] == -1.0 {
                continue;
            }
            let Some(label) = whole(values[1]).filter(|label| *label < self.classes) else {
                return invalid(format!(
                    "row {row} of the detected boxes: expected a label below num_classes ({}), \
                     found {}",
                    self.classes, values[1]
                ));
            };
            if label == self.background {
                return invalid(format!(
                    "row {row} of the detected boxes: the label {label} is that of the background"
                ));
            }
            let edges = std::array::from_fn(|i| values[3 + i] as f32);
            let detection = Detection { score: values[2] as f32, edges };
            images.entry(image).or_default().entry(label).or_default().push(detection);
        }
        Ok((images, count))
    }

    /// Returns the rows of the top, and the number of images of the batch.
    fn rows<T: Element>(&self, bottom: &[Blob<T>]) -> Result<(Vec<f32>, usize)> {
        let (detections, mut image_count) = self.detections(&bottom[0])?;
        let objects = labelled_boxes(&bottom[1], self.classes, self.background)?;
        if let Some((last, _)) = objects.last_key_value() {
            image_count = image_count.max(last + 1);
        }
        let mut rows = Vec::new();
        for label in self.labels() {
            let counts = |object: &&_| self.counts(object) && object.label == label;
            let count = objects.values().flatten().filter(counts).count();
            rows.extend([-1.0, label as f32, count as f32, -1.0, -1.0]);
        }
        // Boxes in pixels are one pixel wider and higher than the differences of their edges.
        let edge = if self.sizes.is_some() { 1.0 } else { 0.0 };
        let coder = BoxCoder { code: CodeType::Corner, has_scaled_offsets: false, edge };
        for (image, detections) in detections {
            let in_pixels = |edges: Box| match &self.sizes {
                Some(sizes) => sizes.in_pixels(self.next_image + image, edges),
                None => edges,
            };
            for (label, mut detections) in detections {
                let objects = objects.get(&image).into_iter().flatten();
                let objects: Vec<_> = objects
                    .filter(|object| object.label == label)
                    .map(|object| (in_pixels(object.edges), self.counts(object)))
                    .collect();
                let mut is_found = vec![false; objects.len()];
                detections.sort_by(|a, b| b.score.total_cmp(&a.score));
                for detection in detections {
                    let edges = in_pixels(detection.edges);
                    let mut best = (None, self.overlap_threshold);
                    for (j, (object, _)) in objects.iter().enumerate() {
                        let overlap = coder.overlap(edges, *object);
                        if overlap > best.1 || (best.0.is_none() && overlap == best.1) {
                            best = (Some(j), overlap);
                        }
                    }
                    let result = match best.0 {
                        Some(j) if !objects[j].1 => [0.0, 0.0],
                        Some(j) if !std::mem::replace(&mut is_found[j], true) => [1.0, 0.0],
                        _ => [0.0, 1.0],
                    };
                    rows.extend([image as f32, label as f32, detection.score]);
                    rows.extend(result);
                }
            }
        }
        Ok((rows, image_count))
    }

    /// Returns whether the layer counts the labelled box `object`.
    fn counts(&self, object: &super::labelled_boxes::LabelledBox) -> bool {
        self.counts_difficult || !object.is_difficult
    }
}

impl<T: Element> Layer<T> for DetectionEvaluateLayer {
    fn kind(&self) -> &'static str {
        "DetectionEvaluate"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn state(&self) -> Result<Option<LayerState>> {
        match self.sizes {
            Some(_) => position::state(self.next_image as u64),
            None => Ok(None),
        }
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        let position = position::of(state)?;
        let count = self.sizes.as_ref().map_or(1, ImageSizes::len);
        self.next_image = (position % count as u64) as usize;
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        if !matches!(bottom[0].shape()[..], [1, 1, _, 7]) {
            return wrong_shape(format!(
                "bottom 0 (detected boxes): expected a shape of 1 × 1 × n × 7, found {}",
                bottom[0].shape()
            ));
        }
        check_shape(bottom, 1)?;
        self.result = match std::mem::replace(&mut self.has_reshaped, true) {
            true => self.rows(bottom),
            false => Ok((Vec::new(), 0)),
        };
        let rows = match &self.result {
            Ok((rows, _)) if !rows.is_empty() => rows.len() / 5,
            _ => self.labels().count(),
        };
        top[0].reshape(&[1, 1, rows, 5])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (rows, images) = std::mem::replace(&mut self.result, Ok((Vec::new(), 0)))?;
        if let Some(sizes) = &self.sizes {
            self.next_image = (self.next_image + images) % sizes.len();
        }
        let mut y = top[0].data_mut()?;
        for (y, value) in y.host_write_only()?.iter_mut().zip(rows) {
            *y = T::from_f64(value.into());
        }
        Ok(())
    }
}
