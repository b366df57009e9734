//! Layers and small nets, forward and backward, beside results of real Caffe.
#![cfg(feature = "net")]

#[path = "support/golden.rs"]
mod golden;
mod support;

use cortado::{
    Blob, CpuDevice, Device, Element, Error, LayerRegistry, Memory, Net,
    device::SimulatedDevice,
    proto::{self, BlobProto, NetParameter},
};
use golden::{Tolerances, golden};
use std::path::Path;
use support::{table, testdata};

/// Cases in which gradients are right where Caffe's are not: docs/decisions/0013.
const RIGHT_IN_PLACE: [&str; 3] = ["bnll_inplace", "clip_inplace", "power_inplace_linear"];

/// Memory that is reached only by copies; all kernels run on the host.
#[derive(Clone, Debug)]
struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> cortado::Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> cortado::Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> cortado::Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

cortado::families!(Remote);

#[test]
fn f32_on_the_cpu() {
    run_all::<f32, _>(&CpuDevice::new());
}

#[test]
fn f64_on_the_cpu() {
    run_all::<f64, _>(&CpuDevice::new());
}

#[test]
fn f32_on_a_discrete_device() {
    run_all::<f32, _>(&Remote);
}

#[test]
fn f32_on_the_mirror_device() {
    run_all::<f32, _>(&SimulatedDevice::new());
}

