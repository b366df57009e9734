//! Compares the structure of nets with Caffe's after each construction step: filtering layers,
//! inserting splits and building the net.

use crate::net_state::RequestedState;
use crate::support::{minimum, table, testdata};
use cortado::{
    Blob, LayerRegistry, Net,
    device::SimulatedDevice,
    net::{filter_net, insert_splits},
    proto::{self, NetParameter},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

type SimulatedNet = Net<f32>;

/// Returns the name, folder, requested state and upgraded definition of each golden net.
fn cases(set: &Path) -> Vec<(String, PathBuf, RequestedState, NetParameter)> {
    let rows = table(&set.join("cases.tsv")).into_iter().filter(|row| row[1] != "solver");
    let rows = rows.map(|row| {
        let folder = set.join(&row[0]);
        let definition = proto::read_net(folder.join("net.prototxt")).unwrap();
        (row[0].clone(), folder, RequestedState::from_row(&row), definition)
    });
    rows.collect()
}

#[test]
fn definitions_are_filtered_and_split_as_by_caffe() {
    let Some(set) = testdata("golden/nets/valid", "the comparison of net structures with Caffe")
    else {
        return;
    };
    let mut compared_count = 0;
    for (name, folder, requested, mut definition) in cases(&set) {
        requested.apply_to(&mut definition);
        let state = definition.state.clone().unwrap_or_default();
        let filtered_net = filter_net(&definition, &state).unwrap();
        let split_net = insert_splits(&filtered_net).unwrap();
        for (file, ours) in [("filtered.prototxt", &filtered_net), ("split.prototxt", &split_net)] {
            let path = folder.join(file);
            if path.exists() {
                let want = fs::read_to_string(path).unwrap();
                assert_eq!(proto::to_text(ours).unwrap(), want, "{name}");
                compared_count += 1;
            }
        }
    }
    assert!(compared_count >= minimum(131, 50), "{compared_count}");
}

#[test]
fn nets_are_built_as_by_caffe() {
    let Some(set) = testdata("golden/nets/valid", "the comparison of net structures with Caffe")
    else {
        return;
    };
    let registry = LayerRegistry::<f32>::standard();
    let known_types: Vec<&str> = registry.kinds().collect();
    let mut compared_count = 0;
    for (name, folder, requested, definition) in cases(&set) {
        let path = folder.join("structure.tsv");
        let is_supported =
            definition.layer.iter().all(|layer| known_types.contains(&layer.r#type()));
        if !is_supported || !path.exists() {
            continue;
        }
        let mut builder = SimulatedNet::builder(&SimulatedDevice::new()).stages(requested.stages);
        if let Some(phase) = requested.phase {
            builder = builder.phase(phase);
        }
        if let Some(level) = requested.level {
            builder = builder.level(level);
        }
        let net = builder.build(&definition).unwrap_or_else(|error| panic!("{name}: {error}"));
        let want = fs::read_to_string(path).unwrap();
        assert_eq!(structure(&net), want.trim_end(), "{name}");
        compared_count += 1;
    }
    assert!(compared_count >= minimum(88, 33), "{compared_count}");
}

/// Describes the structure of a net in the format of the golden file `structure.tsv`.
fn structure(net: &SimulatedNet) -> String {
    let mut lines = vec![format!("name\t{}", net.name())];
    lines.push(format!("phase\t{}", net.phase().as_str_name()));
    for (i, layer) in net.layer_params().enumerate() {
        let (backward, needs) = net.needs_backward(i).unwrap();
        let (bottoms, tops) = net.bottoms_and_tops(i).unwrap();
        let bottoms = bottoms.iter().zip(needs).map(|(b, &needs)| format!("{b}:{}", needs as u8));
        lines.push(format!(
            "layer\t{i}\t{}\t{}\t{}\tneed_backward={}\tbottom={}\ttop={}",
            layer.name(),
            layer.r#type(),
            layer.phase().as_str_name(),
            backward as u8,
            bottoms.collect::<Vec<_>>().join(","),
            tops.join(",")
        ));
    }
    for (i, (name, blob)) in net.blobs().enumerate() {
        let weight = net.loss_weight(name).unwrap();
        lines.push(format!("blob\t{i}\t{name}\t{}\tloss_weight={weight}", extents(blob)));
    }
    let names: Vec<&str> = net.layer_names().collect();
    let id = |layer: usize, index: usize| format!("{}.{index}", names[layer]);
    for (i, param) in net.params().iter().enumerate() {
        let owner = param.owner.map_or(-1, |owner| owner as i64);
        let (id, shape) = (id(param.layer, param.index), extents(param.blob()));
        lines.push(format!("param\t{i}\t{id}\t{shape}\towner={owner}\tdisplay={}", param.name));
    }
    for (i, param) in net.learnable_params().enumerate() {
        let (lr, decay) = (param.lr_mult, param.decay_mult);
        lines.push(format!(
            "learnable\t{i}\t{}\tlr={}\tdecay={}\thas_lr={}\thas_decay={}",
            id(param.layer, param.index),
            lr.unwrap_or(1.0),
            decay.unwrap_or(1.0),
            lr.is_some() as u8,
            decay.is_some() as u8
        ));
    }
    let inputs = net.layer_params().filter(|layer| layer.r#type() == "Input");
    for (i, name) in inputs.flat_map(|layer| &layer.top).enumerate() {
        lines.push(format!("input\t{i}\t{name}"));
    }
    for (i, (name, ..)) in net.outputs().enumerate() {
        lines.push(format!("output\t{i}\t{name}"));
    }
    lines.join("\n")
}

fn extents(blob: &Blob<f32>) -> String {
    match &blob.shape()[..] {
        [] => "-".into(),
        shape => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    }
}
