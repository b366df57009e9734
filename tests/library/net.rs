//! Tests of nets: invalid definitions, shared and copied weights, memory reuse, and partial passes.
//! All nets run on the simulated device, which detects missing transfers.

use cortado::{
    Blob, Error, Net,
    device::SimulatedDevice,
    net::CopyOptions,
    proto::{self, NetParameter, Phase},
};
use std::{fs, path::Path, sync::LazyLock};

type SimulatedNet = Net<f32>;

/// Device on which all nets of this file run: nets that share weights must use the same device.
static DEVICE: LazyLock<SimulatedDevice> =
    LazyLock::new(|| SimulatedDevice::with_threads(1).unwrap());

fn build(text: &str) -> cortado::Result<SimulatedNet> {
    let definition: NetParameter = proto::parse_text(text, "net.prototxt")?;
    SimulatedNet::builder(&*DEVICE).seed(3).build(&definition)
}

/// Returns the definition of a net with an Input layer `x` of shape 2 × 3, followed by the layers
/// in `rest`.
fn after_x(rest: &str) -> String {
    let x = r#"layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }"#;
    format!("{x}\n{rest}")
}

fn inner_product(name: &str, bottom: &str, top: &str, rest: &str) -> String {
    format!(
        r#"layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{top}"
           inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} {rest} }}"#
    )
}

