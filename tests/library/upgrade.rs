//! Tests of upgrades from Caffe's older formats: upgrades of single definitions, and comparisons
//! with Caffe's upgrades.

use crate::net_state::RequestedState;
use crate::support::{minimum, table, testdata};
use cortado::proto::{
    self, BlobProto, LayerParameter, Message, NetParameter, SolverParameter, V0LayerParameter,
    V1LayerParameter,
    upgrade::{self, Change, Upgraded},
};
use std::{collections::BTreeSet, fs, path::Path};

fn net(text: &str) -> NetParameter {
    proto::parse_text(text, "a net").unwrap()
}

/// Upgrades a net definition. Returns the text of the upgraded net and the printed list of changes.
fn upgraded(text: &str) -> (String, Vec<String>) {
    let Upgraded { message, changes, .. } = upgrade::net(net(text)).unwrap();
    assert_up_to_date(&message);
    let changes = changes.iter().map(Change::to_string).collect();
    (proto::to_text(&message).unwrap(), changes)
}

/// Asserts that upgrading the net definition `old` gives the definition `new`.
fn assert_upgrades_to(old: &str, new: &str) {
    assert_eq!(upgraded(old).0, proto::to_text(&net(new)).unwrap());
}

/// Asserts that upgrading an upgraded net again does not change the net.
fn assert_up_to_date(message: &NetParameter) {
    assert_eq!((message.layers.len(), message.input.len()), (0, 0));
    let Upgraded { message: again, changes, .. } = upgrade::net(message.clone()).unwrap();
    assert_eq!((&again, &changes[..]), (message, &[][..]));
}

fn assert_refused(text: &str, parts: &[&str]) {
    let error = upgrade::net(net(text)).expect_err(text).to_string();
    assert!(
        parts.iter().all(|part| error.contains(part)),
        "{error}\nthe error does not contain all of {parts:?}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn messages_of_the_current_format_are_unchanged() {
    let text = "name: \"n\" state { level: 2 } layer { name: \"r\" type: \"ReLU\" }";
    let (text_after, changes) = upgraded(text);
    assert_eq!((text_after, changes.len()), (proto::to_text(&net(text)).unwrap(), 0));
    assert_eq!(upgrade::net(NetParameter::default()).unwrap().changes, []);
    assert_eq!(upgrade::solver(SolverParameter::default()).unwrap().changes, []);
}

#[test]
fn v0_fields_move_to_the_parameter_message_of_the_type() {
    let cases = [
        (
            "type: 'conv' num_output: 2 biasterm: false kernelsize: 3 stride: 2 group: 2 pad: 1
             weight_filler { type: 'x' } bias_filler { type: 'y' }",
            "type: 'Convolution' convolution_param { num_output: 2 bias_term: false kernel_size: 3
             stride: 2 group: 2 pad: 1 weight_filler { type: 'x' } bias_filler { type: 'y' } }",
        ),
        (
            "type: 'innerproduct' num_output: 2 biasterm: false weight_filler { type: 'x' }",
            "type: 'InnerProduct' inner_product_param { num_output: 2 bias_term: false
             weight_filler { type: 'x' } }",
        ),
        (
            "type: 'pool' pool: STOCHASTIC kernelsize: 3 stride: 2 pad: 1",
            "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 pad: 1 }",
        ),
        (
            "type: 'lrn' local_size: 3 alpha: 2 beta: 3 k: 4",
            "type: 'LRN' lrn_param { local_size: 3 alpha: 2 beta: 3 k: 4 }",
        ),
        (
            "type: 'images' source: 's' batchsize: 4 rand_skip: 5 shuffle_images: true
             new_height: 6 new_width: 7 scale: 2 meanfile: 'm' cropsize: 8 mirror: true",
            "type: 'ImageData' image_data_param { source: 's' batch_size: 4 rand_skip: 5
             shuffle: true new_height: 6 new_width: 7 }
             transform_param { scale: 2 mean_file: 'm' crop_size: 8 mirror: true }",
        ),
        (
            "type: 'window_data' source: 's' batchsize: 4 det_fg_threshold: 0.1
             det_bg_threshold: 0.2 det_fg_fraction: 0.3 det_context_pad: 4 det_crop_mode: 'square'",
            "type: 'WindowData' window_data_param { source: 's' batch_size: 4 fg_threshold: 0.1
             bg_threshold: 0.2 fg_fraction: 0.3 context_pad: 4 crop_mode: 'square' }",
        ),
        (
            "type: 'hdf5_data' source: 's' batchsize: 4",
            "type: 'HDF5Data' hdf5_data_param { source: 's' batch_size: 4 }",
        ),
        (
            "type: 'hdf5_output' hdf5_output_param { file_name: 'f' }",
            "type: 'HDF5Output' hdf5_output_param { file_name: 'f' }",
        ),
        (
            "type: 'infogain_loss' source: 's'",
            "type: 'InfogainLoss' infogain_loss_param { source: 's' }",
        ),
        (
            "type: 'dropout' dropout_ratio: 0.25",
            "type: 'Dropout' dropout_param { dropout_ratio: 0.25 }",
        ),
        (
            "type: 'concat' concat_dim: 2 blobs_lr: 1 blobs_lr: 2 weight_decay: 3 blobs { num: 1 }",
            "type: 'Concat' concat_param { concat_dim: 2 } blobs { num: 1 }
             param { lr_mult: 1 decay_mult: 3 } param { lr_mult: 2 }",
        ),
    ];
    for (old, new) in cases {
        let old = format!("layers {{ layer {{ name: 'l' {old} }} top: 'y' }}");
        assert_upgrades_to(&old, &format!("layer {{ name: 'l' {new} top: 'y' }}"));
    }
}

