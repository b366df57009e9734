//! Tests of HDF5 files with trained nets and solver states. h5py wrote the files in `tests/hdf5`.

use crate::support::{table, testdata};
use cortado::{
    CpuDevice, Net, Solver,
    proto::{
        self, BlobProto, BlobProtoVector, BlobShape, LayerParameter, LayerState, Message,
        NetParameter, NetRunState, RunState, SolverParameter, SolverState,
    },
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Definition of a net with the layers in the test files. Layer `b` shares the weights of layer
/// `a`.
const NET: &str = r#"
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
            convolution_param { num_output: 2 kernel_size: 3 } }
    layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
    layer { name: "a" type: "InnerProduct" bottom: "conv" top: "a" param { name: "w" }
            inner_product_param { num_output: 8 } }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" }
            inner_product_param { num_output: 8 } }
"#;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5").join(name)
}

/// Returns a path at which no file exists.
fn output_path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hdf5");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    path
}

fn net() -> Net<f32> {
    let definition = proto::parse_text::<NetParameter>(NET, "net").unwrap();
    Net::builder(&CpuDevice::with_threads(1).unwrap()).build(&definition).unwrap()
}

/// Returns a blob whose element `i` is `(start + i) / 8`, like `ramp` in `tests/hdf5/make.py`.
fn ramp(dim: &[i64], start: i64) -> BlobProto {
    let count = dim.iter().product::<i64>();
    let data = (start..start + count).map(|i| i as f32 / 8.0).collect();
    BlobProto { shape: Some(BlobShape { dim: dim.to_vec() }), data, ..Default::default() }
}

fn layer(name: &str, blobs: Vec<BlobProto>) -> LayerParameter {
    LayerParameter { name: Some(name.into()), blobs, ..Default::default() }
}

/// Returns the net in the test files, with its layers sorted by name.
fn trained_net() -> NetParameter {
    let layer = vec![
        layer("a", vec![ramp(&[8, 8], -32), ramp(&[8], 100)]),
        layer("b", vec![BlobProto::default(), ramp(&[8], 200)]),
        layer("conv", vec![ramp(&[2, 3, 3, 3], 0), ramp(&[2], -2)]),
        layer("relu", vec![]),
        layer("x", vec![]),
    ];
    NetParameter { layer, ..Default::default() }
}

fn values(net: &Net<f32>, layer: &str, index: usize) -> Vec<f32> {
    net.layer(layer).unwrap().params()[index].data().unwrap().host().unwrap().to_vec()
}

fn assert_error_contains<T: std::fmt::Debug>(result: cortado::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "error does not contain `{part}`: {error}");
    }
}

#[test]
fn weights_in_hdf5_files_are_read_and_copied_to_a_net() {
    for name in ["float.caffemodel.h5", "big_endian.caffemodel.h5", "half.caffemodel.h5"] {
        assert_eq!(proto::read_trained_net(fixture(name)).unwrap(), trained_net(), "{name}");
    }
    for name in ["float.caffemodel.h5", "double.caffemodel.h5", "diffs.caffemodel.h5"] {
        let mut net = net();
        let copied_layers = net.copy_trained_from(&proto::read_trained_net(fixture(name)).unwrap());
        assert_eq!(copied_layers.unwrap(), ["a", "b", "conv"], "{name}");
        let want = trained_net();
        for (layer, index, blob) in [
            ("a", 0, &want.layer[0].blobs[0]),
            ("a", 1, &want.layer[0].blobs[1]),
            ("b", 0, &want.layer[0].blobs[0]),
            ("b", 1, &want.layer[1].blobs[1]),
            ("conv", 0, &want.layer[2].blobs[0]),
            ("conv", 1, &want.layer[2].blobs[1]),
        ] {
            assert_eq!(values(&net, layer, index), blob.data, "{name} {layer}.{index}");
        }
    }
}

