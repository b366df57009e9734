//! Tests of the simulated device: delayed work, queue order, poison and injected faults.

use cortado::{
    Error, Result, Src, Storable, SyncedMemory, View, ViewMut,
    device::{
        SimulatedDevice,
        simulated::{Buffer, Fault, POISON},
    },
    kernel::traits::*,
    ledger::{EventKind, Ledger},
    op::{
        Axis, Gemm, LossNormalization, Lrn, LrnRegion, Pool2d, PoolRounding, RngKey, RowIndexing,
        SoftmaxLoss, TopK, Unary,
    },
};

type SimulatedMemory = SyncedMemory<SimulatedDevice>;

fn memory(device: &SimulatedDevice, values: &[f32]) -> SimulatedMemory {
    let mut memory = SyncedMemory::new(device, size_of_val(values));
    memory.host_mut().unwrap().copy_from_slice(f32::bytes_of(values));
    memory
}

fn view(memory: &SimulatedMemory) -> View<'_, f32, SimulatedDevice> {
    View::new(memory, memory.size() / 4).unwrap()
}

fn view_mut(memory: &mut SimulatedMemory) -> ViewMut<'_, f32, SimulatedDevice> {
    let len = memory.size() / 4;
    ViewMut::new(memory, len).unwrap()
}

fn values(memory: &SimulatedMemory) -> Vec<f32> {
    view(memory).host().unwrap().to_vec()
}

fn buffer(device: &SimulatedDevice, bytes: &[u8]) -> Buffer {
    let mut buffer = device.alloc(bytes.len()).unwrap();
    device.upload(bytes, &mut buffer, 0).unwrap();
    buffer
}

fn download(device: &SimulatedDevice, buffer: &Buffer) -> Result<Vec<u8>> {
    let mut bytes = vec![0; buffer.bytes()];
    device.download(buffer, 0, &mut bytes)?;
    Ok(bytes)
}

fn poison_bytes(len: usize) -> Vec<u8> {
    POISON.into_iter().cycle().take(len).collect()
}

#[test]
fn poison_is_nan_in_every_element_type() {
    let bytes = poison_bytes(8);
    assert!(f64::read_bytes(&bytes).unwrap().is_nan());
    assert!(f32::read_bytes(&bytes[..4]).unwrap().is_nan());
    assert!(cortado::f16::read_bytes(&bytes[..2]).unwrap().is_nan());
    assert!(cortado::bf16::read_bytes(&bytes[..2]).unwrap().is_nan());
}

// Tests of queues.

#[test]
fn queued_work_runs_only_when_a_caller_waits() {
    let device = SimulatedDevice::new();
    let mut host = [1, 2, 3, 4];
    let mut buffer = device.alloc(4).unwrap();
    device.upload(&host, &mut buffer, 0).unwrap();
    // Changing `host` has no effect on the queued upload, which has already copied the bytes.
    host.fill(9);
    assert_eq!((buffer.snapshot(), device.pending()), (vec![0; 4], 1));
    device.synchronize().unwrap();
    assert_eq!((buffer.snapshot(), device.pending()), (vec![1, 2, 3, 4], 0));
}

#[test]
fn kernels_are_queued_in_order_with_copies() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0]);
    let mut y = memory(&device, &[10.0, 20.0]);
    device.axpy(2.0, view(&x), view_mut(&mut y)).unwrap();
    device.unary(Unary::Neg, Src::InPlace, view_mut(&mut y)).unwrap();
    let counters = device.counters();
    assert_eq!((counters.kernels, counters.uploads, counters.executed), (2, 2, 0));
    assert_eq!(values(&y), [-12.0, -24.0]);
    assert_eq!(device.counters().executed, 4);
}

#[test]
fn a_kernel_that_returns_a_value_waits_for_queued_work() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0, -2.0]);
    device.scal(3.0, view_mut(&mut x)).unwrap();
    assert_eq!(device.asum(view(&x)).unwrap(), 9.0);
    assert_eq!(device.pending(), 0);
}

#[test]
fn a_wait_runs_the_work_of_a_fork_only_if_ordered_after_the_fork() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    let mut shared_buffer = device.alloc(2).unwrap();
    fork.upload(&[1, 2], &mut shared_buffer, 0).unwrap();
    assert_eq!(download(&device, &shared_buffer).unwrap(), [0, 0]);
    device.order_after(&fork).unwrap();
    // The device's queue is not ordered after the upload on the forked queue, so the download
    // returns the old bytes.
    fork.upload(&[3, 4], &mut shared_buffer, 0).unwrap();
    assert_eq!(download(&device, &shared_buffer).unwrap(), [1, 2]);
    assert_eq!(fork.pending(), 1);
    assert_eq!(download(&fork, &shared_buffer).unwrap(), [3, 4]);
}

