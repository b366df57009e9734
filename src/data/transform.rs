//! Caffe's data transformation: mean subtraction, scaling, cropping and mirroring.

use super::{
    image_changes::ImageChanges,
    record::{Record, RecordValues},
};
use crate::{
    blob::Blob,
    device::CpuDevice,
    element::Element,
    error::{Error, Result, check_len},
    host::vectorized,
    op::RngKey,
    proto::{Phase, TransformationParameter, read_binary},
};

/// Caffe's `transform_param`: `y = scale · (x − mean)`, with random crops and mirroring.
///
/// - `mean_value` is one value for all channels or one value per channel. `mean_file` is a
///   BlobProto file with the shape of the records. `mean_value` and `mean_file` are mutually
///   exclusive.
/// - `crop_size` crops a square: at a random position during training, in the centre in the TEST
///   phase.
/// - `crop_h` and `crop_w`, which come from the SSD fork of Caffe, crop a rectangle in the same way.
/// - `resize_param` and `noise_param`, which come from the SSD fork, change 8-bit images before all
///   other steps; the documentation of [`AnnotatedDataLayer`](crate::layer::AnnotatedDataLayer)
///   describes the fields. As in the fork, `distort_param`, `expand_param` and `emit_constraint`
///   have no effect here.
/// - As in Caffe, `mirror` flips each record left to right with probability ½ in both phases.
///
/// Random choices depend only on the key and the record's number, so that results are bit-identical
/// for any number of threads.
///
/// ```
/// use cortado::{data::{DataTransformer, Record}, op::RngKey, proto::{Phase, parse_text}};
///
/// let param = parse_text("mean_value: 10 scale: 0.5 crop_size: 1", "transform_param")?;
/// let transformer = DataTransformer::new(&param, Phase::Test, RngKey::new(1))?;
/// let mut record = Record::default();
/// record.bytes_mut([1, 3, 3])?.copy_from_slice(&[0, 0, 0, 0, 16, 0, 0, 0, 0]);
/// let mut centre = [0.0_f32];
/// transformer.transform(0, &record, &mut centre)?;
/// assert_eq!(centre, [3.0]); // 0.5 · (16 − 10)
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataTransformer {
    scale: f32,
    mirror: bool,
    /// Height and width of the crop; 0 without a crop.
    crop_size: [usize; 2],
    /// Resizing and noise.
    changes: ImageChanges,
    mean: Mean,
    phase: Phase,
    key: RngKey,
}

/// The mean that the transformer subtracts from the values.
#[derive(Clone, Debug)]
pub(super) enum Mean {
    /// The `mean_value`s: none, one for all channels, or one per channel.
    Values(Vec<f32>),
    Image {
        file: String,
        shape: [usize; 3],
        values: Vec<f32>,
    },
}

#[derive(Clone, Copy)]
struct Crop {
    top: usize,
    left: usize,
    height: usize,
    width: usize,
    mirrored: bool,
}

impl DataTransformer {
    /// Creates a transformer, and reads the mean from `mean_file` if `param` sets this field.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if both `mean_file` and `mean_value` are set or the mean
    /// file does not have the shape of one image, and for an invalid or unsupported field of
    /// `resize_param` or `noise_param`. Returns any error from reading the mean file.
    pub fn new(param: &TransformationParameter, phase: Phase, key: RngKey) -> Result<Self> {
        warn_of_ignored_fields(param);
        let mean = Mean::from_param(param)?;
        let changes = ImageChanges::new(param, key)?;
        let crop_size = crop_size(param)?;
        Ok(Self {
            scale: param.scale(),
            mirror: param.mirror(),
            crop_size,
            changes,
            mean,
            phase,
            key,
        })
    }

    /// Returns the number of channels, the height and the width of the transformed `record`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] for a `crop_size` above the height or width, for a number of
    /// `mean_value`s other than 1 or the number of channels, or for a `mean_file` of the wrong
    /// shape.
    #[doc(alias = "InferBlobShape")]
    pub fn output_shape(&self, record: &Record) -> Result<[usize; 3]> {
        self.shape_after_crop(self.changes.output_shape(record.shape()))
    }

    /// Returns the shape of the crop from a record that has the shape `from` after resizing;
    /// without a crop, returns `from`.
    fn shape_after_crop(&self, from: [usize; 3]) -> Result<[usize; 3]> {
        let [channels, height, width] = from;
        let size = format_args!("{channels} x {height} x {width}");
        self.mean.check_covers(from)?;
        match (&self.mean, self.crop_size) {
            (Mean::Image { file, shape, .. }, _) if *shape != from => {
                Err(mean_shape_error(file, *shape, from))
            }
            (_, [0, 0]) => Ok(from),
            (_, [rows, columns]) if rows > height || columns > width => Err(invalid(format!(
                "the crop of {rows} x {columns} (`crop_size`, or `crop_h` and `crop_w`) is too \
                 large for a record of {size}"
            ))),
            (_, [rows, columns]) => Ok([channels, rows, columns]),
        }
    }

