//! Compares inference with 16-bit elements to inference with `f32`.

use crate::support::{lenet_weights, mnist_test_images};
use cortado::{
    CpuDevice, Element, Net, bf16, f16,
    proto::{self, NetParameter, Phase},
    solver::mean_scores,
};
use std::ops::ControlFlow;

/// Returns the accuracy, on 300 MNIST digits, of the LeNet that Caffe trained.
fn accuracy<T: Element>(definition: &NetParameter, trained_net: &NetParameter) -> f64 {
    let builder = Net::<T>::builder(&CpuDevice::new()).phase(Phase::Test);
    let mut net = builder.build(definition).unwrap();
    assert!(!net.copy_trained_from(trained_net).unwrap().is_empty());
    let (_, scores) = mean_scores(&mut net, 3, |_, _| ControlFlow::Continue(())).unwrap();
    scores.iter().find(|score| score.name == "accuracy").unwrap().value
}

#[test]
fn lenet_has_the_same_accuracy_in_half_precision() {
    let source = format!("idx:{}", mnist_test_images().join("t10k").display());
    let text = include_str!("../../examples/mnist/lenet.prototxt");
    let text = text.replace("idx:examples/mnist/data/t10k", &source);
    let definition = proto::parse_text(text, "lenet.prototxt").unwrap();
    let trained_net = proto::read_trained_net(lenet_weights()).unwrap();
    let expected = accuracy::<f32>(&definition, &trained_net);
    let half_accuracies =
        [accuracy::<f16>, accuracy::<bf16>].map(|run| run(&definition, &trained_net));
    eprintln!("accuracy: {expected} in f32, {half_accuracies:?} in f16 and bf16");
    // Caffe logged an accuracy of 0.9903 on the whole test set of MNIST.
    assert!(expected >= 0.98, "{expected}");
    assert!(half_accuracies.iter().all(|half| (half - expected).abs() <= 0.002));
}
