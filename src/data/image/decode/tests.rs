use super::*;
use std::{fs, path::Path};

/// An image file, an operation, and OpenCV's result of the operation. The script
/// `tests/images/make.py` generates the reference images with OpenCV.
struct Case {
    file: String,
    /// The operation: decoding to `stored`, `bgr` or `gray`, or resizing.
    operation: String,
    image: Image,
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(folder().join("expected.tsv")).unwrap();
    let case = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        let number = |field: usize| fields[field].parse().unwrap();
        let byte = |at: usize| u8::from_str_radix(&fields[5][at..at + 2], 16).unwrap();
        let pixels = (0..fields[5].len()).step_by(2).map(byte).collect();
        let (channels, height, width) = (number(2), number(3), number(4));
        let image = Image { channels, height, width, pixels };
        Case { file: fields[0].into(), operation: fields[1].into(), image }
    };
    text.lines().skip(1).map(case).collect()
}

fn max_difference(a: &Image, b: &Image) -> u8 {
    assert_eq!(a.shape(), b.shape());
    a.pixels.iter().zip(&b.pixels).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn decoded_files_match_opencv() {
    for Case { file, operation, image } in cases() {
        let read = |color| Image::read(folder().join(&file), color).unwrap();
        // JPEG decoders, and conversions from color to grey, may differ from OpenCV in rounding.
        let (got, tolerance) = match operation.as_str() {
            "stored" => (read(Color::AsStored), u8::from(file.ends_with("jpg"))),
            "bgr" => (read(Color::Bgr), u8::from(file.ends_with("jpg"))),
            "gray" => (read(Color::Gray), u8::from(file.ends_with("jpg") || file.ends_with("png"))),
            _ => continue,
        };
        let difference = max_difference(&got, &image);
        assert!(difference <= tolerance, "{file}, {operation}: difference {difference}");
    }
}

#[test]
fn resized_images_match_opencv() {
    let mut count = 0;
    for Case { file, operation, image } in cases() {
        if operation.starts_with("resize") {
            let [_, height, width] = image.shape();
            let original = Image::read(folder().join(&file), Color::AsStored).unwrap();
            let difference = max_difference(&original.resize(height, width).unwrap(), &image);
            assert!(difference <= 1, "{file}, {operation}: difference {difference}");
            count += 1;
        }
    }
    assert_eq!(count, 5);
}

#[test]
fn a_record_stores_an_image_as_one_plane_per_channel() {
    let image = Image { channels: 3, height: 1, width: 2, pixels: vec![1, 2, 3, 4, 5, 6] };
    let mut record = crate::data::Record::default();
    record.set_label(9);
    image.store(&mut record).unwrap();
    assert_eq!((record.shape(), record.label()), ([3, 1, 2], 9));
    assert_eq!(record.values(), crate::data::RecordValues::Bytes(&[1, 4, 2, 5, 3, 6]));
}

#[test]
fn decoding_an_encoded_image_returns_the_original_pixels() {
    for (file, color) in
        [("color.png", Color::Bgr), ("gray.png", Color::AsStored), ("alpha.png", Color::AsStored)]
    {
        let image = Image::read(folder().join(file), color).unwrap();
        assert_eq!(Image::decode(&image.encode_png().unwrap(), Color::AsStored).unwrap(), image);
    }
}

#[test]
fn damaged_files_are_rejected_without_a_panic() {
    for file in [
        "color.png",
        "color.jpg",
        "palette.png",
        "gray.jpg",
        "bits24.bmp",
        "bits4.bmp",
        "alpha.bmp",
        "text.ppm",
        "text.pbm",
        "binary.pbm",
        "sixteen.pgm",
    ] {
        let encoded = fs::read(folder().join(file)).unwrap();
        for len in 0..encoded.len() / 2 {
            assert!(Image::decode(&encoded[..len], Color::Bgr).is_err(), "{file}, {len} bytes");
        }
        for at in 0..encoded.len() {
            let mut bytes = encoded.clone();
            bytes[at] ^= 0xff;
            let _ = Image::decode(&bytes, Color::AsStored);
        }
    }
    // Bytes 28 and 30 of a BMP file start the fields for the bits per pixel and the compression.
    let mut compressed = fs::read(folder().join("bits8.bmp")).unwrap();
    compressed[30] = 1;
    let text = Image::decode(&compressed, Color::Bgr).unwrap_err().to_string();
    let want = "BMP images with 8 bits per pixel and compression 1 are not supported";
    assert_eq!(text, want);
    let text = Image::decode(b"P5 100000 100000 255 ", Color::Bgr).unwrap_err().to_string();
    assert!(text.contains("image of 100000 x 100000 pixels"), "{text}");
    let text = Image::decode(b"GIF89a", Color::Bgr).unwrap_err().to_string();
    assert_eq!(text, "unknown image format: neither JPEG, PNG, BMP, PBM, PGM nor PPM");
}
