//! Tests of runs with several shards, whose results do not depend on the number of processes.

use crate::shared_data::DATA;
use cortado::{
    AnyDevice, Blob, CpuDevice, Element, Error, Layer, LayerRegistry, Result, Solver,
    communicator::ThreadCommunicator,
    data::SourceRegistry,
    device::SimulatedDevice,
    f16,
    layer::Shard,
    proto::{self, LayerParameter, RunState, SolverParameter, SolverState},
    solver::{Action, Event, SolverBuilder, TracedBlob},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shards").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn cpu() -> AnyDevice {
    AnyDevice::new(&CpuDevice::with_threads(1).unwrap())
}

/// Returns devices of three kinds in turn.
fn device(index: usize) -> AnyDevice {
    match index % 3 {
        0 => cpu(),
        1 => AnyDevice::new(&SimulatedDevice::new()),
        _ => AnyDevice::new(&CpuDevice::with_threads(3).unwrap()),
    }
}

const DIGITS: &str = r#"layer { name: "data" type: "Data" top: "data" top: "label"
    data_param { source: "digits:train?count=50" batch_size: 3 }
    transform_param { scale: 0.01 crop_size: 8 mirror: true } }"#;
const SGD: &str = r#"type: "SGD" momentum: 0.9 weight_decay: 0.01 iter_size: 2"#;

/// Returns the definition of a solver with the fields `solver`, whose net begins with the layer
/// `data`. `extra` stands between the first inner product and its activation.
fn definition(solver: &str, data: &str, extra: &str, folder: &Path) -> SolverParameter {
    let data = data.replace("DIR", &DATA.display().to_string());
    let text = format!(
        r#"{solver} base_lr: 0.02 lr_policy: "fixed" snapshot_prefix: "{prefix}" random_seed: 3
           display: 1 average_loss: 2 max_iter: 5 snapshot: 3 snapshot_after_train: true
           test_iter: 7 test_interval: 2
           net_param {{ {data}
             layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
               inner_product_param {{ num_output: 6 weight_filler {{ type: "xavier" }} }} }}
             {extra}
             layer {{ name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }}
             layer {{ name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }}
             layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
               inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
             layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label"
               top: "loss" }} }}"#,
        prefix = folder.join("snap").display(),
    );
    proto::parse_text(text, "solver.prototxt").unwrap()
}