#[test]
fn unused_v0_fields_are_dropped_and_reported() {
    let old = "layers { layer { name: 'r' type: 'relu' group: 2 kernelsize: 3 new_num: 4 } }";
    let (text, changes) = upgraded(old);
    assert_eq!(text, proto::to_text(&net("layer { name: 'r' type: 'ReLU' }")).unwrap());
    assert_eq!(changes.len(), 5, "{changes:?}");
    for field in ["`new_num`", "`kernelsize`", "`group`"] {
        let names_field = |change: &String| change.contains(field) && change.contains("`r`");
        assert!(changes.iter().any(names_field), "{changes:?}");
    }
}

#[test]
fn v0_padding_layers_are_merged_into_the_next_layer() {
    let padding = |bottom: &str, pad: &str| {
        format!(
            "layers {{ layer {{ name: 'p' type: 'padding' {pad} }} bottom: '{bottom}' top: 'p' }}"
        )
    };
    let layer_after_padding = |kind: &str, bottoms: &str| {
        format!("layers {{ layer {{ name: 'c' type: '{kind}' pad: 9 }} {bottoms} top: 'c' }}")
    };
    let start = "input: 'x'";
    assert_upgrades_to(
        &[start, &padding("x", "pad: 2"), &layer_after_padding("conv", "bottom: 'p'")].concat(),
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { pad: 2 } }",
    );
    assert_upgrades_to(
        &[start, &padding("x", ""), &layer_after_padding("pool", "bottom: 'p'")].concat(),
        "layer { name: 'c' type: 'Pooling' bottom: 'x' top: 'c' pooling_param { pad: 0 } }",
    );
    // If another layer overwrites the padded blob, the padding has no effect.
    let overwriting_layer = "layers { layer { name: 'r' type: 'relu' } bottom: 'x' top: 'p' }";
    let (text, _) = upgraded(
        &[
            start,
            &padding("x", "pad: 2"),
            overwriting_layer,
            &layer_after_padding("conv", "bottom: 'p'"),
        ]
        .concat(),
    );
    assert!(text.contains("pad: 9") && !text.contains("padding"), "{text}");

    let relu_after_padding = "layers { layer { name: 'c' type: 'relu' } bottom: 'p' top: 'c' }";
    assert_refused(
        &[start, &padding("x", "pad: 2"), relu_after_padding].concat(),
        &["`c`", "conv and pool"],
    );
    let two_bottoms = layer_after_padding("conv", "bottom: 'x' bottom: 'p'");
    assert_refused(
        &[start, &padding("x", "pad: 2"), &two_bottoms].concat(),
        &["`c`", "one bottom"],
    );
    let double_padding = [start, &padding("x", "pad: 2"), &padding("p", "pad: 2")].concat();
    assert_refused(&double_padding, &["`p`", "conv and pool"]);
    assert_refused(&padding("x", "pad: 2"), &["`p`", "`x`"]);
    let two_tops = "layers { layer { name: 'p' type: 'padding' } bottom: 'x' top: 'p' top: 'q' }";
    assert_refused(&[start, two_tops].concat(), &["`p`", "one top"]);
}

