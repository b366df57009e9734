//! Random crops of images with boxes, as the field `batch_sampler` of AnnotatedData defines them.

use super::{
    annotated_box::{AnnotatedBox, area, coverage, intersection},
    draws,
};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::{BatchSampler, SampleConstraint},
};
use rand_core::Rng;

/// Largest sum of `max_trials` of all samplers.
const MAX_TRIALS: u64 = 100_000;

/// The samplers of a layer, each of which draws crops of an image.
#[derive(Clone, Debug)]
pub(super) struct CropSampler {
    samplers: Vec<BatchSampler>,
    key: RngKey,
}

impl CropSampler {
    /// Creates the samplers.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the index of the sampler and the field, for a
    /// value out of range.
    pub(super) fn new(samplers: &[BatchSampler], key: RngKey) -> Result<Self> {
        let mut trials = 0;
        for (i, sampler) in samplers.iter().enumerate() {
            let invalid =
                |reason: String| Err(Error::InvalidData(format!("batch_sampler {i}: {reason}")));
            trials += u64::from(sampler.max_trials());
            if trials > MAX_TRIALS {
                return invalid(format!("max_trials of all samplers exceeds {MAX_TRIALS}"));
            }
            let sampler = sampler.sampler.unwrap_or_default();
            let (min, max) = (sampler.min_scale(), sampler.max_scale());
            if !(min > 0.0 && min <= max && max <= 1.0) {
                return invalid(format!(
                    "expected 0 < min_scale ≤ max_scale ≤ 1, found {min} and {max}"
                ));
            }
            let (min, max) = (sampler.min_aspect_ratio(), sampler.max_aspect_ratio());
            if !(min > 0.0 && min <= max && max.is_finite()) {
                return invalid(format!(
                    "expected 0 < min_aspect_ratio ≤ max_aspect_ratio, found {min} and {max}"
                ));
            }
        }
        Ok(Self { samplers: samplers.to_vec(), key })
    }

    /// Draws a crop of the image with the number `number`: its left, top, right and bottom edges as
    /// fractions of the image. Returns `None` if no sampler has found a crop that satisfies its
    /// constraint.
    pub(super) fn crop(&self, number: u64, boxes: &[AnnotatedBox]) -> Option<[f32; 4]> {
        let mut rng = self.key.child(number).rng();
        let mut found = Vec::new();
        for sampler in self.samplers.iter().filter(|sampler| sampler.use_original_image()) {
            let most = sampler.max_sample.map_or(usize::MAX, |most| most as usize);
            let constraint = sampler.sample_constraint.unwrap_or_default();
            let mut count = 0;
            for _ in 0..sampler.max_trials() {
                if count >= most {
                    break;
                }
                let crop = draw(sampler, &mut rng);
                if satisfies(&constraint, crop, boxes) {
                    found.push(crop);
                    count += 1;
                }
            }
        }
        if found.is_empty() {
            return None;
        }
        found.get(draws::index(&mut rng, found.len())).copied()
    }
}

/// Draws a crop with a random scale and a random ratio of the width to the height.
fn draw(sampler: &BatchSampler, rng: &mut impl Rng) -> [f32; 4] {
    let sampler = sampler.sampler.unwrap_or_default();
    let mut uniform = |min: f32, max: f32| draws::uniform(rng, min, max);
    let scale = uniform(sampler.min_scale(), sampler.max_scale());
    let ratio = uniform(sampler.min_aspect_ratio(), sampler.max_aspect_ratio());
    // Limit the ratio to the range in which both sides of the crop are at most 1.
    let ratio = ratio.max(scale * scale).min(1.0 / (scale * scale));
    let (width, height) = (scale * ratio.sqrt(), scale / ratio.sqrt());
    let (left, top) = (uniform(0.0, 1.0 - width), uniform(0.0, 1.0 - height));
    [left, top, left + width, top + height]
}

/// Returns whether a crop satisfies all bounds of a constraint for at least one of the boxes.
fn satisfies(constraint: &SampleConstraint, crop: [f32; 4], boxes: &[AnnotatedBox]) -> bool {
    let c = constraint;
    let bounds = [
        (c.min_jaccard_overlap, c.max_jaccard_overlap),
        (c.min_sample_coverage, c.max_sample_coverage),
        (c.min_object_coverage, c.max_object_coverage),
    ];
    if bounds == [(None, None); 3] {
        return true;
    }
    boxes.iter().any(|object| {
        let common = intersection(crop, object.edges);
        let overlap = match common {
            0.0 => 0.0,
            _ => common / (area(crop) + area(object.edges) - common),
        };
        let values = [overlap, coverage(crop, object.edges), coverage(object.edges, crop)];
        values.into_iter().zip(bounds).all(|(value, (min, max))| {
            min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
        })
    })
}