#[test]
fn hdf5_files_with_other_extensions_are_recognized_by_content() {
    let path = output_path("renamed.caffemodel");
    fs::copy(fixture("float.caffemodel.h5"), &path).unwrap();
    assert_eq!(proto::read_trained_net(&path).unwrap(), trained_net());
    fs::copy(fixture("float.solverstate.h5"), &path).unwrap();
    assert_eq!(proto::read_solver_state(&path).unwrap().iter, Some(7));
}

#[test]
fn gradients_in_hdf5_files_are_read_and_written() {
    let read = proto::read_trained_net(fixture("diffs.caffemodel.h5")).unwrap();
    let negated_ramp = |dim: &[i64], start| {
        ramp(dim, start).data.into_iter().map(|value| -value).collect::<Vec<_>>()
    };
    assert_eq!(read.layer[0].blobs[0].diff, negated_ramp(&[8, 8], -32));
    // A blob that shares another blob's values has a separate gradient.
    let shared_blob = &read.layer[1].blobs[0];
    assert_eq!((&shared_blob.data[..], &shared_blob.diff), (&[][..], &negated_ramp(&[8, 8], -32)));
    assert_eq!(shared_blob.shape, ramp(&[8, 8], 0).shape);

    let path = output_path("diffs.caffemodel.h5");
    proto::write_trained_net(&path, &read).unwrap();
    assert_eq!(proto::read_trained_net(&path).unwrap(), read);
}

#[test]
fn an_hdf5_file_of_a_net_has_the_layout_of_caffe() {
    let mut net = net();
    net.copy_trained_from(&trained_net()).unwrap();
    let mut message = net.to_proto(false).unwrap();
    assert_eq!(message.layer[4].blobs[0].data, ramp(&[8, 8], -32).data);
    net.strip_shared_params(&mut message);
    let path = output_path("net.caffemodel.h5");
    proto::write_trained_net(&path, &message).unwrap();
    // The written file must contain the same net as the file that h5py wrote. Blob `b.0` shares the
    // values of `a.0`, so `b.0` has no dataset.
    assert_eq!(proto::read_trained_net(&path).unwrap(), trained_net());
    // An HDF5 file must contain no timestamps: a second file with the same net has the same bytes.
    let first_bytes = fs::read(&path).unwrap();
    proto::write_trained_net(&path, &message).unwrap();
    assert!(fs::read(&path).unwrap() == first_bytes);
}

#[test]
fn values_and_shapes_in_hdf5_files_are_read_back_bit_identical() {
    let blob_message = |dim: &[i64], data: Vec<f32>, double_data: Vec<f64>| BlobProto {
        shape: Some(BlobShape { dim: dim.to_vec() }),
        data,
        double_data,
        ..Default::default()
    };
    let (nan, tiny) = (f32::from_bits(0x7fc1_2345), f32::from_bits(1));
    let blobs = vec![
        blob_message(&[2, 3], vec![nan, -0.0, tiny, f32::INFINITY, f32::MAX, -1.5], vec![]),
        blob_message(&[2], vec![], vec![0.1, f64::from_bits(0xfff8_0000_0000_0001)]),
        blob_message(&[], vec![2.5], vec![]),
        blob_message(&[1; 12], vec![], vec![5e-324]),
        blob_message(&[0, 3], vec![], vec![]),
    ];
    let mut layers = vec![layer("one", blobs.clone())];
    // The net has more layers than fit into the header of one HDF5 group.
    layers.extend((10..40).map(|i| layer(&format!("é {i}"), vec![ramp(&[i], i)])));
    let message = NetParameter { layer: layers, ..Default::default() };
    let path = output_path("values.caffemodel.h5");
    proto::write_trained_net(&path, &message).unwrap();
    let read = proto::read_trained_net(&path).unwrap();
    assert_eq!(read.encode_to_vec().len(), message.encode_to_vec().len());
    let mut sorted_message = message;
    sorted_message.layer.sort_by(|a, b| a.name().cmp(b.name()));
    let mut read = read;
    read.layer.sort_by(|a, b| a.name().cmp(b.name()));
    assert!(read.encode_to_vec() == sorted_message.encode_to_vec());
    // A blob message with four legacy extents is written with a shape of four axes.
    let (num, channels, height, width) = (Some(1), Some(1), Some(2), Some(3));
    let legacy_blob = BlobProto { num, channels, height, width, ..ramp(&[1, 1, 2, 3], 1) };
    let legacy_blob = BlobProto { shape: None, ..legacy_blob };
    let message = NetParameter { layer: vec![layer("l", vec![legacy_blob])], ..Default::default() };
    proto::write_trained_net(&path, &message).unwrap();
    let read = proto::read_trained_net(&path).unwrap();
    assert_eq!(read.layer[0].blobs, [ramp(&[1, 1, 2, 3], 1)]);
}

