//! Inference with 16-bit elements, beside f32.
#![cfg(feature = "net")]

use cortado::{
    CpuDevice, Element, Net, bf16, f16,
    proto::{self, NetParameter, Phase},
    solver::mean_scores,
};
use std::{env, path::PathBuf};

/// Accuracy of the LeNet that Caffe trained, on as many of MNIST's batches of 100 as are asked for.
fn accuracy<T: Element>(definition: &NetParameter, trained: &NetParameter, batches: usize) -> f64 {
    let builder = Net::<T, CpuDevice>::builder(&CpuDevice::new()).phase(Phase::Test);
    let mut net = builder.build(definition).unwrap();
    assert!(!net.copy_trained_from(trained).unwrap().is_empty());
    let (_, scores) = mean_scores(&mut net, batches, |_, _| {}).unwrap();
    scores.iter().find(|score| score.name == "accuracy").unwrap().value
}

#[test]
fn lenet_loses_nothing_to_half_precision() {
    let Some(data) = env::var_os("CORTADO_TESTDATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run the LeNet that Caffe trained on MNIST");
        return;
    };
    let source = format!("idx:{}", data.join("data/mnist/t10k").display());
    let text = include_str!("../examples/mnist/lenet.prototxt");
    let text = text.replace("idx:examples/mnist/data/t10k", &source);
    let definition = proto::parse_text(text, "lenet.prototxt").unwrap();
    let trained = data.join("golden/lenet/lenet_iter_10000.caffemodel");
    let trained = proto::read_trained_net(trained).unwrap();

    // All of them in release, where 16-bit elements are not slow.
    let batches = if cfg!(debug_assertions) { 3 } else { 100 };
    let want = accuracy::<f32>(&definition, &trained, batches);
    let halves = [accuracy::<f16>, accuracy::<bf16>].map(|run| run(&definition, &trained, batches));
    eprintln!("accuracy in f32 {want}, in f16 and bf16 {halves:?}");
    assert!(halves.iter().all(|half| (half - want).abs() <= 0.002), "{want} {halves:?}");
}
