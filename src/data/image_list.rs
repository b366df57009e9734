//! Images that a list file names, as Caffe's ImageData layer reads them.

use super::{
    image::{Color, Image},
    record::Record,
    source::Source,
};
use crate::{
    error::{Error, Result},
    limits,
    op::RngKey,
};
use rand::seq::SliceRandom;
use std::path::Path;

/// A source of the images that a list file names. Each line of the list file contains a path, a
/// space and a label.
///
/// As in Caffe, a path may contain spaces. With shuffling, the order of an epoch depends only on
/// the key and the epoch number.
///
/// ```no_run
/// use cortado::{data::{DataReader, ImageList}, op::RngKey};
///
/// // `list.txt` contains lines such as `cats/7.jpg 0`, relative to `images/`.
/// let list = ImageList::open("list.txt", "images/")?.resized(256, 256).shuffled(RngKey::new(1));
/// println!("{} images", list.files().len());
/// let mut reader = DataReader::new(Box::new(list), 0, 16)?;
/// assert_eq!(reader.records()?[0].shape(), [3, 256, 256]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "ImageDataLayer")]
pub struct ImageList {
    name: String,
    root: String,
    files: Vec<(String, i32)>,
    color: Color,
    size: Option<[usize; 2]>,
    shuffle: Option<RngKey>,
    /// The order of the files in the current epoch; empty without shuffling.
    order: Vec<usize>,
    next: usize,
    epoch: u64,
}

impl ImageList {
    /// Opens the list file at `path`. The source prepends `root` to each path in the list. A `root`
    /// that is a directory must end with a slash.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the list file cannot be read, and [`Error::InvalidData`] for an
    /// empty list or a line without a label. The error message names the invalid line of the list
    /// file.
    pub fn open(path: impl AsRef<Path>, root: impl Into<String>) -> Result<Self> {
        let path = path.as_ref();
        let files = read_list(path)?;
        Ok(Self::of_files(format!("images of {}", path.display()), root, files))
    }

    /// Creates a source of the given files and their labels. Error messages call the source `name`.
    pub(super) fn of_files(
        name: String,
        root: impl Into<String>,
        files: Vec<(String, i32)>,
    ) -> Self {
        Self {
            name,
            root: root.into(),
            files,
            color: Color::Bgr,
            size: None,
            shuffle: None,
            order: Vec::new(),
            next: 0,
            epoch: 0,
        }
    }

    /// Makes the source resize all images to `height × width` pixels.
    #[must_use]
    pub fn resized(mut self, height: usize, width: usize) -> Self {
        self.size = Some([height, width]);
        self
    }

    /// Makes the source shuffle the files anew for each epoch.
    #[must_use]
    pub fn shuffled(mut self, key: RngKey) -> Self {
        self.shuffle = Some(key);
        self.shuffle_epoch();
        self
    }

    /// Returns the paths (without `root`) and the labels, in the order of the list file.
    pub fn files(&self) -> &[(String, i32)] {
        &self.files
    }

    /// Returns the paths and the labels in the order of the current epoch.
    pub fn shuffled_files(&self) -> impl Iterator<Item = (String, i32)> {
        (0..self.files.len()).map(|position| self.files[self.file_index(position)].clone())
    }

    fn file_index(&self, position: usize) -> usize {
        self.order.get(position).copied().unwrap_or(position)
    }

    fn shuffle_epoch(&mut self) {
        if let Some(key) = self.shuffle {
            self.order = (0..self.files.len()).collect();
            self.order.shuffle(&mut key.child(self.epoch).rng());
        }
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.files.len() {
            (self.next, self.epoch) = (0, self.epoch.wrapping_add(1));
            self.shuffle_epoch();
        }
    }
}

impl Source for ImageList {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn records(&self) -> Option<u64> {
        Some(self.files.len() as u64)
    }

