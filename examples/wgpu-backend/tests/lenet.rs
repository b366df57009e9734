//! LeNet on both stages of the tutorial.

use cortado::{
    CpuDevice, Device, Solver,
    ledger::{self, Ledger, Policy},
    proto::{self, SolverParameter},
    solver::Event,
};
use cortado_wgpu::WgpuDevice;
use std::sync::{Arc, Mutex};

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/four_methods.rs"]
mod four_methods;
use four_methods::FourMethods;

/// The digits example's solver, wherever tests are run from.
fn solver<D: Device>(device: &D) -> Solver<f32, D> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut param: SolverParameter =
        proto::read_text(format!("{root}/examples/digits/solver.prototxt")).unwrap();
    param.net = Some(format!("{root}/{}", param.net()));
    param.snapshot_after_train = Some(false);
    param.test_initialization = Some(false);
    Solver::new(param, device).unwrap()
}

/// Losses of the first iterations.
fn losses<D: Device>(device: &D, iterations: usize) -> Vec<f64> {
    let mut solver = solver(device);
    let losses = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&losses);
    solver.observe(move |event| {
        if let Event::Iterated { loss, .. } = event {
            seen.lock().unwrap().push(*loss);
        }
    });
    solver.step(iterations).unwrap();
    let losses = losses.lock().unwrap();
    losses.clone()
}

#[test]
fn four_methods_train_with_the_bits_of_the_cpu() {
    assert_eq!(losses(&FourMethods::new().unwrap(), 10), losses(&CpuDevice::new(), 10));
}

/// Losses agree with the CPU's as far as roundings of single precision let them.
#[test]
fn kernels_train_with_the_losses_of_the_cpu() {
    let device = WgpuDevice::new().unwrap();
    for (step, (ours, theirs)) in
        losses(&device, 10).iter().zip(losses(&CpuDevice::new(), 10)).enumerate()
    {
        assert!((ours - theirs).abs() < 1e-5 * theirs, "step {step}: {ours}, not {theirs}");
    }
}

/// After the first steps nothing crosses but batches, on their way in, and losses, on theirs out.
#[test]
fn training_copies_batches_and_losses_only() {
    let (book, device) = (Ledger::new(), WgpuDevice::new().unwrap());
    let _open = book.open(); // before the thread that prepares batches starts
    let mut solver = solver(&device);
    solver.step(3).unwrap();
    let steps = Ledger::new();
    let _open = steps.open();
    let _strict = ledger::fallbacks(Policy::Deny);
    solver.step(5).unwrap();
    println!("{book}{steps}");
}
