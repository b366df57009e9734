//! Tests of layer behaviour that neither golden cases nor gradient checks cover.

use cortado::{
    AnyDevice, Blob, CpuDevice, Element, LayerRegistry, Net, Result,
    data::SourceRegistry,
    layer::{DataLayer, Layer, LayerContext, MemoryDataLayer, PropagateDown, Shard},
    op::RngKey,
    proto::{self, LayerParameter, NetParameter, Phase},
};

fn try_net<T: Element>(text: &str, phase: Phase) -> Result<Net<T>> {
    let definition: NetParameter = proto::parse_text(text, "net.prototxt")?;
    Net::builder(&CpuDevice::new()).phase(phase).seed(5).build(&definition)
}

fn net(text: &str) -> Net<f32> {
    try_net(text, Phase::Train).unwrap()
}

fn data<T: Element>(net: &Net<T>, name: &str) -> Vec<T> {
    net.blob(name).unwrap().data().unwrap().host().unwrap().to_vec()
}

fn diff<T: Element>(net: &Net<T>, name: &str) -> Vec<T> {
    net.blob(name).unwrap().diff().unwrap().host().unwrap().to_vec()
}

fn set<T: Element>(net: &Net<T>, name: &str, values: &[T]) {
    let mut data = net.blob(name).unwrap().data_mut().unwrap();
    data.host_mut().unwrap().copy_from_slice(values);
}

/// Builds a layer with the name `probe` and the fields in `text`.
fn layer(text: &str) -> Result<Box<dyn Layer<f32>>> {
    let param: LayerParameter = proto::parse_text(format!("name: 'probe' {text}"), "layer")?;
    with_context(|cx| LayerRegistry::standard().make(&param, cx))
}

