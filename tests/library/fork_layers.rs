//! Tests of layers of Caffe's forks against OpenCV, and against the formulas of the forks in `f64`.
//! `gradients.rs` checks the gradients of these layers.

use cortado::{
    CpuDevice, LayerRegistry, Net, Result,
    layer::{NeuronLayer, PythonParam, Relu},
    proto::{self, NetParameter, Phase},
    tensor_io,
};
use std::path::Path;

fn try_net(text: &str, phase: Phase) -> Result<Net<f32>> {
    let definition: NetParameter = proto::parse_text(text, "net.prototxt")?;
    Net::builder(&CpuDevice::new()).phase(phase).seed(5).build(&definition)
}

/// Returns the definition of an Input layer.
fn input(name: &str, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|extent| format!(" dim: {extent}")).collect();
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' input_param {{ shape {{{dims} }} }} }}\n"
    )
}

/// Returns a net with inputs of the shapes `inputs`, named `x`, `x1`, `x2`, …, and a layer from
/// these inputs to `y`, and sets the inputs to different values.
fn net_of(inputs: &[&[usize]], layer: &str, phase: Phase) -> (Net<f32>, Vec<Vec<f64>>) {
    let (mut text, mut bottoms) = (String::new(), String::new());
    for (i, shape) in inputs.iter().enumerate() {
        text += &input(&name(i), shape);
        bottoms += &format!(" bottom: '{}'", name(i));
    }
    text += &format!("layer {{ name: 'y' top: 'y'{bottoms} {layer} }}");
    let net = try_net(&text, phase).unwrap();
    let mut values = Vec::new();
    for i in 0..inputs.len() {
        let blob = net.blob(&name(i)).unwrap();
        let value = |k: usize| ((k * 37 + i * 11) % 101) as f32 / 16.0 - 3.0;
        let data: Vec<f32> = (0..blob.count()).map(value).collect();
        blob.copy_from_slice(&data).unwrap();
        values.push(data.into_iter().map(f64::from).collect());
    }
    (net, values)
}

fn name(input: usize) -> String {
    if input == 0 { "x".into() } else { format!("x{input}") }
}

/// Returns the top `y` after a forward pass.
fn forward(net: &mut Net<f32>) -> Vec<f64> {
    net.forward().unwrap();
    net.blob("y").unwrap().to_vec().unwrap().into_iter().map(f64::from).collect()
}

/// Asserts that the values differ by at most 1e-5 of the largest value, which is about 100
/// roundings of an `f32`.
fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(1e-3, |max: f64, value| max.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= 1e-5 * largest, "{what}: element {i}: {found}, expected {expected}");
    }
}

#[test]
fn fork_layers_give_the_results_of_opencv() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/opencv/layers");
    let mut count = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "npz") {
            continue;
        }
        let definition = proto::read_net(path.with_extension("prototxt")).unwrap();
        let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&definition).unwrap();
        let tensors = tensor_io::read_npz(&path).unwrap();
        let (mut expected, mut shape) = (Vec::new(), Vec::new());
        for (name, tensor) in &tensors {
            let values: Vec<f32> = tensor.to_vec().unwrap();
            match net.blob(name) {
                Some(blob) => blob.copy_from_slice(&values).unwrap(),
                None => {
                    expected = values.into_iter().map(f64::from).collect();
                    shape = tensor.shape().to_vec();
                }
            }
        }
        let found = forward(&mut net);
        let what = path.display().to_string();
        assert_eq!(net.blob("y").unwrap().shape().to_vec(), shape, "{what}");
        assert_close(&found, &expected, &what);
        count += 1;
    }
    assert_eq!(count, 9);
}

#[test]
fn axpy_scales_channels_and_adds() {
    let shapes: [&[usize]; 3] = [&[2, 3, 1, 1], &[2, 3, 2, 2], &[2, 3, 2, 2]];
    let (mut net, x) = net_of(&shapes, "type: 'Axpy'", Phase::Test);
    let expected: Vec<f64> = (0..24).map(|i| x[0][i / 4] * x[1][i] + x[2][i]).collect();
    assert_close(&forward(&mut net), &expected, "Axpy");
}

/// Returns the mean and the variance of channel `channel` of `x`, which has the shape 2 × 3 × 4.
fn moments(x: &[f64], channel: usize) -> (f64, f64) {
    let values = (0..24).filter(|i| i / 4 % 3 == channel).map(|i| x[i]);
    let mean = values.clone().sum::<f64>() / 8.0;
    (mean, values.map(|x| (x - mean).powi(2)).sum::<f64>() / 8.0)
}

