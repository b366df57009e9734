//! Compares forward and backward passes of layers and small nets with Caffe's results.

use crate::custom_backend::Remote;
use crate::golden::{Tolerances, golden};
use crate::support::{table, testdata};
use cortado::{
    AnyDevice, Blob, CpuDevice, Device, Element, LayerRegistry, Net,
    blob::ReadGuard,
    device::SimulatedDevice,
    proto::{self, BlobProto, NetParameter},
};
use std::path::Path;

/// Golden cases in which Caffe's gradients are wrong, so cortado's gradients must differ; see
/// docs/decisions/0013.
const CAFFE_IS_WRONG: [&str; 3] = ["bnll_inplace", "clip_inplace", "power_inplace_linear"];

#[test]
fn layers_in_f32_on_the_cpu_match_caffe() {
    compare_all_layers::<f32, _>(&CpuDevice::new());
}

#[test]
fn layers_in_f64_on_the_cpu_match_caffe() {
    compare_all_layers::<f64, _>(&CpuDevice::new());
}

#[test]
fn layers_on_a_device_with_separate_memory_match_caffe() {
    compare_all_layers::<f32, _>(&Remote);
}

#[test]
fn layers_on_the_simulated_device_match_caffe() {
    compare_all_layers::<f32, _>(&SimulatedDevice::new());
}

/// This test calls the LRN kernels directly, without an LRN layer.
#[test]
fn lrn_kernels_agree_with_caffe() {
    use cortado::{
        host::Workers,
        kernel::slices::{lrn, lrn_backward},
        op::{
            Lrn,
            LrnRegion::{self, AcrossChannels, WithinChannel},
        },
    };
    let op = |region: LrnRegion, shape: [usize; 4], size, alpha, k| {
        let [batch, channels, height, width] = shape;
        Lrn { region, batch, channels, plane: [height, width], size, alpha, beta: 0.75, k }
    };
    let ops = [
        ("lrn_across", op(AcrossChannels, [2, 7, 3, 3], 5, 1.0, 1.0)),
        ("lrn_across_k", op(AcrossChannels, [1, 6, 3, 4], 5, 0.5, 2.0)),
        ("lrn_across_one", op(AcrossChannels, [2, 3, 3, 2], 1, 0.7, 1.0)),
        ("lrn_across_strong", op(AcrossChannels, [2, 6, 3, 2], 3, 0.8, 1.0)),
        ("lrn_across_wide", op(AcrossChannels, [2, 4, 2, 3], 9, 1.0, 1.0)),
        ("lrn_within", op(WithinChannel, [2, 2, 5, 4], 3, 1.0, 1.0)),
        ("lrn_within_1x1", op(WithinChannel, [2, 3, 1, 1], 3, 1.0, 1.0)),
        ("lrn_within_k_ignored", op(WithinChannel, [1, 2, 4, 5], 3, 5.0, 2.0)),
    ];
    let Some(set) = testdata("golden/layers", "the comparison of LRN kernels with Caffe") else {
        return;
    };
    let tolerances = Tolerances::read(&set);
    let rows = table(&set.join("cases.tsv"));
    let cases: Vec<&str> = rows.iter().filter(|row| row[1] == "LRN").map(|row| &*row[0]).collect();
    assert!(!cases.is_empty());
    for case in cases {
        let (_, op) = ops.iter().find(|(name, _)| *name == case).unwrap();
        let blobs = golden(&set.join(case));
        let blob_of_kind = |kind: &str| blobs.iter().find(|(found, ..)| found == kind).unwrap();
        let values = |kind: &str| &blob_of_kind(kind).2.data;
        let (x, dy) = (values("input"), values("top_diff"));
        let [mut scale, mut y, mut dx] = [(); 3].map(|()| vec![f32::NAN; x.len()]);
        let workers = Workers::sequential();
        lrn(&workers, op, x, &mut scale, &mut y).unwrap();
        lrn_backward(&workers, op, x, &y, &scale, dy, &mut dx).unwrap();
        for (kind, got) in [("top", y), ("bottom_diff", dx)] {
            let got: Vec<f64> = got.into_iter().map(f64::from).collect();
            let (_, name, want) = blob_of_kind(kind);
            tolerances.compare((case, kind, name), &got, &want.data).unwrap();
        }
    }
}

