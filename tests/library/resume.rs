//! Tests that a resumed training run writes the same bytes as an uninterrupted run.

use crate::shared_data::DATA;
#[cfg(feature = "hdf5")]
use cortado::proto::solver_parameter::SnapshotFormat;
use cortado::{
    AnyDevice, CpuDevice, Element, Solver,
    device::SimulatedDevice,
    f16,
    proto::{self, LayerState, NetRunState, SolverParameter, SolverState},
    solver::{Action, Event},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

static CPU: LazyLock<CpuDevice> = LazyLock::new(|| CpuDevice::with_threads(1).unwrap());

/// Returns the definition of a data layer of type `kind` with the fields `params`, in which `DIR`
/// stands for the folder with the data sets.
fn data_layer(kind: &str, params: &str) -> String {
    let params = params.replace("DIR", &DATA.display().to_string());
    format!(r#"layer {{ name: "data" type: "{kind}" top: "data" top: "label" {params} }}"#)
}

/// Returns the definition of a solver whose net begins with the data layer `data`. The solver
/// writes snapshots with the path prefix `prefix`, and has no fixed random seed.
fn definition(data: &str, method: &str, prefix: &Path) -> SolverParameter {
    let text = format!(
        r#"type: "{method}" base_lr: 0.02 lr_policy: "inv" gamma: 0.1 power: 0.5 {momentum}
           weight_decay: 0.001 iter_size: 2 snapshot: 3 test_iter: 2 test_interval: 2
           snapshot_after_train: false snapshot_prefix: "{prefix}"
           net_param {{ {data}
             layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
               inner_product_param {{ num_output: 6 weight_filler {{ type: "xavier" }} }} }}
             layer {{ name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }}
             layer {{ name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }}
             layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
               inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
             layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label"
               top: "loss" }} }}"#,
        momentum = if ["AdaGrad", "RMSProp"].contains(&method) { "" } else { "momentum: 0.9" },
        prefix = prefix.display(),
    );
    proto::parse_text(text, "solver.prototxt").unwrap()
}

/// The results of a training run: the test scores after iteration 3, and the bytes of the snapshot
/// after iteration 7.
#[derive(PartialEq)]
struct Outcome {
    test_scores: Vec<(usize, Vec<f64>)>,
    snapshot_files: [Vec<u8>; 2],
}

/// Trains until iteration 7, and returns the results. Removes the snapshot of iteration 7.
fn finish<T: Element>(mut solver: Solver<T>) -> Outcome {
    let test_scores = Arc::new(Mutex::new(Vec::new()));
    let recorded_scores = Arc::clone(&test_scores);
    solver.add_observer(move |event| {
        if let Event::Tested { iteration, outputs, .. } = event
            && *iteration > 3
        {
            let values = outputs.iter().map(|score| score.value).collect();
            recorded_scores.lock().unwrap().push((*iteration, values));
        }
    });
    solver.step(7 - solver.iteration()).unwrap();
    let (model, state) = solver.snapshot().unwrap();
    let read = |path| {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    };
    let test_scores = test_scores.lock().unwrap().clone();
    assert_eq!(test_scores.iter().map(|(iteration, _)| *iteration).collect::<Vec<_>>(), [4, 6]);
    Outcome { test_scores, snapshot_files: [read(model), read(state)] }
}

/// Compares an uninterrupted run of 7 iterations on the first device with runs that resume after
/// iteration 3, one on each device.
fn check<T: Element>(param: &SolverParameter, devices: &[AnyDevice]) {
    let prefix = param.snapshot_prefix();
    let expected = finish(Solver::<T>::new(param.clone(), &devices[0]).unwrap());
    let suffix = if param.snapshot_format.is_some() { ".h5" } else { "" };
    for device in devices {
        let snapshot = format!("{prefix}_iter_3.solverstate{suffix}");
        let builder = Solver::<T>::builder(device).resume(snapshot);
        let outcome = finish(builder.build(param.clone()).unwrap());
        assert_eq!(outcome.test_scores, expected.test_scores, "{prefix}");
        assert!(
            outcome.snapshot_files == expected.snapshot_files,
            "{prefix}: the snapshots differ"
        );
    }
}

fn devices() -> Vec<AnyDevice> {
    let simulated_device = SimulatedDevice::new();
    let threaded_cpu = CpuDevice::with_threads(3).unwrap();
    vec![AnyDevice::new(&*CPU), AnyDevice::new(&threaded_cpu), AnyDevice::new(&simulated_device)]
}

fn prefix(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resume").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join("snap")
}