fn assert_build_fails(text: &str, parts: &[&str]) {
    let error = build(text).err().unwrap_or_else(|| panic!("accepted: {text}")).to_string();
    assert!(
        parts.iter().all(|part| error.contains(part)),
        "{error}\nthe error does not contain all of {parts:?}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

fn weights(net: &SimulatedNet) -> Vec<Vec<f32>> {
    let values = |blob: &Blob<f32>| blob.data().unwrap().host().unwrap().to_vec();
    net.params().iter().map(|param| values(param.blob())).collect()
}

#[test]
fn errors_of_invalid_net_definitions_name_the_layer_and_the_reason() {
    let two_layers_with_one_top =
        inner_product("a", "x", "y", "") + &inner_product("b", "x", "y", "");
    let layers_with_one_parameter =
        inner_product("a", "x", "y", "param { name: \"w\" lr_mult: 1 }")
            + &inner_product("b", "y", "z", "param { name: \"w\" lr_mult: 2 }");
    // The bottoms of the Concat layer have no elements, but the sum of 64 extents of 2⁵⁸ overflows.
    let long_concat = r#"layer { name: "h" type: "Input" top: "h"
        input_param { shape { dim: 288230376151711744 dim: 0 } } }
        layer { name: "c" type: "Concat" top: "y" concat_param { axis: 0 }"#
        .to_owned();
    let bottoms = r#" bottom: "h""#.repeat(64);
    // An LSTM with 2⁵⁰ time steps needs more memory than any host has.
    let long_lstm = r#"layer { name: "s" type: "Input" top: "s" top: "cont"
        input_param { shape { dim: [1125899906842624, 1, 1] } shape { dim: [1125899906842624, 1] } } }
        layer { name: "l" type: "LSTM" bottom: "s" bottom: "cont" top: "y"
        recurrent_param { num_output: 1 } }"#
        .into();
    let cases = [
        (inner_product("a", "z", "y", ""), ["`a`", "unknown bottom blob `z`"]),
        (two_layers_with_one_top, ["`b`", "several layers"]),
        (inner_product("a", "x", "x", ""), ["`a`", "in place"]),
        (layers_with_one_parameter, ["`b`", "lr_mult"]),
        (inner_product("a", "x", "y", "loss_weight: [1, 2]"), ["`a`", "loss_weight"]),
        (inner_product("a", "x", "y", "propagate_down: [true, true]"), ["`a`", "propagate_down"]),
        (
            inner_product("a", "x", "y", "param {} param {} param {}"),
            ["`a`", "param: expected one entry per parameter (2), found 3"],
        ),
        (inner_product("a", "x", "y", "include {} exclude {}"), ["`a`", "not both"]),
        (
            inner_product("a", "x", "y", "blobs {}"),
            ["`a`", "blobs: expected one per parameter (2), found 1"],
        ),
        (r#"layer { name: "r" type: "ReLU" top: "y" }"#.into(), ["`r`", "1 bottom"]),
        (r#"layer { name: "d" type: "Data" top: "y" }"#.into(), ["`d`", "source"]),
        (long_concat + &bottoms + "}", ["`c`", "too large"]),
        (long_lstm, ["`l`", "time steps, but the limit is 65536"]),
    ];
    for (layers, parts) in cases {
        assert_build_fails(&after_x(&layers), &parts);
    }
    for old in ["layers { name: \"a\" }", "input: \"x\" input_dim: [1, 1, 1, 1]"] {
        assert_build_fails(old, &["upgrade-net"]);
    }
}

#[test]
fn the_error_for_a_bottom_names_the_layer_that_the_state_excludes() {
    let text = r#"layer { name: "data" type: "Input" top: "x" include { stage: "a" }
        input_param { shape { dim: 1 } } } layer { name: "r" type: "ReLU" bottom: "x" top: "y" }"#;
    assert_build_fails(
        text,
        &[
            "layer `r`: unknown bottom blob `x` (bottom 0): the rules of layer `data`, which has this \
           top, exclude phase TEST, level 0, stages []",
        ],
    );
    let in_place = text.replace(r#"top: "y""#, r#"top: "x""#);
    assert_build_fails(&in_place, &["layer `r`", "`data`"]);
}

#[test]
fn parameters_with_equal_names_share_values() {
    let named_params = "param { name: \"w\" } param { name: \"b\" }";
    let net = build(&after_x(
        &(inner_product("a", "x", "y", named_params) + &inner_product("b", "y", "z", named_params)),
    ))
    .unwrap();
    assert_eq!((net.params().len(), net.learnable_params().len()), (4, 2));
    net.params()[0].blob().data_mut().unwrap().host_mut().unwrap()[0] = 42.0;
    assert_eq!(net.params()[2].blob().data_at(&[0, 0]).unwrap(), 42.0);
}

#[test]
fn weights_are_copied_and_shared_by_layer_name() {
    let source =
        build(&after_x(&(inner_product("a", "x", "y", "") + &inner_product("b", "y", "z", ""))))
            .unwrap();
    let saved_net = source.to_proto(false).unwrap();
    let mut target =
        build(&after_x(&(inner_product("b", "x", "y", "") + &inner_product("c", "y", "z", ""))))
            .unwrap();
    let old_weights = weights(&target);
    assert_eq!(target.copy_trained_from(&saved_net).unwrap(), ["b"]);
    let new_weights = weights(&target);
    assert_eq!((&new_weights[0], &new_weights[2]), (&weights(&source)[2], &old_weights[2]));
    // Weights with no layer name in common with the net are an error, unless the caller allows
    // them.
    let other_weights = build(&after_x(&inner_product("d", "x", "y", ""))).unwrap();
    let other_weights = other_weights.to_proto(false).unwrap();
    let message = target.copy_trained_from(&other_weights).unwrap_err().to_string();
    let want = "no layer name in common with the net: the weights have `d`; the net has `b`, `c`";
    assert_eq!(message, want);
    let options = CopyOptions { allow_no_match: true };
    assert_eq!(target.copy_trained_from_with(&other_weights, options).unwrap(), [""; 0]);
    assert_eq!(weights(&target), new_weights);
    // The target net has a copy of the source net's weights, so changing the copy must not change
    // the source net.
    target.params()[0].blob().data_mut().unwrap().host_mut().unwrap().fill(0.0);
    assert_ne!(weights(&source)[2], weights(&target)[0]);

    target.share_trained_with(&source).unwrap();
    source.params()[2].blob().data_mut().unwrap().host_mut().unwrap()[0] = 7.0;
    assert_eq!(weights(&target)[0][0], 7.0);

    let wide_net =
        after_x(&inner_product("b", "x", "y", "").replace("num_output: 3", "num_output: 4"));
    let mut wide_net = build(&wide_net).unwrap();
    let message = wide_net.copy_trained_from(&saved_net).unwrap_err().to_string();
    assert!(message.contains("`b`") && message.contains("shape"), "{message}");
    assert!(wide_net.share_trained_with(&source).is_err());
}

#[test]
fn an_error_of_a_net_from_a_file_names_the_file_and_the_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("net_from_file");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("net.prototxt");
    let error = |text: &str| {
        fs::write(&file, text).unwrap();
        let net = SimulatedNet::builder(&*DEVICE).phase(Phase::Test).from_file(&file);
        net.map(|net| net.layer_names().len()).map_err(|error| error.to_string())
    };
    let file = file.display();
    let ip = inner_product("ip", "x", "y", "");
    assert_eq!(error(&after_x(&ip)), Ok(2));
    let invalid_layer = ip.replace("num_output: 3", "num_output: 0");
    let message = error(&after_x(&format!("# comment\n\n{invalid_layer}"))).unwrap_err();
    assert!(message.starts_with(&format!("{file}:4: layer `ip`: ")), "{message}");
    // The file also defines a layer of the same name, which the phase TRAIN excludes from the net.
    let excluded_layer =
        invalid_layer.replace("\"InnerProduct\"", "\"InnerProduct\" exclude { phase: TRAIN }");
    let message = error(&after_x(&format!(
        "{}\n{excluded_layer}",
        invalid_layer.replace("\"InnerProduct\"", "\"InnerProduct\" include { phase: TRAIN }")
    )));
    assert!(message.unwrap_err().starts_with(&format!("{file}:4: layer `ip`: ")));
    let message = error(&after_x(&format!("{invalid_layer}\n{invalid_layer}"))).unwrap_err();
    assert!(message.starts_with(&format!("{file}: layer `ip`: ")), "{message}");
    assert_eq!(error("").unwrap_err(), format!("{file}: net has no layers"));
    assert_eq!(
        error("state { stage: 'a' level: 2 } layer { include { phase: TRAIN } }").unwrap_err(),
        format!(
            "{file}: net has no layers: the rules of every layer exclude phase TEST, level 2, \
             stages [a]"
        )
    );
    let message = error("base_lr: 1").unwrap_err();
    assert!(message.starts_with(&format!("{file}: found a solver definition")), "{message}");
}

#[test]
fn initial_values_depend_on_seed_and_layer_name_only() {
    let one_layer = build(&after_x(&inner_product("b", "x", "y", ""))).unwrap();
    let two_layers =
        build(&after_x(&(inner_product("a", "x", "w", "") + &inner_product("b", "w", "y", ""))))
            .unwrap();
    assert_eq!(
        weights(&one_layer)[0],
        weights(&two_layers)[2],
        "initial values must not depend on other layers"
    );
    assert_ne!(
        weights(&two_layers)[0],
        weights(&two_layers)[2],
        "initial values must depend on the layer's name"
    );
}

#[test]
fn reshaped_inputs_reshape_later_layers() {
    let mut net = build(&after_x(&inner_product("a", "x", "y", ""))).unwrap();
    net.blob_mut("x").unwrap().reshape(&[5, 3]).unwrap();
    net.forward().unwrap();
    assert_eq!(net.blob("y").unwrap().shape()[..], [5, 3]);
    net.blob_mut("x").unwrap().reshape(&[5, 4]).unwrap();
    let error = net.forward().unwrap_err();
    assert!(matches!(error.root(), Error::Shape(_)));
    assert!(error.to_string().starts_with("layer `a` (InnerProduct): "), "{error}");
    net.blob_mut("x").unwrap().reshape(&[1, 3]).unwrap();
    net.forward().unwrap();
}

#[test]
fn nets_on_two_threads_share_weights() {
    let text = after_x(&inner_product("a", "x", "y", ""));
    let source = build(&text).unwrap();
    source.blob("x").unwrap().data_mut().unwrap().host_mut().unwrap().fill(1.0);
    let run = |mut net: SimulatedNet| {
        net.blob("x").unwrap().data_mut().unwrap().host_mut().unwrap().fill(1.0);
        for _ in 0..50 {
            net.forward().unwrap();
        }
        net.blob("y").unwrap().data().unwrap().host().unwrap().to_vec()
    };
    let sharing_net = || {
        let mut net = build(&text).unwrap();
        net.share_trained_with(&source).unwrap();
        net
    };
    let (one, two) = (sharing_net(), sharing_net());
    let [one, two] = std::thread::scope(|scope| {
        [scope.spawn(move || run(one)), scope.spawn(move || run(two))].map(|t| t.join().unwrap())
    });
    assert_eq!(one, two);
    assert_eq!(source.phase(), Phase::Test);
}

/// Definition of a net with a branch, an in-place layer, and outputs in the middle and at the end
/// of the net.
const BRANCHED: &str = r#"
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
        inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "r" type: "ReLU" bottom: "a" top: "a" }
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "side" type: "InnerProduct" bottom: "a" top: "side"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "c" type: "InnerProduct" bottom: "b" top: "c"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "s" type: "Softmax" bottom: "c" top: "s" }
layer { name: "d" type: "InnerProduct" bottom: "s" top: "d"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "e" type: "ReLU" bottom: "d" top: "e" }"#;

