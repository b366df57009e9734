//! Tests that train LeNet on two versions of the backend: the first and the last stage of the
//! tutorial in the README.

use cortado::{
    CpuDevice, Device, Solver,
    ledger::{self, EventKind, Ledger, Policy, Total},
    proto::{self, SolverParameter},
    solver::Event,
};
use cortado_wgpu::WgpuDevice;
use std::sync::{Arc, Mutex};

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/four_methods.rs"]
mod four_methods;
use four_methods::FourMethods;

/// Returns the solver of the digits example, with absolute paths.
fn solver<D: Device>(device: &D) -> Solver<f32> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut param: SolverParameter =
        proto::read_text(format!("{root}/examples/digits/solver.prototxt")).unwrap();
    param.net = Some(format!("{root}/{}", param.net()));
    param.snapshot_after_train = Some(false);
    param.test_initialization = Some(false);
    Solver::new(param, device).unwrap()
}

/// Returns the losses of the first training iterations on `device`.
fn losses<D: Device>(device: &D, iterations: usize) -> Vec<f64> {
    let mut solver = solver(device);
    let losses = Arc::new(Mutex::new(Vec::new()));
    let recorded_losses = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            recorded_losses.lock().unwrap().push(*loss);
        }
    });
    solver.step(iterations).unwrap();
    let losses = losses.lock().unwrap();
    losses.clone()
}

#[test]
fn losses_with_four_methods_are_bit_identical_to_the_cpus() {
    assert_eq!(losses(&FourMethods::new().unwrap(), 10), losses(&CpuDevice::new(), 10));
}

#[test]
fn losses_with_shaders_agree_with_the_cpus_within_rounding() {
    let device = WgpuDevice::new().unwrap();
    for (step, (device_loss, cpu_loss)) in
        losses(&device, 10).iter().zip(losses(&CpuDevice::new(), 10)).enumerate()
    {
        assert!(
            (device_loss - cpu_loss).abs() < 1e-5 * cpu_loss,
            "step {step}: {device_loss}, on the CPU {cpu_loss}"
        );
    }
}

/// After the first training steps, every kernel runs on the device, and only batches and losses are
/// transferred.
#[test]
fn training_transfers_batches_and_losses_only() {
    const STEPS: usize = 5;
    let (run_ledger, step_ledger) = (Ledger::new(), Ledger::new());
    let device = WgpuDevice::new().unwrap();
    let _run_guard = run_ledger.open(); // the solver's prefetch thread inherits the ledger
    let mut solver = solver(&device);
    solver.step(3).unwrap();
    let kernel_uploads = |ledger: &Ledger| {
        let entries = ledger.entries().into_iter();
        let uploads =
            entries.filter(|entry| entry.kind == EventKind::Upload && entry.kernel.is_some());
        uploads.map(|entry| entry.count).sum::<u64>()
    };
    let warm_up_uploads = kernel_uploads(&run_ledger);
    let (_step_guard, _policy_guard) =
        (step_ledger.open(), ledger::set_fallback_policy(Policy::Deny));
    solver.step(STEPS).unwrap();
    assert_eq!(step_ledger.total(EventKind::Upload), Total::default(), "{step_ledger}");
    let losses = Total { count: STEPS as u64, bytes: 4 * STEPS as u64 };
    assert_eq!(step_ledger.total(EventKind::Download), losses, "{step_ledger}");
    // The prefetch thread runs no kernel, so the count of kernel uploads excludes the uploads of
    // the prefetch thread.
    assert_eq!(kernel_uploads(&run_ledger), warm_up_uploads, "{run_ledger}");
}

#[test]
fn readme_shows_the_source_of_four_methods() {
    let (readme, source) =
        (include_str!("../README.md"), include_str!("../examples/four_methods.rs"));
    let stage = source.split("// The source code in the README starts here.\n\n").nth(1).unwrap();
    let stage = stage.split("\n// The source code in the README ends here.").next().unwrap();
    assert!(
        readme.contains(stage),
        "README.md differs from examples/four_methods.rs; copy the source into the first code block \
         of README.md"
    );
    let code =
        stage.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"));
    assert!(code.count() <= 80, "four_methods.rs has more than 80 lines of code");
}
