//! The layers Yolov3DetectionOutput and YoloDetectionOutput, which convert the outputs of YOLO
//! versions 3 and 2 to boxes.

use super::{
    detection_boxes::{Box, rows_without_boxes},
    prelude::*,
};
use crate::proto::{YoloDetectionOutputParameter, Yolov3DetectionOutputParameter};

/// Converts the outputs of the detection heads of YOLO version 3 to boxes of detected objects.
///
/// Each bottom holds one feature map, `[num, num_box · (5 + num_classes), height, width]`. For each
/// of the `num_box` anchor boxes of a position, the channels hold the offsets `tx`, `ty`, `tw` and
/// `th`, the score of an object, and the score of each class. With σ for the sigmoid function, the
/// box at column `x` and row `y` has
/// - the center `(x + σ(tx)) / width` and `(y + σ(ty)) / height`,
/// - the width `exp(tw) · anchor_width / (width · anchors_scale)`, and likewise the height,
/// - for each class, the score `σ(object) · σ(class)`.
///
/// The field `mask` selects the anchor boxes of each bottom from the list `biases`, which holds the
/// width and the height of each anchor box in pixels.
///
/// The top has the shape `1 × 1 × boxes × 7`, with the rows of
/// [`DetectionOutput`](super::DetectionOutputLayer): the index of the image, the label, the score,
/// and the left, top, right and bottom edges as fractions of the image's size, not clipped to the
/// image. The label of the first class is 1. Each score above `confidence_threshold` gives a row,
/// unless the box overlaps a kept box of the same image with a higher score by at least
/// `nms_threshold`, even if the two boxes belong to different classes. The overlap is the area of
/// the intersection divided by the area of the union. If no box is found in any image, the top has
/// one row per image with the index of the image and −1 in all other columns.
///
/// The layer comes from MobileNet-YOLO (eric612/MobileNet-YOLO), where the field
/// `yolov3_detection_output_param` has the number 602. The fork compares boxes of different images
/// of a batch, and writes the index 0 for every image; cortado treats each image separately.
/// `gaussian_box` is not supported. The method was introduced by Redmon and Farhadi, YOLOv3: An
/// incremental improvement (2018).
///
/// The type `YoloDetectionOutput` of the fork converts the outputs of YOLO version 2 (Redmon and
/// Farhadi, YOLO9000: Better, faster, stronger, 2016). A box belongs to the most likely class, and
/// has the score `σ(object) · p`, where `p` is the softmax of the class scores at the most likely
/// class. The score must be at least `confidence_threshold`. The layer has one or two bottoms, each
/// with all anchor boxes of `biases`, whose unit is the distance between neighbouring positions.
/// The fork divides both edges by the width of the feature map; cortado divides the height by the
/// height of the map, which is the same for square maps.
///
/// The number of rows depends on the values of the bottoms, so the layer computes the boxes on the
/// host, in `reshape`. The first `reshape` finds no boxes, because the bottoms have no values yet.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 6 dim: 1 dim: 1 } } }
///     layer { type: "Yolov3DetectionOutput" bottom: "x" top: "boxes"
///       yolov3_detection_output_param { num_classes: 1 num_box: 1 mask_group_num: 1 mask: 0
///         biases: [16, 8] anchors_scale: 32 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?; // offsets and scores of 0
/// assert_eq!(net.blob("boxes").unwrap().to_vec()?, [0.0, 1.0, 0.25, 0.25, 0.375, 0.75, 0.625]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Yolov3DetectionOutputLayer {
    /// Whether the type is `YoloDetectionOutput`.
    is_version_2: bool,
    classes: usize,
    /// One head per bottom; a layer of version 2 has two heads, but may have only one bottom.
    heads: Vec<Head>,
    confidence_threshold: f32,
    overlap_threshold: f32,
    has_reshaped: bool,
    /// The values of the top.
    rows: Vec<f32>,
}

/// The settings of one bottom.
struct Head {
    /// Distance between neighbouring positions, in the unit of the anchor boxes.
    scale: f32,
    /// Width and height of each anchor box.
    anchors: Vec<[f32; 2]>,
}

/// A box around an object of one class.
struct Detection {
    score: f32,
    class: usize,
    center: [f32; 2],
    size: [f32; 2],
}

impl Detection {
    fn edges(&self) -> Box {
        let edge = |i: usize, side: f32| self.center[i] + side * self.size[i] / 2.0;
        [edge(0, -1.0), edge(1, -1.0), edge(0, 1.0), edge(1, 1.0)]
    }

    /// Returns the area of the intersection divided by the area of the union.
    fn overlap(&self, other: &Self) -> f32 {
        let (a, b) = (self.edges(), other.edges());
        let length = |i: usize| a[i + 2].min(b[i + 2]) - a[i].max(b[i]);
        let (width, height) = (length(0), length(1));
        if width < 0.0 || height < 0.0 {
            return 0.0;
        }
        let area = |detection: &Self| detection.size[0] * detection.size[1];
        width * height / (area(self) + area(other) - width * height)
    }
}