#[test]
fn queue_order_is_transitive_across_forks() {
    let device = SimulatedDevice::new();
    let [first, second] = [device.fork_queue().unwrap(), device.fork_queue().unwrap()];
    let mut shared_buffer = device.alloc(1).unwrap();
    first.upload(&[1], &mut shared_buffer, 0).unwrap();
    second.order_after(&first).unwrap();
    second.upload(&[2], &mut shared_buffer, 0).unwrap();
    first.order_after(&second).unwrap();
    first.upload(&[3], &mut shared_buffer, 0).unwrap();
    device.order_after(&second).unwrap();
    assert_eq!(download(&device, &shared_buffer).unwrap(), [2]);
    assert_eq!(download(&first, &shared_buffer).unwrap(), [3]);
}

#[test]
fn clones_of_a_device_share_a_queue() {
    let device = SimulatedDevice::new();
    let shared_buffer = buffer(&device.clone(), &[7]);
    device.order_after(&device.clone()).unwrap();
    assert_eq!(device.pending(), 1);
    assert_eq!(download(&device, &shared_buffer).unwrap(), [7]);
}

#[test]
fn order_after_another_device_waits_for_the_work_of_that_device() {
    let [device, other] = [SimulatedDevice::new(), SimulatedDevice::new()];
    let buffer = buffer(&other, &[7]);
    device.order_after(&other).unwrap();
    assert_eq!((buffer.snapshot(), device.pending()), (vec![7], 0));
}

#[test]
fn a_prefetch_on_a_fork_runs_after_the_work_that_uses_the_buffer() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    let mut x = memory(&device, &[1.0; 8]);
    device.scal(2.0, view_mut(&mut x)).unwrap();
    assert_eq!(values(&x), [2.0; 8]);
    // The write on the host makes the device side stale and queues work that poisons the device
    // side.
    x.host_mut().unwrap().copy_from_slice(f32::bytes_of(&[3.0; 8]));
    x.prefetch(&fork).unwrap();
    device.scal(2.0, view_mut(&mut x)).unwrap();
    assert_eq!(values(&x), [6.0; 8]);
}

#[test]
fn a_dropped_buffer_lives_until_queued_work_has_used_it() {
    let device = SimulatedDevice::new();
    let mut y = memory(&device, &[1.0; 4]);
    {
        let x = memory(&device, &[2.0; 4]);
        device.axpy(1.0, view(&x), view_mut(&mut y)).unwrap();
    }
    assert_eq!(device.counters().bytes, 32);
    // An allocation of the same length must not reuse the dropped buffer, which queued work still
    // reads.
    let new_buffer = device.alloc(16).unwrap();
    assert_eq!(values(&y), [3.0; 4]);
    drop(new_buffer);
    assert_eq!(device.counters().bytes, 16);
}

#[test]
fn pending_work_and_staged_bytes_are_bounded() {
    let device = SimulatedDevice::new();
    let host = vec![1; 8 << 20];
    let mut buffer = device.alloc(host.len()).unwrap();
    for _ in 0..9 {
        device.upload(&host, &mut buffer, 0).unwrap();
        assert!(device.pending() <= 8, "queued uploads hold more than 64 MiB");
    }
    for _ in 0..5000 {
        device.upload(&[2], &mut buffer, 0).unwrap();
    }
    assert!(device.pending() <= 4096);
}

#[test]
fn several_threads_can_use_one_device() {
    let device = SimulatedDevice::with_threads(2).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let queue = device.fork_queue().unwrap();
            scope.spawn(move || {
                for round in 0..50 {
                    let content = [thread ^ round; 64];
                    let buffer = buffer(&queue, &content);
                    assert_eq!(download(&queue, &buffer).unwrap(), content);
                }
            });
        }
    });
}

// Tests of operands.

