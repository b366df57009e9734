//! Assignment of prior boxes or predicted boxes to labelled boxes.

use super::detection_boxes::{Box, BoxCoder};

/// Overlap above which two boxes can be matched.
const MIN_OVERLAP: f32 = 1e-6;

/// The rule by which boxes are matched.
pub(super) struct Matcher {
    /// Whether a labelled box can be matched with several boxes that overlap it enough.
    pub(super) is_per_prediction: bool,
    /// Smallest overlap at which a further box is matched with a labelled box, once each labelled
    /// box has one box.
    pub(super) overlap_threshold: f32,
    /// Whether boxes that extend beyond the image are ignored.
    pub(super) ignores_crossing: bool,
}

/// The labelled box with which a box is matched, if any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Match {
    None,
    /// The box extends beyond the image.
    Ignored,
    /// The index of the labelled box in its image.
    Object(usize),
}

/// The result of a matching.
pub(super) struct Matches {
    /// The match of each box.
    pub(super) objects: Vec<Match>,
    /// The overlap of each box with its labelled box or, without one, the largest overlap with any
    /// labelled box.
    pub(super) overlaps: Vec<f32>,
}

impl Matches {
    /// Keeps only the matches with labelled boxes for which `keeps` returns true. All other boxes,
    /// including ignored ones, become [`Match::None`].
    pub(super) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        for object in &mut self.objects {
            if !matches!(*object, Match::Object(i) if keeps(i)) {
                *object = Match::None;
            }
        }
    }

    /// Returns pairs of the index of a matched box and the index of its labelled box.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.objects.iter().enumerate().filter_map(|(i, object)| match object {
            Match::Object(object) => Some((i, *object)),
            _ => None,
        })
    }
}

impl Matcher {
    /// Matches `boxes` with `objects`, each of which is the index and the edges of a labelled box.
    ///
    /// First, the pair with the largest overlap is matched, then the pair with the largest overlap
    /// of the remaining boxes and labelled boxes, until each labelled box has a box or overlaps no
    /// remaining box. If [`is_per_prediction`](Self::is_per_prediction), each remaining box then
    /// gets the labelled box with the largest overlap, if it is at least
    /// [`overlap_threshold`](Self::overlap_threshold). Of pairs with equal overlaps, the one whose
    /// box comes first is matched first.
    pub(super) fn matches(
        &self,
        coder: &BoxCoder,
        boxes: &[Box],
        objects: &[(usize, Box)],
    ) -> Matches {
        let mut matches =
            Matches { objects: vec![Match::None; boxes.len()], overlaps: vec![0.0; boxes.len()] };
        let mut pairs = Vec::new();
        for (i, edges) in boxes.iter().enumerate() {
            let is_inside = edges.iter().all(|edge| (0.0..=1.0).contains(edge));
            if self.ignores_crossing && !is_inside && !objects.is_empty() {
                matches.objects[i] = Match::Ignored;
                continue;
            }
            for (j, (_, object)) in objects.iter().enumerate() {
                let overlap = coder.overlap(*edges, *object);
                if overlap > MIN_OVERLAP {
                    matches.overlaps[i] = matches.overlaps[i].max(overlap);
                    pairs.push((i, j, overlap));
                }
            }
        }
        // The sort is stable, so pairs with equal overlaps stay in the order of the boxes.
        pairs.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut is_taken = vec![false; objects.len()];
        for &(i, j, overlap) in &pairs {
            if matches.objects[i] == Match::None && !is_taken[j] {
                is_taken[j] = true;
                matches.objects[i] = Match::Object(objects[j].0);
                matches.overlaps[i] = overlap;
            }
        }
        if self.is_per_prediction {
            for &(i, j, overlap) in &pairs {
                if matches.objects[i] == Match::None && overlap >= self.overlap_threshold {
                    matches.objects[i] = Match::Object(objects[j].0);
                    matches.overlaps[i] = overlap;
                }
            }
        }
        matches
    }
}