/// Calls `process` with a solver builder for each of `processes` processes, on one thread each, and
/// returns the results in the order of the ranks.
fn run<T: Element, R: Send>(
    processes: usize,
    device: impl Fn(usize) -> AnyDevice + Sync,
    process: impl Fn(usize, SolverBuilder<T>) -> R + Sync,
) -> Vec<R> {
    let group = ThreadCommunicator::group(processes);
    thread::scope(|scope| {
        let start = |(rank, communicator)| {
            let (device, process) = (&device, &process);
            let builder = move || Solver::<T>::builder(&device(rank)).communicator(communicator);
            scope.spawn(move || process(rank, builder()))
        };
        let threads: Vec<_> = group.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The losses, the displayed outputs and the test scores that a solver has reported: for each event,
/// its kind, iteration and values.
type Records = Vec<(&'static str, usize, Vec<f64>)>;

fn record<T: Element>(solver: &mut Solver<T>) -> Arc<Mutex<Records>> {
    let records = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&records);
    solver.add_observer(move |event| {
        let record = match event {
            Event::Iterated { iteration, loss, smoothed, .. } => {
                ("iterated", *iteration, vec![*loss, *smoothed])
            }
            Event::Displayed { iteration, outputs, .. } => {
                ("displayed", *iteration, outputs.iter().map(|score| score.value).collect())
            }
            Event::Clipped { iteration, norm, .. } => ("clipped", *iteration, vec![*norm]),
            Event::Tested { iteration, outputs, .. } => {
                ("tested", *iteration, outputs.iter().map(|score| score.value).collect())
            }
            Event::Finished { iteration, loss, .. } => {
                ("finished", *iteration, loss.iter().copied().collect())
            }
            _ => return,
        };
        recorded.lock().unwrap().push(record);
    });
    records
}

/// The events of each process, and the bytes of the snapshots after iterations 3 and 5.
type Outcome = (Vec<Records>, Vec<Vec<u8>>);

/// Trains with 4 shards, and returns the outcome. Removes the snapshots.
fn train<T: Element>(
    param: &SolverParameter,
    processes: usize,
    device: impl Fn(usize) -> AnyDevice + Sync,
) -> Outcome {
    let events = run::<T, _>(processes, device, |_, builder| {
        let mut solver = builder.shards(4).build(param.clone()).unwrap();
        let records = record(&mut solver);
        solver.solve().unwrap();
        records.lock().unwrap().clone()
    });
    (events, snapshots(param, &[3, 5]))
}

/// Returns the bytes of the snapshots after the given iterations, and removes the files.
fn snapshots(param: &SolverParameter, iterations: &[usize]) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for iteration in iterations {
        for kind in ["caffemodel", "solverstate"] {
            let suffix = if param.snapshot_format.is_some() { ".h5" } else { "" };
            let path = format!("{}_iter_{iteration}.{kind}{suffix}", param.snapshot_prefix());
            contents.push(fs::read(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
    }
    contents
}

/// Checks that runs with 1, 2 and 4 processes on different devices have the same results.
fn check<T: Element>(name: &str, solver: &str, data: &str, extra: &str) {
    let mut param = definition(solver, data, extra, &folder(name));
    if data.contains("HDF5Data") {
        param.set_snapshot_format(proto::solver_parameter::SnapshotFormat::Hdf5);
    }
    check_param::<T>(name, &param);
}

fn check_param<T: Element>(name: &str, param: &SolverParameter) {
    let (expected_events, expected_snapshots) = train::<T>(param, 1, |_| cpu());
    assert!(expected_events[0].iter().any(|(kind, ..)| *kind == "tested"));
    for processes in [2, 4] {
        let (events, snapshots) = train::<T>(param, processes, device);
        for events in events {
            assert_eq!(events, expected_events[0], "{name}, {processes} processes");
        }
        assert!(snapshots == expected_snapshots, "{name}, {processes} processes: snapshots differ");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_processes() {
    let adam = r#"type: "Adam" clip_gradients: 0.5"#;
    let idx = r#"layer { name: "data" type: "Data" top: "data" top: "label"
        data_param { source: "idx:DIR/idx" batch_size: 3 rand_skip: 9 }
        transform_param { scale: 0.01 crop_size: 7 mirror: true } }"#;
    let images = r#"layer { name: "data" type: "ImageData" top: "data" top: "label"
        image_data_param { source: "DIR/images.txt" batch_size: 3 shuffle: true }
        transform_param { scale: 0.01 crop_size: 7 } }"#;
    let windows = r#"layer { name: "data" type: "WindowData" top: "data" top: "label"
        window_data_param { source: "DIR/windows.txt" batch_size: 4 fg_threshold: 0.5
          bg_threshold: 0.5 fg_fraction: 0.5 }
        transform_param { scale: 0.01 mirror: true crop_size: 7 } }"#;
    let dummy = r#"layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 4 dim: 9 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { value: 2 } } }"#;
    check::<f32>("sgd", SGD, DIGITS, "");
    check::<f32>("adam", adam, idx, "");
    check::<f32>("images", SGD, images, "");
    check::<f32>("windows", adam, windows, "");
    check::<f32>("dummy", "weight_decay: 0.1", dummy, "");
}

#[test]
#[cfg(feature = "hdf5")]
fn results_on_hdf5_files_do_not_depend_on_the_number_of_processes() {
    let rows = r#"layer { name: "data" type: "HDF5Data" top: "data" top: "label"
        hdf5_data_param { source: "DIR/rows.txt" batch_size: 4 shuffle: true } }"#;
    check::<f32>("hdf5", SGD, rows, "");
}

#[test]
fn results_in_16_bits_and_in_f64_do_not_depend_on_the_number_of_processes() {
    check::<f16>("f16", SGD, DIGITS, "");
    check::<f64>("f64", SGD, DIGITS, "");
}

#[test]
fn results_with_batch_statistics_do_not_depend_on_the_number_of_processes() {
    let batch_norm = r#"layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1"
        batch_norm_param { moving_average_fraction: 0.9 } }"#;
    check::<f32>("batch-norm", SGD, DIGITS, batch_norm);
}

/// Each inner product has more than 1 MiB of weights, so that the gradients of the second leave while
/// the backward pass computes those of the first.
#[test]
fn results_with_several_buckets_of_gradients_do_not_depend_on_the_number_of_processes() {
    let mut param = definition("momentum: 0.9", DIGITS, "", &folder("buckets"));
    for layer in &mut param.net_param.as_mut().unwrap().layer {
        let outputs = if layer.name() == "ip1" { 4200 } else { 64 };
        if let Some(param) = &mut layer.inner_product_param {
            param.num_output = Some(outputs);
        }
    }
    (param.max_iter, param.test_iter) = (Some(5), vec![2]);
    check_param::<f32>("buckets", &param);
}

/// A run of 3 iterations, resumed for 2 more with other numbers of processes, leaves the snapshot of
/// a run of 5 iterations.
#[test]
fn a_resumed_run_may_have_another_number_of_processes() {
    let shuffled = r#"layer { name: "data" type: "ImageData" top: "data" top: "label"
        image_data_param { source: "DIR/images.txt" batch_size: 3 shuffle: true }
        transform_param { scale: 0.01 crop_size: 7 mirror: true } }"#;
    let batch_norm =
        r#"layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" param { lr_mult: 0 } }"#;
    for (name, data, extra) in
        [("resume", DIGITS, ""), ("resume-images", shuffled, ""), ("resume-bn", DIGITS, batch_norm)]
    {
        let mut param = definition(SGD, data, extra, &folder(name));
        param.random_seed = None; // the resumed run takes the seed from the snapshot
        let first = |processes: usize| {
            run::<f32, _>(processes, device, |_, builder| {
                builder.shards(4).build(param.clone()).unwrap().solve().unwrap();
            })
        };
        first(2);
        let state = format!("{}_iter_3.solverstate", param.snapshot_prefix());
        let saved = fs::read(&state).unwrap();
        let expected = snapshots(&param, &[5]);
        for processes in [1, 2, 4] {
            run::<f32, _>(processes, device, |_, builder| {
                // The number of shards comes from the snapshot.
                let mut solver = builder.resume(&state).build(param.clone()).unwrap();
                assert_eq!((solver.iteration(), solver.shards()), (3, 4));
                solver.solve().unwrap();
            });
            assert!(snapshots(&param, &[5]) == expected, "{name}, {processes} processes");
        }
        assert!(fs::read(&state).unwrap() == saved);
    }
}

#[test]
fn a_snapshot_of_a_run_with_another_number_of_shards_is_refused_unless_allowed() {
    let param = definition(SGD, DIGITS, "", &folder("other-shards"));
    let build = || Solver::<f32>::builder(&cpu());
    build().shards(4).build(param.clone()).unwrap().solve().unwrap();
    let state = format!("{}_iter_3.solverstate", param.snapshot_prefix());
    let error = build().shards(2).resume(&state).build(param.clone()).err().unwrap().to_string();
    assert!(error.contains("shards: expected 2, found 4; train with 4 shards"), "{error}");
    let positions = |solver: &mut Solver<f32>| -> Vec<i64> {
        let position = |net: &mut cortado::Net<f32>| net.run_state().unwrap().layer[0].position();
        solver.shard_nets_mut().map(position).collect()
    };
    // 3 iterations of 2 batches of 3 records used 18 records of each of the 4 shards.
    let builder = build().shards(8).resume(&state).allow_other_shards(true);
    let mut solver = builder.build(param.clone()).unwrap();
    assert_eq!(positions(&mut solver), (72..80).collect::<Vec<_>>());
    let mut solver = build().resume(&state).build(param).unwrap();
    assert_eq!(positions(&mut solver), (72..76).collect::<Vec<_>>());
}

/// Four shards with batches of 3 records compute the updates of one net with batches of 12.
#[test]
fn four_shards_train_like_one_net_with_the_batches_of_all_shards() {
    let data = DIGITS.replace("mirror: true", "mirror: false");
    let weights = |shards: usize, batch: usize| {
        let data = data.replace("batch_size: 3", &format!("batch_size: {batch}"));
        let mut param = definition("momentum: 0.9 weight_decay: 0.01", &data, "", &folder("batch"));
        let layers = &mut param.net_param.as_mut().unwrap().layer;
        layers.retain(|layer| layer.r#type() != "Dropout");
        let mut solver = Solver::<f64>::builder(&cpu()).shards(shards).build(param).unwrap();
        solver.step(5).unwrap();
        solver.net().params().iter().flat_map(|p| p.blob().to_vec().unwrap()).collect::<Vec<_>>()
    };
    let (sharded, whole) = (weights(4, 3), weights(1, 12));
    for (sharded, whole) in sharded.iter().zip(&whole) {
        assert!((sharded - whole).abs() < 1e-12, "{sharded} {whole}");
    }
    assert!(weights(1, 3).iter().zip(&whole).any(|(a, b)| (a - b).abs() > 1e-6));
}

#[test]
fn each_shard_takes_its_records_and_its_random_numbers() {
    let param = definition(SGD, DIGITS, "", &folder("records"));
    let labels = |shards: usize| {
        let mut solver =
            Solver::<f32>::builder(&cpu()).shards(shards).build(param.clone()).unwrap();
        let outputs = |net: &mut cortado::Net<f32>| {
            net.forward().unwrap();
            let hidden = net.blob("ip1").unwrap().to_vec().unwrap();
            (net.blob("label").unwrap().to_vec().unwrap(), hidden)
        };
        solver.shard_nets_mut().map(outputs).collect::<Vec<_>>()
    };
    let whole: Vec<f32> = (0..2).flat_map(|_| labels(1)[0].0.clone()).collect();
    let shards = labels(2);
    assert_eq!(whole[..3], [shards[0].0[0], shards[1].0[0], shards[0].0[1]]);
    // Dropout masks differ: elements that one shard drops are not dropped by the other.
    let zeros = |values: &[f32]| values.iter().map(|x| *x == 0.0).collect::<Vec<_>>();
    assert_ne!(zeros(&shards[0].1), zeros(&shards[1].1));
}

#[test]
fn an_action_of_one_process_is_the_action_of_all() {
    let param = definition(SGD, DIGITS, "", &folder("actions"));
    let solve = |processes: usize| {
        let iterations = run::<f32, _>(processes, device, |rank, builder| {
            let mut solver = builder.shards(4).build(param.clone()).unwrap();
            let iteration = Arc::new(AtomicUsize::new(0));
            let last = Arc::clone(&iteration);
            solver.add_observer(move |event| {
                if let Event::Iterated { iteration, .. } = event {
                    last.store(*iteration, Ordering::Relaxed);
                }
            });
            let is_last = rank + 1 == processes;
            solver.set_action_function(move || match iteration.load(Ordering::Relaxed) {
                1 if is_last => Action::Snapshot,
                3 if is_last => Action::Stop,
                _ => Action::Continue,
            });
            solver.solve().unwrap();
            solver.iteration()
        });
        assert!(iterations.iter().all(|iteration| *iteration == 4), "{iterations:?}");
        // The action causes the snapshot of iteration 2, even if the action is returned during a
        // test.
        snapshots(&param, &[2, 3, 4])
    };
    let expected = solve(1);
    assert!(solve(2) == expected);
    assert!(solve(4) == expected);
}

/// A layer that copies its bottom, and calls `hook` with its shard and the number of forward passes.
struct Hooked {
    shard: u64,
    passes: u64,
    hook: fn(u64, u64, &Blob<f32>) -> Result<()>,
}

impl Layer<f32> for Hooked {
    fn kind(&self) -> &'static str {
        "Hooked"
    }
    fn allows_in_place(&self) -> bool {
        true
    }
    fn reshape(&mut self, bottom: &[Blob<f32>], top: &mut [Blob<f32>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])
    }
    fn forward(&mut self, _: &AnyDevice, _: &[Blob<f32>], top: &[Blob<f32>]) -> Result<()> {
        self.passes += 1;
        (self.hook)(self.shard, self.passes, &top[0])
    }
    fn backward(
        &mut self,
        _: &AnyDevice,
        _: &[Blob<f32>],
        _: cortado::layer::PropagateDown<'_>,
        _: &[Blob<f32>],
    ) -> Result<()> {
        Ok(())
    }
}