#[test]
fn one_memory_can_be_several_inputs_of_a_kernel() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0, 3.0, 4.0]);
    let mut y = memory(&device, &[0.0; 4]);
    device.gemm(&Gemm::new(2, 2, 2), view(&x), view(&x), view_mut(&mut y)).unwrap();
    assert_eq!(values(&y), [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(device.dot(view(&x), view(&x)).unwrap(), 30.0);
}

#[test]
fn a_kernel_on_part_of_a_memory_keeps_the_other_elements() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let mut y = memory(&device, &[-1.0; 5]);
    let mut part = ViewMut::<f32, _>::new(&mut y, 4).unwrap();
    device.copy(view(&x).slice(2..5).unwrap(), part.slice_mut(1..4).unwrap()).unwrap();
    assert_eq!(values(&y), [-1.0, 3.0, 4.0, 5.0, -1.0]);
}

#[test]
fn empty_operands_are_accepted() {
    let device = SimulatedDevice::new();
    let mut empty = memory(&device, &[]);
    device.fill(1.0, view_mut(&mut empty)).unwrap();
    assert_eq!(device.asum(view(&empty)).unwrap(), 0.0);
    assert_eq!(values(&empty), [0.0f32; 0]);
}

#[test]
fn a_kernel_call_with_invalid_operands_returns_an_error_at_once() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0; 3]);
    let mut y = memory(&device, &[2.0; 4]);
    let error = device.axpy(1.0, view(&x), view_mut(&mut y)).unwrap_err();
    assert!(matches!(error, Error::Length { op: "axpy", operand: "y", want: 3, got: 4 }));
    let error = device.uniform(RngKey::new(1), 2.0, 1.0, view_mut(&mut y)).unwrap_err();
    assert!(matches!(error, Error::InvalidInput { op: "uniform", .. }));
    assert_eq!((device.pending(), device.counters().kernels), (0, 0));
    assert_eq!(values(&y), [2.0; 4]);
}

/// The allocation of the second output fails. A kernel that had overwritten the first output before
/// it allocated the second output would have lost the first output's value.
#[test]
fn out_of_memory_on_the_second_output_leaves_the_first_intact() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[3.0, 1.0, 4.0, 1.0]);
    x.device().unwrap();
    let axis = Axis::new(2, 2, 1).unwrap();
    let pool = Pool2d::new(1, [2, 2], [1, 1], [1, 1], [0, 0], PoolRounding::Ceil).unwrap();
    let lrn = Lrn {
        region: LrnRegion::AcrossChannels,
        batch: 1,
        channels: 2,
        plane: [1, 2],
        size: 1,
        alpha: 1.0,
        beta: 0.5,
        k: 1.0,
    };
    type Kernel<'a> = (usize, &'a dyn Fn(&mut SimulatedMemory, &mut SimulatedMemory) -> Result<()>);
    let kernels: [Kernel<'_>; 4] = [
        (4, &|y, mask| {
            let mask = ViewMut::new(mask, 4)?;
            device.max_pool(&pool, view(&x), view_mut(y), mask)
        }),
        (2, &|mean, variance| device.moments(&axis, view(&x), view_mut(mean), view_mut(variance))),
        (2, &|values, places| {
            device.top_k(&TopK { axis, k: 1 }, view(&x), view_mut(values), view_mut(places))
        }),
        (4, &|scale, y| device.lrn(&lrn, view(&x), view_mut(scale), view_mut(y))),
    ];
    for (len, kernel) in kernels {
        let [mut first, mut second] = [1.0, 2.0].map(|value| memory(&device, &vec![value; len]));
        device.inject_fault(Fault::Alloc, 2);
        let error = kernel(&mut first, &mut second).unwrap_err();
        assert!(matches!(error.root(), Error::OutOfMemory { .. }), "{error}");
        assert_eq!((values(&first), values(&second)), (vec![1.0; len], vec![2.0; len]));
        kernel(&mut first, &mut second).unwrap();
        assert!(values(&first) != vec![1.0; len]);
    }
}

#[test]
fn the_ledger_names_kernels_that_run_on_the_simulated_device() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, -2.0]);
    let ledger = Ledger::new();
    {
        let _guard = ledger.open();
        device.asum(view(&x)).unwrap();
    }
    assert_eq!(ledger.total(EventKind::Fallback).count, 0);
    let entries = ledger.entries();
    assert_eq!(entries.len(), 2, "{ledger}");
    assert!(entries.iter().all(|entry| entry.kernel == Some("asum")), "{ledger}");
    assert!(entries.iter().all(|entry| entry.site.file() == file!()), "{ledger}");
    assert_eq!((entries[0].bytes, entries[1].bytes), (8, 4));
}

