//! The PriorBox layer, which generates boxes at each position of a feature map.

use super::prelude::*;
use crate::{proto::PriorBoxParameter, shape::Shape};

/// Generates boxes of several sizes around each position of the feature map in the first bottom.
/// The top has the shape `1 × 2 × 4·n` for `n` boxes. Its first channel holds the left, top, right
/// and bottom edge of each box, as fractions of the image's width and height. Its second channel
/// holds the variances of these four numbers, by which DetectionOutput scales predicted offsets.
///
/// The boxes at position `(x, y)` have the center `((x + offset) · step_w, (y + offset) · step_h)`
/// in pixels. Each `min_size` gives, in this order:
/// - a square box with the side `min_size`,
/// - with `max_size`, a square box with the side `√(min_size · max_size)`,
/// - for each `aspect_ratio` `r` other than 1, a box of `min_size · √r` by `min_size / √r`,
///   followed, if `flip` is true, by the box for the ratio `1/r`.
///
/// The size of the image is that of the second bottom unless `img_size`, or `img_h` and `img_w`,
/// are given. If no step is given, `step_w` and `step_h` are the width and height of the image
/// divided by those of the feature map. The values of the bottoms do not affect the top, so the
/// gradients of the bottoms are zero.
///
/// The PriorBox layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where its
/// field `prior_box_param` has the number 203. As in the fork, `min_size` and `max_size` are
/// truncated to whole pixels, and `clip` is false by default; OpenCV does not truncate, and clips
/// by default. The fields `offset_h`, `offset_w`, `width` and `height` come from OpenCV. The type
/// `PriorBoxClustered` of OpenVINO's nets is a PriorBox with the fields `width` and `height`, which
/// list the widths and the heights, in pixels, of the boxes at each position. The method was
/// introduced with SSD by Liu et al. (2016).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "features" input_param { shape { dim: 1 dim: 8 dim: 1 dim: 1 } } }
///     layer { type: "Input" top: "image" input_param { shape { dim: 1 dim: 3 dim: 40 dim: 80 } } }
///     layer { type: "PriorBox" bottom: "features" bottom: "image" top: "priors"
///       prior_box_param { min_size: 20 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// let priors = net.blob("priors").unwrap().to_vec()?;
/// assert_eq!(priors[..4], [0.375, 0.25, 0.625, 0.75]);
/// assert_eq!(priors[4..], [0.1; 4]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct PriorBoxLayer {
    kind: &'static str,
    boxes: PriorBoxes,
}

/// The parameters of a PriorBox layer. Pairs hold the value for the x axis first.
pub(crate) struct PriorBoxes {
    /// Width and height of each box of one position, in pixels.
    sizes: Vec<[f64; 2]>,
    /// Offsets of the centers from the start of a step, as fractions of the step.
    offsets: Vec<[f64; 2]>,
    variance: [f32; 4],
    clip: bool,
    /// Width and height of the image; `None` if the second bottom gives the size.
    image: Option<[f64; 2]>,
    /// Distance between neighbouring centers in pixels; `None` for the size of the image divided by
    /// the size of the feature map.
    step: Option<[f64; 2]>,
}

impl PriorBoxes {
    /// Reads the fields of `prior_box_param`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field has an invalid value or
    /// contradicts another field.
    pub(crate) fn new(param: &PriorBoxParameter) -> Result<Self> {
        let offsets = match (&param.offset_w[..], &param.offset_h[..]) {
            ([], []) => vec![[param.offset().into(); 2]],
            (x, y) if x.len() == y.len() && param.offset.is_none() => pairs(x, y),
            (x, y) => {
                return invalid(format!(
                    "prior_box_param: expected as many values of offset_h as of offset_w and no \
                     offset, found {} and {}",
                    y.len(),
                    x.len()
                ));
            }
        };
        let image = pair(
            "img_size",
            param.img_size.map(f64::from),
            ["img_w", "img_h"],
            [param.img_w.map(f64::from), param.img_h.map(f64::from)],
        )?;
        let step = pair(
            "step",
            param.step.map(f64::from),
            ["step_w", "step_h"],
            [param.step_w.map(f64::from), param.step_h.map(f64::from)],
        )?;
        let (sizes, variance) = (sizes(param)?, variance(&param.variance)?);
        Ok(Self { sizes, offsets, variance, clip: param.clip(), image, step })
    }

