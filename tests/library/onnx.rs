//! Tests of the export to ONNX: operators, attributes and names. `tests/onnx.rs` compares the
//! results of exported models with ONNX Runtime.

use cortado::{
    AnyDevice, Blob, CpuDevice, Layer, LayerRegistry, Net,
    onnx::{self, ExportOptions},
    proto::{
        self, Message, NetParameter, Phase,
        onnx::{GraphProto, ModelProto, NodeProto, TensorProto},
    },
};

fn net(text: &str) -> Net<f32> {
    let definition: NetParameter = proto::parse_text(text, "net.prototxt").unwrap();
    Net::builder(&CpuDevice::new()).seed(1).build(&definition).unwrap()
}

/// Returns the definition of an Input layer whose top is `x`.
fn input(shape: &str) -> String {
    named_input("x", shape)
}

fn named_input(name: &str, shape: &str) -> String {
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' \
         input_param {{ shape {{ dim: {shape} }} }} }}\n"
    )
}

fn export(net: &mut Net<f32>) -> GraphProto {
    let model = onnx::export(net, ExportOptions::default()).unwrap();
    // Decode the encoded message, as a reader of the file does.
    let model = ModelProto::decode(&model.encode_to_vec()[..]).unwrap();
    let graph = model.graph.unwrap();
    for node in &graph.node {
        let has_ceil_mode = node.attribute.iter().any(|a| a.name() == "ceil_mode");
        assert!(!has_ceil_mode, "{} has ceil_mode", node.name());
    }
    graph
}

/// Exports a net with one input `x` of the given shape and the given layers.
fn export_layers(shape: &str, layers: &str) -> GraphProto {
    export(&mut net(&(input(shape) + layers)))
}

fn export_error(text: &str, options: ExportOptions) -> String {
    onnx::export(&mut net(text), options).unwrap_err().to_string()
}

fn operators(graph: &GraphProto) -> Vec<&str> {
    graph.node.iter().map(NodeProto::op_type).collect()
}

fn node<'a>(graph: &'a GraphProto, operator: &str) -> &'a NodeProto {
    let mut nodes = graph.node.iter().filter(|node| node.op_type() == operator);
    let node = nodes.next().unwrap_or_else(|| panic!("{operator}: {:?}", operators(graph)));
    assert!(nodes.next().is_none(), "several {operator}");
    node
}

fn ints<'a>(node: &'a NodeProto, name: &str) -> &'a [i64] {
    node.attribute.iter().find(|a| a.name() == name).map_or(&[], |a| &a.ints)
}

fn int(node: &NodeProto, name: &str) -> Option<i64> {
    node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.i)
}

fn constant<'a>(graph: &'a GraphProto, name: &str) -> &'a TensorProto {
    graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap()
}

fn floats(graph: &GraphProto, name: &str) -> Vec<f32> {
    let bytes = constant(graph, name).raw_data().chunks_exact(4);
    bytes.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn integers<'a>(graph: &'a GraphProto, name: &str) -> &'a [i64] {
    &constant(graph, name).int64_data
}

/// Returns the extents of an output, with −1 for a symbol and −2 for an unknown extent.
fn extents(info: &proto::onnx::ValueInfoProto) -> Vec<i64> {
    let shape = info.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap().shape.as_ref().unwrap();
    let extent = |dim: &proto::onnx::TensorShapeProtoDimension| match &dim.dim_param {
        Some(symbol) => {
            assert_eq!(symbol, "batch");
            -1
        }
        None => dim.dim_value.unwrap_or(-2),
    };
    shape.dim.iter().map(extent).collect()
}

#[test]
fn max_pooling_states_the_padding_after_each_axis() {
    let graph = export_layers(
        "[2, 3, 8, 7]",
        "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y'
          pooling_param { pool: MAX kernel_size: 3 stride: 2 } }",
    );
    // Caffe rounds (8 − 3) / 2 up, so the last row of windows extends one row beyond the bottom.
    let pool = node(&graph, "MaxPool");
    assert_eq!(ints(pool, "pads"), [0, 0, 1, 0]);
    assert_eq!((ints(pool, "kernel_shape"), ints(pool, "strides")), (&[3, 3][..], &[2, 2][..]));
    assert_eq!(extents(&graph.output[0]), [2, 3, 4, 3]);
}