fn with_context<R>(body: impl FnOnce(&LayerContext<'_>) -> R) -> R {
    let device = AnyDevice::new(&CpuDevice::new());
    let sources = SourceRegistry::default();
    let (phase, key) = (Phase::Train, RngKey::new(1));
    body(&LayerContext { device: &device, phase, key, shard: Shard::WHOLE, sources: &sources })
}

/// Calls the method `method` of a layer with `bottoms` new bottom blobs and `tops` new top blobs.
fn call(layer: &mut dyn Layer<f32>, method: &str, [bottoms, tops]: [usize; 2]) -> Result<()> {
    let device = AnyDevice::new(&CpuDevice::new());
    let blobs = |count| (0..count).map(|_| Blob::new(&device, &[2, 3, 4, 5]).unwrap());
    let (bottom, mut top): (Vec<_>, Vec<_>) = (blobs(bottoms).collect(), blobs(tops).collect());
    let flags = [vec![false; bottoms], vec![false; layer.params().len()]];
    let propagate = PropagateDown { bottom: &flags[0], params: &flags[1] };
    match method {
        "setup" => with_context(|cx| layer.setup(cx, &bottom)),
        "reshape" => layer.reshape(&bottom, &mut top),
        "forward" => layer.forward(&device, &bottom, &top),
        _ => layer.backward(&device, &top, propagate, &bottom),
    }
}

#[test]
fn every_layer_called_with_wrong_blob_counts_returns_an_error() {
    // Required fields of some layer types.
    let fields = [
        ("Clip", "clip_param { min: 0 max: 1 }"),
        ("Convolution", "convolution_param { num_output: 1 kernel_size: 1 }"),
        ("ConvolutionDepthwise", "convolution_param { num_output: 3 kernel_size: 1 }"),
        ("Deconvolution", "convolution_param { num_output: 1 kernel_size: 1 }"),
        ("DetectionEvaluate", "detection_evaluate_param { num_classes: 2 }"),
        ("DetectionOutput", "detection_output_param { num_classes: 2 }"),
        ("BoxAnnotatorOHEM", "box_annotator_ohem_param { roi_per_img: 1 }"),
        ("CropCenter", "crop_center_param { crop_size: [0, 0, 1, 1] }"),
        ("DepthwiseConvolution", "convolution_param { num_output: 3 kernel_size: 1 }"),
        ("DummyData", "dummy_data_param { shape { dim: 2 } }"),
        ("Embed", "embed_param { num_output: 1 input_dim: 2 }"),
        ("Filter", "bottom: 'x' bottom: 'selector' top: 'y'"),
        ("InfogainLoss", "bottom: 'x' bottom: 'label' bottom: 'matrix'"),
        ("Interp", "interp_param { zoom_factor: 2 }"),
        ("InnerProduct", "inner_product_param { num_output: 1 }"),
        ("LSTM", "recurrent_param { num_output: 1 }"),
        ("MemoryData", "memory_data_param { batch_size: 1 channels: 1 height: 1 width: 1 }"),
        ("MultiBoxLoss", "multibox_loss_param { num_classes: 2 }"),
        ("Pooling", "pooling_param { kernel_size: 1 }"),
        ("PriorBox", "prior_box_param { min_size: 1 }"),
        ("PriorBoxClustered", "prior_box_param { width: 1 height: 1 }"),
        ("PSROIPooling", "psroi_pooling_param { spatial_scale: 1 output_dim: 3 group_size: 1 }"),
        ("Reorg", "reorg_param { stride: 1 }"),
        ("ROIPooling", "roi_pooling_param { pooled_h: 1 pooled_w: 1 }"),
        ("RNN", "recurrent_param { num_output: 1 }"),
        ("SPP", "spp_param { pyramid_height: 1 }"),
        ("Tile", "tile_param { tiles: 2 }"),
        (
            "YoloDetectionOutput",
            "yolo_detection_output_param { num_classes: 1 num_box: 1 biases: [1, 1] }",
        ),
        (
            "Yolov3DetectionOutput",
            "yolov3_detection_output_param { num_classes: 1 num_box: 1 mask: [0, 0]
                anchors_scale: [2, 1] biases: [1, 1] }",
        ),
    ];
    let types_with_files = [
        "AnnotatedData",
        "Data",
        "DenseImageData",
        "HDF5Data",
        "HDF5Output",
        "ImageData",
        "Parameter",
        "WindowData",
    ];
    for kind in LayerRegistry::<f32>::standard().kinds() {
        if types_with_files.contains(&kind) {
            continue;
        }
        let fields = fields.iter().find(|(of, _)| *of == kind).map_or("", |(_, fields)| fields);
        let mut layer = layer(&format!("type: '{kind}' {fields}")).unwrap();
        let arity = layer.arity();
        for counts in (0..36).map(|i| [i / 6, i % 6]) {
            let is_wrong_arity = arity.check(counts[0], counts[1]).is_err();
            for method in ["reshape", "forward", "backward"] {
                let error = call(&mut *layer, method, counts).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{method} of layer `probe` ({kind}): ")));
                let problem = if is_wrong_arity { "expected " } else { "called before " };
                assert!(error.contains(problem), "{counts:?}: {error}");
            }
        }
    }
}

#[test]
fn blob_counts_that_contradict_the_arity_or_earlier_calls_are_errors() {
    let expect_error = |result: Result<()>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    let mut relu = layer("type: 'ReLU'").unwrap();
    for method in ["setup", "reshape"] {
        let expected = format!("{method} of layer `probe` (ReLU): expected 1 bottom blob, found 0");
        expect_error(call(&mut *relu, method, [0, 1]), &expected);
        call(&mut *relu, method, [1, 1]).unwrap();
    }
    for method in ["forward", "backward"] {
        call(&mut *relu, method, [1, 1]).unwrap();
        for (counts, problem) in [
            ([0, 1], "expected 1 bottom blob, found 0"),
            ([2, 1], "expected 1 bottom blob, found 2"),
            ([1, 0], "expected 1 top blob, found 0"),
            ([1, 2], "expected 1 top blob, found 2"),
        ] {
            let expected = format!("{method} of layer `probe` (ReLU): {problem}");
            expect_error(call(&mut *relu, method, counts), &expected);
        }
    }

    let mut concat = layer("type: 'Concat'").unwrap();
    call(&mut *concat, "setup", [2, 1]).unwrap();
    call(&mut *concat, "reshape", [2, 1]).unwrap();
    for (method, bottoms) in [("reshape", 3), ("forward", 3), ("backward", 1)] {
        let expected =
            format!("{method} of layer `probe` (Concat): expected 2 bottom blobs, found {bottoms}");
        expect_error(call(&mut *concat, method, [bottoms, 1]), &expected);
    }
}