// Tests of poison.

#[test]
fn stale_memory_is_poisoned() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    x.device().unwrap();
    // `device_mut` makes the host side stale, so the simulated device poisons the host bytes.
    // `host_write_only` returns the poisoned host bytes.
    x.device_mut().unwrap();
    assert_eq!(x.host_write_only().unwrap(), poison_bytes(16));
    // The simulated device poisons device bytes only after all work that was queued earlier has
    // run.
    let stale_buffer = x.device_write_only().unwrap();
    assert_eq!(stale_buffer.snapshot(), [0; 16]);
    device.synchronize().unwrap();
    assert_eq!(stale_buffer.snapshot(), poison_bytes(16));
}

#[test]
fn new_memory_is_poisoned_before_the_first_write() {
    let device = SimulatedDevice::new();
    let mut x = SimulatedMemory::new(&device, 4);
    assert_eq!(x.host_write_only().unwrap(), poison_bytes(4));
    let mut y = SimulatedMemory::new(&device, 4);
    let buffer = y.device_write_only().unwrap();
    assert_eq!(download(&device, buffer).unwrap(), poison_bytes(4));
    let unwritten_memory = SimulatedMemory::new(&device, 4);
    assert_eq!(
        unwritten_memory.host().unwrap(),
        [0; 4],
        "memory that was never written must be zero"
    );
}

#[test]
fn reused_device_memory_is_zeroed() {
    let device = SimulatedDevice::new();
    drop(buffer(&device, &[5; 100]));
    device.synchronize().unwrap();
    assert_eq!(device.counters().bytes, 0);
    assert_eq!(device.alloc(100).unwrap().snapshot(), [0; 100]);
}

// Tests of injected faults.

#[test]
fn an_allocation_fault_fails_only_the_selected_allocation() {
    let device = SimulatedDevice::new();
    device.inject_fault(Fault::Alloc, 2);
    let _first = device.alloc(8).unwrap();
    let error = device.alloc(8).unwrap_err();
    assert!(matches!(&error, Error::OutOfMemory { device, bytes: 8 } if device == "simulated"));
    device.alloc(8).unwrap();
    assert!(matches!(device.alloc(isize::MAX as usize / 2), Err(Error::OutOfMemory { .. })));
    device.alloc(8).unwrap();
}

#[test]
fn a_copy_fault_fails_the_call_and_changes_nothing() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    device.inject_fault(Fault::Copy, 1);
    let error = x.device().unwrap_err().to_string();
    assert!(error.contains("upload of 16 bytes"), "{error}");
    device.scal(2.0, view_mut(&mut x)).unwrap();
    device.inject_fault(Fault::Copy, 1);
    let error = x.host().unwrap_err().to_string();
    assert!(error.contains("download of 16 bytes"), "{error}");
    assert_eq!(values(&x), [2.0; 4]);
}

#[test]
fn a_launch_fault_fails_before_any_transfer() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    device.inject_fault(Fault::Launch, 1);
    let error = device.fill(7.0, view_mut(&mut x)).unwrap_err();
    assert!(matches!(&error, Error::Device { device, .. } if device == "simulated"));
    assert!(error.to_string().contains("launch of fill of f32"), "{error}");
    assert_eq!((values(&x), device.counters().uploads), (vec![1.0; 4], 0));
}

#[test]
fn a_fault_in_flight_fails_the_next_wait_and_poisons_the_output() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    let mut y = memory(&device, &[1.0; 4]);
    // The first queued operation is the upload of `x`, and the second is the kernel `scal` on `x`.
    device.inject_fault(Fault::InFlight, 2);
    device.scal(2.0, view_mut(&mut x)).unwrap();
    device.scal(3.0, view_mut(&mut y)).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(
        error.to_string().contains("scal of f32 at tests/library/simulated_device.rs"),
        "{error}"
    );
    assert!(matches!(error.root(), Error::Device { .. }));
    device.synchronize().unwrap();
    assert_eq!(x.host().unwrap(), poison_bytes(16));
    assert_eq!(values(&y), [3.0; 4], "work queued after a failed kernel must run");
}

#[test]
fn an_upload_that_fails_in_flight_fails_the_next_wait() {
    let device = SimulatedDevice::new();
    device.inject_fault(Fault::InFlight, 1);
    let buffer = buffer(&device, &[1, 2]);
    let error = download(&device, &buffer).unwrap_err().to_string();
    assert!(error.contains("upload of 2 bytes"), "{error}");
    assert_eq!(download(&device, &buffer).unwrap(), poison_bytes(2));
}