impl Yolov3DetectionOutputLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field is missing, has an invalid
    /// or unsupported value, or contradicts another field.
    pub fn new(layer: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = layer.yolov3_detection_output_param.clone().unwrap_or_default();
        Self::from_param(&param).map_err(|error| error.context("yolov3_detection_output_param"))
    }

    fn from_param(param: &Yolov3DetectionOutputParameter) -> Result<Self> {
        if param.gaussian_box() {
            return invalid("gaussian_box: true is not supported; the fork reads undefined values");
        }
        Ok(Self {
            is_version_2: false,
            classes: classes(param.num_classes)?,
            heads: heads(param)?,
            confidence_threshold: threshold("confidence_threshold", param.confidence_threshold())?,
            overlap_threshold: threshold("nms_threshold", param.nms_threshold())?,
            has_reshaped: false,
            rows: Vec::new(),
        })
    }

    /// Creates a layer of the type `YoloDetectionOutput`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field is missing, has an invalid
    /// or unsupported value, or contradicts another field.
    pub fn version_2(layer: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = layer.yolo_detection_output_param.clone().unwrap_or_default();
        Self::from_param_2(&param).map_err(|error| error.context("yolo_detection_output_param"))
    }

    fn from_param_2(param: &YoloDetectionOutputParameter) -> Result<Self> {
        let (anchors, boxes) = (anchors(&param.biases)?, param.num_box() as usize);
        if boxes == 0 || anchors.len() != boxes {
            return invalid(format!(
                "expected a width and a height for each of num_box {boxes} anchor boxes in biases, \
                 found {} values",
                param.biases.len()
            ));
        }
        if param.coords() != 4 {
            return invalid(format!("coords must be 4, found {}", param.coords()));
        }
        let heads = [(); 2].map(|()| Head { scale: 1.0, anchors: anchors.to_vec() });
        Ok(Self {
            is_version_2: true,
            classes: classes(param.num_classes)?,
            heads: heads.into(),
            confidence_threshold: threshold("confidence_threshold", param.confidence_threshold())?,
            overlap_threshold: threshold("nms_threshold", param.nms_threshold())?,
            has_reshaped: false,
            rows: Vec::new(),
        })
    }

    /// Returns the number of images, after checking the shapes.
    fn images<T: Element>(&self, bottom: &[Blob<T>]) -> Result<usize> {
        let mut images = None;
        for (i, (bottom, head)) in bottom.iter().zip(&self.heads).enumerate() {
            let [num, channels, ..] = image_extents(bottom.shape())?;
            let (boxes, values) = (head.anchors.len(), 5 + self.classes);
            if boxes.checked_mul(values) != Some(channels) || *images.get_or_insert(num) != num {
                return wrong_shape(format!(
                    "bottom {i}: expected {} images and {boxes}·{values} channels for num_box \
                     {boxes} and num_classes {}, found shape {}",
                    images.unwrap_or(num),
                    self.classes,
                    bottom.shape()
                ));
            }
        }
        Ok(images.unwrap_or(0))
    }

    /// Returns the values of the top; the result is empty if no box is found.
    fn rows<T: Element>(&self, bottom: &[Blob<T>], images: usize) -> Result<Vec<f32>> {
        let mut found: Vec<Vec<Detection>> = (0..images).map(|_| Vec::new()).collect();
        for (bottom, head) in bottom.iter().zip(&self.heads) {
            let [.., height, width] = image_extents(bottom.shape())?;
            let data = bottom.data()?;
            let item_len = bottom.count() / images.max(1);
            for (item, found) in data.host()?.chunks_exact(item_len.max(1)).zip(&mut found) {
                self.decode(head, item, [width, height], found);
            }
        }
        let mut rows = Vec::new();
        for (image, mut found) in found.into_iter().enumerate() {
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            let mut kept: Vec<Detection> = Vec::new();
            for detection in found {
                // The overlap of boxes with infinite edges can be NaN; such an overlap suppresses
                // no box, as in the fork.
                if !kept.iter().any(|other| other.overlap(&detection) >= self.overlap_threshold) {
                    rows.extend([image as f32, (detection.class + 1) as f32, detection.score]);
                    rows.extend(detection.edges());
                    kept.push(detection);
                }
            }
        }
        Ok(rows)
    }

    /// Appends the boxes of one image in one feature map to `found`. `size` is the width and the
    /// height of the feature map.
    fn decode<T: Element>(
        &self,
        head: &Head,
        item: &[T],
        size: [usize; 2],
        found: &mut Vec<Detection>,
    ) {
        let positions = size[0] * size[1];
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let extents = size.map(|extent| extent as f32);
        for position in 0..positions {
            let corner = [(position % size[0]) as f32, (position / size[0]) as f32];
            for (n, anchor) in head.anchors.iter().enumerate() {
                let value = |channel: usize| {
                    item[(n * (5 + self.classes) + channel) * positions + position].to_f64() as f32
                };
                let object = sigmoid(value(4));
                let center = |i: usize| (corner[i] + sigmoid(value(i))) / extents[i];
                let length = |i: usize| value(2 + i).exp() * anchor[i] / (extents[i] * head.scale);
                let detection = |class: usize, score: f32| Detection {
                    score,
                    class,
                    center: std::array::from_fn(center),
                    size: std::array::from_fn(length),
                };
                if self.is_version_2 {
                    let scores = (0..self.classes).map(|class| value(5 + class));
                    let largest = scores.clone().fold(f32::NEG_INFINITY, f32::max);
                    let sum: f32 = scores.clone().map(|score| (score - largest).exp()).sum();
                    let score = object / sum;
                    let class = scores.clone().position(|score| score == largest);
                    if score >= self.confidence_threshold {
                        found.extend(class.map(|class| detection(class, score)));
                    }
                    continue;
                }
                for class in 0..self.classes {
                    let score = object * sigmoid(value(5 + class));
                    if score > self.confidence_threshold {
                        found.push(detection(class, score));
                    }
                }
            }
        }
    }
}

