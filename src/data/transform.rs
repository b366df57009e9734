//! What is done to a record on its way into a batch.

use crate::{
    blob::Blob,
    data::{Record, RecordValues},
    device::CpuDevice,
    element::Element,
    error::{Error, Result, check_len},
    host::vectorized,
    op::RngKey,
    proto::{Phase, TransformationParameter, read_binary},
};

/// Caffe's `transform_param`: `y = scale · (x − mean)`, cropped and mirrored.
///
/// - `mean_value` is one for all channels or one for each; `mean_file` is a BlobProto of the
///   records' shape. Not both.
/// - `crop_size` cuts out a square: anywhere when training, in the middle when testing.
/// - `mirror` turns every other record, at random, left to right, in either phase, as Caffe does.
///
/// Random choices are a function of the key and of the record's number alone, so a run repeats
/// whatever the threads and their order.
#[derive(Clone, Debug)]
pub struct DataTransformer {
    scale: f32,
    mirror: bool,
    crop: usize,
    mean: Mean,
    phase: Phase,
    key: RngKey,
}

/// What is subtracted from values.
#[derive(Clone, Debug)]
pub(super) enum Mean {
    /// None, one for all channels, or one for each.
    Values(Vec<f32>),
    Image {
        file: String,
        shape: [usize; 3],
        values: Vec<f32>,
    },
}

/// Which part of a record is taken, and how.
#[derive(Clone, Copy)]
struct Crop {
    top: usize,
    left: usize,
    height: usize,
    width: usize,
    mirrored: bool,
}

impl DataTransformer {
    /// Takes the parameters, and reads the mean file if there is one.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for both `mean_file` and `mean_value`, for a mean file of another shape
    /// than channels × height × width (of one image); those of reading the mean file.
    pub fn new(param: &TransformationParameter, phase: Phase, key: RngKey) -> Result<Self> {
        let mean = Mean::of(param)?;
        let crop = usize::try_from(param.crop_size())
            .map_err(|_| wrong(format!("`crop_size` {} is too large", param.crop_size())))?;
        Ok(Self { scale: param.scale(), mirror: param.mirror(), crop, mean, phase, key })
    }

    /// Channels, height and width of what becomes of `record`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] names the parameter that does not fit the record: a `crop_size` larger
    /// than its sides, a number of `mean_value`s that is neither 1 nor its channels, a
    /// `mean_file` of another shape.
    #[doc(alias = "InferBlobShape")]
    pub fn output_shape(&self, record: &Record) -> Result<[usize; 3]> {
        let [channels, height, width] = record.shape();
        let size = format_args!("{channels} x {height} x {width}");
        self.mean.expect(record.shape())?;
        match &self.mean {
            Mean::Image { file, shape, .. } if *shape != record.shape() => {
                Err(other_size(file, *shape, record.shape()))
            }
            _ if self.crop > height.min(width) => {
                let why = format!("`crop_size` {} is too large for a record of {size}", self.crop);
                Err(wrong(why))
            }
            _ if self.crop > 0 => Ok([channels, self.crop, self.crop]),
            _ => Ok(record.shape()),
        }
    }

    /// Writes `y` from `record`, the `number`-th since the run began.
    ///
    /// # Errors
    /// Those of [`output_shape`](Self::output_shape); [`Error::Length`] unless `y` has that
    /// shape's count.
    #[doc(alias = "Transform")]
    pub fn transform<T: Element>(&self, number: u64, record: &Record, y: &mut [T]) -> Result<()> {
        let shape = self.output_shape(record)?;
        check_len("transform", "y", shape.iter().product(), y.len())?;
        let cut = self.cut(number, record.shape(), shape);
        match record.values() {
            RecordValues::Bytes(x) => self.cut_out(x, record.shape(), cut, y),
            RecordValues::Floats(x) => self.cut_out(x, record.shape(), cut, y),
        }
        Ok(())
    }

    fn cut(&self, number: u64, from: [usize; 3], to: [usize; 3]) -> Crop {
        let [_, height, width] = to;
        let (down, right) = (from[1] - height, from[2] - width);
        let [coin, y, x, _] = self.key.words(number);
        // One of 0..=room, to within 2⁻³² of evenly.
        let any = |word: u32, room: usize| ((u64::from(word) * (room as u64 + 1)) >> 32) as usize;
        let (top, left) = match self.phase {
            Phase::Train => (any(y, down), any(x, right)),
            Phase::Test => (down / 2, right / 2),
        };
        Crop { top, left, height, width, mirrored: self.mirror && coin >> 31 == 1 }
    }