#[test]
fn nets_that_mix_formats_are_refused() {
    assert_refused("layers { layer { name: 'a' type: 'reshape' } }", &["`a`", "`reshape`"]);
    let old = "layers { layer { name: 'a' type: 'relu' } }";
    assert_refused(&format!("{old} layers {{ name: 'b' type: RELU }}"), &["`b`", "V0"]);
    assert_refused("layers { layer { name: 'a' type: 'relu' } type: RELU }", &["`a`", "V1"]);
    assert_refused(&format!("{old} layer {{ }}"), &["`layer`", "`layers`"]);
    assert_refused("layers { name: 'b' } layer { }", &["`layer`", "`layers`"]);
}

#[test]
fn an_upgrade_keeps_net_fields_that_have_not_changed() {
    let net_fields = "name: 'n' force_backward: true state { phase: TRAIN } debug_info: true";
    let layers = ["layers { layer { type: 'relu' } }", "layers { type: RELU }"];
    for old in layers {
        assert_upgrades_to(
            &format!("{net_fields} {old}"),
            &format!("{net_fields} layer {{ type: 'ReLU' }}"),
        );
    }
}

#[test]
fn v1_lists_of_parameter_settings_become_param_entries() {
    assert_upgrades_to(
        "layers { name: 'i' type: INNER_PRODUCT bottom: 'x' top: 'y' top: 'z' loss_weight: 0.5
         param: 'w' blob_share_mode: PERMISSIVE blob_share_mode: STRICT
         blobs_lr: 1 blobs_lr: 2 blobs_lr: 3 weight_decay: 4 weight_decay: 0
         include { phase: TEST } exclude { stage: 's' } }",
        "layer { name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' top: 'z' loss_weight: 0.5
         param { name: 'w' share_mode: PERMISSIVE lr_mult: 1 decay_mult: 4 }
         param { share_mode: STRICT lr_mult: 2 decay_mult: 0 } param { lr_mult: 3 }
         include { phase: TEST } exclude { stage: 's' } }",
    );
    assert_upgrades_to("layers { type: NONE } layers { }", "layer { type: '' } layer { }");
}

#[test]
fn v1_layer_parameter_messages_are_kept() {
    let params = [
        "accuracy_param { top_k: 2 }",
        "argmax_param { top_k: 2 }",
        "concat_param { axis: 2 }",
        "contrastive_loss_param { margin: 2 }",
        "convolution_param { num_output: 2 kernel_size: 3 }",
        "data_param { source: 's' }",
        "dropout_param { dropout_ratio: 0.25 }",
        "dummy_data_param { num: 2 }",
        "eltwise_param { operation: MAX }",
        "exp_param { base: 2 }",
        "hdf5_data_param { source: 's' }",
        "hdf5_output_param { file_name: 'f' }",
        "hinge_loss_param { norm: L2 }",
        "image_data_param { source: 's' }",
        "infogain_loss_param { source: 's' }",
        "inner_product_param { num_output: 2 }",
        "loss_param { ignore_label: 2 }",
        "lrn_param { k: 2 }",
        "memory_data_param { batch_size: 2 }",
        "mvn_param { across_channels: true }",
        "pooling_param { pool: AVE }",
        "power_param { power: 2 }",
        "relu_param { negative_slope: 2 }",
        "sigmoid_param { engine: CAFFE }",
        "slice_param { axis: 2 }",
        "softmax_param { axis: 2 }",
        "tanh_param { engine: CAFFE }",
        "threshold_param { threshold: 2 }",
        "transform_param { mirror: true }",
        "window_data_param { source: 's' }",
    ];
    for param in params {
        assert_upgrades_to(&format!("layers {{ {param} }}"), &format!("layer {{ {param} }}"));
    }
}