#[test]
fn a_backward_pass_with_other_shapes_than_the_forward_pass_is_an_error() {
    let mut net = net("force_backward: true
         layer { name: 'in' type: 'Input' top: 'x' top: 'regions'
             input_param { shape { dim: 2 dim: 1 dim: 4 dim: 4 } shape { dim: 3 dim: 5 } } }
         layer { name: 'pool' type: 'ROIPooling' bottom: 'x' bottom: 'regions' top: 'y'
             roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 1 } }");
    net.forward().unwrap();
    for (blob, extents, role) in
        [("x", &[1, 1, 2, 2][..], "bottom 0"), ("y", &[1, 1, 2, 2], "top 0")]
    {
        net.blob_mut(blob).unwrap().reshape(extents).unwrap();
        let error = net.backward().unwrap_err().to_string();
        let expected = format!("backward of layer `pool` (ROIPooling): {role} has the shape ");
        assert!(error.contains(&expected), "{error}");
        net.forward().unwrap();
        net.backward().unwrap();
    }
}

#[test]
fn a_forward_pass_with_other_shapes_than_the_last_reshape_is_an_error() {
    let device = AnyDevice::new(&CpuDevice::new());
    let blob = |extents: &[usize]| Blob::<f32>::new(&device, extents).unwrap();
    let mut relu = layer("type: 'ReLU'").unwrap();
    call(&mut *relu, "setup", [1, 1]).unwrap();
    let (x, mut y) = ([blob(&[2, 3])], [blob(&[])]);
    relu.reshape(&x, &mut y).unwrap();
    relu.forward(&device, &x, &y).unwrap();
    let error = relu.forward(&device, &[blob(&[4])], &y).unwrap_err().to_string();
    assert!(error.starts_with("forward of layer `probe` (ReLU): "), "{error}");
    assert!(
        error.contains("bottom 0 has the shape ") && error.contains("call reshape first"),
        "{error}"
    );
}

#[test]
fn a_memory_data_layer_wraps_around_and_restarts_after_a_reset() {
    let mut net = net("layer { name: 'in' type: 'MemoryData' top: 'x' top: 'l'
         memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }");
    let error = net.forward().unwrap_err().to_string();
    assert!(error.contains("layer `in`") && error.contains("reset"), "{error}");
    assert!(net.layer_as::<DataLayer<f32>>("in").is_none());
    let layer = net.layer_as::<MemoryDataLayer<f32>>("in").unwrap();
    let items = |n: u16| (0..n).map(f32::from).collect::<Vec<_>>();
    assert!(layer.reset(items(9), items(3)).is_err(), "3 items cannot form batches of 2");
    assert!(layer.reset(items(11), items(4)).is_err(), "4 items have 12 elements, not 11");
    assert!(layer.reset(vec![], vec![]).is_err());
    layer.reset(items(12), items(4)).unwrap();
    for first in [0.0, 6.0, 0.0] {
        net.forward().unwrap();
        let expected: Vec<f32> = items(6).iter().map(|i| i + first).collect();
        assert_eq!(data(&net, "x"), expected);
        assert_eq!(data(&net, "l"), [first / 3.0, first / 3.0 + 1.0]);
    }
    let layer = net.layer_as::<MemoryDataLayer<f32>>("in").unwrap();
    layer.reset(vec![7.0; 6], vec![1.0; 2]).unwrap();
    net.forward().unwrap();
    assert_eq!(data(&net, "x"), [7.0; 6]);
}