fn registry(hook: fn(u64, u64, &Blob<f32>) -> Result<()>) -> LayerRegistry<f32> {
    LayerRegistry::standard().with("Hooked", move |_: &LayerParameter, cx| {
        Ok(Hooked { shard: cx.shard.index, passes: 0, hook })
    })
}

const HOOKED: &str = r#"layer { name: "hooked" type: "Hooked" bottom: "ip1" top: "ip1"
    include { phase: TRAIN } }"#;

#[test]
fn an_error_in_one_process_ends_all_processes() {
    let fail = |shard, passes, _: &Blob<f32>| match (shard, passes) {
        (2, 3) => Err(Error::InvalidData("no more records".into())),
        _ => Ok(()),
    };
    let param = definition(SGD, DIGITS, HOOKED, &folder("error"));
    let errors = run::<f32, _>(
        4,
        |_| cpu(),
        |_, builder| {
            let mut solver = builder.shards(4).layers(registry(fail)).build(param.clone()).unwrap();
            let error = solver.solve().unwrap_err();
            let later_error = solver.step(1).unwrap_err().to_string();
            assert!(
                later_error.contains("has left the run after an earlier error"),
                "{later_error}"
            );
            error
        },
    );
    for (rank, error) in errors.iter().enumerate() {
        let message = error.to_string();
        match rank {
            2 => assert!(message.ends_with("no more records"), "{message}"),
            _ => {
                assert!(matches!(error, Error::Communication { .. }), "{message}");
                assert!(message.starts_with(&format!("process {rank}: exchange")), "{message}");
            }
        }
    }
}

