//! Tests that train LeNet on two versions of the backend: the first and the last stage of the
//! tutorial in the README.

use cortado::{
    CpuDevice, Device, Solver,
    ledger::{self, EventKind, Ledger, Policy, Total},
    proto::{self, NetParameter, SolverParameter, pooling_parameter::PoolMethod},
    solver::Event,
};
use cortado_wgpu::WgpuDevice;
use std::sync::{Arc, Mutex};

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/four_methods.rs"]
mod four_methods;
use four_methods::FourMethods;

/// Returns the solver of the digits example, with the given method in both pooling layers.
fn solver<D: Device>(device: &D, pooling: PoolMethod) -> Solver<f32> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut param: SolverParameter =
        proto::read_text(format!("{root}/examples/digits/solver.prototxt")).unwrap();
    let net = param.net.take().unwrap();
    let mut net: NetParameter = proto::read_text(format!("{root}/{net}")).unwrap();
    for param in net.layer.iter_mut().filter_map(|layer| layer.pooling_param.as_mut()) {
        param.set_pool(pooling);
    }
    param.net_param = Some(net);
    param.snapshot_after_train = Some(false);
    param.test_initialization = Some(false);
    Solver::new(param, device).unwrap()
}

/// Returns the losses of the first 10 training iterations on `device`.
fn losses<D: Device>(device: &D, pooling: PoolMethod) -> Vec<f64> {
    let mut solver = solver(device, pooling);
    let losses = Arc::new(Mutex::new(Vec::new()));
    let recorded_losses = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            recorded_losses.lock().unwrap().push(*loss);
        }
    });
    solver.step(10).unwrap();
    let losses = losses.lock().unwrap();
    losses.clone()
}

/// Asserts that the loss of each step with shaders differs from that of the CPU by less than
/// `tolerance(step)` times the CPU's loss.
fn check_losses_with_shaders(pooling: PoolMethod, tolerance: impl Fn(usize) -> f64) {
    let device_losses = losses(&WgpuDevice::new().unwrap(), pooling);
    let cpu_losses = losses(&CpuDevice::new(), pooling);
    for (step, (device_loss, cpu_loss)) in device_losses.iter().zip(cpu_losses).enumerate() {
        assert!(
            (device_loss - cpu_loss).abs() < tolerance(step) * cpu_loss,
            "step {step}: {device_loss}, on the CPU {cpu_loss}"
        );
    }
}

#[test]
fn losses_with_four_methods_are_bit_identical_to_the_cpus() {
    let device = FourMethods::new().unwrap();
    assert_eq!(losses(&device, PoolMethod::Max), losses(&CpuDevice::new(), PoolMethod::Max));
}

/// The CPU computes the second convolution by Winograd's algorithm, which rounds differently. The
/// losses still differ by only one unit in the last place, 1.2e-7.
#[test]
fn losses_with_average_pooling_and_shaders_agree_with_the_cpus_within_rounding() {
    check_losses_with_shaders(PoolMethod::Ave, |_| 1e-6);
}

/// Two elements of a pooling window can differ by less than their rounding errors. The maximum can
/// then be a different element on each device, and the gradient goes to a different element. The
/// losses are equal for 7 steps. The difference then about doubles in each step, and reaches 1.5e-5 in
/// the last.
#[test]
fn losses_with_maximum_pooling_and_shaders_stay_near_the_cpus() {
    check_losses_with_shaders(PoolMethod::Max, |step| if step < 9 { 1e-5 } else { 1e-4 });
}

/// After the first training steps, every kernel runs on the device, and only batches and losses are
/// transferred.
#[test]
fn training_transfers_batches_and_losses_only() {
    const STEPS: usize = 5;
    let (run_ledger, step_ledger) = (Ledger::new(), Ledger::new());
    let device = WgpuDevice::new().unwrap();
    let _run_guard = run_ledger.open(); // the solver's prefetch thread inherits the ledger
    let mut solver = solver(&device, PoolMethod::Max);
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
