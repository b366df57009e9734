//! Labelled boxes: the boxes around objects with which a detection net is trained or evaluated.

use super::{detection_boxes::Box, prelude::*};
use std::collections::BTreeMap;

/// Number of values in a row of a blob of labelled boxes.
pub(crate) const ROW_LEN: usize = 8;

/// A box around an object.
pub(super) struct LabelledBox {
    pub(super) label: usize,
    pub(super) edges: Box,
    /// Whether the object is marked as difficult to recognize.
    pub(super) is_difficult: bool,
}

/// Checks the shape of bottom `index`, which holds labelled boxes.
pub(super) fn check_shape<T: Element>(bottom: &[Blob<T>], index: usize) -> Result<()> {
    match bottom[index].shape()[..] {
        [1, 1, _, ROW_LEN] => Ok(()),
        _ => wrong_shape(format!(
            "bottom {index} (labelled boxes): expected a shape of 1 × 1 × n × 8, found {}",
            bottom[index].shape()
        )),
    }
}

/// Returns the labelled boxes of each image that has any, by the index of the image. Each row of
/// `labels` holds the index of the image, the label, the number of the object, the left, top, right
/// and bottom edges, and whether the object is difficult (0 or 1). A row with the image −1 has no
/// box.
///
/// # Errors
/// Returns [`Error::InvalidData`], which names the row, if a row has an index that is not a whole
/// number, the label `background`, or a label of at least `classes`.
pub(super) fn labelled_boxes<T: Element>(
    labels: &Blob<T>,
    classes: usize,
    background: usize,
) -> Result<BTreeMap<usize, Vec<LabelledBox>>> {
    let mut images: BTreeMap<usize, Vec<LabelledBox>> = BTreeMap::new();
    let data = labels.data()?;
    for (row, values) in data.host()?.as_chunks::<ROW_LEN>().0.iter().enumerate() {
        let values = values.map(|value| value.to_f64());
        if values[0] == -1.0 {
            continue;
        }
        let index = |name: &str, value: f64| match whole(value) {
            Some(index) => Ok(index),
            None => invalid(format!(
                "row {row} of the labelled boxes: {name} must be a whole number, found {value}"
            )),
        };
        let (image, label) = (index("the image", values[0])?, index("the label", values[1])?);
        if label == background || label >= classes {
            let problem =
                if label == background { "is that of the background" } else { "is too large" };
            return invalid(format!(
                "row {row} of the labelled boxes: the label {label} {problem}, with num_classes: \
                 {classes} and background_label_id: {background}"
            ));
        }
        images.entry(image).or_default().push(LabelledBox {
            label,
            edges: std::array::from_fn(|i| values[3 + i] as f32),
            is_difficult: values[7] != 0.0,
        });
    }
    Ok(images)
}

/// Returns `value` as an index if `value` is a whole number from 0 to 2³¹.
pub(super) fn whole(value: f64) -> Option<usize> {
    let is_index = (0.0..=2f64.powi(31)).contains(&value) && value.fract() == 0.0;
    is_index.then_some(value as usize)
}
