//! The sizes of the images of a data set, with which boxes are converted to pixels.

use super::{detection_boxes::Box, prelude::*};
use crate::{
    limits,
    proto::{ResizeParameter, resize_parameter::ResizeMode},
};
use std::path::Path;

/// The sizes of the images of a data set, before they were resized.
pub(super) struct ImageSizes {
    /// The width and the height of each image in pixels; not empty.
    sizes: Vec<[f32; 2]>,
    resize: Resize,
}

/// How the images were resized.
enum Resize {
    /// To any width and height.
    Stretched,
    /// To fit into an image of this ratio of the width to the height, with a border around them.
    Padded { aspect: f32 },
    /// The edges of boxes are fractions of this width and height.
    Scaled([f32; 2]),
}

impl ImageSizes {
    /// Reads the sizes from a text file: the name, the height and the width of each image, one
    /// image per line. Empty lines are ignored.
    ///
    /// # Errors
    /// Returns [`Error::Io`]; [`Error::InvalidData`], which names the file and the line, for a line
    /// with other contents; [`Error::InvalidData`] for a file without images, or for a field of
    /// `resize_param` that is missing.
    pub(super) fn read(path: impl AsRef<Path>, resize: Option<&ResizeParameter>) -> Result<Self> {
        let path = path.as_ref();
        let text = limits::read_to_string(path, limits::LIST_LEN)?;
        let mut sizes = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            let size = |word: &str| word.parse().ok().filter(|size: &u32| *size > 0);
            match words[..] {
                [_, height, width] if size(height).is_some() && size(width).is_some() => {
                    sizes.push([width, height].map(|word| size(word).unwrap_or(1) as f32));
                }
                _ => {
                    return invalid(format!(
                        "{}:{}: expected the name, the height and the width of an image, found \
                         `{line}`",
                        path.display(),
                        i + 1
                    ));
                }
            }
        }
        if sizes.is_empty() {
            return invalid(format!("name_size_file {}: lists no images", path.display()));
        }
        Ok(Self { sizes, resize: resize.map_or(Ok(Resize::Stretched), Resize::new)? })
    }

    /// Returns the number of images, which is at least 1.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Converts edges from fractions of the resized image to pixels of image `index` before it was
    /// resized, and clips them to the image. An index beyond the last image wraps around to the
    /// first image.
    pub(super) fn in_pixels(&self, index: usize, edges: Box) -> Box {
        let size = self.sizes[index % self.sizes.len()];
        let fractions = match self.resize {
            Resize::Stretched => edges,
            Resize::Padded { aspect } => {
                let image_aspect = size[0] / size[1];
                // The fractions of the resized image's width and height that the original image
                // covers.
                let covered = match image_aspect > aspect {
                    true => [1.0, aspect / image_aspect],
                    false => [image_aspect / aspect, 1.0],
                };
                std::array::from_fn(|i| {
                    let covered = covered[i % 2];
                    (edges[i] - (1.0 - covered) / 2.0) / covered
                })
            }
            Resize::Scaled(scale) => std::array::from_fn(|i| edges[i] * scale[i % 2] / size[i % 2]),
        };
        std::array::from_fn(|i| fractions[i].clamp(0.0, 1.0) * size[i % 2])
    }
}

impl Resize {
    fn new(param: &ResizeParameter) -> Result<Self> {
        let (height, width) = (param.height() as f32, param.width() as f32);
        if height == 0.0 || width == 0.0 {
            return invalid("resize_param: height and width must be positive");
        }
        let scale = [param.width_scale() as f32, param.height_scale() as f32];
        Ok(match param.resize_mode() {
            ResizeMode::FitLargeSizeAndPad => Self::Padded { aspect: width / height },
            ResizeMode::FitSmallSize if !scale.contains(&0.0) => Self::Scaled(scale),
            ResizeMode::Warp | ResizeMode::FitSmallSize => Self::Stretched,
        })
    }
}