#[test]
fn a_divergence_names_the_first_shard_with_a_nan() {
    let poison = |shard, passes, blob: &Blob<f32>| {
        if shard == 3 && passes == 4 {
            blob.data_mut()?.host_mut()?.fill(f32::INFINITY);
        }
        Ok(())
    };
    let param = definition(SGD, DIGITS, HOOKED, &folder("nan"));
    for processes in [1, 2, 4] {
        run::<f32, _>(
            processes,
            |_| cpu(),
            |_, builder| {
                let builder = builder.shards(4).layers(registry(poison));
                let mut solver = builder.build(param.clone()).unwrap();
                let place = Arc::new(Mutex::new(None));
                let reported = Arc::clone(&place);
                solver.add_observer(move |event| {
                    if let Event::Diverged { first: Some((layer, what, _)), shard, .. } = event {
                        *reported.lock().unwrap() = Some((layer.to_string(), *what, *shard));
                    }
                });
                let error = solver.solve().unwrap_err();
                assert!(matches!(error.root(), Error::Diverged(_)), "{error}");
                let expected = "iteration 1: the loss is NaN; the first NaN or infinite value is in \
                            shard 3, layer `ip1`, top `ip1`; snapshot for inspection: ";
                assert!(error.to_string().starts_with(expected), "{error}");
                let found = place.lock().unwrap().take();
                assert_eq!(found, Some(("ip1".to_owned(), TracedBlob::Top, 3)));
            },
        );
        let path = format!("{}_nan_iter_1.caffemodel", param.snapshot_prefix());
        fs::remove_file(path).unwrap();
    }
}