#[test]
fn average_pooling_divides_as_caffe_does() {
    let export = |shape: &str, param: &str| {
        let layer = format!(
            "layer {{ name: 'p' type: 'Pooling' bottom: 'x' top: 'y'
              pooling_param {{ pool: AVE {param} }} }}"
        );
        export_layers(shape, &layer)
    };
    let graph = export("[1, 1, 8, 8]", "kernel_size: 3 stride: 2");
    assert_eq!(operators(&graph), ["AveragePool"]);
    assert_eq!(ints(&graph.node[0], "pads"), [0, 0, 1, 1]);
    assert_eq!(int(&graph.node[0], "count_include_pad"), None);

    let graph = export("[1, 1, 7, 7]", "kernel_size: 3 stride: 2 pad: 1");
    assert_eq!(operators(&graph), ["AveragePool"]);
    assert_eq!(int(&graph.node[0], "count_include_pad"), Some(1));

    // The last windows extend beyond the padding: Caffe divides by 3·2 and, in the corner, 2·2.
    let graph = export("[1, 1, 6, 6]", "kernel_size: 3 stride: 2 pad: 1");
    assert_eq!(operators(&graph), ["AveragePool", "Mul"]);
    assert_eq!(ints(&graph.node[0], "pads"), [1, 1, 2, 2]);
    let factors = floats(&graph, &graph.node[1].input[1]);
    let row = [1.0, 1.0, 1.0, 1.5];
    assert_eq!(factors, [&row[..], &row, &row, &[1.5, 1.5, 1.5, 2.25]].concat());

    assert_eq!(operators(&export("[1, 2, 5, 6]", "global_pooling: true")), ["GlobalAveragePool"]);
}

#[test]
fn batch_norm_divides_its_statistics_by_the_third_parameter() {
    let text = input("[1, 2, 3]")
        + "layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { eps: 0.5 } }";
    for (divisor, mean, variance) in [(4.0, [0.5, 1.0], [2.0, 4.0]), (0.0, [0.0; 2], [0.0; 2])] {
        let mut net = net(&text);
        net.params()[0].blob().copy_from_slice(&[2.0, 4.0]).unwrap();
        net.params()[1].blob().copy_from_slice(&[8.0, 16.0]).unwrap();
        net.params()[2].blob().copy_from_slice(&[divisor]).unwrap();
        let graph = export(&mut net);
        let node = node(&graph, "BatchNormalization");
        let operands: Vec<_> = node.input[1..].iter().map(|name| floats(&graph, name)).collect();
        assert_eq!(operands, [[1.0; 2], [0.0; 2], mean, variance]);
        assert_eq!(node.attribute[0].f, Some(0.5));
    }
    let mut net =
        net(&text.replace("eps: 0.5", "scale_filler { value: 3 } bias_filler { value: 2 }"));
    let graph = export(&mut net);
    let node = node(&graph, "BatchNormalization");
    let operands: Vec<_> = node.input[1..].iter().map(|name| floats(&graph, name)).collect();
    assert_eq!(operands, [[3.0; 2], [2.0; 2], [0.0; 2], [0.0; 2]]);
}

#[test]
fn inner_product_flattens_the_bottom_from_its_axis() {
    let layer = |param: &str| {
        format!(
            "layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
              inner_product_param {{ num_output: 7 {param} }} }}"
        )
    };
    let graph = export_layers("[2, 3, 4, 5]", &layer("axis: 2"));
    assert_eq!(operators(&graph), ["Flatten", "Gemm", "Reshape"]);
    assert_eq!(int(&graph.node[0], "axis"), Some(2));
    assert_eq!(int(&graph.node[1], "transB"), Some(1));
    assert_eq!(constant(&graph, &graph.node[1].input[1]).dims, [7, 20]);
    assert_eq!(integers(&graph, &graph.node[2].input[1]), [-1, 3, 7]);
    assert_eq!(extents(&graph.output[0]), [2, 3, 7]);

    let graph = export_layers("[2, 3]", &layer("transpose: true bias_term: false"));
    assert_eq!(operators(&graph), ["Gemm"]);
    assert_eq!((int(&graph.node[0], "transB"), graph.node[0].input.len()), (Some(0), 2));
}

