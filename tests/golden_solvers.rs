//! Training runs beside those of real Caffe, and snapshots exchanged with it.
#![cfg(feature = "net")]

#[path = "support/golden.rs"]
mod golden;
mod support;

use cortado::{
    Blob, CpuDevice, Device, Element, Error, Net, Solver,
    device::SimulatedDevice,
    proto::{self, BlobProto, NetParameter, SolverState},
    solver::{Event, LrPolicy},
};
use golden::{Tolerances, golden};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use support::{table, testdata};

/// Cases that have to be there.
const CASES: usize = 49;

#[test]
fn f32_on_the_cpu() {
    run_all::<f32, _>("f32", &CpuDevice::new());
}

#[test]
fn f64_on_the_cpu() {
    run_all::<f64, _>("f64", &CpuDevice::new());
}

#[test]
fn f32_on_the_mirror_device() {
    run_all::<f32, _>("mirror", &SimulatedDevice::new());
}

/// The rates of every case, whatever its layers.
#[test]
fn rates_of_all_policies() {
    let Some(set) = testdata("golden/solvers", "rates of real Caffe") else { return };
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
    let all = ["exp", "fixed", "inv", "multistep", "poly", "sigmoid", "step"];
    assert_eq!(policies.iter().collect::<Vec<_>>(), all);
}

