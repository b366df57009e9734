//! Tests of the layers of the SSD fork: errors, and cases that OpenCV does not support.
//! `tests/opencv.rs` compares the other cases with OpenCV.

use cortado::{CpuDevice, Net, Result, proto};

fn net(text: &str) -> Result<Net<f32>> {
    Net::builder(&CpuDevice::new()).build(&proto::parse_text(text, "net")?)
}

fn input(name: &str, shape: &[usize]) -> String {
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' \
         input_param {{ shape {{ dim: {shape:?} }} }} }}"
    )
}

fn set(net: &Net<f32>, blob: &str, values: &[f32]) {
    net.blob(blob).unwrap().copy_from_slice(values).unwrap();
}

fn values(net: &Net<f32>, blob: &str) -> Vec<f32> {
    net.blob(blob).unwrap().to_vec().unwrap()
}

fn assert_close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(*got) - want).abs() < 1e-6 * want.abs().max(1.0), "{i}: {got} {want}");
    }
}

#[test]
fn normalize_over_all_positions_scales_each_channel() {
    let layer = "layer { name: 'y' type: 'Normalize' bottom: 'x' top: 'y'
        norm_param { channel_shared: false eps: 0.25 } }";
    let mut net = net(&(input("x", &[2, 3, 2, 2]) + layer)).unwrap();
    let x: Vec<f32> = (0..24).map(|i| (i * i % 17) as f32 - 8.0).collect();
    let factors = [0.5, 2.0, -3.0];
    set(&net, "x", &x);
    net.params()[0].blob().copy_from_slice(&factors).unwrap();
    net.forward().unwrap();
    let item = |i: usize| &x[i / 12 * 12..i / 12 * 12 + 12];
    let squares = |i: usize| item(i).iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let want =
        |i: usize| f64::from(factors[i % 12 / 4]) * f64::from(x[i]) / (squares(i) + 0.25).sqrt();
    assert_close(&values(&net, "y"), &(0..24).map(want).collect::<Vec<_>>());
}

