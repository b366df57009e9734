//! The AnnotatedData layer, which reads images with boxes around objects.

use super::{labelled_boxes::ROW_LEN, position, prelude::*, shard::Shard};
use crate::{
    data::{AnnotatedBox, BoxTransformer, Color, DataReader, SourceRegistry},
    proto::LayerState,
};
use std::time::{Duration, Instant};

/// A layer whose tops hold batches of images and the boxes around the objects in them, from a
/// database of `AnnotatedDatum` messages.
///
/// The first top has the shape batch × channels × height × width. The second top, which is
/// optional, has the shape `1 × 1 × n × 8`: one row for each of the `n` boxes of the batch, with
/// the index of the image in the batch, the label, the number of the object, the left, top, right
/// and bottom edges as fractions of the image's size, and whether the object is difficult (0 or 1).
/// For a batch without boxes, the second top has one row, whose values are all −1.
///
/// `data_param` has the fields `source`, `batch_size` and `rand_skip`. The transformation of an
/// image has these steps:
/// 1. Each `batch_sampler` of `annotated_data_param` draws crops with a random scale, ratio and
///    position, until `max_sample` crops satisfy `sample_constraint` for one of the boxes, or
///    `max_trials` crops have been drawn. A random one of the crops that satisfy their sampler's
///    constraint replaces the image; without such a crop, the image remains whole.
/// 2. `resize_param` of `transform_param` resizes the image, with the `resize_mode` `WARP` and the
///    `interp_mode` `LINEAR`.
/// 3. `crop_size`, `mirror`, `mean_file`, `mean_value` and `scale` have the same effect as in the
///    layer [Data](super::DataLayer).
///
/// Each crop moves and clips the boxes. `emit_constraint` selects the boxes that remain in a crop:
/// those with their center in the crop (`CENTER`), or those of which more than the fraction
/// `emit_overlap` lies in the crop (`MIN_OVERLAP`). Without `emit_constraint`, all boxes that
/// intersect the crop remain.
///
/// The AnnotatedData layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where its
/// field `annotated_data_param` has the number 200. cortado does not support `distort_param`,
/// `expand_param`, `noise_param`, `crop_h`, `crop_w` and the other modes of `resize_param`; each
/// causes an error that names the field. cortado treats every record as an image with boxes, and
/// ignores `label_map_file` and `anno_type`. In the fork, a crop can satisfy a `sample_constraint`
/// with several kinds of bounds although the crop violates one of them.
///
/// A thread reads and decodes the records ahead. The thread that runs the net transforms them, in
/// `reshape`, because the number of boxes differs from batch to batch.
///
/// ```no_run
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "AnnotatedData" top: "data" top: "label"
///       data_param { source: "VOC0712_trainval_lmdb" batch_size: 32 }
///       transform_param { mirror: true mean_value: [104, 117, 123]
///         resize_param { height: 300 width: 300 } emit_constraint { emit_type: CENTER } }
///       annotated_data_param { batch_sampler { max_sample: 1 max_trials: 1 }
///         batch_sampler { max_sample: 1 max_trials: 50
///           sampler { min_scale: 0.3 min_aspect_ratio: 0.5 max_aspect_ratio: 2 }
///           sample_constraint { min_jaccard_overlap: 0.5 } } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("label").unwrap().shape()[3], 8);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct AnnotatedDataLayer<T: Element> {
    records: Records,
    reader: DataReader,
    transformer: BoxTransformer,
    batch_size: usize,
    /// The next batch, which `reshape` prepares and the forward pass consumes.
    batch: Option<Batch<T>>,
    /// The number of the first record of the next batch.
    next_record: u64,
    wait_time: Duration,
}

/// The settings with which the layer opens its source.
struct Records {
    sources: SourceRegistry,
    source: String,
    color: Color,
    skip: u64,
    shard: Shard,
    batch_size: usize,
}

impl Records {
    /// Starts a reader at the shard's first record whose number is at least `first`.
    fn start(&self, first: u64) -> Result<DataReader> {
        let mut source = self.sources.open(&self.source)?;
        source.set_color(self.color);
        if !source.read_annotations() {
            return invalid(format!(
                "source {}: only databases can contain the AnnotatedDatum messages of this layer",
                self.source
            ));
        }
        let records = (self.shard.first_record_from(first), self.shard.count);
        DataReader::strided(source, self.skip, records, self.batch_size.clamp(1, MAX_RUN))
    }
}

/// Largest number of records that the reader thread passes on at a time.
const MAX_RUN: usize = 64;

struct Batch<T> {
    values: Vec<T>,
    /// Channels, height and width of each image.
    shape: [usize; 3],
    /// The values of the second top.
    rows: Vec<f32>,
}

