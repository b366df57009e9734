//! The AnnotatedData layer, which reads images with boxes around objects.

use super::{labelled_boxes::ROW_LEN, prelude::*, record_batches::RecordBatches};
use crate::{
    data::{AnnotatedBox, BoxTransformer, Color},
    proto::LayerState,
};
use std::time::Duration;

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
/// 1. `distort_param` of `transform_param` changes the colors at random: the brightness by up to
///    `brightness_delta`, the contrast and the saturation by a factor, and the hue by up to
///    `hue_delta`, in units of two degrees, each with its own probability. The contrast changes
///    either before or after the saturation and the hue, at random. With the probability
///    `random_order_prob`, the channels get a random order.
/// 2. With the probability `prob`, `expand_param` puts the image at a random position in a larger
///    image, up to `max_expand_ratio` times as wide and high, whose other pixels are `mean_value`.
/// 3. Each `batch_sampler` of `annotated_data_param` draws crops with a random scale, ratio and
///    position, until `max_sample` crops satisfy `sample_constraint` for one of the boxes, or
///    `max_trials` crops have been drawn. A random one of the crops that satisfy their sampler's
///    constraint replaces the image; without such a crop, the image remains whole.
/// 4. `resize_param` resizes the image with one of the `interp_mode`s, which the layer draws at
///    random. The `resize_mode` `WARP` changes the aspect ratio. `FIT_SMALL_SIZE` keeps the ratio
///    and gives the smallest image that covers `height` × `width` pixels. `FIT_LARGE_SIZE_AND_PAD`
///    keeps the ratio and adds a border to the largest image that fits. `pad_mode` selects the
///    pixels of the border: `pad_value`, the mirrored image, or the nearest pixel of the image.
/// 5. `noise_param` applies the selected changes in this order: `decolorize`, `gauss_blur`,
///    `hist_eq`, `erode`, `posterize`, `inverse`, `saltpepper` and `convert_to_hsv`.
/// 6. `crop_size` (or `crop_h` and `crop_w`), `mirror`, `mean_file`, `mean_value` and `scale` have
///    the same effect as in the layer [Data](super::DataLayer).
///
/// Each border and each crop moves the boxes, and clips them to the image. `emit_constraint`
/// selects the boxes that remain: those with their center in the image (`CENTER`), or those of
/// which more than the fraction `emit_overlap` lies in the image (`MIN_OVERLAP`). Without
/// `emit_constraint`, all boxes that intersect the image remain. In the mode `FIT_SMALL_SIZE`, if
/// `height_scale` and `width_scale` are set, the left and right edges of the boxes are in units of
/// `width_scale` pixels, and the top and bottom edges in units of `height_scale` pixels.
///
/// The pixels equal those of OpenCV's scalar code. The vector code of OpenCV 4 truncates some
/// colors that older versions and cortado round. Intel's library IPP, which some builds of OpenCV
/// use, rounds some pixels of cubic interpolation differently.
///
/// The AnnotatedData layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where the
/// field `annotated_data_param` of a layer has the number 200. cortado refuses the fields `jpeg`,
/// `clahe` and `convert_to_lab` of `noise_param`, and `mean_file` together with `expand_param`; the
/// error names the field. As in the fork, `prob` of `resize_param` and of `noise_param` has no
/// effect. cortado treats every record as an image with boxes, and ignores `label_map_file` and
/// `anno_type`. The fork compresses the image as JPEG after each of the steps 1 to 3, but cortado
/// does not. In the fork, a crop can satisfy a `sample_constraint` with several kinds of bounds
/// although the crop violates one of them.
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
    records: RecordBatches,
    transformer: BoxTransformer,
    /// The next batch, which `reshape` prepares and the forward pass consumes.
    batch: Option<Batch<T>>,
}

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
        let transformer = BoxTransformer::new(&annotated, &transform, cx.phase, cx.key)?;
        let (sources, color) = (cx.sources.clone(), Color::forced(&transform)?);
        let sizes = [data.batch_size(), data.rand_skip()];
        let open = move || {
            let mut source = sources.open(data.source())?;
            source.set_color(color);
            if !source.read_annotations() {
                return invalid(format!(
                    "source {}: only databases can contain the AnnotatedDatum messages of this layer",
                    data.source()
                ));
            }
            Ok(source)
        };
        let records = RecordBatches::new("data_param", open, sizes, cx)?;
        Ok(Self { records, transformer, batch: None })
    }

    /// Reads and transforms the next batch.
    fn read_batch(&mut self) -> Result<Batch<T>> {
        let (mut values, mut rows, mut shape) = (Vec::new(), Vec::new(), None);
        let mut boxes = Vec::new();
        let transformer = &self.transformer;
        self.records.read(|item, number, record| {
            boxes.clear();
            let found = transformer.transform(number, record, &mut values, &mut boxes)?;
            let first = *shape.get_or_insert(found);
            if first != found {
                return wrong_shape(format!(
                    "expected an image of {first:?} as the first image of the batch, found \
                     {found:?}; resize the images by resize_param, or set batch_size to 1"
                ));
            }
            boxes.iter().for_each(|found| rows.extend(row(item, found)));
            Ok(())
        })?;
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
        top[0].reshape(&[self.records.batch_size(), channels, height, width])?;
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
        self.records.advance();
        Ok(())
    }
}
