//! The mean average precision of a detection net, from the rows of DetectionEvaluate layers.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Number of values in a row of a DetectionEvaluate layer.
pub(super) const ROW_LEN: usize = 5;

/// The integral of the precision over the recall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Integral {
    /// The mean, over r = 0, 0.1, …, 1, of the largest precision at a recall of at least r, as in
    /// VOC 2007.
    ElevenPoints,
    /// The integral over the recall of the largest precision at this or a higher recall, as in VOC
    /// 2012.
    Maximum,
    /// The integral of the precision.
    Natural,
}

impl Integral {
    /// Returns the integral that `name`, a value of the solver's field `ap_version`, selects.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which lists the names, for any other name.
    pub(super) fn named(name: &str) -> Result<Self> {
        match name {
            "11point" => Ok(Self::ElevenPoints),
            "MaxIntegral" => Ok(Self::Maximum),
            "Integral" => Ok(Self::Natural),
            _ => Err(Error::InvalidData(format!(
                "ap_version: expected 11point, MaxIntegral or Integral, found `{name}`"
            ))),
        }
    }
}

/// The detected boxes of all batches of a test.
#[derive(Default)]
pub(super) struct Evaluation {
    classes: BTreeMap<i64, Class>,
}

/// The detected boxes of one class.
#[derive(Default)]
struct Class {
    /// The number of labelled boxes; `None` if no row has stated the number.
    objects: Option<f64>,
    /// The score of each detected box, and whether it is a true positive.
    detections: Vec<(f64, bool)>,
}

impl Evaluation {
    /// Adds the rows of one batch.
    pub(super) fn add(&mut self, rows: &[[f64; ROW_LEN]]) {
        for &[image, label, value, is_true, is_false] in rows {
            let class = self.classes.entry(label as i64).or_default();
            if image == -1.0 {
                *class.objects.get_or_insert(0.0) += value;
            } else if is_true != 0.0 || is_false != 0.0 {
                class.detections.push((value, is_true != 0.0));
            }
        }
    }

    /// Returns the average precision of each class whose number of labelled boxes is known.
    pub(super) fn average_precisions(&self, integral: Integral) -> Vec<(i64, f64)> {
        let classes = self.classes.iter();
        let counted = classes.filter_map(|(label, class)| Some((*label, class, class.objects?)));
        counted
            .map(|(label, class, objects)| (label, class.average_precision(objects, integral)))
            .collect()
    }
}

impl Class {
    fn average_precision(&self, objects: f64, integral: Integral) -> f64 {
        if objects == 0.0 {
            return 0.0;
        }
        let mut detections = self.detections.clone();
        detections.sort_by(|a, b| b.0.total_cmp(&a.0));
        // The recall and the precision of the boxes with the highest scores, for each number of
        // boxes.
        let (mut curve, mut found) = (Vec::with_capacity(detections.len()), 0.0);
        for (i, (_, is_true)) in detections.iter().enumerate() {
            found += f64::from(u8::from(*is_true));
            curve.push([found / objects, found / (i + 1) as f64]);
        }
        if integral == Integral::ElevenPoints {
            let largest = |point: u32| {
                let reaches = curve.iter().filter(|[recall, _]| *recall >= f64::from(point) / 10.0);
                reaches.map(|[_, precision]| *precision).fold(0.0, f64::max)
            };
            return (0..=10).map(largest).sum::<f64>() / 11.0;
        }
        if integral == Integral::Maximum {
            let mut largest: f64 = 0.0;
            for [_, precision] in curve.iter_mut().rev() {
                largest = largest.max(*precision);
                *precision = largest;
            }
        }
        let (mut area, mut previous) = (0.0, 0.0);
        for [recall, precision] in curve {
            area += (recall - previous) * precision;
            previous = recall;
        }
        area
    }
}
