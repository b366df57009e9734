//! The command `cortado convert-imageset`, which converts images to an LMDB database.

use super::database_writer::{DatabaseArgs, DatabaseWriter};
use clap::Args;
use cortado::{
    data::{Color, Image, ImageList, Record},
    error::{Error, Result},
    op::RngKey,
    proto::Datum,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Convert images to a database, as Caffe's convert_imageset does
///
/// The key of a record is the image's line number in the list (from 0, in eight digits), an
/// underscore and the image's path. Images that cannot be read are skipped with a warning.
#[derive(Args)]
#[command(after_help = "Example: cortado convert-imageset --resize_height 256 --resize_width 256 \
    --shuffle data/train/ data/train.txt examples/imagenet/ilsvrc12_train_lmdb")]
pub(super) struct ConvertImageset {
    /// Folder of the images, or prefix of the image paths in the list
    root: String,
    /// Text file with one image per line: its path, a space, and its label
    list: PathBuf,
    /// Folder of the new database
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// Convert images to grayscale
    #[arg(long)]
    gray: bool,
    /// Shuffle the images
    #[arg(long)]
    shuffle: bool,
    /// Seed for shuffling the images
    #[arg(long, value_name = "N", default_value_t = 0, requires = "shuffle")]
    seed: u64,
    /// Width to which images are resized, in pixels; 0 keeps the original size
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize_width: usize,
    /// Height to which images are resized, in pixels; 0 keeps the original size
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    resize_height: usize,
    /// Fail if images differ in size
    #[arg(long)]
    check_size: bool,
    /// Store encoded image files instead of pixels; a net decodes the files when it reads the
    /// database
    #[arg(long)]
    encoded: bool,
    /// Format of the encoded images: png, or jpg if images are neither resized nor converted to
    /// grayscale. Default: the format of the input file. --encode_type implies --encoded
    #[arg(long, value_name = "TYPE")]
    encode_type: Option<String>,
    #[command(flatten)]
    database_args: DatabaseArgs,
}

impl ConvertImageset {
    pub(super) fn run(self) -> Result<()> {
        if (self.resize_height == 0) != (self.resize_width == 0) {
            let reason = "--resize_height and --resize_width: pass both or neither";
            return Err(Error::InvalidData(reason.into()));
        }
        let mut images = ImageList::open(&self.list, &*self.root)?;
        let root = self.prefix(images.files());
        if self.shuffle {
            images = images.shuffled(RngKey::new(self.seed));
        }
        let files: Vec<_> = images.shuffled_files().collect();
        let total = Some(files.len() as u64);
        let mut writer = DatabaseWriter::new(&self.database, self.database_args, total)?;
        let mut first = None;
        for (index, (file, label)) in files.iter().enumerate() {
            let path = format!("{root}{file}");
            let image = match self.read(&path) {
                Ok(image) => image,
                Err(error) => {
                    log::warn!("skipped: {error}");
                    continue;
                }
            };
            if self.check_size && *first.get_or_insert(image.shape()) != image.shape() {
                let [_, height, width] = image.shape();
                let reason = format!("{path}: {height} x {width} pixels, unlike the first image");
                return Err(Error::InvalidData(reason));
            }
            let mut datum = self.datum(&path, &image)?;
            datum.label = Some(*label);
            writer.put(&format!("{index:08}_{file}"), &datum)?;
        }
        writer.finish()
    }

    /// Returns the prefix of the image paths. As in Caffe, the prefix is normally `root`, without
    /// an added slash. If `root` is a folder without a slash at the end, and the first image does
    /// not exist with this prefix, the prefix is `root` and a slash.
    fn prefix(&self, files: &[(String, i32)]) -> String {
        let root = &self.root;
        let exists = |(file, _): &(String, i32)| Path::new(&format!("{root}{file}")).exists();
        match root.ends_with('/') || !Path::new(root).is_dir() || files.first().is_some_and(exists)
        {
            true => root.clone(),
            false => format!("{root}/"),
        }
    }

    fn read(&self, path: &str) -> Result<Image> {
        let image = Image::read(path, if self.gray { Color::Gray } else { Color::Bgr })?;
        match (self.resize_height, self.resize_width) {
            (0, 0) => Ok(image),
            (height, width) => image.resize(height, width),
        }
    }

    /// Converts an image to a `Datum` without a label.
    fn datum(&self, path: &str, image: &Image) -> Result<Datum> {
        if self.encoded || self.encode_type.is_some() {
            let data = Some(self.encode(path, image)?);
            return Ok(Datum { data, encoded: Some(true), ..Default::default() });
        }
        let mut record = Record::default();
        image.store(&mut record)?;
        Ok(Datum { encoded: Some(false), ..Datum::try_from(&record)? })
    }

    /// Returns the bytes of the image's input file if the conversion changes neither its format nor
    /// its pixels, and otherwise encodes the image.
    fn encode(&self, path: &str, image: &Image) -> Result<Vec<u8>> {
        let format = |text: &str| match text.to_ascii_lowercase().as_str() {
            "jpeg" => "jpg".to_owned(),
            other => other.to_owned(),
        };
        let input_format = path.rsplit_once('.').map(|(_, end)| format(end)).unwrap_or_default();
        let output_format =
            self.encode_type.as_deref().map_or_else(|| input_format.clone(), format);
        if output_format == input_format && self.resize_height == 0 && !self.gray {
            return fs::read(path).map_err(|error| Error::io(path, error));
        }
        match output_format.as_str() {
            "png" => image.encode_png(),
            _ => {
                let reason =
                    format!("{path}: cannot encode as `{output_format}`; pass --encode_type png");
                Err(Error::InvalidData(reason))
            }
        }
    }
}