#[test]
fn crop_becomes_a_slice_of_the_cropped_axes() {
    let layers = named_input("r", "[1, 4, 5, 9]")
        + "layer { name: 'c' type: 'Crop' bottom: 'x' bottom: 'r' top: 'y'
            crop_param { axis: 1 offset: 1 offset: 2 offset: 0 } }";
    let graph = export_layers("[1, 6, 8, 9]", &layers);
    let slice = node(&graph, "Slice");
    let operands: Vec<_> = slice.input[1..].iter().map(|name| integers(&graph, name)).collect();
    assert_eq!(operands, [[1, 2], [5, 7], [1, 2]]); // starts, ends, axes
    // The model does not read the values of the reference blob.
    assert_eq!(graph.input.len(), 1);
}

#[test]
fn deconvolution_keeps_its_groups() {
    let graph = export_layers(
        "[1, 4, 3, 3]",
        "layer { name: 'd' type: 'Deconvolution' bottom: 'x' top: 'y' convolution_param {
          num_output: 6 kernel_size: 4 stride: 2 pad: 1 group: 2 } }",
    );
    let node = node(&graph, "ConvTranspose");
    assert_eq!(int(node, "group"), Some(2));
    assert_eq!(constant(&graph, &node.input[1]).dims, [4, 3, 4, 4]);
    assert_eq!((ints(node, "pads"), ints(node, "strides")), (&[1; 4][..], &[2, 2][..]));
    assert_eq!(extents(&graph.output[0]), [1, 6, 6, 6]);
}

#[test]
fn lrn_within_a_channel_is_composed_of_other_operators() {
    let layer = |region: &str| {
        format!(
            "layer {{ name: 'n' type: 'LRN' bottom: 'x' top: 'y'
              lrn_param {{ local_size: 3 k: 2 norm_region: {region} }} }}"
        )
    };
    let graph = export_layers("[1, 2, 4, 4]", &layer("WITHIN_CHANNEL"));
    assert_eq!(operators(&graph), ["Mul", "AveragePool", "Mul", "Add", "Pow", "Mul"]);
    assert_eq!(floats(&graph, &graph.node[3].input[1]), [1.0]); // Caffe ignores `k`
    let graph = export_layers("[1, 2, 4, 4]", &layer("ACROSS_CHANNELS"));
    assert_eq!((operators(&graph), int(&graph.node[0], "size")), (vec!["LRN"], Some(3)));
}

#[test]
fn reshape_has_the_resolved_shape_of_the_net() {
    let graph = export_layers(
        "[2, 12, 5]",
        "layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'y'
          reshape_param { axis: 1 num_axes: 1 shape { dim: [3, -1] } } }",
    );
    assert_eq!(integers(&graph, &node(&graph, "Reshape").input[1]), [-1, 3, 4, 5]);
}

#[test]
fn spp_pools_at_each_level_and_concatenates_the_bins() {
    let graph = export_layers(
        "[1, 3, 9, 7]",
        "layer { name: 's' type: 'SPP' bottom: 'x' top: 'y' spp_param { pyramid_height: 2 } }",
    );
    assert_eq!(operators(&graph), ["MaxPool", "Flatten", "MaxPool", "Flatten", "Concat"]);
    assert_eq!(ints(&graph.node[2], "kernel_shape"), [5, 4]);
    assert_eq!(extents(&graph.output[0]), [1, 15]);
}

const TRAIN_VAL: &str = "
    layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: [2, 3] } } }
    layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } }
    layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1'
      inner_product_param { num_output: 4 } }
    layer { name: 'relu1' type: 'ReLU' bottom: 'ip1' top: 'ip1' }
    layer { name: 'drop1' type: 'Dropout' bottom: 'ip1' top: 'ip1' }
    layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2'
      inner_product_param { num_output: 5 } }
    layer { name: 'prob' type: 'Softmax' bottom: 'ip2' top: 'prob' }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'prob' bottom: 'label' top: 'accuracy' }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }";

#[test]
fn dropout_and_losses_are_left_out_and_softmax_is_kept() {
    let graph = export(&mut net(TRAIN_VAL));
    assert_eq!(operators(&graph), ["Gemm", "Relu", "Gemm", "Softmax"]);
    let names = |infos: &[proto::onnx::ValueInfoProto]| -> Vec<String> {
        infos.iter().map(|info| info.name().to_owned()).collect()
    };
    assert_eq!(
        (names(&graph.input), names(&graph.output)),
        (vec!["data".into()], vec!["prob".into()])
    );
}

