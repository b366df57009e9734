//! The layers Data, ImageData and WindowData, which read batches of records.

use super::{position, prelude::*, shard::Shard};
use crate::{
    data::{
        Color, DataReader, DataTransformer, ImageList, PrefetchOptions, Prefetcher, Source,
        WindowCrops,
    },
    proto::{LayerState, TransformationParameter},
};
use std::time::Duration;

/// A layer whose tops hold batches of records from a source. Background threads prefetch and
/// transform the records. The first top holds the data; the optional second top holds the labels.
///
/// In a run with several shards, the layer takes the records of its [`Shard`].
///
/// The field `source` is the path of a database, or a string that starts with a scheme of the
/// [`SourceRegistry`](crate::data::SourceRegistry). The layer detects the kind of database from the
/// files at the path, and ignores the field `backend`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Data" top: "image" top: "label" transform_param { scale: 0.00390625 }
///       data_param { source: "digits:test?count=100" batch_size: 10 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("image").unwrap().shape().to_vec(), [10, 1, 28, 28]);
/// assert!(net.blob("image").unwrap().to_vec()?.iter().all(|x| (0.0..1.0).contains(x)));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DataLayer<T: Element> {
    kind: &'static str,
    prefetcher: Prefetcher<T>,
    source_settings: SourceSettings,
    source_records: Option<u64>,
    /// The record at which the next batch starts, if the layer has skipped batches since its last
    /// forward pass. The next forward pass moves the prefetcher to this record.
    skipped_to: Option<u64>,
}

/// The settings with which a data layer reads its source, so that the layer can reopen the source
/// at another record.
struct SourceSettings {
    open: Box<OpenSource>,
    transformer: DataTransformer,
    /// The number of records that the layer skips at the start of the source.
    skip: u64,
    /// The number of records that the reader thread passes to the prefetching thread at a time.
    records_per_run: usize,
    /// The shard whose records the layer takes.
    shard: Shard,
}

type OpenSource = dyn Fn() -> Result<Box<dyn Source>> + Send;

impl SourceSettings {
    /// Opens the source and starts a reader thread at the shard's first record whose number is at
    /// least `first`.
    fn start(&self, first: u64) -> Result<DataReader> {
        let records = (self.shard.first_record_from(first), self.shard.count);
        DataReader::strided((self.open)()?, self.skip, records, self.records_per_run)
    }
}

/// The fields of a data layer's parameters that control how the layer batches records.
struct BatchParams {
    batch_size: u32,
    prefetch: u32,
    rand_skip: u32,
}

/// The number of batches that a layer prefetches if its parameters have no field `prefetch`.
const DEFAULT_PREFETCH: u32 = 4;
/// The largest number of records that the reader thread passes to the prefetching thread at a time.
const MAX_RECORDS_PER_RUN: usize = 64;

