//! Tests of LSTM and RNN layers: split sequences, states between passes, and errors for wrong
//! shapes.

use cortado::{
    Blob, CpuDevice, Net,
    proto::{self, NetParameter},
};

const STREAMS: usize = 3;
const INPUTS: usize = 4;
const OUTPUTS: usize = 2;

type CpuNet = Net<f64>;

fn net(prototxt: &str) -> cortado::Result<CpuNet> {
    let definition: NetParameter = proto::parse_text(prototxt, "net.prototxt").unwrap();
    Net::builder(&CpuDevice::new()).seed(7).build(&definition)
}

fn input(name: &str, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|dim| format!(" dim: {dim}")).collect();
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' input_param {{ shape {{{dims} }} }} }}\n"
    )
}

/// Returns the definition of a recurrent layer. All layers of the same type share their parameters,
/// because the parameter names are equal.
fn layer(kind: &str, name: &str, bottoms: &[&str], tops: &[&str]) -> String {
    let repeated_field = |field: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!("{field}: '{name}' ")).collect()
    };
    let params = if kind == "LSTM" { 3 } else { 5 };
    let params: String = (0..params).map(|i| format!("param {{ name: 'p{i}' }} ")).collect();
    let exposes_states = tops.len() > 1;
    format!(
        "layer {{ name: '{name}' type: '{kind}' {} {} {params} recurrent_param {{ \
         num_output: {OUTPUTS} expose_hidden: {exposes_states} \
         weight_filler {{ type: 'uniform' min: -0.8 max: 0.8 }} \
         bias_filler {{ type: 'uniform' min: -0.3 max: 0.3 }} }} }}\n",
        repeated_field("bottom", bottoms),
        repeated_field("top", tops),
    )
}

fn one_layer_net(kind: &str, steps: usize) -> CpuNet {
    let shape = [steps, STREAMS, INPUTS];
    let inputs = input("x", &shape) + &input("cont", &shape[..2]);
    let layer = layer(kind, "rec", &["x", "cont"], &["y"]);
    net(&format!("force_backward: true\n{inputs}{layer}")).unwrap()
}

fn set(net: &mut CpuNet, name: &str, shape: &[usize], data: &[f64]) {
    let blob = net.blob_mut(name).unwrap();
    blob.reshape(shape).unwrap();
    blob.data_mut().unwrap().host_mut().unwrap().copy_from_slice(data);
}

fn set_diff(net: &CpuNet, name: &str, diff: &[f64]) {
    let blob = net.blob(name).unwrap();
    blob.diff_mut().unwrap().host_mut().unwrap().copy_from_slice(diff);
}

fn data(net: &CpuNet, name: &str) -> Vec<f64> {
    net.blob(name).unwrap().data().unwrap().host().unwrap().to_vec()
}

fn diff(blob: &Blob<f64>) -> Vec<f64> {
    blob.diff().unwrap().host().unwrap().to_vec()
}

/// Returns deterministic values between −1 and 1 that depend on `seed`.
fn values(seed: usize, len: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 37 + seed * 101) as f64 * 0.61).sin()).collect()
}

/// Returns values of the bottom `cont`, in which 0 marks the start of a sequence, for sequences
/// that start at various time steps.
fn sequence_starts(steps: usize) -> Vec<f64> {
    (0..steps * STREAMS).map(|i| if i % 5 == 1 { 0.0 } else { 1.0 }).collect()
}

fn assert_near(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_near = (found - expected).abs() < 1e-12;
        assert!(is_near, "{name}[{i}]: expected {expected}, found {found}");
    }
}

