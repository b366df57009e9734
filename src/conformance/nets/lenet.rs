//! Check that trains a small LeNet for a few iterations.

use super::blobs::{data, named, param_names, set_data};
use crate::{
    conformance::{
        compare::expect_nearest,
        failure::{Verdict, flaw},
        runner::CheckRunner,
        values::Values,
    },
    device::{AnyDevice, CpuDevice},
    element::Element,
    error::Result,
    memory::Memory,
    proto::{SolverParameter, parse_text},
    solver::{Event, Solver},
};
use std::sync::{Arc, Mutex, PoisonError};

/// Solver definition of a LeNet with smaller images and fewer channels than the original net.
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

/// Number of training iterations.
const ITERATIONS: usize = 6;

/// Allowed error of a device, as a multiple of the error of the CPU in `f32`. A device may add
/// terms in a different order from the CPU, and may compute exponentials differently.
const ERROR_FACTOR: f64 = 16.0;

/// Trains the net in `f32` on the device, and in `f32` and `f64` on the CPU. The difference between
/// the CPU's results in `f32` and in `f64` measures the rounding error of `f32`.
pub(super) fn lenet(runner: &CheckRunner<'_>) -> Verdict {
    runner.start_step("creation of the net");
    let host = AnyDevice::new(&CpuDevice::new());
    let initial_weights = weights(&solver::<f32>(&host)?)?;
    let device_solver = solver::<f32>(runner.device)?;
    let names = param_names(device_solver.net());
    for (i, (got, want)) in weights(&device_solver)?.iter().zip(&initial_weights).enumerate() {
        let got: Vec<f32> = got.iter().map(|&w| w as f32).collect();
        expect_nearest(&format!("initial value of {}", names[i]), &got, want)?;
    }
    let want = train(runner, solver::<f64>(&host)?, &initial_weights)?;
    let host_results = train(runner, solver::<f32>(&host)?, &initial_weights)?;
    let got = train(runner, device_solver, &initial_weights)?;
    for (i, ((got, host_results), want)) in got.iter().zip(&host_results).zip(&want).enumerate() {
        let name = i.checked_sub(1).map_or("the loss", |i| &names[i]);
        let max_magnitude = want.iter().fold(0.0f64, |max, want| max.max(want.abs()));
        let rounding = distance(host_results, want).max(f64::from(f32::EPSILON) * max_magnitude);
        let (error, bound) = (distance(got, want), ERROR_FACTOR * rounding);
        if error.is_nan() || error > bound {
            return Err(flaw!(
                "{name} is off by {error:e} after {ITERATIONS} iterations; {bound:e} is allowed"
            ));
        }
    }
    Ok(())
}

fn solver<T: Element>(device: &AnyDevice) -> Result<Solver<T>> {
    Solver::new(parse_text::<SolverParameter>(SOLVER, "the solver of the kit")?, device)
}

fn weights<T: Element>(solver: &Solver<T>) -> Result<Vec<Vec<f64>>> {
    solver.net().learnable_params().map(|param| data(param.blob())).collect()
}

/// Trains the solver's net from the given initial weights. Returns the losses and the final weights
/// of the training.
fn train<T: Element>(
    runner: &CheckRunner<'_>,
    mut solver: Solver<T>,
    initial_weights: &[Vec<f64>],
) -> Verdict<Vec<Vec<f64>>> {
    for (param, values) in solver.net().learnable_params().zip(initial_weights) {
        set_data(param.blob(), values)?;
    }
    let losses = Arc::new(Mutex::new(Vec::new()));
    let observed_losses = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            observed_losses.lock().unwrap_or_else(PoisonError::into_inner).push(*loss);
        }
    });
    for iteration in 0..ITERATIONS {
        let device = solver.net().device().name();
        runner.start_step(format!("iteration {iteration} on `{device}`"));
        let (data, labels) = batch(iteration as u64);
        set_data(named(solver.net(), "data")?, &data)?;
        set_data(named(solver.net(), "label")?, &labels)?;
        solver.step(1)?;
    }
    let losses = losses.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok([losses].into_iter().chain(weights(&solver)?).collect())
}

/// Returns images of noise with one bright quadrant, and labels that give the index of the bright
/// quadrant.
fn batch(seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut stream = Values::Reals.stream(seed);
    let (noise, labels) = (stream.take::<f32>(8 * 256), stream.indices(4, 8));
    let pixel = |(i, noise): (usize, &f32)| {
        let (image, row, column) = (i / 256, i / 16 % 16, i % 16);
        let is_bright = row / 8 * 2 + column / 8 == labels[image];
        f64::from(0.25 * noise + f32::from(is_bright))
    };
    let data = noise.iter().enumerate().map(pixel).collect();
    (data, labels.iter().map(|&label| label as f64).collect())
}

/// Returns the largest difference between elements of two lists of equal lengths, or NaN if an
/// element is NaN.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |max: f64, next| if max.is_nan() || next <= max { max } else { next })
}
