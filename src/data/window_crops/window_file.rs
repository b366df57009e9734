//! A parser of Caffe's `window_file`, which lists images and the windows of each image.

use crate::{
    error::{Error, Result},
    limits,
};
use std::{path::Path, str::FromStr};

/// The images, the foreground windows and the background windows of a window file.
#[derive(Debug, Default)]
pub(super) struct WindowFile {
    pub(super) images: Vec<String>,
    /// The number of channels of every image: 1 or 3.
    pub(super) channels: usize,
    pub(super) foreground: Vec<WindowBox>,
    pub(super) background: Vec<WindowBox>,
}

/// A rectangle of an image with inclusive bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowBox {
    pub(super) image: usize,
    pub(super) label: i32,
    pub(super) x: [i32; 2],
    pub(super) y: [i32; 2],
}

/// The overlap thresholds. A window with an overlap of at least `foreground` is a foreground
/// window, and a window with an overlap below `background` is a background window.
pub(super) struct Thresholds {
    pub(super) foreground: f32,
    pub(super) background: f32,
}

/// Reads a window file. The entry of an image consists of the words
/// `# INDEX PATH CHANNELS HEIGHT WIDTH COUNT`, followed by COUNT windows
/// `LABEL OVERLAP X1 Y1 X2 Y2`. Whitespace separates the words of a window file.
pub(super) fn read(path: &Path, thresholds: &Thresholds) -> Result<WindowFile> {
    let text = limits::read_to_string(path, limits::LIST_LEN)?;
    let lines = (1..).zip(text.lines());
    let words =
        lines.flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)));
    let mut words = Words { path, line: 0, words };
    let mut file = WindowFile::default();
    while let Some(word) = words.next() {
        if word != "#" {
            return Err(words.invalid(format!("expected `#` before an image, not `{word}`")));
        }
        words.number::<u64>("an image's number")?;
        let image = file.images.len();
        file.images.push(words.word("an image's path")?.to_owned());
        let channels = words.number("a number of channels")?;
        if !matches!(channels, 1 | 3) {
            return Err(words.invalid(format!("expected 1 or 3 channels, found {channels}")));
        }
        if image > 0 && channels != file.channels {
            let reason = format!(
                "expected {} channels like the preceding images, found {channels}",
                file.channels
            );
            return Err(words.invalid(reason));
        }
        file.channels = channels;
        // Ignore the listed height and width, and use the size of the decoded image.
        words.number::<u64>("a height")?;
        words.number::<u64>("a width")?;
        for _ in 0..words.number::<u64>("a number of windows")? {
            let label = words.number("a label")?;
            let overlap: f32 = words.number("an overlap")?;
            let mut corner = |name| words.number::<i32>(name);
            let (x1, y1) = (corner("a window's x1")?, corner("a window's y1")?);
            let (x2, y2) = (corner("a window's x2")?, corner("a window's y2")?);
            let window = WindowBox { image, label, x: [x1, x2], y: [y1, y2] };
            if overlap >= thresholds.foreground {
                if label <= 0 {
                    let reason =
                        format!("a foreground window needs a label above 0, found {label}");
                    return Err(words.invalid(reason));
                }
                file.foreground.push(window);
            } else if overlap < thresholds.background {
                file.background.push(WindowBox { label: 0, ..window });
            }
        }
    }
    if file.images.is_empty() {
        return Err(Error::InvalidData(format!("{}: lists no images", path.display())));
    }
    Ok(file)
}

/// An iterator over the words of a window file, with the line number of the word that was read
/// last.
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

    fn word(&mut self, name: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| self.invalid(format!("the file ends before {name}")))
    }

    fn number<N: FromStr>(&mut self, name: &str) -> Result<N> {
        let word = self.word(name)?;
        word.parse().map_err(|_| self.invalid(format!("expected {name}, not `{word}`")))
    }

    fn invalid(&self, reason: String) -> Error {
        Error::InvalidData(format!("{}:{}: {reason}", self.path.display(), self.line))
    }
}
