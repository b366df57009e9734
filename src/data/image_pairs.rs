//! Pairs of an image and a label image that a list file names, as SegNet's fork of Caffe reads them.

use super::{
    image::{Color, Image, Interpolation},
    image_list::ImageList,
    record::{Record, RecordValues},
    source::Source,
};
use crate::{
    error::{Error, Result},
    limits,
    op::RngKey,
};
use std::path::Path;

/// A source of pairs of an image and a label image. Each line of the list file contains the two
/// paths, separated by whitespace. A record has the channels of the image, followed by a channel
/// with the values of the label image.
pub(crate) struct ImagePairs {
    images: ImageList,
    root: String,
    /// The paths of the label images. The label of a record of `images` is the index of its label
    /// image.
    label_images: Vec<String>,
    size: Option<[usize; 2]>,
}

impl ImagePairs {
    /// Opens the list file at `path`. The source prepends `root` to each path in the list. If
    /// `size` contains a height and a width, the source resizes the images by linear interpolation
    /// and the label images by nearest-neighbour interpolation. If `shuffle` contains a key, each
    /// epoch has a new random order.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the list file cannot be read, and [`Error::InvalidData`] for an
    /// empty list or for a line that does not contain exactly two paths. The error names the line.
    pub(crate) fn open(
        path: &str,
        root: &str,
        size: Option<[usize; 2]>,
        shuffle: Option<RngKey>,
    ) -> Result<Self> {
        let text = limits::read_to_string(Path::new(path), limits::LIST_LEN)?;
        let (mut files, mut label_images) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut paths = line.split_whitespace();
            let (Some(image), Some(label_image), None) = (paths.next(), paths.next(), paths.next())
            else {
                let reason = "expected the paths of an image and a label image, without spaces";
                return Err(Error::InvalidData(format!("{path}:{}: {reason}", number + 1)));
            };
            let index = i32::try_from(files.len())
                .map_err(|_| Error::InvalidData(format!("{path}: more than {} pairs", i32::MAX)))?;
            files.push((image.to_owned(), index));
            label_images.push(label_image.to_owned());
        }
        if files.is_empty() {
            return Err(Error::InvalidData(format!("{path}: lists no images")));
        }
        let mut images = ImageList::of_files(format!("pairs of images of {path}"), root, files);
        if let Some([height, width]) = size {
            images = images.resized(height, width);
        }
        if let Some(key) = shuffle {
            images = images.shuffled(key);
        }
        Ok(Self { images, root: root.into(), label_images, size })
    }
}

impl Source for ImagePairs {
    fn describe(&self) -> String {
        self.images.describe()
    }

    fn records(&self) -> Option<u64> {
        self.images.records()
    }

    fn set_color(&mut self, color: Color) {
        self.images.set_color(color);
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        let mut image = Record::default();
        self.images.read(&mut image)?;
        let path = format!("{}{}", self.root, self.label_images[image.label() as usize]);
        let mut label = Image::read(&path, Color::Gray)?;
        if let Some([height, width]) = self.size {
            label.check_enlarged([height, width]).map_err(|error| error.context(path.clone()))?;
            label = label.resize_by(height, width, Interpolation::Nearest)?;
        }
        let ([channels, height, width], [_, rows, columns]) = (image.shape(), label.shape());
        if [height, width] != [rows, columns] {
            return Err(Error::InvalidData(format!(
                "{path}: expected the size {height} x {width} of the image, found {rows} x {columns}"
            )));
        }
        let mut values = Record::default();
        label.store(&mut values)?;
        let bytes = record.bytes_mut([channels + 1, height, width])?;
        let (image_bytes, label_bytes) = bytes.split_at_mut(channels * height * width);
        for (to, from) in [(image_bytes, &image), (label_bytes, &values)] {
            if let RecordValues::Bytes(from) = from.values() {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        self.images.skip(count)
    }
}