#[test]
fn a_resumed_run_writes_the_bytes_of_an_uninterrupted_run_for_all_sources_and_methods() {
    let transform = "transform_param { scale: 0.01 mirror: true crop_size: 7 }";
    let windows = "window_data_param { source: 'DIR/windows.txt' batch_size: 4 \
                   fg_threshold: 0.5 bg_threshold: 0.5 fg_fraction: 0.5 }";
    let cases = [
        (
            "idx",
            "Data",
            "data_param { source: 'idx:DIR/idx' batch_size: 5 rand_skip: 9 } TRANSFORM",
            "SGD",
        ),
        (
            "lmdb",
            "Data",
            "data_param { source: 'DIR/lmdb' batch_size: 5 backend: LMDB prefetch: 2 } TRANSFORM",
            "Nesterov",
        ),
        (
            "digits",
            "Data",
            "data_param { source: 'digits:train?count=20' batch_size: 3 } TRANSFORM",
            "AdaGrad",
        ),
        (
            "images",
            "ImageData",
            "image_data_param { source: 'DIR/images.txt' batch_size: 3 } TRANSFORM",
            "AdaDelta",
        ),
        (
            "shuffled-images",
            "ImageData",
            "image_data_param { source: 'DIR/images.txt' batch_size: 3 shuffle: true rand_skip: 4 } TRANSFORM",
            "Adam",
        ),
        ("windows", "WindowData", &format!("{windows} TRANSFORM"), "RMSProp"),
        (
            "dummy",
            "DummyData",
            "dummy_data_param { shape { dim: 4 dim: 9 } shape { dim: 4 } data_filler { type: 'gaussian' } data_filler { type: 'constant' value: 2 } }",
            "SGD",
        ),
    ];
    for (name, kind, params, method) in cases {
        let data = data_layer(kind, &params.replace("TRANSFORM", transform));
        check::<f32>(&definition(&data, method, &prefix(name)), &devices());
    }
}

#[test]
#[cfg(feature = "hdf5")]
fn a_resumed_run_on_hdf5_files_writes_the_bytes_of_an_uninterrupted_run() {
    for (name, shuffle) in [("hdf5", "false"), ("shuffled-hdf5", "true")] {
        let params = format!(
            "hdf5_data_param {{ source: 'DIR/rows.txt' batch_size: 4 shuffle: {shuffle} }}"
        );
        let mut param = definition(&data_layer("HDF5Data", &params), "Adam", &prefix(name));
        param.set_snapshot_format(SnapshotFormat::Hdf5);
        check::<f32>(&param, &devices());
    }
}

#[test]
fn a_resumed_run_in_16_bits_and_in_f64_writes_the_bytes_of_an_uninterrupted_run() {
    let params = "data_param { source: 'idx:DIR/idx' batch_size: 5 } \
                  transform_param { scale: 0.01 mirror: true crop_size: 7 }";
    let data = data_layer("Data", params);
    check::<f16>(&definition(&data, "Adam", &prefix("f16")), &devices()[..2]);
    check::<f64>(&definition(&data, "SGD", &prefix("f64")), &devices()[..2]);
}

/// Returns the definition of a solver whose net has stochastic pooling and a recurrent layer of
/// type `kind`. The sequences of the recurrent layer are longer than a batch.
fn recurrent_definition(kind: &str, prefix: &Path) -> SolverParameter {
    let data = format!(
        r#"layer {{ name: "data" type: "DummyData" top: "x" top: "cont" top: "target"
             dummy_data_param {{ shape {{ dim: 3 dim: 2 dim: 4 dim: 4 }} shape {{ dim: 3 dim: 2 }}
               shape {{ dim: 3 dim: 2 dim: 4 }} data_filler {{ type: "uniform" min: -1 max: 1 }}
               data_filler {{ value: 1 }} data_filler {{ type: "gaussian" }} }} }}
           layer {{ name: "pool" type: "Pooling" bottom: "x" top: "pooled"
             pooling_param {{ pool: STOCHASTIC kernel_size: 2 stride: 2 }} }}
           layer {{ name: "recurrent" type: "{kind}" bottom: "pooled" bottom: "cont" top: "h"
             recurrent_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }} }}
           layer {{ name: "loss" type: "EuclideanLoss" bottom: "h" bottom: "target" top: "loss" }}"#
    );
    let mut param = definition("", "SGD", prefix);
    param.net_param = Some(proto::parse_text(data, "net").unwrap());
    param
}

