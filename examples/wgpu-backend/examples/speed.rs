//! Measures LeNet's training steps per second and transfers per step at each stage of the tutorial.

#[allow(dead_code, unreachable_pub)]
#[path = "four_methods.rs"]
mod four_methods;

use cortado::{
    CpuDevice, Device, Result, Solver,
    ledger::{EventKind, Ledger},
    proto::{self, SolverParameter},
};
use cortado_wgpu::WgpuDevice;
use std::time::Instant;

const WARM_UP: usize = 3;
const STEPS: usize = 20;

/// Stages of the tutorial, each with the kernels that the stage adds to those of the earlier
/// stages.
const STAGES: [(&str, &[&str]); 3] = [
    (
        "GEMM and convolutions",
        &["gemm", "convolve", "convolve_backward_input", "convolve_backward_filters"],
    ),
    (
        "pooling, elementwise functions and reductions",
        &["max_pool", "max_pool_backward", "unary", "binary", "broadcast", "sum_to_axis"],
    ),
    (
        "loss and update",
        &["softmax", "softmax_loss", "softmax_loss_backward", "dot", "fill", "solver_update"],
    ),
];

fn main() -> Result<()> {
    let device = WgpuDevice::new()?;
    println!("{}: one training step processes a batch of 64 images\n", device.adapter());
    println!("| kernels on the device | steps per second | transfers per step | kB per step |");
    println!("|---|--:|--:|--:|");
    measure("none: four methods", &four_methods::FourMethods::new()?)?;
    for (i, (stage, _)) in STAGES.iter().enumerate() {
        let host_kernels = STAGES[i + 1..].iter().flat_map(|(_, kernels)| *kernels).copied();
        let device = device.clone().leave_to_host(&host_kernels.collect::<Vec<_>>());
        measure(&format!("+ {stage}"), &device)?;
    }
    measure("for comparison: `CpuDevice`", &CpuDevice::new())
}

/// Trains the LeNet of `examples/digits` on `device` and prints the table row of one stage.
fn measure<D: Device>(stage: &str, device: &D) -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut param: SolverParameter =
        proto::read_text(format!("{root}/examples/digits/solver.prototxt"))?;
    param.net = Some(format!("{root}/{}", param.net()));
    param.snapshot_after_train = Some(false);
    param.test_initialization = Some(false);
    param.display = Some(0);
    let ledger = Ledger::new();
    let ledger_guard = ledger.open(); // the solver's prefetch thread inherits the ledger
    let mut solver = Solver::<f32>::new(param, device)?;
    solver.step(WARM_UP)?;
    device.synchronize()?;
    let totals = || [EventKind::Upload, EventKind::Download].map(|kind| ledger.total(kind));
    let (totals_before, start) = (totals(), Instant::now());
    solver.step(STEPS)?;
    device.synchronize()?;
    let seconds = start.elapsed().as_secs_f64();
    let totals_after = totals();
    drop(ledger_guard);
    let per_step = |f: fn(&cortado::ledger::Total) -> u64| {
        let sum = |totals: &[_; 2]| totals.iter().map(f).sum::<u64>();
        (sum(&totals_after) - sum(&totals_before)) as f64 / STEPS as f64
    };
    println!(
        "| {stage} | {:.1} | {:.1} | {:.0} |",
        STEPS as f64 / seconds,
        per_step(|total| total.count),
        per_step(|total| total.bytes) / 1e3
    );
    Ok(())
}