    fn set_color(&mut self, color: Color) {
        self.color = color;
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        let (path, label) = &self.files[self.file_index(self.next)];
        let path = format!("{}{path}", self.root);
        let image = Image::read(&path, self.color)?;
        let result = match self.size {
            Some(size) => resize_image(&image, size).and_then(|image| image.store(record)),
            None => image.store(record),
        };
        result.map_err(|error| error.context(path))?;
        record.set_label(*label);
        self.advance();
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        let len = self.files.len() as u64;
        let next = self.next as u64 + count % len;
        let epochs = count / len + next / len;
        self.next = (next % len) as usize;
        if epochs > 0 {
            self.epoch = self.epoch.wrapping_add(epochs);
            self.shuffle_epoch();
        }
        Ok(())
    }
}

/// Resizes an image. Fails if the result is larger than both the original and the limit
/// `RESIZED_LEN`.
fn resize_image(image: &Image, [height, width]: [usize; 2]) -> Result<Image> {
    image.check_enlarged([height, width])?;
    image.resize(height, width)
}

/// Reads the paths and labels of a list file. Skips blank lines.
fn read_list(path: &Path) -> Result<Vec<(String, i32)>> {
    let text = limits::read_to_string(path, limits::LIST_LEN)?;
    let mut files = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = line.trim_end().rsplit_once(' ');
        let pair = pair.and_then(|(path, label)| Some((path.trim_end(), label.parse().ok()?)));
        let Some((file, label)) = pair.filter(|(file, _)| !file.is_empty()) else {
            let reason = "expected a path, a space and an integer label";
            return Err(Error::InvalidData(format!("{}:{}: {reason}", path.display(), index + 1)));
        };
        files.push((file.to_owned(), label));
    }
    if files.is_empty() {
        return Err(Error::InvalidData(format!("{}: lists no images", path.display())));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn list(text: &str) -> Result<ImageList> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list.txt");
        fs::write(&path, text).unwrap();
        ImageList::open(path, "")
    }

    #[test]
    fn list_lines_without_a_path_and_a_label_are_rejected() {
        let images = list("a b.jpg 3\n\nc.png -1 \r\n").unwrap();
        assert_eq!(images.files(), [("a b.jpg".to_owned(), 3), ("c.png".to_owned(), -1)]);
        for (text, want) in [
            ("a.jpg 1\nb.jpg", "list.txt:2: expected a path, a space and an integer label"),
            ("a.jpg 1.5", "list.txt:1: "),
            (" 1", "list.txt:1: "),
            ("\n", "list.txt: lists no images"),
        ] {
            let error = list(text).err().unwrap().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn each_epoch_of_an_image_list_has_a_different_order_that_depends_only_on_the_key() {
        let text: String = (0..40).map(|i| format!("{i}.png {i}\n")).collect();
        let epoch = |images: &mut ImageList| {
            let order = images.order.clone();
            images.skip(40).unwrap();
            order
        };
        let shuffled = |key| list(&text).unwrap().shuffled(RngKey::new(key));
        let mut images = shuffled(1);
        let (first, second) = (epoch(&mut images), epoch(&mut images));
        assert_ne!(first, second);
        for order in [&first, &second] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..40).collect::<Vec<_>>());
        }
        let mut same_key = shuffled(1);
        assert_eq!([epoch(&mut same_key), epoch(&mut same_key)], [first.clone(), second]);
        assert_ne!(epoch(&mut shuffled(2)), first);

        let (mut advanced, mut skipped) = (shuffled(1), shuffled(1));
        for count in [0, 3, 36, 1, 40, 95] {
            (0..count).for_each(|_| advanced.advance());
            skipped.skip(count).unwrap();
            let state = |images: &ImageList| (images.next, images.epoch, images.order.clone());
            assert_eq!(state(&skipped), state(&advanced), "after {count} more records");
        }
        skipped.skip(u64::MAX).unwrap(); // `skip` takes constant time
    }

    #[test]
    fn a_missing_image_file_is_named_in_the_error() {
        let mut images = list("no such.png 1").unwrap();
        let error = images.read(&mut Record::default()).unwrap_err().to_string();
        assert!(error.starts_with("no such.png: "), "{error}");
    }
}
