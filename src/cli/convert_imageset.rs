//! `cortado convert-imageset`

use super::database_writer::{DatabaseArgs, DatabaseWriter};
use crate::{
    data::{Color, Image, ImageList, Record},
    error::{Error, Result},
    op::RngKey,
    proto::Datum,
};
use clap::Args;
use std::{fs, path::PathBuf};

/// Makes a database of images, as Caffe's convert_imageset does
///
/// An image has its line's number, from 0 and in eight digits, an underscore and its path as its
/// key. One that cannot be read is left out, with a warning.
#[derive(Args)]
#[command(after_help = "Example: cortado convert-imageset --resize_height 256 --resize_width 256 \
    --shuffle data/train/ data/train.txt examples/imagenet/ilsvrc12_train_lmdb")]
pub(super) struct ConvertImageset {
    /// What is put before the paths in the list: a folder's ends in a slash
    root: String,
    /// Images, one a line: a path, a space and a label
    list: PathBuf,
    /// Folder to be made
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// Makes grey images
    #[arg(long)]
    gray: bool,
    /// Mixes the images
    #[arg(long)]
    shuffle: bool,
    /// Mixes them in another order
    #[arg(long, value_name = "N", default_value_t = 0, requires = "shuffle")]
    seed: u64,
    /// Width that images are brought to; 0 leaves them as they are
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize_width: usize,
    /// Height that images are brought to
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize_height: usize,
    /// Stops at an image of another size than the first
    #[arg(long)]
    check_size: bool,
    /// Stores files of images, which nets decode, in place of pixels
    #[arg(long)]
    encoded: bool,
    /// What such files are: png, or jpg where no image has to be resized; by default, what the
    /// image's own file is. Implies --encoded
    #[arg(long, value_name = "TYPE")]
    encode_type: Option<String>,
    #[command(flatten)]
    options: DatabaseArgs,
}

impl ConvertImageset {
    pub(super) fn run(self) -> Result<()> {
        if (self.resize_height == 0) != (self.resize_width == 0) {
            let why = "--resize_height and --resize_width go together";
            return Err(Error::InvalidData(why.into()));
        }
        let mut images = ImageList::open(&self.list, &*self.root)?;
        if self.shuffle {
            images = images.shuffled(RngKey::new(self.seed));
        }
        let files: Vec<_> = images.shuffled_files().collect();
        let total = Some(files.len() as u64);
        let mut conversion = DatabaseWriter::new(&self.database, self.options, total)?;
        let mut first = None;
        for (index, (file, label)) in files.iter().enumerate() {
            let path = format!("{}{file}", self.root);
            let image = match self.read(&path) {
                Ok(image) => image,
                Err(error) => {
                    log::warn!("left out: {error}");
                    continue;
                }
            };
            if self.check_size && *first.get_or_insert(image.shape()) != image.shape() {
                let [_, height, width] = image.shape();
                let why = format!("{path}: {height} x {width} pixels, unlike the first");
                return Err(Error::InvalidData(why));
            }
            let mut datum = self.datum(&path, &image)?;
            datum.label = Some(*label);
            conversion.put(&format!("{index:08}_{file}"), &datum)?;
        }
        conversion.finish()
    }

    fn read(&self, path: &str) -> Result<Image> {
        let image = Image::read(path, if self.gray { Color::Gray } else { Color::Bgr })?;
        match (self.resize_height, self.resize_width) {
            (0, 0) => Ok(image),
            (height, width) => image.resize(height, width),
        }
    }

    /// The record of an image, whose label is still to be set.
    fn datum(&self, path: &str, image: &Image) -> Result<Datum> {
        if self.encoded || self.encode_type.is_some() {
            let data = Some(self.encode(path, image)?);
            return Ok(Datum { data, encoded: Some(true), ..Default::default() });
        }
        let mut record = Record::default();
        image.store(&mut record)?;
        Ok(Datum { encoded: Some(false), ..Datum::try_from(&record)? })
    }

    /// A file as it is, if it will do, or else a new one.
    fn encode(&self, path: &str, image: &Image) -> Result<Vec<u8>> {
        let kind = |text: &str| match text.to_ascii_lowercase().as_str() {
            "jpeg" => "jpg".to_owned(),
            other => other.to_owned(),
        };
        let own = path.rsplit_once('.').map(|(_, end)| kind(end)).unwrap_or_default();
        let wanted = self.encode_type.as_deref().map_or_else(|| own.clone(), kind);
        if wanted == own && self.resize_height == 0 && !self.gray {
            return fs::read(path).map_err(|error| Error::io(path, error));
        }
        match wanted.as_str() {
            "png" => image.encode_png(),
            _ => {
                let why = "cannot be made, only kept; give --encode_type png";
                Err(Error::InvalidData(format!("{path}: a file of type `{wanted}` {why}")))
            }
        }
    }
}
