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
