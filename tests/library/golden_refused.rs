//! Tests of net definitions that Caffe refuses, crashes on, or accepts unexpectedly. cortado must
//! agree with Caffe, except for the definitions in two lists, which state the reason for each
//! definition. The error for a refused definition must name the layer or the file.

use crate::support::{table, testdata};
use cortado::{
    CpuDevice, Error, LayerRegistry, Net,
    proto::{self, NetParameter},
};
use std::{fmt::Write, path::Path};

/// Net definitions that Caffe accepts and cortado refuses, each with the reason.
const ACCEPTED_ONLY_BY_CAFFE: [(&str, &str); 6] = [
    ("clip_crossed", "the lower bound of Clip exceeds the upper bound"),
    ("clip_no_param", "the bounds of Clip are required"),
    ("conv_dilation_zero", "with dilation 0, all taps of a window would read the same element"),
    ("dropout_ratio_large", "the scale of the kept values would be negative"),
    (
        "hinge_more_labels",
        "Caffe would use the first labels of the batch instead of the first label of each item",
    ),
    (
        "weights_missing_layer_ok",
        "weights that match no layer are an error unless `CopyOptions` allows them",
    ),
];

/// Net definitions that Caffe refuses and cortado accepts, each with the reason.
const ACCEPTED_ONLY_BY_CORTADO: [(&str, &str); 7] = [
    ("conv_engine_cudnn", "`engine` is ignored, because the device selects its kernels"),
    ("input_huge", "blob counts have 64 bits, and memory is allocated at the first access"),
    ("pool_stochastic_forward", "stochastic pooling runs on every device"),
    ("zero_batch_ip", "a batch may be empty"),
    ("zero_batch_softmax", "a batch may be empty"),
    ("zero_channels_pool", "a blob may be empty"),
    ("zero_dim_forward", "a blob may be empty"),
];

#[test]
fn net_definitions_are_refused_as_by_caffe() {
    let Some(set) =
        testdata("golden/nets/refused", "the comparison of refused definitions with Caffe")
    else {
        return;
    };
    let registry = LayerRegistry::<f32>::standard();
    let (mut tried, mut unsupported, mut wrong) = (0, 0, String::new());
    for row in table(&set.join("verdicts.tsv")) {
        let [name, kind, verdict, .., input, _] = &row[..] else { panic!("{row:?}") };
        if kind.starts_with("solver") {
            continue;
        }
        let read = proto::read_net(set.join(format!("{name}.prototxt")));
        let is_unsupported = read.as_ref().is_ok_and(|net| has_unsupported_layer(net, &registry));
        let result = read.and_then(|net| run(&set, name, kind, input, &net));
        let only_caffe_accepts = ACCEPTED_ONLY_BY_CAFFE.iter().any(|(listed, _)| listed == name);
        let only_cortado_accepts =
            ACCEPTED_ONLY_BY_CORTADO.iter().any(|(listed, _)| listed == name);
        let accepts = if verdict == "accept" { !only_caffe_accepts } else { only_cortado_accepts };
        match result {
            Err(error) if is_unsupported => {
                assert!(matches!(error.root(), Error::UnknownLayer { .. }), "{name}: {error}");
                unsupported += 1;
            }
            Ok(()) if accepts => tried += 1,
            Err(error) if !accepts && names_layer_or_file(&error, name) => tried += 1,
            other => writeln!(wrong, "{name} ({verdict}): {other:?}").unwrap(),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(tried + unsupported, 245);
    assert!(tried >= 190, "expected at least 190 definitions, found {tried}");
}

/// Returns whether a definition has a layer type that only Caffe supports. Layers of the type
/// `Conv` or without a type are not counted, because Caffe does not support them either. Python
/// layers are not counted, because cortado has a separate error for them.
fn has_unsupported_layer(net: &NetParameter, registry: &LayerRegistry<f32>) -> bool {
    let is_known =
        |kind: &str| ["Conv", "Python", ""].contains(&kind) || registry.kinds().any(|k| k == kind);
    net.layer.iter().any(|layer| !is_known(layer.r#type()))
}

/// Builds the net of a golden case. Depending on the kind of the golden case, also copies weights
/// to the net or runs passes.
fn run(
    set: &Path,
    name: &str,
    kind: &str,
    input: &str,
    definition: &NetParameter,
) -> Result<(), Error> {
    let mut net = Net::<f32>::builder(&CpuDevice::new()).build(definition)?;
    if kind == "weights" {
        let file = format!("{name}.weights.prototxt");
        let weights = proto::read_net(set.join(&file))?;
        return net.copy_trained_from(&weights).map(drop).map_err(|error| error.context(file));
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

fn names_layer_or_file(error: &Error, name: &str) -> bool {
    let text = error.to_string();
    text.contains("layer `") || text.contains(&format!("{name}."))
}