#[test]
fn a_failure_of_a_fork_reaches_queues_ordered_after_the_fork() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    device.inject_fault(Fault::InFlight, 1);
    let _lost_buffer = buffer(&fork, &[1]);
    // The device's queue is not yet ordered after the fork's queue, so waiting for the device
    // succeeds.
    device.synchronize().unwrap();
    device.order_after(&fork).unwrap();
    for queue in [&device, &fork] {
        let error = queue.synchronize().unwrap_err().to_string();
        assert!(error.contains("upload of 1 bytes"), "{error}");
        queue.synchronize().unwrap();
    }
}

#[test]
fn invalid_indices_and_labels_are_errors_of_the_next_wait() {
    let device = SimulatedDevice::new();
    let table = memory(&device, &[1.0; 6]);
    let indices = memory(&device, &[1, 3].map(f32::from_bits));
    let mut y = memory(&device, &[0.0; 4]);
    let rows = RowIndexing { table: 3, width: 2, count: 2 };
    let index_view = View::<u32, _>::new(&indices, 2).unwrap();
    device.gather(&rows, view(&table), index_view, view_mut(&mut y)).unwrap();
    let error = y.host().unwrap_err();
    assert!(matches!(error.root(), Error::InvalidInput { op: "gather", .. }), "{error}");

    let axis = Axis::new(1, 2, 1).unwrap();
    let op = SoftmaxLoss { axis, ignore: None, normalization: LossNormalization::Valid };
    let (p, label) = (memory(&device, &[0.5; 2]), memory(&device, &[2.0]));
    let mut loss = memory(&device, &[0.0]);
    device.softmax_loss(&op, view(&p), view(&label), view_mut(&mut loss)).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(matches!(error.root(), Error::InvalidInput { op: "softmax_loss", .. }), "{error}");
    assert_eq!(loss.host().unwrap(), poison_bytes(4));
}

#[cfg(feature = "net")]
mod training {
    use super::*;
    use crate::digits::{ON_ONE_THREAD, train_digits};
    use cortado::{
        Solver,
        proto::{self, SolverParameter},
    };

    #[test]
    fn training_lenet_is_bit_identical_to_the_cpu_without_fallbacks() {
        let ledger = Ledger::new();
        let results = {
            let _guard = ledger.open();
            train_digits(&SimulatedDevice::new()).unwrap()
        };
        assert_eq!(ledger.total(EventKind::Fallback).count, 0, "{ledger}");
        assert!(results == *ON_ONE_THREAD);
    }

    /// No call reads the weights after the last solver update, so the solver itself must wait for
    /// the update.
    #[test]
    fn a_fault_in_the_last_update_fails_training() {
        let text = r#"base_lr: 0.1 lr_policy: "fixed" max_iter: 2 snapshot_after_train: false
            net_param {
              layer { name: "x" type: "DummyData" top: "x" top: "t"
                dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 1 } } }
              layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
                inner_product_param { num_output: 3 } }
              layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
            }"#;
        let solve = |device: &SimulatedDevice| {
            let param = proto::parse_text::<SolverParameter>(text, "text")?;
            Solver::<f32>::new(param, device)?.solve()
        };
        let reference_device = SimulatedDevice::with_threads(1).unwrap();
        solve(&reference_device).and_then(|()| reference_device.synchronize()).unwrap();
        let device = SimulatedDevice::with_threads(1).unwrap();
        device.inject_fault(Fault::InFlight, reference_device.counters().executed);
        let error = solve(&device).unwrap_err().to_string();
        assert!(error.contains("solver_update") && error.contains("in flight"), "{error}");
    }

    #[test]
    fn a_fault_in_flight_ends_training_with_an_error() {
        let device = SimulatedDevice::new();
        // The injected fault may hit the upload of a prefetched batch that training never uses. The
        // error of an unused batch is only logged, so the test repeats the training until a run
        // fails.
        let error = (0..20).find_map(|_| {
            device.inject_fault(Fault::InFlight, 100);
            train_digits(&device).err()
        });
        let error = error.expect("no training run returned the error of the fault").to_string();
        assert!(error.contains("in flight"), "{error}");
        // If the upload of a prefetched batch has failed, the next wait for the device returns the
        // error.
        let _ = device.synchronize();
        train_digits(&device).unwrap();
    }
}