fn run_all<T: Element, D: Device>(name: &str, device: &D) {
    let Some(set) = testdata("golden/solvers", "training runs of real Caffe") else { return };
    let tolerances = Tolerances::read(&set);
    let (mut passed, mut wrong) = (0, Vec::new());
    for row in table(&set.join("cases.tsv")) {
        let case = Case::read(&set.join(&row[0]), &row[0], name, device);
        match case.built::<T>().map_err(|error| error.root().to_string()) {
            Err(why) if why.starts_with("unknown layer type") => continue,
            _ => {}
        }
        match case.check::<T>(&tolerances) {
            Ok(()) => passed += 1,
            Err(why) => wrong.push(format!("{}: {why}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passed + wrong.len(), wrong.join("\n"));
    assert!(passed >= CASES, "only {passed} cases ran");
}

/// A golden case.
struct Case<D: Device> {
    name: String,
    device: D,
    /// Caffe's files.
    folder: PathBuf,
    /// Where snapshots go.
    own: PathBuf,
    blobs: Vec<(String, String, BlobProto)>,
}

/// What a solver told of each iteration: objective, smoothed, rate.
type Told = Arc<Mutex<Vec<[f64; 3]>>>;

impl<D: Device> Case<D> {
    fn read(folder: &Path, name: &str, run: &str, device: &D) -> Self {
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("solvers").join(run).join(name);
        fs::create_dir_all(&own).unwrap();
        let (folder, device) = (folder.to_path_buf(), device.clone());
        Self { name: name.into(), device, own, blobs: golden(&folder), folder }
    }

    /// The golden blobs of one kind.
    fn of(&self, kind: &str) -> impl Iterator<Item = (&str, &BlobProto)> {
        let of_kind = self.blobs.iter().filter(move |(k, _, _)| k == kind);
        of_kind.map(|(_, name, blob)| (name.as_str(), blob))
    }

    /// The solver as Caffe started it.
    fn built<T: Element>(&self) -> cortado::Result<(Solver<T, D>, Told)> {
        let mut param = proto::read_solver(self.folder.join("solver.prototxt"))?;
        let inside = |folder: &Path, file: &str| folder.join(file).to_string_lossy().into_owned();
        param.net = param.net.map(|net| inside(&self.folder, &net));
        param.snapshot_prefix = Some(inside(&self.own, "snap"));
        let mut solver = Solver::new(param, &self.device)?;
        let init = proto::read_trained_net(self.folder.join("init.caffemodel"))?;
        solver.net_mut().copy_trained_from(&init)?;
        let nets = [solver.net()].into_iter().chain(solver.test_nets());
        for net in nets {
            for (name, value) in self.of("input") {
                net.blob(name).unwrap().share().from_proto(value, false)?;
            }
        }
        let told = Told::default();
        let tell = Arc::clone(&told);
        solver.add_observer(move |event| {
            if let Event::Iterated { loss, smoothed, rate, .. } = *event {
                tell.lock().unwrap().push([loss, smoothed, rate]);
            }
        });
        Ok((solver, told))
    }

    fn check<T: Element>(&self, tolerances: &Tolerances) -> Result<(), String> {
        let compare = |kind: &str, name: &str, got: &[f64], want: &BlobProto| {
            tolerances.compare((&self.name, kind, name), got, &want.data)
        };
        let compare_params = |kind: &str, net: &Net<T, D>| {
            let mut params = self.of(kind);
            params.try_for_each(|(name, want)| compare(kind, name, &param(net, name), want))
        };
        let state = |solver: &mut Solver<T, D>| -> SolverState {
            let (_, state) = solver.snapshot().unwrap();
            proto::read_binary(state).unwrap()
        };

        // Step by step.
        let (mut solver, _) = self.built::<T>().map_err(said)?;
        compare_params("param@0", solver.net())?;
        for (steps, kind) in [(1, "param@1"), (1, "param@2"), (3, "param@5"), (20, "param@25")] {
            solver.step(steps).map_err(said)?;
            compare_params(kind, solver.net())?;
        }
        let end = state(&mut solver);
        for (index, want) in self.of("history") {
            let got = end.history.get(index.parse::<usize>().unwrap()).ok_or("no history")?;
            compare("history", index, &values(got), want)?;
        }
        let weights = solver.net().to_proto(false).map_err(said)?;
        if let Some(scores) = self.of("test0").next().map(|_| solver.test(0)) {
            let scores = scores.map_err(said)?.unwrap();
            for (name, want) in self.of("test0") {
                let named = scores.iter().filter(|score| score.name == name);
                compare("test0", name, &named.map(|score| score.value).collect::<Vec<_>>(), want)?;
            }
        }
        let final_loss = solver.net_mut().forward().map_err(said)?;
        compare("final_loss", "-", &[final_loss], self.of("final_loss").next().unwrap().1)?;

        // At one go.
        let (mut solver, told) = self.built::<T>().map_err(said)?;
        solver.step(25).map_err(said)?;
        let told = told.lock().unwrap();
        for (i, kind) in ["loss", "smoothed_loss", "lr"].into_iter().enumerate() {
            let got: Vec<_> = told.iter().map(|told| told[i]).collect();
            compare(kind, "-", &got, self.of(kind).next().unwrap().1)?;
        }
        if solver.net().to_proto(false).map_err(said)? != weights {
            return Err("in steps the weights are others".into());
        }

        // From its own snapshot, to the same bits.
        let (mut solver, _) = self.built::<T>().map_err(said)?;
        solver.restore(self.own.join("snap_iter_10.solverstate")).map_err(said)?;
        solver.step(15).map_err(said)?;
        let resumed = solver.net().to_proto(false).map_err(said)?;
        if (resumed, state(&mut solver).history) != (weights, end.history) {
            return Err("resumed, the weights or the history are others".into());
        }

        // From Caffe's.
        self.same_form()?;
        let (mut solver, _) = self.built::<T>().map_err(said)?;
        solver.restore(self.folder.join("snap_iter_10.solverstate")).map_err(said)?;
        let (model, saved) = solver.snapshot().map_err(said)?;
        if held(&model, &saved) != self.caffes() {
            return Err("what was read from Caffe's snapshot is not what is written".into());
        }
        solver.step(15).map_err(said)?;
        compare_params("param@25", solver.net())
    }

    /// The values of Caffe's snapshot after ten iterations.
    fn caffes(&self) -> Vec<Vec<f64>> {
        let [model, state] = ["caffemodel", "solverstate"].map(|end| format!("snap_iter_10.{end}"));
        held(&self.folder.join(model), &self.folder.join(state))
    }

    /// Both snapshots after ten iterations hold the same, apart from the values.
    fn same_form(&self) -> Result<(), String> {
        let read = |folder: &Path| {
            let model: NetParameter =
                proto::read_binary(folder.join("snap_iter_10.caffemodel")).unwrap();
            let state: SolverState =
                proto::read_binary(folder.join("snap_iter_10.solverstate")).unwrap();
            (model, state)
        };
        let ((our_net, ours), (their_net, theirs)) = (read(&self.own), read(&self.folder));
        let of_state = |state: &SolverState| {
            let shapes: Vec<_> = state.history.iter().map(form).collect();
            let learned = Path::new(state.learned_net()).file_name().unwrap().to_owned();
            format!("{:?}", (state.iter, learned, state.current_step, shapes))
        };
        let of_net = |net: &NetParameter| {
            let layer = |layer: &proto::LayerParameter| {
                let shapes: Vec<_> = layer.blobs.iter().map(form).collect();
                (layer.name.clone(), layer.r#type.clone(), shapes)
            };
            format!("{:?}", (net.name(), net.layer.iter().map(layer).collect::<Vec<_>>()))
        };
        for (ours, theirs) in
            [(of_state(&ours), of_state(&theirs)), (of_net(&our_net), of_net(&their_net))]
        {
            if ours != theirs {
                return Err(format!("a snapshot of the form\n{ours}\nnot\n{theirs}"));
            }
        }
        Ok(())
    }
}

/// The values of a snapshot: of each parameter of each layer, and of the history.
fn held(model: &Path, state: &Path) -> Vec<Vec<f64>> {
    let model: NetParameter = proto::read_binary(model).unwrap();
    let state: SolverState = proto::read_binary(state).unwrap();
    let weights = model.layer.iter().flat_map(|layer| &layer.blobs);
    weights.chain(&state.history).map(values).collect()
}

/// Shape, number of values and of gradients.
fn form(blob: &BlobProto) -> (Vec<i64>, usize, usize) {
    let shape = blob.shape.iter().flat_map(|shape| shape.dim.clone()).collect();
    let diffs = blob.diff.len() + blob.double_diff.len();
    (shape, blob.data.len() + blob.double_data.len(), diffs)
}

fn values(blob: &BlobProto) -> Vec<f64> {
    let floats = blob.data.iter().map(|&value| f64::from(value));
    floats.chain(blob.double_data.iter().copied()).collect()
}

/// The values of a parameter called `layer.index`.
fn param<T: Element, D: Device>(net: &Net<T, D>, name: &str) -> Vec<f64> {
    let (layer, index) = name.rsplit_once('.').unwrap();
    let blob: &Blob<T, D> = &net.layer(layer).unwrap().params()[index.parse::<usize>().unwrap()];
    blob.data().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
}

fn said(error: Error) -> String {
    error.to_string()
}
