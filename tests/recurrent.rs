//! Recurrent layers: sequences in parts, states from one pass to the next, and refusals.
#![cfg(feature = "net")]

use cortado::{
    Blob, CpuDevice, Net,
    proto::{self, NetParameter},
};

const STREAMS: usize = 3;
const INPUTS: usize = 4;
const OUTPUTS: usize = 2;

type Cpu = Net<f64, CpuDevice>;

fn net(prototxt: &str) -> cortado::Result<Cpu> {
    let definition: NetParameter = proto::parse_text(prototxt, "net.prototxt").unwrap();
    Net::builder(&CpuDevice::new()).seed(7).build(&definition)
}

fn input(name: &str, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|dim| format!(" dim: {dim}")).collect();
    format!(
        "layer {{ name: '{name}' type: 'Input' top: '{name}' input_param {{ shape {{{dims} }} }} }}\n"
    )
}

/// A recurrent layer whose parameters are shared by name.
fn layer(kind: &str, name: &str, bottoms: &[&str], tops: &[&str]) -> String {
    let list = |field: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!("{field}: '{name}' ")).collect()
    };
    let params = if kind == "LSTM" { 3 } else { 5 };
    let params: String = (0..params).map(|i| format!("param {{ name: 'p{i}' }} ")).collect();
    let exposed = tops.len() > 1;
    format!(
        "layer {{ name: '{name}' type: '{kind}' {} {} {params} recurrent_param {{ \
         num_output: {OUTPUTS} expose_hidden: {exposed} \
         weight_filler {{ type: 'uniform' min: -0.8 max: 0.8 }} \
         bias_filler {{ type: 'uniform' min: -0.3 max: 0.3 }} }} }}\n",
        list("bottom", bottoms),
        list("top", tops),
    )
}

/// One layer over `steps` steps.
fn whole(kind: &str, steps: usize) -> Cpu {
    let shape = [steps, STREAMS, INPUTS];
    let inputs = input("x", &shape) + &input("cont", &shape[..2]);
    let layer = layer(kind, "rec", &["x", "cont"], &["y"]);
    net(&format!("force_backward: true\n{inputs}{layer}")).unwrap()
}

fn set(net: &mut Cpu, name: &str, shape: &[usize], values: &[f64]) {
    let blob = net.blob_mut(name).unwrap();
    blob.reshape(shape).unwrap();
    blob.data_mut().unwrap().host_mut().unwrap().copy_from_slice(values);
}

fn set_diff(net: &Cpu, name: &str, values: &[f64]) {
    let blob = net.blob(name).unwrap();
    blob.diff_mut().unwrap().host_mut().unwrap().copy_from_slice(values);
}

fn data(net: &Cpu, name: &str) -> Vec<f64> {
    net.blob(name).unwrap().data().unwrap().host().unwrap().to_vec()
}

fn diff(blob: &Blob<f64, CpuDevice>) -> Vec<f64> {
    blob.diff().unwrap().host().unwrap().to_vec()
}

/// Some numbers about zero.
fn numbers(tag: usize, len: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 37 + tag * 101) as f64 * 0.61).sin()).collect()
}

/// Sequences that begin here and there.
fn conts(steps: usize) -> Vec<f64> {
    (0..steps * STREAMS).map(|i| if i % 5 == 1 { 0.0 } else { 1.0 }).collect()
}

fn near(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() < 1e-12, "{what}[{i}]: {got} for {want}");
    }
}

/// Two layers over halves of a sequence, the second fed with the first's exposed states, are one
/// layer over all of it: forward, and backward through the states.
fn halves(kind: &str, states: &[&str]) {
    let (steps, half) = (6, [3, STREAMS, INPUTS]);
    let (x, cont) = (numbers(1, steps * STREAMS * INPUTS), conts(steps));
    let dy = numbers(2, steps * STREAMS * OUTPUTS);
    let mut one = whole(kind, steps);
    set(&mut one, "x", &[steps, STREAMS, INPUTS], &x);
    set(&mut one, "cont", &[steps, STREAMS], &cont);
    one.forward().unwrap();
    one.clear_param_diffs().unwrap();
    set_diff(&one, "y", &dy);
    one.backward().unwrap();

    let mut text = String::from("force_backward: true\n");
    for part in ["1", "2"] {
        text += &input(&format!("x{part}"), &half);
        text += &input(&format!("cont{part}"), &half[..2]);
    }
    let of = |part: &str| -> Vec<String> { states.iter().map(|s| format!("{s}{part}")).collect() };
    let [given, between, last] = [of("0"), of("1"), of("2")];
    given.iter().for_each(|name| text += &input(name, &[1, STREAMS, OUTPUTS]));
    let layer = |part: &str, bottoms: &[String], tops: &[String]| {
        let (x, cont, y) = (format!("x{part}"), format!("cont{part}"), format!("y{part}"));
        let bottoms: Vec<_> = [&x, &cont].into_iter().chain(bottoms).map(String::as_str).collect();
        let tops: Vec<_> = [&y].into_iter().chain(tops).map(String::as_str).collect();
        layer(kind, &format!("rec{part}"), &bottoms, &tops)
    };
    text += &(layer("1", &given, &between) + &layer("2", &between, &last));
    let mut two = net(&text).unwrap();
    for (part, i) in [("1", 0), ("2", 1)] {
        let cut =
            |values: &[f64]| values[i * values.len() / 2..(i + 1) * values.len() / 2].to_vec();
        set(&mut two, &format!("x{part}"), &half, &cut(&x));
        set(&mut two, &format!("cont{part}"), &half[..2], &cut(&cont));
    }
    for (ours, theirs) in two.learnable_params().zip(one.learnable_params()) {
        let theirs = theirs.blob().data().unwrap();
        let mut ours = ours.blob().data_mut().unwrap();
        ours.host_mut().unwrap().copy_from_slice(theirs.host().unwrap());
    }
    two.forward().unwrap();
    two.clear_param_diffs().unwrap();
    set_diff(&two, "y1", &dy[..dy.len() / 2]);
    set_diff(&two, "y2", &dy[dy.len() / 2..]);
    two.backward().unwrap();

    near("y", &[data(&two, "y1"), data(&two, "y2")].concat(), &data(&one, "y"));
    let dx = ["x1", "x2"].map(|x| diff(two.blob(x).unwrap())).concat();
    near("dx", &dx, &diff(one.blob("x").unwrap()));
    for (ours, theirs) in two.learnable_params().zip(one.learnable_params()) {
        near(&ours.name, &diff(ours.blob()), &diff(theirs.blob()));
    }
}

