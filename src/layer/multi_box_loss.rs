//! The MultiBoxLoss layer, the loss of SSD.

use super::{
    box_matching::{Matcher, Matches},
    detection_boxes::{Box, BoxCoder, image_count, prior_count, quadruple},
    detection_loss::{offset_loss, score_gradient, score_loss},
    hard_examples::{Candidates, HardExamples},
    labelled_boxes::{LabelledBox, check_shape, labelled_boxes},
    loss_common,
    prelude::*,
};
use crate::{
    op::LossNormalization,
    proto::{
        MultiBoxLossParameter,
        multi_box_loss_parameter::{ConfLossType, LocLossType, MatchType, MiningType},
    },
};
use std::ops::Range;

/// The loss of predicted offsets and scores against labelled boxes.
///
/// The bottoms are the offsets (`4·n` per image for `n` prior boxes, or `4·n·num_classes` without
/// `share_location`), the scores (`n · num_classes` per image), the prior boxes in the format of
/// the layer [PriorBox](super::PriorBoxLayer), and the labelled boxes in the format of the layer
/// AnnotatedData: rows of the index of the image, the label, the number of the object, the left,
/// top, right and bottom edges as fractions of the image's size, and whether the object is
/// difficult.
///
/// 1. **Matching.** The overlap of two boxes is the area of the intersection divided by the area of
///    the union. The prior box and the labelled box with the largest overlap are matched first,
///    then the pair with the largest overlap among the remaining boxes, until each labelled box has
///    one prior box. With the `match_type` `PER_PREDICTION`, each remaining prior box is then
///    matched with the labelled box that it overlaps most, if the overlap is at least
///    `overlap_threshold`. Without `use_prior_for_matching`, the predicted boxes are matched
///    instead of the prior boxes.
/// 2. **Mining.** With the `mining_type` `MAX_NEGATIVE`, the loss counts, for `p` matched prior
///    boxes of an image, the `neg_pos_ratio · p` other prior boxes with the largest losses of the
///    scores and an overlap below `neg_overlap`. With `HARD_EXAMPLE`, the loss counts only the
///    `sample_size` prior boxes, matched or not, with the largest losses of scores and offsets.
///    With `NONE`, the losses of the scores of all prior boxes count. Before the selection,
///    `nms_param` suppresses boxes that overlap a box with a larger loss.
/// 3. **Loss.** `(loc_weight · Σ l(x − t) + Σ c) / N`, where the first sum is over the offsets `x`
///    of the matched prior boxes and the offsets `t` of their labelled boxes. The function `l` is
///    `d²/2` for the `loc_loss_type` `L2`, and for `SMOOTH_L1` `d²/2` if `|d| < 1` and `|d| − 1/2`
///    otherwise. The second sum is over the prior boxes whose scores count; `c` is the negative
///    logarithm of the softmax of the label for the `conf_loss_type` `SOFTMAX`, and the sum of the
///    sigmoid cross-entropies of all classes for `LOGISTIC`. The label of a prior box without a
///    labelled box is the background. By default, `N` is the number of matched prior boxes, and at
///    least 1; `loss_param` selects another normalization.
///
/// The gradient treats the matching and the mining as constant. The layer computes no gradient for
/// the prior boxes, and sets it to zero. If `propagate_down` of the layer is false for the offsets
/// or the scores, their loss is not counted.
///
/// The MultiBoxLoss layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where its
/// field `multibox_loss_param` has the number 201. cortado differs from the fork where the fork
/// contradicts itself:
/// - With `encode_variance_in_target`, the gradient is the derivative of the loss; the fork omits
///   the division by the variances.
/// - With `LOGISTIC` and the mining `NONE`, the targets of each image are at the scores of this
///   image, and all targets of a prior box without a labelled box are 0; the fork mixes the targets
///   of different images, and uses the background's label as a target.
/// - `nms_param` without `top_k` compares all boxes; the fork selects none.
///
/// The method was introduced by Liu et al., SSD: Single shot multibox detector (2016).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "loc" top: "conf" top: "priors" top: "label" input_param {
///       shape { dim: 1 dim: 4 } shape { dim: 1 dim: 2 } shape { dim: 1 dim: 2 dim: 4 }
///       shape { dim: 1 dim: 1 dim: 1 dim: 8 } } }
///     layer { type: "MultiBoxLoss" bottom: "loc" bottom: "conf" bottom: "priors" bottom: "label"
///       top: "loss" multibox_loss_param { num_classes: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("priors").unwrap().copy_from_slice(&[0.25, 0.25, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1])?;
/// // Image 0 has an object of class 1, whose left edge differs from the prior box by 0.05.
/// net.blob("label").unwrap().copy_from_slice(&[0.0, 1.0, 0.0, 0.3, 0.25, 0.5, 0.5, 0.0])?;
/// // The offset of the left edge should be 0.05 / 0.1, and the probability of class 1 is 1/2.
/// let loss = net.forward()?;
/// assert!((loss - (0.5 * 0.5 / 2.0 + 2_f64.ln())).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct MultiBoxLossLayer {
    classes: usize,
    background: usize,
    shares_location: bool,
    coder: BoxCoder,
    matcher: Matcher,
    matches_priors: bool,
    uses_difficult: bool,
    /// Label of all objects; `None` if the objects keep their labels.
    object_label: Option<usize>,
    /// Whether to ignore offsets of edges outside the image.
    ignores_outside: bool,
    /// The selection of prior boxes; `None` if the scores of all prior boxes count.
    mining: Option<HardExamples>,
    offset_loss: LocLossType,
    score_loss: ConfLossType,
    /// Weights of the losses of offsets and scores.
    weights: [f64; 2],
    normalization: LossNormalization,
    /// The terms of the last forward pass.
    terms: Terms,
}