fn compare_all_layers<T: Element, D: Device>(device: &D) {
    let Some(set) = testdata("golden/layers", "the comparison of layers with Caffe") else {
        return;
    };
    let tolerances = Tolerances::read(&set);
    let registry = LayerRegistry::<T>::standard();
    let known_types: Vec<&str> = registry.kinds().collect();
    let (mut passed, mut failures) = (0, Vec::new());
    let cases = table(&set.join("cases.tsv"));
    for row in &cases {
        let (case, forwards, backward) = (&row[0], row[4].parse().unwrap(), row[5] == "1");
        if !row[2].split(',').all(|kind| known_types.contains(&kind)) {
            continue;
        }
        let new_case = Case::<T>::build(&set.join(case), device);
        let result = new_case.and_then(|mut run| match row[6].contains("random") {
            true => run.check_dropout(case, &tolerances),
            false => run.check(case, &tolerances, forwards, backward),
        });
        match result {
            Ok(()) => passed += 1,
            Err(reason) => failures.push(format!("{case}: {reason}")),
        }
    }
    let (failed, text) = (failures.len(), failures.join("\n"));
    assert!(failures.is_empty(), "{failed} of {} golden cases failed:\n{text}", passed + failed);
    assert_eq!(passed, cases.len(), "some golden cases have layers of unknown types");
}

/// Golden case, and the net whose results must match Caffe's results.
struct Case<T: Element> {
    net: Net<T>,
    blobs: Vec<(String, String, BlobProto)>,
}

impl<T: Element> Case<T> {
    fn build(folder: &Path, device: &impl Device) -> Result<Self, String> {
        let mut definition: NetParameter = proto::read_net(folder.join("net.prototxt")).unwrap();
        for infogain in definition.layer.iter_mut().filter_map(|l| l.infogain_loss_param.as_mut()) {
            // The net definition gives the path of the infogain matrix relative to the folder of
            // the net definition.
            let source = infogain.source.take();
            infogain.source = source.map(|file| folder.join(file).display().to_string());
        }
        let net = Net::builder(device).build(&definition).map_err(text)?;
        Ok(Self { net, blobs: golden(folder) })
    }

    /// Returns the blobs of the kind `kind` in the golden case.
    fn blobs(&self, kind: &str) -> Vec<(String, BlobProto)> {
        let blobs = self.blobs.iter().filter(|(k, _, _)| k == kind);
        blobs.map(|(_, name, blob)| (name.clone(), blob.clone())).collect()
    }

    fn blob(&self, name: &str) -> Result<&Blob<T>, String> {
        self.net.blob(name).ok_or_else(|| format!("blob `{name}` is missing"))
    }

    /// Returns the parameter with the name `<layer>.<index>`.
    fn param(&self, name: &str) -> Result<Blob<T>, String> {
        let (layer, index) = name.rsplit_once('.').unwrap();
        let error = || format!("parameter `{name}` is missing");
        let layer = self.net.layer(layer).ok_or_else(error)?;
        let param = layer.params().get(index.parse::<usize>().unwrap()).ok_or_else(error)?;
        Ok(param.share())
    }

