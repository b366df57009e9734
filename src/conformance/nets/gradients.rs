//! Check of small nets: compares the gradients of each net with finite differences of the
//! objective.

use super::{
    blobs::{diff, named, param_names, set_data},
    finite_difference::{FiniteDifference, compare_gradient},
};
use crate::{
    blob::Blob,
    conformance::{
        failure::{CaseFailure, Verdict},
        runner::CheckRunner,
        values::{Values, wide},
    },
    element::Element,
    error::Result,
    net::Net,
    proto::{NetParameter, Phase, parse_text},
};

/// Type and parameters of the first layer of each net. The bottom of the first layer is the blob
/// `data` of shape 2 × 4 × 5 × 4.
const LAYERS: [(&str, &str); 6] = [
    ("InnerProduct", "inner_product_param { num_output: 3 }"),
    ("Convolution", "convolution_param { num_output: 6 group: 2 kernel_size: 3 pad: 1 stride: 2 }"),
    ("Convolution", "convolution_param { num_output: 3 kernel_size: 2 }"),
    ("Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }"),
    ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }"),
    ("ReLU", "relu_param { negative_slope: 0.1 }"),
];

/// Largest number of elements per blob whose gradients are compared.
const ELEMENTS: usize = 24;

/// Checks the gradients of each net in `f32` and `f64`. The device computes the finite differences
/// in `f64`.
pub(super) fn gradients(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_cases(LAYERS, |(kind, param)| {
        let definition = parse_text(definition(kind, param), "a net of the kit")?;
        let differences = differences(&mut filled::<f64>(runner, &definition)?)?;
        compare(&mut filled::<f32>(runner, &definition)?, &differences)?;
        compare(&mut filled::<f64>(runner, &definition)?, &differences)
    })
}

/// Returns the definition of a net: the given layer, an inner product if the given layer is of
/// another type, and a softmax loss.
fn definition(kind: &str, param: &str) -> String {
    let (top, scores) = match kind {
        "InnerProduct" => ("scores", ""),
        _ => (
            "middle",
            "layer { name: 'scores' type: 'InnerProduct' bottom: 'middle' top: 'scores'
             inner_product_param { num_output: 3 } }",
        ),
    };
    format!(
        "force_backward: true
         layer {{ name: 'input' type: 'Input' top: 'data' top: 'label' input_param {{
         shape {{ dim: 2 dim: 4 dim: 5 dim: 4 }} shape {{ dim: 2 }} }} }}
         layer {{ name: 'layer' type: '{kind}' bottom: 'data' top: '{top}' {param} }}
         {scores}
         layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label'
         top: 'loss' }}"
    )
}

/// Builds a net whose inputs and parameters have the same values in every element type. The
/// elements of `data` differ from each other and from 0 by more than a step of the finite
/// differences, so a step changes neither the position of a maximum nor a sign.
fn filled<T: Element>(runner: &CheckRunner<'_>, definition: &NetParameter) -> Verdict<Net<T>> {
    let net = Net::builder(runner.device).phase(Phase::Train).build(definition)?;
    let data = named(&net, "data")?;
    let count = data.count();
    let value = |i: usize| ((i * 67 % count) as f64 + 0.5) / count as f64 - 0.5;
    set_data(data, &(0..count).map(|i| f64::from(value(i) as f32)).collect::<Vec<_>>())?;
    set_data(named(&net, "label")?, &[2.0, 0.0])?;
    let mut stream = Values::Reals.stream(1);
    for param in net.learnable_params() {
        set_data(param.blob(), &wide(&stream.take::<f32>(param.blob().count())))?;
    }
    Ok(net)
}

/// Returns the blobs whose gradients the check compares: the blob `data` and all parameters.
fn differentiated_blobs<T: Element>(net: &Net<T>) -> Verdict<Vec<Blob<T>>> {
    let params = net.learnable_params().map(|param| param.blob().share());
    Ok([named(net, "data")?.share()].into_iter().chain(params).collect())
}

/// Returns the finite differences at some elements of each blob.
fn differences(net: &mut Net<f64>) -> Verdict<Vec<Vec<FiniteDifference>>> {
    let mut differences = Vec::new();
    for blob in differentiated_blobs(net)? {
        let step = blob.count().div_ceil(ELEMENTS);
        let indices = (0..blob.count()).step_by(step);
        differences.push(indices.map(|i| difference(net, &blob, i)).collect::<Result<_>>()?);
    }
    Ok(differences)
}

fn difference(net: &mut Net<f64>, blob: &Blob<f64>, index: usize) -> Result<FiniteDifference> {
    let x = blob.data()?.host()?[index];
    let loss = net.forward()?;
    let mut objective = |value| {
        blob.data_mut()?.host_mut()?[index] = value;
        net.forward()
    };
    let difference = FiniteDifference::new(index, x, loss, &mut objective);
    objective(x)?;
    difference
}

/// Compares the gradients of a backward pass with the finite differences.
fn compare<T: Element>(net: &mut Net<T>, differences: &[Vec<FiniteDifference>]) -> Verdict {
    net.clear_param_diffs()?;
    net.forward()?;
    net.backward()?;
    let names = ["bottom `data` of layer `layer`".into()].into_iter().chain(param_names(net));
    let blobs = differentiated_blobs(net)?;
    for ((blob, differences), name) in blobs.iter().zip(differences).zip(names) {
        let name = format!("in {}: the gradient of {name}", T::DTYPE.name());
        compare_gradient::<T>(&name, &diff(blob)?, differences).map_err(CaseFailure)?;
    }
    Ok(())
}
