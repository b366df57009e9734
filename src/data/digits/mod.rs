//! Built-in digits: images of handwritten-looking digits, drawn as they are asked for.

mod pen;
mod raster;
mod strokes;

use crate::{
    data::{Record, Source},
    error::{Error, Result},
    op::RngKey,
};
use pen::{Dice, Hand};
use std::str::FromStr;

/// Pixels of an image's side.
const SIDE: usize = 28;
/// Pixels of an image.
const PIXELS: usize = SIDE * SIDE;
/// The counters of an image's random words: the hand's are from 0 on, the grain of the paper's
/// from here, and there the label's.
const NOISE: u64 = 1 << 32;
const LABEL: u64 = u64::MAX;
/// Drawn images are kept if all of them take at most this many bytes.
const KEEP: u64 = 64 << 20;

/// Images of 28 × 28 bytes that look like handwritten digits, of ten equally frequent classes.
///
/// Written `digits:train?count=60000&seed=1`, where `train` may be `test`, and either parameter
/// may be missing: `count` is then 60,000 for `train` and 10,000 for `test`, `seed` 1.
///
/// Image i is a function of (`seed`, split, i) alone, the same bits on every machine: neither
/// the order of reading nor `count` change it, and the two splits are drawn from unrelated
/// random numbers. The strokes of one of the usual ways to write the digit have their points
/// strayed, and are bent, scaled, slanted, turned and moved, and drawn in ink of random width and
/// darkness on paper with a little grain. About as hard as MNIST: a linear classifier tells 89 %
/// of the test images, LeNet 99 % after 1000 batches of 64.
pub struct DigitsSource {
    split: Split,
    count: u64,
    seed: u64,
    key: RngKey,
    next: u64,
    /// The first images drawn, in order, if they are kept.
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    Train,
    Test,
}

impl Split {
    fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

impl DigitsSource {
    /// The key of image `index`, and its label.
    fn label(&self, index: u64) -> (RngKey, usize) {
        let key = self.key.child(index);
        let [word, ..] = key.words(LABEL);
        (key, ((u64::from(word) * 10) >> 32) as usize)
    }
}

/// Draws the image of `key`.
fn draw(key: RngKey, label: usize, image: &mut [u8]) {
    let mut dice = Dice::new(key);
    let hand = Hand::new(&mut dice);
    let mut line = Vec::with_capacity(64);
    hand.write(label, &mut dice, &mut line);
    let mut noise = [0; PIXELS];
    for (i, bytes) in noise.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        *bytes = bytemuck::cast(key.words(NOISE + i as u64).map(u32::to_le));
    }
    raster::draw(&line, hand.ink, &noise, image);
}

impl Source for DigitsSource {
    fn describe(&self) -> String {
        format!("digits:{}?count={}&seed={}", self.split.name(), self.count, self.seed)
    }

    fn records(&self) -> Option<u64> {
        Some(self.count)
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        let (key, label) = self.label(self.next);
        let image = record.bytes_mut([1, SIDE, SIDE])?;
        let kept = self.kept.len() as u64 / PIXELS as u64;
        if self.next < kept {
            let start = self.next as usize * PIXELS;
            image.copy_from_slice(&self.kept[start..start + PIXELS]);
        } else {
            draw(key, label, image);
            let keep = self.next == kept && self.count <= KEEP / PIXELS as u64;
            if keep && self.kept.try_reserve(PIXELS).is_ok() {
                self.kept.extend_from_slice(image);
            }
        }
        record.set_label(label as i32);
        self.next = (self.next + 1) % self.count;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        self.next = (self.next + count % self.count) % self.count;
        Ok(())
    }
}

impl FromStr for DigitsSource {
    type Err = Error;