/// Process 0 fails to write the snapshot of iteration 3. All processes go on, and write another
/// snapshot at the end. If writing this last snapshot fails too, all processes return the error.
#[test]
fn a_snapshot_that_process_0_cannot_write_has_the_same_effect_on_all_processes() {
    for end in ["kept", "restored"] {
        let folder = folder("failed-snapshot").join("later");
        fs::create_dir(&folder).unwrap();
        let mut param = definition(SGD, DIGITS, "", &folder);
        (param.snapshot_after_train, param.max_iter) = (Some(false), Some(5));
        let results = run::<f32, _>(
            2,
            |_| cpu(),
            |rank, builder| {
                let mut solver = builder.shards(4).build(param.clone()).unwrap();
                let folder = folder.clone();
                solver.add_observer(move |event| match event {
                    Event::Iterated { iteration: 1, .. } if rank == 0 => {
                        fs::remove_dir_all(&folder).unwrap()
                    }
                    Event::Iterated { iteration: 4, .. } if rank == 0 && end == "restored" => {
                        fs::create_dir(&folder).unwrap()
                    }
                    _ => {}
                });
                let result = solver.solve();
                assert_eq!(solver.iteration(), 5);
                result
            },
        );
        for (rank, result) in results.into_iter().enumerate() {
            assert_eq!(result.is_ok(), end == "restored", "{result:?}");
            if let Err(error) = result {
                let message = error.to_string();
                assert!(matches!(error.root(), Error::Io { .. }), "{message}");
                assert!(message.contains("snap_iter_5.caffemodel: No such file"), "{message}");
                assert_eq!(message.ends_with("(in process 0)"), rank == 1, "{message}");
            }
        }
    }
}