#[test]
fn solver_states_in_hdf5_files_are_read_and_written() {
    let read = proto::read_solver_state(fixture("float.solverstate.h5")).unwrap();
    let shapes: [&[i64]; 5] = [&[2, 3, 3, 3], &[2], &[8, 8], &[8], &[8]];
    let history = (0..).zip(shapes).map(|(index, dim)| ramp(dim, index)).collect();
    let want = SolverState {
        iter: Some(7),
        learned_net: Some("float.caffemodel.h5".into()),
        history,
        current_step: Some(2),
        run: None,
    };
    assert_eq!(read, want);
    let path = output_path("state.solverstate.h5");
    for learned_net in [None, Some(String::new()), Some("é/a b.caffemodel.h5".into())] {
        let layer = vec![LayerState {
            name: Some("a/b".into()),
            position: Some(i64::MAX),
            blobs: vec![ramp(&[2, 3], 1)],
        }];
        let shard = vec![NetRunState { layer: vec![] }];
        let net = vec![NetRunState { layer }];
        let run = RunState { random_seed: Some(3), net, shards: Some(2), shard };
        let state = SolverState { learned_net, run: Some(run), ..want.clone() };
        proto::write_solver_state(&path, &state).unwrap();
        assert_eq!(proto::read_solver_state(&path).unwrap(), state);
    }
}

#[test]
fn unsuitable_hdf5_files_cause_errors_and_change_no_weights() {
    let assert_refused = |name: &str, parts: &[&str]| {
        let mut net = net();
        let old_params = net.to_proto(false).unwrap();
        let path = fixture(name);
        let result = proto::read_trained_net(&path)
            .and_then(|read| net.copy_trained_from(&read).map_err(|error| error.context(name)));
        assert_error_contains(result, &[&[name], parts].concat());
        assert_eq!(net.to_proto(false).unwrap(), old_params, "{name}");
    };
    assert_refused("shape.caffemodel.h5", &["layer `a`", "parameter 1", "[4, 2]", "[8]"]);
    assert_refused("missing.caffemodel.h5", &["layer `a`", "2 parameters", "found 1"]);
    assert_refused("surplus.caffemodel.h5", &["layer `a`", "2 parameters", "found 3"]);
    assert_refused("named.caffemodel.h5", &["`data/a/bias`", "0, 1"]);
    assert_refused("text.caffemodel.h5", &["`data/a/1`", "expected numbers"]);
    assert_refused("float.solverstate.h5", &["`data`"]);
    let state = |name: &str| proto::read_solver_state(fixture(name));
    assert_error_contains(
        state("no_step.solverstate.h5"),
        &["no_step.solverstate.h5", "`current_step`"],
    );
    assert_error_contains(state("float.caffemodel.h5"), &["float.caffemodel.h5", "`history`"]);
    assert_error_contains(state("gone.solverstate.h5"), &["gone.solverstate.h5", "No such file"]);
    let path = output_path("other.caffemodel.h5");
    fs::write(&path, trained_net().encode_to_vec()).unwrap();
    assert_error_contains(
        proto::read_trained_net(&path),
        &["other.caffemodel.h5", "not an HDF5 file"],
    );
}

