//! The mirror device: what it delays, orders, poisons and lets fail.

use cortado::{
    Error, Memory, Result, Src, SyncedMemory, View, ViewMut,
    device::{
        SimulatedDevice,
        simulated::{Buffer, Fault, POISON},
    },
    kernel::{Blas, Elementwise, Indexing, Losses, Random},
    ledger::{EventKind, Ledger},
    op::{Axis, Gemm, LossNormalization, RngKey, RowIndexing, SoftmaxLoss, Unary},
};

type Memories = SyncedMemory<SimulatedDevice>;

fn memory(device: &SimulatedDevice, values: &[f32]) -> Memories {
    let mut memory = SyncedMemory::new(device, size_of_val(values));
    memory.host_mut().unwrap().copy_from_slice(bytemuck::cast_slice(values));
    memory
}

fn view(memory: &Memories) -> View<'_, f32, SimulatedDevice> {
    View::new(memory, memory.size() / 4).unwrap()
}

fn view_mut(memory: &mut Memories) -> ViewMut<'_, f32, SimulatedDevice> {
    let len = memory.size() / 4;
    ViewMut::new(memory, len).unwrap()
}

fn values(memory: &Memories) -> Vec<f32> {
    view(memory).host().unwrap().to_vec()
}

fn buffer(device: &SimulatedDevice, bytes: &[u8]) -> Buffer {
    let mut buffer = device.alloc(bytes.len()).unwrap();
    device.upload(bytes, &mut buffer, 0).unwrap();
    buffer
}

fn downloaded(device: &SimulatedDevice, buffer: &Buffer) -> Result<Vec<u8>> {
    let mut bytes = vec![0; buffer.bytes()];
    device.download(buffer, 0, &mut bytes)?;
    Ok(bytes)
}

fn poisoned(len: usize) -> Vec<u8> {
    POISON.into_iter().cycle().take(len).collect()
}

#[test]
fn poison_is_no_number_of_any_type() {
    let bytes = poisoned(8);
    assert!(bytemuck::pod_read_unaligned::<f64>(&bytes).is_nan());
    assert!(bytemuck::pod_read_unaligned::<f32>(&bytes[..4]).is_nan());
    assert!(bytemuck::pod_read_unaligned::<cortado::f16>(&bytes[..2]).is_nan());
    assert!(bytemuck::pod_read_unaligned::<cortado::bf16>(&bytes[..2]).is_nan());
}

// Queues.

#[test]
fn work_runs_when_somebody_waits_and_not_before() {
    let device = SimulatedDevice::new();
    let mut host = [1, 2, 3, 4];
    let mut buffer = device.alloc(4).unwrap();
    device.upload(&host, &mut buffer, 0).unwrap();
    host.fill(9); // the upload took a copy
    assert_eq!((buffer.snapshot(), device.pending()), (vec![0; 4], 1));
    device.synchronize().unwrap();
    assert_eq!((buffer.snapshot(), device.pending()), (vec![1, 2, 3, 4], 0));
}

#[test]
fn kernels_wait_as_copies_do() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0]);
    let mut y = memory(&device, &[10.0, 20.0]);
    device.axpy(2.0, view(&x), view_mut(&mut y)).unwrap();
    device.unary(Unary::Neg, Src::InPlace, view_mut(&mut y)).unwrap();
    let counters = device.counters();
    assert_eq!((counters.kernels, counters.uploads, counters.ran), (2, 2, 0));
    assert_eq!(values(&y), [-12.0, -24.0]);
    assert_eq!(device.counters().ran, 4);
}

#[test]
fn a_scalar_result_waits() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0, -2.0]);
    device.scal(3.0, view_mut(&mut x)).unwrap();
    assert_eq!(device.asum(view(&x)).unwrap(), 9.0);
    assert_eq!(device.pending(), 0);
}

#[test]
fn forks_lag_behind_unless_ordered() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    let mut shared = device.alloc(2).unwrap();
    fork.upload(&[1, 2], &mut shared, 0).unwrap();
    assert_eq!(downloaded(&device, &shared).unwrap(), [0, 0]);
    device.order_after(&fork).unwrap();
    fork.upload(&[3, 4], &mut shared, 0).unwrap(); // later than the order
    assert_eq!(downloaded(&device, &shared).unwrap(), [1, 2]);
    assert_eq!(fork.pending(), 1);
    assert_eq!(downloaded(&fork, &shared).unwrap(), [3, 4]);
}

