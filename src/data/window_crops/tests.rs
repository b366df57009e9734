use super::*;
use std::{collections::BTreeMap, fs};

/// The directory of the window files and of the reference crops that OpenCV computed.
const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/windows/");

fn param() -> WindowDataParameter {
    WindowDataParameter {
        source: Some(DIR.to_owned() + "windows.txt"),
        root_folder: Some(DIR.into()),
        batch_size: Some(4),
        ..Default::default()
    }
}

fn transform() -> TransformationParameter {
    TransformationParameter { crop_size: Some(8), mirror: Some(true), ..Default::default() }
}

fn open(param: &WindowDataParameter, transform: &TransformationParameter) -> Result<WindowCrops> {
    WindowCrops::open(param, transform, RngKey::new(3))
}

fn floats(record: &Record) -> &[f32] {
    match record.values() {
        RecordValues::Floats(values) => values,
        RecordValues::Bytes(_) => panic!("bytes"),
    }
}

/// The test allows a difference of 1 from OpenCV's interpolated pixels.
#[test]
fn window_crops_match_opencv() {
    let text = fs::read_to_string(DIR.to_owned() + "expected.tsv").unwrap();
    let mut want: BTreeMap<_, Vec<[String; 2]>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [label, crop, pad, mode, mirrored, values] =
            line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
        want.entry(([crop, pad, mode], mirrored)).or_default().push([label, values]);
    }
    assert_eq!(want.len(), 8);
    for (([crop, pad, mode], mirrored), rows) in want {
        let transform = TransformationParameter {
            crop_size: crop.parse().ok(),
            mirror: Some(true),
            mean_value: vec![1.0, 2.0, 3.0],
            scale: Some(0.5),
            ..Default::default()
        };
        let param = WindowDataParameter {
            context_pad: pad.parse().ok(),
            crop_mode: Some(mode),
            fg_fraction: Some(1.0),
            ..param()
        };
        let mut windows = open(&param, &transform).unwrap();
        let mut record = Record::default();
        for [label, values] in rows {
            // Search for a record number for which the source chooses the expected window and
            // mirroring.
            let number = (0..).find(|&number| {
                windows.next = number;
                let (window, flipped) = windows.draw();
                window.label.to_string() == label && flipped == (mirrored == "yes")
            });
            windows.next = number.unwrap();
            windows.read(&mut record).unwrap();
            let (got, plane) = (floats(&record), record.count() / 3);
            assert_eq!(values.split(',').count(), got.len());
            for (i, (got, want)) in got.iter().zip(values.split(',')).enumerate() {
                let want =
                    want.parse::<f32>().map(|want| (want - [1.0, 2.0, 3.0][i / plane]) * 0.5);
                match want {
                    Ok(want) => assert!((got - want).abs() <= 0.5, "{label} {i}: {got}, {want}"),
                    Err(_) => assert_eq!(*got, 0.0, "{label} {i}"),
                }
            }
        }
    }
}

#[test]
fn batches_have_the_fraction_of_foreground_windows_after_any_skip() {
    let mut windows = open(&param(), &transform()).unwrap();
    let mut record = Record::default();
    let mut read = |windows: &mut WindowCrops| {
        windows.read(&mut record).unwrap();
        (record.label(), floats(&record).to_vec())
    };
    let first: Vec<_> = (0..200).map(|_| read(&mut windows)).collect();
    // The last quarter of each batch consists of foreground windows.
    for batch in first.chunks(4) {
        let labels: Vec<_> = batch.iter().map(|(label, _)| (1..=4).contains(label)).collect();
        assert_eq!(labels, [false, false, false, true]);
    }
    let count = |label| first.iter().filter(|(other, _)| *other == label).count();
    // The 50 foreground windows have labels from 1 to 4, so each label occurs 12.5 times on
    // average. The 150 background windows have the label 0.
    assert!((1..=4).all(|label| (5..=22).contains(&count(label))));
    assert_eq!(count(0), 150);
    let mut cached =
        open(&WindowDataParameter { cache_images: Some(true), ..param() }, &transform());
    let cached = cached.as_mut().unwrap();
    cached.skip(150).unwrap();
    assert!(first[150..].iter().all(|want| read(cached) == *want));
}