/// Asserts that two recurrent layers, each over half of a sequence, compute the same values as one
/// layer over the whole sequence, forward and backward. The final states that the first layer
/// exposes are the initial states of the second layer.
fn check_halves(kind: &str, states: &[&str]) {
    let (steps, half_shape) = (6, [3, STREAMS, INPUTS]);
    let (x, cont) = (values(1, steps * STREAMS * INPUTS), sequence_starts(steps));
    let dy = values(2, steps * STREAMS * OUTPUTS);
    let mut whole_net = one_layer_net(kind, steps);
    set(&mut whole_net, "x", &[steps, STREAMS, INPUTS], &x);
    set(&mut whole_net, "cont", &[steps, STREAMS], &cont);
    whole_net.forward().unwrap();
    whole_net.clear_param_diffs().unwrap();
    set_diff(&whole_net, "y", &dy);
    whole_net.backward().unwrap();

    let mut text = String::from("force_backward: true\n");
    for part in ["1", "2"] {
        text += &input(&format!("x{part}"), &half_shape);
        text += &input(&format!("cont{part}"), &half_shape[..2]);
    }
    let names = |part: &str| states.iter().map(|s| format!("{s}{part}")).collect::<Vec<_>>();
    let [initial, middle, last] = ["0", "1", "2"].map(names);
    initial.iter().for_each(|name| text += &input(name, &[1, STREAMS, OUTPUTS]));
    let layer = |part: &str, bottoms: &[String], tops: &[String]| {
        let (x, cont, y) = (format!("x{part}"), format!("cont{part}"), format!("y{part}"));
        let bottoms: Vec<_> = [&x, &cont].into_iter().chain(bottoms).map(String::as_str).collect();
        let tops: Vec<_> = [&y].into_iter().chain(tops).map(String::as_str).collect();
        layer(kind, &format!("rec{part}"), &bottoms, &tops)
    };
    text += &(layer("1", &initial, &middle) + &layer("2", &middle, &last));
    let mut split_net = net(&text).unwrap();
    for (part, i) in [("1", 0), ("2", 1)] {
        let half_of = |all: &[f64]| all[i * all.len() / 2..(i + 1) * all.len() / 2].to_vec();
        set(&mut split_net, &format!("x{part}"), &half_shape, &half_of(&x));
        set(&mut split_net, &format!("cont{part}"), &half_shape[..2], &half_of(&cont));
    }
    for (copy, original) in split_net.learnable_params().zip(whole_net.learnable_params()) {
        let original = original.blob().data().unwrap();
        let mut copy = copy.blob().data_mut().unwrap();
        copy.host_mut().unwrap().copy_from_slice(original.host().unwrap());
    }
    split_net.forward().unwrap();
    split_net.clear_param_diffs().unwrap();
    set_diff(&split_net, "y1", &dy[..dy.len() / 2]);
    set_diff(&split_net, "y2", &dy[dy.len() / 2..]);
    split_net.backward().unwrap();

    assert_near(
        "y",
        &[data(&split_net, "y1"), data(&split_net, "y2")].concat(),
        &data(&whole_net, "y"),
    );
    let dx = ["x1", "x2"].map(|x| diff(split_net.blob(x).unwrap())).concat();
    assert_near("dx", &dx, &diff(whole_net.blob("x").unwrap()));
    for (found, expected) in split_net.learnable_params().zip(whole_net.learnable_params()) {
        assert_near(&found.name, &diff(found.blob()), &diff(expected.blob()));
    }
}

#[test]
fn a_sequence_split_over_two_layers_equals_one_layer() {
    check_halves("LSTM", &["h", "c"]);
    check_halves("RNN", &["h"]);
}

#[test]
fn a_sequence_split_over_passes_equals_one_pass() {
    for kind in ["LSTM", "RNN"] {
        let (x, cont) = (values(3, 5 * STREAMS * INPUTS), vec![1.0; 5 * STREAMS]);
        let mut whole_net = one_layer_net(kind, 5);
        set(&mut whole_net, "x", &[5, STREAMS, INPUTS], &x);
        set(&mut whole_net, "cont", &[5, STREAMS], &cont);
        whole_net.forward().unwrap();
        let mut split_net = one_layer_net(kind, 3);
        let (mut found, mut first) = (Vec::new(), 0);
        for steps in [3, 1, 1] {
            let (start, end) = (first * STREAMS, (first + steps) * STREAMS);
            set(&mut split_net, "x", &[steps, STREAMS, INPUTS], &x[start * INPUTS..end * INPUTS]);
            set(&mut split_net, "cont", &[steps, STREAMS], &cont[start..end]);
            split_net.forward().unwrap();
            found.extend(data(&split_net, "y"));
            first += steps;
        }
        assert_near(kind, &found, &data(&whole_net, "y"));
    }
}