#[test]
fn values_have_the_names_of_blobs_and_in_place_layers_get_fresh_names() {
    let graph = export(&mut net(TRAIN_VAL));
    let outputs: Vec<_> = graph.node.iter().flat_map(|node| &node.output).collect();
    assert_eq!(outputs, ["ip1/ip1", "ip1", "ip2", "prob"]);

    // If a layer overwrites an input in place, the input keeps the name of the blob.
    let graph = export_layers("[2, 3]", "layer { name: 'relu' type: 'ReLU' bottom: 'x' top: 'x' }");
    assert_eq!((&*graph.node[0].input[0], &*graph.node[0].output[0]), ("x", "x/relu"));

    // A Dropout layer is left out, and its top `z` becomes the name of the output.
    let layers = "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }
        layer { name: 'd' type: 'Dropout' bottom: 'y' top: 'z' }";
    let graph = export_layers("[2, 3]", layers);
    assert_eq!((graph.output[0].name(), &*graph.node[0].output[0]), ("z", "z"));
}

#[test]
fn a_nets_names_do_not_collide_with_temporary_values() {
    let layers = "layer { name: 'p/Mul' type: 'ReLU' bottom: 'x' top: 'p/Mul' }
        layer { name: 'p' type: 'Power' bottom: 'p/Mul' top: 'y'
          power_param { scale: 2 shift: 1 power: 3 } }
        layer { name: 'p' type: 'Power' bottom: 'y' top: 'z' power_param { scale: 3 shift: 1 } }";
    let graph = export_layers("[2, 3]", layers);
    let mut names: Vec<_> = graph.node.iter().flat_map(|node| &node.output).collect();
    names.extend(graph.initializer.iter().map(|tensor| tensor.name.as_ref().unwrap()));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn lstm_is_unrolled_over_its_time_steps() {
    let lstm = |steps: usize| {
        input(&format!("[{steps}, 2, 4]"))
            + &named_input("cont", &format!("[{steps}, 2]"))
            + "layer { name: 'lstm' type: 'LSTM' bottom: 'x' bottom: 'cont' top: 'y'
                recurrent_param { num_output: 3 } }"
    };
    let graph = export(&mut net(&lstm(5)));
    let count = |operator: &str| operators(&graph).iter().filter(|op| **op == operator).count();
    // The first step starts with states of zero, so it has no product with the hidden state.
    assert_eq!((count("MatMul"), count("Sigmoid")), (4, 15));
    assert_eq!(extents(&graph.output[0]), [5, 2, 3]);
    let error = export_error(&lstm(1025), ExportOptions::default());
    assert_eq!(
        error,
        "layer `lstm`: LSTM cannot be exported to ONNX: found 1025 time steps, but the limit is 1024"
    );
}

#[test]
fn the_batch_size_is_symbolic_on_request() {
    let options = ExportOptions { dynamic_batch: true };
    let text = input("[2, 3, 4, 4]")
        + "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'
            inner_product_param { num_output: 6 axis: 2 } }
          layer { name: 'flat' type: 'Flatten' bottom: 'ip' top: 'y' }
          layer { name: 'all' type: 'Flatten' bottom: 'x' top: 'z' flatten_param { axis: 0 } }";
    let mut net = net(&text);
    let graph = onnx::export(&mut net, options).unwrap().graph.unwrap();
    assert_eq!(extents(&graph.input[0]), [-1, 3, 4, 4]);
    assert_eq!(extents(&graph.output[0]), [-1, 18]);
    assert_eq!(extents(&graph.output[1]), [-2]);
    assert_eq!(net.blob("x").unwrap().shape().to_vec(), [2, 3, 4, 4]);
    assert_eq!(net.blob("y").unwrap().shape().to_vec(), [2, 18]);

    let slice = input("[4, 3]")
        + "layer { name: 'parts' type: 'Slice' bottom: 'x' top: 'a' top: 'b'
            slice_param { axis: 0 slice_point: 2 } }";
    let error = export_error(&slice, options);
    assert_eq!(
        error,
        "layer `parts`: Slice cannot be exported to ONNX with a dynamic batch: it depends on the \
         batch size"
    );
    let scale = input("[4, 3]")
        + "layer { name: 's' type: 'Scale' bottom: 'x' top: 'y' scale_param { axis: 0 } }";
    let error = export_error(&scale, options);
    assert!(error.starts_with("dynamic batch: layer `s` (Scale): "), "{error}");
}