#[test]
fn processes_that_disagree_are_refused() {
    let folder = folder("disagree");
    let param = |fields: &str| definition(&format!("{SGD} {fields}"), DIGITS, "", &folder);
    let refused = |first: SolverParameter, second: SolverParameter, shards: [usize; 2]| {
        let errors = run::<f32, _>(
            2,
            |_| cpu(),
            |rank, builder| {
                let param = if rank == 0 { first.clone() } else { second.clone() };
                builder.shards(shards[rank]).build(param).err().unwrap().to_string()
            },
        );
        assert_eq!(errors[0], errors[1]);
        errors[0].clone()
    };
    let error = refused(param(""), param(""), [4, 8]);
    let expected = "process 1: shards: expected 4 as in process 0, found 8; start all processes";
    assert!(error.starts_with(expected), "{error}");
    let error = refused(param(""), param("gamma: 0.5"), [4, 4]);
    assert!(error.starts_with("process 1: digest of the solver's definition: "), "{error}");
    let (one, mut other) = (param(""), param(""));
    other.random_seed = Some(4);
    let error = refused(one, other, [4, 4]);
    assert!(error.contains("random_seed: expected 3 as in process 0, found 4"), "{error}");
    let errors = run::<f32, _>(
        2,
        |_| cpu(),
        |rank, builder| {
            let mut solver = builder.shards(2).build(param("")).unwrap();
            solver.step(1).unwrap();
            if rank == 0 { solver.snapshot().unwrap().1 } else { solver.snapshot().unwrap().0 }
        },
    );
    let state = errors[0].clone();
    let errors = run::<f32, _>(
        2,
        |_| cpu(),
        |rank, builder| {
            let builder = if rank == 1 { builder.resume(&state) } else { builder };
            builder.build(param("")).err().unwrap().to_string()
        },
    );
    let expected = "process 1: iteration: expected 0 as in process 0, found 1";
    assert!(errors.iter().all(|error| error.starts_with(expected)), "{errors:?}");
}