#[test]
fn changing_the_number_of_streams_resets_the_recurrent_states() {
    for kind in ["LSTM", "RNN"] {
        let mut net = one_layer_net(kind, 2);
        set(&mut net, "x", &[2, STREAMS, INPUTS], &values(4, 2 * STREAMS * INPUTS));
        set(&mut net, "cont", &[2, STREAMS], &[1.0; 2 * STREAMS]);
        net.forward().unwrap();
        let x = values(5, INPUTS);
        let mut first = Vec::new();
        for cont in [1.0, 0.0] {
            set(&mut net, "x", &[1, 1, INPUTS], &x);
            set(&mut net, "cont", &[1, 1], &[cont]);
            net.forward().unwrap();
            match first.is_empty() {
                true => first = data(&net, "y"),
                false => assert_near(kind, &data(&net, "y"), &first),
            }
        }
    }
}

#[test]
fn a_second_backward_pass_of_a_recurrent_layer_returns_the_same_gradients() {
    for kind in ["LSTM", "RNN"] {
        let mut net = one_layer_net(kind, 4);
        set(&mut net, "x", &[4, STREAMS, INPUTS], &values(6, 4 * STREAMS * INPUTS));
        set(&mut net, "cont", &[4, STREAMS], &sequence_starts(4));
        net.forward().unwrap();
        let mut runs = (0..2).map(|_| {
            net.clear_param_diffs().unwrap();
            set_diff(&net, "y", &values(7, 4 * STREAMS * OUTPUTS));
            net.backward().unwrap();
            let params = net.learnable_params().map(|param| diff(param.blob()));
            params.chain([diff(net.blob("x").unwrap())]).collect::<Vec<_>>()
        });
        assert_eq!(runs.next(), runs.next());
    }
}

#[test]
fn errors_of_recurrent_layers_name_the_bottom_of_a_wrong_shape() {
    let error = |x: &[usize], cont: &[usize], more: &[(&str, &[usize])], exposes_states: bool| {
        let mut text = input("x", x) + &input("cont", cont);
        let mut bottoms = vec!["x", "cont"];
        for (name, shape) in more {
            text += &input(name, shape);
            bottoms.push(name);
        }
        let tops: &[&str] = if exposes_states { &["y", "hT", "cT"] } else { &["y"] };
        net(&(text + &layer("LSTM", "rec", &bottoms, tops))).err().unwrap().to_string()
    };
    let x = [2, 3, 4];
    for (error, expected) in [
        (error(&[2], &[2, 3], &[], false), "bottom 0 (x): expected shape [steps, streams"),
        (error(&[0, 3, 4], &[0, 3], &[], false), "with at least one step, found [0, 3, 4]"),
        (error(&x, &[2, 4], &[], false), "bottom 1 (cont): expected shape [2, 3], found [2, 4]"),
        (error(&x, &[2, 3, 1], &[], false), "expected shape [2, 3], found [2, 3, 1]"),
        (error(&x, &[2, 3], &[("s", &[2, 5])], false), "bottom 2 (static): expected shape [3, …]"),
        (error(&x, &[2, 3], &[], true), "expected 4 to 5 bottom blobs, found 2"),
        (
            error(&x, &[2, 3], &[("h", &[1, 3, 2]), ("c", &[1, 2, 2])], true),
            "initial state 1: expected",
        ),
    ] {
        assert!(error.contains(expected) && error.contains("`rec`"), "{error}");
    }
}