#[test]
fn gradients_pass_through_exposed_states_of_lstm() {
    halves("LSTM", &["h", "c"]);
}

#[test]
fn gradients_pass_through_exposed_states_of_rnn() {
    halves("RNN", &["h"]);
}

/// A sequence in two passes, of other numbers of steps, gives what it gives in one.
#[test]
fn states_go_on_to_the_next_pass() {
    for kind in ["LSTM", "RNN"] {
        let (x, cont) = (numbers(3, 5 * STREAMS * INPUTS), vec![1.0; 5 * STREAMS]);
        let mut one = whole(kind, 5);
        set(&mut one, "x", &[5, STREAMS, INPUTS], &x);
        set(&mut one, "cont", &[5, STREAMS], &cont);
        one.forward().unwrap();
        let mut parts = whole(kind, 3);
        let (mut got, mut at) = (Vec::new(), 0);
        for steps in [3, 1, 1] {
            let (from, to) = (at * STREAMS, (at + steps) * STREAMS);
            set(&mut parts, "x", &[steps, STREAMS, INPUTS], &x[from * INPUTS..to * INPUTS]);
            set(&mut parts, "cont", &[steps, STREAMS], &cont[from..to]);
            parts.forward().unwrap();
            got.extend(data(&parts, "y"));
            at += steps;
        }
        near(kind, &got, &data(&one, "y"));
    }
}

/// Other streams begin with zeros, whatever those before them left.
#[test]
fn other_streams_begin_anew() {
    for kind in ["LSTM", "RNN"] {
        let mut net = whole(kind, 2);
        set(&mut net, "x", &[2, STREAMS, INPUTS], &numbers(4, 2 * STREAMS * INPUTS));
        set(&mut net, "cont", &[2, STREAMS], &[1.0; 2 * STREAMS]);
        net.forward().unwrap();
        let x = numbers(5, INPUTS);
        let mut first = Vec::new();
        for cont in [1.0, 0.0] {
            set(&mut net, "x", &[1, 1, INPUTS], &x);
            set(&mut net, "cont", &[1, 1], &[cont]);
            net.forward().unwrap();
            match first.is_empty() {
                true => first = data(&net, "y"),
                false => near(kind, &data(&net, "y"), &first),
            }
        }
    }
}

/// The way back leaves what it needs as it was.
#[test]
fn backward_repeats() {
    for kind in ["LSTM", "RNN"] {
        let mut net = whole(kind, 4);
        set(&mut net, "x", &[4, STREAMS, INPUTS], &numbers(6, 4 * STREAMS * INPUTS));
        set(&mut net, "cont", &[4, STREAMS], &conts(4));
        net.forward().unwrap();
        let mut runs = (0..2).map(|_| {
            net.clear_param_diffs().unwrap();
            set_diff(&net, "y", &numbers(7, 4 * STREAMS * OUTPUTS));
            net.backward().unwrap();
            let params = net.learnable_params().map(|param| diff(param.blob()));
            params.chain([diff(net.blob("x").unwrap())]).collect::<Vec<_>>()
        });
        assert_eq!(runs.next(), runs.next());
    }
}

#[test]
fn bottoms_that_do_not_fit_are_named() {
    let refused = |x: &[usize], cont: &[usize], more: &[(&str, &[usize])], exposed: bool| {
        let mut text = input("x", x) + &input("cont", cont);
        let mut bottoms = vec!["x", "cont"];
        for (name, shape) in more {
            text += &input(name, shape);
            bottoms.push(name);
        }
        let tops: &[&str] = if exposed { &["y", "hT", "cT"] } else { &["y"] };
        net(&(text + &layer("LSTM", "rec", &bottoms, tops))).err().unwrap().to_string()
    };
    let x = [2, 3, 4];
    for (why, says) in [
        (refused(&[2], &[2, 3], &[], false), "bottom 0 (x) has shape"),
        (refused(&[0, 3, 4], &[0, 3], &[], false), "of at least one step"),
        (refused(&x, &[2, 4], &[], false), "bottom 1 (cont) has shape"),
        (refused(&x, &[2, 3, 1], &[], false), "not 2 × 3, as x begins"),
        (refused(&x, &[2, 3], &[("s", &[2, 5])], false), "bottom 2 (static) has shape"),
        (refused(&x, &[2, 3], &[], true), "takes 4 to 5 bottom blobs"),
        (refused(&x, &[2, 3], &[("h", &[1, 3, 2]), ("c", &[1, 2, 2])], true), "given state 1 has"),
    ] {
        assert!(why.contains(says) && why.contains("`rec`"), "{why}");
    }
}