#[test]
fn a_resumed_run_continues_hidden_states_and_stochastic_pooling() {
    for kind in ["LSTM", "RNN"] {
        check::<f32>(&recurrent_definition(kind, &prefix(kind)), &devices());
    }
    #[cfg(feature = "hdf5")]
    {
        let mut param = recurrent_definition("LSTM", &prefix("LSTM-hdf5"));
        param.set_snapshot_format(SnapshotFormat::Hdf5);
        check::<f64>(&param, &devices()[..1]);
    }
}

/// A snapshot that is written during a test contains the state of the test net before the test,
/// because a resumed run repeats the test.
#[test]
fn a_run_resumed_from_a_snapshot_during_a_test_repeats_the_test() {
    let params = "data_param { source: 'idx:DIR/idx' batch_size: 5 } \
                  transform_param { scale: 0.01 mirror: true crop_size: 7 }";
    let param = definition(&data_layer("Data", params), "SGD", &prefix("during-test"));
    let expected = finish(Solver::<f32>::new(param.clone(), &*CPU).unwrap());
    let mut stopped_solver = Solver::<f32>::new(param.clone(), &*CPU).unwrap();
    stopped_solver.step(4).unwrap();
    let mut calls = 0;
    stopped_solver.set_action_function(move || {
        calls += 1; // the second call follows the first of the two test batches
        if calls == 2 { Action::Stop } else { Action::Continue }
    });
    stopped_solver.step(1).unwrap();
    assert_eq!(stopped_solver.iteration(), 4);
    let (_, state) = stopped_solver.snapshot().unwrap();
    let resumed_solver = Solver::<f32>::builder(&*CPU).resume(state).build(param).unwrap();
    // The two runs have different random seeds, so compare only the positions in the data sources.
    let positions = |bytes: &[u8]| -> Vec<Vec<i64>> {
        let state: SolverState = proto::parse_binary(bytes, "state").unwrap();
        let run = state.run.unwrap();
        run.net.iter().map(|net| net.layer.iter().map(LayerState::position).collect()).collect()
    };
    let outcome = finish(resumed_solver);
    assert_eq!(positions(&outcome.snapshot_files[1]), positions(&expected.snapshot_files[1]));
}

#[test]
fn a_snapshot_without_positions_resumes_at_the_first_record() {
    let params = "data_param { source: 'idx:DIR/idx' batch_size: 5 }";
    let prefix = prefix("caffe");
    let param = definition(&data_layer("Data", params), "SGD", &prefix);
    let mut solver = Solver::<f32>::new(param.clone(), &*CPU).unwrap();
    solver.step(3).unwrap();
    let path = prefix.with_file_name("snap_iter_3.solverstate");
    let mut state = proto::read_solver_state(&path).unwrap();
    let run = state.run.take().unwrap();
    assert_eq!(run.net[0].layer[0].position(), 3 * 2 * 5);
    assert_eq!(run.net.len(), 2, "the states of the train net and of the test net");
    proto::write_solver_state(&path, &state).unwrap();
    let resumed_solver = Solver::<f32>::builder(&*CPU).resume(&path).build(param).unwrap();
    assert_eq!(
        (resumed_solver.iteration(), resumed_solver.net().run_state().unwrap().layer[0].position()),
        (3, 0)
    );
}

#[test]
fn a_layer_state_that_does_not_fit_is_refused_with_the_name_of_the_layer() {
    let params = "data_param { source: 'idx:DIR/idx' batch_size: 5 }";
    let data = data_layer("Data", params);
    let mut solver =
        Solver::<f32>::new(definition(&data, "SGD", &prefix("misfit")), &*CPU).unwrap();
    let net = solver.net_mut();
    let mut error = |name: &str, state: LayerState| {
        let layer = vec![LayerState { name: Some(name.into()), ..state }];
        net.set_run_state(&NetRunState { layer }).unwrap_err().to_string()
    };
    let negative_position = LayerState { position: Some(-1), ..Default::default() };
    assert_eq!(error("data", negative_position), "layer `data` (Data): negative position -1");
    let text = error("ip1", LayerState::default());
    assert_eq!(text, "layer `ip1` (InnerProduct): InnerProduct has no state to restore");
    let param = recurrent_definition("LSTM", &prefix("misfit-lstm"));
    let mut solver = Solver::<f32>::new(param, &*CPU).unwrap();
    let mut state = solver.net().run_state().unwrap();
    let lstm = state.layer.iter_mut().find(|state| state.name() == "recurrent").unwrap();
    lstm.blobs.pop();
    let error = solver.net_mut().set_run_state(&state).unwrap_err().to_string();
    assert!(
        error.contains("layer `recurrent` (LSTM): state: expected 2 blobs, found 1"),
        "{error}"
    );
}
