//! Crops of image windows for R-CNN training, as Caffe's WindowData layer reads them.

mod crop;
mod window_file;

use super::{
    image::{Color, Image},
    record::{Record, RecordValues},
    source::Source,
    transform::Mean,
};
use crate::{
    error::{Error, Result},
    limits,
    op::RngKey,
    proto::{TransformationParameter, WindowDataParameter},
};
use crop::{CropGeometry, CropSpan};
use std::path::Path;
use window_file::{Thresholds, WindowBox, WindowFile};

/// Random image windows that Caffe's `window_file` lists, cropped and resized to one size.
///
/// A batch starts with background windows and ends with `fg_fraction · batch_size` foreground
/// windows. A crop includes `context_pad` pixels of context on each side of the window, counted
/// after resizing. Pixels of the crop that lie outside the image are 0. `crop_mode: "square"`
/// widens the window to a square before resizing; `"warp"` changes the window's aspect ratio.
///
/// The choice of a window, and whether to mirror the window, depend only on the key and the
/// record's number.
///
/// ```no_run
/// use cortado::{data::{Record, Source, WindowCrops}, op::RngKey, proto::parse_text};
///
/// let windows = r#"source: "windows.txt" batch_size: 128 fg_fraction: 0.25 context_pad: 16"#;
/// let (windows, crops) = (parse_text(windows, "param")?, parse_text("crop_size: 227", "param")?);
/// let mut source = WindowCrops::open(&windows, &crops, RngKey::new(1))?;
/// let mut record = Record::default();
/// source.read(&mut record)?; // the first 96 records of a batch are background windows
/// assert_eq!(record.label(), 0);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "WindowDataLayer")]
pub struct WindowCrops {
    name: String,
    root: String,
    windows: WindowFile,
    /// The contents of the image files; empty unless `cache_images` is set.
    files: Vec<Vec<u8>>,
    geometry: CropGeometry,
    mirror: bool,
    scale: f32,
    mean: Mean,
    batch: u64,
    foreground: u64,
    key: RngKey,
    next: u64,
    planes: Record,
}

impl WindowCrops {
    /// Opens the window file that `window_data_param` names. `crop_size`, `mirror`, `scale` and the
    /// mean come from `transform_param`. Upgrading an old net definition moves `crop_size`,
    /// `mirror`, `scale` and the mean to `transform_param`.
    ///
    /// # Errors
    /// - [`Error::Io`] if the window file or an image cannot be read, and the errors of reading the
    ///   mean file;
    /// - [`Error::InvalidData`] for an invalid line of the window file, and for a window file
    ///   without the foreground or background windows that a batch needs;
    /// - [`Error::InvalidInput`] for a `crop_size` of 0 or at most twice `context_pad`, an unknown
    ///   `crop_mode`, an `fg_fraction` outside 0 to 1, and a mean of the wrong shape.
    pub fn open(
        param: &WindowDataParameter,
        transform: &TransformationParameter,
        key: RngKey,
    ) -> Result<Self> {
        let invalid = |reason: String| Error::invalid_input("window_data_param", reason);
        let (crop, pad) = (transform.crop_size() as usize, param.context_pad() as usize);
        if crop == 0 {
            return Err(invalid("`crop_size` is missing in transform_param".into()));
        }
        if pad >= crop.div_ceil(2) {
            let reason =
                format!("`context_pad` {pad} must be less than half of `crop_size` {crop}");
            return Err(invalid(reason));
        }
        let bytes = crop.saturating_mul(crop).saturating_mul(3);
        if bytes > limits::RESIZED_LEN {
            let limit = limits::RESIZED_LEN;
            let reason = format!(
                "a window of `crop_size` {crop} needs {bytes} bytes, but the size limit for an \
                 enlarged image is {limit} bytes"
            );
            return Err(invalid(reason));
        }
        let square = match param.crop_mode() {
            "warp" => false,
            "square" => true,
            other => {
                return Err(invalid(format!("unknown `crop_mode` {other}; use warp or square")));
            }
        };
        let (batch, fraction) = (param.batch_size().max(1), param.fg_fraction());
        if !(0.0..=1.0).contains(&fraction) {
            return Err(invalid(format!("`fg_fraction` must be in 0 to 1, found {fraction}")));
        }
        // Limit the number of foreground windows to `batch`, because the cast to `f32` may round
        // `batch` up.
        let foreground = ((batch as f32 * fraction) as u64).min(batch.into());
        let (path, batch) = (Path::new(param.source()), u64::from(batch));
        let thresholds =
            Thresholds { foreground: param.fg_threshold(), background: param.bg_threshold() };
        let windows = window_file::read(path, &thresholds)?;
        let missing = |class: &str, relation: &str, threshold: f32| {
            let reason =
                format!("no {class} window: no window has an overlap {relation} {threshold}");
            Err(Error::InvalidData(format!("{}: {reason}", path.display())))
        };
        if foreground > 0 && windows.foreground.is_empty() {
            return missing("foreground", "of at least", thresholds.foreground);
        }
        if foreground < batch && windows.background.is_empty() {
            return missing("background", "below", thresholds.background);
        }
        let mean = Mean::from_param(transform)?;
        mean.check_covers([windows.channels, crop, crop])?;
        let root = param.root_folder().to_owned();
        let mut files = Vec::new();
        if param.cache_images() {
            let read = |image: &String| {
                let path = format!("{root}{image}");
                limits::read(path.as_ref(), limits::IMAGE_LEN)
            };
            files = windows.images.iter().map(read).collect::<Result<_>>()?;
        }
        Ok(Self {
            name: format!("windows of {}", path.display()),
            root,
            windows,
            files,
            geometry: CropGeometry { crop, pad, square },
            mirror: transform.mirror(),
            scale: transform.scale(),
            mean,
            batch,
            foreground,
            key,
            next: 0,
            planes: Record::default(),
        })
    }