#[test]
fn bn_of_segnet_normalizes_by_the_batch_in_both_phases() {
    for phase in [Phase::Train, Phase::Test] {
        let layer = "type: 'BN' bn_param { scale_filler { value: 3 } shift_filler { value: 0.5 } }";
        let (mut net, x) = net_of(&[&[2, 3, 4]], layer, phase);
        let normalized = |i: usize| {
            let (mean, variance) = moments(&x[0], i / 4 % 3);
            (x[0][i] - mean) / (variance + 1e-9).sqrt() * 3.0 + 0.5
        };
        assert_close(&forward(&mut net), &(0..24).map(normalized).collect::<Vec<_>>(), "LEARN");
    }
    let layer = "type: 'BN' bn_param { bn_mode: INFERENCE scale_filler { value: 3 }
        shift_filler { value: 0.5 } }";
    let (mut net, x) = net_of(&[&[2, 3, 4]], layer, Phase::Test);
    let expected: Vec<f64> = x[0].iter().map(|x| 3.0 * x + 0.5).collect();
    assert_close(&forward(&mut net), &expected, "INFERENCE");
}

#[test]
fn bn_of_pspnet_stores_moving_averages() {
    let layer = "type: 'BN' bn_param { slope_filler { value: 2 } bias_filler { value: -1 }
        momentum: 0.75 eps: 0.1 }";
    let (mut net, x) = net_of(&[&[2, 3, 4]], layer, Phase::Train);
    let expected = |statistics: &dyn Fn(usize) -> (f64, f64)| -> Vec<f64> {
        let normalized = |i: usize| {
            let (mean, variance) = statistics(i / 4 % 3);
            (x[0][i] - mean) / (variance + 0.1).sqrt() * 2.0 - 1.0
        };
        (0..24).map(normalized).collect()
    };
    assert_close(&forward(&mut net), &expected(&|channel| moments(&x[0], channel)), "TRAIN");
    let (mut test, _) = net_of(&[&[2, 3, 4]], layer, Phase::Test);
    test.share_trained_with(&net).unwrap();
    let stored = |channel| {
        let (mean, variance) = moments(&x[0], channel);
        (0.25 * mean, 0.25 * variance)
    };
    assert_close(&forward(&mut test), &expected(&stored), "TEST");
    let multipliers = |net: &Net<f32>| -> Vec<_> {
        net.params().iter().map(|param| param.lr_mult.unwrap_or(1.0)).collect()
    };
    assert_eq!(multipliers(&net), [1.0, 1.0, 0.0, 0.0]);
    let frozen = "type: 'BN' param { lr_mult: 1 } param { lr_mult: 2 } bn_param { frozen: true }";
    let (net, _) = net_of(&[&[2, 3, 4]], frozen, Phase::Train);
    assert_eq!(multipliers(&net), [0.0; 4]);
}

#[test]
fn batch_norm_of_nvidia_scales_and_shifts() {
    let layer = "type: 'BatchNorm' batch_norm_param { scale_filler { value: 2 }
        bias_filler { value: -1 } eps: 0.1 }";
    let (mut net, x) = net_of(&[&[2, 3, 4]], layer, Phase::Train);
    let expected = |statistics: &dyn Fn(usize) -> (f64, f64)| -> Vec<f64> {
        let normalized = |i: usize| {
            let (mean, variance) = statistics(i / 4 % 3);
            (x[0][i] - mean) / (variance + 0.1).sqrt() * 2.0 - 1.0
        };
        (0..24).map(normalized).collect()
    };
    assert_close(&forward(&mut net), &expected(&|channel| moments(&x[0], channel)), "TRAIN");
    let (mut test, _) = net_of(&[&[2, 3, 4]], layer, Phase::Test);
    test.share_trained_with(&net).unwrap();
    // The stored variance is unbiased: with 8 elements per channel, the variance is multiplied by
    // 8/7.
    let stored = |channel| {
        let (mean, variance) = moments(&x[0], channel);
        (mean, variance * 8.0 / 7.0)
    };
    assert_close(&forward(&mut test), &expected(&stored), "TEST");
    let learned: Vec<_> = net.params().iter().map(|param| param.lr_mult != Some(0.0)).collect();
    assert_eq!(learned, [false, false, false, true, true]);

    // In NVIDIA's files, the first two blobs are the mean and the variance, and the third is 0.
    let mut weights = test.to_proto(false).unwrap();
    let blobs = &mut weights.layer.iter_mut().find(|layer| !layer.blobs.is_empty()).unwrap().blobs;
    blobs[0].data = vec![0.5, -1.0, 2.0];
    blobs[1].data = vec![4.0, 0.25, 1.0];
    blobs[2].data = vec![0.0];
    test.copy_trained_from(&weights).unwrap();
    let stored = |channel: usize| ([0.5, -1.0, 2.0][channel], [4.0, 0.25, 1.0][channel]);
    assert_close(&forward(&mut test), &expected(&stored), "weights of NVIDIA's fork");

    // By default, the scale is 1 and the bias is 0. With a scale, the layer raises a smaller `eps`
    // to 1e-5.
    let outputs = ["scale_bias: true eps: 0", "eps: 1e-5"].map(|param| {
        let layer = format!("type: 'BatchNorm' batch_norm_param {{ {param} }}");
        let (mut net, _) = net_of(&[&[2, 3, 4]], &layer, Phase::Train);
        (forward(&mut net), net.params().len())
    });
    assert_close(&outputs[0].0, &outputs[1].0, "defaults");
    assert_eq!(outputs.map(|(_, params)| params), [5, 3]);
}