#[test]
fn orders_reach_through_several_forks() {
    let device = SimulatedDevice::new();
    let [first, second] = [device.fork_queue().unwrap(), device.fork_queue().unwrap()];
    let mut shared = device.alloc(1).unwrap();
    first.upload(&[1], &mut shared, 0).unwrap();
    second.order_after(&first).unwrap();
    second.upload(&[2], &mut shared, 0).unwrap();
    first.order_after(&second).unwrap();
    first.upload(&[3], &mut shared, 0).unwrap();
    device.order_after(&second).unwrap();
    assert_eq!(downloaded(&device, &shared).unwrap(), [2]);
    assert_eq!(downloaded(&first, &shared).unwrap(), [3]);
}

#[test]
fn clones_share_a_queue() {
    let device = SimulatedDevice::new();
    let shared = buffer(&device.clone(), &[7]);
    device.order_after(&device.clone()).unwrap();
    assert_eq!(device.pending(), 1);
    assert_eq!(downloaded(&device, &shared).unwrap(), [7]);
}

#[test]
fn another_device_is_waited_for() {
    let [device, other] = [SimulatedDevice::new(), SimulatedDevice::new()];
    let theirs = buffer(&other, &[7]);
    device.order_after(&other).unwrap();
    assert_eq!((theirs.snapshot(), device.pending()), (vec![7], 0));
}

#[test]
fn prefetching_waits_for_its_own_queue_and_what_that_follows() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    let mut x = memory(&device, &[1.0; 8]);
    device.scal(2.0, view_mut(&mut x)).unwrap();
    assert_eq!(values(&x), [2.0; 8]);
    // The device's allocation is stale from here on, and its poison still queued.
    x.host_mut().unwrap().copy_from_slice(bytemuck::cast_slice(&[3.0f32; 8]));
    x.prefetch(&fork).unwrap();
    device.scal(2.0, view_mut(&mut x)).unwrap();
    assert_eq!(values(&x), [6.0; 8]);
}

#[test]
fn dropped_buffers_live_until_queued_work_is_done_with_them() {
    let device = SimulatedDevice::new();
    let mut y = memory(&device, &[1.0; 4]);
    {
        let x = memory(&device, &[2.0; 4]);
        device.axpy(1.0, view(&x), view_mut(&mut y)).unwrap();
    }
    assert_eq!(device.counters().bytes, 32);
    let another = device.alloc(16).unwrap(); // of the same size: not the dropped one's
    assert_eq!(values(&y), [3.0; 4]);
    drop(another);
    assert_eq!(device.counters().bytes, 16);
}

#[test]
fn queued_copies_are_bounded() {
    let device = SimulatedDevice::new();
    let host = vec![1; 8 << 20];
    let mut buffer = device.alloc(host.len()).unwrap();
    for _ in 0..9 {
        device.upload(&host, &mut buffer, 0).unwrap();
        assert!(device.pending() <= 8, "more than 64 MiB wait");
    }
    for _ in 0..5000 {
        device.upload(&[2], &mut buffer, 0).unwrap();
    }
    assert!(device.pending() <= 4096);
}

#[test]
fn threads_may_use_one_device_at_once() {
    let device = SimulatedDevice::with_threads(2).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let queue = device.fork_queue().unwrap();
            scope.spawn(move || {
                for round in 0..50 {
                    let content = [thread ^ round; 64];
                    let buffer = buffer(&queue, &content);
                    assert_eq!(downloaded(&queue, &buffer).unwrap(), content);
                }
            });
        }
    });
}

// Operands.

#[test]
fn one_memory_may_be_several_inputs() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0, 3.0, 4.0]);
    let mut y = memory(&device, &[0.0; 4]);
    device.gemm(&Gemm::new(2, 2, 2), view(&x), view(&x), view_mut(&mut y)).unwrap();
    assert_eq!(values(&y), [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(device.dot(view(&x), view(&x)).unwrap(), 30.0);
}

#[test]
fn parts_of_a_memory_leave_the_rest() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let mut y = memory(&device, &[-1.0; 5]);
    let mut part = ViewMut::<f32, _>::new(&mut y, 4).unwrap();
    device.copy(view(&x).slice(2..5).unwrap(), part.slice_mut(1..4).unwrap()).unwrap();
    assert_eq!(values(&y), [-1.0, 3.0, 4.0, 5.0, -1.0]);
}

#[test]
fn empty_operands_are_fine() {
    let device = SimulatedDevice::new();
    let mut empty = memory(&device, &[]);
    device.fill(1.0, view_mut(&mut empty)).unwrap();
    assert_eq!(device.asum(view(&empty)).unwrap(), 0.0);
    assert_eq!(values(&empty), [0.0f32; 0]);
}