impl<T: Element> DataLayer<T> {
    /// Creates a layer of type `Data`, opens its source and starts its reader thread.
    ///
    /// # Errors
    /// Returns an error if the source, its first record or `transform_param` is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let data = param.data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        if data.source().is_empty() {
            return invalid("data_param: source is required");
        }
        let (sources, color) = (cx.sources.clone(), Color::forced(&transform)?);
        let batches = BatchParams {
            batch_size: data.batch_size(),
            prefetch: data.prefetch(),
            rand_skip: data.rand_skip(),
        };
        let open = move || {
            let mut source = sources.open(data.source())?;
            source.set_color(color);
            Ok(source)
        };
        Self::from_source("Data", open, &transform, batches, cx)
    }

    /// Creates a layer of type `ImageData`, which reads the [`ImageList`] of `image_data_param`.
    ///
    /// All images of the list must have the same size after resizing and cropping.
    ///
    /// # Errors
    /// Returns an error if the image list, the first image or `transform_param` is invalid. Returns
    /// [`Error::InvalidData`] if only one of `new_height` and `new_width` is given.
    #[doc(alias = "ImageDataLayer")]
    pub fn of_images(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let images = param.image_data_param.clone().unwrap_or_default();
        let size = match (images.new_height(), images.new_width()) {
            (0, 0) => None,
            (0, _) | (_, 0) => {
                return invalid("image_data_param: give both new_height and new_width, or neither");
            }
            (height, width) => Some([height as usize, width as usize]),
        };
        let shuffle = images.shuffle().then(|| cx.key.named_child("shuffle"));
        let transform = param.transform_param.clone().unwrap_or_default();
        let (batch_size, rand_skip) = (images.batch_size(), images.rand_skip());
        let batches = BatchParams { batch_size, prefetch: DEFAULT_PREFETCH, rand_skip };
        let open = move || {
            let mut source = ImageList::open(images.source(), images.root_folder())?;
            if let Some([height, width]) = size {
                source = source.resized(height, width);
            }
            if let Some(key) = shuffle {
                source = source.shuffled(key);
            }
            source.set_color(if images.is_color() { Color::Bgr } else { Color::Gray });
            Ok(Box::new(source) as Box<dyn Source>)
        };
        Self::from_source("ImageData", open, &transform, batches, cx)
    }

    /// Creates a layer of type `WindowData`, which reads the [`WindowCrops`] of
    /// `window_data_param`.
    ///
    /// # Errors
    /// Returns any error from [`WindowCrops::open`], or an error if the first window cannot be
    /// read.
    #[doc(alias = "WindowDataLayer")]
    pub fn of_windows(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let windows = param.window_data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        let key = cx.key.named_child("windows");
        let batch_size = windows.batch_size();
        let batches = BatchParams { batch_size, prefetch: DEFAULT_PREFETCH, rand_skip: 0 };
        // Pass no transformation, because `WindowCrops` already applies `transform_param` to each
        // window that it crops.
        let no_transform = TransformationParameter::default();
        let open =
            move || Ok(Box::new(WindowCrops::open(&windows, &transform, key)?) as Box<dyn Source>);
        Self::from_source("WindowData", open, &no_transform, batches, cx)
    }

    fn from_source(
        kind: &'static str,
        open: impl Fn() -> Result<Box<dyn Source>> + Send + 'static,
        transform: &TransformationParameter,
        batches: BatchParams,
        cx: &LayerContext<'_>,
    ) -> Result<Self> {
        let transformer = DataTransformer::new(transform, cx.phase, cx.key)?;
        let skip = match batches.rand_skip {
            0 => 0,
            bound => cx.key.named_child("rand_skip").words(0)[0] % bound,
        };
        let options = PrefetchOptions {
            size: batches.batch_size as usize,
            depth: batches.prefetch as usize,
            threads: cx.device.host_workers().count(),
        };
        let records_per_run = options.size.clamp(1, MAX_RECORDS_PER_RUN);
        let source_settings = SourceSettings {
            open: Box::new(open),
            transformer,
            skip: skip.into(),
            records_per_run,
            shard: cx.shard.in_phase(cx.phase),
        };
        let (reader, transformer) =
            (source_settings.start(0)?, source_settings.transformer.clone());
        let source_records = reader.source_records();
        let prefetcher = Prefetcher::new(cx.device, reader, transformer, options)?;
        Ok(Self { kind, prefetcher, source_settings, source_records, skipped_to: None })
    }
}

impl<T: Element> DataLayer<T> {
    fn next_record(&self) -> u64 {
        self.skipped_to.unwrap_or_else(|| self.prefetcher.next_record())
    }

    /// Moves the prefetcher to the shard's first record whose number is at least `position`.
    fn seek(&mut self, position: u64) -> Result<()> {
        if self.source_settings.shard.first_record_from(position) != self.prefetcher.next_record() {
            let (reader, transformer) =
                (self.source_settings.start(position)?, self.source_settings.transformer.clone());
            self.prefetcher.restart(reader, transformer)?;
        }
        self.skipped_to = None;
        Ok(())
    }
}

impl<T: Element> Layer<T> for DataLayer<T> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=2)
    }

    fn data_wait_time(&self) -> Option<Duration> {
        Some(self.prefetcher.wait_time())
    }

    fn source_records(&self) -> Option<u64> {
        self.source_records
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.next_record())
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.seek(position::of(state)?)
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        let skipped_records = self.prefetcher.record_after(passes) - self.prefetcher.next_record();
        if passes > 0 {
            self.skipped_to = Some(self.next_record().saturating_add(skipped_records));
        }
        Ok(true)
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = self.prefetcher.shape();
        top[0].reshape(&shape)?;
        top.get_mut(1).map_or(Ok(()), |label| label.reshape(&shape[..1]))
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if let Some(position) = self.skipped_to {
            self.seek(position)?;
        }
        let batch = self.prefetcher.next()?;
        let data = top[0].swap_data(&batch.data);
        let result = data.and_then(|()| top.get(1).map_or(Ok(()), |l| l.swap_data(&batch.label)));
        self.prefetcher.recycle(batch);
        result
    }
}