#[test]
fn v1_transformation_fields_move_to_transform_param() {
    let fields = "scale: 2 mean_file: 'm' crop_size: 3 mirror: true";
    let kinds = [
        ("DATA", "Data", "data_param"),
        ("IMAGE_DATA", "ImageData", "image_data_param"),
        ("WINDOW_DATA", "WindowData", "window_data_param"),
    ];
    for (old, new, param) in kinds {
        assert_upgrades_to(
            &format!("layers {{ type: {old} {param} {{ source: 's' {fields} }} }}"),
            &format!(
                "layer {{ type: '{new}' transform_param {{ {fields} }} {param} {{ source: 's' }} }}"
            ),
        );
        // Transformation fields move only if the parameter message that contains the fields belongs
        // to the layer's type.
        let other_type = format!("type: RELU {param} {{ {fields} }}");
        assert_upgrades_to(
            &format!("layers {{ {other_type} }}"),
            &format!("layer {{ {} }}", other_type.replace("RELU", "'ReLU'")),
        );
        // As in Caffe, the upgrade does not move the transformation fields of data layers in the
        // current format.
        let current_layer = format!("layer {{ type: '{new}' {param} {{ {fields} }} }}");
        assert_upgrades_to(&current_layer, &current_layer);
    }
}

#[test]
fn input_fields_become_an_input_layer() {
    let layer = "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";
    let assert_inputs_become = |inputs: &str, shapes: &str| {
        let input = format!("layer {{ name: 'input' type: 'Input' {shapes} }}");
        assert_upgrades_to(&format!("{inputs} {layer}"), &format!("{input} {layer}"));
    };
    assert_inputs_become(
        "input: 'x' input: 'z' input_dim: [1, 2, 3, 4, 5, 6, 7, 8]",
        "top: 'x' top: 'z' input_param {
         shape { dim: [1, 2, 3, 4] } shape { dim: [5, 6, 7, 8] } }",
    );
    assert_inputs_become(
        "input: 'x' input_shape { dim: 2 } input_dim: 1",
        "top: 'x' input_param { shape { dim: 2 } }",
    );
    // If the net has more input shapes than inputs, the upgrade drops the surplus shapes.
    assert_inputs_become(
        "input: 'x' input_shape { } input_shape { dim: 2 }",
        "top: 'x' input_param { shape { } }",
    );
    assert_upgrades_to(&format!("input: 'x' {layer}"), layer);
    for inputs in [
        "input: 'x' input_dim: [1, 2, 3]",
        "input: 'w' input: 'x' input_dim: [1, 2, 3, 4]",
        "input: 'w' input: 'x' input_shape { dim: 1 }",
        "input: 'w' input: 'x' input_shape { } input_dim: [1, 2, 3, 4, 5, 6, 7, 8]",
    ] {
        assert_refused(inputs, &["shape", "`x`"]);
    }
}

#[test]
fn batch_norm_statistics_get_learning_rate_zero() {
    let layer = |kind: &str, specs: &str| format!("layer {{ type: '{kind}' {specs} }}");
    let zero_multipliers = "param { lr_mult: 0 decay_mult: 0 }";
    assert_upgrades_to(
        &layer("BatchNorm", "param { name: 'm' lr_mult: 2 } param { } param { decay_mult: 0 }"),
        &layer(
            "BatchNorm",
            &format!(
                "param {{ name: 'm' lr_mult: 0 decay_mult: 0 }} {zero_multipliers} {zero_multipliers}"
            ),
        ),
    );
    for (kind, count) in [("BatchNorm", 2), ("BatchNorm", 4), ("Scale", 3)] {
        let other_layer = layer(kind, &"param { lr_mult: 2 } ".repeat(count));
        assert_upgrades_to(&other_layer, &other_layer);
    }
}

