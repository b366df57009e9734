//! The DenseImageData layer, which reads images and label images.

use super::{prelude::*, record_batches::RecordBatches};
use crate::{
    data::{Color, DataTransformer, ImagePairs, Record, RecordValues, Source},
    op::RngKey,
    proto::{DenseImageDataParameter, LayerState, TransformationParameter},
};
use std::time::Duration;

/// A layer whose tops hold batches of images and of label images, from a list of files.
///
/// Each line of the file `source` names an image and a label image, which has one label per pixel;
/// cortado prepends `root_folder` to both paths. The first top has the shape batch × channels ×
/// height × width, with three channels, or one channel if `is_color` is false. The second top has
/// the shape batch × 1 × height × width, and holds the values of the label images, 0 to 255.
///
/// `new_height` and `new_width` resize both images: the image by linear interpolation, the label
/// image by nearest-neighbour interpolation. `mirror` then mirrors both images with the probability
/// ½, and `crop_height` and `crop_width` crop both at the same random position, in both phases.
/// `shuffle` gives each epoch a random order, and `rand_skip` skips a random number of pairs at the
/// start. `scale`, `mean_file` and `mean_value` of `transform_param` change only the image;
/// `mean_file` must have the size of the crop. All images of a batch must have the same size.
///
/// `label_divide_factor` of ENet (TimoSaemann/caffe-enet) resizes the label images to
/// 1/`label_divide_factor` of `new_height` and `new_width`, for a net whose output is smaller than
/// its input.
///
/// The DenseImageData layer comes from SegNet (alexgkendall/caffe-segnet). cortado gives the field
/// `dense_image_data_param` the number 46, as does the version of SegNet for cuDNN 5. As in the
/// fork, `mean_file` of `dense_image_data_param` has no effect, and the layer refuses `mirror` and
/// `crop_size` of `transform_param`. The layer also refuses `crop_h`, `crop_w` and `resize_param`.
///
/// ```no_run
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"layer { type: "DenseImageData" top: "data" top: "label"
///     dense_image_data_param { source: "CamVid/train.txt" batch_size: 4 shuffle: true } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("label").unwrap().shape().to_vec(), [4, 1, 360, 480]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DenseImageDataLayer<T: Element> {
    records: RecordBatches,
    transformer: DataTransformer,
    mirror: bool,
    /// Height and width of the crop; `None` without a crop.
    crop: Option<[usize; 2]>,
    /// The height and width of the images, divided by those of the label images.
    label_step: usize,
    key: RngKey,
    /// The next batch, which `reshape` prepares and the forward pass consumes.
    batch: Option<Batch<T>>,
}

struct Batch<T> {
    images: Vec<T>,
    labels: Vec<T>,
    /// Channels, height and width of each image.
    shape: [usize; 3],
}

impl<T: Element> DenseImageDataLayer<T> {
    /// Creates the layer, opens its list of files and starts its reader thread.
    ///
    /// # Errors
    /// Returns an error, which names the field, if a field is missing, invalid or not supported,
    /// and an error if the list of files cannot be read.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let pairs = param.dense_image_data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        check_transform(&transform)?;
        if pairs.source().is_empty() {
            return invalid("dense_image_data_param: source is required");
        }
        if pairs.mean_file.is_some() {
            log::warn!(
                "dense_image_data_param: mean_file has no effect, as in SegNet; use mean_file of \
                 transform_param"
            );
        }
        let size = both("new_height and new_width", pairs.new_height(), pairs.new_width())?;
        let crop = both("crop_height and crop_width", pairs.crop_height(), pairs.crop_width())?;
        let label_step = label_step(&pairs)?;
        let (mirror, sizes) = (pairs.mirror(), [pairs.batch_size(), pairs.rand_skip()]);
        let shuffle = pairs.shuffle().then(|| cx.key.named_child("shuffle"));
        let open = move || open(&pairs, size, shuffle);
        Ok(Self {
            records: RecordBatches::new("dense_image_data_param", open, sizes, cx)?,
            transformer: DataTransformer::new(&transform, cx.phase, cx.key)?,
            mirror,
            crop,
            label_step,
            key: cx.key.named_child("crops"),
            batch: None,
        })
    }

    /// Reads and transforms the next batch.
    fn read_batch(&mut self) -> Result<Batch<T>> {
        let (mut images, mut labels, mut shape) = (Vec::new(), Vec::new(), None);
        let (transformer, crop, step, mirror, key) =
            (&self.transformer, self.crop, self.label_step, self.mirror, self.key);
        self.records.read(|_, number, record| {
            let [coin, row, column, _] = key.words(number);
            let is_mirrored = mirror && coin >> 31 == 1;
            let (image, mut label) = cropped(record, crop, is_mirrored, [row, column])?;
            if step > 1 {
                label = subsampled(&label, image.shape()[2], step, is_mirrored);
            }
            let found = transformer.output_shape(&image)?;
            let first = *shape.get_or_insert(found);
            if first != found {
                return wrong_shape(format!(
                    "expected an image of {first:?} as the first image of the batch, found \
                     {found:?}; set new_height and new_width, crop_height and crop_width, or a \
                     batch_size of 1"
                ));
            }
            let start = images.len();
            images.resize(start + image.count(), T::default());
            transformer.transform(number, &image, &mut images[start..])?;
            labels.extend(label.iter().map(|&label| T::from_f64(label.into())));
            Ok(())
        })?;
        Ok(Batch { images, labels, shape: shape.unwrap_or_default() })
    }
}

