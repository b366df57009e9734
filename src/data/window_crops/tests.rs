use super::*;
use crate::data::RecordValues;
use std::{collections::BTreeMap, path::PathBuf};

fn folder() -> String {
    format!("{}/", PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/windows").display())
}

fn param() -> WindowDataParameter {
    WindowDataParameter {
        source: Some(folder() + "windows.txt"),
        root_folder: Some(folder()),
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

/// Pixels that OpenCV mixes are within 1 of those mixed here.
#[test]
fn windows_are_stretched_as_with_opencv() {
    let text = fs::read_to_string(folder() + "expected.tsv").unwrap();
    let mut want: BTreeMap<_, Vec<[String; 2]>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [label, crop, pad, mode, mirrored, values] =
            line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
        let how = [crop, pad, mode];
        want.entry((how, mirrored)).or_default().push([label, values]);
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
            // Until chance brings it.
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
fn batches_have_their_share_of_the_foreground_whatever_was_skipped() {
    let mut windows = open(&param(), &transform()).unwrap();
    let mut record = Record::default();
    let mut read = |windows: &mut WindowCrops| {
        windows.read(&mut record).unwrap();
        (record.label(), floats(&record).to_vec())
    };
    let first: Vec<_> = (0..200).map(|_| read(&mut windows)).collect();
    // A quarter of each batch, at its end.
    for batch in first.chunks(4) {
        let labels: Vec<_> = batch.iter().map(|(label, _)| (1..=4).contains(label)).collect();
        assert_eq!(labels, [false, false, false, true]);
    }
    let drawn = |label| first.iter().filter(|(drawn, _)| *drawn == label).count();
    // Of 50, a quarter is expected of each; those below both thresholds have lost their label.
    assert!((1..=4).all(|label| (5..=22).contains(&drawn(label))));
    assert_eq!(drawn(0), 150);
    let mut again =
        open(&WindowDataParameter { cache_images: Some(true), ..param() }, &transform());
    let again = again.as_mut().unwrap();
    again.skip(150).unwrap();
    assert!(first[150..].iter().all(|want| read(again) == *want));
}

#[test]
fn a_batch_that_single_precision_rounds_up_is_all_foreground() {
    let batch_size = Some((1 << 24) + 3);
    let all = WindowDataParameter { batch_size, fg_fraction: Some(1.0), ..param() };
    let windows = open(&all, &transform()).unwrap();
    assert_eq!(windows.foreground, windows.batch);
}

#[test]
fn a_mean_image_is_taken_from_its_middle() {
    let shape = [1, 4, 6];
    let values = (0..24).map(|i| i as f32).collect();
    let mean = Mean::Image { file: "mean".into(), shape, values };
    mean.expect([1, 2, 2]).unwrap();
    assert_eq!(mean.at([1, 2, 2], [0, 0, 0]), 8.0);
    assert_eq!(mean.at([1, 2, 2], [0, 1, 1]), 15.0);
    for (shape, want) in [([1, 5, 2], "1 x 4 x 6"), ([3, 2, 2], "`mean_file` mean")] {
        let error = mean.expect(shape).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    assert!(Mean::Values(vec![1.0, 2.0]).expect([3, 2, 2]).is_err());
}

#[test]
fn what_is_wrong_is_named() {
    type Change = dyn Fn(&mut WindowDataParameter, &mut TransformationParameter);
    let refused = |change: &Change| {
        let (mut param, mut transform) = (param(), transform());
        change(&mut param, &mut transform);
        open(&param, &transform).err().unwrap().to_string()
    };
    let cases: [(&Change, &str); 7] = [
        (&|_, t| t.crop_size = None, "`crop_size`"),
        (&|p, _| p.context_pad = Some(4), "`context_pad` 4"),
        (&|p, _| p.crop_mode = Some("wrap".into()), "`crop_mode` wrap"),
        (&|p, _| p.fg_fraction = Some(1.5), "`fg_fraction` 1.5"),
        (&|p, _| p.fg_threshold = Some(1.5), "no windows for the foreground"),
        (&|p, _| p.bg_threshold = Some(0.0), "no windows for the background"),
        (&|_, t| t.mean_value = vec![1.0; 2], "2 times `mean_value`"),
    ];
    for (change, want) in cases {
        let error = refused(change);
        assert!(error.contains(want), "{error}");
    }

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    let listed = |text: &str| {
        fs::write(&path, text).unwrap();
        let source = Some(path.display().to_string());
        open(&WindowDataParameter { source, fg_fraction: Some(1.0), ..param() }, &transform())
    };
    let image = "# 0\n../images/color.png\n3 9 11\n1\n";
    for (text, want) in [
        (String::new(), "it lists no images"),
        ("image".into(), "list:1: `#` is expected"),
        (format!("{image}1 1 0 0 5"), "list:5: it ends before a window's y2"),
        (format!("{image}1 1 0 0 5 x"), "list:5: a window's y2 is expected, not `x`"),
        (format!("{image}0 1 0 0 5 5"), "list:5: a window of the foreground"),
        (image.replace('3', "2"), "list:3: images have 1 or 3 channels, not 2"),
        (format!("{image}1 1 0 0 5 5 # 1 b.png 1"), "list:5: 1 channels after images of 3"),
    ] {
        let error = listed(&text).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
    }
    for (window, want) in [
        ("1 1 8 2 11 5", "window 8 2 11 5 does not lie in an image of 9 x 11 pixels"),
        ("1 1 5 2 4 5", "window 5 2 4 5 does not"),
        ("1 1 -1 2 4 5", "window -1 2 4 5 does not"),
    ] {
        let mut windows = listed(&format!("{image}{window}")).unwrap();
        let error = windows.read(&mut Record::default()).unwrap_err().to_string();
        assert!(error.contains(want) && error.starts_with("../images/color.png: "), "{error}");
        windows.stretch.square = true;
        windows.stretch.pad = 3;
        let taken = windows.read(&mut Record::default());
        assert_eq!(taken.is_err(), window.starts_with("1 1 5"), "{taken:?}");
    }
    let mut far = listed(&format!("{image}1 1 2147483600 0 2147483647 5")).unwrap();
    far.stretch.pad = 3;
    assert!(far.read(&mut Record::default()).is_err());
    let gone = image.replace("color", "gone");
    let mut gone = listed(&format!("{gone}1 1 0 0 5 5")).unwrap();
    let error = gone.read(&mut Record::default()).unwrap_err().to_string();
    assert!(error.contains("gone.png: No such file"), "{error}");
}
