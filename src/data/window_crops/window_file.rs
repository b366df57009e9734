//! The file that lists images and their windows.

use crate::error::{Error, Result};
use std::{fs, path::Path, str::FromStr};

/// Images and their windows, by whether these hold an object.
#[derive(Debug, Default)]
pub(super) struct WindowFile {
    /// Paths, as the file has them.
    pub(super) images: Vec<String>,
    /// Of each image: one or three.
    pub(super) channels: usize,
    pub(super) foreground: Vec<WindowBox>,
    pub(super) background: Vec<WindowBox>,
}

/// A part of an image, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowBox {
    pub(super) image: usize,
    /// The object's class; 0 for background.
    pub(super) label: i32,
    /// First and last column.
    pub(super) x: [i32; 2],
    /// First and last row.
    pub(super) y: [i32; 2],
}

/// Overlaps from which a window is foreground, and below which it is background.
pub(super) struct Thresholds {
    pub(super) foreground: f32,
    pub(super) background: f32,
}

/// Reads a file of blocks, one an image: `# INDEX PATH CHANNELS HEIGHT WIDTH COUNT`, then for each of
/// so many windows `LABEL OVERLAP X1 Y1 X2 Y2`, all of it separated by spaces or line ends.
pub(super) fn read(path: &Path, thresholds: &Thresholds) -> Result<WindowFile> {
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let lines = (1..).zip(text.lines());
    let words =
        lines.flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)));
    let mut words = Words { path, line: 0, words };
    let mut list = WindowFile::default();
    while let Some(word) = words.next() {
        if word != "#" {
            return Err(words.wrong(format!("`#` is expected before an image, not `{word}`")));
        }
        words.number::<u64>("an image's number")?;
        let image = list.images.len();
        list.images.push(words.word("an image's path")?.to_owned());
        let channels = words.number("a number of channels")?;
        if !matches!(channels, 1 | 3) {
            return Err(words.wrong(format!("images have 1 or 3 channels, not {channels}")));
        }
        if image > 0 && channels != list.channels {
            let why = format!("{channels} channels after images of {}", list.channels);
            return Err(words.wrong(why));
        }
        list.channels = channels;
        // Of the image itself, which tells its size again.
        words.number::<u64>("a height")?;
        words.number::<u64>("a width")?;
        for _ in 0..words.number::<u64>("a number of windows")? {
            let label = words.number("a label")?;
            let overlap: f32 = words.number("an overlap")?;
            let mut corner = |what| words.number::<i32>(what);
            let (x1, y1) = (corner("a window's x1")?, corner("a window's y1")?);
            let (x2, y2) = (corner("a window's x2")?, corner("a window's y2")?);
            let window = WindowBox { image, label, x: [x1, x2], y: [y1, y2] };
            if overlap >= thresholds.foreground {
                if label <= 0 {
                    let why =
                        format!("a window of the foreground has a label above 0, not {label}");
                    return Err(words.wrong(why));
                }
                list.foreground.push(window);
            } else if overlap < thresholds.background {
                list.background.push(WindowBox { label: 0, ..window });
            }
        }
    }
    if list.images.is_empty() {
        return Err(Error::InvalidData(format!("{}: it lists no images", path.display())));
    }
    Ok(list)
}

/// Words and the lines they are on.
struct Words<'a, I> {
    path: &'a Path,
    line: usize,
    words: I,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Words<'a, I> {
    fn next(&mut self) -> Option<&'a str> {
        let (line, word) = self.words.next()?;
        self.line = line;
        Some(word)
    }

    fn word(&mut self, what: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| self.wrong(format!("it ends before {what}")))
    }

    fn number<N: FromStr>(&mut self, what: &str) -> Result<N> {
        let word = self.word(what)?;
        word.parse().map_err(|_| self.wrong(format!("{what} is expected, not `{word}`")))
    }

    fn wrong(&self, why: String) -> Error {
        Error::InvalidData(format!("{}:{}: {why}", self.path.display(), self.line))
    }
}