/// A layer type that the export does not know.
struct Unknown;

impl Layer<f32> for Unknown {
    fn kind(&self) -> &'static str {
        "Unknown"
    }
    fn reshape(&mut self, x: &[Blob<f32>], y: &mut [Blob<f32>]) -> cortado::Result<()> {
        y[0].reshape_like(&x[0])
    }
    fn forward(&mut self, _: &AnyDevice, _: &[Blob<f32>], _: &[Blob<f32>]) -> cortado::Result<()> {
        Ok(())
    }
}

#[test]
fn a_layer_that_cannot_be_exported_is_named_with_the_reason() {
    let refused = |layers: &str, expected: &str| {
        let error = export_error(&(input("[2, 1]") + layers), ExportOptions::default());
        assert_eq!(error, expected);
    };
    let remedy = "split the definition before and after this layer, with an Input layer for its \
                  tops, export both parts, and compute the layer in the program that runs them";
    refused(
        "layer { name: 'f' type: 'Filter' bottom: 'x' bottom: 'x' top: 'y' }",
        &format!(
            "layer `f`: Filter cannot be exported to ONNX: the shapes of its tops depend on values; \
             {remedy}"
        ),
    );
    refused(
        "layer { name: 'i' type: 'Input' top: 's' top: 'o' top: 'i'
           input_param { shape { dim: [1, 18, 2, 2] } shape { dim: [1, 36, 2, 2] }
           shape { dim: [1, 3] } } }
         layer { name: 'p' type: 'Python' bottom: 's' bottom: 'o' bottom: 'i' top: 'rois'
           python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'
             param_str: \"'feat_stride': 16\" } }",
        &format!(
            "layer `p`: Python cannot be exported to ONNX: the number of regions of ProposalLayer \
             depends on values; {remedy}"
        ),
    );
    refused(
        "layer { name: 'd' type: 'DummyData' top: 'd' dummy_data_param { shape { dim: 2 }
          data_filler { type: 'uniform' } } }",
        "layer `d`: DummyData cannot be exported to ONNX: its values are random; replace the layer \
         by an Input layer",
    );
    refused(
        "layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r'
          reshape_param { shape { dim: [1, 2, 1, 1] } } }
        layer { name: 'i' type: 'Im2col' bottom: 'r' top: 'y'
          convolution_param { kernel_size: 101 pad: 50 } }",
        "layer `i`: Im2col cannot be exported to ONNX: its filters would have 208120802 elements, \
         but the limit is 16777216",
    );
    refused(
        "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'x' top: 'l' }
        layer { name: 'p' type: 'Power' bottom: 'l' top: 'y' }",
        "layer `p`: Power cannot be exported to ONNX: its bottom `l` comes from EuclideanLoss, \
         which is left out",
    );
    refused(
        "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'x' top: 'l' }",
        "net: nothing to export: without losses and Accuracy, no layer computes an output",
    );

    let text = input("[2]") + "layer { name: 'u' type: 'Unknown' bottom: 'x' top: 'y' }";
    let registry = LayerRegistry::standard().with("Unknown", |_, _| Ok(Unknown));
    let builder = Net::<f32>::builder(&CpuDevice::new()).registry(registry);
    let mut net = builder.build(&proto::parse_text(text, "net").unwrap()).unwrap();
    let error = onnx::export(&mut net, ExportOptions::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "layer `u`: Unknown cannot be exported to ONNX: the export does not know this layer \
             type; {remedy}"
        )
    );
}

#[test]
fn a_net_in_the_train_phase_is_refused() {
    let definition = proto::parse_text(TRAIN_VAL, "net").unwrap();
    let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Train);
    let mut net = builder.build(&definition).unwrap();
    let error = onnx::export(&mut net, ExportOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "net: found phase TRAIN, expected TEST; build the net for the TEST phase");
}

#[test]
fn the_documentation_lists_every_layer_type() {
    let docs = include_str!("../../docs/onnx.md");
    let registry = LayerRegistry::<f32>::standard();
    for kind in registry.kinds() {
        let is_listed = docs
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
            .any(|kinds| kinds.split(", ").any(|listed| listed == kind));
        assert!(is_listed, "docs/onnx.md: {kind} is missing in the table");
    }
}