    /// Takes what follows `digits:`.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for another split than `train` and `test`, an unknown or repeated
    /// parameter, a `count` outside 1 to 2³², or a `seed` that is no number; it names the
    /// parameter.
    fn from_str(which: &str) -> Result<Self> {
        let invalid = |why: String| Error::InvalidData(format!("source `digits:{which}`: {why}"));
        let (split, parameters) = which.split_once('?').unwrap_or((which, ""));
        let (split, usual) = match split {
            "train" => (Split::Train, 60_000),
            "test" => (Split::Test, 10_000),
            other => return Err(invalid(format!("split `{other}`: `train` or `test` expected"))),
        };
        let (mut count, mut seed) = (None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let place = match key {
                "count" => &mut count,
                "seed" => &mut seed,
                _ => return Err(invalid(format!("parameter `{key}`; known are count, seed"))),
            };
            let number = value.parse::<u64>();
            let number = number
                .map_err(|_| invalid(format!("parameter `{key}`: `{value}` is no whole number")))?;
            if place.replace(number).is_some() {
                return Err(invalid(format!("parameter `{key}` is given twice")));
            }
        }
        let (count, seed) = (count.unwrap_or(usual), seed.unwrap_or(1));
        if !(1..=1 << 32).contains(&count) {
            return Err(invalid(format!("parameter `count`: {count} is not in 1..=4294967296")));
        }
        let key = RngKey::new(seed).named_child("digits").named_child(split.name());
        Ok(Self { split, count, seed, key, next: 0, kept: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::RecordValues;
    use std::collections::HashSet;

    fn digits(which: &str) -> DigitsSource {
        which.parse().unwrap()
    }

    fn next(digits: &mut DigitsSource) -> (i32, Vec<u8>) {
        let mut record = Record::default();
        digits.read(&mut record).unwrap();
        assert_eq!(record.shape(), [1, 28, 28]);
        let RecordValues::Bytes(bytes) = record.values() else { panic!("floats") };
        (record.label(), bytes.to_vec())
    }

    fn first(which: &str, count: usize) -> Vec<(i32, Vec<u8>)> {
        let mut digits = digits(which);
        (0..count).map(|_| next(&mut digits)).collect()
    }

    #[test]
    fn an_image_depends_on_seed_split_and_index_alone() {
        let want = first("train?count=30", 65);
        assert_eq!(want[..5], want[30..35], "the second round is as the first");
        // Too many to be kept, and in another order.
        let mut digits = digits("train?seed=1&count=4294967296");
        digits.skip(7).unwrap();
        assert_eq!(next(&mut digits), want[7]);
        digits.skip((1 << 32) - 5).unwrap();
        assert_eq!(next(&mut digits), want[3]);
        assert_eq!(next(&mut digits), want[4]);
        digits.skip(u64::MAX - 4).unwrap(); // 5 less than a multiple of the count
        assert_eq!(next(&mut digits), want[0]);
        assert!(digits.kept.is_empty());
    }

    #[test]
    fn skipping_past_what_is_kept_and_back_changes_nothing() {
        let want = first("test?count=9", 9);
        let mut digits = digits("test?count=9");
        for step in [3, 1, 5, 8, 2, 7, 1, 1, 4] {
            let index = (digits.next + step) % 9;
            digits.skip(step).unwrap();
            assert_eq!(next(&mut digits), want[index as usize]);
        }
    }

    /// FNV-1a over labels and images: the same on every machine, now and later.
    #[test]
    fn images_are_these() {
        let hash = |which| {
            first(which, 200).iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, (label, image)| {
                [&[*label as u8], &image[..]].concat().iter().fold(hash, |hash, &byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                })
            })
        };
        assert_eq!(
            [hash("train"), hash("test?seed=7")],
            [0x3918_f6bc_9c9a_b3bd, 0xc486_190b_03c4_657d]
        );
    }

    #[test]
    fn no_two_images_are_alike() {
        let sets = ["train", "test", "train?seed=2", "test?seed=2"];
        let images: HashSet<_> = sets.iter().flat_map(|set| first(set, 500)).collect();
        assert_eq!(images.len(), 2000);
    }

    #[test]
    fn classes_are_equally_frequent() {
        let digits = digits("train");
        let mut histogram = [0_u32; 10];
        (0..60_000).for_each(|index| histogram[digits.label(index).1] += 1);
        // Each is binomial: 6000 with a deviation of 73.
        assert!(histogram.iter().all(|count| count.abs_diff(6000) < 4 * 73), "{histogram:?}");
    }

    /// The nearest class mean finds many digits and misses many: the images are neither noise
    /// nor all alike. (It finds 73 %; of MNIST's, 82 %.)
    #[test]
    fn digits_can_be_told_apart_but_not_too_easily() {
        let (train, test) = (first("train", 2000), first("test", 500));
        let mut means = [[0.0; PIXELS]; 10];
        for (label, image) in &train {
            let count = train.iter().filter(|(other, _)| other == label).count() as f32;
            let mean = &mut means[*label as usize];
            mean.iter_mut().zip(image).for_each(|(mean, &x)| *mean += f32::from(x) / count);
        }
        let distance = |mean: &[f32], image: &[u8]| -> f32 {
            mean.iter().zip(image).map(|(mean, &x)| (mean - f32::from(x)).powi(2)).sum()
        };
        let right = test.iter().filter(|(label, image)| {
            let all = means.each_ref().map(|mean| distance(mean, image));
            all.iter().all(|&other| all[*label as usize] <= other)
        });
        let share = right.count() as f32 / test.len() as f32;
        assert!((0.5..0.9).contains(&share), "{share}");
        let bright = test.iter().all(|(_, image)| image.iter().any(|&x| x > 120));
        let dark = test.iter().all(|(_, image)| image.iter().filter(|&&x| x == 0).count() > 300);
        assert!(bright && dark);
    }

    #[test]
    fn parameters_have_defaults_and_describe_themselves() {
        assert_eq!(digits("train").describe(), "digits:train?count=60000&seed=1");
        assert_eq!(digits("test?").describe(), "digits:test?count=10000&seed=1");
        let both = digits("test?seed=18446744073709551615&count=5");
        assert_eq!(both.describe(), "digits:test?count=5&seed=18446744073709551615");
        assert_eq!(both.records(), Some(5));
    }

    #[test]
    fn bad_parameters_are_named() {
        for (which, want) in [
            ("validate", "split `validate`: `train` or `test` expected"),
            ("", "split ``: `train` or `test` expected"),
            ("train?size=5", "parameter `size`; known are count, seed"),
            ("train?count=many", "parameter `count`: `many` is no whole number"),
            ("train?count=-1", "parameter `count`: `-1` is no whole number"),
            ("train?count", "parameter `count`: `` is no whole number"),
            ("train?count=0", "parameter `count`: 0 is not in 1..=4294967296"),
            ("train?count=4294967297", "parameter `count`: 4294967297 is not in"),
            ("test?seed=1&seed=1", "parameter `seed` is given twice"),
            ("test?seed=1.5", "parameter `seed`: `1.5` is no whole number"),
        ] {
            let error = which.parse::<DigitsSource>().err().unwrap();
            assert!(matches!(error, Error::InvalidData(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(&format!("`digits:{which}`")) && text.contains(want), "{text}");
        }
    }
}