#[test]
fn solver_type_becomes_a_type_name() {
    let solver = |text: &str| {
        let param: SolverParameter = proto::parse_text(text, "a solver").unwrap();
        upgrade::solver(param)
    };
    for (old, new) in [
        ("SGD", "SGD"),
        ("NESTEROV", "Nesterov"),
        ("ADAGRAD", "AdaGrad"),
        ("RMSPROP", "RMSProp"),
        ("ADADELTA", "AdaDelta"),
        ("ADAM", "Adam"),
    ] {
        let Upgraded { message, changes, .. } =
            solver(&format!("base_lr: 0.1 solver_type: {old}")).unwrap();
        assert_eq!(changes, [Change::SolverType]);
        let want = solver(&format!("base_lr: 0.1 type: '{new}'")).unwrap();
        assert_eq!((message, &want.changes[..]), (want.message, &[][..]));
    }
    let error = solver("solver_type: SGD type: 'SGD'").unwrap_err().to_string();
    assert!(error.contains("solver_type"), "{error}");
    let unknown_type = SolverParameter { solver_type: Some(17), ..Default::default() };
    assert!(upgrade::solver(unknown_type).unwrap_err().to_string().contains("17"));
}

#[test]
fn an_upgrade_moves_weights_without_copying_them() {
    let blob = BlobProto { data: vec![1.0, 2.0], ..Default::default() };
    let v0 = V0LayerParameter { blobs: vec![blob.clone()], ..Default::default() };
    let layers = [
        V1LayerParameter { layer: Some(v0), ..Default::default() },
        V1LayerParameter { blobs: vec![blob], ..Default::default() },
    ];
    for layer in layers {
        let blobs = layer.layer.as_ref().map_or(&layer.blobs, |old| &old.blobs);
        let values = blobs[0].data.as_ptr();
        let old = NetParameter { layers: vec![layer], ..Default::default() };
        let Upgraded { message, .. } = upgrade::net(old).unwrap();
        assert_eq!(message.layer[0].blobs[0].data.as_ptr(), values);
    }
}

