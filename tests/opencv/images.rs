//! Compares decoded images with OpenCV, which writes the images and their pixels to a folder.

use cortado::data::{Color, Image, Record, RecordValues};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The difference between an image that cortado decodes and the same image decoded by OpenCV.
#[derive(Default)]
struct Difference {
    images: usize,
    values: usize,
    different: usize,
    largest: u8,
}

impl Difference {
    /// Decodes `image` and compares the pixels with the file `expected`.
    fn add(&mut self, image: &Path, color: Color, expected: &Path) {
        let text = fs::read(expected).unwrap();
        let (header, want) = text.split_at(text.iter().position(|&byte| byte == b'\n').unwrap());
        let header = str::from_utf8(header).unwrap();
        let shape: Vec<usize> = header.split(' ').map(|extent| extent.parse().unwrap()).collect();
        let got = Image::read(image, color).unwrap();
        assert_eq!(got.shape()[..], shape, "{}", expected.display());
        let mut record = Record::default();
        got.store(&mut record).unwrap();
        let RecordValues::Bytes(got) = record.values() else { unreachable!() };
        let size = shape[1] * shape[2];
        for (i, want) in want[1..].iter().enumerate() {
            let (pixel, channel) = (i / shape[0], i % shape[0]);
            let difference = got[channel * size + pixel].abs_diff(*want);
            self.different += usize::from(difference > 0);
            self.largest = self.largest.max(difference);
        }
        self.images += 1;
        self.values += want.len() - 1;
    }
}

/// Decodes each image in `folder`, and returns the images that differ from OpenCV.
pub(crate) fn compare(folder: &Path) -> Vec<PathBuf> {
    let modes = [("stored", Color::AsStored), ("bgr", Color::Bgr), ("gray", Color::Gray)];
    let mut differences: BTreeMap<String, Difference> = BTreeMap::new();
    let mut different = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let expected = entry.unwrap().path();
        let mode = expected.extension().unwrap().to_str().unwrap();
        let Some((mode, color)) = modes.iter().find(|(name, _)| *name == mode) else { continue };
        let image = expected.with_extension("");
        let name = image.file_name().unwrap().to_str().unwrap();
        let kind = format!("{} {mode}", name.split('_').next().unwrap());
        let sum = differences.entry(kind).or_default();
        let before = sum.different;
        sum.add(&image, *color, &expected);
        if sum.different > before {
            different.push(expected);
        }
    }
    for (kind, sum) in differences {
        let Difference { images, values, different, largest } = sum;
        let share = 100.0 * different as f64 / values as f64;
        println!(
            "{kind}: {images} images, {share:.3} % of the values differ, by at most {largest}"
        );
    }
    different
}
