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

fn transformed<T: Element>(with: &DataTransformer, number: u64, record: &Record) -> Vec<T> {
    let count = with.output_shape(record).unwrap().iter().product();
    let mut y = vec![T::from_f64(f64::NAN); count];
    with.transform(number, record, &mut y).unwrap();
    y
}

/// `scale · (x − mean)` of the window at (`top`, `left`), element by element.
fn naive(
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

fn image(i: usize) -> f32 {
    (i % 7) as f32 * 10.5
}

fn image_proto() -> BlobProto {
    let [channels, height, width] = SHAPE.map(|extent| Some(extent as i32));
    let data = (0..SHAPE.iter().product()).map(image).collect();
    BlobProto { num: Some(1), channels, height, width, data, ..Default::default() }
}

#[test]
fn values_are_scaled_less_the_mean() {
    let whole = (0, 0, SHAPE[1], SHAPE[2]);
    for record in [bytes(), floats()] {
        let plain = new(TransformationParameter::default(), Phase::Train);
        assert_eq!(transformed::<f32>(&plain, 0, &record), values(&record));

        let scale = Some(0.00390625);
        let param = TransformationParameter { scale, ..Default::default() };
        let want = naive(&record, |_, _| 0.0, 0.00390625, whole, false);
        assert_eq!(transformed::<f32>(&new(param.clone(), Phase::Test), 3, &record), want);
        let halves: Vec<f16> = want.iter().map(|&y| f16::from_f32(y)).collect();
        assert_eq!(transformed::<f16>(&new(param.clone(), Phase::Test), 3, &record), halves);
        let doubles: Vec<f64> = values(&record).iter().map(|&x| f64::from(x) / 256.0).collect();
        assert_eq!(transformed::<f64>(&new(param, Phase::Test), 3, &record), doubles);

        for means in [vec![104.5], vec![104.0, 117.0, 123.0]] {
            let want = naive(&record, |c, _| means[c % means.len()], 0.5, whole, false);
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
fn a_mean_file_is_taken_off_where_the_window_is() {
    let in_shape = BlobProto {
        shape: Some(BlobShape { dim: SHAPE.map(|extent| extent as i64).to_vec() }),
        data: image_proto().data,
        ..Default::default()
    };
    for proto in [image_proto(), in_shape] {
        let (_dir, path) = mean_file(&proto);
        for (crop, window) in [(0, (0, 0, 5, 4)), (2, (1, 1, 2, 2)), (4, (0, 0, 4, 4))] {
            let param = TransformationParameter {
                mean_file: Some(path.clone()),
                crop_size: Some(crop),
                scale: Some(2.0),
                ..Default::default()
            };
            for record in [bytes(), floats()] {
                let want = naive(&record, |_, i| image(i), 2.0, window, false);
                let test = new(param.clone(), Phase::Test);
                assert_eq!(transformed::<f32>(&test, 0, &record), want, "crop {crop}");
            }
        }
    }
}

/// Every window and direction occurs, about equally often, and what a number gives does not
/// depend on what came before.
#[test]
fn windows_are_random_in_training_and_repeatable() {
    let (_dir, path) = mean_file(&image_proto());
    let param = TransformationParameter {
        crop_size: Some(3),
        mirror: Some(true),
        mean_file: Some(path),
        ..Default::default()
    };
    let (record, train) = (bytes(), new(param.clone(), Phase::Train));
    assert_eq!(train.output_shape(&record).unwrap(), [3, 3, 3]);
    let windows: Vec<_> = (0..3).flat_map(|y| (0..2).map(move |x| (y, x, 3, 3))).collect();
    let windows = windows.into_iter().flat_map(|window| [(window, false), (window, true)]);
    let windows: Vec<_> = windows
        .map(|(window, mirrored)| naive(&record, |_, i| image(i), 1.0, window, mirrored))
        .collect();
    let mut seen = [0; 12];
    for number in 0..1200 {
        let y: Vec<f32> = transformed(&train, number, &record);
        seen[windows.iter().position(|window| *window == y).unwrap()] += 1;
    }
    // Binomial: 100 with a deviation of 9.6.
    assert!(seen.iter().all(|count| (60..140).contains(count)), "{seen:?}");

    let again = new(param.clone(), Phase::Train);
    for number in (0..50).rev() {
        let y: Vec<f32> = transformed(&again, number, &record);
        assert_eq!(y, transformed::<f32>(&train, number, &record));
    }
    let other = DataTransformer::new(&param, Phase::Train, RngKey::new(6)).unwrap();
    let differ = |number| {
        transformed::<f32>(&other, number, &record) != transformed::<f32>(&train, number, &record)
    };
    assert!((0..50).any(differ));
}

#[test]
fn testing_crops_the_middle_and_may_mirror() {
    let param =
        TransformationParameter { crop_size: Some(3), mirror: Some(true), ..Default::default() };
    let (record, test) = (floats(), new(param, Phase::Test));
    let [plain, mirrored] =
        [false, true].map(|mirror| naive(&record, |_, _| 0.0, 1.0, (1, 0, 3, 3), mirror));
    let count = (0..200).filter(|&number| {
        let y: Vec<f32> = transformed(&test, number, &record);
        assert!(y == plain || y == mirrored);
        y == mirrored
    });
    assert!((60..140).contains(&count.count()));
}

#[test]
fn what_does_not_fit_is_named() {
    let error = |param: TransformationParameter| {
        let made = DataTransformer::new(&param, Phase::Train, KEY);
        let error = made.and_then(|with| with.transform(0, &bytes(), &mut [0.0_f32; 60]));
        error.unwrap_err().to_string()
    };
    let with = TransformationParameter::default;
    let cases = [
        (
            TransformationParameter { crop_size: Some(5), ..with() },
            "`crop_size` 5 is too large for a record of 3 x 5 x 4",
        ),
        (
            TransformationParameter { mean_value: vec![1.0, 2.0], ..with() },
            "2 times `mean_value` for a record of 3 x 5 x 4",
        ),
        (
            TransformationParameter {
                mean_value: vec![1.0],
                mean_file: Some("mean".into()),
                ..with()
            },
            "`mean_file` and `mean_value` exclude each other",
        ),
        (
            TransformationParameter { mean_file: Some("no/such/file".into()), ..with() },
            "no/such/file: ",
        ),
    ];
    for (param, want) in cases {
        let text = error(param);
        assert!(text.contains(want), "{text}");
    }
    let plain = new(with(), Phase::Test);
    let error = plain.transform(0, &bytes(), &mut [0.0_f32; 59]).unwrap_err();
    assert!(matches!(error, Error::Length { operand: "y", want: 60, got: 59, .. }), "{error}");
}

#[test]
fn a_mean_file_of_another_shape_is_named() {
    let text = |proto| {
        let (_dir, path) = mean_file(&proto);
        let param = TransformationParameter { mean_file: Some(path.clone()), ..Default::default() };
        let made = DataTransformer::new(&param, Phase::Train, KEY);
        let error = made.and_then(|with| with.output_shape(&bytes()).map(|_| ()));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(&path), "{text}");
        text
    };
    let taller = BlobProto { height: Some(4), width: Some(5), ..image_proto() };
    let taller = text(taller);
    assert!(taller.contains("is 3 x 4 x 5, the record 3 x 5 x 4"), "{taller}");
    let two = BlobProto { num: Some(2), channels: Some(1), height: Some(6), ..image_proto() };
    let two = text(BlobProto { width: Some(5), ..two });
    assert!(two.contains("no image's"), "{two}");
    let short = text(BlobProto { data: vec![0.0; 59], ..image_proto() });
    assert!(short.contains("59 values"), "{short}");
}