#[test]
fn inference_with_memory_reuse_is_bit_identical() {
    let build = |reuse| {
        let definition = proto::parse_text(after_x(BRANCHED), "net.prototxt").unwrap();
        SimulatedNet::builder(&*DEVICE).seed(3).reuse_memory(reuse).build(&definition).unwrap()
    };
    let nets = [false, true].map(build);
    let results = nets.map(|mut net| {
        let mut results = Vec::new();
        // The net runs with its original batch size, and with larger and smaller batches, without
        // and with a new memory plan.
        for (rows, plan) in [(2, false), (4, false), (5, true), (3, false), (3, true)] {
            let x = net.blob_mut("x").unwrap();
            x.reshape(&[rows, 3]).unwrap();
            let mut values = x.data_mut().unwrap();
            for (i, value) in values.host_mut().unwrap().iter_mut().enumerate() {
                *value = (i * 7 % 5) as f32 - 2.0;
            }
            drop(values);
            if plan {
                net.reshape().unwrap();
            }
            for _ in 0..2 {
                net.forward().unwrap();
                for (name, blob, _) in net.outputs() {
                    let values = blob.data().unwrap().host().unwrap().to_vec();
                    results.push((name.to_owned(), blob.shape().to_vec(), values));
                }
            }
        }
        let distinct_count: usize = (0..net.blobs().len())
            .filter(|&i| {
                let (_, blob) = net.blobs().nth(i).unwrap();
                !net.blobs().take(i).any(|(_, other)| other.shares_data_with(blob))
            })
            .count();
        (results, distinct_count, net.memory_use().unwrap(), net.backward().is_ok())
    });
    let [(want, all_blobs, full, backward), (got, reused_blobs, reduced, reused_backward)] =
        results;
    assert_eq!(got, want);
    // Eight blobs need separate storage: x, a with its splits, b, side, c, s, d and e. If the net
    // reuses memory, blob c uses the storage of blob a, for example, and blob s uses the storage of
    // blob b.
    assert_eq!((all_blobs, reused_blobs), (8, 5));
    assert!(reduced.activations < full.activations, "{reduced:?} {full:?}");
    assert_eq!(reduced.params, full.params);
    assert!(backward && !reused_backward);
}