/// Returns the values of the blob `name`.
fn values(net: &Net<f32>, name: &str) -> Vec<f64> {
    net.blob(name).unwrap().to_vec().unwrap().into_iter().map(f64::from).collect()
}

#[test]
fn losses_of_rfcn_have_a_top_with_the_loss_of_each_region() {
    let layer = "top: 'p' top: 'losses' type: 'SoftmaxWithLossOHEM'
        loss_param { ignore_label: -1 }";
    let (mut net, x) = net_of(&[&[2, 4, 3], &[2, 1, 3]], layer, Phase::Train);
    let labels = [3.0, 0.0, -1.0, 1.0, 2.0, 2.0];
    net.blob("x1").unwrap().copy_from_slice(&labels).unwrap();
    let (mut losses, mut p) = ([0.0; 6], [0.0; 24]);
    for position in 0..6 {
        let index = |class: usize| position / 3 * 12 + class * 3 + position % 3;
        let sum: f64 = (0..4).map(|class| x[0][index(class)].exp()).sum();
        (0..4).for_each(|class| p[index(class)] = x[0][index(class)].exp() / sum);
        if labels[position] >= 0.0 {
            losses[position] = -p[index(labels[position] as usize)].ln();
        }
    }
    let mean = losses.iter().sum::<f64>() / 5.0;
    assert_close(&forward(&mut net), &[mean], "SoftmaxWithLossOHEM");
    assert_close(&values(&net, "p"), &p, "probabilities");
    assert_close(&values(&net, "losses"), &losses, "losses");

    let layer = "top: 'losses' type: 'SmoothL1LossOHEM' smooth_l1_loss_param { sigma: 3 }";
    let shape: &[usize] = &[2, 4, 3, 1];
    let (mut net, x) = net_of(&[shape; 3], layer, Phase::Train);
    let mut losses = [0.0; 6];
    for i in 0..24 {
        let d = (x[2][i] * (x[0][i] - x[1][i])).abs();
        losses[i / 12 * 3 + i % 3] += if d < 1.0 { d * d / 2.0 } else { d - 0.5 };
    }
    let mean = losses.iter().sum::<f64>() / 6.0;
    assert_close(&forward(&mut net), &[mean], "SmoothL1LossOHEM");
    assert_close(&values(&net, "losses"), &losses, "losses");
    assert_eq!(net.blob("losses").unwrap().shape().to_vec(), [2, 1, 3, 1]);
}

/// Compares with the formula in OpenVINO's specification of the operation PriorBoxClustered.
#[test]
fn prior_box_clustered_centers_boxes_of_given_sizes_at_each_position() {
    let layer = "type: 'PriorBoxClustered' prior_box_param { width: 4 height: 8 width: 10 height: 5
        step: 16 offset: 0.5 clip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }";
    let (mut net, _) = net_of(&[&[1, 2, 2, 3], &[1, 3, 32, 50]], layer, Phase::Test);
    let mut expected = Vec::new();
    for (y, x) in (0..6).map(|i| (i / 3, i % 3)) {
        for (width, height) in [(4.0, 8.0), (10.0, 5.0)] {
            let (center_x, center_y) = ((f64::from(x) + 0.5) * 16.0, (f64::from(y) + 0.5) * 16.0);
            expected.push((center_x - width / 2.0) / 50.0);
            expected.push((center_y - height / 2.0) / 32.0);
            expected.push((center_x + width / 2.0) / 50.0);
            expected.push((center_y + height / 2.0) / 32.0);
        }
    }
    expected.extend([0.1, 0.1, 0.2, 0.2].repeat(12));
    assert_close(&forward(&mut net), &expected, "PriorBoxClustered");
}

#[test]
fn box_annotator_ohem_keeps_the_regions_with_the_highest_losses_of_each_image() {
    let layer = "top: 'weights' type: 'BoxAnnotatorOHEM'
        box_annotator_ohem_param { roi_per_img: 2 ignore_label: -7 }";
    let shapes: [&[usize]; 4] = [&[6, 5], &[6, 1, 1, 1], &[6], &[6, 2]];
    let (mut net, x) = net_of(&shapes, layer, Phase::Train);
    let images = [0.0, 1.0, -0.0, 0.25, 2.0, 0.0];
    let rois: Vec<f32> = images.iter().flat_map(|&image| [image, 1.0, 2.0, 3.0, 4.0]).collect();
    net.blob("x").unwrap().copy_from_slice(&rois).unwrap();
    net.blob("x1").unwrap().copy_from_slice(&[0.5, 0.1, 0.25, 2.0, 0.0, 0.5]).unwrap();
    // Indices of images are truncated. Image 0 keeps region 3 and, of the regions 0 and 5 with
    // equal losses, the first; images 1 and 2 keep their only regions.
    let is_kept = [true, true, false, true, true, false];
    let kept = |i: usize, value: f64, other: f64| if is_kept[i] { value } else { other };
    let labels: Vec<f64> = (0..6).map(|i| kept(i, x[2][i], -7.0)).collect();
    let weights: Vec<f64> = (0..12).map(|i| kept(i / 2, x[3][i], 0.0)).collect();
    assert_eq!(forward(&mut net), labels);
    assert_eq!(values(&net, "weights"), weights);
}