#[test]
fn layer_names_that_are_invalid_hdf5_group_names_are_refused() {
    let path = output_path("names.caffemodel.h5");
    for (names, reason) in [
        (&["a/b"][..], "slash"),
        (&["."], "HDF5 does not allow"),
        (&[""], "HDF5 does not allow"),
        (&["a\0b"], "zero byte"),
        (&["a", "b", "a"], "two layers"),
    ] {
        let layers = names.iter().map(|name| layer(name, vec![])).collect();
        let message = NetParameter { layer: layers, ..Default::default() };
        let written = proto::write_trained_net(&path, &message);
        assert_error_contains(written, &["names.caffemodel.h5", "layer `", reason]);
        assert!(!path.exists());
    }
    // Building the solver must fail, so that the error about the layer's name is reported before
    // training.
    let definition = NET.replace("\"conv\" type", "\"block/conv\" type");
    let solver = format!("net_param {{ {definition} }} base_lr: 0.1 lr_policy: 'fixed'");
    let solver = format!("{solver} max_iter: 1 snapshot_format: HDF5 snapshot_prefix: 'n'");
    let param = proto::parse_text::<SolverParameter>(solver, "solver").unwrap();
    let result = Solver::<f32>::new(param, &CpuDevice::with_threads(1).unwrap()).map(|_| ());
    assert_error_contains(
        result,
        &["snapshot_format", "layer `block/conv`", "slash", "BINARYPROTO"],
    );
}

#[test]
fn damaged_hdf5_files_are_refused_or_read_without_panic() {
    for name in ["float.caffemodel.h5", "diffs.caffemodel.h5"] {
        let bytes = fs::read(fixture(name)).unwrap();
        let complete_net = proto::read_trained_net(fixture(name)).unwrap();
        let path = output_path(&format!("cut.{name}"));
        let mut refused_count = 0;
        for end in (0..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
            fs::write(&path, &bytes[..end]).unwrap();
            match proto::read_trained_net(&path) {
                Ok(read) => assert_eq!(read, complete_net, "{end}"),
                Err(error) => {
                    refused_count += 1;
                    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                }
            }
        }
        assert!(refused_count > 100, "{refused_count}");
        for at in (0..bytes.len()).step_by(61) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed_bytes = bytes.clone();
                changed_bytes[at] = value;
                fs::write(&path, changed_bytes).unwrap();
                let _ = proto::read_trained_net(&path);
            }
        }
    }
}

#[test]
fn caffes_snapshots_are_converted_to_hdf5_and_back() {
    let Some(solvers) = testdata("golden/solvers", "the conversion of Caffe's snapshots") else {
        return;
    };
    for row in table(&solvers.join("cases.tsv")) {
        let case = solvers.join(&row[0]);
        let (model, state) =
            (output_path("golden.caffemodel.h5"), output_path("golden.solverstate.h5"));
        let net = proto::read_trained_net(case.join("snap_iter_10.caffemodel")).unwrap();
        proto::write_trained_net(&model, &net).unwrap();
        let read = proto::read_trained_net(&model).unwrap();
        for layer in &net.layer {
            let is_same = |other: &&LayerParameter| other.name() == layer.name();
            let got = read.layer.iter().find(is_same).unwrap();
            let bytes = |blobs: &[BlobProto]| {
                blobs.iter().flat_map(Message::encode_to_vec).collect::<Vec<_>>()
            };
            assert!(bytes(&got.blobs) == bytes(&layer.blobs), "{} {}", row[0], layer.name());
        }
        let binary_state = proto::read_solver_state(case.join("snap_iter_10.solverstate")).unwrap();
        proto::write_solver_state(&state, &binary_state).unwrap();
        let read = proto::read_solver_state(&state).unwrap();
        assert!(read.encode_to_vec() == binary_state.encode_to_vec(), "{}", row[0]);
    }
}