/// The terms of the loss of one batch.
#[derive(Default)]
struct Terms {
    offsets: Vec<OffsetTerm>,
    scores: Vec<ScoreTerm>,
    /// The classes with the target 1 of all score terms.
    targets: Vec<usize>,
    divisor: f64,
}

/// The loss of the four offsets of a matched prior box.
struct OffsetTerm {
    /// Index of the first offset in the bottom.
    start: usize,
    loss: f64,
    gradient: [f64; 4],
}

/// The loss of the scores of a prior box.
struct ScoreTerm {
    /// Index of the first score in the bottom.
    start: usize,
    /// Range of the classes with the target 1 in [`Terms::targets`].
    targets: Range<usize>,
}

/// The values of one image.
struct ImageValues<'a> {
    /// Index of the image in the batch.
    index: usize,
    offsets: &'a [f64],
    scores: &'a [f64],
    objects: &'a [LabelledBox],
}

/// Prior boxes and their variances.
struct Priors {
    boxes: Vec<Box>,
    variances: Vec<Box>,
}

impl MultiBoxLossLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field is missing, has an invalid
    /// value, or contradicts another field.
    pub fn new(layer: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = layer.multibox_loss_param.unwrap_or_default();
        let loss_param = layer.loss_param.clone().unwrap_or_default();
        let normalization = loss_common::normalization(&loss_param, LossNormalization::Valid)?;
        let counts = |bottom: usize| layer.propagate_down.get(bottom).copied().unwrap_or(true);
        Self::from_param(&param, normalization, [counts(0), counts(1)])
            .map_err(|error| error.context("multibox_loss_param"))
    }

    fn from_param(
        param: &MultiBoxLossParameter,
        normalization: LossNormalization,
        counts: [bool; 2],
    ) -> Result<Self> {
        let (classes, background) =
            (param.num_classes() as usize, param.background_label_id() as usize);
        if classes == 0 {
            return invalid("num_classes is required and must be positive");
        }
        if param.conf_loss_type() == ConfLossType::Softmax && background >= classes {
            return invalid(format!(
                "background_label_id must be less than num_classes ({classes}) with SOFTMAX, found \
                 {background}"
            ));
        }
        for (name, value) in [
            ("overlap_threshold", param.overlap_threshold()),
            ("neg_overlap", param.neg_overlap()),
            ("neg_pos_ratio", param.neg_pos_ratio()),
            ("loc_weight", param.loc_weight()),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return invalid(format!("{name} must be 0 or more, found {value}"));
            }
        }
        let is_mining = param.mining_type() != MiningType::None;
        if param.do_neg_mining.is_some_and(|mines| mines != is_mining) {
            return invalid(format!(
                "do_neg_mining: {} contradicts mining_type; remove do_neg_mining",
                param.do_neg_mining()
            ));
        }
        if is_mining && !param.share_location() {
            return invalid("share_location: false needs mining_type: NONE");
        }
        if param.map_object_to_agnostic() && (classes, background) != (2, 0) {
            return invalid(format!(
                "map_object_to_agnostic needs num_classes: 2 and background_label_id: 0, found \
                 {classes} and {background}"
            ));
        }
        Ok(Self {
            classes,
            background,
            shares_location: param.share_location(),
            coder: BoxCoder {
                code: param.code_type(),
                has_scaled_offsets: param.encode_variance_in_target(),
                edge: 0.0,
            },
            matcher: Matcher {
                is_per_prediction: param.match_type() == MatchType::PerPrediction,
                overlap_threshold: param.overlap_threshold(),
                ignores_crossing: param.ignore_cross_boundary_bbox(),
            },
            matches_priors: param.use_prior_for_matching(),
            uses_difficult: param.use_difficult_gt(),
            object_label: param.map_object_to_agnostic().then_some(background + 1),
            ignores_outside: param.bp_inside(),
            mining: HardExamples::new(param)?,
            offset_loss: param.loc_loss_type(),
            score_loss: param.conf_loss_type(),
            weights: [
                if counts[0] { param.loc_weight().into() } else { 0.0 },
                if counts[1] { 1.0 } else { 0.0 },
            ],
            normalization,
            terms: Terms::default(),
        })
    }

    /// Returns the number of sets of offsets of a prior box.
    fn locations(&self) -> usize {
        if self.shares_location { 1 } else { self.classes }
    }

    /// Returns the number of images and the number of prior boxes, after checking the shapes.
    fn counts<T: Element>(&self, bottom: &[Blob<T>]) -> Result<[usize; 2]> {
        let boxes = prior_count(bottom[2].shape(), 2..=2)?;
        check_shape(bottom, 3)?;
        Ok([image_count(bottom, boxes, [4 * self.locations(), self.classes])?, boxes])
    }

    fn label(&self, object: &LabelledBox) -> usize {
        self.object_label.unwrap_or(object.label)
    }

    /// Finds the terms of the loss, and returns the loss of the batch.
    fn loss<T: Element>(&mut self, bottom: &[Blob<T>]) -> Result<f64> {
        let [images, boxes] = self.counts(bottom)?;
        let (offsets, scores) = (f64_values(&bottom[0])?, f64_values(&bottom[1])?);
        let priors = Priors::of(&bottom[2], boxes)?;
        let max_classes = if self.object_label.is_some() { usize::MAX } else { self.classes };
        let mut objects = labelled_boxes(&bottom[3], max_classes, self.background)?;
        if let Some(image) = objects.keys().find(|image| **image >= images) {
            return invalid(format!(
                "a labelled box is in image {image}, but the batch has only {images} images"
            ));
        }
        self.terms = Terms::default();
        let mut matched = 0;
        for index in 0..images {
            let mut objects = objects.remove(&index).unwrap_or_default();
            objects.retain(|object| self.uses_difficult || !object.is_difficult);
            let item = |values: &[f64]| {
                let len = values.len() / images;
                index * len..(index + 1) * len
            };
            let (offsets, scores) = (&offsets[item(&offsets)], &scores[item(&scores)]);
            let values = ImageValues { index, offsets, scores, objects: &objects };
            matched += self
                .add_terms(&values, &priors)
                .map_err(|error| error.context(format!("image {index}")))?;
        }
        self.terms.divisor = self.normalization.divisor(images, boxes, matched);
        let offset_loss: f64 = self.terms.offsets.iter().map(|term| term.loss).sum();
        let targets = |term: &ScoreTerm| &self.terms.targets[term.targets.clone()];
        let score_losses = self.terms.scores.iter().map(|term| {
            let scores = &scores[term.start..term.start + self.classes];
            score_loss(self.score_loss, scores, targets(term))
        });
        let losses = self.weights[0] * offset_loss + self.weights[1] * score_losses.sum::<f64>();
        Ok(losses / self.terms.divisor)
    }

    /// Adds the terms of one image, and returns the number of matched prior boxes.
    fn add_terms(&mut self, image: &ImageValues<'_>, priors: &Priors) -> Result<usize> {
        let mut matches = match image.objects {
            [] => Vec::new(),
            _ => self.matches(image, priors)?,
        };
        let boxes = priors.boxes.len();
        let first_score = image.index * image.scores.len();
        match &self.mining {
            None => {
                // The classes of the labelled boxes of each prior box.
                let mut labels = vec![Vec::new(); boxes];
                for (_, matches) in &matches {
                    for (i, object) in matches.pairs() {
                        labels[i].push(self.label(&image.objects[object]));
                    }
                }
                for (i, labels) in labels.iter().enumerate() {
                    let targets = match self.score_loss {
                        ConfLossType::Softmax => {
                            &[labels.last().copied().unwrap_or(self.background)][..]
                        }
                        ConfLossType::Logistic => labels,
                    };
                    self.terms.add_scores(first_score + i * self.classes, targets);
                }
            }
            Some(mining) => {
                for (location, matches) in &mut matches {
                    let losses = self.losses(image, priors, *location, matches)?;
                    let predicted = || self.predicted_boxes(image, priors, *location);
                    let candidates = Candidates { losses, priors: &priors.boxes };
                    let negatives = mining.select(&self.coder, matches, &candidates, predicted)?;
                    for (i, object) in matches.pairs() {
                        let label = self.label(&image.objects[object]);
                        self.terms.add_scores(first_score + i * self.classes, &[label]);
                    }
                    let targets = [self.background];
                    let is_class = self.background < self.classes;
                    for i in negatives {
                        let targets = if is_class { &targets[..] } else { &[] };
                        self.terms.add_scores(first_score + i * self.classes, targets);
                    }
                }
            }
        }
        let mut count = 0;
        for (location, matches) in &matches {
            for (i, object) in matches.pairs() {
                let term = self.offset_term(image, priors, [i, *location, object])?;
                self.terms.offsets.push(term);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the matches of an image for each location: a set of offsets that all classes share,
    /// or the offsets of one class.
    fn matches(&self, image: &ImageValues<'_>, priors: &Priors) -> Result<Vec<(usize, Matches)>> {
        let objects_of = |label: Option<usize>| -> Vec<(usize, Box)> {
            let objects = image.objects.iter().enumerate();
            let objects = objects.filter(|(_, object)| label.is_none_or(|l| l == object.label));
            objects.map(|(i, object)| (i, object.edges)).collect()
        };
        let mut found = Vec::new();
        for location in 0..self.locations() {
            if !self.shares_location && location == self.background {
                continue;
            }
            let label = (!self.shares_location).then_some(location);
            let matches = if self.matches_priors {
                let mut matches =
                    self.matcher.matches(&self.coder, &priors.boxes, &objects_of(None));
                if let Some(label) = label {
                    matches.retain(|object| image.objects[object].label == label);
                }
                matches
            } else {
                let boxes = self.predicted_boxes(image, priors, location)?;
                self.matcher.matches(&self.coder, &boxes, &objects_of(label))
            };
            found.push((location, matches));
        }
        Ok(found)
    }

    fn offsets(&self, image: &ImageValues<'_>, prior: usize, location: usize) -> [f64; 4] {
        let start = 4 * (prior * self.locations() + location);
        std::array::from_fn(|i| image.offsets[start + i])
    }

    /// Returns the boxes that the net predicts at `location` of each prior box.
    fn predicted_boxes(
        &self,
        image: &ImageValues<'_>,
        priors: &Priors,
        location: usize,
    ) -> Result<Vec<Box>> {
        let boxes = priors.boxes.iter().zip(&priors.variances).enumerate();
        boxes
            .map(|(i, (prior, variance))| {
                let offsets = self.offsets(image, i, location).map(|offset| offset as f32);
                let decoded = self.coder.decode(*prior, *variance, offsets);
                decoded.map_err(|error| error.context(format!("prior box {i}")))
            })
            .collect()
    }

    /// Returns the loss of the offsets of a prior box at a location against a labelled box.
    fn offset_term(
        &self,
        image: &ImageValues<'_>,
        priors: &Priors,
        [prior, location, object]: [usize; 3],
    ) -> Result<OffsetTerm> {
        let (edges, variance) = (priors.boxes[prior], priors.variances[prior]);
        let offsets = self.offsets(image, prior, location);
        let targets = self.coder.encode(edges, variance, image.objects[object].edges);
        let targets = targets.map_err(|error| error.context(format!("prior box {prior}")))?;
        let compared = match self.ignores_outside {
            false => [0.5; 4],
            true if self.matches_priors => edges,
            true => self.coder.decode(edges, variance, offsets.map(|offset| offset as f32))?,
        };
        let start = image.index * image.offsets.len() + 4 * (prior * self.locations() + location);
        let mut term = OffsetTerm { start, loss: 0.0, gradient: [0.0; 4] };
        for i in 0..4 {
            if compared[i] < 0.0 || compared[i] > 1.0 {
                continue;
            }
            let scale = if self.coder.has_scaled_offsets { variance[i].into() } else { 1.0 };
            let difference = (offsets[i] - targets[i]) / scale;
            let (loss, gradient) = offset_loss(self.offset_loss, difference);
            term.loss += loss;
            term.gradient[i] = gradient / scale;
        }
        Ok(term)
    }

    /// Returns the loss of each prior box, by which the mining selects prior boxes.
    fn losses(
        &self,
        image: &ImageValues<'_>,
        priors: &Priors,
        location: usize,
        matches: &Matches,
    ) -> Result<Vec<f64>> {
        let mut labels = vec![self.background; priors.boxes.len()];
        matches.pairs().for_each(|(i, object)| labels[i] = self.label(&image.objects[object]));
        let scores = image.scores.chunks_exact(self.classes).zip(labels);
        let mut losses: Vec<f64> =
            scores.map(|(scores, label)| score_loss(self.score_loss, scores, &[label])).collect();
        if self.mining.as_ref().is_some_and(HardExamples::uses_offset_losses) {
            for (i, object) in matches.pairs() {
                losses[i] += self.offset_term(image, priors, [i, location, object])?.loss;
            }
        }
        Ok(losses)
    }
}

impl Terms {
    fn add_scores(&mut self, start: usize, targets: &[usize]) {
        let first = self.targets.len();
        self.targets.extend_from_slice(targets);
        self.scores.push(ScoreTerm { start, targets: first..self.targets.len() });
    }
}

impl Priors {
    fn of<T: Element>(blob: &Blob<T>, boxes: usize) -> Result<Self> {
        let values: Vec<f32> = f64_values(blob)?.into_iter().map(|value| value as f32).collect();
        let quadruples = |first: usize| {
            (first..first + boxes).map(|i| quadruple(&values, i).unwrap_or_default()).collect()
        };
        Ok(Self { boxes: quadruples(0), variances: quadruples(boxes) })
    }
}

fn f64_values<T: Element>(blob: &Blob<T>) -> Result<Vec<f64>> {
    Ok(blob.data()?.host()?.iter().map(|value| value.to_f64()).collect())
}

impl<T: Element> Layer<T> for MultiBoxLossLayer {
    fn kind(&self) -> &'static str {
        "MultiBoxLoss"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(4, 1)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom < 2
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.counts(bottom)?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let loss = self.loss(bottom)?;
        top[0].data_mut()?.host_write_only()?[0] = T::from_f64(loss);
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 3, "labelled boxes")?;
        zero_gradients(device, propagate, bottom)?;
        let factor = top[0].diff_at(&[])?.to_f64() / self.terms.divisor;
        if propagate.bottom[0] {
            let mut dx = bottom[0].diff_mut()?;
            let dx = dx.host_mut()?;
            for term in &self.terms.offsets {
                for (dx, gradient) in dx[term.start..term.start + 4].iter_mut().zip(term.gradient) {
                    *dx = T::from_f64(factor * self.weights[0] * gradient);
                }
            }
        }
        if propagate.bottom[1] {
            let (x, mut dx) = (bottom[1].data()?, bottom[1].diff_mut()?);
            let (x, dx) = (x.host()?, dx.host_mut()?);
            for term in &self.terms.scores {
                let range = term.start..term.start + self.classes;
                let scores: Vec<f64> = x[range.clone()].iter().map(|x| x.to_f64()).collect();
                let targets = &self.terms.targets[term.targets.clone()];
                let gradient = score_gradient(self.score_loss, &scores, targets);
                for (dx, gradient) in dx[range].iter_mut().zip(gradient) {
                    *dx = T::from_f64(factor * self.weights[1] * gradient);
                }
            }
        }
        Ok(())
    }
}