#[test]
fn foreground_windows_never_exceed_a_batch_size_that_f32_rounds_up() {
    let batch_size = Some((1 << 24) + 3);
    let all_foreground = WindowDataParameter { batch_size, fg_fraction: Some(1.0), ..param() };
    let windows = open(&all_foreground, &transform()).unwrap();
    assert_eq!(windows.foreground, windows.batch);
}

#[test]
fn a_larger_mean_image_is_centred_on_the_crop() {
    let shape = [1, 4, 6];
    let values = (0..24).map(|i| i as f32).collect();
    let mean = Mean::Image { file: "mean".into(), shape, values };
    mean.check_covers([1, 2, 2]).unwrap();
    assert_eq!(mean.get([1, 2, 2], [0, 0, 0]), 8.0);
    assert_eq!(mean.get([1, 2, 2], [0, 1, 1]), 15.0);
    for (shape, want) in [([1, 5, 2], "1 x 4 x 6"), ([3, 2, 2], "`mean_file` mean")] {
        let error = mean.check_covers(shape).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    assert!(Mean::Values(vec![1.0, 2.0]).check_covers([3, 2, 2]).is_err());
}

#[test]
fn errors_of_window_crops_name_the_invalid_parameter_line_or_window() {
    type Change = dyn Fn(&mut WindowDataParameter, &mut TransformationParameter);
    let cases: [(&Change, &str); 8] = [
        (&|_, t| t.crop_size = None, "`crop_size`"),
        (&|p, _| p.context_pad = Some(4), "`context_pad` 4"),
        (&|p, _| p.crop_mode = Some("wrap".into()), "`crop_mode` wrap"),
        (&|p, _| p.fg_fraction = Some(1.5), "`fg_fraction` must be in 0 to 1, found 1.5"),
        (&|p, _| p.fg_threshold = Some(1.5), "no foreground window"),
        (&|p, _| p.bg_threshold = Some(0.0), "no background window"),
        (&|p, _| (p.batch_size, p.bg_threshold) = (Some(0), Some(0.0)), "no background window"),
        (&|_, t| t.mean_value = vec![1.0; 2], "2 values of `mean_value`"),
    ];
    for (change, want) in cases {
        let (mut param, mut transform) = (param(), transform());
        change(&mut param, &mut transform);
        let error = open(&param, &transform).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
    }

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    let open_text = |text: &str| {
        fs::write(&path, text).unwrap();
        let source = Some(path.display().to_string());
        open(&WindowDataParameter { source, fg_fraction: Some(1.0), ..param() }, &transform())
    };
    let image = "# 0\n../images/color.png\n3 9 11\n1\n";
    for (text, want) in [
        (String::new(), "lists no images"),
        ("image".into(), "list:1: expected `#`"),
        (format!("{image}1 1 0 0 5"), "list:5: the file ends before a window's y2"),
        (format!("{image}1 1 0 0 5 x"), "list:5: expected a window's y2, not `x`"),
        (format!("{image}0 1 0 0 5 5"), "list:5: a foreground window"),
        (image.replace('3', "2"), "list:3: expected 1 or 3 channels, found 2"),
        (
            format!("{image}1 1 0 0 5 5 # 1 b.png 1"),
            "list:5: expected 3 channels like the preceding images, found 1",
        ),
    ] {
        let error = open_text(&text).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
    }
    for (window, want) in [
        ("1 1 8 2 11 5", "window 8 2 11 5 is outside the image of 9 x 11 pixels"),
        ("1 1 5 2 4 5", "window 5 2 4 5 is outside"),
        ("1 1 -1 2 4 5", "window -1 2 4 5 is outside"),
    ] {
        let mut windows = open_text(&format!("{image}{window}")).unwrap();
        let error = windows.read(&mut Record::default()).unwrap_err().to_string();
        assert!(error.contains(want) && error.starts_with("../images/color.png: "), "{error}");
        windows.geometry.square = true;
        windows.geometry.pad = 3;
        let read = windows.read(&mut Record::default());
        assert_eq!(read.is_err(), window.starts_with("1 1 5"), "{read:?}");
    }
    let mut source = open_text(&format!("{image}1 1 2147483600 0 2147483647 5")).unwrap();
    source.geometry.pad = 3;
    assert!(source.read(&mut Record::default()).is_err());
    let missing = image.replace("color", "missing");
    let mut missing = open_text(&format!("{missing}1 1 0 0 5 5")).unwrap();
    let error = missing.read(&mut Record::default()).unwrap_err().to_string();
    assert!(error.contains("missing.png: No such file"), "{error}");
}