fn run_all<T: Element, D: Device>(device: &D) {
    let Some(set) = testdata("golden/layers", "the layers of real Caffe") else { return };
    let tolerances = Tolerances::read(&set);
    let registry = LayerRegistry::<T, D>::standard();
    let known: Vec<&str> = registry.kinds().collect();
    let (mut passed, mut wrong) = (0, Vec::new());
    for row in table(&set.join("cases.tsv")) {
        let (case, forwards, backward) = (&row[0], row[4].parse().unwrap(), row[5] == "1");
        if !row[2].split(',').all(|kind| known.contains(&kind)) {
            continue;
        }
        let built = Case::<T, D>::build(&set.join(case), device);
        let checked = built.and_then(|mut run| match row[6].contains("random") {
            true => run.check_dropout(case, &tolerances),
            false => run.check(case, &tolerances, forwards, backward),
        });
        match checked {
            Ok(()) => passed += 1,
            Err(why) => wrong.push(format!("{case}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), passed + wrong.len(), wrong.join("\n"));
    assert!(passed >= 445, "only {passed} cases ran");
}

/// A golden case and the net that has to reproduce it.
struct Case<T: Element, D: Device> {
    net: Net<T, D>,
    blobs: Vec<(String, String, BlobProto)>,
}

impl<T: Element, D: Device> Case<T, D> {
    fn build(folder: &Path, device: &D) -> Result<Self, String> {
        let mut definition: NetParameter = proto::read_net(folder.join("net.prototxt")).unwrap();
        for layer in &mut definition.layer {
            // Files lie beside the net.
            if let Some(infogain) = &mut layer.infogain_loss_param {
                let beside = |file| folder.join(file).display().to_string();
                infogain.source = infogain.source.take().map(beside);
            }
        }
        let net = Net::builder(device).build(&definition).map_err(said)?;
        Ok(Self { net, blobs: golden(folder) })
    }

    /// The golden blobs of one kind.
    fn of(&self, kind: &str) -> Vec<(String, BlobProto)> {
        let of_kind = self.blobs.iter().filter(|(k, _, _)| k == kind);
        of_kind.map(|(_, name, blob)| (name.clone(), blob.clone())).collect()
    }

    fn blob(&self, name: &str) -> Result<&Blob<T, D>, String> {
        self.net.blob(name).ok_or_else(|| format!("there is no blob `{name}`"))
    }

    /// A parameter called `layer.index`.
    fn param(&self, name: &str) -> Result<Blob<T, D>, String> {
        let (layer, index) = name.rsplit_once('.').unwrap();
        let missing = || format!("there is no parameter `{name}`");
        let layer = self.net.layer(layer).ok_or_else(missing)?;
        let param = layer.params().get(index.parse::<usize>().unwrap()).ok_or_else(missing)?;
        Ok(param.share())
    }

    fn set_inputs(&mut self, kind: &str) -> Result<(), String> {
        for (name, value) in self.of(kind) {
            self.net
                .blob_mut(&name)
                .ok_or("no such input")?
                .from_proto(&value, true)
                .map_err(said)?;
        }
        Ok(())
    }

    fn check(
        &mut self,
        case: &str,
        tolerances: &Tolerances,
        forwards: usize,
        backward: bool,
    ) -> Result<(), String> {
        for (name, value) in self.of("param") {
            self.param(&name)?.from_proto(&value, false).map_err(said)?;
        }
        let mut losses = Vec::new();
        for _ in 0..forwards {
            self.set_inputs("input")?;
            losses.push(self.net.forward().map_err(said)?);
        }
        let compare = |kind: &str, name: &str, got: &[f64], want: &BlobProto| {
            tolerances.compare((case, kind, name), got, &want.data)
        };
        for (name, want) in self.of("loss") {
            compare("loss", &name, &losses, &want)?;
        }
        for kind in ["top", "blob"] {
            for (name, want) in self.of(kind) {
                let blob = self.blob(&name)?;
                let shape: Vec<_> = want.shape.iter().flat_map(|shape| &shape.dim).collect();
                let same = shape.iter().copied().eq(&ints(blob.shape()));
                if !same {
                    return Err(format!("{name} has shape {}, not {shape:?}", blob.shape()));
                }
                compare(kind, &name, &data(blob)?, &want)?;
            }
        }
        for (name, want) in self.of("param_after") {
            compare("param_after", &name, &data(&self.param(&name)?)?, &want)?;
        }
        if backward {
            self.backward()?;
            for kind in ["bottom_diff", "blob_diff"] {
                for (name, want) in self.of(kind) {
                    let same = compare(kind, &name, &diff(self.blob(&name)?)?, &want);
                    match RIGHT_IN_PLACE.contains(&case) {
                        true => assert!(same.is_err(), "{case} is listed as other than Caffe's"),
                        false => same?,
                    }
                }
            }
            for (name, want) in self.of("param_diff") {
                compare("param_diff", &name, &diff(&self.param(&name)?)?, &want)?;
            }
        }
        if !self.of("input2").is_empty() {
            self.set_inputs("input2")?;
            self.net.reshape().map_err(said)?;
            self.net.forward().map_err(said)?;
            for (name, want) in self.of("top2") {
                compare("top2", &name, &data(self.blob(&name)?)?, &want)?;
            }
        }
        Ok(())
    }

    /// A case whose mask is free: it has Caffe's values, in Caffe's shares, and the gradient's is
    /// the same.
    fn check_dropout(&mut self, case: &str, tolerances: &Tolerances) -> Result<(), String> {
        self.set_inputs("input")?;
        self.net.forward().map_err(said)?;
        let first = |kind: &str| self.of(kind).swap_remove(0);
        let ((x, input), (y, mask)) = (first("input"), first("mask"));
        let (_, top_diff) = first("top_diff");
        let factor = f64::from(mask.data.iter().copied().fold(0.0, f32::max));
        let top = data(self.blob(&y)?)?;
        let ours: Vec<f64> = top.iter().map(|&y| if y == 0.0 { 0.0 } else { factor }).collect();
        let (n, p) = (top.len() as f64, 1.0 / factor);
        let stay = ours.iter().filter(|&&m| m != 0.0).count() as f64;
        if (stay - n * p).abs() > 4.0 * (n * p * (1.0 - p)).sqrt() {
            return Err(format!("{stay} of {n} elements stay, with probability {p}"));
        }
        self.backward()?;
        let masked = |from: &BlobProto| -> Vec<f32> {
            from.data.iter().zip(&ours).map(|(x, mask)| (f64::from(*x) * mask) as f32).collect()
        };
        tolerances.compare((case, "top", &y), &top, &masked(&input))?;
        let gradient = diff(self.blob(&x)?)?;
        tolerances.compare((case, "bottom_diff", &x), &gradient, &masked(&top_diff))?;
        Ok(())
    }

    /// A backward pass from the case's gradients, zero where it gives none.
    fn backward(&mut self) -> Result<(), String> {
        self.net.clear_param_diffs().map_err(said)?;
        let given = self.of("top_diff");
        for (name, blob, weight) in self.net.outputs() {
            let values = given.iter().find(|(top, _)| top == name).map(|(_, blob)| &blob.data);
            if values.is_none() && weight != 0.0 {
                continue;
            }
            let mut diff = blob.diff_mut().map_err(said)?;
            let diff = diff.host_mut().map_err(said)?;
            for (i, diff) in diff.iter_mut().enumerate() {
                *diff = T::from_f64(values.map_or(0.0, |values| values[i].into()));
            }
        }
        self.net.backward().map_err(said)
    }
}

fn data<T: Element, D: Device>(blob: &Blob<T, D>) -> Result<Vec<f64>, String> {
    let data = blob.data().map_err(said)?;
    Ok(data.host().map_err(said)?.iter().map(|value| value.to_f64()).collect())
}

fn diff<T: Element, D: Device>(blob: &Blob<T, D>) -> Result<Vec<f64>, String> {
    let diff = blob.diff().map_err(said)?;
    Ok(diff.host().map_err(said)?.iter().map(|value| value.to_f64()).collect())
}

fn ints(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&extent| extent as i64).collect()
}

fn said(error: Error) -> String {
    error.to_string()
}
