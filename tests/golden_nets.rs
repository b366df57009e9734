//! Nets as real Caffe builds them: filtered, split, wired.
#![cfg(feature = "net")]

mod support;

use cortado::{
    Blob, LayerRegistry, Net,
    device::SimulatedDevice,
    net::{filter_net, insert_splits},
    proto::{self, NetParameter, NetState, Phase},
};
use std::{fs, path::Path};
use support::{table, testdata};

type MirrorNet = Net<f32, SimulatedDevice>;

/// What the caller of a case asks for: phase, level and stages, where they are asked for.
struct Asked {
    phase: Option<Phase>,
    level: Option<i32>,
    stages: Vec<String>,
}

impl Asked {
    fn new(row: &[String]) -> Self {
        let given = |column: usize| (row[column] != "-").then_some(&row[column]);
        let phase = given(2).map(|name| Phase::from_str_name(name).unwrap());
        let level = given(3).map(|level| level.parse().unwrap());
        let stages = given(4).map_or("", String::as_str).split(',');
        let stages = stages.filter(|stage| !stage.is_empty()).map(str::to_owned).collect();
        Self { phase, level, stages }
    }

    /// Puts what is asked for into the definition's state.
    fn put(&self, definition: &mut NetParameter) {
        if self.phase.is_none() && self.level.is_none() && self.stages.is_empty() {
            return;
        }
        let state = definition.state.get_or_insert_with(NetState::default);
        if let Some(phase) = self.phase {
            state.set_phase(phase);
        }
        state.level = self.level.or(state.level);
        state.stage.extend(self.stages.iter().cloned());
    }
}

/// The cases of nets: name, folder, what is asked for, definition, upgraded.
fn cases(set: &Path) -> Vec<(String, std::path::PathBuf, Asked, NetParameter)> {
    let rows = table(&set.join("cases.tsv")).into_iter().filter(|row| row[1] != "solver");
    let rows = rows.map(|row| {
        let folder = set.join(&row[0]);
        let definition = proto::read_net(folder.join("net.prototxt")).unwrap();
        (row[0].clone(), folder, Asked::new(&row), definition)
    });
    rows.collect()
}

#[test]
fn filtered_and_split_as_caffe_prints_them() {
    let Some(set) = testdata("golden/nets/valid", "nets of real Caffe") else { return };
    let mut compared = 0;
    for (name, folder, asked, mut definition) in cases(&set) {
        asked.put(&mut definition);
        let state = definition.state.clone().unwrap_or_default();
        let filtered = filter_net(&definition, &state).unwrap();
        let split = insert_splits(&filtered).unwrap();
        for (file, ours) in [("filtered.prototxt", &filtered), ("split.prototxt", &split)] {
            let path = folder.join(file);
            if path.exists() {
                assert_eq!(
                    proto::to_text(ours).unwrap(),
                    fs::read_to_string(path).unwrap(),
                    "{name}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 130, "{compared}");
}

#[test]
fn built_as_caffe_builds_them() {
    let Some(set) = testdata("golden/nets/valid", "nets of real Caffe") else { return };
    let registry = LayerRegistry::<f32, SimulatedDevice>::standard();
    let known: Vec<&str> = registry.kinds().collect();
    let mut compared = 0;
    for (name, folder, asked, definition) in cases(&set) {
        let path = folder.join("structure.tsv");
        let kinds = definition.layer.iter().all(|layer| known.contains(&layer.r#type()));
        if !kinds || !path.exists() {
            continue;
        }
        let mut builder = MirrorNet::builder(&SimulatedDevice::new()).stages(asked.stages);
        if let Some(phase) = asked.phase {
            builder = builder.phase(phase);
        }
        if let Some(level) = asked.level {
            builder = builder.level(level);
        }
        let net = builder.build(&definition).unwrap_or_else(|error| panic!("{name}: {error}"));
        let want = fs::read_to_string(path).unwrap();
        assert_eq!(structure(&net), want.trim_end(), "{name}");
        compared += 1;
    }
    assert!(compared >= 30, "{compared}");
}

/// A net's structure in the words of the golden files.
fn structure(net: &MirrorNet) -> String {
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
    let place = |layer: usize, index: usize| format!("{}.{index}", names[layer]);
    for (i, param) in net.params().iter().enumerate() {
        let owner = param.owner.map_or(-1, |owner| owner as i64);
        let (at, shape) = (place(param.layer, param.index), extents(param.blob()));
        lines.push(format!("param\t{i}\t{at}\t{shape}\towner={owner}\tdisplay={}", param.name));
    }
    for (i, param) in net.learnable_params().enumerate() {
        let (lr, decay) = (param.lr_mult, param.decay_mult);
        lines.push(format!(
            "learnable\t{i}\t{}\tlr={}\tdecay={}\thas_lr={}\thas_decay={}",
            place(param.layer, param.index),
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

fn extents(blob: &Blob<f32, SimulatedDevice>) -> String {
    match &blob.shape()[..] {
        [] => "-".into(),
        shape => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    }
}
