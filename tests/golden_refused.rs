//! Doubtful definitions beside what real Caffe makes of them: what it refuses, or crashes on, is an
//! error that says where and why; what it accepts is accepted. The exceptions are listed, each with
//! its reason.
#![cfg(feature = "net")]

mod support;

use cortado::{
    CpuDevice, Error, LayerRegistry, Net,
    proto::{self, NetParameter},
};
use std::{fmt::Write, path::Path};
use support::{table, testdata};

/// What Caffe accepts and this crate does not.
const STRICTER: [(&str, &str); 6] = [
    ("clip_crossed", "no number is above the upper bound and below the lower"),
    ("clip_no_param", "the bounds of Clip are required"),
    ("conv_dilation_zero", "all taps would be one"),
    ("dropout_ratio_large", "what stays would change its sign"),
    ("dropout_ratio_one", "nothing stays that could be scaled up"),
    (
        "hinge_more_labels",
        "Caffe would take the first labels, which are not the first of each item",
    ),
];

/// What Caffe refuses and this crate does not.
const LAXER: [(&str, &str); 7] = [
    ("conv_engine_cudnn", "the device decides what runs on it; `engine` is not looked at"),
    ("input_huge", "counts are of 64 bits, and nothing is allocated before it is touched"),
    ("pool_stochastic_forward", "stochastic pooling runs on every device"),
    ("zero_batch_ip", "a batch may be empty"),
    ("zero_batch_softmax", "a batch may be empty"),
    ("zero_channels_pool", "a blob may be empty"),
    ("zero_dim_forward", "a blob may be empty"),
];

#[test]
fn refused_as_caffe_refuses() {
    let Some(set) = testdata("golden/nets/refused", "definitions that Caffe refuses") else {
        return;
    };
    let registry = LayerRegistry::<f32, CpuDevice>::standard();
    let (mut tried, mut later, mut wrong) = (0, 0, String::new());
    for row in table(&set.join("verdicts.tsv")) {
        let [name, kind, verdict, .., input, _] = &row[..] else { panic!("{row:?}") };
        if kind.starts_with("solver") {
            continue;
        }
        let read = proto::read_net(set.join(format!("{name}.prototxt")));
        let missing = read.as_ref().is_ok_and(|net| lacks(net, &registry));
        let result = read.and_then(|net| run(&set, name, kind, input, &net));
        let stricter = STRICTER.iter().any(|(listed, _)| listed == name);
        let laxer = LAXER.iter().any(|(listed, _)| listed == name);
        let accepts = if verdict == "accept" { !stricter } else { laxer };
        match result {
            // A layer that is not there yet.
            Err(error) if missing => {
                assert!(matches!(error.root(), Error::UnknownLayer { .. }), "{name}: {error}");
                later += 1;
            }
            Ok(()) if accepts => tried += 1,
            Err(error) if !accepts && says_where(&error, name) => tried += 1,
            other => writeln!(wrong, "{name} ({verdict}): {other:?}").unwrap(),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(tried + later, 245);
    assert!(tried >= 190, "only {tried} rows were tried");
}

/// Whether a definition needs layers that are not there.
fn lacks(net: &NetParameter, registry: &LayerRegistry<f32, CpuDevice>) -> bool {
    let there = |kind: &str| registry.kinds().any(|known| known == kind);
    let caffes = ["Conv", ""];
    net.layer.iter().any(|layer| !there(layer.r#type()) && !caffes.contains(&layer.r#type()))
}

/// Builds the net and, as its kind asks, runs it.
fn run(
    set: &Path,
    name: &str,
    kind: &str,
    input: &str,
    definition: &NetParameter,
) -> Result<(), Error> {
    let mut net = Net::<f32, _>::builder(&CpuDevice::new()).build(definition)?;
    if kind == "weights" {
        let weights = proto::read_net(set.join(format!("{name}.weights.prototxt")))?;
        return net.copy_trained_from(&weights).map(drop);
    }
    if kind == "net" {
        return Ok(());
    }
    let fill: Option<f32> = input.strip_prefix("fill=").map(|fill| fill.parse().unwrap());
    for layer in definition.layer.iter().filter(|layer| layer.r#type() == "Input") {
        for top in &layer.top {
            let mut data = net.blob(top).unwrap().data_mut()?;
            for (k, value) in data.host_mut()?.iter_mut().enumerate() {
                *value = fill.unwrap_or((k % 3) as f32);
            }
        }
    }
    net.forward()?;
    if kind == "net_backward" { net.backward() } else { Ok(()) }
}

/// Whether an error names the layer, or for a file the line or the file itself.
fn says_where(error: &Error, name: &str) -> bool {
    let text = error.to_string();
    text.contains("layer `") || text.contains(&format!("{name}.prototxt"))
}