#[test]
fn upsample_moves_elements_to_the_maxima_of_pooling() {
    let text = input("x", &[2, 2, 5, 4])
        + "layer { name: 'pool' type: 'Pooling' bottom: 'x' top: 'pooled' top: 'mask'
             pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
           layer { name: 'y' type: 'Upsample' bottom: 'pooled' bottom: 'mask' top: 'y'
             upsample_param { scale: 2 pad_out_h: true } }";
    let mut net = try_net(&text, Phase::Test).unwrap();
    let x: Vec<f32> = (0..80).map(|i| (i * 37 % 101) as f32).collect();
    net.blob("x").unwrap().copy_from_slice(&x).unwrap();
    let y = forward(&mut net);
    for plane in 0..4 {
        for position in 0..20 {
            // The maximum of each pooling window stays, and the other elements become 0.
            let (row, column) = (position / 4 / 2 * 2, position % 4 / 2 * 2);
            let window =
                [(row, column), (row + 1, column), (row, column + 1), (row + 1, column + 1)];
            let value = |(row, column): (usize, usize)| x[plane * 20 + row * 4 + column];
            let maximum = window.into_iter().filter(|at| at.0 < 5).map(value).fold(-1.0, f32::max);
            let own = x[plane * 20 + position];
            let expected = if own == maximum { own } else { 0.0 };
            assert_eq!(y[plane * 20 + position], f64::from(expected), "{plane}, {position}");
        }
    }
}

#[test]
fn upsample_with_one_bottom_repeats_elements() {
    let layer = "type: 'Upsample' upsample_param { scale: 3 }";
    let (mut net, x) = net_of(&[&[2, 2, 2, 4]], layer, Phase::Test);
    let source = |i: usize| i / 72 * 8 + i % 72 / 12 / 3 * 4 + i % 12 / 3;
    let expected: Vec<f64> = (0..288).map(|i| x[0][source(i)]).collect();
    assert_close(&forward(&mut net), &expected, "Upsample");
}

#[test]
fn crop_center_removes_both_ends_of_each_axis() {
    let layer = "type: 'CropCenter' crop_center_param { crop_size: [0, 0, 1, 2] }";
    let (mut net, x) = net_of(&[&[2, 2, 4, 6]], layer, Phase::Test);
    let source = |i: usize| i / 4 * 24 + (i % 4 / 2 + 1) * 6 + i % 2 + 2;
    let expected: Vec<f64> = (0..16).map(|i| x[0][source(i)]).collect();
    assert_close(&forward(&mut net), &expected, "CropCenter");
}

#[test]
fn interp_crops_shrinks_and_zooms() {
    let layer = "type: 'Interp' interp_param { pad_beg: -1 pad_end: -2 shrink_factor: 2 }";
    let (mut net, x) = net_of(&[&[1, 2, 8, 6]], layer, Phase::Test);
    // The crop leaves 5 rows and 3 columns, of which the layer keeps every second row and column.
    let source = |i: usize| i / 6 * 48 + (1 + i % 6 / 2 * 2) * 6 + 1 + i % 2 * 2;
    let expected: Vec<f64> = (0..12).map(|i| x[0][source(i)]).collect();
    assert_close(&forward(&mut net), &expected, "shrink");
    let layer = "type: 'Interp' interp_param { zoom_factor: 2 }";
    let (mut net, x) = net_of(&[&[1, 1, 2, 2]], layer, Phase::Test);
    let [a, b, c, d] = x[0][..] else { panic!() };
    let middle =
        [(a + b) / 2.0, (a + c) / 2.0, (a + b + c + d) / 4.0, (b + d) / 2.0, (c + d) / 2.0];
    let expected = [a, middle[0], b, middle[1], middle[2], middle[3], c, middle[4], d];
    assert_close(&forward(&mut net), &expected, "zoom");
}

#[test]
fn smooth_l1_loss_is_quadratic_near_zero() {
    let shapes: [&[usize]; 4] = [&[3, 2, 2]; 4];
    for (bottoms, more, divisor) in [
        (2, "", 3.0),
        (4, "", 3.0),
        (3, "loss_param { normalization: VALID }", 6.0),
        (4, "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 5 }", 5.0),
    ] {
        let layer = format!("type: 'SmoothL1Loss' smooth_l1_loss_param {{ sigma: 0.8 }} {more}");
        let (mut net, x) = net_of(&shapes[..bottoms], &layer, Phase::Train);
        let one = vec![1.0; 12];
        let (inside, outside) = (x.get(2).unwrap_or(&one), x.get(3).unwrap_or(&one));
        let sigma_squared = f64::from(0.8_f32).powi(2);
        let loss = |i: usize| {
            let d: f64 = inside[i] * (x[0][i] - x[1][i]);
            let is_near = d.abs() < 1.0 / sigma_squared;
            let quadratic = sigma_squared * d * d / 2.0;
            outside[i] * if is_near { quadratic } else { d.abs() - 0.5 / sigma_squared }
        };
        let expected = (0..12).map(loss).sum::<f64>() / divisor;
        assert_close(&forward(&mut net), &[expected], &layer);
    }
}