impl<T: Element> AnnotatedDataLayer<T> {
    /// Creates the layer, opens its source and starts its reader thread.
    ///
    /// # Errors
    /// Returns an error, which names the field, if a field is missing, invalid or not supported,
    /// and an error if the source cannot be read.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let data = param.data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        let annotated = param.annotated_data_param.clone().unwrap_or_default();
        if data.source().is_empty() {
            return invalid("data_param: source is required");
        }
        let batch_size = data.batch_size() as usize;
        if batch_size == 0 {
            return invalid("data_param: batch_size is required and must be positive");
        }
        let skip = match data.rand_skip() {
            0 => 0,
            bound => cx.key.named_child("rand_skip").words(0)[0] % bound,
        };
        let transformer = BoxTransformer::new(&annotated, &transform, cx.phase, cx.key)?;
        let records = Records {
            sources: cx.sources.clone(),
            source: data.source().to_owned(),
            color: Color::forced(&transform)?,
            skip: skip.into(),
            shard: cx.shard.in_phase(cx.phase),
            batch_size,
        };
        let reader = records.start(0)?;
        let next_record = reader.next_record();
        let wait_time = Duration::ZERO;
        Ok(Self { records, reader, transformer, batch_size, batch: None, next_record, wait_time })
    }

    /// Reads and transforms the next batch.
    fn read_batch(&mut self) -> Result<Batch<T>> {
        if self.reader.next_record() != self.next_record {
            self.reader = self.records.start(self.next_record)?;
        }
        let (mut values, mut rows, mut shape) = (Vec::new(), Vec::new(), None);
        let (mut item, mut boxes) = (0, Vec::new());
        while item < self.batch_size {
            let (start, first, stride) =
                (Instant::now(), self.reader.next_record(), self.reader.stride());
            let records = self.reader.records()?;
            self.wait_time += start.elapsed();
            let count = records.len().min(self.batch_size - item);
            let mut failure = None;
            for (number, record) in (0..count as u64).map(|i| first + i * stride).zip(records) {
                boxes.clear();
                let found = self.transformer.transform(number, record, &mut values, &mut boxes);
                let found = found.and_then(|found| match *shape.get_or_insert(found) == found {
                    true => Ok(()),
                    false => wrong_shape(format!(
                        "expected an image of {shape:?} as the first image of the batch, found \
                         {found:?}; resize the images by resize_param"
                    )),
                });
                if let Err(error) = found {
                    failure = Some((number, error));
                    break;
                }
                boxes.iter().for_each(|found| rows.extend(row(item, found)));
                item += 1;
            }
            if let Some((number, error)) = failure {
                return Err(self.reader.locate_error(number, error));
            }
            self.reader.consume(count);
        }
        if rows.is_empty() {
            rows = vec![-1.0; ROW_LEN];
        }
        Ok(Batch { values, shape: shape.unwrap_or_default(), rows })
    }
}

/// Returns the second top's row for a box in the image with the index `item`.
fn row(item: usize, found: &AnnotatedBox) -> [f32; ROW_LEN] {
    let [left, top, right, bottom] = found.edges;
    let difficult = if found.is_difficult { 1.0 } else { 0.0 };
    let (label, instance) = (found.label as f32, found.instance as f32);
    [item as f32, label, instance, left, top, right, bottom, difficult]
}

impl<T: Element> Layer<T> for AnnotatedDataLayer<T> {
    fn kind(&self) -> &'static str {
        "AnnotatedData"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=2)
    }

    fn data_wait_time(&self) -> Option<Duration> {
        Some(self.wait_time)
    }

    fn source_records(&self) -> Option<u64> {
        self.reader.source_records()
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.next_record)
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        let position = self.records.shard.first_record_from(position::of(state)?);
        if position != self.next_record {
            (self.next_record, self.batch) = (position, None);
        }
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        if passes > 0 {
            let records = (self.batch_size as u64).saturating_mul(self.records.shard.count);
            self.next_record = self.next_record.saturating_add(passes.saturating_mul(records));
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
        top[0].reshape(&[self.batch_size, channels, height, width])?;
        if let Some(label) = top.get_mut(1) {
            label.reshape(&[1, 1, batch.rows.len() / ROW_LEN, ROW_LEN])?;
        }
        self.batch = Some(batch);
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => return invalid("called without reshape"),
        };
        top[0].copy_from_slice(&batch.values)?;
        if let Some(label) = top.get(1) {
            let rows: Vec<T> = batch.rows.iter().map(|&x| T::from_f64(x.into())).collect();
            label.copy_from_slice(&rows)?;
        }
        self.next_record = self.reader.next_record();
        Ok(())
    }
}
