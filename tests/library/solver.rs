//! Tests of the public interface of solvers: invalid definitions, actions, custom methods,
//! snapshots and 16-bit weights.

use crate::support::{table, testdata};
use cortado::{
    CpuDevice, Device, Element, Error, Result, Solver, Src, bf16,
    device::SimulatedDevice,
    f16,
    kernel::traits::*,
    op::{Unary, UpdateRule},
    proto::{self, InputParameter, SolverParameter},
    solver::{Action, Event, LearnableParam, Method, MethodRegistry, UpdateParams},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

static CPU: LazyLock<CpuDevice> = LazyLock::new(|| CpuDevice::with_threads(1).unwrap());

/// Definition of a net with one InnerProduct layer. Every batch of the data layer contains the same
/// eight digits.
const NET: &str = r#"net_param { name: "digits"
  layer { name: "data" type: "Data" top: "data" top: "label"
    transform_param { scale: 0.00390625 }
    data_param { source: "digits:train?count=8&seed=1" batch_size: 8 } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
"#;

/// Creates an empty folder for the files that a test writes.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("solver").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Returns the definition of a solver that trains [`NET`] and writes its snapshots to `folder`.
fn definition(rest: &str, folder: &Path) -> SolverParameter {
    let common_fields =
        "base_lr: 0.05 lr_policy: \"fixed\" random_seed: 3 snapshot_after_train: false";
    let mut param: SolverParameter =
        proto::parse_text(format!("{NET} {common_fields} {rest}"), "solver.prototxt").unwrap();
    param.snapshot_prefix = Some(folder.join("snap").to_string_lossy().into_owned());
    param
}

fn solver<T: Element>(rest: &str, folder: &Path) -> Solver<T> {
    Solver::new(definition(rest, folder), &*CPU).unwrap()
}

fn weights<T: Element>(solver: &Solver<T>) -> Vec<f64> {
    let blobs = solver.net().learnable_params().map(|param| {
        let data = param.blob().data().unwrap();
        data.host().unwrap().iter().map(|value| value.to_f64()).collect::<Vec<_>>()
    });
    blobs.collect::<Vec<_>>().concat()
}

/// Adds an observer to a solver. The observer calls `select` for each event and records the
/// returned values.
fn record<T: Element, R: Send + 'static>(
    solver: &mut Solver<T>,
    select: impl Fn(&Event<'_>) -> Option<R> + Send + 'static,
) -> Arc<Mutex<Vec<R>>> {
    let values = Arc::new(Mutex::new(Vec::new()));
    let observer_values = Arc::clone(&values);
    solver.add_observer(move |event| observer_values.lock().unwrap().extend(select(event)));
    values
}

#[test]
fn train_and_test_nets_are_built_as_by_caffe() {
    let Some(set) = testdata("golden/nets/valid", "the comparison of solver structures with Caffe")
    else {
        return;
    };
    let mut compared_count = 0;
    for row in table(&set.join("cases.tsv")).iter().filter(|row| row[1] == "solver") {
        let folder = set.join(&row[0]);
        // This test compares only the structure of nets, so an Input layer can replace a data
        // layer.
        let read = |file: String| {
            let mut net = proto::read_net(folder.join(file)).unwrap();
            for layer in net.layer.iter_mut().filter(|layer| layer.r#type() == "DummyData") {
                let shape = layer.dummy_data_param.take().unwrap().shape;
                layer.r#type = Some("Input".into());
                layer.input_param = Some(InputParameter { shape });
            }
            net
        };
        let mut param = proto::read_solver(folder.join("solver.prototxt")).unwrap();
        param.net_param = param.net.take().map(read);
        param.train_net_param = param.train_net.take().map(read);
        param.test_net_param = std::mem::take(&mut param.test_net).into_iter().map(read).collect();
        param.snapshot_after_train = Some(false);
        let solver = Solver::<f32>::new(param, &*CPU).unwrap();
        let mut lines = vec![format!("type\t{}", solver.param().r#type())];
        let names = (0..).map(|i| format!("test{i}"));
        let names = ["train".to_owned()].into_iter().chain(names);
        for (name, net) in names.zip([solver.net()].into_iter().chain(solver.test_nets())) {
            let (phase, layers) =
                (net.phase().as_str_name(), net.layer_names().collect::<Vec<_>>());
            let outputs: Vec<_> = net.outputs().map(|(name, ..)| name).collect();
            let (layers, outputs) = (layers.join(","), outputs.join(","));
            lines.push(format!(
                "{name}\tname={}\tphase={phase}\tlayers={layers}\toutputs={outputs}",
                net.name()
            ));
        }
        let want = fs::read_to_string(folder.join("structure.tsv")).unwrap();
        assert_eq!(lines.join("\n"), want.trim_end(), "{}", row[0]);
        compared_count += 1;
    }
    assert_eq!(compared_count, 7);
}

/// Solver definitions that Caffe accepts and cortado refuses, each with the reason.
const ACCEPTED_ONLY_BY_CAFFE: [(&str, &str); 4] = [
    ("solver_unknown_policy_built", "lr_policy is checked before the first step"),
    ("poly_no_max_iter", "the learning rate would be 0/0"),
    ("unknown_regularization_no_decay", "regularization_type is checked even without weight decay"),
    ("iter_size_zero", "the loss would be 0/0"),
];

/// Minimum number of results that the test must compare with Caffe's verdicts.
const MIN_VERDICTS: usize = 36;

/// Solver definitions that Caffe refuses, each with a part of the error message that cortado must
/// return.
const REFUSED: [(&str, &str); 26] = [
    ("solver_no_net", "definitions of the train net"),
    ("solver_two_nets", "definitions of the train net"),
    ("solver_missing_net_file", "/nonexistent/net.prototxt"),
    ("solver_test_iter_no_net", "test_iter: expected one entry per test net (0), found 1"),
    ("solver_test_net_no_iter", "test_iter: expected one entry per test net (1), found 0"),
    ("solver_test_no_interval", "positive test_interval"),
    ("solver_test_state_count", "test_state: expected one entry per test net (2), found 1"),
    ("solver_unknown_type", "unknown solver type `sgd`"),
    ("solver_type_both", "solver_type"),
    ("solver_adagrad_momentum", "momentum 0.9: not supported by AdaGrad"),
    ("solver_rmsprop_momentum", "momentum 0.9: not supported by RMSProp"),
    ("solver_rmsprop_decay_one", "rms_decay 1 "),
    ("solver_rmsprop_decay_negative", "rms_decay -0.1 "),
    ("solver_average_loss_zero", "average_loss must be positive"),
    ("solver_snapshot_dir", "snapshot_prefix"),
    ("solver_unknown_field", "learning_rate"),
    ("solver_missing_weights", "/nonexistent/w.caffemodel"),
    ("step_unknown_policy", "unknown lr_policy `cosine`"),
    ("step_no_policy", "unknown lr_policy ``"),
    ("step_no_stepsize", "stepsize"),
    ("step_gamma_negative", "gamma of at least 0"),
    ("exp_gamma_negative", "gamma of at least 0"),
    ("inv_gamma_negative", "gamma of at least 0"),
    ("multistep_gamma_negative", "gamma of at least 0"),
    ("sigmoid_no_stepsize", "stepsize"),
    ("unknown_regularization", "unknown regularization_type `L3`"),
];

/// Solver definitions that Caffe refuses and cortado accepts: only with a negative gamma does the
/// policy `sigmoid` lower the learning rate, as it should.
const ACCEPTED_ONLY_BY_CORTADO: [&str; 1] = ["sigmoid_gamma_negative"];

#[test]
fn solvers_are_refused_as_by_caffe() {
    let Some(set) = testdata("golden/nets/refused", "the comparison of refused solvers with Caffe")
    else {
        return;
    };
    let (mut compared_count, mut failures) = (0, Vec::new());
    for row in table(&set.join("verdicts.tsv")) {
        let [name, kind, verdict, _, message, ..] = &row[..] else { panic!("{row:?}") };
        if !kind.starts_with("solver") {
            continue;
        }
        let part = REFUSED.iter().find(|(refused, _)| refused == name).map(|(_, part)| *part);
        let only_caffe_accepts = ACCEPTED_ONLY_BY_CAFFE.iter().any(|(refused, _)| refused == name);
        let outcome = try_solver(&set.join(format!("{name}.prototxt")), kind == "solver_step");
        if outcome.as_ref().is_err_and(|e| matches!(e.root(), Error::UnknownLayer { .. })) {
            continue;
        }
        compared_count += 1;
        match (outcome, part) {
            (Err(error), Some(part)) if verdict != "accept" && error.to_string().contains(part) => {
            }
            (Err(_), _) if verdict == "accept" && only_caffe_accepts => {}
            (Ok(_), None) if ACCEPTED_ONLY_BY_CORTADO.contains(&&name[..]) => {}
            (Ok(result), _)
                if verdict == "accept" && !only_caffe_accepts && message.starts_with(&result) => {}
            (outcome, _) => failures.push(format!("{name}, {verdict}: {outcome:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(compared_count >= MIN_VERDICTS, "compared only {compared_count} of Caffe's verdicts");
}

#[test]
fn a_test_interval_of_0_trains_without_tests() {
    let folder = folder("no_tests");
    for rest in
        ["test_interval: 0", "test_iter: 3 test_interval: 0", "test_iter: 0 test_interval: 0"]
    {
        let param = definition(&format!("{rest} test_initialization: true max_iter: 2"), &folder);
        let mut solver = Solver::<f32>::new(param, &*CPU).unwrap();
        assert_eq!(solver.test_nets().count(), 0);
        let events = record(&mut solver, |event| match event {
            Event::Testing { .. } => Some("testing".to_owned()),
            Event::Finished { iteration, .. } => Some(format!("finished {iteration}")),
            _ => None,
        });
        solver.solve().unwrap();
        assert_eq!(*events.lock().unwrap(), ["finished 2"]);
    }
}

/// Builds a solver, and performs one solver update if `step` is `true`. Returns the result in the
/// format in which the golden file records Caffe's result.
fn try_solver(path: &Path, step: bool) -> Result<String> {
    let mut solver = Solver::<f32>::from_file(path, &*CPU)?;
    if !step {
        return Ok("-".into());
    }
    for (name, blob) in solver.net().blobs() {
        if ["x", "t"].contains(&name) {
            let mut data = blob.data_mut()?;
            (0..).zip(data.host_mut()?).for_each(|(k, value)| *value = 0.1 * (k % 7) as f32);
        }
    }
    let results = record(&mut solver, |event| match *event {
        Event::Iterated { loss, rate, .. } => {
            Some(format!("loss={loss:.4} rate={} params_finite=1", rate as f32))
        }
        _ => None,
    });
    solver.step(1)?;
    assert!(weights(&solver).iter().all(|weight| weight.is_finite()));
    Ok(format!("iter={} {}", solver.iteration(), results.lock().unwrap()[0]))
}

/// Custom solver method that subtracts the learning rate times the sign of the gradient, and
/// computes only with kernels of the library.
struct SignDescent;

impl<T: Element> Method<T> for SignDescent {
    fn histories(&self) -> usize {
        0
    }

    fn update(&mut self, update: &UpdateParams, param: &LearnableParam<'_, T>) -> Result<()> {
        param.regularize(update)?;
        let (mut w, mut dw) = (param.blob.data_mut()?, param.blob.diff_mut()?);
        let device = param.blob.device();
        device.unary(Unary::Sign, Src::InPlace, dw.view_mut())?;
        device.axpy(T::acc(-update.rate), dw.view(), w.view_mut())
    }
}

/// Compares the custom solver method with the first AdaGrad update with a `delta` of 0, which also
/// uses only the sign of the gradient. The test covers both regularization types, a clipped
/// gradient and weight decay.
#[test]
fn a_custom_solver_method_equals_the_fused_update_kernel() {
    fn check<D: Device>(device: &D) {
        let folder = folder(&format!("custom-{}", device.name()));
        for regularization in ["L1", "L2"] {
            let rest = format!(
                "weight_decay: 0.01 regularization_type: \"{regularization}\" iter_size: 2
                 clip_gradients: 0.5"
            );
            let run = |kind: &str| {
                let methods = MethodRegistry::standard()
                    .with("SignDescent", |_| Ok(SignDescent))
                    .with("FirstStep", |_| Ok(UpdateRule::<f32>::AdaGrad { delta: 0.0 }));
                let mut param = definition(&rest, &folder);
                param.r#type = Some(kind.into());
                let mut solver =
                    Solver::<f32>::builder(device).methods(methods).build(param).unwrap();
                solver.step(1).unwrap();
                weights(&solver)
            };
            let pairs = run("SignDescent").into_iter().zip(run("FirstStep"));
            assert!(pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-6);
        }
    }
    check(&*CPU);
    check(&SimulatedDevice::new());
    let error = MethodRegistry::<f32>::standard()
        .with("SignDescent", |_| Ok(SignDescent))
        .make(&SolverParameter { r#type: Some("SignDecent".into()), ..Default::default() })
        .err()
        .unwrap();
    let known_types = "known types: AdaDelta, AdaGrad, Adam, Nesterov, RMSProp, SGD, SignDescent";
    assert!(error.to_string().contains(known_types), "{error}");
}

/// After a solver has diverged, each call of `step` must fail, even if the solver cannot write a
/// snapshot.
#[test]
fn every_step_of_a_diverged_solver_fails() {
    let folder = folder("diverged").join("later");
    fs::create_dir(&folder).unwrap();
    let mut param = definition("snapshot: 100 max_iter: 9", &folder);
    param.base_lr = Some(f32::NAN);
    let mut solver = Solver::<f32>::new(param, &*CPU).unwrap();
    for removed in [false, true] {
        if removed {
            fs::remove_dir_all(&folder).unwrap();
        }
        let error = solver.step(9).unwrap_err();
        assert!(matches!(error, Error::Diverged(_)), "{error}");
        assert_eq!(error.to_string().contains("no snapshot for inspection"), removed, "{error}");
        assert_eq!(solver.iteration(), 1);
    }
}

/// An observer removes the folder of the snapshots before the first snapshot, and creates it again
/// before the second.
#[test]
fn training_goes_on_after_a_snapshot_that_cannot_be_written() {
    for (last, expected) in [(8, Ok(())), (6, Err(()))] {
        let folder = folder("snapshot-failure").join("later");
        fs::create_dir(&folder).unwrap();
        let mut solver = solver::<f32>(&format!("snapshot: 4 max_iter: {last}"), &folder);
        solver.add_observer({
            let folder = folder.clone();
            move |event| match event {
                Event::Iterated { iteration: 1, .. } => fs::remove_dir(&folder).unwrap(),
                Event::Iterated { iteration: 7, .. } => fs::create_dir(&folder).unwrap(),
                _ => {}
            }
        });
        let result = solver.solve();
        assert_eq!(result.as_ref().map_err(drop), expected.as_ref().map_err(drop), "{result:?}");
        assert_eq!(solver.iteration(), last);
        assert!(!folder.join("snap_iter_4.caffemodel").exists());
        assert_eq!(folder.join("snap_iter_8.caffemodel").exists(), last == 8);
        if let Err(error) = result {
            assert!(error.to_string().contains("snap_iter_6.caffemodel: No such file"), "{error}");
        }
    }
}

#[test]
fn a_snapshot_of_another_solver_or_net_is_refused_without_changes() {
    let folder = folder("another");
    let mut sgd = solver::<f32>("type: \"SGD\" momentum: 0.9", &folder);
    sgd.step(2).unwrap();
    let (_, state) = sgd.snapshot().unwrap();
    let mut adam = solver::<f32>("type: \"Adam\" momentum: 0.9", &folder);
    let old_weights = weights(&adam);
    let error = adam.restore(&state).unwrap_err().to_string();
    for part in ["solverstate", "found 2 blobs", "2 blobs for each of 2 parameters", "another type"]
    {
        assert!(error.contains(part), "error does not contain `{part}`: {error}");
    }
    let mut param = definition("momentum: 0.9", &folder);
    let net = param.net_param.as_mut().unwrap();
    net.layer[1].inner_product_param.as_mut().unwrap().num_output = Some(12);
    let mut wide_solver = Solver::<f32>::new(param, &*CPU).unwrap();
    let error = wide_solver.restore(&state).unwrap_err();
    assert!(matches!(error.root(), Error::Shape(_)), "{error}");
    for part in ["solverstate", "parameter 0 of layer `ip`", "[10, 784]", "[12, 784]"] {
        assert!(error.to_string().contains(part), "error does not contain `{part}`: {error}");
    }
    assert_eq!((adam.iteration(), weights(&adam)), (0, old_weights));
    sgd.restore(&state).unwrap();

    // `restore` finds a weights file that was moved together with the solver state file.
    let moved_folder = folder.join("moved");
    fs::create_dir(&moved_folder).unwrap();
    for file in ["snap_iter_2.caffemodel", "snap_iter_2.solverstate"] {
        fs::rename(folder.join(file), moved_folder.join(file)).unwrap();
    }
    sgd.restore(moved_folder.join("snap_iter_2.solverstate")).unwrap();
    fs::remove_file(moved_folder.join("snap_iter_2.caffemodel")).unwrap();
    // If the weights file is missing, `restore` must leave the solver unchanged, including its
    // momentum.
    let [mut failed_solver, mut untouched_solver] = [(); 2].map(|()| {
        let mut solver = solver::<f32>("type: \"SGD\" momentum: 0.9", &folder);
        solver.step(3).unwrap();
        solver
    });
    let error = failed_solver
        .restore(moved_folder.join("snap_iter_2.solverstate"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("snap_iter_2.caffemodel: No such file"), "{error}");
    for solver in [&mut failed_solver, &mut untouched_solver] {
        solver.step(2).unwrap();
    }
    assert_eq!(failed_solver.iteration(), 5);
    assert!(
        weights(&failed_solver) == weights(&untouched_solver),
        "a failed restore must not change weights or momentum"
    );
}

#[test]
fn weights_that_a_solver_definition_names_are_copied() {
    let folder = folder("weights");
    let mut first = solver::<f32>("", &folder);
    first.step(3).unwrap();
    let (model, state) = first.snapshot().unwrap();
    let mut param = definition("", &folder);
    param.random_seed = Some(4);
    let other_solver = Solver::<f32>::new(param.clone(), &*CPU).unwrap();
    assert_ne!(weights(&other_solver), weights(&first));
    param.weights = vec![format!("{0}, {0}", model.display())];
    assert_eq!(weights(&Solver::<f32>::new(param.clone(), &*CPU).unwrap()), weights(&first));
    param.weights = vec![state.display().to_string()];
    let error = Solver::<f32>::new(param, &*CPU).err().unwrap().to_string();
    assert!(error.contains("solverstate: found a solver state, expected trained"), "{error}");
}

/// The solver calls the action function before each test batch.
#[test]
fn a_stop_action_ends_a_test_pass_before_its_next_batch() {
    let folder = folder("stop");
    let rest = "test_iter: 1000000 test_iter: 1000000 test_interval: 2 max_iter: 10";
    let mut param = definition(rest, &folder);
    param.snapshot_after_train = Some(true);
    let mut solver = Solver::<f32>::new(param, &*CPU).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    solver.set_action_function(move || match counter.fetch_add(1, Relaxed) {
        2 => Action::Snapshot,
        4 => Action::Stop,
        _ => Action::Continue,
    });
    let events = record(&mut solver, |event| match event {
        Event::Testing { net, .. } => Some(format!("testing {net}")),
        Event::Interrupted { iteration, net } => Some(format!("interrupted {net} at {iteration}")),
        Event::Snapshot { .. } => Some("snapshot".into()),
        Event::Finished { early, .. } => Some(format!("finished, early: {early}")),
        _ => None,
    });
    solver.solve().unwrap();
    // The solver calls the action function five times during the first test. The solver writes the
    // second snapshot after training.
    let want = ["testing 0", "snapshot", "interrupted 0 at 0", "snapshot", "finished, early: true"];
    assert_eq!(*events.lock().unwrap(), want);
    assert_eq!((calls.load(Relaxed), solver.iteration()), (5, 0));
}

#[test]
fn displayed_losses_are_averages_including_the_final_loss() {
    let folder = folder("average");
    let mut solver = solver::<f32>("average_loss: 3 max_iter: 6 display: 6", &folder);
    let iterations = record(&mut solver, |event| match *event {
        Event::Iterated { loss, smoothed, .. } => Some((loss, smoothed)),
        _ => None,
    });
    let final_losses = record(&mut solver, |event| match *event {
        Event::Finished { loss, .. } => loss,
        _ => None,
    });
    solver.solve().unwrap();
    let iterations = iterations.lock().unwrap();
    let losses: Vec<f64> = iterations.iter().map(|(loss, _)| *loss).collect();
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / 3.0;
    let next_loss = solver.net_mut().forward().unwrap();
    assert!((iterations[5].1 - mean(&losses[3..])).abs() < 1e-9);
    assert!(
        (final_losses.lock().unwrap()[0] - mean(&[losses[4], losses[5], next_loss])).abs() < 1e-9
    );
}

/// The event `Clipped` must contain the norm and the scale factor of the gradient, and the solver
/// update must use the clipped gradient.
#[test]
fn a_gradient_above_the_limit_is_clipped() {
    let folder = folder("clip");
    let mut solver = solver::<f64>("clip_gradients: 0.125", &folder);
    let clip_events = record(&mut solver, |event| match *event {
        Event::Clipped { norm, limit, scale, .. } => Some((norm, limit, scale)),
        _ => None,
    });
    let old_weights = weights(&solver);
    solver.step(1).unwrap();
    let pairs = weights(&solver).into_iter().zip(old_weights);
    let squared_distance = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let (norm, limit, scale) = clip_events.lock().unwrap()[0];
    assert_eq!((limit, scale), (0.125, 0.125 / norm));
    assert!((squared_distance.sqrt() - 0.125 * f64::from(0.05f32)).abs() < 1e-9);
}

#[test]
fn training_in_16_bits_reduces_the_loss_like_training_in_f32() {
    fn losses<T: Element>() -> Vec<f64> {
        let mut net = proto::read_net("examples/digits/lenet.prototxt").unwrap();
        net.layer[0].data_param.as_mut().unwrap().batch_size = Some(16);
        for layer in &mut net.layer {
            if let Some(param) = &mut layer.convolution_param {
                param.num_output = Some(8);
            }
        }
        let mut param = proto::read_solver("examples/digits/solver.prototxt").unwrap();
        (param.net, param.train_net_param, param.test_iter) = (None, Some(net), Vec::new());
        param.snapshot_after_train = Some(false);
        let mut solver = Solver::<T>::new(param, &CpuDevice::new()).unwrap();
        let losses = record(&mut solver, |event| match *event {
            Event::Iterated { loss, .. } => Some(loss),
            _ => None,
        });
        solver.step(32).unwrap();
        losses.lock().unwrap().clone()
    }
    let (f32_losses, bf16_losses) = (losses::<f32>(), losses::<bf16>());
    let final_mean = |losses: &[f64]| losses[24..].iter().sum::<f64>() / 8.0;
    let (f32_final, bf16_final) = (final_mean(&f32_losses), final_mean(&bf16_losses));
    assert!(f32_final < 0.75 * f32_losses[0], "{f32_losses:?}");
    let difference = (bf16_final - f32_final).abs();
    assert!(difference < 0.05 * f32_losses[0], "{bf16_losses:?}\n{f32_losses:?}");
}

/// Solver updates that are too small to change 16-bit weights accumulate in the master weights.
#[test]
fn snapshots_of_16_bit_nets_contain_the_master_weights() {
    fn check<T: Element>(kind: &str) {
        let folder = folder(&format!("masters-{}-{kind}", T::DTYPE.name()));
        let rest = format!("type: \"{kind}\" snapshot: 4");
        let mut uninterrupted_solver = solver::<T>(&rest, &folder);
        uninterrupted_solver.step(8).unwrap();
        let (model, _) = uninterrupted_solver.snapshot().unwrap();
        let saved_net = proto::read_trained_net(&model).unwrap();
        let master_weights = &saved_net.layer[1].blobs[0].data;
        let rounded_weights = master_weights.iter().map(|&v| T::from_f64(v.into()).to_f64());
        assert!(
            rounded_weights
                .eq(weights(&uninterrupted_solver)[..master_weights.len()].iter().copied())
        );
        assert!(master_weights.iter().any(|&v| T::from_f64(v.into()).to_f64() != f64::from(v)));

        let mut resumed_solver = solver::<T>(&rest, &folder);
        resumed_solver.restore(folder.join("snap_iter_4.solverstate")).unwrap();
        resumed_solver.step(4).unwrap();
        let (model, _) = resumed_solver.snapshot().unwrap();
        assert!(proto::read_trained_net(&model).unwrap() == saved_net, "{kind}");
    }
    for kind in ["SGD", "Adam"] {
        check::<bf16>(kind);
        check::<f16>(kind);
    }
}
