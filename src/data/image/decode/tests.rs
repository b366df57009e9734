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
        let got = match operation.as_str() {
            "stored" => read(Color::AsStored),
            "bgr" => read(Color::Bgr),
            "gray" => read(Color::Gray),
            _ => continue,
        };
        let difference = max_difference(&got, &image);
        assert_eq!(difference, 0, "{file}, {operation}");
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
        "chroma420.jpg",
        "progressive.jpg",
        "arithmetic.jpg",
        "arithmetic_progressive.jpg",
        "cmyk.jpg",
        "gamma16.png",
        "bits24.bmp",
        "runs8.bmp",
        "runs4.bmp",
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
    // The compression field of a BMP file starts at byte 30. The value 4 stands for JPEG.
    let mut compressed = fs::read(folder().join("bits8.bmp")).unwrap();
    compressed[30] = 4;
    let text = Image::decode(&compressed, Color::Bgr).unwrap_err().to_string();
    let want = "BMP images with 8 bits per pixel and compression 4 are not supported; \
                convert the image to PNG with another program";
    assert_eq!(text, want);
    let text = Image::decode(b"P5 100000 100000 255 ", Color::Bgr).unwrap_err().to_string();
    assert!(text.contains("image of 100000 x 100000 pixels"), "{text}");
    let text = Image::decode(b"GIF89a", Color::Bgr).unwrap_err().to_string();
    assert_eq!(text, "unknown image format: neither JPEG, PNG, BMP, PBM, PGM nor PPM");
}

/// Returns the error message for the JPEG file `file` of `tests/images` after `change` has changed
/// its bytes.
fn jpeg_error(file: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = fs::read(folder().join(file)).unwrap();
    change(&mut bytes);
    Image::decode(&bytes, Color::Bgr).unwrap_err().to_string()
}

/// Returns the position of the first marker `marker`.
fn position(bytes: &[u8], marker: u8) -> usize {
    bytes.windows(2).position(|pair| pair == [0xFF, marker]).unwrap()
}

#[test]
fn unsupported_and_damaged_jpeg_files_are_refused_with_the_reason() {
    // The frame header starts with the marker, the length and the number of bits per sample.
    let set_precision = |bytes: &mut Vec<u8>| {
        let at = position(bytes, 0xC0) + 4;
        bytes[at] = 12;
    };
    let set_process = |bytes: &mut Vec<u8>| {
        let at = position(bytes, 0xC0) + 1;
        bytes[at] = 0xC3;
    };
    let repeat_scan = |bytes: &mut Vec<u8>| {
        let start = position(bytes, 0xDA);
        let end = start + 2 + position(&bytes[start + 2..], 0xC4);
        bytes.splice(start..start, bytes[start..end].to_vec());
    };
    let remove_tables = |bytes: &mut Vec<u8>| {
        let (start, end) = (position(bytes, 0xC4), position(bytes, 0xDA));
        bytes.drain(start..end);
    };
    let remove_restart = |bytes: &mut Vec<u8>| {
        let at = position(bytes, 0xD0);
        bytes.drain(at..at + 2);
    };
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 20);
    let convert = "convert the image to PNG with another program";
    for (text, want) in [
        (jpeg_error("color.jpg", set_precision), "12 bits per sample are not supported; "),
        (jpeg_error("color.jpg", set_process), "the lossless process are not supported; "),
        (jpeg_error("progressive.jpg", repeat_scan), "a scan does not continue the scans before"),
        (jpeg_error("color.jpg", remove_tables), "a Huffman table is missing"),
        (jpeg_error("progressive.jpg", remove_restart), "a restart marker is missing"),
        (jpeg_error("color.jpg", cut), "the file ends before the last pixel"),
        (jpeg_error("arithmetic.jpg", cut), "the file ends before the last pixel"),
        (jpeg_error("arithmetic_progressive.jpg", cut), "the file ends before the last pixel"),
    ] {
        let is_unsupported = want.ends_with("; ");
        let start = if is_unsupported { "JPEG images with " } else { "damaged JPEG image: " };
        let end = if is_unsupported { convert } else { want };
        assert!(text.starts_with(start) && text.contains(want) && text.ends_with(end), "{text}");
    }
}

/// Some cameras and old programs omit the marker at the end, or write zeros before a marker.
#[test]
fn a_jpeg_file_without_the_last_marker_or_with_zeros_before_a_marker_can_be_read() {
    let bytes = fs::read(folder().join("color.jpg")).unwrap();
    let image = Image::decode(&bytes, Color::Bgr).unwrap();
    assert_eq!(Image::decode(&bytes[..bytes.len() - 2], Color::Bgr).unwrap(), image);
    let mut padded = bytes;
    let tables = position(&padded, 0xDB);
    padded.splice(tables..tables, [0; 3]);
    assert_eq!(Image::decode(&padded, Color::Bgr).unwrap(), image);
}

#[test]
fn run_length_encoded_bmp_files_that_opencv_misreads_are_refused() {
    let mut bytes = fs::read(folder().join("runs4.bmp")).unwrap();
    let skip = bytes.windows(4).position(|four| four == [0, 2, 3, 0]).unwrap();
    bytes[skip + 3] = 1;
    let text = Image::decode(&bytes, Color::Bgr).unwrap_err().to_string();
    let want = "BMP images with run-length encoding of 4 bits per pixel and skipped rows are not";
    assert!(text.starts_with(want), "{text}");
}
