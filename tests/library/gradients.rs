//! Compares the gradients of layers with finite differences, also for unusual shapes and for layers
//! that run in place. Each check runs on the CPU and on the simulated device, which detects missing
//! transfers.
//!
//! To add a gradient check, append `layer("type: '…' …").bottom(&[…])` to a test, and `.in_place()`
//! if the layer can run in place. [`GradientCheck`](cortado::conformance::GradientCheck) lists all
//! options of a check.

use cortado::{CpuDevice, conformance::GradientCheck, device::SimulatedDevice};

fn layer(definition: &str) -> GradientCheck {
    GradientCheck::new(definition)
}

/// Runs all gradient checks and reports every failure.
fn run(checks: impl IntoIterator<Item = GradientCheck>) {
    let mut failures = Vec::new();
    for (i, check) in checks.into_iter().enumerate() {
        for result in [check.run(&CpuDevice::new()), check.run(&SimulatedDevice::new())] {
            failures.extend(result.err().map(|error| format!("check {i}: {error}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns checks of an elementwise layer on blobs of various shapes, such as `[]` and `[1, 1]`. In
/// one of these checks, top and bottom of the layer are the same blob.
fn neuron_checks(definition: &str) -> Vec<GradientCheck> {
    let on_shape = |shape: &[usize]| layer(definition).bottom(shape);
    vec![
        on_shape(&[]),
        on_shape(&[1, 1]),
        on_shape(&[2, 3, 7]),
        on_shape(&[37]),
        on_shape(&[3, 5, 2]).in_place(),
    ]
}

#[test]
fn gradients_of_neuron_layers_match_finite_differences() {
    let abs_val = |shape: &[usize]| layer("type: 'AbsVal'").bottom(shape);
    run([abs_val(&[]), abs_val(&[2, 3, 7])]);
    let definitions = [
        "type: 'BNLL'",
        "type: 'Clip' clip_param { min: -0.51 max: 0.2 }",
        "type: 'ELU'",
        "type: 'ELU' elu_param { alpha: 0.3 }",
        "type: 'ELU' elu_param { alpha: -0.3 }",
        "type: 'Exp'",
        "type: 'Exp' exp_param { base: 2 scale: -0.5 shift: 1.5 }",
        "type: 'Log' log_param { shift: 2 }",
        "type: 'Log' log_param { base: 10 scale: -0.5 shift: 1.5 }",
        "type: 'Power'",
        "type: 'Power' power_param { power: 2 scale: 3 shift: -1 }",
        "type: 'Power' power_param { power: 3 }",
        "type: 'Power' power_param { power: 0.5 scale: 0.5 shift: 2 }",
        "type: 'Power' power_param { power: -1.5 scale: 0.5 shift: 2 }",
        "type: 'Power' power_param { power: 0 }",
        "type: 'Power' power_param { power: 1.5 scale: 0 shift: 2 }",
        "type: 'ReLU'",
        "type: 'ReLU' relu_param { negative_slope: 0.1 }",
        "type: 'ReLU' relu_param { negative_slope: -0.5 }",
        "type: 'Sigmoid'",
        "type: 'Swish'",
        "type: 'Swish' swish_param { beta: -1.5 }",
        "type: 'TanH'",
    ];
    run(definitions.into_iter().flat_map(neuron_checks));
}

#[test]
fn gradients_of_prelu_match_finite_differences() {
    let prelu = |more: &str, shape: &[usize]| layer(&format!("type: 'PReLU' {more}")).bottom(shape);
    let channel_shared = "prelu_param { channel_shared: true }";
    run([
        prelu("", &[2, 3]),
        prelu("", &[2, 3, 5]),
        prelu("", &[1, 2, 3, 4]).in_place(),
        prelu(channel_shared, &[2, 3, 5]),
        prelu(channel_shared, &[3, 1]).in_place(),
    ]);
}

/// Returns checks of Scale or Bias layers whose operand spans one, several or no axes and is a
/// parameter or a bottom.
fn operand_checks(kind: &str, param: &str, fields: &str) -> Vec<GradientCheck> {
    let operand_layer =
        |axes: &str| layer(&format!("type: '{kind}' {param} {{ {axes} {fields} }}"));
    vec![
        operand_layer("").bottom(&[2, 3]),
        operand_layer("").bottom(&[2, 3, 5]).in_place(),
        operand_layer("axis: 0").bottom(&[4, 3]),
        operand_layer("axis: -1").bottom(&[2, 3, 5]),
        operand_layer("axis: 0 num_axes: 2").bottom(&[2, 3, 5]),
        operand_layer("num_axes: -1").bottom(&[2, 3, 5]),
        operand_layer("num_axes: 0").bottom(&[2, 3, 5]).in_place(),
        operand_layer("").bottom(&[2, 3, 5]).bottom(&[3]),
        operand_layer("axis: 0").bottom(&[2, 3, 5]).bottom(&[2, 3, 5]),
        operand_layer("axis: 2").bottom(&[2, 3, 5]).bottom(&[5]).in_place(),
        operand_layer("").bottom(&[2, 3]).bottom(&[]),
    ]
}

#[test]
fn gradients_of_bias_match_finite_differences() {
    run(operand_checks("Bias", "bias_param", ""));
}

#[test]
fn gradients_of_scale_match_finite_differences() {
    run(operand_checks("Scale", "scale_param", ""));
    run(operand_checks("Scale", "scale_param", "bias_term: true"));
}

#[test]
fn gradients_of_batch_norm_match_finite_differences() {
    let norm =
        |more: &str, shape: &[usize]| layer(&format!("type: 'BatchNorm' {more}")).bottom(shape);
    // `stored_statistics` checks a BatchNorm layer that uses stored statistics, divided by the
    // stored scale factor 2.
    let stored_statistics = |shape: &[usize]| {
        norm("batch_norm_param { use_global_stats: true eps: 0.1 }", shape)
            .param(0, |i| i as f64 - 0.5)
            .param(1, |i| i as f64 + 1.0)
            .param(2, |_| 2.0)
    };
    run([
        norm("", &[7, 3]),
        norm("", &[2, 3, 5]),
        norm("", &[3, 2, 1, 17]).in_place(),
        norm("batch_norm_param { eps: 0.5 }", &[5, 1, 3]),
        norm("phase: TEST batch_norm_param { use_global_stats: false }", &[4, 3, 2]),
        stored_statistics(&[2, 3, 5]),
        stored_statistics(&[2, 3]).in_place(),
    ]);
    let scaled = |more: &str, shape: &[usize]| {
        norm(&format!("batch_norm_param {{ scale_bias: true {more} }}"), shape)
            .param(3, |i| i as f64 - 0.5)
            .param(4, |i| 0.25 - i as f64)
    };
    run([
        scaled("eps: 0.5", &[3, 2, 4]),
        scaled("eps: 0.5", &[3, 2, 4]).in_place(),
        scaled("eps: 0.5 use_global_stats: true", &[2, 3, 2]).param(1, |i| i as f64 + 1.0),
    ]);
}

#[test]
fn gradients_of_mvn_match_finite_differences() {
    let mvn = |more: &str, shape: &[usize]| {
        layer(&format!("type: 'MVN' mvn_param {{ {more} }}")).bottom(shape)
    };
    run([
        mvn("", &[2, 3, 4, 5]),
        mvn("", &[2, 3, 1, 7]).in_place(),
        mvn("across_channels: true", &[2, 3, 5]),
        mvn("normalize_variance: false", &[2, 3, 5]),
        mvn("normalize_variance: false across_channels: true", &[2, 3, 5, 1]).in_place(),
    ]);
}

#[test]
fn gradients_of_normalize_match_finite_differences() {
    let normalize = |more: &str, shape: &[usize]| {
        layer(&format!("type: 'Normalize' norm_param {{ {more} }}")).bottom(shape)
    };
    let per_channel = "channel_shared: false scale_filler { type: 'uniform' min: 0.5 max: 2 }";
    run([
        normalize("", &[2, 3]),
        normalize("", &[2, 3, 4, 2]).in_place(),
        normalize("across_spatial: false", &[2, 3, 1, 5]),
        normalize("across_spatial: false eps: 0.5", &[1, 4, 2, 3]).in_place(),
        normalize(per_channel, &[2, 3, 5]),
        normalize(&format!("across_spatial: false {per_channel}"), &[3, 2, 2, 3]),
    ]);
}

#[test]
fn gradients_of_permute_match_finite_differences() {
    let permute = |order: &str, shape: &[usize]| {
        layer(&format!("type: 'Permute' permute_param {{ order: {order} }}")).bottom(shape)
    };
    run([
        permute("[0, 2, 3, 1]", &[2, 3, 4, 5]),
        permute("[2]", &[2, 3, 4]),
        permute("[1, 2, 0]", &[2, 3, 1]),
        permute("[0]", &[2, 3]),
    ]);
}

#[test]
fn gradients_of_lrn_match_finite_differences() {
    let lrn = |more: &str, shape: &[usize]| {
        layer(&format!("type: 'LRN' lrn_param {{ {more} }}")).bottom(shape)
    };
    run([
        lrn("", &[2, 7, 3, 2]),
        lrn("local_size: 3 alpha: 0.5 beta: 0.5 k: 2", &[1, 4, 1, 5]),
        lrn("local_size: 9 alpha: 2", &[2, 3, 1, 1]),
        lrn("norm_region: WITHIN_CHANNEL local_size: 3", &[2, 2, 5, 4]),
        lrn("norm_region: WITHIN_CHANNEL local_size: 7", &[1, 1, 3, 2]),
    ]);
}

#[test]
fn gradients_of_eltwise_match_finite_differences() {
    let eltwise = |more: &str, bottoms: usize| {
        let check = layer(&format!("{more} type: 'Eltwise'"));
        (0..bottoms).fold(check, |check, _| check.bottom(&[2, 3, 5]))
    };
    let coeff = |n: usize| {
        let bottoms = (0..n).map(|i| format!("bottom: 'x{i}' "));
        let coeffs = (0..n).map(|i| format!(" coeff: {}", 2 * i as i32 - 1));
        let (bottoms, coeffs): (String, String) = (bottoms.collect(), coeffs.collect());
        eltwise(&format!("{bottoms} eltwise_param {{ {coeffs} }}"), n)
    };
    // The bottoms of Eltwise differ at every element, because the maximum of equal values has no
    // derivative.
    let maximum = |bottoms: usize| {
        let check = layer("type: 'Eltwise' eltwise_param { operation: MAX }");
        (0..bottoms).fold(check, |check, b| {
            check.bottom_with(&[2, 3, 5], move |i| ((7 * i + 5 * b) % 32) as f64 / 16.0 - 1.0)
        })
    };
    run([
        eltwise("", 2),
        eltwise("", 4),
        eltwise("", 3).in_place(),
        coeff(2),
        coeff(3).in_place(),
        eltwise("eltwise_param { operation: PROD }", 2),
        eltwise("eltwise_param { operation: PROD }", 4),
        eltwise("eltwise_param { operation: PROD stable_prod_grad: false }", 2),
        eltwise("eltwise_param { operation: PROD stable_prod_grad: false }", 3),
        maximum(2),
        maximum(4),
    ]);
}

#[test]
fn gradients_of_dropout_in_the_test_phase_match_finite_differences() {
    run([
        layer("type: 'Dropout' phase: TEST").bottom(&[2, 3]),
        layer("type: 'Dropout' phase: TEST").bottom(&[7]).in_place(),
        layer(
            "type: 'Dropout' phase: TEST dropout_param { dropout_ratio: 0.3 scale_train: false }",
        )
        .bottom(&[7])
        .in_place(),
    ]);
}

fn window_layer(kind: &str, param: &str, shape: &[usize]) -> GradientCheck {
    layer(&format!("type: '{kind}' convolution_param {{ {param} }}")).bottom(shape)
}

#[test]
fn gradients_of_convolution_layers_match_finite_differences() {
    let two_convolutions = "bottom: 'x' bottom: 'z' top: 'a' top: 'b' type: 'Convolution'
        convolution_param { num_output: 2 kernel_size: 2 }";
    let uneven_window = "kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0";
    run([
        window_layer("Convolution", "num_output: 3 kernel_size: 3", &[2, 2, 5, 4]),
        window_layer(
            "Convolution",
            &format!("num_output: 4 group: 2 bias_term: false {uneven_window}"),
            &[1, 4, 7, 5],
        ),
        window_layer("Convolution", "num_output: 2 kernel_size: 3 dilation: 2 pad: 1", &[2, 3, 11]),
        window_layer("Convolution", "num_output: 2 kernel_size: 2 axis: 2", &[2, 1, 2, 3, 4, 3]),
        window_layer("Convolution", "num_output: 3 kernel_size: 1", &[3, 2, 3, 1]),
        // The following depthwise convolutions have one or two filters per channel.
        window_layer("Convolution", "num_output: 3 group: 3 kernel_size: 3 pad: 1", &[2, 3, 5, 7]),
        window_layer(
            "Convolution",
            "num_output: 6 group: 3 kernel_size: 3 stride: 2 dilation: 2 pad: 3",
            &[1, 3, 11, 9],
        ),
        layer(two_convolutions).bottom(&[1, 2, 3, 4]).bottom(&[1, 2, 3, 4]),
        window_layer(
            "Deconvolution",
            "num_output: 3 kernel_size: 3 stride: 2 pad: 1",
            &[2, 2, 3, 2],
        ),
        window_layer(
            "Deconvolution",
            &format!("num_output: 4 group: 2 {uneven_window}"),
            &[1, 2, 3, 4],
        ),
        window_layer("Deconvolution", "num_output: 2 kernel_size: 2 dilation: 3", &[2, 3, 4]),
        window_layer(
            "Deconvolution",
            "num_output: 3 group: 3 kernel_size: 4 stride: 2",
            &[1, 3, 5, 4],
        ),
        window_layer("Im2col", "kernel_size: 2 stride: 3 pad: 1", &[2, 3, 5, 4]),
        window_layer("Im2col", "kernel_size: 3 dilation: 2", &[1, 2, 7]),
    ]);
}

#[test]
fn gradients_of_pooling_match_finite_differences() {
    // All inputs of a pooling window differ, and the sum of the positive inputs of a window is
    // never near 0.
    let pool = |phase: &str, param: &str| {
        layer(&format!("type: 'Pooling' {phase} pooling_param {{ {param} }}"))
            .bottom_with(&[2, 3, 5, 7], |i| ((i * 37 % 101) as f64 - 30.5) / 64.0)
    };
    run([
        pool("", "pool: MAX kernel_size: 3 stride: 2"),
        pool("", "pool: MAX kernel_h: 2 kernel_w: 3 stride: 1 pad: 1"),
        pool("", "pool: MAX global_pooling: true"),
        pool("", "pool: AVE kernel_size: 3 stride: 2 pad: 1"),
        pool("", "pool: AVE kernel_size: 2 stride: 3 round_mode: FLOOR"),
        pool("", "pool: AVE global_pooling: true"),
        pool("", "pool: AVE_EXC_PAD kernel_size: 3 stride: 2 pad: 1"),
        pool("", "pool: AVE kernel_h: 3 kernel_w: 2 pad: 1 avg_include_pad: false"),
        pool("", "pool: AVE kernel_size: 2 stride: 3 ceil_mode: false"),
        pool("phase: TEST", "pool: STOCHASTIC kernel_size: 3 stride: 2"),
    ]);
}

#[test]
fn gradients_of_recurrent_layers_match_finite_differences() {
    // The bottom `cont` is 0 in the first time step, so that no pass depends on the state of the
    // previous pass.
    let cont = |streams: usize| move |i: usize| f64::from(u8::from(i >= streams && i % 4 != 2));
    let recurrent = |kind: &str, param: &str, x: &[usize]| {
        layer(&format!("type: '{kind}' recurrent_param {{ num_output: 2 {param} }}"))
            .bottom(x)
            .constant(&x[..2], cont(x[1]))
    };
    let expose_hidden = "expose_hidden: true";
    let mut checks = Vec::new();
    for kind in ["LSTM", "RNN"] {
        checks.extend([
            recurrent(kind, "", &[4, 3, 5]),
            recurrent(kind, "", &[1, 2, 3]),
            recurrent(kind, "", &[3, 1, 2, 2]),
            recurrent(kind, "", &[3, 2, 1]).bottom(&[2, 3]),
        ]);
    }
    let state = [1, 3, 2];
    checks.extend([
        recurrent("LSTM", expose_hidden, &[4, 3, 2]).bottom(&state).bottom(&state),
        recurrent("LSTM", expose_hidden, &[2, 3, 2]).bottom(&[3, 1]).bottom(&state).bottom(&state),
        recurrent("RNN", expose_hidden, &[4, 3, 2]).bottom(&state),
        recurrent("RNN", expose_hidden, &[2, 3, 2]).bottom(&[3, 1]).bottom(&state),
        layer("type: 'LSTMUnit'").bottom(&[1, 3, 5]).bottom(&[1, 3, 20]).constant(&[1, 3], cont(1)),
    ]);
    run(checks);
}

#[test]
fn a_wrong_gradient_fails_the_gradient_check() {
    use cortado::{
        LayerRegistry, Result,
        layer::{Neuron, NeuronGradient},
        op::{Binary, Unary},
        proto::LayerParameter,
    };

    /// Layer that computes `y = x²` but has the wrong gradient `2·y·dy`.
    struct Square;

    impl Neuron for Square {
        const KIND: &'static str = "Square";

        fn new(_: &LayerParameter) -> Result<Self> {
            Ok(Self)
        }
        fn function(&self) -> Unary<f64> {
            Unary::Sqr
        }
        fn gradient(&self) -> NeuronGradient {
            NeuronGradient::OfOutput(Binary::MulScaled(2.0))
        }
    }

    let registry = LayerRegistry::standard().with_neuron::<Square>();
    let check = layer("type: 'Square'").bottom(&[2, 3]);
    let error = check.run_with(&CpuDevice::new(), &registry).unwrap_err();
    assert!(error.to_string().contains("the gradient of bottom 0[0]"), "{error}");
}

#[test]
fn gradients_of_shape_and_index_layers_match_finite_differences() {
    let reduction = |operation: &str| {
        let definition = format!("type: 'Reduction' reduction_param {{ {operation} coeff: -1.5 }}");
        layer(&definition).bottom(&[3, 5, 7])
    };
    run([
        layer("type: 'Concat'").bottom(&[2, 3, 5]).bottom(&[2, 1, 5]),
        layer("type: 'Concat' concat_param { axis: -1 }")
            .bottom(&[3, 5])
            .bottom(&[3, 2])
            .bottom(&[3, 1]),
        layer(
            "type: 'Slice' top: 'a' top: 'b' top: 'c'
               slice_param { slice_point: 1 slice_point: 4 }",
        )
        .bottom(&[3, 7, 2]),
        layer("type: 'Slice' top: 'a' top: 'b' slice_param { axis: 0 }").bottom(&[4, 3]),
        layer("type: 'Crop' crop_param { axis: 1 offset: 1 }")
            .bottom(&[2, 4, 5, 7])
            .bottom(&[1, 3, 2, 5]),
        layer("type: 'Crop' crop_param { axis: 0 offset: 1 offset: 0 offset: 2 }")
            .bottom(&[3, 5, 4])
            .bottom(&[2, 5, 1]),
        layer("type: 'Tile' tile_param { tiles: 3 }").bottom(&[2, 3, 5]),
        layer("type: 'Tile' tile_param { axis: -1 tiles: 5 }").bottom(&[7, 1]),
        reduction("operation: SUM"),
        reduction("operation: ASUM axis: 1"),
        reduction("operation: SUMSQ axis: -1"),
        reduction("operation: MEAN axis: 1"),
        layer("type: 'SPP' spp_param { pyramid_height: 3 }").bottom(&[2, 3, 7, 9]),
        layer("type: 'SPP' spp_param { pyramid_height: 2 pool: AVE }").bottom(&[2, 3, 5, 4]),
        layer("type: 'SPP' spp_param { pyramid_height: 1 }").bottom(&[1, 3, 5, 7]),
        layer("type: 'Embed' embed_param { input_dim: 5 num_output: 3 }")
            .constant(&[7, 1], |i| (i * 3 % 5) as f64),
        layer("type: 'Embed' embed_param { input_dim: 1 num_output: 7 bias_term: false }")
            .constant(&[], |_| 0.0),
        layer("type: 'BatchReindex'").bottom(&[3, 5]).constant(&[4], |i| [2.0, 0.0, 2.0, 2.0][i]),
        layer("type: 'Parameter' parameter_param { shape { dim: 3 dim: 5 } }"),
        layer("type: 'Filter' bottom: 'x' bottom: 'selector' top: 'y'")
            .bottom(&[5, 3])
            .constant(&[5], |i| (i % 2) as f64),
        layer("type: 'Flatten'").bottom(&[2, 3, 5]),
        layer("type: 'Reshape' reshape_param { shape { dim: 5 dim: -1 } }").bottom(&[2, 3, 5]),
    ]);
}

/// Returns a check of a layer whose first bottom contains scores. No score is near a point where
/// the hinge loss has no derivative.
fn scores(shape: &[usize], definition: &str) -> GradientCheck {
    layer(definition).bottom_with(shape, |i| ((i * 37 % 41) as f64 - 20.3) / 9.7)
}

#[test]
fn gradients_of_multi_box_loss_match_finite_differences() {
    // Overlapping prior boxes in a row, and objects that overlap some of them.
    let edges = |i: usize| [i as f64 / 16.0, 0.25, i as f64 / 16.0 + 0.25, 0.5];
    let priors = move |i: usize| if i < 96 { edges(i / 4)[i % 4] } else { 0.125 };
    let rows = [
        [0., 1., 0., 0.0625, 0.25, 0.28125, 0.5, 0.],
        [0., 2., 1., 0.5, 0.125, 0.75, 0.5, 0.],
        [1., 1., 0., 0.3125, 0.25, 0.5, 0.4375, 0.],
    ];
    let loss = |param: &str, locations: usize| {
        let definition =
            format!("type: 'MultiBoxLoss' multibox_loss_param {{ num_classes: 3 {param} }}");
        layer(&definition)
            .bottom_with(&[2, 96 * locations], |i| ((i * 29 % 64) as f64 - 31.5) / 64.0)
            .bottom_with(&[2, 72], |i| ((i * i * 7 + i * 37) % 251) as f64 / 64.0)
            .constant(&[1, 2, 96], priors)
            .constant(&[1, 1, 3, 8], move |i| rows[i / 8][i % 8])
    };
    run([
        loss("", 1),
        loss("code_type: CENTER_SIZE loc_weight: 2", 1),
        loss("loc_loss_type: L2 conf_loss_type: LOGISTIC", 1),
        loss("encode_variance_in_target: true loc_loss_type: L2", 1),
        loss("encode_variance_in_target: true code_type: CORNER_SIZE", 1),
        loss("mining_type: HARD_EXAMPLE sample_size: 7", 1),
        loss("bp_inside: true mining_type: NONE", 1),
        loss("share_location: false mining_type: NONE conf_loss_type: LOGISTIC", 3),
        loss("share_location: false mining_type: NONE use_prior_for_matching: false", 3),
    ]);
}

#[test]
fn gradients_of_fork_layers_match_finite_differences() {
    let distinct = |i: usize| ((i * 37 % 101) as f64 - 30.5) / 64.0;
    let rois = |i: usize| [[0., 0., 0., 4., 3.], [1., 1., 2., 3., 4.]][i / 5][i % 5];
    let bn = |param: &str, more: &str| {
        layer(&format!("type: 'BN' {more} bn_param {{ {param} }}")).bottom(&[3, 2, 4])
    };
    let depthwise =
        "type: 'DepthwiseConvolution' convolution_param { num_output: 6 kernel_size: 2 }";
    let smooth_l1 = "type: 'SmoothL1Loss' smooth_l1_loss_param { sigma: 2 }";
    run([
        layer("type: 'Axpy'").bottom(&[2, 3]).bottom(&[2, 3, 2]).bottom(&[2, 3, 2]),
        layer("type: 'Axpy'").bottom(&[2, 3, 1, 1]).bottom(&[2, 3, 2, 2]).bottom(&[2, 3, 2, 2]),
        bn("scale_filler { value: 1 }", ""),
        bn("scale_filler { value: 1 }", "").in_place(),
        bn("bn_mode: INFERENCE", ""),
        bn("bn_mode: INFERENCE", "").in_place(),
        bn("momentum: 0.5 eps: 0.01", "phase: TRAIN"),
        bn("frozen: true eps: 0.01", "phase: TRAIN").in_place(),
        layer(depthwise).bottom(&[2, 3, 4, 5]),
        layer("type: 'CropCenter' crop_center_param { crop_size: [0, 1, 1] }").bottom(&[2, 4, 3]),
        layer("type: 'Interp' interp_param { height: 5 width: 3 pad_beg: -1 }")
            .bottom(&[2, 2, 4, 6]),
        layer("type: 'ReLU6'").bottom_with(&[2, 9], |i| i as f64 * 0.7 - 3.0),
        layer("type: 'ReLU6'").bottom_with(&[2, 9], |i| i as f64 * 0.7 - 3.0).in_place(),
        layer("type: 'Reorg' reorg_param { stride: 2 }").bottom(&[2, 4, 4, 2]),
        layer("type: 'Reorg' reorg_param { stride: 2 reverse: true }").bottom(&[2, 8, 2, 3]),
        layer("type: 'ROIPooling' roi_pooling_param { pooled_h: 2 pooled_w: 2 }")
            .bottom_with(&[2, 3, 5, 6], distinct)
            .constant(&[2, 5], rois),
        layer(
            "type: 'PSROIPooling' \
             psroi_pooling_param { spatial_scale: 1 output_dim: 2 group_size: 2 }",
        )
        .bottom(&[2, 8, 5, 6])
        .constant(&[2, 5], rois),
        layer("type: 'ShuffleChannel' shuffle_channel_param { group: 2 }").bottom(&[2, 6, 3]),
        layer("type: 'Upsample' upsample_param { scale: 2 }").bottom(&[2, 2, 2, 3]),
        layer("type: 'Upsample' bottom: 'x' bottom: 'mask' upsample_param { scale: 2 }")
            .bottom(&[1, 2, 2, 3])
            .constant(&[1, 2, 2, 3], |i| (i % 6 * 4) as f64),
        layer(smooth_l1).bottom(&[3, 5]).bottom_with(&[3, 5], distinct),
        layer(smooth_l1)
            .bottom(&[3, 5])
            .bottom_with(&[3, 5], distinct)
            .constant(&[3, 5], |i| (i % 3) as f64)
            .constant(&[3, 5], |i| (i % 4) as f64),
        layer("type: 'SmoothL1LossOHEM'").bottom(&[3, 5]).bottom_with(&[3, 5], distinct),
        scores(&[5, 3], "type: 'SoftmaxWithLossOHEM'").constant(&[5], |i| (i * 2 % 3) as f64),
    ]);
}

#[test]
fn gradients_of_losses_match_finite_differences() {
    let probability = |i: usize| 0.05 + (i * 7 % 11) as f64 / 12.0;
    let class = |i: usize| (i * 2 % 3) as f64;
    let ignore_label = "loss_param { ignore_label: 1 normalization: VALID }";
    let pairs = |definition: &str| {
        layer(definition)
            .bottom(&[5, 3])
            .bottom_with(&[5, 3], |i| (i * 5 % 7) as f64 / 3.0 - 1.0)
            .constant(&[5], |i| (i % 2) as f64)
    };
    let infogain = "type: 'InfogainLoss' bottom: 'x' bottom: 'label' bottom: 'matrix'";
    let matrix = |i: usize| (i * 5 % 7) as f64 / 4.0;
    run([
        layer("type: 'EuclideanLoss'").bottom(&[3, 5]).bottom(&[3, 5, 1]),
        layer("type: 'EuclideanLoss'").bottom(&[7]).bottom(&[7]),
        layer("type: 'SigmoidCrossEntropyLoss'").bottom(&[3, 5]).constant(&[3, 5], probability),
        layer(&format!("type: 'SigmoidCrossEntropyLoss' {ignore_label}"))
            .bottom(&[3, 5])
            .constant(&[3, 5], class),
        scores(&[5, 3], "type: 'HingeLoss'").constant(&[5], class),
        scores(&[3, 3, 1], "type: 'HingeLoss' hinge_loss_param { norm: L2 }").constant(&[3], class),
        layer("type: 'MultinomialLogisticLoss'")
            .bottom_with(&[5, 3], probability)
            .constant(&[5], class),
        layer(infogain).bottom(&[5, 3]).constant(&[5], class).constant(&[3, 3], matrix),
        layer(&format!("{infogain} infogain_loss_param {{ axis: -2 }} {ignore_label}"))
            .bottom(&[2, 3, 7])
            .constant(&[2, 7], class)
            .constant(&[9], matrix),
        layer("type: 'SoftmaxWithLoss'").bottom(&[2, 3, 5]).constant(&[2, 5], class),
        layer(
            "type: 'SoftmaxWithLoss' \
             loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 7 }",
        )
        .bottom(&[2, 3, 5])
        .constant(&[2, 5], class),
        layer(
            "type: 'SoftmaxWithLoss' loss_param { weight_by_label_freqs: true ignore_label: 1 \
             class_weighting: 0.5 class_weighting: 2 class_weighting: 3 }",
        )
        .bottom(&[2, 3, 5])
        .constant(&[2, 5], class),
        // The margin is so small that the distance of every dissimilar pair exceeds it. Below the
        // margin, Caffe divides the gradient by the distance plus 1e-4, although the loss contains
        // only the distance. With `legacy_version`, Caffe does not divide the gradient by the
        // distance.
        pairs("type: 'ContrastiveLoss' contrastive_loss_param { margin: 0.01 }"),
        pairs("type: 'ContrastiveLoss' contrastive_loss_param { margin: 9 legacy_version: true }"),
    ]);
}
