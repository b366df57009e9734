//! Runs the nets of `examples/imagenet`, which distinguish 1000 classes, on one image.

use cortado::{
    Blob, CpuDevice, Net, SimulatedDevice, Solver,
    ledger::{self, EventKind},
    net::MemoryUse,
    proto::{self, NetParameter, Phase, SolverParameter},
};
use std::{fs, path::Path};

type CpuNet = Net<f32>;

fn definition(name: &str) -> NetParameter {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/imagenet");
    let path = folder.join(name).with_extension("prototxt");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("dim: [10, 3, ") && text.contains("dim: 10 }"), "{name}");
    let text = text.replace("dim: [10, 3, ", "dim: [1, 3, ").replace("dim: 10 }", "dim: 1 }");
    proto::parse_text(text, name).unwrap()
}

fn build(name: &str, phase: Phase, reuse: bool) -> CpuNet {
    let builder = CpuNet::builder(&CpuDevice::new()).phase(phase).seed(1).reuse_memory(reuse);
    let net = builder.build(&definition(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    // The input image is random noise with the label 7.
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut data = net.blob("data").unwrap().data_mut().unwrap();
    data.host_mut().unwrap().iter_mut().for_each(|value| *value = noise());
    net.blob("label").unwrap().data_mut().unwrap().host_mut().unwrap()[0] = 7.0;
    drop(data);
    net
}

fn asum(blob: &Blob<f32>) -> f64 {
    blob.diff().unwrap().host().unwrap().iter().map(|&value| f64::from(value.abs())).sum()
}

/// Builds the net `name` of `examples/imagenet` and runs a forward and a backward pass. Checks the
/// loss, the number of parameters, and that each parameter gets a gradient.
fn check_training(name: &str, params: usize) {
    let mut net = build(name, Phase::Train, false);
    let count: usize = net.params().iter().map(|param| param.blob().count()).sum();
    assert_eq!(count, params, "{name}");
    let loss = net.forward().unwrap();
    // An untrained net guesses at random among 1000 classes, so its loss is about `ln 1000`.
    // GoogLeNet's auxiliary classifiers add to its loss.
    assert!(loss.is_finite() && loss > 0.9 * 1000_f64.ln(), "{name}: {loss}");
    net.backward().unwrap();
    for param in net.learnable_params().filter(|param| param.lr_mult != Some(0.0)) {
        let sum = asum(param.blob());
        let layer = net.layer_names().nth(param.layer).unwrap();
        assert!(sum.is_finite() && sum > 0.0, "{name}: {layer}.{}: {sum}", param.index);
    }
}

#[test]
fn a_training_pass_of_alexnet_gives_every_parameter_a_gradient() {
    check_training("alexnet", 60_965_224);
}

#[test]
fn a_training_pass_of_caffenet_gives_every_parameter_a_gradient() {
    check_training("caffenet", 60_965_224);
}

#[test]
fn a_training_pass_of_googlenet_gives_every_parameter_a_gradient() {
    // GoogLeNet has 6,998,552 parameters without its two auxiliary classifiers.
    check_training("googlenet", 13_378_280);
}

#[test]
fn a_training_pass_of_resnet50_gives_every_parameter_a_gradient() {
    // ResNet-50 has 25,557,032 learnable parameters. The 53 BatchNorm layers of ResNet-50 store the
    // means and variances of 26,560 channels, and one scale factor per layer.
    check_training("resnet50", 25_557_032 + 2 * 26_560 + 53);
}

#[test]
fn inference_with_memory_reuse_returns_the_same_scores() {
    for (name, output) in [("googlenet", "classifier"), ("resnet50", "fc1000")] {
        let [separate, reused] = [false, true].map(|reuse| {
            let mut net = build(name, Phase::Test, reuse);
            let loss = net.forward().unwrap();
            let MemoryUse { activations, .. } = net.memory_use().unwrap();
            let outputs = net.outputs().map(|(name, _, _)| name.to_owned()).collect::<Vec<_>>();
            // The test compares bits, because the loss of ResNet-50 is NaN: without trained
            // BatchNorm statistics, the activations overflow.
            let scores = net.blob("loss").unwrap().data().unwrap();
            let scores: Vec<_> = scores.host().unwrap().iter().map(|x| x.to_bits()).collect();
            assert!(net.blob(output).is_some());
            ((loss.to_bits(), outputs, scores), activations)
        });
        assert_eq!(separate.0, reused.0, "{name}");
        eprintln!("{name}: {} bytes of activations, {} with reuse", separate.1, reused.1);
        assert!(5 * reused.1 < 2 * separate.1, "{name}: {} of {} bytes", reused.1, separate.1);
    }
}

#[test]
fn training_on_a_discrete_device_wastes_no_transfers() {
    for name in ["alexnet", "googlenet"] {
        let param = SolverParameter {
            train_net_param: Some(definition(name)),
            base_lr: Some(0.001),
            lr_policy: Some("fixed".into()),
            momentum: Some(0.9),
            weight_decay: Some(0.0005),
            random_seed: Some(1),
            ..SolverParameter::default()
        };
        let (parameters, diagnosis) = ledger::diagnose(|| {
            let mut solver = Solver::<f32>::new(param, &SimulatedDevice::new())?;
            solver.step(2)?;
            let sizes = solver.net().learnable_params().map(|param| param.blob().count());
            Ok(4 * sizes.sum::<usize>() as u64)
        })
        .unwrap();
        assert!(diagnosis.findings().is_empty(), "{name}: {diagnosis}");
        // Training downloads only losses, and uploads each parameter at most once.
        let transfers = diagnosis.transfers();
        let bytes = |kind| {
            let rows = transfers.iter().filter(|row| row.kind == kind);
            rows.map(|row| row.bytes).sum::<u64>()
        };
        let inputs = 4 * (3 * 227 * 227 + 1);
        assert!(bytes(EventKind::Upload) <= parameters + inputs, "{name}: {diagnosis}");
        assert!(bytes(EventKind::Download) <= 100, "{name}: {diagnosis}");
    }
}
