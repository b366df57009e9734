//! Resizing of images and their boxes, as the field `resize_param` defines it.

use super::{
    draws,
    image::{Border, Image, Interpolation},
};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::{
        ResizeParameter,
        resize_parameter::{InterpMode, PadMode, ResizeMode},
    },
};

/// Resizing of images, as the field `resize_param` of the SSD fork of Caffe defines it.
#[derive(Clone, Debug)]
pub(super) struct ResizePolicy {
    mode: ResizeMode,
    /// The values of the fields `height` and `width`.
    size: [usize; 2],
    /// The interpolation methods, one of which is drawn for each image; without any, linear
    /// interpolation.
    interpolations: Vec<Interpolation>,
    border: Border,
    /// The height and the width, in pixels, of the unit of box edges in the mode `FIT_SMALL_SIZE`:
    /// `height_scale` and `width_scale`.
    box_scales: Option<[f32; 2]>,
    key: RngKey,
}

impl ResizePolicy {
    /// Creates the policy.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`], which names the field, for an invalid value.
    pub(super) fn new(param: &ResizeParameter, key: RngKey) -> Result<Self> {
        if param.height() == 0 || param.width() == 0 {
            return Err(invalid("`height` and `width` must be positive"));
        }
        let interpolation = |mode: &i32| match InterpMode::try_from(*mode) {
            Ok(InterpMode::Area) => Interpolation::Area,
            Ok(InterpMode::Nearest) => Interpolation::Nearest,
            Ok(InterpMode::Cubic) => Interpolation::Cubic,
            Ok(InterpMode::Lanczos4) => Interpolation::Lanczos4,
            _ => Interpolation::Linear,
        };
        let fill = param.pad_value.iter().map(|x| x.round_ties_even().clamp(0.0, 255.0) as u8);
        let scales = [param.height_scale(), param.width_scale()];
        Ok(Self {
            mode: param.resize_mode(),
            size: [param.height() as usize, param.width() as usize],
            interpolations: param.interp_mode.iter().map(interpolation).collect(),
            border: match param.pad_mode() {
                PadMode::Constant => Border::Constant(fill.collect()),
                PadMode::Mirrored => Border::Reflected,
                PadMode::RepeatNearest => Border::Repeated,
            },
            box_scales: (!scales.contains(&0)).then(|| scales.map(|scale| scale as f32)),
            key,
        })
    }

    /// Returns the height and the width that an image of `height × width` pixels has after
    /// resizing.
    pub(super) fn output_size(&self, [height, width]: [usize; 2]) -> [usize; 2] {
        match self.mode {
            ResizeMode::FitSmallSize => self.scaled_size([height, width], true),
            _ => self.size,
        }
    }

    /// Resizes the image. `number` is the number of the record, on which the random choice of the
    /// interpolation depends.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if there are several `pad_value`s but not one for each
    /// channel, or if the resized image would have no pixels. Returns [`Error::InvalidData`] if the
    /// resized image exceeds a size limit.
    pub(super) fn apply(&self, number: u64, image: &Image) -> Result<Image> {
        let [channels, height, width] = image.shape();
        if let Border::Constant(values) = &self.border
            && values.len() > 1
            && values.len() != channels
        {
            let (count, one) = (values.len(), "expected one `pad_value` or one for each");
            return Err(invalid(format!("{one} of {channels} channels, found {count}")));
        }
        image.check_enlarged(self.output_size([height, width]))?;
        let interpolation = match self.interpolations.len() {
            0 => Interpolation::Linear,
            count => {
                let mut rng = self.key.child(number).rng();
                self.interpolations[draws::index(&mut rng, count)]
            }
        };
        if self.mode != ResizeMode::FitLargeSizeAndPad {
            let [height, width] = self.output_size([height, width]);
            return image.resize_by(height, width, interpolation);
        }
        let inner = self.scaled_size([height, width], false);
        let image = image.resize_by(inner[0], inner[1], interpolation)?;
        let start = [0, 1].map(|i| (self.size[i] - inner[i]) / 2);
        image.framed(start, self.size, &self.border)
    }

    /// Returns the smallest size with the aspect ratio of the original that covers `self.size` if
    /// `covers` is true, or else the largest size that fits into `self.size`.
    fn scaled_size(&self, original: [usize; 2], covers: bool) -> [usize; 2] {
        let [height, width] = self.size;
        let aspect = original[1] as f32 / original[0] as f32;
        let is_narrower = aspect < width as f32 / height as f32;
        let is_wider = aspect > width as f32 / height as f32;
        // For equal aspect ratios, the fork computes the width from the height.
        let from_width = if covers { is_narrower } else { is_wider };
        match from_width {
            true => {
                let scaled = (width as f32 / aspect) as usize;
                [if covers { scaled } else { scaled.min(height) }, width]
            }
            false => {
                let scaled = (aspect * height as f32) as usize;
                [height, if covers { scaled } else { scaled.min(width) }]
            }
        }
    }

    /// Returns the edges of a box in the resized image, for an original of `height × width` pixels.
    pub(super) fn move_box(&self, edges: [f32; 4], [height, width]: [usize; 2]) -> [f32; 4] {
        // The parts of the resized image's width and height that the original occupies.
        let mut parts = [1.0; 2];
        if self.mode == ResizeMode::FitLargeSizeAndPad {
            let ratio = (width as f32 / height as f32) * self.size[0] as f32 / self.size[1] as f32;
            parts = if ratio > 1.0 { [1.0, 1.0 / ratio] } else { [ratio, 1.0] };
        }
        std::array::from_fn(|i| {
            let part = parts[i % 2];
            (1.0 - part) / 2.0 + part * edges[i].clamp(0.0, 1.0)
        })
    }

    /// Returns the edges of a box in units of `width_scale` and `height_scale` pixels in the mode
    /// `FIT_SMALL_SIZE`, if both fields are set; otherwise, returns `edges`. `region` is the part
    /// of the resized image to which the edges refer, and `height × width` the size of the
    /// original.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if the region is narrower than `width_scale` pixels or lower
    /// than `height_scale` pixels.
    pub(super) fn extrapolate(
        &self,
        edges: [f32; 4],
        region: [f32; 4],
        [height, width]: [usize; 2],
    ) -> Result<[f32; 4]> {
        let (ResizeMode::FitSmallSize, Some([height_scale, width_scale])) =
            (self.mode, self.box_scales)
        else {
            return Ok(edges);
        };
        let aspect = width as f32 / height as f32;
        let [mut rows, mut columns] = self.size.map(|extent| extent as f32);
        match aspect < columns / rows {
            true => rows = columns / aspect,
            false => columns = rows * aspect,
        }
        let sides = [columns * (region[2] - region[0]), rows * (region[3] - region[1])];
        let scales = [width_scale, height_scale];
        if sides[0] < scales[0] || sides[1] < scales[1] {
            return Err(invalid(format!(
                "`width_scale` and `height_scale` must not exceed the size {} x {} of the crop, found \
                 {width_scale} and {height_scale}",
                sides[0], sides[1]
            )));
        }
        Ok(std::array::from_fn(|i| edges[i] * sides[i % 2] / scales[i % 2]))
    }
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_input("transform_param", format!("`resize_param`: {reason}"))
}