#[test]
fn class_weights_scale_the_loss_of_each_label() {
    let weights = [0.5, 2.0, 3.0, 0.25];
    let text: String = weights.iter().map(|weight| format!("class_weighting: {weight} ")).collect();
    let param = |more: &str| {
        format!(
            "type: 'SoftmaxWithLoss' \
             loss_param {{ weight_by_label_freqs: true {text} ignore_label: 2 {more} }}"
        )
    };
    for (more, divisor) in [("", 5.0), ("normalize: false", 2.0)] {
        let (mut net, x) = net_of(&[&[2, 4, 3], &[2, 3]], &param(more), Phase::Train);
        let labels = [0.0, 2.0, 1.0, 3.0, 1.0, 0.0];
        let blob = net.blob("x1").unwrap();
        blob.data_mut().unwrap().host_mut().unwrap().copy_from_slice(&labels);
        let mut expected = 0.0;
        for (i, label) in labels.iter().map(|&label| label as usize).enumerate() {
            let score = |class: usize| x[0][i / 3 * 12 + class * 3 + i % 3];
            let sum: f64 = (0..4).map(|class| score(class).exp()).sum();
            if label != 2 {
                expected -= weights[label] * (score(label) - sum.ln()) / divisor;
            }
        }
        assert_close(&forward(&mut net), &[expected], more);
    }
    // The weight of one class is missing.
    let text = param("").replacen("class_weighting: 0.5 ", "", 1);
    let text = format!(
        "layer {{ type: 'Input' top: 'x' top: 'y' input_param {{ shape {{ dim: 2 dim: 4 dim: 3 }} \
         shape {{ dim: 2 dim: 3 }} }} }}
         layer {{ name: 'loss' bottom: 'x' bottom: 'y' top: 'loss' {text} }}"
    );
    let error = try_net(&text, Phase::Train).err().unwrap().to_string();
    assert!(error.contains("expected 4 values of class_weighting"), "{error}");
}

#[test]
fn averages_without_padding_divide_by_the_elements_of_the_input() {
    for param in ["pool: AVE_EXC_PAD", "pool: AVE avg_include_pad: false"] {
        let layer =
            format!("type: 'Pooling' pooling_param {{ {param} kernel_size: 3 stride: 2 pad: 1 }}");
        let (mut net, x) = net_of(&[&[1, 2, 5, 4]], &layer, Phase::Test);
        let y = forward(&mut net);
        let mut expected = Vec::new();
        for (plane, row, column) in (0..18_usize).map(|i| (i / 9, i / 3 % 3, i % 3)) {
            let rows = (2 * row).saturating_sub(1)..(2 * row + 2).min(5);
            let columns = (2 * column).saturating_sub(1)..(2 * column + 2).min(4);
            let at = rows.flat_map(|row| columns.clone().map(move |column| row * 4 + column));
            let values: Vec<f64> = at.map(|at| x[0][plane * 20 + at]).collect();
            expected.push(values.iter().sum::<f64>() / values.len() as f64);
        }
        assert_close(&y, &expected, param);
    }
}

#[test]
fn depthwise_convolution_has_a_group_per_channel() {
    let param = "num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' }";
    let output = |kind: &str, group: &str| {
        let layer = format!("type: '{kind}' convolution_param {{ {param} {group} }}");
        forward(&mut net_of(&[&[2, 3, 4, 5]], &layer, Phase::Test).0)
    };
    let expected = output("Convolution", "group: 3");
    for kind in ["DepthwiseConvolution", "ConvolutionDepthwise"] {
        assert_eq!(output(kind, ""), expected);
        assert_eq!(output(kind, "group: 3"), expected);
    }
}

#[test]
fn dropout_of_forks_scales_in_the_test_phase() {
    let output = |param: &str, phase| {
        let layer = format!("type: 'Dropout' dropout_param {{ {param} }}");
        let (mut net, x) = net_of(&[&[4, 50]], &layer, phase);
        (forward(&mut net), x[0].clone())
    };
    let (y, _) = output("dropout_ratio: 1", Phase::Train);
    assert_eq!(y, [0.0; 200]);
    let (y, x) = output("dropout_ratio: 1", Phase::Test);
    assert_eq!(y, x);
    let (y, x) = output("dropout_ratio: 0.25 scale_train: false", Phase::Test);
    assert_close(&y, &x.iter().map(|x| 0.75 * x).collect::<Vec<_>>(), "scale_train");
    let (y, x) = output("dropout_ratio: 0.25 scale_train: false", Phase::Train);
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 0.0 || (y - x).abs() < 1e-5));
    assert!(y.iter().zip(&x).any(|(y, x)| y != x) && y.iter().any(|y| *y != 0.0));
    let (y, x) = output("sample_weights_test: true", Phase::Test);
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 0.0 || *y == 2.0 * x) && y != x);
}