    /// Returns the window of the next record, and whether to mirror the window.
    fn draw(&self) -> (WindowBox, bool) {
        let [word, coin, ..] = self.key.words(self.next);
        let background = self.next % self.batch < self.batch - self.foreground;
        let windows = if background { &self.windows.background } else { &self.windows.foreground };
        // The random index is uniform, except for a bias of at most 2⁻³².
        let index = (u64::from(word) * windows.len() as u64) >> 32;
        (windows[index as usize], self.mirror && coin >> 31 == 1)
    }

    fn image(&self, index: usize) -> Result<Image> {
        let color = if self.windows.channels == 1 { Color::Gray } else { Color::Bgr };
        match self.files.get(index) {
            Some(bytes) => Image::decode(bytes, color),
            None => Image::read(format!("{}{}", self.root, self.windows.images[index]), color),
        }
    }

    /// Crops and resizes a window, and stores the pixels in `planes`. Returns the row and column
    /// spans of the window.
    fn crop_window(&mut self, window: &WindowBox, mirrored: bool) -> Result<[CropSpan; 2]> {
        let image = self.image(window.image)?;
        let [_, height, width] = image.shape();
        let spans = self.geometry.spans(window, [height, width], mirrored);
        let [rows, columns] = spans.ok_or_else(|| {
            let WindowBox { x: [x1, x2], y: [y1, y2], .. } = window;
            let image = format!("the image of {height} x {width} pixels");
            Error::InvalidData(format!("window {x1} {y1} {x2} {y2} is outside {image}"))
        })?;
        let part = image.part([rows.from, columns.from], [rows.count, columns.count])?;
        part.resize(rows.len, columns.len)?.store(&mut self.planes)?;
        Ok([rows, columns])
    }
}

impl Source for WindowCrops {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn records(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        let (window, mirrored) = self.draw();
        let spans = self.crop_window(&window, mirrored);
        let [rows, columns] =
            spans.map_err(|error| error.context(self.windows.images[window.image].clone()))?;
        let (crop, scale) = (self.geometry.crop, self.scale);
        let shape = [self.windows.channels, crop, crop];
        let y = record.floats_mut(shape)?;
        y.fill(0.0);
        let RecordValues::Bytes(planes) = self.planes.values() else { return Ok(()) };
        for (i, x) in planes.chunks_exact(columns.len).enumerate() {
            let (channel, row) = (i / rows.len, rows.pad + i % rows.len);
            let y = &mut y[(channel * crop + row) * crop + columns.pad..][..columns.len];
            for (column, y) in y.iter_mut().enumerate() {
                let x = x[if mirrored { columns.len - 1 - column } else { column }];
                let mean = self.mean.get(shape, [channel, row, columns.pad + column]);
                *y = (f32::from(x) - mean) * scale;
            }
        }
        record.set_label(window.label);
        self.next += 1;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        self.next = self.next.wrapping_add(count);
        Ok(())
    }
}

#[cfg(all(test, feature = "image"))]
mod tests;
