//! Image files that a list names.

use super::{
    Record, Source,
    image::{Color, Image},
};
use crate::{
    error::{Error, Result},
    op::RngKey,
};
use rand::seq::SliceRandom;
use std::{fs, path::Path};

/// The image files that a list names, one a line, each with a label after the last space.
///
/// A path may hold spaces, as in Caffe. Shuffled, each round has an order of its own, which depends
/// on the key and the number of the round.
#[doc(alias = "ImageDataLayer")]
pub struct ImageList {
    name: String,
    root: String,
    files: Vec<(String, i32)>,
    color: Color,
    size: Option<[usize; 2]>,
    shuffle: Option<RngKey>,
    /// What comes when in this round, if shuffled, else empty.
    order: Vec<usize>,
    next: usize,
    round: u64,
}

impl ImageList {
    /// The files of the list at `path`. Their paths are put after `root`, which ends in a slash if
    /// it is a folder.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] names the line that has no label, and a list without lines.
    pub fn open(path: impl AsRef<Path>, root: impl Into<String>) -> Result<Self> {
        let path = path.as_ref();
        let files = read_list(path)?;
        Ok(Self {
            name: format!("images of {}", path.display()),
            root: root.into(),
            files,
            color: Color::Bgr,
            size: None,
            shuffle: None,
            order: Vec::new(),
            next: 0,
            round: 0,
        })
    }

    /// Brings all images to `height × width` pixels.
    #[must_use]
    pub fn resized(mut self, height: usize, width: usize) -> Self {
        self.size = Some([height, width]);
        self
    }

    /// Mixes the files, anew for each round.
    #[must_use]
    pub fn shuffled(mut self, key: RngKey) -> Self {
        self.shuffle = Some(key);
        self.mix();
        self
    }

    /// Paths below the root with their labels, in the order of the list.
    pub fn files(&self) -> &[(String, i32)] {
        &self.files
    }

    /// As [`files`](Self::files), in the order of this round.
    pub fn shuffled_files(&self) -> impl Iterator<Item = (String, i32)> {
        (0..self.files.len()).map(|at| self.files[self.at(at)].clone())
    }

    /// Which file comes at a place of this round.
    fn at(&self, place: usize) -> usize {
        self.order.get(place).copied().unwrap_or(place)
    }

    fn mix(&mut self) {
        if let Some(key) = self.shuffle {
            self.order = (0..self.files.len()).collect();
            self.order.shuffle(&mut key.child(self.round).rng());
        }
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.files.len() {
            (self.next, self.round) = (0, self.round.wrapping_add(1));
            self.mix();
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
        let (path, label) = &self.files[self.at(self.next)];
        let path = format!("{}{path}", self.root);
        let image = Image::read(&path, self.color)?;
        let stored = match self.size {
            Some([height, width]) => image.resize(height, width)?.store(record),
            None => image.store(record),
        };
        stored.map_err(|error| error.context(path))?;
        record.set_label(*label);
        self.advance();
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        let len = self.files.len() as u64;
        let at = self.next as u64 + count % len;
        let rounds = count / len + at / len;
        self.next = (at % len) as usize;
        if rounds > 0 {
            self.round = self.round.wrapping_add(rounds);
            self.mix();
        }
        Ok(())
    }
}

/// Paths and labels, a pair a line; lines with nothing but spaces are passed over.
fn read_list(path: &Path) -> Result<Vec<(String, i32)>> {
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let mut files = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = line.trim_end().rsplit_once(' ');
        let pair = pair.and_then(|(path, label)| Some((path.trim_end(), label.parse().ok()?)));
        let Some((file, label)) = pair.filter(|(file, _)| !file.is_empty()) else {
            let why = "a path, a space and a label, which is an integer, are expected";
            return Err(Error::InvalidData(format!("{}:{}: {why}", path.display(), index + 1)));
        };
        files.push((file.to_owned(), label));
    }
    if files.is_empty() {
        return Err(Error::InvalidData(format!("{}: it lists no images", path.display())));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<ImageList> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list.txt");
        fs::write(&path, text).unwrap();
        ImageList::open(path, "")
    }

    #[test]
    fn a_line_is_a_path_and_a_label() {
        let images = list("a b.jpg 3\n\nc.png -1 \r\n").unwrap();
        assert_eq!(images.files(), [("a b.jpg".to_owned(), 3), ("c.png".to_owned(), -1)]);
        for (text, want) in [
            ("a.jpg 1\nb.jpg", "list.txt:2: a path, a space and a label"),
            ("a.jpg 1.5", "list.txt:1: "),
            (" 1", "list.txt:1: "),
            ("\n", "list.txt: it lists no images"),
        ] {
            let error = list(text).err().unwrap().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn each_round_is_shuffled_anew_and_alike_for_a_key() {
        let text: String = (0..40).map(|i| format!("{i}.png {i}\n")).collect();
        let round = |images: &mut ImageList| {
            let order = images.order.clone();
            images.skip(40).unwrap();
            order
        };
        let shuffled = |key| list(&text).unwrap().shuffled(RngKey::new(key));
        let mut images = shuffled(1);
        let (first, second) = (round(&mut images), round(&mut images));
        assert_ne!(first, second);
        for order in [&first, &second] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..40).collect::<Vec<_>>());
        }
        let mut again = shuffled(1);
        assert_eq!([round(&mut again), round(&mut again)], [first.clone(), second]);
        assert_ne!(round(&mut shuffled(2)), first);

        let (mut passed, mut skipped) = (shuffled(1), shuffled(1));
        for count in [0, 3, 36, 1, 40, 95] {
            (0..count).for_each(|_| passed.advance());
            skipped.skip(count).unwrap();
            let place = |images: &ImageList| (images.next, images.round, images.order.clone());
            assert_eq!(place(&skipped), place(&passed), "{count} more");
        }
        skipped.skip(u64::MAX).unwrap(); // at once
    }

    #[test]
    fn a_missing_file_is_named() {
        let mut images = list("no such.png 1").unwrap();
        let error = images.read(&mut Record::default()).unwrap_err().to_string();
        assert!(error.starts_with("no such.png: "), "{error}");
    }
}
