//! Tests of the layer Yolov3DetectionOutput against the definition of the fork MobileNet-YOLO in
//! `f64`.

use cortado::{CpuDevice, Net, Result, proto};

const ANCHORS: [[f64; 2]; 4] = [[12.0, 20.0], [30.0, 14.0], [41.0, 60.0], [70.0, 75.0]];
const CLASSES: usize = 3;

/// One bottom: the number of rows and columns, the distance between positions in pixels, and the
/// anchor boxes.
struct Head {
    size: [usize; 2],
    scale: f64,
    mask: [usize; 2],
}

const HEADS: [Head; 2] = [
    Head { size: [2, 3], scale: 32.0, mask: [2, 3] },
    Head { size: [4, 6], scale: 16.0, mask: [0, 1] },
];

fn definition(images: usize, param: &str) -> String {
    let mut text = String::new();
    for (i, head) in HEADS.iter().enumerate() {
        let shape = [images, 2 * (5 + CLASSES), head.size[0], head.size[1]];
        text += &format!(
            "layer {{ name: 'x{i}' type: 'Input' top: 'x{i}' \
             input_param {{ shape {{ dim: {shape:?} }} }} }}\n"
        );
    }
    text + &format!(
        "layer {{ name: 'y' type: 'Yolov3DetectionOutput' bottom: 'x0' bottom: 'x1' top: 'y' \
         yolov3_detection_output_param {{ {param} }} }}"
    )
}

fn net(images: usize, param: &str) -> Result<Net<f32>> {
    Net::builder(&CpuDevice::new()).build(&proto::parse_text(definition(images, param), "net")?)
}

const PARAM: &str = "num_classes: 3 num_box: 2 confidence_threshold: 0.4 nms_threshold: 0.35
    mask_group_num: 2 mask: [2, 3, 0, 1] anchors_scale: [32, 16]
    biases: [12, 20, 30, 14, 41, 60, 70, 75]";