fn open(
    pairs: &DenseImageDataParameter,
    size: Option<[usize; 2]>,
    shuffle: Option<RngKey>,
) -> Result<Box<dyn Source>> {
    let mut source = ImagePairs::open(pairs.source(), pairs.root_folder(), size, shuffle)?;
    source.set_color(if pairs.is_color() { Color::Bgr } else { Color::Gray });
    Ok(Box::new(source))
}

/// Refuses fields that would change only the image, and not the label image.
fn check_transform(transform: &TransformationParameter) -> Result<()> {
    let fields = [
        ("mirror", transform.mirror()),
        ("crop_size", transform.crop_size() > 0),
        ("crop_h", transform.crop_h() > 0),
        ("crop_w", transform.crop_w() > 0),
        ("resize_param", transform.resize_param.is_some()),
    ];
    match fields.iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => invalid(format!(
            "transform_param: {field} would change only the image, not the label image; use mirror, \
             crop_height, crop_width, new_height and new_width of dense_image_data_param"
        )),
        None => Ok(()),
    }
}

/// Returns a height and a width, or `None` if both are 0. Fails if only one of them is 0.
fn both(names: &str, height: u32, width: u32) -> Result<Option<[usize; 2]>> {
    match (height, width) {
        (0, 0) => Ok(None),
        (0, _) | (_, 0) => {
            invalid(format!("dense_image_data_param: give both {names}, or neither"))
        }
        _ => Ok(Some([height as usize, width as usize])),
    }
}

/// Returns the step by which the label images are subsampled.
///
/// # Errors
/// Returns [`Error::InvalidData`] if the step does not divide the size of the images, or if the
/// images are cropped.
fn label_step(pairs: &DenseImageDataParameter) -> Result<usize> {
    let step = pairs.label_divide_factor();
    let (height, width) = (pairs.new_height(), pairs.new_width());
    let is_valid = step > 0 && height > 0 && height % step == 0 && width % step == 0;
    if step != 1 && (!is_valid || pairs.crop_height() > 0) {
        return invalid(format!(
            "dense_image_data_param: label_divide_factor {step} needs multiples of {step} as \
             new_height and new_width, and no crop_height and crop_width"
        ));
    }
    Ok(step as usize)
}

/// Returns the label image, reduced to 1/`step` of its height and width by nearest-neighbour
/// interpolation. `label` has been resized to `width` columns by nearest-neighbour interpolation,
/// and then mirrored if `is_mirrored` is true.
fn subsampled(label: &[u8], width: usize, step: usize, is_mirrored: bool) -> Vec<u8> {
    let first = if is_mirrored { step - 1 } else { 0 };
    let rows = label.chunks_exact(width).step_by(step);
    rows.flat_map(|row| row.iter().skip(first).step_by(step)).copied().collect()
}

/// Mirrors a pair of images if `is_mirrored` is true, and then crops both at the position that the
/// random words `position` determine. Returns the image and the values of the label image.
fn cropped(
    record: &Record,
    crop: Option<[usize; 2]>,
    is_mirrored: bool,
    position: [u32; 2],
) -> Result<(Record, Vec<u8>)> {
    let [planes, rows, columns] = record.shape();
    let [height, width] = crop.unwrap_or([rows, columns]);
    if height > rows || width > columns {
        return invalid(format!(
            "dense_image_data_param: crop_height {height} and crop_width {width} exceed an image of \
             {rows} x {columns}"
        ));
    }
    let draw = |word: u32, max: usize| ((u64::from(word) * (max as u64 + 1)) >> 32) as usize;
    let (top, left) = (draw(position[0], rows - height), draw(position[1], columns - width));
    let RecordValues::Bytes(bytes) = record.values() else {
        return invalid("expected a pair of 8-bit images");
    };
    let mut pixels = Vec::with_capacity(planes * height * width);
    for plane in bytes.chunks_exact(rows * columns) {
        for row in plane.chunks_exact(columns).skip(top).take(height) {
            match is_mirrored {
                true => pixels.extend(row.iter().rev().skip(left).take(width)),
                false => pixels.extend(&row[left..left + width]),
            }
        }
    }
    let label = pixels.split_off((planes - 1) * height * width);
    let mut image = Record::default();
    image.bytes_mut([planes - 1, height, width])?.copy_from_slice(&pixels);
    Ok((image, label))
}

impl<T: Element> Layer<T> for DenseImageDataLayer<T> {
    fn kind(&self) -> &'static str {
        "DenseImageData"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=2)
    }

    fn data_wait_time(&self) -> Option<Duration> {
        Some(self.records.wait_time())
    }

    fn source_records(&self) -> Option<u64> {
        self.records.source_records()
    }

    fn state(&self) -> Result<Option<LayerState>> {
        self.records.state()
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        if self.records.set_state(state)? {
            self.batch = None;
        }
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        if passes > 0 {
            self.records.skip_passes(passes);
            self.batch = None;
        }
        Ok(true)
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => self.read_batch()?,
        };
        let [channels, height, width] = batch.shape;
        let size = self.records.batch_size();
        top[0].reshape(&[size, channels, height, width])?;
        if let Some(label) = top.get_mut(1) {
            label.reshape(&[size, 1, height / self.label_step, width / self.label_step])?;
        }
        self.batch = Some(batch);
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => return invalid("called without reshape"),
        };
        top[0].copy_from_slice(&batch.images)?;
        if let Some(label) = top.get(1) {
            label.copy_from_slice(&batch.labels)?;
        }
        self.records.advance();
        Ok(())
    }
}
