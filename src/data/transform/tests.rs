use super::*;
use crate::{
    element::f16,
    proto::{BlobProto, BlobShape, write_binary},
};

const KEY: RngKey = RngKey { seed: 5, stream: 2 };
const SHAPE: [usize; 3] = [3, 5, 4];

fn new(param: TransformationParameter, phase: Phase) -> DataTransformer {
    DataTransformer::new(&param, phase, KEY).unwrap()
}

fn bytes() -> Record {
    let mut record = Record::default();
    let values = record.bytes_mut(SHAPE).unwrap();
    values.iter_mut().enumerate().for_each(|(i, x)| *x = (i * 89 % 256) as u8);
    record
}

fn floats() -> Record {
    let mut record = Record::default();
    let values = record.floats_mut(SHAPE).unwrap();
    values.iter_mut().enumerate().for_each(|(i, x)| *x = (i * 89 % 256) as f32 / 3.0);
    record
}

fn values(record: &Record) -> Vec<f32> {
    match record.values() {
        RecordValues::Bytes(x) => x.iter().map(|&x| x.into()).collect(),
        RecordValues::Floats(x) => x.to_vec(),
    }
}

fn transformed<T: Element>(transformer: &DataTransformer, number: u64, record: &Record) -> Vec<T> {
    let count = transformer.output_shape(record).unwrap().iter().product();
    let mut y = vec![T::from_f64(f64::NAN); count];
    transformer.transform(number, record, &mut y).unwrap();
    y
}

/// Computes `scale · (x − mean)` for the crop at (`top`, `left`), element by element.
fn reference(
    record: &Record,
    mean: impl Fn(usize, usize) -> f32,
    scale: f32,
    (top, left, height, width): (usize, usize, usize, usize),
    mirrored: bool,
) -> Vec<f32> {
    let x = values(record);
    let mut y = Vec::new();
    for c in 0..SHAPE[0] {
        for row in 0..height {
            for column in 0..width {
                let column = if mirrored { width - 1 - column } else { column };
                let i = (c * SHAPE[1] + top + row) * SHAPE[2] + left + column;
                y.push((x[i] - mean(c, i)) * scale);
            }
        }
    }
    y
}

fn mean_file(proto: &BlobProto) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mean.binaryproto").display().to_string();
    write_binary(&path, proto).unwrap();
    (dir, path)
}

fn mean_at(i: usize) -> f32 {
    (i % 7) as f32 * 10.5
}

fn mean_proto() -> BlobProto {
    let [channels, height, width] = SHAPE.map(|extent| Some(extent as i32));
    let data = (0..SHAPE.iter().product()).map(mean_at).collect();
    BlobProto { num: Some(1), channels, height, width, data, ..Default::default() }
}

#[test]
fn the_mean_value_is_subtracted_before_scaling() {
    let full_crop = (0, 0, SHAPE[1], SHAPE[2]);
    for record in [bytes(), floats()] {
        let transformer = new(TransformationParameter::default(), Phase::Train);
        assert_eq!(transformed::<f32>(&transformer, 0, &record), values(&record));

        let scale = Some(0.00390625);
        let param = TransformationParameter { scale, ..Default::default() };
        let want = reference(&record, |_, _| 0.0, 0.00390625, full_crop, false);
        assert_eq!(transformed::<f32>(&new(param.clone(), Phase::Test), 3, &record), want);
        let want_f16: Vec<f16> = want.iter().map(|&y| f16::from_f32(y)).collect();
        assert_eq!(transformed::<f16>(&new(param.clone(), Phase::Test), 3, &record), want_f16);
        let want_f64: Vec<f64> = values(&record).iter().map(|&x| f64::from(x) / 256.0).collect();
        assert_eq!(transformed::<f64>(&new(param, Phase::Test), 3, &record), want_f64);

        for means in [vec![104.5], vec![104.0, 117.0, 123.0]] {
            let want = reference(&record, |c, _| means[c % means.len()], 0.5, full_crop, false);
            let param = TransformationParameter {
                scale: Some(0.5),
                mean_value: means,
                ..Default::default()
            };
            assert_eq!(transformed::<f32>(&new(param, Phase::Train), 9, &record), want);
        }
    }
}

#[test]
fn a_mean_file_is_subtracted_at_the_position_of_the_crop() {
    let mean_with_shape = BlobProto {
        shape: Some(BlobShape { dim: SHAPE.map(|extent| extent as i64).to_vec() }),
        data: mean_proto().data,
        ..Default::default()
    };
    for proto in [mean_proto(), mean_with_shape] {
        let (_dir, path) = mean_file(&proto);
        for (crop, window) in [(0, (0, 0, 5, 4)), (2, (1, 1, 2, 2)), (4, (0, 0, 4, 4))] {
            let param = TransformationParameter {
                mean_file: Some(path.clone()),
                crop_size: Some(crop),
                scale: Some(2.0),
                ..Default::default()
            };
            for record in [bytes(), floats()] {
                let want = reference(&record, |_, i| mean_at(i), 2.0, window, false);
                let test = new(param.clone(), Phase::Test);
                assert_eq!(transformed::<f32>(&test, 0, &record), want, "crop {crop}");
            }
        }
    }
}