/// Returns the rows of the top for one image, whose values in bottom `i` are `values[i]`.
fn expected(image: usize, values: &[Vec<f64>; 2], threshold: f64, overlap: f64) -> Vec<[f64; 7]> {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut found = Vec::new();
    for (head, values) in HEADS.iter().zip(values) {
        let [rows, columns] = head.size;
        for y in 0..rows {
            for x in 0..columns {
                for (n, anchor) in head.mask.into_iter().enumerate() {
                    let value = |channel: usize| {
                        values[((n * (5 + CLASSES) + channel) * rows + y) * columns + x]
                    };
                    for class in 0..CLASSES {
                        let score = sigmoid(value(4)) * sigmoid(value(5 + class));
                        if score <= threshold {
                            continue;
                        }
                        let center_x = (x as f64 + sigmoid(value(0))) / columns as f64;
                        let center_y = (y as f64 + sigmoid(value(1))) / rows as f64;
                        let [pixels_x, pixels_y] =
                            [columns as f64 * head.scale, rows as f64 * head.scale];
                        let width = value(2).exp() * ANCHORS[anchor][0] / pixels_x;
                        let height = value(3).exp() * ANCHORS[anchor][1] / pixels_y;
                        found.push([
                            image as f64,
                            class as f64 + 1.0,
                            score,
                            center_x - width / 2.0,
                            center_y - height / 2.0,
                            center_x + width / 2.0,
                            center_y + height / 2.0,
                        ]);
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| b[2].total_cmp(&a[2]));
    let mut removed = vec![false; found.len()];
    for i in 0..found.len() {
        for j in i + 1..found.len() {
            if !removed[i] && intersection_over_union(&found[i], &found[j]) >= overlap {
                removed[j] = true;
            }
        }
    }
    let kept = found.into_iter().zip(removed);
    kept.filter(|(_, removed)| !removed).map(|(row, _)| row).collect()
}

fn intersection_over_union(a: &[f64; 7], b: &[f64; 7]) -> f64 {
    let side = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    let area = |row: &[f64; 7]| (row[5] - row[3]) * (row[6] - row[4]);
    let intersection = side(3) * side(4);
    intersection / (area(a) + area(b) - intersection)
}

/// Returns different values in [−2, 2.5) for element `i` of bottom `bottom`.
fn value(bottom: usize, i: usize) -> f32 {
    ((i * 7919 + bottom * 131) % 1009) as f32 / 224.0 - 2.0
}

#[test]
fn boxes_of_yolo_are_those_of_the_definition() {
    let mut net = net(2, PARAM).unwrap();
    let items = [0, 1].map(|bottom| {
        let blob = net.blob(&format!("x{bottom}")).unwrap();
        let data: Vec<f32> = (0..blob.count()).map(|i| value(bottom, i)).collect();
        blob.copy_from_slice(&data).unwrap();
        data.into_iter().map(f64::from).collect::<Vec<_>>()
    });
    let item = |image: usize, bottom: usize| {
        let len = items[bottom].len() / 2;
        items[bottom][image * len..(image + 1) * len].to_vec()
    };
    let values = [0, 1].map(|image| [0, 1].map(|bottom| item(image, bottom)));
    net.forward().unwrap();
    let found: Vec<f32> = net.blob("y").unwrap().to_vec().unwrap();
    let want: Vec<[f64; 7]> = values
        .iter()
        .enumerate()
        .flat_map(|(image, values)| expected(image, values, f64::from(0.4f32), f64::from(0.35f32)))
        .collect();
    // The threshold removes some of the 360 scores, and the suppression removes some of the rest.
    let all = values.iter().flat_map(|values| expected(0, values, f64::from(0.4f32), 2.0)).count();
    assert!(want.len() >= 20 && all >= want.len() + 10 && all <= 300, "{} of {all}", want.len());
    assert_eq!(net.blob("y").unwrap().shape().to_vec(), [1, 1, want.len(), 7]);
    for (i, (row, want)) in found.chunks(7).zip(&want).enumerate() {
        for (found, want) in row.iter().zip(want) {
            // About 16 roundings of an `f32`, relative to the largest edges, which are below 3.
            assert!((f64::from(*found) - want).abs() < 3e-6, "row {i}: {row:?}, expected {want:?}");
        }
    }
}

#[test]
fn images_without_a_box_have_a_row_of_minus_one() {
    let mut net = net(2, &PARAM.replace("0.4", "1")).unwrap();
    net.forward().unwrap();
    let rows: Vec<f32> = net.blob("y").unwrap().to_vec().unwrap();
    let row = |image: f32| [image, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0];
    assert_eq!(rows, [row(0.0), row(1.0)].concat());
}

const PARAM_2: &str = "type: 'YoloDetectionOutput' yolo_detection_output_param { num_classes: 3
    num_box: 2 coords: 4 confidence_threshold: 0.4 nms_threshold: 0.1 biases: [0.5, 1.5, 2, 1] }";

fn net_2(param: &str) -> Result<Net<f32>> {
    let mut text = definition(2, "");
    text.truncate(text.find("layer { name: 'y'").unwrap());
    text += &format!("layer {{ name: 'y' bottom: 'x0' bottom: 'x1' top: 'y' {param} }}");
    Net::builder(&CpuDevice::new()).build(&proto::parse_text(text, "net")?)
}

#[test]
fn boxes_of_version_2_belong_to_the_most_likely_class() {
    let mut net = net_2(PARAM_2).unwrap();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut found = [Vec::new(), Vec::new()];
    for (bottom, head) in HEADS.iter().enumerate() {
        let ([rows, columns], blob) = (head.size, net.blob(&format!("x{bottom}")).unwrap());
        let data: Vec<f32> = (0..blob.count()).map(|i| value(bottom, i)).collect();
        blob.copy_from_slice(&data).unwrap();
        // `i` counts the boxes by image, anchor box, row and column.
        for i in 0..2 * 2 * rows * columns {
            let (image, n) = (i / (2 * rows * columns), i / (rows * columns) % 2);
            let (y, x) = (i / columns % rows, i % columns);
            let value = |channel: usize| {
                let channel = (image * 2 + n) * (5 + CLASSES) + channel;
                f64::from(data[(channel * rows + y) * columns + x])
            };
            let probability = |class: usize| {
                let sum: f64 = (0..CLASSES).map(|class| value(5 + class).exp()).sum();
                value(5 + class).exp() / sum
            };
            let mut classes: Vec<usize> = (0..CLASSES).collect();
            classes.sort_by(|&a, &b| probability(b).total_cmp(&probability(a)));
            let score = sigmoid(value(4)) * probability(classes[0]);
            let anchor = [[0.5, 1.5], [2.0, 1.0]][n];
            let center = [
                (x as f64 + sigmoid(value(0))) / columns as f64,
                (y as f64 + sigmoid(value(1))) / rows as f64,
            ];
            let half = [
                value(2).exp() * anchor[0] / columns as f64 / 2.0,
                value(3).exp() * anchor[1] / rows as f64 / 2.0,
            ];
            if score >= 0.4 {
                found[image].push([
                    image as f64,
                    classes[0] as f64 + 1.0,
                    score,
                    center[0] - half[0],
                    center[1] - half[1],
                    center[0] + half[0],
                    center[1] + half[1],
                ]);
            }
        }
    }
    let mut want = Vec::new();
    let all: usize = found.iter().map(Vec::len).sum();
    for mut found in found {
        found.sort_by(|a, b| b[2].total_cmp(&a[2]));
        let mut kept: Vec<[f64; 7]> = Vec::new();
        for row in found {
            if kept.iter().all(|other| intersection_over_union(other, &row) < 0.1) {
                kept.push(row);
            }
        }
        want.extend(kept);
    }
    net.forward().unwrap();
    assert!(want.len() >= 8 && all > want.len() && all < 120, "{} of {all}", want.len());
    let rows: Vec<f32> = net.blob("y").unwrap().to_vec().unwrap();
    assert_eq!(rows.len(), want.len() * 7);
    for (found, want) in rows.iter().zip(want.as_flattened()) {
        // Roundings as for version 3, but relative to larger edges: an edge is at most e^2.5 cells
        // from the center of its box, and therefore below 14.
        assert!((f64::from(*found) - want).abs() < 1e-5, "{found}, expected {want}");
    }
    for (old, new, message) in [
        ("num_classes: 3", "", "num_classes is required"),
        ("num_box: 2", "num_box: 3", "each of num_box 3 anchor boxes in biases, found 4 values"),
        ("coords: 4", "coords: 5", "coords must be 4, found 5"),
        (", 1]", ", 0]", "biases must be positive"),
        ("num_classes: 3", "num_classes: 4", "bottom 0: expected 2 images and 2·9 channels"),
    ] {
        let error = net_2(&PARAM_2.replacen(old, new, 1)).err().unwrap().to_string();
        assert!(error.contains("layer `y`") && error.contains(message), "{error}");
    }
}

#[test]
fn invalid_parameters_of_yolo_are_refused() {
    let cases = [
        ("num_classes: 3", "", "num_classes is required"),
        ("num_classes: 3", "num_classes: 4", "bottom 0: expected 1 images and 2·9 channels"),
        ("num_box: 2", "num_box: 0", "mask_group_num and num_box must be positive"),
        ("num_box: 2", "num_box: 3", "expected mask_group_num · num_box = 2·3 values of mask"),
        ("mask_group_num: 2", "mask_group_num: 1", "= 1·2 values of mask, found 4"),
        ("[32, 16]", "[32]", "expected 2 positive values of anchors_scale"),
        ("[32, 16]", "[32, 0]", "expected 2 positive values of anchors_scale"),
        (", 75]", "]", "expected an even number of biases"),
        (", 75]", ", -1]", "biases must be positive, found -1"),
        ("[2, 3, 0, 1]", "[2, 3, 0, 4]", "mask names anchor box 4, but biases has only 4"),
        ("0.35", "nan", "nms_threshold must be a number"),
        ("num_box: 2", "num_box: 2 gaussian_box: true", "gaussian_box: true is not supported"),
    ];
    for (old, new, want) in cases {
        let error = net(1, &PARAM.replace(old, new)).err().unwrap_or_else(|| panic!("{new}"));
        let error = error.to_string();
        assert!(error.contains("layer `y`") && error.contains(want), "{error}");
    }
}