#[test]
fn dummy_data_redraws_random_tops_and_keeps_constants() {
    let mut net = net("layer { name: 'in' type: 'DummyData' top: 'c' top: 'u' dummy_data_param {
         shape { dim: 3 } data_filler { value: 2 } data_filler { type: 'uniform' } } }");
    net.forward().unwrap();
    assert_eq!(data(&net, "c"), [2.0; 3]);
    let first = data(&net, "u");
    set(&net, "c", &[1.0, 2.0, 3.0]);
    net.forward().unwrap();
    assert_eq!(data(&net, "c"), [1.0, 2.0, 3.0], "a forward pass must not change a constant top");
    assert_ne!(data(&net, "u"), first);
}

#[test]
fn python_layer_that_is_not_registered_is_refused_with_its_name() {
    let text = "layer { name: 'p' type: 'Python' top: 'y'
         python_param { module: 'm' layer: 'L' } }";
    let error = try_net::<f32>(text, Phase::Train).err().unwrap().to_string();
    for word in ["layer `p`", "`m.L`", "with_python(\"m\", \"L\", …)", "NetBuilder::registry"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn parameter_layer_accumulates_gradients() {
    let mut net = net("layer { name: 'p' type: 'Parameter' top: 'p'
           parameter_param { shape { dim: 2 } } }
         layer { name: 'sum' type: 'Reduction' bottom: 'p' top: 'sum' loss_weight: 3 }");
    for passes in [1.0, 2.0] {
        net.forward().unwrap();
        net.backward().unwrap();
        let param = net.params()[0].blob().share();
        assert_eq!(param.diff().unwrap().host().unwrap(), [3.0 * passes; 2]);
        assert!(param.shares_data_with(net.blob("p").unwrap()));
    }
}

#[test]
fn reshape_and_flatten_layers_do_not_copy_data() {
    let mut net = net("force_backward: true
         layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
         layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r'
           reshape_param { shape { dim: 3 dim: -1 } } }
         layer { name: 'f' type: 'Flatten' bottom: 'r' top: 'f' flatten_param { axis: 0 } }
         layer { name: 'sum' type: 'Reduction' bottom: 'f' top: 'sum' loss_weight: 1 }");
    for extents in [[2, 3], [6, 5], [1, 3]] {
        net.blob_mut("x").unwrap().reshape(&extents).unwrap();
        net.forward().unwrap();
        net.backward().unwrap();
        let (x, f) = (net.blob("x").unwrap(), net.blob("f").unwrap());
        assert!(f.shares_data_with(x) && f.shares_diff_with(x), "{extents:?}");
        assert_eq!(diff(&net, "x"), vec![1.0; extents.iter().product()]);
    }
}

#[test]
fn shared_top_without_propagate_down_does_not_change_the_bottom_diff() {
    // The Flatten layer must not propagate the gradient that the layer `side` computes for the top
    // `f` to the bottom `p`.
    let mut net = net("layer { name: 'p' type: 'Parameter' top: 'p'
           parameter_param { shape { dim: 2 } } }
         layer { name: 'f' type: 'Flatten' bottom: 'p' top: 'f' propagate_down: false
           flatten_param { axis: 0 } }
         layer { name: 'side' type: 'Reduction' bottom: 'f' top: 'side' loss_weight: 5
           propagate_down: true }
         layer { name: 'main' type: 'Reduction' bottom: 'p' top: 'main' loss_weight: 1 }");
    net.forward().unwrap();
    net.backward().unwrap();
    assert_eq!(net.params()[0].blob().diff().unwrap().host().unwrap(), [1.0; 2]);
}

#[test]
fn the_reference_bottom_of_crop_gets_a_zero_gradient() {
    let mut net = net("force_backward: true
         layer { name: 'in' type: 'Input' top: 'x' top: 'like'
           input_param { shape { dim: 2 dim: 2 dim: 3 dim: 4 }
                         shape { dim: 2 dim: 1 dim: 2 dim: 2 } } }
         layer { name: 'c' type: 'Crop' bottom: 'x' bottom: 'like' top: 'y'
           crop_param { axis: 1 offset: 1 offset: 0 offset: 2 } }
         layer { name: 'sum' type: 'Reduction' bottom: 'y' top: 'sum' loss_weight: 1 }");
    set(&net, "x", &(0u16..48).map(f32::from).collect::<Vec<_>>());
    net.blob("like").unwrap().diff_mut().unwrap().host_mut().unwrap().fill(9.0);
    net.forward().unwrap();
    net.backward().unwrap();
    let cropped_values = [14.0, 15.0, 18.0, 19.0, 38.0, 39.0, 42.0, 43.0];
    assert_eq!(data(&net, "y"), cropped_values);
    let expected_diff =
        (0u16..48).map(|i| f32::from(u8::from(cropped_values.contains(&f32::from(i)))));
    assert_eq!(diff(&net, "x"), expected_diff.collect::<Vec<_>>());
    assert_eq!(diff(&net, "like"), [0.0; 8]);
}

#[test]
fn a_filter_layer_keeps_only_selected_items() {
    let mut net = net("layer { name: 'in' type: 'Input' top: 'x' top: 's'
           input_param { shape { dim: 3 dim: 2 } shape { dim: 3 } } }
         layer { name: 'f' type: 'Filter' bottom: 'x' bottom: 's' top: 'y' }");
    assert_eq!(
        net.blob("y").unwrap().shape()[..],
        [3, 2],
        "before the first pass, the top must have the shape of the bottom"
    );
    set(&net, "x", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (selector, expected) in [
        ([0.0, 0.0, 0.0], &[][..]),
        ([0.0, -1.0, 0.0], &[3.0, 4.0]),
        ([1.0, 0.0, 0.5], &[1.0, 2.0, 5.0, 6.0]),
    ] {
        set(&net, "s", &selector);
        net.forward().unwrap();
        assert_eq!(data(&net, "y"), expected);
    }
}

#[test]
fn indices_and_labels_out_of_range_are_errors() {
    for (layer, bad) in [
        ("type: 'Embed' bottom: 'i' top: 'y' embed_param { input_dim: 4 num_output: 2 }", 4.0),
        ("type: 'BatchReindex' bottom: 'x' bottom: 'i' top: 'y'", 3.0),
        ("type: 'BatchReindex' bottom: 'x' bottom: 'i' top: 'y'", 0.5),
        ("type: 'HingeLoss' bottom: 'x' bottom: 'i' top: 'y'", 2.0),
        ("type: 'MultinomialLogisticLoss' bottom: 'x' bottom: 'i' top: 'y'", -1.0),
        ("type: 'Accuracy' bottom: 'x' bottom: 'i' top: 'y' top: 'z'", 2.0),
    ] {
        let mut net = net(&format!(
            "layer {{ name: 'in' type: 'Input' top: 'x' top: 'i'
               input_param {{ shape {{ dim: 3 dim: 2 }} shape {{ dim: 3 }} }} }}
             layer {{ name: 'bad' {layer} }}"
        ));
        set(&net, "i", &[0.0, bad, 1.0]);
        let error = net.forward().unwrap_err().to_string();
        assert!(error.contains("layer `bad`") && error.contains(&bad.to_string()), "{error}");
        set(&net, "i", &[0.0, 1.0, 1.0]);
        net.forward().unwrap();
    }
}

/// Tests of stochastic pooling of two 4 × 5 planes. Some of the 2 × 2 windows extend past the edge
/// of the plane.
mod stochastic_pooling {
    use super::{data, diff, set, try_net};
    use cortado::{Net, proto::Phase};

    fn net(phase: Phase) -> Net<f64> {
        let text = "force_backward: true
            layer { name: 'x' type: 'Input' top: 'x'
              input_param { shape { dim: 1 dim: 2 dim: 4 dim: 5 } } }
            layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y'
              pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }";
        try_net(text, phase).unwrap()
    }

    /// Returns positive and negative inputs of the pooling layer. One pooling window has only
    /// negative inputs.
    fn inputs() -> Vec<f64> {
        let input = |i| if [0, 1, 5, 6].contains(&i) { -1.0 } else { f64::from(i).sin() + 0.6 };
        (0..40).map(input).collect()
    }

    fn forward(net: &mut Net<f64>, x: &[f64]) -> Vec<f64> {
        set(net, "x", x);
        net.forward().unwrap();
        data(net, "y")
    }

    fn backward(net: &mut Net<f64>, dy: &[f64]) -> Vec<f64> {
        net.blob("y").unwrap().diff_mut().unwrap().host_mut().unwrap().copy_from_slice(dy);
        net.backward().unwrap();
        diff(net, "x")
    }

    /// Returns the indices of the elements in each of the twelve pooling windows.
    fn windows() -> Vec<Vec<usize>> {
        let window = |w: usize| {
            let (plane, row, column) = (w / 6, w % 6 / 3 * 2, w % 3 * 2);
            let columns = column..5.min(column + 2);
            let taps = (row..row + 2).flat_map(|r| columns.clone().map(move |c| (r, c)));
            taps.map(|(r, c)| plane * 20 + r * 5 + c).collect()
        };
        (0..12).map(window).collect()
    }

    #[test]
    fn stochastic_pooling_draws_new_reproducible_elements_in_every_pass() {
        let (mut net, mut same) = (net(Phase::Train), net(Phase::Train));
        let (x, dy) = (inputs(), (1..=12).map(f64::from).collect::<Vec<_>>());
        let mut outputs = Vec::new();
        for _ in 0..20 {
            let y = forward(&mut net, &x);
            assert_eq!(y, forward(&mut same, &x));
            let dx = backward(&mut net, &dy);
            for (w, window) in windows().into_iter().enumerate() {
                let drawn_indices: Vec<_> = window.iter().filter(|&&i| dx[i] != 0.0).collect();
                assert_eq!(drawn_indices.len(), 1);
                assert_eq!((x[*drawn_indices[0]], dx[*drawn_indices[0]]), (y[w], dy[w]));
                assert!(y[w] > 0.0 || window.iter().all(|&i| x[i] <= 0.0));
            }
            outputs.push(y);
        }
        outputs.dedup();
        assert!(outputs.len() > 15, "only {} of 20 outputs are distinct", outputs.len());
    }

    #[test]
    fn stochastic_pooling_in_the_test_phase_computes_weighted_means() {
        let mut net = net(Phase::Test);
        let (x, dy) = (inputs(), (1..=12).map(f64::from).collect::<Vec<_>>());
        let means = |x: &[f64]| -> Vec<f64> {
            let mean = |window: Vec<usize>| {
                let positive_inputs = || window.iter().map(|&i| x[i].max(0.0));
                let sum: f64 = positive_inputs().sum();
                if sum > 0.0 { positive_inputs().map(|x| x * x).sum::<f64>() / sum } else { 0.0 }
            };
            windows().into_iter().map(mean).collect()
        };
        for (y, expected) in forward(&mut net, &x).iter().zip(means(&x)) {
            assert!((y - expected).abs() < 1e-12, "expected {expected}, found {y}");
        }
        let objective = |x: &[f64]| means(x).iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>();
        for (i, dx) in backward(&mut net, &dy).into_iter().enumerate() {
            let [mut lower, mut upper] = [x.clone(), x.clone()];
            (lower[i], upper[i]) = (lower[i] - 1e-6, upper[i] + 1e-6);
            let expected = (objective(&upper) - objective(&lower)) / 2e-6;
            assert!((dx - expected).abs() < 1e-6, "dx[{i}]: expected {expected}, found {dx}");
        }
    }
}