#[test]
fn permute_appends_axes_that_the_order_does_not_name() {
    let layer =
        "layer { name: 'y' type: 'Permute' bottom: 'x' top: 'y' permute_param { order: 2 } }";
    let mut net = net(&(input("x", &[2, 1, 3]) + layer)).unwrap();
    set(&net, "x", &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    net.forward().unwrap();
    assert_eq!(net.blob("y").unwrap().shape().to_vec(), [3, 2, 1]);
    assert_eq!(values(&net, "y"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
}

/// Returns a net with one PriorBox layer on a feature map of 1 × 2 positions and an image of
/// 10 × 20 pixels.
fn prior_box(param: &str) -> Result<Net<f32>> {
    let layer = format!(
        "layer {{ name: 'y' type: 'PriorBox' bottom: 'f' bottom: 'x' top: 'y' \
         prior_box_param {{ {param} }} }}"
    );
    net(&(input("f", &[1, 4, 1, 2]) + &input("x", &[1, 3, 10, 20]) + &layer))
}

#[test]
fn prior_boxes_have_whole_sizes_in_pixels() {
    // The fork truncates 4.9 and 9.9 to 4 and 9, and the geometric mean of 4 and 9 is 6.
    let mut net = prior_box("min_size: 4.9 max_size: 9.9 variance: [0.1, 0.2, 0.3, 0.4]").unwrap();
    net.forward().unwrap();
    let mut want = Vec::new();
    for center in [5.0, 15.0] {
        for size in [4.0, 6.0] {
            let (x, y) =
                ([center - size / 2.0, center + size / 2.0], [5.0 - size / 2.0, 5.0 + size / 2.0]);
            want.extend([x[0] / 20.0, y[0] / 10.0, x[1] / 20.0, y[1] / 10.0]);
        }
    }
    want.extend([0.1, 0.2, 0.3, 0.4].repeat(4));
    assert_close(&values(&net, "y"), &want);
}

#[test]
fn prior_boxes_use_the_given_image_size_without_an_image() {
    let layer = "layer { name: 'y' type: 'PriorBox' bottom: 'f' top: 'y' prior_box_param {
        min_size: 4 img_h: 10 img_w: 20 step: 8 offset: 0.25 clip: true aspect_ratio: [4, 1, 4] } }";
    let mut net = net(&(input("f", &[1, 4, 1, 1]) + layer)).unwrap();
    net.forward().unwrap();
    let mut want = Vec::new();
    // A square box, a box of 8 × 2 pixels, and its flip.
    for [width, height] in [[4.0, 4.0], [8.0, 2.0], [2.0, 8.0]] {
        let edge =
            |size: f64, side: f64, image: f64| ((2.0 + side * size / 2.0) / image).clamp(0.0, 1.0);
        want.extend([edge(width, -1.0, 20.0), edge(height, -1.0, 10.0)]);
        want.extend([edge(width, 1.0, 20.0), edge(height, 1.0, 10.0)]);
    }
    want.extend([f64::from(0.1f32); 12]);
    assert_close(&values(&net, "y"), &want);
}

#[test]
fn invalid_prior_box_parameters_are_refused() {
    let cases = [
        ("", "min_size is required"),
        ("min_size: -1", "min_size must be positive, found -1"),
        ("min_size: nan", "min_size must be positive, found NaN"),
        ("min_size: 2 max_size: 2", "max_size 2 must be greater than min_size 2"),
        ("min_size: 2 max_size: [3, 4]", "as many values of max_size as of min_size (1), found 2"),
        ("min_size: 2 aspect_ratio: 0", "aspect_ratio must be positive, found 0"),
        ("min_size: 2 variance: 0", "variance must be positive, found 0"),
        ("min_size: 2 variance: [1, 1]", "expected 0, 1 or 4 values of variance, found 2"),
        ("min_size: 2 step: -1", "step must be positive, found -1"),
        ("min_size: 2 step_h: 1", "expected either step, or both step_w and step_h"),
        ("min_size: 2 step: 1 step_h: 1 step_w: 1", "expected either step"),
        ("min_size: 2 img_size: 0", "img_size must be positive, found 0"),
        ("min_size: 2 img_w: 3", "expected either img_size, or both img_w and img_h"),
        ("min_size: 2 offset_h: 0.5", "as many values of offset_h as of offset_w"),
        ("min_size: 2 width: 3 height: 3", "no min_size or max_size"),
        ("width: 3", "as many values of height as of width"),
    ];
    for (param, want) in cases {
        let error = prior_box(param).err().unwrap_or_else(|| panic!("{param}")).to_string();
        assert!(error.contains("layer `y`") && error.contains("prior_box_param: "), "{error}");
        assert!(error.contains(want), "{error}");
    }
    let layer = "layer { name: 'y' type: 'PriorBox' bottom: 'f' top: 'y' \
                 prior_box_param { min_size: 4 } }";
    let error =
        net(&(input("f", &[1, 4, 1, 1]) + layer)).unwrap().forward().unwrap_err().to_string();
    assert!(error.contains("layer `y`") && error.contains("give img_size"), "{error}");
}

/// Returns a net with one DetectionOutput layer for `boxes` prior boxes and two classes.
fn detection_output(boxes: usize, param: &str) -> Result<Net<f32>> {
    let layer = format!(
        "layer {{ name: 'y' type: 'DetectionOutput' bottom: 'l' bottom: 's' bottom: 'p' top: 'y' \
         detection_output_param {{ num_classes: 2 {param} }} }}"
    );
    let [l, s] = [input("l", &[1, boxes * 4]), input("s", &[1, boxes * 2])];
    net(&(l + &s + &input("p", &[1, 2, boxes * 4]) + &layer))
}

#[test]
fn corner_size_offsets_are_multiples_of_the_prior_boxs_size() {
    let mut net = detection_output(1, "code_type: CORNER_SIZE").unwrap();
    set(&net, "l", &[1.0, -1.0, 2.0, 0.5]);
    set(&net, "s", &[0.0, 0.5]);
    set(&net, "p", &[0.25, 0.5, 0.75, 0.75, 0.1, 0.2, 0.3, 0.4]);
    net.forward().unwrap();
    let want = [0.0, 1.0, 0.5, 0.25 + 0.05, 0.5 - 0.05, 0.75 + 0.3, 0.75 + 0.05];
    assert_close(&values(&net, "y"), &want);
}

#[test]
fn the_factor_eta_lowers_the_overlap_threshold_after_each_box() {
    // Boxes of the same width, shifted by a quarter of the width: neighbours overlap by 0.6, others
    // by 1/3.
    let edges = |i: usize| [0.25 * i as f32, 0.0, 0.25 * i as f32 + 1.0, 1.0];
    let priors: Vec<f32> = (0..3).flat_map(edges).chain([0.1; 12]).collect();
    let labels = |param: &str| {
        let param = format!("nms_param {{ nms_threshold: 0.7 {param} }}");
        let mut net = detection_output(3, &param).unwrap();
        set(&net, "s", &[0.0, 0.9, 0.0, 0.8, 0.0, 0.7]);
        set(&net, "p", &priors);
        net.forward().unwrap();
        values(&net, "y").chunks(7).map(|row| row[2]).collect::<Vec<_>>()
    };
    assert_eq!(labels("eta: 1"), [0.9, 0.8, 0.7]);
    // The threshold falls to 0.56 after the first box, so that its neighbour is removed.
    assert_eq!(labels("eta: 0.8"), [0.9, 0.7]);
    assert_eq!(labels("eta: 1 top_k: 2"), [0.9, 0.8]);
}

#[test]
fn an_image_without_boxes_has_a_row_of_minus_one() {
    let mut net = detection_output(1, "confidence_threshold: 0.5").unwrap();
    set(&net, "s", &[0.5, 0.5]);
    net.forward().unwrap();
    assert_eq!(values(&net, "y"), [0.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]);
}

#[test]
fn invalid_detections_are_refused() {
    let cases = [
        ("num_classes: 0", "num_classes is required"),
        ("nms_param { nms_threshold: -0.1 }", "nms_threshold must be 0 or more, found -0.1"),
        ("nms_param { nms_threshold: nan }", "nms_threshold must be 0 or more, found NaN"),
        ("nms_param { eta: 0 }", "eta must be in (0, 1], found 0"),
        ("nms_param { eta: 1.5 }", "eta must be in (0, 1], found 1.5"),
        ("normalized: false input_width: 300", "normalized: false is not supported"),
        ("num_classes: 3", "bottom 1 (scores)"),
        ("share_location: false", "bottom 0 (offsets)"),
    ];
    for (param, want) in cases {
        let classes = if param.contains("num_classes") { "" } else { "num_classes: 2" };
        let layer = format!(
            "layer {{ name: 'y' type: 'DetectionOutput' bottom: 'l' bottom: 's' bottom: 'p' \
             top: 'y' detection_output_param {{ {classes} {param} }} }}"
        );
        let inputs = input("l", &[1, 4]) + &input("s", &[1, 2]) + &input("p", &[1, 2, 4]);
        let error = net(&(inputs + &layer)).err().unwrap_or_else(|| panic!("{layer}")).to_string();
        assert!(error.contains("layer `y`") && error.contains(want), "{error}");
    }
    // The prior box of the Input layer has the width and height 0, which the code type CENTER_SIZE
    // does not allow.
    let mut net = detection_output(1, "code_type: CENTER_SIZE").unwrap();
    set(&net, "p", &[0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]);
    net.reshape().unwrap();
    let error = net.forward().unwrap_err().to_string();
    assert!(error.contains("layer `y`") && error.contains("prior box 0"), "{error}");
}

#[test]
fn invalid_orders_of_axes_are_refused() {
    for (order, want) in [("[0, 0]", "order names axis 0 twice"), ("3", "order names axis 3")] {
        let layer = format!(
            "layer {{ name: 'y' type: 'Permute' bottom: 'x' top: 'y' \
             permute_param {{ order: {order} }} }}"
        );
        let error = net(&(input("x", &[1, 2]) + &layer)).err().unwrap().to_string();
        assert!(error.contains("layer `y`") && error.contains(want), "{error}");
    }
}
