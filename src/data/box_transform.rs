//! Transformation of images with boxes: random colors, borders and crops, resizing, mean
//! subtraction and mirroring.

use super::{
    annotated_box::{AnnotatedBox, area, coverage},
    crop_sampler::CropSampler,
    distortion::ColorDistortion,
    expansion::Expansion,
    image::Image,
    image_changes::{ImageChanges, image_of},
    record::Record,
    transform::DataTransformer,
};
use crate::{
    element::Element,
    error::Result,
    op::RngKey,
    proto::{
        AnnotatedDataParameter, EmitConstraint, Phase, TransformationParameter,
        emit_constraint::EmitType,
    },
};

/// The transformation of images with boxes of the layer AnnotatedData.
#[derive(Clone, Debug)]
pub(crate) struct BoxTransformer {
    distortion: Option<ColorDistortion>,
    expansion: Option<Expansion>,
    sampler: CropSampler,
    changes: ImageChanges,
    emit: Option<EmitConstraint>,
    /// The last steps, such as mean subtraction and mirroring.
    transformer: DataTransformer,
}

impl BoxTransformer {
    /// Creates a transformer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`](crate::Error::InvalidInput) or
    /// [`Error::InvalidData`](crate::Error::InvalidData), which names the field, for an
    /// invalid or unsupported field, and any error from [`DataTransformer::new`].
    pub(crate) fn new(
        samplers: &AnnotatedDataParameter,
        param: &TransformationParameter,
        phase: Phase,
        key: RngKey,
    ) -> Result<Self> {
        let last_steps = TransformationParameter {
            resize_param: None,
            noise_param: None,
            emit_constraint: None,
            distort_param: None,
            expand_param: None,
            ..param.clone()
        };
        let distort = param.distort_param;
        Ok(Self {
            distortion: distort
                .map(|distort| ColorDistortion::new(distort, key.named_child("distort")))
                .transpose()?,
            expansion: Expansion::new(param, key.named_child("expand"))?,
            sampler: CropSampler::new(&samplers.batch_sampler, key.named_child("crops"))?,
            changes: ImageChanges::new(param, key)?,
            emit: param.emit_constraint,
            transformer: DataTransformer::new(&last_steps, phase, key)?,
        })
    }

    /// Transforms a record: appends the values to `values`, and the boxes that remain to `boxes`.
    /// Returns the number of channels, the height and the width. `number` is the number of the
    /// record, on which the random choices depend.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`](crate::Error::InvalidInput) for a record of floats whose image
    /// must be changed, and any error of the transformation.
    pub(crate) fn transform<T: Element>(
        &self,
        number: u64,
        record: &Record,
        values: &mut Vec<T>,
        boxes: &mut Vec<AnnotatedBox>,
    ) -> Result<[usize; 3]> {
        let mut found = record.boxes().to_vec();
        let cropped = self.crop(number, record, &mut found)?;
        let cropped = cropped.as_ref().unwrap_or(record);
        let changed = self.changes.apply_to_record(number, cropped)?;
        let [_, height, width] = cropped.shape();
        if let Some(resize) = self.changes.resize() {
            for found in &mut found {
                found.edges = resize.move_box(found.edges, [height, width]);
            }
        }
        let record = changed.as_ref().unwrap_or(cropped);
        let shape = self.transformer.output_shape(record)?;
        let start = values.len();
        values.resize(start + shape.iter().product::<usize>(), T::default());
        self.transformer.transform(number, record, &mut values[start..])?;
        let (region, is_mirrored) = self.transformer.region(number, record)?;
        for mut found in self.project(region, &found) {
            if is_mirrored {
                let [left, top, right, bottom] = found.edges;
                found.edges = [1.0 - right, top, 1.0 - left, bottom];
            }
            if let Some(resize) = self.changes.resize() {
                found.edges = resize.extrapolate(found.edges, region, [height, width])?;
            }
            boxes.push(found);
        }
        Ok(shape)
    }

    /// Distorts, expands and crops the image of a record, and moves its boxes. Returns `None` if
    /// neither `distort_param` nor `expand_param` is set and no crop is drawn.
    fn crop(
        &self,
        number: u64,
        record: &Record,
        boxes: &mut Vec<AnnotatedBox>,
    ) -> Result<Option<Record>> {
        let mut image = match self.distortion.is_some() || self.expansion.is_some() {
            true => Some(image_of(record)?),
            false => None,
        };
        if let (Some(distortion), Some(image)) = (&self.distortion, &mut image) {
            distortion.apply(number, image)?;
        }
        if let (Some(expansion), Some(image)) = (&self.expansion, &mut image)
            && let Some(region) = expansion.apply(number, image)?
        {
            *boxes = self.project(region, boxes);
        }
        if let Some(crop) = self.sampler.crop(number, boxes) {
            let whole = image.take().map_or_else(|| image_of(record), Ok)?;
            let (part, region) = part(&whole, crop)?;
            (image, *boxes) = (Some(part), self.project(region, boxes));
        }
        let Some(image) = image else { return Ok(None) };
        let mut changed = Record::default();
        image.store(&mut changed)?;
        Ok(Some(changed))
    }

    /// Returns the boxes that remain in the part `region` of an image, with edges as fractions of
    /// the part.
    fn project(&self, region: [f32; 4], boxes: &[AnnotatedBox]) -> Vec<AnnotatedBox> {
        let side = |i: usize| region[i + 2] - region[i];
        let kept = boxes.iter().filter(|found| self.remains(found.edges, region));
        let projected = kept.map(|found| {
            let edge = |i: usize| (found.edges[i] - region[i % 2]) / side(i % 2);
            AnnotatedBox { edges: std::array::from_fn(|i| edge(i).clamp(0.0, 1.0)), ..*found }
        });
        projected.filter(|found| area(found.edges) > 0.0).collect()
    }

    /// Returns whether a box satisfies `emit_constraint` for the part `region` of an image.
    fn remains(&self, edges: [f32; 4], region: [f32; 4]) -> bool {
        match &self.emit {
            None => true,
            Some(emit) if emit.emit_type() == EmitType::MinOverlap => {
                coverage(edges, region) > emit.emit_overlap()
            }
            Some(_) => (0..2).all(|i| {
                let center = (edges[i] + edges[i + 2]) / 2.0;
                (region[i]..=region[i + 2]).contains(&center)
            }),
        }
    }
}

/// Returns the part of an image that the box `crop` covers, in whole pixels, and the box, clipped to
/// the image.
fn part(image: &Image, crop: [f32; 4]) -> Result<(Image, [f32; 4])> {
    let clipped = crop.map(|edge| edge.clamp(0.0, 1.0));
    let [_, height, width] = image.shape();
    let extents = [width, height];
    let pixels: [f32; 4] = std::array::from_fn(|i| clipped[i] * extents[i % 2] as f32);
    let range = |i: usize| {
        let first = (pixels[i] as usize).min(extents[i].saturating_sub(1));
        let len = ((pixels[i + 2] - pixels[i]) as usize).clamp(1, extents[i] - first);
        (first, len)
    };
    let ((left, width), (top, height)) = (range(0), range(1));
    Ok((image.part([top, left], [height, width])?, clipped))
}