fn classes(num_classes: Option<u32>) -> Result<usize> {
    match num_classes {
        Some(classes) if classes > 0 => Ok(classes as usize),
        _ => invalid("num_classes is required and must be positive"),
    }
}

fn threshold(name: &str, value: f32) -> Result<f32> {
    match value.is_nan() {
        true => invalid(format!("{name} must be a number, found NaN")),
        false => Ok(value),
    }
}

/// Returns the width and the height of each anchor box.
fn anchors(biases: &[f32]) -> Result<&[[f32; 2]]> {
    let (anchors, rest) = biases.as_chunks::<2>();
    if let Some(value) = biases.iter().find(|value| !(**value > 0.0 && value.is_finite())) {
        return invalid(format!("biases must be positive, found {value}"));
    }
    if !rest.is_empty() {
        return invalid(format!(
            "expected an even number of biases, a width and a height per anchor box, found {}",
            biases.len()
        ));
    }
    Ok(anchors)
}

/// Returns the settings of the bottoms.
fn heads(param: &Yolov3DetectionOutputParameter) -> Result<Vec<Head>> {
    let (bottoms, boxes) = (param.mask_group_num() as usize, param.num_box() as usize);
    if bottoms == 0 || boxes == 0 {
        return invalid("mask_group_num and num_box must be positive");
    }
    if bottoms.checked_mul(boxes) != Some(param.mask.len()) {
        return invalid(format!(
            "expected mask_group_num · num_box = {bottoms}·{boxes} values of mask, found {}",
            param.mask.len()
        ));
    }
    if param.anchors_scale.len() != bottoms || param.anchors_scale.contains(&0) {
        return invalid(format!(
            "expected {bottoms} positive values of anchors_scale, one per bottom, found {:?}",
            param.anchors_scale
        ));
    }
    let anchors = anchors(&param.biases)?;
    let anchor = |&index: &u32| {
        anchors.get(index as usize).copied().ok_or_else(|| {
            Error::InvalidData(format!(
                "mask names anchor box {index}, but biases has only {} anchor boxes",
                anchors.len()
            ))
        })
    };
    let groups = param.mask.chunks(boxes).zip(&param.anchors_scale);
    groups
        .map(|(mask, &scale)| {
            let anchors = mask.iter().map(anchor).collect::<Result<_>>()?;
            Ok(Head { scale: scale as f32, anchors })
        })
        .collect()
}

impl<T: Element> Layer<T> for Yolov3DetectionOutputLayer {
    fn kind(&self) -> &'static str {
        if self.is_version_2 { "YoloDetectionOutput" } else { "Yolov3DetectionOutput" }
    }

    fn arity(&self) -> Arity {
        let least = if self.is_version_2 { 1 } else { self.heads.len() };
        Arity::between(least..=self.heads.len(), 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let images = self.images(bottom)?;
        self.rows.clear();
        if std::mem::replace(&mut self.has_reshaped, true) {
            self.rows = self.rows(bottom, images)?;
        }
        if self.rows.is_empty() {
            self.rows = rows_without_boxes(images);
        }
        top[0].reshape(&[1, 1, self.rows.len() / 7, 7])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let mut y = top[0].data_mut()?;
        for (y, &value) in y.host_write_only()?.iter_mut().zip(&self.rows) {
            *y = T::from_f64(value.into());
        }
        Ok(())
    }
}