    fn set_inputs(&mut self, kind: &str) -> Result<(), String> {
        for (name, value) in self.blobs(kind) {
            let blob =
                self.net.blob_mut(&name).ok_or_else(|| format!("blob `{name}` is missing"))?;
            blob.from_proto(&value, true).map_err(text)?;
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
        for (name, value) in self.blobs("param") {
            self.param(&name)?.from_proto(&value, false).map_err(text)?;
        }
        let mut losses = Vec::new();
        for _ in 0..forwards {
            self.set_inputs("input")?;
            losses.push(self.net.forward().map_err(text)?);
        }
        let compare = |kind: &str, name: &str, got: &[f64], want: &BlobProto| {
            tolerances.compare((case, kind, name), got, &want.data)
        };
        for (name, want) in self.blobs("loss") {
            compare("loss", &name, &losses, &want)?;
        }
        for kind in ["top", "blob"] {
            for (name, want) in self.blobs(kind) {
                let blob = self.blob(&name)?;
                let shape: Vec<_> =
                    want.shape.iter().flat_map(|shape| &shape.dim).copied().collect();
                if !blob.shape().iter().map(|&extent| extent as i64).eq(shape.iter().copied()) {
                    return Err(format!(
                        "{name}: expected shape {shape:?}, found {}",
                        blob.shape()
                    ));
                }
                compare(kind, &name, &data(blob)?, &want)?;
            }
        }
        for (name, want) in self.blobs("param_after") {
            compare("param_after", &name, &data(&self.param(&name)?)?, &want)?;
        }
        if backward {
            self.backward()?;
            for kind in ["bottom_diff", "blob_diff"] {
                for (name, want) in self.blobs(kind) {
                    let comparison = compare(kind, &name, &diff(self.blob(&name)?)?, &want);
                    match CAFFE_IS_WRONG.contains(&case) {
                        true => {
                            assert!(
                                comparison.is_err(),
                                "{case} has Caffe's gradient; remove {case} from CAFFE_IS_WRONG"
                            )
                        }
                        false => comparison?,
                    }
                }
            }
            for (name, want) in self.blobs("param_diff") {
                compare("param_diff", &name, &diff(&self.param(&name)?)?, &want)?;
            }
        }
        if !self.blobs("input2").is_empty() {
            self.set_inputs("input2")?;
            self.net.reshape().map_err(text)?;
            self.net.forward().map_err(text)?;
            for (name, want) in self.blobs("top2") {
                compare("top2", &name, &data(self.blob(&name)?)?, &want)?;
            }
        }
        Ok(())
    }

    /// Checks the Dropout layer of a golden case. The number of kept elements must be within four
    /// standard deviations of the mean that follows from Caffe's probability of keeping an element.
    /// The gradient must use the mask of the forward pass.
    fn check_dropout(&mut self, case: &str, tolerances: &Tolerances) -> Result<(), String> {
        self.set_inputs("input")?;
        self.net.forward().map_err(text)?;
        let first_blob = |kind: &str| self.blobs(kind).swap_remove(0);
        let ((x, input), (y, mask)) = (first_blob("input"), first_blob("mask"));
        let (_, top_diff) = first_blob("top_diff");
        let factor = f64::from(mask.data.iter().copied().fold(0.0, f32::max));
        let top = data(self.blob(&y)?)?;
        let drawn_mask: Vec<f64> =
            top.iter().map(|&y| if y == 0.0 { 0.0 } else { factor }).collect();
        let (n, p) = (top.len() as f64, 1.0 / factor);
        let kept_count = drawn_mask.iter().filter(|&&m| m != 0.0).count() as f64;
        if (kept_count - n * p).abs() > 4.0 * (n * p * (1.0 - p)).sqrt() {
            return Err(format!(
                "dropout keeps {kept_count} of {n} elements, each with probability {p}"
            ));
        }
        self.backward()?;
        let apply_mask = |from: &BlobProto| -> Vec<f32> {
            from.data
                .iter()
                .zip(&drawn_mask)
                .map(|(x, mask)| (f64::from(*x) * mask) as f32)
                .collect()
        };
        tolerances.compare((case, "top", &y), &top, &apply_mask(&input))?;
        let gradient = diff(self.blob(&x)?)?;
        tolerances.compare((case, "bottom_diff", &x), &gradient, &apply_mask(&top_diff))?;
        Ok(())
    }

    /// Runs a backward pass from the golden gradients of the tops. A top without a golden gradient
    /// gets a gradient of zero, unless the top has a loss weight.
    fn backward(&mut self) -> Result<(), String> {
        self.net.clear_param_diffs().map_err(text)?;
        let gradients = self.blobs("top_diff");
        for (name, blob, weight) in self.net.outputs() {
            let values = gradients.iter().find(|(top, _)| top == name).map(|(_, blob)| &blob.data);
            if values.is_none() && weight != 0.0 {
                continue;
            }
            let mut diff = blob.diff_mut().map_err(text)?;
            let diff = diff.host_mut().map_err(text)?;
            for (i, diff) in diff.iter_mut().enumerate() {
                *diff = T::from_f64(values.map_or(0.0, |values| values[i].into()));
            }
        }
        self.net.backward().map_err(text)
    }
}

fn data<T: Element>(blob: &Blob<T>) -> Result<Vec<f64>, String> {
    values(blob.data())
}

fn diff<T: Element>(blob: &Blob<T>) -> Result<Vec<f64>, String> {
    values(blob.diff())
}

fn values<T: Element>(
    guard: cortado::Result<ReadGuard<'_, T, AnyDevice>>,
) -> Result<Vec<f64>, String> {
    let guard = guard.map_err(text)?;
    Ok(guard.host().map_err(text)?.iter().map(|value| value.to_f64()).collect())
}

fn text(error: cortado::Error) -> String {
    error.to_string()
}
