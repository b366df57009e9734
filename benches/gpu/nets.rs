//! Benchmarks of training steps of the example nets, with inputs that are already on the GPU.

use crate::{Bench, check, clock};
use cortado::{
    CpuDevice, Device, Memory, Result, Solver,
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

/// Prints the time of a training step in milliseconds. A training step consists of a forward pass,
/// a backward pass and a solver update.
pub(crate) fn table(bench: &Bench) -> Result<()> {
    println!(
        "\n### Training steps\n\nMilliseconds of a training step in f32, by SGD with momentum.\n"
    );
    println!("| net | batch | first step | step | images/s |\n|---|--:|--:|--:|--:|");
    for (name, path, shape) in NETS {
        let [batch, channels, rows, columns] = if bench.brief { [1, 1, 28, 28] } else { shape };
        let mut solver = solver(&bench.device, path, [batch, channels, rows, columns])?;
        let start = Instant::now();
        solver.step(1)?;
        bench.device.synchronize()?;
        let first_ms = start.elapsed().as_secs_f64() * 1e3;
        // The loss after the first step depends on every forward and backward kernel of the net.
        let mut host = self::solver(&CpuDevice::new(), path, [batch, channels, rows, columns])?;
        host.step(1)?;
        let losses = [solver.net_mut().forward()?, host.net_mut().forward()?];
        check::values(name, &losses[..1], &losses[1..], |loss| 2e-3 * loss.abs())?;
        if bench.brief {
            println!("| {name} | {batch} | {first_ms:.1} | | |");
            return Ok(());
        }
        let seconds = clock::seconds(&bench.device, false, || solver.step(STEPS))?;
        let step = seconds / STEPS as f64;
        let (ms, rate) = (step * 1e3, batch as f64 / step);
        println!("| {name} | {batch} | {first_ms:.1} | {ms:.3} | {rate:.0} |");
    }
    Ok(())
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