/// Every combination of crop position and mirroring occurs about equally often. The result for a
/// record number does not depend on earlier calls.
#[test]
fn training_crops_are_random_and_depend_on_the_key_and_record_number_only() {
    let (_dir, path) = mean_file(&mean_proto());
    let param = TransformationParameter {
        crop_size: Some(3),
        mirror: Some(true),
        mean_file: Some(path),
        ..Default::default()
    };
    let (record, train) = (bytes(), new(param.clone(), Phase::Train));
    assert_eq!(train.output_shape(&record).unwrap(), [3, 3, 3]);
    let crop = |i: usize| {
        let crop = (i / 4, i / 2 % 2, 3, 3);
        reference(&record, |_, i| mean_at(i), 1.0, crop, i % 2 == 1)
    };
    let crops: Vec<_> = (0..12).map(crop).collect();
    let mut histogram = [0; 12];
    for number in 0..1200 {
        let y: Vec<f32> = transformed(&train, number, &record);
        histogram[crops.iter().position(|crop| *crop == y).unwrap()] += 1;
    }
    // The number of occurrences of each crop is binomially distributed, with mean 100 and standard
    // deviation 9.6.
    assert!(histogram.iter().all(|count| (60..140).contains(count)), "{histogram:?}");

    let same_key = new(param.clone(), Phase::Train);
    for number in (0..50).rev() {
        let y: Vec<f32> = transformed(&same_key, number, &record);
        assert_eq!(y, transformed::<f32>(&train, number, &record));
    }
    let other_transformer = DataTransformer::new(&param, Phase::Train, RngKey::new(6)).unwrap();
    let crops_differ = |number| {
        transformed::<f32>(&other_transformer, number, &record)
            != transformed::<f32>(&train, number, &record)
    };
    assert!((0..50).any(crops_differ));
}

#[test]
fn crops_in_the_test_phase_are_centred_and_mirrored_at_random() {
    let param =
        TransformationParameter { crop_size: Some(3), mirror: Some(true), ..Default::default() };
    let (record, test) = (floats(), new(param, Phase::Test));
    let [plain, mirrored] =
        [false, true].map(|mirror| reference(&record, |_, _| 0.0, 1.0, (1, 0, 3, 3), mirror));
    let count = (0..200).filter(|&number| {
        let y: Vec<f32> = transformed(&test, number, &record);
        assert!(y == plain || y == mirrored);
        y == mirrored
    });
    assert!((60..140).contains(&count.count()));
}

#[test]
fn an_invalid_transformation_parameter_is_named_in_the_error() {
    let error = |param: TransformationParameter| {
        let transformer = DataTransformer::new(&param, Phase::Train, KEY);
        let error = transformer
            .and_then(|transformer| transformer.transform(0, &bytes(), &mut [0.0_f32; 60]));
        error.unwrap_err().to_string()
    };
    let cases = [
        (
            Some(5),
            vec![],
            None,
            "the crop of 5 x 5 (`crop_size`, or `crop_h` and `crop_w`) is too large for a record of 3 x 5 x 4",
        ),
        (None, vec![1.0, 2.0], None, "2 values of `mean_value` for a record of 3 x 5 x 4"),
        (None, vec![1.0], Some("mean"), "`mean_file` and `mean_value` are mutually exclusive"),
        (None, vec![], Some("no/such/file"), "no/such/file: "),
    ];
    for (crop_size, mean_value, mean_file, want) in cases {
        let mean_file = mean_file.map(str::to_owned);
        let text = error(TransformationParameter {
            crop_size,
            mean_value,
            mean_file,
            ..Default::default()
        });
        assert!(text.contains(want), "{text}");
    }
    let transformer = new(TransformationParameter::default(), Phase::Test);
    let error = transformer.transform(0, &bytes(), &mut [0.0_f32; 59]).unwrap_err();
    assert!(matches!(error, Error::Length { operand: "y", want: 60, got: 59, .. }), "{error}");
}