#[test]
fn partial_forward_passes_equal_a_whole_pass() {
    let whole_net = &mut build(&after_x(BRANCHED)).unwrap();
    let partial_net = &mut build(&after_x(BRANCHED)).unwrap();
    for net in [&mut *whole_net, &mut *partial_net] {
        let mut x = net.blob_mut("x").unwrap().data_mut().unwrap();
        x.host_mut().unwrap().copy_from_slice(&[1.0, -2.0, 3.0, 0.5, 0.0, -1.0]);
    }
    whole_net.forward().unwrap();
    let layers = partial_net.layer_names().len();
    partial_net.forward_layers(0..3).unwrap();
    partial_net.forward_layers(3..layers).unwrap();
    let values =
        |net: &SimulatedNet| net.blob("e").unwrap().data().unwrap().host().unwrap().to_vec();
    assert_eq!(values(partial_net), values(whole_net));
    partial_net.backward_layers(layers - 1..layers).unwrap();
    for wrong_range in [0..layers + 1, layers + 1..layers + 2] {
        let error = partial_net.forward_layers(wrong_range.clone()).unwrap_err().to_string();
        assert!(error.contains(&format!("{layers} layers")), "{error}");
        assert!(partial_net.backward_layers(wrong_range).is_err());
    }
}

/// Each test case is the definition of a layer with the bottom `x` of shape 2 × 3, and a part of
/// the expected error message.
#[test]
fn invalid_layer_parameters_are_refused() {
    let cases = [
        ("type: 'Clip'", "min and max"),
        ("type: 'Clip' clip_param { min: 1 max: 0 }", "min 1"),
        ("type: 'Exp' exp_param { base: -2 }", "base -2"),
        ("type: 'Log' log_param { base: 0 }", "base 0"),
        ("type: 'Log' log_param { base: 1 }", "base must not be 1"),
        ("type: 'Dropout' dropout_param { dropout_ratio: 1.5 }", "in [0, 1], found 1.5"),
        ("type: 'ReLu'", "ReLU"),
        (
            "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 5 axis: 0 }",
            "kernel does not fit",
        ),
        ("type: 'Pooling' pooling_param { kernel_size: 2 }", "4 axes"),
        ("type: 'InnerProduct' inner_product_param { num_output: 2 axis: 2 }", "axis 2"),
        ("type: 'SoftmaxWithLoss' bottom: 'x'", "labels"),
        ("type: 'LRN'", "4 axes"),
        ("type: 'LRN' lrn_param { local_size: 2 }", "must be odd"),
        ("type: 'PReLU' prelu_param { filler { type: 'none' } }", "none"),
        ("type: 'Eltwise'", "at least 2 bottom"),
        ("type: 'Eltwise' bottom: 'x' eltwise_param { coeff: 1 }", "2 values of coeff"),
        (
            "type: 'Eltwise' bottom: 'x' eltwise_param { operation: PROD coeff: [1, 1] }",
            "coeff is not allowed with operation PROD",
        ),
        ("type: 'Scale' scale_param { axis: 2 }", "axis 2"),
        ("type: 'Scale' scale_param { num_axes: 2 }", "does not have 2 axes"),
        ("type: 'Scale' scale_param { num_axes: -2 }", "found -2"),
        ("type: 'Bias' bottom: 'x'", "does not fit"),
        ("type: 'BatchNorm' param { lr_mult: 1 }", "lr_mult 1 must be 0"),
        ("type: 'BatchNorm' param { lr_mult: 0 } param {}", "parameter 1 is not trainable"),
    ];
    for (layer, reason) in cases {
        let text = after_x(&format!("layer {{ name: 'a' bottom: 'x' top: 'y' {layer} }}"));
        assert_build_fails(&text, &["`a`", reason]);
    }
    let in_place = "layer { name: 'a' type: 'AbsVal' bottom: 'x' top: 'x' }";
    assert_build_fails(&after_x(in_place), &["`a`", "in place"]);
}

#[test]
fn batch_norm_statistics_get_param_entries_with_learning_rate_zero() {
    let norm =
        "layer { name: 'n' type: 'BatchNorm' bottom: 'x' top: 'y' param { name: 'm' lr_mult: 0 } }";
    let net = build(&after_x(norm)).unwrap();
    assert!(net.learnable_params().all(|param| param.lr_mult == Some(0.0)));
    let entries = &net.layer_params().nth(1).unwrap().param;
    assert_eq!(entries.iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["m", "", ""]);
}

#[test]
fn a_gradient_through_a_threshold_layer_is_an_error() {
    let text = inner_product("a", "x", "y", "")
        + "layer { name: 't' type: 'Threshold' bottom: 'y' top: 'z' loss_weight: 1 }";
    let mut net = build(&after_x(&text)).unwrap();
    net.forward().unwrap();
    let error = net.backward().unwrap_err().to_string();
    assert!(error.contains("`t`") && error.contains("no gradient"), "{error}");
}
