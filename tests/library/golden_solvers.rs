//! Compares training runs with Caffe's, and reads and writes snapshots in Caffe's format.

use crate::golden::{Tolerances, golden};
use crate::support::{table, testdata};
use cortado::{
    Blob, CpuDevice, Device, Element, Error, Net, Solver,
    device::SimulatedDevice,
    proto::{self, BlobProto, NetParameter, SolverState},
    solver::{Event, LrPolicy},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

#[test]
fn training_runs_on_the_cpu_in_f32_match_caffe() {
    compare_all_runs::<f32, _>("f32", &CpuDevice::new());
}

#[test]
fn training_runs_on_the_cpu_in_f64_match_caffe() {
    compare_all_runs::<f64, _>("f64", &CpuDevice::new());
}

#[test]
fn training_runs_on_the_simulated_device_match_caffe() {
    compare_all_runs::<f32, _>("simulated", &SimulatedDevice::new());
}

/// The comparison of learning rates includes golden cases whose layers cortado does not support.
#[test]
fn learning_rates_of_all_policies_match_caffe() {
    let Some(set) = testdata("golden/solvers", "the comparison of learning rates with Caffe")
    else {
        return;
    };
    let tolerances = Tolerances::read(&set);
    let mut policies = BTreeSet::new();
    for row in table(&set.join("cases.tsv")) {
        let folder = set.join(&row[0]);
        let param = proto::read_solver(folder.join("solver.prototxt")).unwrap();
        let policy = LrPolicy::new(&param).unwrap();
        let got: Vec<f64> = (0..25).map(|iteration| policy.rate_at(iteration)).collect();
        let blobs = golden(&folder);
        let (_, _, want) = blobs.iter().find(|(kind, ..)| kind == "lr").unwrap();
        tolerances.compare((&row[0], "lr", "-"), &got, &want.data).unwrap();
        policies.insert(param.lr_policy().to_owned());
    }
    let all_policies = ["exp", "fixed", "inv", "multistep", "poly", "sigmoid", "step"];
    assert_eq!(policies.iter().collect::<Vec<_>>(), all_policies);
}

fn compare_all_runs<T: Element, D: Device>(name: &str, device: &D) {
    let Some(set) = testdata("golden/solvers", "the comparison of training runs with Caffe") else {
        return;
    };
    let tolerances = Tolerances::read(&set);
    let (mut passed, mut wrong) = (0, Vec::new());
    let cases = table(&set.join("cases.tsv"));
    for row in &cases {
        let case = Case::read(&set.join(&row[0]), &row[0], name, device);
        match case.build::<T>().map_err(|error| error.root().to_string()) {
            Err(reason) if reason.starts_with("unknown layer type") => continue,
            _ => {}
        }
        match case.check::<T>(&tolerances) {
            Ok(()) => passed += 1,
            Err(reason) => wrong.push(format!("{}: {reason}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passed + wrong.len(), wrong.join("\n"));
    assert_eq!(passed, cases.len(), "some golden cases have layers of unknown types");
}

struct Case<D: Device> {
    name: String,
    device: D,
    /// Whether the training run is that of `f32` on the CPU.
    is_reference: bool,
    /// Folder of the golden case, with the files that Caffe wrote.
    folder: PathBuf,
    /// Folder to which this test writes its snapshots.
    output: PathBuf,
    blobs: Vec<(String, String, BlobProto)>,
}

/// Loss, smoothed loss and learning rate of each iteration.
type Iterations = Arc<Mutex<Vec<[f64; 3]>>>;

impl<D: Device> Case<D> {
    fn read(folder: &Path, name: &str, run: &str, device: &D) -> Self {
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("solvers").join(run).join(name);
        fs::create_dir_all(&output).unwrap();
        let (folder, device) = (folder.to_path_buf(), device.clone());
        let (name, is_reference, blobs) = (name.into(), run == "f32", golden(&folder));
        Self { name, device, is_reference, folder, output, blobs }
    }

    /// Returns the names and values of all blobs of the kind `kind` in the golden case.
    fn blobs(&self, kind: &str) -> impl Iterator<Item = (&str, &BlobProto)> {
        let of_kind = self.blobs.iter().filter(move |(k, _, _)| k == kind);
        of_kind.map(|(_, name, blob)| (name.as_str(), blob))
    }

    /// Builds the solver with Caffe's initial weights and inputs. Training appends the losses and
    /// the learning rate of each iteration to the returned list.
    fn build<T: Element>(&self) -> cortado::Result<(Solver<T>, Iterations)> {
        let mut param = proto::read_solver(self.folder.join("solver.prototxt"))?;
        let join = |folder: &Path, file: &str| folder.join(file).to_string_lossy().into_owned();
        param.net = param.net.map(|net| join(&self.folder, &net));
        param.snapshot_prefix = Some(join(&self.output, "snap"));
        let mut solver = Solver::new(param, &self.device)?;
        let initial_net = proto::read_trained_net(self.folder.join("init.caffemodel"))?;
        solver.net_mut().copy_trained_from(&initial_net)?;
        let nets = [solver.net()].into_iter().chain(solver.test_nets());
        for net in nets {
            for (name, value) in self.blobs("input") {
                net.blob(name).unwrap().share().from_proto(value, false)?;
            }
        }
        let iterations = Iterations::default();
        let recorded_iterations = Arc::clone(&iterations);
        solver.add_observer(move |event| {
            if let Event::Iterated { loss, smoothed, rate, .. } = *event {
                recorded_iterations.lock().unwrap().push([loss, smoothed, rate]);
            }
        });
        Ok((solver, iterations))
    }

    fn check<T: Element>(&self, tolerances: &Tolerances) -> Result<(), String> {
        let compare = |kind: &str, name: &str, got: &[f64], want: &BlobProto| {
            tolerances.compare((&self.name, kind, name), got, &want.data)
        };
        let compare_params = |kind: &str, net: &Net<T>| {
            let mut params = self.blobs(kind);
            params.try_for_each(|(name, want)| compare(kind, name, &param(net, name), want))
        };
        let state = |solver: &mut Solver<T>| -> SolverState {
            let (_, state) = solver.snapshot().unwrap();
            proto::read_binary(state).unwrap()
        };

        // The first training run calls `step` several times.
        let (mut solver, iterations) = self.build::<T>().map_err(message)?;
        compare_params("param@0", solver.net())?;
        for (steps, kind) in [(1, "param@1"), (1, "param@2"), (3, "param@5"), (20, "param@25")] {
            solver.step(steps).map_err(message)?;
            compare_params(kind, solver.net())?;
        }
        let final_state = state(&mut solver);
        for (index, want) in self.blobs("history") {
            let got =
                final_state.history.get(index.parse::<usize>().unwrap()).ok_or("no history")?;
            compare("history", index, &values(got), want)?;
        }
        let weights = solver.net().to_proto(false).map_err(message)?;
        if let Some(scores) = self.blobs("test0").next().map(|_| solver.test(0)) {
            let scores = scores.map_err(message)?.unwrap();
            for (name, want) in self.blobs("test0") {
                let matching_scores = scores.iter().filter(|score| score.name == name);
                compare(
                    "test0",
                    name,
                    &matching_scores.map(|score| score.value).collect::<Vec<_>>(),
                    want,
                )?;
            }
        }
        let final_loss = solver.net_mut().forward().map_err(message)?;
        compare("final_loss", "-", &[final_loss], self.blobs("final_loss").next().unwrap().1)?;

        // The second training run performs all iterations in one call of `step`. It runs with one
        // element type on one device, because only the solver's loop distinguishes the calls.
        let iterations = if self.is_reference {
            let (mut solver, iterations) = self.build::<T>().map_err(message)?;
            solver.step(25).map_err(message)?;
            if solver.net().to_proto(false).map_err(message)? != weights {
                return Err("the weights differ between one call of `step` and several".into());
            }
            iterations
        } else {
            iterations
        };
        let iterations = iterations.lock().unwrap();
        for (i, kind) in ["loss", "smoothed_loss", "lr"].into_iter().enumerate() {
            // Each call of `step` starts a new mean of losses.
            if kind == "smoothed_loss" && !self.is_reference {
                continue;
            }
            let got: Vec<_> = iterations.iter().map(|values| values[i]).collect();
            compare(kind, "-", &got, self.blobs(kind).next().unwrap().1)?;
        }

        // A training run that resumes from a snapshot must be bit-identical to the run that wrote
        // the snapshot.
        let (mut solver, _) = self.build::<T>().map_err(message)?;
        solver.restore(self.output.join("snap_iter_10.solverstate")).map_err(message)?;
        solver.step(15).map_err(message)?;
        let resumed_weights = solver.net().to_proto(false).map_err(message)?;
        if (resumed_weights, state(&mut solver).history) != (weights, final_state.history) {
            return Err("the resumed run has different weights or history".into());
        }

        // The solver resumes from Caffe's snapshot.
        self.check_same_layout()?;
        let (mut solver, _) = self.build::<T>().map_err(message)?;
        solver.restore(self.folder.join("snap_iter_10.solverstate")).map_err(message)?;
        let (model, saved) = solver.snapshot().map_err(message)?;
        if snapshot_values(&model, &saved) != self.caffe_snapshot() {
            return Err(
                "a snapshot after resuming from Caffe's snapshot has different values".into()
            );
        }
        solver.step(15).map_err(message)?;
        compare_params("param@25", solver.net())
    }

    /// Returns the values of Caffe's snapshot after ten iterations.
    fn caffe_snapshot(&self) -> Vec<Vec<f64>> {
        let [model, state] = ["caffemodel", "solverstate"].map(|end| format!("snap_iter_10.{end}"));
        snapshot_values(&self.folder.join(model), &self.folder.join(state))
    }

    /// Fails unless the snapshots that this training run and Caffe wrote after ten iterations agree
    /// in their iteration, layers and blob shapes.
    fn check_same_layout(&self) -> Result<(), String> {
        let read = |folder: &Path| {
            let model: NetParameter =
                proto::read_binary(folder.join("snap_iter_10.caffemodel")).unwrap();
            let state: SolverState =
                proto::read_binary(folder.join("snap_iter_10.solverstate")).unwrap();
            (model, state)
        };
        let ((our_net, ours), (their_net, theirs)) = (read(&self.output), read(&self.folder));
        let describe_state = |state: &SolverState| {
            let shapes: Vec<_> = state.history.iter().map(layout).collect();
            let learned_net = Path::new(state.learned_net()).file_name().unwrap().to_owned();
            format!("{:?}", (state.iter, learned_net, state.current_step, shapes))
        };
        let describe_net = |net: &NetParameter| {
            let layer = |layer: &proto::LayerParameter| {
                let shapes: Vec<_> = layer.blobs.iter().map(layout).collect();
                (layer.name.clone(), layer.r#type.clone(), shapes)
            };
            format!("{:?}", (net.name(), net.layer.iter().map(layer).collect::<Vec<_>>()))
        };
        for (ours, theirs) in [
            (describe_state(&ours), describe_state(&theirs)),
            (describe_net(&our_net), describe_net(&their_net)),
        ] {
            if ours != theirs {
                return Err(format!(
                    "snapshot layout\n{ours}\ndiffers from Caffe's layout\n{theirs}"
                ));
            }
        }
        Ok(())
    }
}

/// Returns the values of a snapshot: the parameters of each layer, followed by the solver's
/// history.
fn snapshot_values(model: &Path, state: &Path) -> Vec<Vec<f64>> {
    let model: NetParameter = proto::read_binary(model).unwrap();
    let state: SolverState = proto::read_binary(state).unwrap();
    let weights = model.layer.iter().flat_map(|layer| &layer.blobs);
    weights.chain(&state.history).map(values).collect()
}

/// Returns a blob's shape, number of values and number of gradient elements.
fn layout(blob: &BlobProto) -> (Vec<i64>, usize, usize) {
    let shape = blob.shape.iter().flat_map(|shape| shape.dim.clone()).collect();
    let diffs = blob.diff.len() + blob.double_diff.len();
    (shape, blob.data.len() + blob.double_data.len(), diffs)
}

fn values(blob: &BlobProto) -> Vec<f64> {
    let floats = blob.data.iter().map(|&value| f64::from(value));
    floats.chain(blob.double_data.iter().copied()).collect()
}

/// Returns the values of a net's parameter with the name `<layer>.<index>`.
fn param<T: Element>(net: &Net<T>, name: &str) -> Vec<f64> {
    let (layer, index) = name.rsplit_once('.').unwrap();
    let blob: &Blob<T> = &net.layer(layer).unwrap().params()[index.parse::<usize>().unwrap()];
    blob.data().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
}

fn message(error: Error) -> String {
    error.to_string()
}