#[test]
fn proposals_of_the_python_layer_are_those_of_the_layer_type() {
    let run = |layer: &str| {
        let shapes: [&[usize]; 3] = [&[1, 18, 4, 6], &[1, 36, 4, 6], &[1, 3]];
        let (mut net, _) = net_of(&shapes, layer, Phase::Test);
        net.blob("x2").unwrap().copy_from_slice(&[60.0, 90.0, 1.0]).unwrap();
        forward(&mut net)
    };
    let python = run("type: 'Python' python_param { module: 'rpn.proposal_layer'
        layer: 'ProposalLayer' param_str: \"{'feat_stride': 16, 'scales': [2, 4, 8]}\" }");
    let proposal = run("type: 'Proposal' proposal_param { scale: [2, 4, 8] }");
    assert_eq!(python, proposal);
    assert!(python.len() > 5 && python.len() % 5 == 0);
    // With the key `ratios`, which PVANet added, the default ratios give the same regions as
    // without the key.
    let pvanet =
        run("type: 'Python' python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'
        param_str: \"{'feat_stride': 16, 'ratios': [0.5, 1, 2], 'scales': [2, 4, 8]}\" }");
    assert_eq!(python, pvanet);
    let other =
        run("type: 'Python' python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'
        param_str: \"{'feat_stride': 16, 'ratios': [0.333, 0.5, 1.5], 'scales': [2, 4, 8]}\" }");
    let proposal =
        run("type: 'Proposal' proposal_param { scale: [2, 4, 8] ratio: [0.333, 0.5, 1.5] }");
    assert_eq!(other, proposal);
    assert_ne!(other, python);
}

/// SSH's layer suppresses no overlapping regions in the TEST phase, and computes the regions as
/// py-faster-rcnn does.
#[test]
fn proposals_of_ssh_are_all_regions_in_the_order_of_their_scores() {
    let shapes: [&[usize]; 3] = [&[1, 4, 2, 3], &[1, 8, 2, 3], &[1, 3]];
    let layer =
        "type: 'Python' python_param { module: 'SSH.layers.proposal_layer' layer: 'ProposalLayer'
        param_str: \"{'feat_stride': 8, 'scales': [1,2], 'ratios':[1,]}\" }";
    let (mut net, _) = net_of(&shapes, layer, Phase::Test);
    net.blob("x2").unwrap().copy_from_slice(&[30.0, 40.0, 1.0]).unwrap();
    // The scores of objects, which are the second half of the channels, decrease from each element
    // to the next.
    let scores: Vec<f32> =
        (0..24).map(|i| if i < 12 { 0.0 } else { 1.0 - i as f32 / 32.0 }).collect();
    net.blob("x").unwrap().copy_from_slice(&scores).unwrap();
    net.blob("x1").unwrap().copy_from_slice(&[0.0; 48]).unwrap();
    let regions = forward(&mut net);
    // Without offsets, each region is an anchor of 16 or 32 pixels. As in py-faster-rcnn, the right
    // edge is the left edge plus the width.
    let mut expected = Vec::new();
    for (start, end) in [(0.0, 16.0), (-8.0, 24.0)] {
        for position in 0..6 {
            let shift = [(position % 3 * 8) as f32, (position / 3 * 8) as f32];
            let edge = |edge: f32, axis: usize, limit: f32| (edge + shift[axis]).clamp(0.0, limit);
            expected.push(0.0);
            expected.extend([edge(start, 0, 39.0), edge(start, 1, 29.0)]);
            expected.extend([edge(end, 0, 39.0), edge(end, 1, 29.0)]);
        }
    }
    let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
    assert_eq!(regions, expected);
}

#[test]
fn the_python_loss_of_caffes_example_is_the_euclidean_loss() {
    let layer = "type: 'Python' python_param { module: 'pyloss' layer: 'EuclideanLossLayer' }
        loss_weight: 1";
    let (mut net, _) = net_of(&[&[2, 3], &[2, 3]], layer, Phase::Test);
    net.blob("x").unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    net.blob("x1").unwrap().copy_from_slice(&[0.0, 2.0, 1.0, 4.0, 8.0, 6.0]).unwrap();
    assert_eq!(forward(&mut net), [(1.0 + 4.0 + 9.0) / 4.0]);
}

#[test]
fn python_layers_run_as_registered_layers() {
    let text = input("x", &[1, 3])
        + "layer { name: 'y' type: 'Python' bottom: 'x' top: 'y'
             python_param { module: 'm' layer: 'Positive' param_str: 'slope: 0.5' } }";
    let definition: NetParameter = proto::parse_text(&text, "net.prototxt").unwrap();
    let registry = LayerRegistry::standard().with_python("m", "Positive", |param, cx| {
        assert_eq!(PythonParam::of(param).number("slope")?, Some(0.5));
        NeuronLayer::<Relu, f32>::new(param, cx)
    });
    let net = Net::builder(&CpuDevice::new()).registry(registry).build(&definition);
    let mut net = net.unwrap();
    net.blob("x").unwrap().copy_from_slice(&[-1.0, 0.0, 2.0]).unwrap();
    assert_eq!(forward(&mut net), [0.0, 0.0, 2.0]);
}