#[test]
fn wrong_lengths_are_told_at_the_call() {
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

#[test]
fn kernels_are_native_and_their_copies_on_their_account() {
    let device = SimulatedDevice::new();
    let x = memory(&device, &[1.0, -2.0]);
    let ledger = Ledger::new();
    {
        let _open = ledger.open();
        device.asum(view(&x)).unwrap();
    }
    assert_eq!(ledger.total(EventKind::Fallback).count, 0);
    let entries = ledger.entries();
    assert_eq!(entries.len(), 2, "{ledger}");
    assert!(entries.iter().all(|entry| entry.kernel == Some("asum")), "{ledger}");
    assert!(entries.iter().all(|entry| entry.site.file() == file!()), "{ledger}");
    assert_eq!((entries[0].bytes, entries[1].bytes), (8, 4));
}

// Poison.

#[test]
fn memory_without_a_value_is_poisoned() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    x.device().unwrap();
    // The host's bytes become stale, and are what `host_write_only` finds again.
    x.device_mut().unwrap();
    assert_eq!(x.host_write_only().unwrap(), poisoned(16));
    // Now the device's are, once what was queued before has run.
    let stale = x.device_write_only().unwrap();
    assert_eq!(stale.snapshot(), [0; 16]);
    device.synchronize().unwrap();
    assert_eq!(stale.snapshot(), poisoned(16));
}

#[test]
fn new_memory_to_be_overwritten_is_poisoned() {
    let device = SimulatedDevice::new();
    let mut x = Memories::new(&device, 4);
    assert_eq!(x.host_write_only().unwrap(), poisoned(4));
    let mut y = Memories::new(&device, 4);
    let buffer = y.device_write_only().unwrap();
    assert_eq!(downloaded(&device, buffer).unwrap(), poisoned(4));
    let z = Memories::new(&device, 4);
    assert_eq!(z.host().unwrap(), [0; 4], "nobody wrote it");
}

#[test]
fn freed_memory_is_used_again_and_zero() {
    let device = SimulatedDevice::new();
    drop(buffer(&device, &[5; 100]));
    device.synchronize().unwrap();
    assert_eq!(device.counters().bytes, 0);
    assert_eq!(device.alloc(100).unwrap().snapshot(), [0; 100]);
}

// Faults.

#[test]
fn an_allocation_fails_and_the_next_does_not() {
    let device = SimulatedDevice::new();
    device.inject_fault(Fault::Alloc, 2);
    let _first = device.alloc(8).unwrap();
    let error = device.alloc(8).unwrap_err();
    assert!(matches!(&error, Error::OutOfMemory { device, bytes: 8 } if device == "mirror"));
    device.alloc(8).unwrap();
    assert!(matches!(device.alloc(isize::MAX as usize / 2), Err(Error::OutOfMemory { .. })));
    device.alloc(8).unwrap();
}

#[test]
fn copies_fail_at_the_call_and_change_nothing() {
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
fn a_launch_fails_before_anything_is_touched() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    device.inject_fault(Fault::Launch, 1);
    let error = device.fill(7.0, view_mut(&mut x)).unwrap_err();
    assert!(matches!(&error, Error::Device { device, .. } if device == "mirror"));
    assert!(error.to_string().contains("launch of fill of f32"), "{error}");
    assert_eq!((values(&x), device.counters().uploads), (vec![1.0; 4], 0));
}

#[test]
fn a_failure_in_flight_is_told_by_the_next_wait_and_leaves_poison() {
    let device = SimulatedDevice::new();
    let mut x = memory(&device, &[1.0; 4]);
    let mut y = memory(&device, &[1.0; 4]);
    device.inject_fault(Fault::InFlight, 2); // the upload is the first
    device.scal(2.0, view_mut(&mut x)).unwrap();
    device.scal(3.0, view_mut(&mut y)).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(error.to_string().contains("scal of f32 at tests/mirror.rs"), "{error}");
    assert!(matches!(error.root(), Error::Device { .. }));
    device.synchronize().unwrap();
    assert_eq!(x.host().unwrap(), poisoned(16));
    assert_eq!(values(&y), [3.0; 4], "the device went on");
}

#[test]
fn an_upload_fails_in_flight() {
    let device = SimulatedDevice::new();
    device.inject_fault(Fault::InFlight, 1);
    let buffer = buffer(&device, &[1, 2]);
    let error = downloaded(&device, &buffer).unwrap_err().to_string();
    assert!(error.contains("upload of 2 bytes"), "{error}");
    assert_eq!(downloaded(&device, &buffer).unwrap(), poisoned(2));
}