#[test]
fn a_mean_file_of_the_wrong_shape_is_named_in_the_error() {
    let text = |proto| {
        let (_dir, path) = mean_file(&proto);
        let param = TransformationParameter { mean_file: Some(path.clone()), ..Default::default() };
        let transformer = DataTransformer::new(&param, Phase::Train, KEY);
        let error =
            transformer.and_then(|transformer| transformer.output_shape(&bytes()).map(|_| ()));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(&path), "{text}");
        text
    };
    let taller_mean = BlobProto { height: Some(4), width: Some(5), ..mean_proto() };
    let error = text(taller_mean);
    assert!(error.contains("is 3 x 4 x 5, but the record is 3 x 5 x 4"), "{error}");
    let two_images = BlobProto { num: Some(2), channels: Some(1), height: Some(6), ..mean_proto() };
    let error = text(BlobProto { width: Some(5), ..two_images });
    assert!(error.contains("expected the shape of one image"), "{error}");
    let error = text(BlobProto { data: vec![0.0; 59], ..mean_proto() });
    assert!(error.contains("59 values"), "{error}");
}

#[test]
fn resizing_and_noise_precede_the_crop_and_the_mean() {
    let text =
        "resize_param { height: 4 width: 8 interp_mode: NEAREST } noise_param { inverse: true }
        crop_h: 2 crop_w: 4 mean_value: 5 scale: 2 distort_param { hue_prob: 1 hue_delta: 9 }";
    let param = crate::proto::parse_text(text, "transform_param").unwrap();
    let transformer = DataTransformer::new(&param, Phase::Test, KEY).unwrap();
    let mut record = Record::default();
    record.bytes_mut([1, 2, 4]).unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(transformer.output_shape(&record).unwrap(), [1, 2, 4]);
    let mut y = [0.0_f32; 8];
    transformer.transform(0, &record, &mut y).unwrap();
    // Resizing enlarges each pixel to 2 × 2 pixels. The crop takes rows 1 to 2 and columns 2 to 5
    // of the resized image.
    let value = |x: f32| 2.0 * (255.0 - x - 5.0);
    assert_eq!(y, [2.0, 2.0, 3.0, 3.0, 6.0, 6.0, 7.0, 7.0].map(value));
}

#[test]
fn noise_reduces_the_number_of_values_and_sets_pixels_at_random() {
    let transformed = |fields: &str, pixels: &[u8]| {
        let text = format!("noise_param {{ {fields} }}");
        let param = crate::proto::parse_text(&text, "transform_param").unwrap();
        let transformer = DataTransformer::new(&param, Phase::Train, KEY).unwrap();
        let mut record = Record::default();
        record.bytes_mut([1, 1, pixels.len()]).unwrap().copy_from_slice(pixels);
        let mut y = vec![0.0_f32; pixels.len()];
        transformer.transform(3, &record, &mut y).unwrap();
        y
    };
    // Posterizing leaves four values: the centres of four intervals of 64 values.
    assert_eq!(transformed("posterize: true", &[0, 63, 64, 255]), [32.0, 32.0, 96.0, 224.0]);
    let dots = "saltpepper: true saltpepper_param { fraction: 0.5 value: 9 }";
    let y = transformed(dots, &[0; 100]);
    let count = y.iter().filter(|value| **value == 9.0).count();
    // The layer draws 50 of 100 pixels with repetition: 39.5 distinct pixels in the mean, with a
    // standard deviation of 3.1.
    assert!((27..=50).contains(&count), "{count}");
    assert!(y.iter().all(|value| [0.0, 9.0].contains(value)), "{y:?}");
    assert_eq!(y, transformed(dots, &[0; 100]));
}

#[test]
fn a_tall_image_is_resized_without_storing_all_filtered_rows() {
    // All filtered rows of this image would take 2.4 GB.
    let text = "resize_param { height: 2 width: 300 interp_mode: CUBIC }";
    let param = crate::proto::parse_text(text, "transform_param").unwrap();
    let transformer = DataTransformer::new(&param, Phase::Test, KEY).unwrap();
    let mut record = Record::default();
    record.bytes_mut([1, 2_000_000, 1]).unwrap().fill(7);
    let mut y = [0.0_f32; 600];
    let start = std::time::Instant::now();
    transformer.transform(0, &record, &mut y).unwrap();
    assert_eq!(y, [7.0; 600]);
    // Filtering all rows would take 2.4·10⁹ multiply-adds.
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn invalid_fields_of_the_ssd_fork_are_refused_by_name() {
    let fields = [
        ("resize_param { height: 300 }", "`resize_param`: `height` and `width` must be positive"),
        ("noise_param { jpeg: 80 }", "`noise_param`: `jpeg` is not supported"),
        ("noise_param { clahe: true }", "`noise_param`: `clahe` is not supported"),
        ("noise_param { convert_to_lab: true }", "`convert_to_lab` is not supported"),
        ("noise_param { saltpepper: true }", "`saltpepper` needs a `value`"),
        ("crop_h: 2", "set both `crop_h` and `crop_w`"),
    ];
    for (text, want) in fields {
        let param = crate::proto::parse_text(text, "transform_param").unwrap();
        let error = DataTransformer::new(&param, Phase::Train, KEY).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}