fn inputs(case: &Path) -> Vec<(String, BlobProto)> {
    let golden_blobs: BlobProtoVector =
        proto::read_binary(case.join("golden.binaryproto")).unwrap();
    let index = fs::read_to_string(case.join("index.tsv")).unwrap();
    let blobs = index.lines().zip(golden_blobs.blobs);
    let name = |line: &str| line.strip_prefix("input\t").map(str::to_owned);
    blobs.filter_map(|(line, blob)| Some((name(line)?, blob))).collect()
}

#[test]
fn runs_resumed_from_hdf5_and_binary_files_are_bit_identical() {
    let Some(solvers) = testdata("golden/solvers", "the test that resumes Caffe's snapshots")
    else {
        return;
    };
    let device = CpuDevice::with_threads(1).unwrap();
    let mut resumed_count = 0;
    for row in table(&solvers.join("cases.tsv")) {
        let case = solvers.join(&row[0]);
        let mut param = proto::read_solver(case.join("solver.prototxt")).unwrap();
        if param.net.take().is_some() {
            param.net_param = Some(proto::read_net(case.join("net.prototxt")).unwrap());
        }
        param.snapshot = Some(0);
        // The test skips golden cases whose layers cortado does not support.
        let Ok(mut binary_solver) = Solver::<f32>::new(param.clone(), &device) else { continue };
        let mut hdf5 = Solver::<f32>::new(param, &device).unwrap();

        let net = proto::read_trained_net(case.join("snap_iter_10.caffemodel")).unwrap();
        let mut state = proto::read_solver_state(case.join("snap_iter_10.solverstate")).unwrap();
        for (solver, suffix) in [(&mut binary_solver, ""), (&mut hdf5, ".h5")] {
            let model = output_path(&format!("resumed.caffemodel{suffix}"));
            let path = output_path(&format!("resumed.solverstate{suffix}"));
            let mut net = net.clone();
            if suffix == ".h5" {
                solver.net().strip_shared_params(&mut net);
            }
            proto::write_trained_net(&model, &net).unwrap();
            state.learned_net = Some(model.to_str().unwrap().into());
            proto::write_solver_state(&path, &state).unwrap();
            solver.restore(&path).unwrap();
            assert_eq!(solver.iteration(), 10);
            for (name, blob) in inputs(&case) {
                let input = solver.net_mut().blob_mut(&name).unwrap();
                input.from_proto(&blob, false).unwrap();
            }
            solver.step(5).unwrap();
        }
        let weight_bytes =
            |solver: &Solver<f32>| solver.net().to_proto(false).unwrap().encode_to_vec();
        assert!(weight_bytes(&binary_solver) == weight_bytes(&hdf5), "{}", row[0]);
        resumed_count += 1;
    }
    assert!(resumed_count > 5, "{resumed_count}");
}

/// An untrusted net definition could name any existing file as the output of an HDF5Output layer.
#[test]
fn an_hdf5_output_layer_replaces_only_hdf5_files() {
    let path = output_path("output.h5");
    let text = format!(
        r#"layer {{ name: "x" type: "Input" top: "x" top: "t" input_param {{ shape {{ dim: 2 }} }} }}
           layer {{ name: "out" type: "HDF5Output" bottom: "x" bottom: "t"
             hdf5_output_param {{ file_name: "{}" }} }}"#,
        path.display()
    );
    let definition = cortado::proto::parse_text(text, "net").unwrap();
    let forward = || {
        let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&definition).unwrap();
        net.forward()
    };
    forward().unwrap();
    forward().unwrap(); // replaces the HDF5 file
    fs::write(&path, "").unwrap();
    forward().unwrap();
    fs::write(&path, "precious").unwrap();
    assert_error_contains(forward(), &["output.h5: the file exists and is not an HDF5 file"]);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}