    fn cut_out<S: Sample, T: Element>(
        &self,
        x: &[S],
        [_, height, width]: [usize; 3],
        cut: Crop,
        y: &mut [T],
    ) {
        // Rows that follow one another in memory are taken as one.
        let whole = cut.width == width && !cut.mirrored;
        let (rows, len) = if whole { (1, cut.height * width) } else { (cut.height, cut.width) };
        if len == 0 {
            return;
        }
        vectorized(
            #[inline(always)]
            || {
                for (i, y) in y.chunks_exact_mut(len).enumerate() {
                    let (channel, row) = (i / rows, i % rows);
                    let start = (channel * height + cut.top + row) * width + cut.left;
                    let x = &x[start..start + len];
                    match &self.mean {
                        Mean::Values(means) => {
                            let mean = means.get(channel).or(means.first()).copied();
                            less_one(x, mean.unwrap_or(0.0), self.scale, y);
                        }
                        Mean::Image { values, .. } => {
                            less_each(x, &values[start..start + len], self.scale, y);
                        }
                    }
                    if cut.mirrored {
                        y.reverse();
                    }
                }
            },
        );
    }
}

/// `y = scale · (x − mean)`.
#[inline(always)]
fn less_one<S: Sample, T: Element>(x: &[S], mean: f32, scale: f32, y: &mut [T]) {
    let (mean, scale) = (T::acc(mean.into()), T::acc(scale.into()));
    for (y, x) in y.iter_mut().zip(x) {
        *y = T::from_acc((x.widen::<T::Acc>() - mean) * scale);
    }
}

/// `y[i] = scale · (x[i] − mean[i])`.
#[inline(always)]
fn less_each<S: Sample, T: Element>(x: &[S], mean: &[f32], scale: f32, y: &mut [T]) {
    let scale = T::acc(scale.into());
    for ((y, x), mean) in y.iter_mut().zip(x).zip(mean) {
        *y = T::from_acc((x.widen::<T::Acc>() - mean.widen()) * scale);
    }
}

/// A value of a record.
trait Sample: Copy {
    /// The same number in the type of arithmetic, exactly.
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

fn wrong(why: impl Into<String>) -> Error {
    Error::invalid_input("transform_param", why)
}

fn other_size(file: &str, [c, h, w]: [usize; 3], [channels, height, width]: [usize; 3]) -> Error {
    let size = format_args!("{channels} x {height} x {width}");
    wrong(format!("`mean_file` {file} is {c} x {h} x {w}, the record {size}"))
}

impl Mean {
    /// What `mean_file` and `mean_value` say.
    pub(super) fn of(param: &TransformationParameter) -> Result<Self> {
        match &param.mean_file {
            Some(_) if !param.mean_value.is_empty() => {
                Err(wrong("`mean_file` and `mean_value` exclude each other"))
            }
            Some(file) => mean_image(file),
            None => Ok(Self::Values(param.mean_value.clone())),
        }
    }

    /// Fails unless there is a mean for each place of the middle of this shape.
    pub(super) fn expect(&self, [channels, height, width]: [usize; 3]) -> Result<()> {
        match self {
            Self::Values(values) if values.len() > 1 && values.len() != channels => {
                let (count, size) = (values.len(), format!("{channels} x {height} x {width}"));
                Err(wrong(format!("{count} times `mean_value` for a record of {size}")))
            }
            Self::Image { file, shape: [c, h, w], .. }
                if *c != channels || *h < height || *w < width =>
            {
                Err(other_size(file, [*c, *h, *w], [channels, height, width]))
            }
            _ => Ok(()),
        }
    }

    /// The mean at a place of its middle part, which has this shape.
    pub(super) fn at(&self, [_, rows, columns]: [usize; 3], [c, row, column]: [usize; 3]) -> f32 {
        match self {
            Self::Values(means) => means.get(c).or(means.first()).copied().unwrap_or(0.0),
            Self::Image { shape: [_, height, width], values, .. } => {
                let (row, column) = (row + (height - rows) / 2, column + (width - columns) / 2);
                values[(c * height + row) * width + column]
            }
        }
    }
}

fn mean_image(file: &str) -> Result<Mean> {
    let named = |error: Error| error.context(format!("`mean_file` {file}"));
    let proto = read_binary(file)?;
    let mut blob = Blob::<f32, _>::new(&CpuDevice::with_threads(1)?, &[])?;
    blob.from_proto(&proto, true).map_err(named)?;
    let shape = match **blob.shape() {
        [1, channels, height, width] | [channels, height, width] => [channels, height, width],
        _ => {
            let why = format!("`mean_file` {file} has shape {}: no image's", blob.shape());
            return Err(wrong(why));
        }
    };
    let values = blob.data()?.host()?.to_vec();
    Ok(Mean::Image { file: file.into(), shape, values })
}

#[cfg(test)]
mod tests;