    /// Returns the shape of the top for a feature map of shape `features`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] unless `features` has four axes, and [`Error::ShapeOverflow`] if
    /// the number of boxes overflows.
    pub(crate) fn shape(&self, features: &Shape) -> Result<[usize; 3]> {
        let [_, _, height, width] = image_extents(features)?;
        let boxes = [height, width, self.sizes.len(), self.offsets.len()];
        Ok([1, 2, Shape::new(&[&boxes[..], &[4]].concat())?.count()])
    }

    /// Computes the values of the top for a feature map of shape `features` and, unless the
    /// parameters give the size of the image, an image of shape `image`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if `features` or `image` does not have four axes, and
    /// [`Error::InvalidData`] if the size of the image is unknown.
    pub(crate) fn values(&self, features: &Shape, image: Option<&Shape>) -> Result<Vec<f32>> {
        let [_, _, height, width] = image_extents(features)?;
        let image = match (self.image, image) {
            (Some(size), _) => size,
            (None, Some(shape)) => {
                let [_, _, height, width] = image_extents(shape)?;
                [width as f64, height as f64]
            }
            (None, None) => {
                return invalid(
                    "prior_box_param: the size of the image is unknown; give img_size, or the \
                     image as the second bottom",
                );
            }
        };
        let step = self.step.unwrap_or([image[0] / width as f64, image[1] / height as f64]);
        let mut values = Vec::with_capacity(self.shape(features)?.iter().product());
        for y in 0..height {
            for x in 0..width {
                for size in &self.sizes {
                    for offset in &self.offsets {
                        let corner = |i: usize, side: f64| {
                            let center = ([x, y][i] as f64 + offset[i]) * step[i];
                            let edge = (center + side * size[i] / 2.0) / image[i];
                            if self.clip { edge.clamp(0.0, 1.0) as f32 } else { edge as f32 }
                        };
                        values.extend([
                            corner(0, -1.0),
                            corner(1, -1.0),
                            corner(0, 1.0),
                            corner(1, 1.0),
                        ]);
                    }
                }
            }
        }
        let boxes = values.len() / 4;
        values.extend(std::iter::repeat_n(self.variance, boxes).flatten());
        Ok(values)
    }
}

fn pairs(first: &[f32], second: &[f32]) -> Vec<[f64; 2]> {
    first.iter().zip(second).map(|(&first, &second)| [first.into(), second.into()]).collect()
}

/// Returns the pair that either the field `both` or the two fields `names` define; `None` if no
/// field is set.
fn pair(
    both: &str,
    value: Option<f64>,
    names: [&str; 2],
    values: [Option<f64>; 2],
) -> Result<Option<[f64; 2]>> {
    let pair = match (value, values) {
        (None, [None, None]) => return Ok(None),
        (Some(value), [None, None]) => [value; 2],
        (None, [Some(first), Some(second)]) => [first, second],
        _ => {
            let [first, second] = names;
            return invalid(format!(
                "prior_box_param: expected either {both}, or both {first} and {second}"
            ));
        }
    };
    match pair.iter().find(|value| !value.is_finite() || **value <= 0.0) {
        Some(value) => {
            let name = if values[0].is_some() { names.join(" and ") } else { both.to_owned() };
            invalid(format!("prior_box_param: {name} must be positive, found {value}"))
        }
        None => Ok(Some(pair)),
    }
}