#[test]
fn spatial_dropout_of_enet_drops_whole_channels() {
    let layer = |phase: &str, p: &str| {
        format!(
            "type: 'Python' loss_weight: 1 python_param {{ module: 'spatial_dropout' \
             layer: 'SpatialDropoutLayer' param_str: \"{{'phase': '{phase}', 'p': '{p}'}}\" }}"
        )
    };
    let (mut net, x) = net_of(&[&[2, 3, 4]], &layer("TEST", "0.2"), Phase::Train);
    assert_close(&forward(&mut net), &x[0].iter().map(|x| x / 0.8).collect::<Vec<_>>(), "TEST");

    let text = "force_backward: true ".to_owned()
        + &input("x", &[20, 30, 2, 2])
        + &format!("layer {{ name: 'y' bottom: 'x' top: 'y' {} }}", layer("TRAIN", "0.25"));
    let mut net = try_net(&text, Phase::Test).unwrap();
    net.blob("x").unwrap().copy_from_slice(&[3.0; 2400]).unwrap();
    let mut masks = Vec::new();
    for _ in 0..2 {
        let y = forward(&mut net);
        net.backward().unwrap();
        let gradient = net.blob("x").unwrap().diff().unwrap().host().unwrap().to_vec();
        let mut kept = 0;
        for (y, gradient) in y.chunks(4).zip(gradient.chunks(4)) {
            let is_kept = y[0] != 0.0;
            kept += usize::from(is_kept);
            let factor = if is_kept { 1.0 / 0.75 } else { 0.0 };
            assert_close(y, &[3.0 * factor; 4], "TRAIN");
            let gradient: Vec<f64> = gradient.iter().map(|&x| x.into()).collect();
            assert_close(&gradient, &[factor; 4], "gradient");
        }
        // Of 600 channels, 450 are expected to be kept; the limits are about four standard
        // deviations away.
        assert!((407..=493).contains(&kept), "{kept}");
        masks.push(y);
    }
    assert_ne!(masks[0], masks[1]);

    for (phase, p, message) in
        [("TEST", "1", "p between 0 and 1"), ("TEST", "0", "p between 0 and 1")]
    {
        let text = input("x", &[1, 1]);
        let text =
            text + &format!("layer {{ name: 'y' bottom: 'x' top: 'y' {} }}", layer(phase, p));
        let error = try_net(&text, Phase::Test).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// The error for an unknown field `…_param` of a layer recommends `python_param` for the settings.
#[test]
fn layers_of_registered_types_read_their_settings_from_python_param() {
    let text = input("x", &[1, 3])
        + "layer { name: 'y' type: 'Fork' bottom: 'x' top: 'y'
             python_param { param_str: 'size: 7, scale: 0.0625' } }";
    let definition: NetParameter = proto::parse_text(&text, "net.prototxt").unwrap();
    let registry = LayerRegistry::standard().with("Fork", |param, cx| {
        assert_eq!(PythonParam::of(param).number("scale")?, Some(0.0625));
        NeuronLayer::<Relu, f32>::new(param, cx)
    });
    let net = Net::builder(&CpuDevice::new()).registry(registry).build(&definition);
    assert_eq!(net.unwrap().blob("y").unwrap().shape().to_vec(), [1, 3]);
}

#[test]
fn invalid_parameters_of_fork_layers_are_refused() {
    let rois = "bottom: 'rois'";
    let cases = [
        ("type: 'BN' bn_param { scale_filler {} momentum: 0.5 }".to_owned(), "bn_param"),
        ("type: 'BN' bn_param { momentum: 2 }".into(), "momentum must be in [0, 1], found 2"),
        ("type: 'BN' bn_param { eps: -1 }".into(), "eps"),
        ("type: 'Upsample' upsample_param { scale: 0 }".into(), "scale must be positive"),
        ("type: 'Upsample' upsample_param { upsample_h: 3 }".into(), "only scale"),
        ("type: 'Upsample' bottom: 'x' upsample_param { scale_h: 2 }".into(), "scale_w"),
        ("type: 'Upsample' bottom: 'x' upsample_param { scale: 3 pad_out_h: true }".into(), "of 2"),
        (format!("type: 'ROIPooling' {rois}"), "pooled_h and pooled_w must be positive"),
        (format!("type: 'PSROIPooling' {rois}"), "output_dim and group_size are required"),
        ("type: 'BoxAnnotatorOHEM'".into(), "roi_per_img is required"),
        (
            "type: 'PriorBoxClustered' prior_box_param { min_size: 3 }".into(),
            "width and height are required",
        ),
        (
            "type: 'BoxAnnotatorOHEM' box_annotator_ohem_param { roi_per_img: 0 }".into(),
            "roi_per_img must be positive",
        ),
        (
            "type: 'BoxAnnotatorOHEM' bottom: 'x' bottom: 'x' bottom: 'x' top: 'z'
             box_annotator_ohem_param { roi_per_img: 1 }"
                .into(),
            "bottom 0 (regions): expected",
        ),
        (
            format!("type: 'PSROIPooling' {rois} psroi_pooling_param {{ spatial_scale: 1 \
                     output_dim: 2 group_size: 2 }}"),
            "do not fit 4 channels",
        ),
        ("type: 'Reorg'".into(), "positive stride is required"),
        ("type: 'Reorg' reorg_param { stride: 3 }".into(), "4 channels are not divisible"),
        ("type: 'ShuffleChannel' shuffle_channel_param { group: 0 }".into(), "must be positive"),
        ("type: 'ShuffleChannel' shuffle_channel_param { group: 3 }".into(), "by group 3"),
        ("type: 'Interp'".into(), "give zoom_factor"),
        ("type: 'Interp' interp_param { zoom_factor: -1 }".into(), "found -1"),
        ("type: 'Interp' interp_param { zoom_factor: 2 pad_beg: 1 }".into(), "not be positive"),
        ("type: 'Interp' interp_param { zoom_factor: 2 pad_beg: -9 }".into(), "leave no element"),
        ("type: 'ReLU6' relu6_param { negative_slope: 0.5 }".into(), "must be 0, found 0.5"),
        ("type: 'CropCenter' crop_center_param { crop_size: 1 }".into(), "per axis (4), found 1"),
        ("type: 'CropCenter' crop_center_param { crop_size: [0, 0, 2, 0] }".into(), "no element"),
        ("type: 'Axpy' bottom: 'x' bottom: 'x'".into(), "one factor per image and channel"),
        (
            "type: 'SmoothL1Loss' bottom: 'x' smooth_l1_loss_param { sigma: 0 }".into(),
            "sigma must be positive and finite, found 0",
        ),
        (
            "type: 'DepthwiseConvolution' convolution_param { num_output: 4 kernel_size: 1 group: 2 }"
                .into(),
            "number of channels 4",
        ),
        ("type: 'Proposal' bottom: 'x' bottom: 'x'".into(), "for 9 anchors"),
        (
            "type: 'Python' bottom: 'x' bottom: 'x' python_param { module: 'rpn.proposal_layer' \
             layer: 'ProposalLayer' }"
                .into(),
            "feat_stride is required",
        ),
        (
            "type: 'Pooling' pooling_param { kernel_size: 1 round_mode: CEIL ceil_mode: false }".into(),
            "contradict",
        ),
    ];
    for (layer, expected) in &cases {
        let text = input("x", &[1, 4, 4, 4])
            + &input("rois", &[1, 5])
            + &format!("layer {{ name: 'y' bottom: 'x' top: 'y' {layer} }}");
        let error = try_net(&text, Phase::Test).err().unwrap_or_else(|| panic!("{layer}"));
        let error = error.to_string();
        assert!(error.contains(expected) && error.contains("layer `y`"), "{layer}: {error}");
    }
}

#[test]
fn regions_of_missing_images_are_refused() {
    let layer = "type: 'ROIPooling' roi_pooling_param { pooled_h: 1 pooled_w: 1 }";
    let (mut net, _) = net_of(&[&[1, 4, 4, 4], &[2, 5]], layer, Phase::Test);
    for index in [1.0, -1.0, 0.5, f32::NAN] {
        let rois = [[0.0; 5], [index, 0.0, 0.0, 1.0, 1.0]].concat();
        net.blob("x1").unwrap().copy_from_slice(&rois).unwrap();
        let error = net.forward().unwrap_err().to_string();
        assert!(error.contains("region 1: expected the index of one of 1 images"), "{error}");
    }
    // Edges far outside of the image, infinite edges and NaN give a result without a panic.
    let rois = [[0.0, -1e30, f32::NAN, 1e30, f32::INFINITY], [0.0, 5.0, 5.0, -5.0, -5.0]].concat();
    net.blob("x1").unwrap().copy_from_slice(&rois).unwrap();
    net.forward().unwrap();
}

/// The fork MobileNet-YOLO computes the same derivative.
#[test]
fn relu6_has_the_derivative_0_at_its_limits() {
    let text = "force_backward: true ".to_owned()
        + &input("x", &[1, 5])
        + "layer { name: 'y' type: 'ReLU6' bottom: 'x' top: 'y' loss_weight: 1 }";
    let mut net = try_net(&text, Phase::Train).unwrap();
    net.blob("x").unwrap().copy_from_slice(&[-1.0, 0.0, 3.0, 6.0, 7.0]).unwrap();
    net.forward().unwrap();
    net.backward().unwrap();
    let gradient = net.blob("x").unwrap().diff().unwrap().host().unwrap().to_vec();
    assert_eq!(gradient, [0.0, 0.0, 1.0, 0.0, 0.0]);
}