/// The processes have the same definitions, but different files behind the same name.
#[test]
fn processes_with_different_data_are_refused() {
    let data = DIGITS.replace("digits:train?count=50", "own:data");
    let mut param = definition(SGD, &data, "", &folder("data"));
    (param.test_iter, param.test_interval) = (vec![], None);
    let errors = run::<f32, _>(
        2,
        |_| cpu(),
        |rank, builder| {
            let mut sources = SourceRegistry::default();
            sources.register("own", move |_| {
                SourceRegistry::default()
                    .open(["digits:train?count=50", "digits:train?count=51"][rank])
            });
            builder.sources(sources).build(param.clone()).err().unwrap().to_string()
        },
    );
    let expected = "process 1: records of the train net's sources: expected 50 as in process 0, \
                    found 51; start all processes";
    assert!(errors.iter().all(|error| error.starts_with(expected)), "{errors:?}");
}

#[test]
fn a_snapshot_with_an_invalid_number_of_shards_is_refused() {
    let folder = folder("invalid-snapshot");
    let param = definition(SGD, DIGITS, "", &folder);
    let path = folder.join("hostile.solverstate");
    for shards in [-1, 0, 1025, i32::MAX] {
        let run = RunState { shards: Some(shards), ..RunState::default() };
        let state = SolverState { run: Some(run), ..SolverState::default() };
        proto::write_solver_state(&path, &state).unwrap();
        let builder = Solver::<f32>::builder(&cpu()).resume(&path);
        let error = builder.build(param.clone()).err().unwrap().to_string();
        assert_eq!(error, format!("snapshot: expected 1 to 1024 shards, found {shards}"));
    }
}

#[test]
fn invalid_numbers_of_shards_and_processes_are_refused() {
    let param = definition(SGD, DIGITS, "", &folder("numbers"));
    for (processes, shards, expected) in [
        (1, 3, "shards: expected a power of two, found 3"),
        (1, 0, "shards: expected a power of two, found 0"),
        (1, 1 << 60, "shards: 1152921504606846976 for each process, expected at most 1024"),
        (4, 2, "shards: 2 for 4 processes; start at most 2 processes"),
        (3, 4, "processes: expected a power of two, found 3"),
    ] {
        for error in run::<f32, _>(
            processes,
            |_| cpu(),
            |_, builder| builder.shards(shards).build(param.clone()).err().unwrap().to_string(),
        ) {
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

#[test]
#[cfg(feature = "hdf5")]
fn a_net_that_writes_hdf5_is_refused_in_a_run_with_several_shards() {
    let output = r#"layer { name: "out" type: "HDF5Output" bottom: "ip1" bottom: "label"
        hdf5_output_param { file_name: "DIR/out.h5" } }"#;
    let param = definition(SGD, DIGITS, output, &folder("hdf5-output"));
    let error = Solver::<f32>::builder(&cpu()).shards(2).build(param).err().unwrap().to_string();
    let expected = "HDF5Output cannot write one file in a run with 2 shards";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn shards_of_the_test_phase_take_every_record() {
    let shard = Shard { index: 2, count: 4 };
    let numbers = |phase| [0, 2, 3].map(|n| shard.in_phase(phase).first_record_from(n));
    assert_eq!(numbers(proto::Phase::Train), [2, 2, 6]);
    assert_eq!(numbers(proto::Phase::Test), [0, 2, 3]);
    let shard = Shard { index: 1, count: u64::MAX };
    assert_eq!([0, 1, 2].map(|n| shard.first_record_from(n)), [1, 1, u64::MAX]);
}
