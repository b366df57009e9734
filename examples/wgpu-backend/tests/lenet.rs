//! LeNet on both stages of the tutorial.

use cortado::{
    CpuDevice, Device, Solver,
    ledger::{self, Kind, Ledger, Policy, Total},
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

/// After the first steps every kernel is the device's own, and nothing crosses but batches, on
/// their way in, and losses, on theirs out.
#[test]
fn training_copies_batches_and_losses_only() {
    const STEPS: usize = 5;
    let (all, steps) = (Ledger::new(), Ledger::new());
    let device = WgpuDevice::new().unwrap();
    let _all = all.open(); // also what the thread does that prepares batches, from here on
    let mut solver = solver(&device);
    solver.step(3).unwrap();
    let by_kernels = |ledger: &Ledger| {
        let entries = ledger.entries().into_iter();
        let uploads = entries.filter(|entry| entry.kind == Kind::Upload && entry.kernel.is_some());
        uploads.map(|entry| entry.count).sum::<u64>()
    };
    let warm = by_kernels(&all);
    let (_steps, _strict) = (steps.open(), ledger::fallbacks(Policy::Deny));
    solver.step(STEPS).unwrap();
    assert_eq!(steps.total(Kind::Upload), Total::default(), "{steps}");
    let losses = Total { count: STEPS as u64, bytes: 4 * STEPS as u64 };
    assert_eq!(steps.total(Kind::Download), losses, "{steps}");
    // That leaves the uploads of the other thread, which runs no kernel.
    assert_eq!(by_kernels(&all), warm, "{all}");
}

/// What the README shows is what is compiled here.
#[test]
fn the_readme_shows_the_first_stage() {
    let (readme, source) =
        (include_str!("../README.md"), include_str!("../examples/four_methods.rs"));
    let stage = source.split("// The backend starts here.\n\n").nth(1).unwrap();
    let stage = stage.split("\n// The backend ends here.").next().unwrap();
    assert!(readme.contains(stage), "the README shows another text");
    let code =
        stage.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"));
    assert!(code.count() <= 80, "the first stage has grown");
}
