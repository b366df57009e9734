//! Gradients of small nets against differences of their objective.

use super::{named, set};
use crate::{
    blob::Blob,
    conformance::{
        runner::CheckRunner,
        failure::{Verdict, flaw},
        finite_difference::{FiniteDifference, ROUNDINGS},
        values::{Values, epsilon, wide},
    },
    device::Device,
    element::Element,
    error::Result,
    net::Net,
    proto::{NetParameter, Phase, parse_text},
};

/// Layers from blob `data`, of 2 × 4 × 5 × 4, to blob `scores`.
const LAYERS: [(&str, &str); 6] = [
    ("InnerProduct", "bottom: 'data' top: 'scores' inner_product_param { num_output: 3 }"),
    (
        "Convolution",
        "bottom: 'data' top: 'middle'
         convolution_param { num_output: 6 group: 2 kernel_size: 3 pad: 1 stride: 2 }",
    ),
    (
        "Convolution",
        "bottom: 'data' top: 'middle' convolution_param { num_output: 3 kernel_size: 2 }",
    ),
    (
        "Pooling",
        "bottom: 'data' top: 'middle' pooling_param { pool: MAX kernel_size: 3 stride: 2 }",
    ),
    (
        "Pooling",
        "bottom: 'data' top: 'middle'
         pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
    ),
    ("ReLU", "bottom: 'data' top: 'middle' relu_param { negative_slope: 0.1 }"),
];

/// Elements of a blob whose gradients are looked at, at most.
const ELEMENTS: usize = 24;

/// Each layer, under an inner product if it is none and a softmax loss, in `f32` and `f64`. The
/// differences are taken in `f64`, on the device as well.
pub(super) fn gradients<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    bench.all(LAYERS, |(kind, layer)| {
        let definition = parse_text(definition(kind, layer), "a net of the kit")?;
        let slopes = slopes(&mut filled::<f64, D>(bench, &definition)?)?;
        compare(&mut filled::<f32, D>(bench, &definition)?, &slopes)?;
        compare(&mut filled::<f64, D>(bench, &definition)?, &slopes)
    })
}

/// A net of the layer, what turns its results into scores, and the loss.
fn definition(kind: &str, layer: &str) -> String {
    let scores = match kind {
        "InnerProduct" => "",
        _ => {
            "layer { name: 'scores' type: 'InnerProduct' bottom: 'middle' top: 'scores'
             inner_product_param { num_output: 3 } }"
        }
    };
    format!(
        "force_backward: true
         layer {{ name: 'input' type: 'Input' top: 'data' top: 'label' input_param {{
         shape {{ dim: 2 dim: 4 dim: 5 dim: 4 }} shape {{ dim: 2 }} }} }}
         layer {{ name: 'layer' type: '{kind}' {layer} }}
         {scores}
         layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label'
         top: 'loss' }}"
    )
}

/// The net with the same values whatever the element type, and no two equal elements of `data`, so
/// that a step changes no maximum and no sign.
fn filled<T: Element, D: Device>(
    bench: &CheckRunner<'_, D>,
    definition: &NetParameter,
) -> Verdict<Net<T, D>> {
    let net = Net::builder(bench.device).phase(Phase::Train).build(definition)?;
    let data = named(&net, "data")?;
    let count = data.count();
    let value = |i: usize| ((i * 67 % count) as f64 + 0.5) / count as f64 - 0.5;
    set(data, &(0..count).map(|i| f64::from(value(i) as f32)).collect::<Vec<_>>())?;
    set(named(&net, "label")?, &[2.0, 0.0])?;
    let mut draw = Values::Reals.from(1);
    for param in net.learnable_params() {
        set(param.blob(), &wide(&draw.take::<f32>(param.blob().count())))?;
    }
    Ok(net)
}

/// What gradients are taken of: the data and all parameters.
fn subjects<T: Element, D: Device>(net: &Net<T, D>) -> Verdict<Vec<Blob<T, D>>> {
    let params = net.learnable_params().map(|param| param.blob().share());
    Ok([named(net, "data")?.share()].into_iter().chain(params).collect())
}

/// The gradients of some elements of each subject.
fn slopes<D: Device>(net: &mut Net<f64, D>) -> Verdict<Vec<Vec<FiniteDifference>>> {
    let mut slopes = Vec::new();
    for blob in subjects(net)? {
        let every = blob.count().div_ceil(ELEMENTS);
        let places = (0..blob.count()).step_by(every);
        slopes.push(places.map(|place| slope(net, &blob, place)).collect::<Result<_>>()?);
    }
    Ok(slopes)
}

fn slope<D: Device>(
    net: &mut Net<f64, D>,
    blob: &Blob<f64, D>,
    place: usize,
) -> Result<FiniteDifference> {
    let middle = blob.data()?.host()?[place];
    let loss = net.forward()?;
    let mut at = |value| {
        blob.data_mut()?.host_mut()?[place] = value;
        net.forward()
    };
    let slope = FiniteDifference::of(place, middle, loss, &mut at);
    at(middle)?;
    slope
}

/// Compares the gradients of a backward pass with differences.
fn compare<T: Element, D: Device>(
    net: &mut Net<T, D>,
    slopes: &[Vec<FiniteDifference>],
) -> Verdict {
    net.clear_param_diffs()?;
    net.forward()?;
    net.backward()?;
    for (i, (blob, slopes)) in subjects(net)?.iter().zip(slopes).enumerate() {
        let diff = wide(blob.diff()?.host()?);
        let greatest = slopes.iter().fold(0.0f64, |max, slope| max.max(slope.value.abs()));
        for &FiniteDifference { place, value, unsure } in slopes {
            let bound = unsure + ROUNDINGS * epsilon::<T>() * greatest;
            let off = (diff[place] - value).abs();
            if off.is_nan() || off > bound {
                let (got, element) = (diff[place], T::DTYPE.name());
                let of = if i == 0 { "data".into() } else { format!("parameter {}", i - 1) };
                return Err(flaw!(
                    "the gradient of {of}[{place}] in {element} is {got:e}, not {value:e}: off by \
                     {off:e} where {bound:e} is allowed"
                ));
            }
        }
    }
    Ok(())
}
