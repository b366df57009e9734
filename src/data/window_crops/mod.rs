//! Windows of images, foreground and background in fixed shares, as R-CNN is trained on.

mod window_file;
mod crop;

use super::{
    Record, Source,
    image::{Color, Image},
    transform::Mean,
};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::{TransformationParameter, WindowDataParameter},
};
use window_file::{Thresholds, WindowBox, WindowFile};
use crop::{CropGeometry, CropSpan};
use std::{fs, path::Path};

/// Windows drawn at random from those that a file lists, brought to one size.
///
/// A batch begins with background and ends with `fg_fraction · batch_size` windows of the
/// foreground. A window is cut out with `context_pad` pixels of its surroundings on each side, as
/// counted in the result; what lies outside of the image stays 0. `crop_mode: "square"` widens it
/// to a square first, where `"warp"` does not keep its proportions.
///
/// Which windows come, and which are mirrored, depends on the key and the number of the record.
#[doc(alias = "WindowDataLayer")]
pub struct WindowCrops {
    name: String,
    root: String,
    list: WindowFile,
    /// The images' files, if they are kept.
    files: Vec<Vec<u8>>,
    stretch: CropGeometry,
    mirror: bool,
    scale: f32,
    mean: Mean,
    batch: u64,
    /// Windows of a batch that are foreground.
    foreground: u64,
    key: RngKey,
    /// Number of the next record.
    next: u64,
    /// The window that was cut out last, by channel.
    planes: Record,
}

impl WindowCrops {
    /// The windows of `window_data_param`; `crop_size`, `mirror`, `scale` and the mean come from
    /// `transform_param`, where older files are upgraded to have them.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] names the line of the list that is wrong, and tells
    /// whether there is no window to draw; [`Error::InvalidInput`] for a `crop_size` of 0 or not above
    /// twice `context_pad`, an unknown `crop_mode`, an `fg_fraction` outside of 0 to 1, and a mean
    /// that does not fit; those of reading the mean file.
    pub fn open(
        param: &WindowDataParameter,
        transform: &TransformationParameter,
        key: RngKey,
    ) -> Result<Self> {
        let wrong = |why: String| Error::invalid_input("window_data_param", why);
        let (crop, pad) = (transform.crop_size() as usize, param.context_pad() as usize);
        if crop == 0 {
            return Err(wrong("needs a `crop_size` in transform_param".into()));
        }
        if crop <= 2 * pad {
            return Err(wrong(format!("`context_pad` {pad} leaves nothing of {crop} pixels")));
        }
        let square = match param.crop_mode() {
            "warp" => false,
            "square" => true,
            other => return Err(wrong(format!("`crop_mode` {other} is neither warp nor square"))),
        };
        let (batch, fraction) = (param.batch_size(), param.fg_fraction());
        if !(0.0..=1.0).contains(&fraction) {
            return Err(wrong(format!("`fg_fraction` {fraction} is not in 0 to 1")));
        }
        // Single precision may round a batch up.
        let foreground = ((batch as f32 * fraction) as u64).min(batch.into());
        let (path, batch) = (Path::new(param.source()), u64::from(batch));
        let thresholds =
            Thresholds { foreground: param.fg_threshold(), background: param.bg_threshold() };
        let list = window_file::read(path, &thresholds)?;
        for (wanted, windows, what, threshold) in [
            (
                foreground,
                &list.foreground,
                "foreground: none has an overlap of",
                param.fg_threshold(),
            ),
            (
                batch - foreground,
                &list.background,
                "background: none has an overlap below",
                param.bg_threshold(),
            ),
        ] {
            if wanted > 0 && windows.is_empty() {
                let why = format!("{}: no windows for the {what} {threshold}", path.display());
                return Err(Error::InvalidData(why));
            }
        }
        let mean = Mean::of(transform)?;
        mean.expect([list.channels, crop, crop])?;
        let root = param.root_folder().to_owned();
        let mut files = Vec::new();
        if param.cache_images() {
            let read = |image: &String| {
                let path = format!("{root}{image}");
                fs::read(&path).map_err(|error| Error::io(path, error))
            };
            files = list.images.iter().map(read).collect::<Result<_>>()?;
        }
        Ok(Self {
            name: format!("windows of {}", path.display()),
            root,
            list,
            files,
            stretch: CropGeometry { crop, pad, square },
            mirror: transform.mirror(),
            scale: transform.scale(),
            mean,
            batch: batch.max(1),
            foreground,
            key,
            next: 0,
            planes: Record::default(),
        })
    }

    /// The window of the next record, and whether it is mirrored.
    fn draw(&self) -> (WindowBox, bool) {
        let [which, coin, ..] = self.key.words(self.next);
        let background = self.next % self.batch < self.batch - self.foreground;
        let windows = if background { &self.list.background } else { &self.list.foreground };
        // To within 2⁻³² of evenly.
        let at = (u64::from(which) * windows.len() as u64) >> 32;
        (windows[at as usize], self.mirror && coin >> 31 == 1)
    }

    fn image(&self, index: usize) -> Result<Image> {
        let color = if self.list.channels == 1 { Color::Gray } else { Color::Bgr };
        match self.files.get(index) {
            Some(bytes) => Image::decode(bytes, color),
            None => Image::read(format!("{}{}", self.root, self.list.images[index]), color),
        }
    }

    /// Leaves a window in `planes`; tells where in the record it goes.
    fn cut_out(&mut self, window: &WindowBox, mirrored: bool) -> Result<[CropSpan; 2]> {
        let image = self.image(window.image)?;
        let [_, height, width] = image.shape();
        let places = self.stretch.places(window, [height, width], mirrored);
        let [rows, columns] = places.ok_or_else(|| {
            let WindowBox { x: [x1, x2], y: [y1, y2], .. } = window;
            let which = format!("window {x1} {y1} {x2} {y2}");
            Error::InvalidData(format!(
                "{which} does not lie in an image of {height} x {width} pixels"
            ))
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
        let places = self.cut_out(&window, mirrored);
        let [rows, columns] =
            places.map_err(|error| error.context(self.list.images[window.image].clone()))?;
        let (crop, scale) = (self.stretch.crop, self.scale);
        let shape = [self.list.channels, crop, crop];
        let y = record.floats_mut(shape)?;
        y.fill(0.0);
        let super::RecordValues::Bytes(planes) = self.planes.values() else { return Ok(()) };
        for (i, x) in planes.chunks_exact(columns.len).enumerate() {
            let (channel, row) = (i / rows.len, rows.pad + i % rows.len);
            let y = &mut y[(channel * crop + row) * crop + columns.pad..][..columns.len];
            for (column, y) in y.iter_mut().enumerate() {
                let x = x[if mirrored { columns.len - 1 - column } else { column }];
                let mean = self.mean.at(shape, [channel, row, columns.pad + column]);
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
