//! Mining of hard examples: the selection of the prior boxes whose losses the training of a
//! detection net minimizes.

use super::{
    box_matching::{Match, Matches},
    detection_boxes::{Box, BoxCoder, Suppression},
    prelude::*,
};
use crate::proto::{MultiBoxLossParameter, multi_box_loss_parameter::MiningType};

/// Smallest area of a box that can be selected if overlapping boxes are suppressed.
const MIN_AREA: f32 = 1e-5;

/// The rule by which prior boxes are selected.
pub(super) struct HardExamples {
    /// Kind and number of the prior boxes to select.
    size: Size,
    suppression: Option<Suppression>,
    /// Whether the suppression compares prior boxes instead of predicted boxes.
    suppresses_priors: bool,
}

enum Size {
    /// Selects prior boxes without a labelled box: at most `ratio` for each prior box with one.
    Negatives { ratio: f32, max_overlap: f32 },
    /// Selects at most `count` prior boxes with or without a labelled box.
    Examples { count: usize },
}

/// The prior boxes of an image.
pub(super) struct Candidates<'a> {
    /// The loss of each prior box.
    pub(super) losses: Vec<f64>,
    pub(super) priors: &'a [Box],
}

impl HardExamples {
    /// Reads the fields that configure the mining; returns `None` for the `mining_type` `NONE`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field has an invalid value.
    pub(super) fn new(param: &MultiBoxLossParameter) -> Result<Option<Self>> {
        let size = match param.mining_type() {
            MiningType::None => return Ok(None),
            MiningType::MaxNegative => {
                Size::Negatives { ratio: param.neg_pos_ratio(), max_overlap: param.neg_overlap() }
            }
            MiningType::HardExample => match usize::try_from(param.sample_size()) {
                Ok(count) if count > 0 => Size::Examples { count },
                _ => {
                    return invalid(format!(
                        "sample_size must be positive, found {}",
                        param.sample_size()
                    ));
                }
            },
        };
        let suppression = match &param.nms_param {
            // As in the fork, a threshold of 0 disables the suppression.
            Some(nms) if nms.nms_threshold() != 0.0 => {
                Some(Suppression::new(f32::NEG_INFINITY, nms)?)
            }
            _ => None,
        };
        Ok(Some(Self { size, suppression, suppresses_priors: param.use_prior_for_nms() }))
    }

    /// Returns whether the losses of the offsets take part in the selection.
    pub(super) fn uses_offset_losses(&self) -> bool {
        matches!(self.size, Size::Examples { .. })
    }

    /// Selects the prior boxes with the largest losses. If the rule selects among all prior boxes,
    /// removes the matches of the prior boxes that are not selected from `matches`. Returns the
    /// selected prior boxes without a labelled box in ascending order. `predicted` returns the
    /// predicted boxes.
    ///
    /// # Errors
    /// Returns any error from `predicted`.
    pub(super) fn select(
        &self,
        coder: &BoxCoder,
        matches: &mut Matches,
        candidates: &Candidates<'_>,
        predicted: impl FnOnce() -> Result<Vec<Box>>,
    ) -> Result<Vec<usize>> {
        let is_eligible = |&i: &usize| match self.size {
            Size::Negatives { max_overlap, .. } => {
                matches.objects[i] == Match::None && matches.overlaps[i] < max_overlap
            }
            Size::Examples { .. } => true,
        };
        let losses = &candidates.losses;
        let mut eligible: Vec<usize> = (0..losses.len()).filter(is_eligible).collect();
        let count = match self.size {
            Size::Negatives { ratio, .. } => (matches.pairs().count() as f32 * ratio) as usize,
            Size::Examples { count } => count,
        };
        match &self.suppression {
            None => eligible.sort_by(|&a, &b| losses[b].total_cmp(&losses[a])),
            Some(suppression) => {
                let predicted = if self.suppresses_priors { Vec::new() } else { predicted()? };
                let all = if self.suppresses_priors { candidates.priors } else { &predicted };
                eligible.retain(|&i| coder.area(all[i]) >= MIN_AREA);
                let boxes: Vec<Box> = eligible.iter().map(|&i| all[i]).collect();
                let scores: Vec<f32> = eligible.iter().map(|&i| losses[i] as f32).collect();
                let kept = suppression.select(coder, &boxes, &scores);
                eligible = kept.into_iter().map(|k| eligible[k]).collect();
            }
        }
        eligible.truncate(count);
        let mut is_selected = vec![false; losses.len()];
        eligible.iter().for_each(|&i| is_selected[i] = true);
        let is_negative = |i: &usize| is_selected[*i] && matches.objects[*i] == Match::None;
        let negatives = (0..losses.len()).filter(is_negative).collect();
        if let Size::Examples { .. } = self.size {
            for (object, is_selected) in matches.objects.iter_mut().zip(&is_selected) {
                if matches!(object, Match::Object(_)) && !is_selected {
                    *object = Match::None;
                }
            }
        }
        Ok(negatives)
    }
}