/// A binary file may contain any number for the layer type, because forks of Caffe have additional
/// types.
#[test]
fn an_unknown_layer_type_number_is_dropped_and_reported() {
    let layer =
        V1LayerParameter { name: Some("own".into()), r#type: Some(1234), ..Default::default() };
    let old = NetParameter { layers: vec![layer], ..Default::default() };
    let Upgraded { message, changes, .. } = upgrade::net(old).unwrap();
    let want = LayerParameter { name: Some("own".into()), ..Default::default() };
    assert_eq!(message.layer, [want]);
    let dropped_type = Change::Dropped { layer: "own".into(), field: "type" };
    assert_eq!(changes, [Change::V1, dropped_type]);
}

/// Upgrades the definition of a golden case. Returns the text that must equal the golden file
/// `upgraded.prototxt`, and the changes that the upgrade made.
fn upgrade_case(folder: &Path, row: &[String]) -> (String, Vec<Change>) {
    if row[1] == "solver" {
        let param = proto::read_text(folder.join("solver.prototxt")).unwrap();
        let Upgraded { mut message, changes, .. } = upgrade::solver(param).unwrap();
        // When Caffe reads a solver definition, it fills in a missing `snapshot_prefix`.
        message.snapshot_prefix.get_or_insert_with(|| "solver".into());
        return (proto::to_text(&message).unwrap(), changes);
    }
    let definition = proto::read_text(folder.join("net.prototxt")).unwrap();
    let Upgraded { mut message, changes, .. } = upgrade::net(definition).unwrap();
    assert_up_to_date(&message);
    RequestedState::from_row(row).apply_to(&mut message);
    (proto::to_text(&message).unwrap(), changes)
}

#[test]
fn golden_definitions_are_upgraded_as_by_caffe() {
    let Some(set) =
        testdata("golden/nets/valid", "the comparison of upgraded definitions with Caffe")
    else {
        return;
    };
    let mut compared_count = 0;
    for row in table(&set.join("cases.tsv")) {
        let folder = set.join(&row[0]);
        let (ours, changes) = upgrade_case(&folder, &row);
        let path = folder.join("upgraded.prototxt");
        if !path.exists() {
            // If the `lr_mult` fields of a BatchNorm layer are 0, Caffe does not change the layer,
            // whereas cortado sets the `decay_mult` fields to 0. `tests/library/golden_nets.rs`
            // compares cortado with Caffe on nets whose BatchNorm layers have `lr_mult` fields of
            // 0.
            assert!(changes.is_empty() || changes == [Change::BatchNorm], "{}", row[0]);
            continue;
        }
        let want = fs::read_to_string(path).unwrap();
        assert_eq!(ours, want, "{}", row[0]);
        compared_count += 1;
    }
    assert_eq!(compared_count, 24);
}

#[test]
fn nets_that_the_upgrade_refuses_are_refused_by_caffe() {
    let Some(set) =
        testdata("golden/nets/refused", "the comparison of refused definitions with Caffe")
    else {
        return;
    };
    let mut refused_names = BTreeSet::new();
    for row in table(&set.join("verdicts.tsv")) {
        let (name, kind, verdict) = (&row[0], &row[1], &row[2]);
        let path = set.join(format!("{name}.prototxt"));
        let is_refused = if kind.starts_with("solver") {
            proto::read_text(path).is_ok_and(|param| upgrade::solver(param).is_err())
        } else {
            proto::read_text(path).is_ok_and(|definition| upgrade::net(definition).is_err())
        };
        if is_refused {
            assert_ne!(verdict, "accept", "{name}");
            refused_names.insert(name.clone());
        }
    }
    let want = [
        "input_dim_not_4",
        "input_shape_too_few",
        "solver_type_both",
        "text_mixed_v1_v2",
        "v0_unknown_type",
    ];
    assert_eq!(refused_names, want.map(str::to_owned).into());
}

/// The authors of Caffe upgraded some net definitions with Caffe's tools. The old and the upgraded
/// file must give the same net after cortado's upgrade.
#[test]
fn caffes_files_before_and_after_their_upgrade_give_the_same_net() {
    let Some(folder) =
        testdata("data/prototxt", "the comparison of upgrades with Caffe's own files")
    else {
        return;
    };
    let read = |name: String| proto::read_text::<NetParameter>(folder.join(name)).unwrap();
    let mut compared_count = 0;
    for row in table(&folder.join("expected.tsv")).iter().filter(|row| row[1] == "NetParameter") {
        for (before, after) in [("2e33058__", "1b30e0a__"), ("11a4c16__", "e6c80da__")] {
            let Some(name) = row[0].strip_prefix(after) else { continue };
            if !folder.join(format!("{before}{name}")).exists() {
                continue;
            }
            let (old, new) = (read(format!("{before}{name}")), read(row[0].clone()));
            assert_ne!(old, new, "{name}");
            let [old, new] = [old, new].map(|net| upgrade::net(net).unwrap().message);
            assert_eq!(proto::to_text(&old).unwrap(), proto::to_text(&new).unwrap(), "{name}");
            compared_count += 1;
        }
    }
    assert!(compared_count >= minimum(13, 5), "{compared_count}");
}

#[test]
fn caffes_files_of_every_format_are_upgraded() {
    let Some(folder) =
        testdata("data/prototxt", "the comparison of upgrades with Caffe's own files")
    else {
        return;
    };
    let (mut file_count, mut changed_count, mut refused_names) = (0, 0, Vec::new());
    for row in table(&folder.join("expected.tsv")).iter().filter(|row| row[2] == "ok") {
        let path = folder.join(&row[0]);
        let changes = if row[1] == "SolverParameter" {
            let param: SolverParameter = proto::read_text(path).unwrap();
            let Upgraded { message, changes, .. } = upgrade::solver(param).unwrap();
            assert_eq!(message.solver_type, None, "{}", row[0]);
            changes
        } else {
            let definition: NetParameter = proto::read_text(path).unwrap();
            let Ok(Upgraded { message, changes, .. }) = upgrade::net(definition) else {
                refused_names.push(row[0].clone());
                continue;
            };
            assert_up_to_date(&message);
            let bytes = message.encode_to_vec();
            assert_eq!(proto::parse_binary::<NetParameter>(&bytes, "").unwrap(), message);
            changes
        };
        file_count += 1;
        changed_count += usize::from(!changes.is_empty());
    }
    assert_eq!(refused_names, ["mixed_layer_layers.prototxt"]);
    assert!(changed_count >= minimum(61, 10), "{changed_count} of {file_count}");
}
