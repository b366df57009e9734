//! Transformation of images with boxes: random crops, resizing, mean subtraction and mirroring.

use super::{
    annotated_box::{AnnotatedBox, area, coverage},
    crop_sampler::CropSampler,
    image::Image,
    record::Record,
    transform::DataTransformer,
};
use crate::{
    element::Element,
    error::{Error, Result},
    op::RngKey,
    proto::{
        AnnotatedDataParameter, EmitConstraint, Phase, ResizeParameter, TransformationParameter,
        emit_constraint::EmitType,
        resize_parameter::{InterpMode, ResizeMode},
    },
};

/// The transformation of images with boxes of the layer AnnotatedData.
#[derive(Clone, Debug)]
pub(crate) struct BoxTransformer {
    sampler: CropSampler,
    /// Height and width of the resized image; `None` if images are not resized.
    size: Option<[usize; 2]>,
    emit: Option<EmitConstraint>,
    transformer: DataTransformer,
}

impl BoxTransformer {
    /// Creates a transformer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] or [`Error::InvalidData`], which names the field, for an
    /// invalid or unsupported field, and any error from [`DataTransformer::new`].
    pub(crate) fn new(
        samplers: &AnnotatedDataParameter,
        param: &TransformationParameter,
        phase: Phase,
        key: RngKey,
    ) -> Result<Self> {
        let simple =
            TransformationParameter { resize_param: None, emit_constraint: None, ..param.clone() };
        Ok(Self {
            sampler: CropSampler::new(&samplers.batch_sampler, key.named_child("crops"))?,
            size: param.resize_param.as_ref().map(size).transpose()?,
            emit: param.emit_constraint,
            transformer: DataTransformer::new(&simple, phase, key)?,
        })
    }

    /// Transforms a record: appends the values to `values`, and the boxes that remain to `boxes`.
    /// Returns the number of channels, the height and the width. `number` is the number of the
    /// record, on which the random choices depend.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] for a record of floats that must be cropped or resized, and
    /// any error of the transformation.
    pub(crate) fn transform<T: Element>(
        &self,
        number: u64,
        record: &Record,
        values: &mut Vec<T>,
        boxes: &mut Vec<AnnotatedBox>,
    ) -> Result<[usize; 3]> {
        let mut found = record.boxes().to_vec();
        let crop = self.sampler.crop(number, &found);
        let mut changed = Record::default();
        if crop.is_some() || self.size.is_some() {
            let mut image = Image::of_record(record).ok_or_else(|| {
                Error::invalid_input(
                    "transform_param",
                    "`resize_param` and `batch_sampler` need records of 8-bit images",
                )
            })?;
            if let Some(crop) = crop {
                let (part, region) = part(&image, crop)?;
                (image, found) = (part, self.project(region, &found));
            }
            if let Some([height, width]) = self.size {
                image = image.resize(height, width)?;
            }
            image.store(&mut changed)?;
        }
        let record = if changed.count() > 0 { &changed } else { record };
        let shape = self.transformer.output_shape(record)?;
        let start = values.len();
        values.resize(start + shape.iter().product::<usize>(), T::default());
        self.transformer.transform(number, record, &mut values[start..])?;
        let (region, is_mirrored) = self.transformer.region(number, record)?;
        found = self.project(region, &found);
        if is_mirrored {
            for found in &mut found {
                let [left, top, right, bottom] = found.edges;
                found.edges = [1.0 - right, top, 1.0 - left, bottom];
            }
        }
        boxes.append(&mut found);
        Ok(shape)
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

/// Returns the height and the width to which `resize_param` resizes images.
fn size(param: &ResizeParameter) -> Result<[usize; 2]> {
    let invalid = |reason: String| {
        Err(Error::invalid_input("transform_param", format!("`resize_param`: {reason}")))
    };
    if param.resize_mode() != ResizeMode::Warp {
        return invalid("only the `resize_mode` WARP is supported".into());
    }
    if param.prob() != 1.0 {
        return invalid(format!("`prob` must be 1, found {}", param.prob()));
    }
    if param.height() == 0 || param.width() == 0 {
        return invalid("`height` and `width` must be positive".into());
    }
    let is_linear = |mode: &i32| *mode == InterpMode::Linear as i32;
    if !param.interp_mode.is_empty() && !param.interp_mode.iter().any(is_linear) {
        return invalid("only the `interp_mode` LINEAR is supported".into());
    }
    if !param.interp_mode.iter().all(is_linear) {
        log::warn!("transform_param: `resize_param`: uses `interp_mode` LINEAR for all images");
    }
    Ok([param.height() as usize, param.width() as usize])
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