    /// Transforms `record` and writes the result to `y`. `number` is the number of the record, on
    /// which the random choices depend.
    ///
    /// # Errors
    /// Returns any error from [`output_shape`](Self::output_shape), and [`Error::Length`] unless
    /// the length of `y` matches the output shape.
    #[doc(alias = "Transform")]
    pub fn transform<T: Element>(&self, number: u64, record: &Record, y: &mut [T]) -> Result<()> {
        let changed = self.changes.apply_to_record(number, record)?;
        let record = changed.as_ref().unwrap_or(record);
        let shape = self.shape_after_crop(record.shape())?;
        check_len("transform", "y", shape.iter().product(), y.len())?;
        let crop = self.crop(number, record.shape(), shape);
        match record.values() {
            RecordValues::Bytes(x) => self.transform_values(x, record.shape(), crop, y),
            RecordValues::Floats(x) => self.transform_values(x, record.shape(), crop, y),
        }
        Ok(())
    }

    /// Returns the region that [`transform`](Self::transform) cuts out of the record with the
    /// number `number`, as fractions of the record's size (left, top, right, bottom), and whether
    /// `transform` mirrors the region.
    ///
    /// # Errors
    /// Returns any error from [`output_shape`](Self::output_shape).
    pub(super) fn region(&self, number: u64, record: &Record) -> Result<([f32; 4], bool)> {
        let from = self.changes.output_shape(record.shape());
        let [_, height, width] = from;
        let crop = self.crop(number, from, self.shape_after_crop(from)?);
        let [rows, columns] = [height as f32, width as f32];
        let region = [
            crop.left as f32 / columns,
            crop.top as f32 / rows,
            (crop.left + crop.width) as f32 / columns,
            (crop.top + crop.height) as f32 / rows,
        ];
        Ok((region, crop.mirrored))
    }

    fn crop(&self, number: u64, from: [usize; 3], to: [usize; 3]) -> Crop {
        let [_, height, width] = to;
        let (down, right) = (from[1] - height, from[2] - width);
        let [coin, y, x, _] = self.key.words(number);
        // The random offset is uniform in 0..=max, except for a bias of at most 2⁻³².
        let draw = |word: u32, max: usize| ((u64::from(word) * (max as u64 + 1)) >> 32) as usize;
        let (top, left) = match self.phase {
            Phase::Train => (draw(y, down), draw(x, right)),
            Phase::Test => (down / 2, right / 2),
        };
        Crop { top, left, height, width, mirrored: self.mirror && coin >> 31 == 1 }
    }

