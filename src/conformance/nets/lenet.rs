//! A few steps of training of a net in the shape of LeNet.

use super::{get, named, set};
use crate::{
    conformance::{
        runner::CheckRunner,
        compare::exact,
        failure::{Verdict, flaw},
        values::Values,
    },
    device::{CpuDevice, Device},
    element::Element,
    error::Result,
    proto::{SolverParameter, parse_text},
    solver::{Event, Solver},
};
use std::sync::{Arc, Mutex, PoisonError};

/// LeNet on smaller images, with fewer planes.
const SOLVER: &str = "
base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.01 power: 0.75
random_seed: 1 snapshot_after_train: false
net_param {
  layer { name: 'input' type: 'Input' top: 'data' top: 'label' input_param {
    shape { dim: 8 dim: 1 dim: 16 dim: 16 } shape { dim: 8 } } }
  layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1'
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 5 kernel_size: 5 weight_filler { type: 'xavier' } } }
  layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1'
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: 'conv2' type: 'Convolution' bottom: 'pool1' top: 'conv2'
    param { lr_mult: 1 } param { lr_mult: 2 }
    convolution_param { num_output: 9 kernel_size: 3 weight_filler { type: 'xavier' } } }
  layer { name: 'pool2' type: 'Pooling' bottom: 'conv2' top: 'pool2'
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: 'ip1' type: 'InnerProduct' bottom: 'pool2' top: 'ip1'
    param { lr_mult: 1 } param { lr_mult: 2 }
    inner_product_param { num_output: 20 weight_filler { type: 'xavier' } } }
  layer { name: 'relu1' type: 'ReLU' bottom: 'ip1' top: 'ip1' }
  layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2'
    param { lr_mult: 1 } param { lr_mult: 2 }
    inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
  layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }
}";

/// Steps of training.
const STEPS: usize = 6;

/// How many times the processor's own error another device may be off: it adds in another order,
/// and computes exponentials in another way.
const SLACK: f64 = 16.0;

/// Trains in `f32` on the device, and on the processor in `f32` and `f64`. How far those two are
/// apart tells what roundings amount to in this net.
pub(super) fn lenet<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let host = CpuDevice::new();
    let first = weights(&solver::<f32, _>(&host)?)?;
    let ours = solver::<f32, _>(bench.device)?;
    for (i, (got, want)) in weights(&ours)?.iter().zip(&first).enumerate() {
        let got: Vec<f32> = got.iter().map(|&w| w as f32).collect();
        exact(&format!("first value of parameter {i}"), &got, want)?;
    }
    let want = train(solver::<f64, _>(&host)?, &first)?;
    let theirs = train(solver::<f32, _>(&host)?, &first)?;
    let ours = train(ours, &first)?;
    for (i, ((got, theirs), want)) in ours.iter().zip(&theirs).zip(&want).enumerate() {
        let name = i.checked_sub(1).map_or("loss".into(), |i| format!("parameter {i}"));
        let greatest = want.iter().fold(0.0f64, |max, want| max.max(want.abs()));
        let rounding = distance(theirs, want).max(f64::from(f32::EPSILON) * greatest);
        let (off, bound) = (distance(got, want), SLACK * rounding);
        if off.is_nan() || off > bound {
            return Err(flaw!(
                "after {STEPS} steps of training {name} is off by {off:e} where {bound:e} is allowed"
            ));
        }
    }
    Ok(())
}

fn solver<T: Element, D: Device>(device: &D) -> Result<Solver<T, D>> {
    Solver::new(parse_text::<SolverParameter>(SOLVER, "the solver of the kit")?, device)
}

fn weights<T: Element, D: Device>(solver: &Solver<T, D>) -> Result<Vec<Vec<f64>>> {
    solver.net().learnable_params().map(|param| get(param.blob())).collect()
}

/// The losses of some steps from the weights `first` on, and the weights after them.
fn train<T: Element, D: Device>(
    mut solver: Solver<T, D>,
    first: &[Vec<f64>],
) -> Verdict<Vec<Vec<f64>>> {
    for (param, values) in solver.net().learnable_params().zip(first) {
        set(param.blob(), values)?;
    }
    let losses = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(*loss);
        }
    });
    for step in 0..STEPS {
        let (data, labels) = batch(step as u64);
        set(named(solver.net(), "data")?, &data)?;
        set(named(solver.net(), "label")?, &labels)?;
        solver.step(1)?;
    }
    let losses = losses.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok([losses].into_iter().chain(weights(&solver)?).collect())
}

/// Images of noise, each with a bright quarter, and which it is.
fn batch(step: u64) -> (Vec<f64>, Vec<f64>) {
    let mut draw = Values::Reals.from(step);
    let (noise, labels) = (draw.take::<f32>(8 * 256), draw.below(4, 8));
    let pixel = |(i, noise): (usize, &f32)| {
        let (image, row, column) = (i / 256, i / 16 % 16, i % 16);
        let bright = row / 8 * 2 + column / 8 == labels[image];
        f64::from(0.25 * noise + f32::from(bright))
    };
    let data = noise.iter().enumerate().map(pixel).collect();
    (data, labels.iter().map(|&label| label as f64).collect())
}

/// The greatest difference of two lists of equal lengths; NaN if one has any.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |max: f64, off| if max.is_nan() || off <= max { max } else { off })
}