/// Returns the width and the height of each box of one position.
fn sizes(param: &PriorBoxParameter) -> Result<Vec<[f64; 2]>> {
    if !param.width.is_empty() || !param.height.is_empty() {
        let (width, height) = (&param.width, &param.height);
        if width.len() != height.len() || !param.min_size.is_empty() || !param.max_size.is_empty() {
            return invalid(format!(
                "prior_box_param: expected as many values of height as of width and no min_size \
                 or max_size, found {} and {}",
                height.len(),
                width.len()
            ));
        }
        check_positive("width", width)?;
        check_positive("height", height)?;
        return Ok(pairs(width, height));
    }
    let (min, max) = (&param.min_size, &param.max_size);
    if min.is_empty() {
        return invalid("prior_box_param: min_size is required");
    }
    check_positive("min_size", min)?;
    check_positive("aspect_ratio", &param.aspect_ratio)?;
    if !max.is_empty() && max.len() != min.len() {
        return invalid(format!(
            "prior_box_param: expected as many values of max_size as of min_size ({}), found {}",
            min.len(),
            max.len()
        ));
    }
    let ratios = aspect_ratios(&param.aspect_ratio, param.flip());
    let mut sizes = Vec::new();
    for (i, &min_size) in min.iter().enumerate() {
        let min = f64::from(min_size).trunc();
        sizes.push([min, min]);
        if let Some(&max_size) = max.get(i) {
            if max_size.is_nan() || max_size <= min_size {
                return invalid(format!(
                    "prior_box_param: max_size {max_size} must be greater than min_size {min_size}"
                ));
            }
            sizes.push([(min * f64::from(max_size).trunc()).sqrt(); 2]);
        }
        sizes.extend(ratios.iter().map(|ratio| [min * ratio.sqrt(), min / ratio.sqrt()]));
    }
    Ok(sizes)
}

/// Returns the aspect ratios other than 1, without duplicates. With `flip`, the inverse of each
/// ratio follows the ratio.
fn aspect_ratios(given: &[f32], flip: bool) -> Vec<f64> {
    let mut ratios = Vec::new();
    for ratio in given.iter().copied().map(f64::from) {
        let is_known = |known: &f64| (ratio - known).abs() < 1e-6;
        if is_known(&1.0) || ratios.iter().any(is_known) {
            continue;
        }
        ratios.push(ratio);
        if flip {
            ratios.push(1.0 / ratio);
        }
    }
    ratios
}

/// Returns the variances of the four coordinates.
fn variance(values: &[f32]) -> Result<[f32; 4]> {
    check_positive("variance", values)?;
    match *values {
        [] => Ok([0.1; 4]),
        [value] => Ok([value; 4]),
        [left, top, right, bottom] => Ok([left, top, right, bottom]),
        _ => invalid(format!(
            "prior_box_param: expected 0, 1 or 4 values of variance, found {}",
            values.len()
        )),
    }
}

fn check_positive(field: &str, values: &[f32]) -> Result<()> {
    match values.iter().find(|value| !value.is_finite() || **value <= 0.0) {
        Some(value) => invalid(format!("prior_box_param: {field} must be positive, found {value}")),
        None => Ok(()),
    }
}

impl PriorBoxLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, if a field has an invalid value or
    /// contradicts another field.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.prior_box_param.clone().unwrap_or_default();
        Ok(Self { kind: "PriorBox", boxes: PriorBoxes::new(&param)? })
    }

    /// Creates a layer of the type `PriorBoxClustered`.
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new), and [`Error::InvalidData`] if `width` is missing.
    pub fn clustered(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        match &param.prior_box_param {
            Some(fields) if !fields.width.is_empty() => {
                Ok(Self { kind: "PriorBoxClustered", ..Self::new(param, cx)? })
            }
            _ => invalid("prior_box_param: width and height are required"),
        }
    }
}

impl<T: Element> Layer<T> for PriorBoxLayer {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=2, 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape(&self.boxes.shape(bottom[0].shape())?)
    }

    fn forward(&mut self, _: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let values = self.boxes.values(bottom[0].shape(), bottom.get(1).map(Blob::shape))?;
        let mut y = top[0].data_mut()?;
        for (y, value) in y.host_write_only()?.iter_mut().zip(values) {
            *y = T::from_f64(value.into());
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        _: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}