    fn transform_values<S: Sample, T: Element>(
        &self,
        x: &[S],
        [_, height, width]: [usize; 3],
        crop: Crop,
        y: &mut [T],
    ) {
        // If the rows of the crop are contiguous in memory, process all rows of a channel as one
        // row.
        let rows_are_contiguous = crop.width == width && !crop.mirrored;
        let (rows, len) =
            if rows_are_contiguous { (1, crop.height * width) } else { (crop.height, crop.width) };
        if len == 0 {
            return;
        }
        vectorized(
            #[inline(always)]
            |_| {
                for (i, y) in y.chunks_exact_mut(len).enumerate() {
                    let (channel, row) = (i / rows, i % rows);
                    let start = (channel * height + crop.top + row) * width + crop.left;
                    let x = &x[start..start + len];
                    match &self.mean {
                        Mean::Values(means) => {
                            let mean = means.get(channel).or(means.first()).copied();
                            subtract_mean_value(x, mean.unwrap_or(0.0), self.scale, y);
                        }
                        Mean::Image { values, .. } => {
                            subtract_mean_image(x, &values[start..start + len], self.scale, y);
                        }
                    }
                    if crop.mirrored {
                        y.reverse();
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn subtract_mean_value<S: Sample, T: Element>(x: &[S], mean: f32, scale: f32, y: &mut [T]) {
    let (mean, scale) = (T::acc(mean.into()), T::acc(scale.into()));
    for (y, x) in y.iter_mut().zip(x) {
        *y = T::from_acc((x.widen::<T::Acc>() - mean) * scale);
    }
}

#[inline(always)]
fn subtract_mean_image<S: Sample, T: Element>(x: &[S], mean: &[f32], scale: f32, y: &mut [T]) {
    let scale = T::acc(scale.into());
    for ((y, x), mean) in y.iter_mut().zip(x).zip(mean) {
        *y = T::from_acc((x.widen::<T::Acc>() - mean.widen()) * scale);
    }
}

trait Sample: Copy {
    /// Converts the value exactly to the type in which the transformation computes.
    fn widen<A: Element>(self) -> A;
}

impl Sample for u8 {
    #[inline(always)]
    fn widen<A: Element>(self) -> A {
        A::from_f64(self.into())
    }
}

impl Sample for f32 {
    #[inline(always)]
    fn widen<A: Element>(self) -> A {
        A::from_f64(self.into())
    }
}

/// Returns the height and the width of the crop, which are 0 without a crop.
fn crop_size(param: &TransformationParameter) -> Result<[usize; 2]> {
    let extent = |field: &str, value: u32| {
        usize::try_from(value).map_err(|_| invalid(format!("`{field}` {value} is too large")))
    };
    match (param.crop_size(), param.crop_h(), param.crop_w()) {
        (0, 0, 0) => Ok([0, 0]),
        (0, 0, _) | (0, _, 0) => Err(invalid("set both `crop_h` and `crop_w`, or neither")),
        (0, height, width) => Ok([extent("crop_h", height)?, extent("crop_w", width)?]),
        (side, ..) => Ok([extent("crop_size", side)?; 2]),
    }
}

/// Logs a warning for each field of the SSD fork that has an effect only on images with boxes.
fn warn_of_ignored_fields(param: &TransformationParameter) {
    let fields = [
        ("emit_constraint", param.emit_constraint.is_some()),
        ("distort_param", param.distort_param.is_some()),
        ("expand_param", param.expand_param.is_some()),
    ];
    for (field, _) in fields.iter().filter(|(_, is_set)| *is_set) {
        log::warn!(
            "transform_param: `{field}` has no effect, as in the SSD fork, except in a layer \
             AnnotatedData"
        );
    }
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::invalid_input("transform_param", reason)
}

fn mean_shape_error(file: &str, mean: [usize; 3], record: [usize; 3]) -> Error {
    let [[c, h, w], [channels, height, width]] = [mean, record];
    let record = format_args!("the record is {channels} x {height} x {width}");
    invalid(format!("`mean_file` {file} is {c} x {h} x {w}, but {record}"))
}

impl Mean {
    /// Returns the mean that the field `mean_file` or the field `mean_value` defines.
    pub(super) fn from_param(param: &TransformationParameter) -> Result<Self> {
        match &param.mean_file {
            Some(_) if !param.mean_value.is_empty() => {
                Err(invalid("`mean_file` and `mean_value` are mutually exclusive"))
            }
            Some(file) => read_mean_file(file),
            None => Ok(Self::Values(param.mean_value.clone())),
        }
    }

    /// Checks that the mean has the given number of channels, and at least the given height and
    /// width.
    pub(super) fn check_covers(&self, [channels, height, width]: [usize; 3]) -> Result<()> {
        match self {
            Self::Values(values) if values.len() > 1 && values.len() != channels => {
                let (count, size) = (values.len(), format!("{channels} x {height} x {width}"));
                Err(invalid(format!("found {count} values of `mean_value` for a record of {size}")))
            }
            Self::Image { file, shape: [c, h, w], .. }
                if *c != channels || *h < height || *w < width =>
            {
                Err(mean_shape_error(file, [*c, *h, *w], [channels, height, width]))
            }
            _ => Ok(()),
        }
    }

    /// Returns the mean for the element in channel `c`, row `row` and column `column` of a centred
    /// crop.
    pub(super) fn get(&self, [_, rows, columns]: [usize; 3], [c, row, column]: [usize; 3]) -> f32 {
        match self {
            Self::Values(means) => means.get(c).or(means.first()).copied().unwrap_or(0.0),
            Self::Image { shape: [_, height, width], values, .. } => {
                let (row, column) = (row + (height - rows) / 2, column + (width - columns) / 2);
                values[(c * height + row) * width + column]
            }
        }
    }
}

fn read_mean_file(file: &str) -> Result<Mean> {
    let add_file_name = |error: Error| error.context(format!("`mean_file` {file}"));
    let proto = read_binary(file)?;
    let mut blob = Blob::<f32, _>::new(&CpuDevice::with_threads(1)?, &[])?;
    blob.from_proto(&proto, true).map_err(add_file_name)?;
    let shape = match **blob.shape() {
        [1, channels, height, width] | [channels, height, width] => [channels, height, width],
        _ => {
            let reason = format!(
                "`mean_file` {file}: expected the shape of one image, found {}",
                blob.shape()
            );
            return Err(invalid(reason));
        }
    };
    let values = blob.data()?.host()?.to_vec();
    Ok(Mean::Image { file: file.into(), shape, values })
}

#[cfg(test)]
mod tests;
