//! Benchmarks of training steps of the example nets, with inputs that are already on the GPU.

use crate::{Bench, check, clock};
use cortado::{
    CpuDevice, Device, Memory, Result, Solver,
    device::{CudaDevice, cuda::LaunchCounts},
    proto::{LayerParameter, NetParameter, SolverParameter, parse_text},
};
use std::{fs, time::Instant};

/// Name, definition file and input shape of each benchmarked net.
const NETS: [(&str, &str, [usize; 4]); 3] = [
    ("LeNet", "examples/mnist/lenet.prototxt", [64, 1, 28, 28]),
    ("AlexNet", "examples/imagenet/alexnet.prototxt", [10, 3, 227, 227]),
    ("GoogLeNet", "examples/imagenet/googlenet.prototxt", [10, 3, 224, 224]),
];

/// Number of training steps per timing sample.
const STEPS: usize = 20;

/// Prints the time of a training step in milliseconds, with and without CUDA graphs. A training step
/// consists of a forward pass, a backward pass and a solver update.
pub(crate) fn table(bench: &Bench) -> Result<()> {
    println!(
        "\n### Training steps\n\nMilliseconds of a training step in f32, by SGD with momentum. Calls \
         are calls of the driver that launch kernels or graphs, or update graphs.\n"
    );
    println!("| net | batch | graphs | first step | step | images/s | calls per step |");
    println!("|---|--:|---|--:|--:|--:|--:|");
    for (name, path, shape) in NETS {
        let shape = if bench.brief { [1, 1, 28, 28] } else { shape };
        // The loss after the first step depends on every forward and backward kernel of the net.
        let mut host = solver(&CpuDevice::new(), path, shape)?;
        host.step(1)?;
        let expected_loss = host.net_mut().forward()?;
        let mut losses = Vec::new();
        for graphs in [false, true] {
            let device = bench.builder.clone().graphs(graphs).open(0)?;
            let mut solver = solver(&device, path, shape)?;
            let start = Instant::now();
            solver.step(1)?;
            device.synchronize()?;
            let first_ms = start.elapsed().as_secs_f64() * 1e3;
            let loss = solver.net_mut().forward()?;
            check::values(name, &[loss], &[expected_loss], |loss| 2e-3 * loss.abs())?;
            let (step, rate) = match bench.brief {
                true => (String::new(), String::new()),
                false => {
                    let seconds = clock::seconds(&device, false, || solver.step(STEPS))?;
                    let step = seconds / STEPS as f64;
                    (format!("{:.3}", step * 1e3), format!("{:.0}", shape[0] as f64 / step))
                }
            };
            // By the third step, each sequence of launches that recurs has a graph.
            solver.step(2)?;
            device.synchronize()?;
            let before = calls(&device);
            solver.step(1)?;
            device.synchronize()?;
            let calls = calls(&device) - before;
            losses.push(solver.net_mut().forward()?);
            let graphs = if graphs { "yes" } else { "no" };
            let batch = shape[0];
            println!("| {name} | {batch} | {graphs} | {first_ms:.1} | {step} | {rate} | {calls} |");
        }
        check::values(name, &losses[..1], &losses[1..], |_| 0.0)?;
        if bench.brief {
            break;
        }
    }
    Ok(())
}

/// Returns the number of calls of the driver that launched kernels or graphs, or updated graphs.
fn calls(device: &CudaDevice) -> u64 {
    let LaunchCounts { kernels, graphs, updated_kernels, .. } = device.launch_counts();
    kernels + graphs + updated_kernels
}

/// Builds a solver for the net at `path`. The input images are constant, so the net's DummyData
/// layer fills the images only once.
fn solver(device: &impl Device, path: &str, shape: [usize; 4]) -> Result<Solver<f32>> {
    let text = fs::read_to_string(path).map_err(|error| cortado::Error::io(path, error))?;
    let mut net: NetParameter = parse_text(text, path)?;
    net.layer.retain(|layer| !["Data", "Input"].contains(&layer.r#type()));
    let input = format!(
        "name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {{
            shape {{ dim: {shape:?} }} shape {{ dim: {} }}
            data_filler {{ value: 0.5 }} data_filler {{ value: 7 }} }}",
        shape[0]
    );
    net.layer.insert(0, parse_text::<LayerParameter>(input, "the input")?);
    let param = "base_lr: 0.0001 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' \
                 random_seed: 1 snapshot_after_train: false";
    let mut param: SolverParameter = parse_text(param, "the solver")?;
    param.net_param = Some(net);
    Solver::new(param, device)
}