#[test]
fn a_failure_reaches_whoever_waits_for_it() {
    let device = SimulatedDevice::new();
    let fork = device.fork_queue().unwrap();
    device.inject_fault(Fault::InFlight, 1);
    let _lost = buffer(&fork, &[1]);
    device.synchronize().unwrap(); // not ordered after the fork
    device.order_after(&fork).unwrap();
    for queue in [&device, &fork] {
        let error = queue.synchronize().unwrap_err().to_string();
        assert!(error.contains("upload of 1 bytes"), "{error}");
        queue.synchronize().unwrap();
    }
}

#[test]
fn what_only_the_data_shows_is_told_at_the_wait() {
    let device = SimulatedDevice::new();
    let table = memory(&device, &[1.0; 6]);
    let indices = memory(&device, bytemuck::cast_slice(&[1u32, 3]));
    let mut y = memory(&device, &[0.0; 4]);
    let rows = RowIndexing { table: 3, width: 2, count: 2 };
    let picks = View::<u32, _>::new(&indices, 2).unwrap();
    device.gather(&rows, view(&table), picks, view_mut(&mut y)).unwrap();
    let error = y.host().unwrap_err();
    assert!(matches!(error.root(), Error::InvalidInput { op: "gather", .. }), "{error}");

    let axis = Axis::new(1, 2, 1).unwrap();
    let op = SoftmaxLoss { axis, ignore: None, normalization: LossNormalization::Valid };
    let (p, label) = (memory(&device, &[0.5; 2]), memory(&device, &[2.0]));
    let mut loss = memory(&device, &[0.0]);
    device.softmax_loss(&op, view(&p), view(&label), view_mut(&mut loss)).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(matches!(error.root(), Error::InvalidInput { op: "softmax_loss", .. }), "{error}");
    assert_eq!(loss.host().unwrap(), poisoned(4));
}

#[cfg(feature = "net")]
mod training {
    use super::*;
    use cortado::{
        CpuDevice, Device, Solver,
        proto::{self, SolverParameter},
        solver::Event,
    };
    use std::sync::{Arc, Mutex};

    /// Losses of the first iterations of the digits example, and all weights then.
    fn train<D: Device>(device: &D, iterations: usize) -> Result<(Vec<f64>, Vec<f32>)> {
        let mut param: SolverParameter = proto::read_text("examples/digits/solver.prototxt")?;
        param.snapshot_after_train = Some(false);
        param.test_initialization = Some(false);
        let mut solver = Solver::<f32, D>::new(param, device)?;
        let losses = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&losses);
        solver.add_observer(move |event| {
            if let Event::Iterated { loss, .. } = event {
                seen.lock().unwrap().push(*loss);
            }
        });
        solver.step(iterations)?;
        let mut weights = Vec::new();
        for param in solver.net().learnable_params() {
            weights.extend_from_slice(param.blob().data()?.host()?);
        }
        let losses = losses.lock().unwrap().clone();
        Ok((losses, weights))
    }

    #[test]
    fn lenet_has_the_bits_of_the_cpu_without_a_fallback() {
        let ledger = Ledger::new();
        let mirror = {
            let _open = ledger.open();
            train(&SimulatedDevice::new(), 5).unwrap()
        };
        assert_eq!(ledger.total(EventKind::Fallback).count, 0, "{ledger}");
        let cpu = train(&CpuDevice::new(), 5).unwrap();
        assert_eq!(mirror.0, cpu.0);
        assert!(mirror.1 == cpu.1, "weights differ");
    }

    /// Nobody reads the weights after it.
    #[test]
    fn a_fault_in_the_last_update_is_told_when_training_ends() {
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
            Solver::<f32, _>::new(param, device)?.solve()
        };
        let whole = SimulatedDevice::with_threads(1).unwrap();
        solve(&whole).and_then(|()| whole.synchronize()).unwrap();
        let device = SimulatedDevice::with_threads(1).unwrap();
        device.inject_fault(Fault::InFlight, whole.counters().ran);
        let error = solve(&device).unwrap_err().to_string();
        assert!(error.contains("solver_update") && error.contains("in flight"), "{error}");
    }

    #[test]
    fn a_fault_in_training_ends_it_with_its_name() {
        let device = SimulatedDevice::new();
        // A batch that is never used may be what the fault befalls: the log alone is told of that.
        let ended = (0..20).find_map(|_| {
            device.inject_fault(Fault::InFlight, 100);
            train(&device, 20).err()
        });
        let error = ended.expect("training that a fault ends").to_string();
        assert!(error.contains("in flight"), "{error}");
        // A batch on its way may have told it first: then the device still keeps it.
        let _ = device.synchronize();
        train(&device, 1).unwrap();
    }
}
