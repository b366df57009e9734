use super::*;
use crate::data::record::{Record, RecordValues};

/// Returns an image of one pixel.
fn pixel(color: [u8; 3]) -> Image {
    let mut record = Record::default();
    record.bytes_mut([3, 1, 1]).unwrap().copy_from_slice(&color);
    Image::of_record(&record).unwrap()
}

/// Returns the colors that 4000 independent distortions give a pixel of the color `color`.
fn distorted(fields: &str, color: [u8; 3]) -> Vec<[u8; 3]> {
    let param = crate::proto::parse_text(fields, "distort_param").unwrap();
    let distortion = ColorDistortion::new(param, RngKey::new(3)).unwrap();
    let draw = |number| {
        let mut image = pixel(color);
        distortion.apply(number, &mut image).unwrap();
        let mut record = Record::default();
        image.store(&mut record).unwrap();
        let RecordValues::Bytes(bytes) = record.values() else { unreachable!() };
        [bytes[0], bytes[1], bytes[2]]
    };
    (0..4000).map(draw).collect()
}

/// Checks that the fraction `count / 4000` lies within four standard deviations of `probability`.
fn check_fraction(count: usize, probability: f64) {
    let deviation = (probability * (1.0 - probability) / 4000.0).sqrt();
    let fraction = count as f64 / 4000.0;
    assert!((fraction - probability).abs() < 4.0 * deviation, "{fraction}, not {probability}");
}

#[test]
fn a_distortion_has_the_probability_and_the_range_of_its_fields() {
    let draws = distorted("brightness_prob: 0.25 brightness_delta: 20", [100, 110, 120]);
    // A shift of the brightness by less than 0.5 rounds to no change.
    check_fraction(draws.iter().filter(|x| x[0] != 100).count(), 0.25 * (1.0 - 0.5 / 20.0));
    check_fraction(draws.iter().filter(|x| x[0] > 110).count(), 0.25 * (9.5 / 40.0));
    assert!(draws.iter().all(|x| (80..=120).contains(&x[0]) && x[1] - x[0] == 10));

    let draws = distorted("contrast_prob: 1 contrast_lower: 0.5 contrast_upper: 1.5", [100; 3]);
    check_fraction(draws.iter().filter(|x| x[0] < 100).count(), 0.495);
    assert!(draws.iter().all(|x| (50..=150).contains(&x[0])));

    // The hue of red is 0, and a hue below 0 becomes 0.
    let draws = distorted("hue_prob: 1 hue_delta: 18", [0, 0, 255]);
    let unchanged = draws.iter().filter(|x| **x == [0, 0, 255]).count();
    check_fraction(unchanged, 0.5 + 0.5 / 36.0);
    // A hue of 18 units is 36°, 0.6 of the way from red to yellow.
    assert!(draws.iter().all(|x| x[2] == 255 && x[1] <= 153 && x[0] == 0));

    // The saturation of the color is 128, and its value is 200.
    let fields = "saturation_prob: 0.5 saturation_lower: 0 saturation_upper: 0";
    let draws = distorted(fields, [100, 100, 200]);
    check_fraction(draws.iter().filter(|x| **x == [200; 3]).count(), 0.5);

    let draws = distorted("random_order_prob: 1", [1, 2, 3]);
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        check_fraction(draws.iter().filter(|x| **x == order).count(), 1.0 / 6.0);
    }
}

#[test]
fn the_contrast_changes_before_or_after_the_saturation_with_equal_probability() {
    let fields = "contrast_prob: 1 contrast_lower: 2 contrast_upper: 2
        saturation_prob: 1 saturation_lower: 0 saturation_upper: 0";
    // With a saturation of 0, all channels get the value of the largest channel.
    let draws = distorted(fields, [10, 20, 60]);
    assert!(draws.iter().all(|x| *x == [120; 3]));
    let fields = "contrast_prob: 1 contrast_lower: 4 contrast_upper: 4
        saturation_prob: 1 saturation_lower: 0.5 saturation_upper: 0.5";
    // If the contrast changes first, 4·(40, 80, 100) is clamped to (160, 255, 255), whose
    // saturation is 95/255; half of this saturation makes the smallest channel 255 − 48 or 255 −
    // 47. If the saturation changes first, the color becomes (70, 90, 100), and 4·70 exceeds 255.
    let draws = distorted(fields, [40, 80, 100]);
    let first = draws.iter().filter(|x| (207..=208).contains(&x[0])).count();
    check_fraction(first, 0.5);
    assert_eq!(draws.iter().filter(|x| **x == [255; 3]).count(), 4000 - first);
}

#[test]
fn invalid_ranges_and_images_without_colors_are_refused() {
    for (fields, want) in [
        ("brightness_prob: 1 brightness_delta: -1", "`brightness_delta` must not be negative"),
        ("hue_prob: 1 hue_delta: nan", "`hue_delta` must not be negative"),
        ("contrast_prob: 1 contrast_lower: 2 contrast_upper: 1", "0 ≤ contrast_lower"),
        ("saturation_prob: 1 saturation_lower: -1", "0 ≤ saturation_lower"),
    ] {
        let param = crate::proto::parse_text(fields, "distort_param").unwrap();
        let error = ColorDistortion::new(param, RngKey::new(3)).unwrap_err().to_string();
        assert!(error.contains("`distort_param`") && error.contains(want), "{error}");
    }
    let mut record = Record::default();
    record.bytes_mut([1, 1, 1]).unwrap().copy_from_slice(&[7]);
    let param = crate::proto::parse_text("hue_prob: 0.5 hue_delta: 1", "distort_param").unwrap();
    let distortion = ColorDistortion::new(param, RngKey::new(3)).unwrap();
    let error = distortion.apply(0, &mut Image::of_record(&record).unwrap()).unwrap_err();
    assert!(error.to_string().contains("need 3 channels, found 1"), "{error}");
}
