//! Tests of kernels that CUDA graphs launch.

use super::{
    check_dropped_memory, driver, first_element, gpu_with, is_child, steps::small_net, values,
};
use cortado::{
    Blob, Error, Memory, Solver, SyncedMemory, View, ViewMut,
    device::{CudaDevice, cuda::LaunchCounts},
    kernel::{Blas, Elementwise, Indexing},
    op::{RowIndexing, Unary},
    proto::{LayerParameter, SolverParameter, parse_text},
};

fn gpu_with_graphs(ordinal: u32) -> Option<CudaDevice> {
    gpu_with(ordinal, |builder| builder.graphs(true))
}

/// Computes `y ← y + step · x` for each step, without waiting if `x` is valid on the device.
fn add_steps(
    device: &CudaDevice,
    steps: &[f32],
    x: &Blob<f32, CudaDevice>,
    y: &Blob<f32, CudaDevice>,
) {
    for step in steps {
        device.axpy(*step, x.data().unwrap().view(), y.data_mut().unwrap().view_mut()).unwrap();
    }
}

/// Trains a small LeNet with dropout for seven steps, each with other images and another learning
/// rate. Returns the losses, the trained parameters and the counts of launches.
fn train_lenet(graphs: bool) -> Option<(Vec<f32>, Vec<Vec<f32>>, LaunchCounts)> {
    let device = gpu_with(0, |builder| builder.graphs(graphs))?;
    let mut net = small_net("examples/mnist/lenet.prototxt", 1, 28);
    let dropout = "name: 'dropout' type: 'Dropout' bottom: 'ip1' top: 'ip1'";
    let second_product = net.layer.iter().position(|layer| layer.name() == "ip2").unwrap();
    net.layer.insert(second_product, parse_text::<LayerParameter>(dropout, "dropout").unwrap());
    let param = "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.1 \
                 power: 0.75 random_seed: 1 snapshot_after_train: false";
    let mut param: SolverParameter = parse_text(param, "the solver").unwrap();
    param.net_param = Some(net);
    let mut solver = Solver::<f32>::new(param, &device).unwrap();
    let mut losses = Vec::new();
    for step in 0..7 {
        let fill = |name, value: &dyn Fn(usize) -> f32| {
            let mut blob = solver.net().blob(name).unwrap().data_mut().unwrap();
            let values = blob.host_mut().unwrap();
            values.iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
        };
        fill("data", &|i| ((i * 7 + step) % 13) as f32 / 13.0);
        fill("label", &|i| ((i + step) % 2) as f32);
        solver.step(1).unwrap();
        losses.push(solver.net().blob("loss").unwrap().data().unwrap().host().unwrap()[0]);
    }
    device.synchronize().unwrap();
    let params = solver.net().params().iter().map(|param| param.blob().to_vec().unwrap()).collect();
    Some((losses, params, device.launch_counts()))
}

#[test]
fn lenet_training_is_bit_identical_with_and_without_graphs() {
    let (losses, params, counts) = or_skip!(train_lenet(true));
    let (expected_losses, expected_params, expected_counts) = or_skip!(train_lenet(false));
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&losses), bits(&expected_losses), "{losses:?}");
    assert!(losses.windows(2).all(|pair| pair[0] != pair[1]), "{losses:?}");
    for (values, expected) in params.iter().zip(&expected_params) {
        assert_eq!(bits(values), bits(expected));
    }
    let LaunchCounts { kernels, graphs, graph_kernels, updated_kernels } = counts;
    assert_eq!(kernels + graph_kernels, expected_counts.kernels);
    assert_eq!(expected_counts.graphs, 0);
    // The first step launches all kernels one by one.
    assert!(graph_kernels > expected_counts.kernels / 2, "{counts:?}");
    assert!(graphs > 0 && graph_kernels / graphs > 8, "{counts:?}");
    // The learning rate and the keys of the random numbers change in each step.
    assert!(updated_kernels > 0, "{counts:?}");
}

#[test]
fn a_graph_uses_the_current_arguments_and_addresses() {
    let device = or_skip!(gpu_with_graphs(0));
    let blobs = [(); 3].map(|()| Blob::<f32, _>::new(&device, &[40]).unwrap());
    let mut expected = [0.0; 3];
    for round in 0..6 {
        let steps = [1.0, 2.0, 4.0, 8.0, round as f32];
        add_steps(&device, &steps, &values(&device, 40), &blobs[round % 3]);
        expected[round % 3] += -7.5 * steps.iter().sum::<f32>();
        device.synchronize().unwrap();
    }
    assert_eq!(blobs.each_ref().map(first_element), expected);
    // From the second round on, the launches are those of the same graph with other arguments.
    let counts = device.launch_counts();
    assert_eq!((counts.kernels, counts.graphs, counts.graph_kernels), (5, 5, 25), "{counts:?}");
    assert!(counts.updated_kernels >= 20, "{counts:?}");
}

/// A queued launch of a graph keeps its arguments when the graph is updated for a later launch.
#[test]
fn a_graph_that_is_queued_twice_has_the_arguments_of_each_launch() {
    let device = or_skip!(gpu_with_graphs(0));
    let queue = device.fork_queue().unwrap();
    let (x, y) = (values(&device, 40), Blob::<f32, _>::new(&device, &[40]).unwrap());
    x.data().unwrap().view().device().unwrap();
    let factors: Vec<f32> = (0..4).map(|round| (1 << (4 * round)) as f32).collect();
    for factor in &factors {
        add_steps(&device, &[*factor; 5], &x, &y);
        queue.order_after(&device).unwrap();
    }
    let sum: f32 = factors.iter().map(|factor| 5.0 * factor * -7.5).sum();
    assert_eq!(first_element(&y), sum);
    assert_eq!(device.launch_counts().graphs, 3);
}

#[test]
fn a_queue_that_is_ordered_after_deferred_launches_waits_for_them() {
    let device = or_skip!(gpu_with_graphs(0));
    let queue = device.fork_queue().unwrap();
    let (x, y) = (values(&device, 40), Blob::<f32, _>::new(&device, &[40]).unwrap());
    for round in 1..4 {
        x.scale_data(2.0).unwrap();
        queue.order_after(&device).unwrap();
        queue.copy(x.data().unwrap().view(), y.data_mut().unwrap().view_mut()).unwrap();
        device.order_after(&queue).unwrap();
        y.scale_data(3.0).unwrap();
        assert_eq!(first_element(&y), -7.5 * 3.0 * (1 << round) as f32);
    }
}

#[test]
fn memory_that_deferred_launches_use_is_freed_after_them() {
    let device = or_skip!(gpu_with_graphs(0));
    check_dropped_memory(&device);
    let y = Blob::<f32, _>::new(&device, &[100_000]).unwrap();
    for _ in 0..4 {
        // The operand is dropped while its launches are deferred.
        add_steps(&device, &[1.0; 6], &values(&device, 100_000), &y);
        device.fill(0.0, values(&device, 100_000).data_mut().unwrap().view_mut()).unwrap();
    }
    assert_eq!(first_element(&y), -7.5 * 24.0);
}

/// GPU 3 of the test driver has only 1 MiB of memory, which other tests also allocate, so the test
/// runs in a child process.
#[test]
fn an_allocation_waits_for_deferred_frees_of_all_queues() {
    let name = "graphs::an_allocation_waits_for_deferred_frees_of_all_queues";
    or_skip!(driver());
    if !is_child(name, "CUDA_ON_CPU_DRIVER", "13000") {
        return;
    }
    let device = gpu_with_graphs(3).unwrap();
    let queue = device.fork_queue().unwrap();
    for queue in [&device, &queue, &device] {
        let x = Blob::<f32, _>::new(queue, &[150_000]).unwrap();
        queue.fill(1.0, x.data_mut().unwrap().view_mut()).unwrap();
    }
}

#[test]
fn a_wait_reports_an_invalid_index_that_a_kernel_in_a_graph_found() {
    let device = or_skip!(gpu_with_graphs(0));
    let (table, y) = (values(&device, 6), values(&device, 2));
    let mut indices = SyncedMemory::new(&device, 4);
    let mut gather = |index: u32| {
        ViewMut::<u32, _>::new(&mut indices, 1).unwrap().host_mut().unwrap()[0] = index;
        for _ in 0..5 {
            let (table, mut y) = (table.data().unwrap(), y.data_mut().unwrap());
            let indices = View::new(&indices, 1).unwrap();
            let op = RowIndexing { table: 3, width: 2, count: 1 };
            device.gather(&op, table.view(), indices, y.view_mut()).unwrap();
        }
        device.synchronize()
    };
    gather(1).unwrap();
    gather(2).unwrap();
    let message = gather(3).unwrap_err().to_string();
    assert!(message.contains("the value at position 0 is outside the table"), "{message}");
    gather(1).unwrap();
    assert_eq!(y.to_vec().unwrap(), [-5.5, -4.5]);
    assert_eq!(device.launch_counts().graphs, 3);
}

/// More sequences occur than a queue remembers, and their graphs are queued, but have not run, when
/// they are removed.
#[test]
fn graphs_that_are_queued_survive_until_they_have_run() {
    let device = or_skip!(gpu_with(0, |builder| builder.graphs(true).multiprocessors(8)));
    let queue = device.fork_queue().unwrap();
    let (x, y) = (values(&device, 40), Blob::<f32, _>::new(&device, &[40]).unwrap());
    x.data().unwrap().view().device().unwrap();
    let other = Blob::<f32, _>::new(&device, &[70_000]).unwrap();
    let mut rounds = 0;
    for length in 1..=150 {
        for _ in 0..2 {
            add_steps(&device, &[1.0; 3], &x, &y);
            let mut other = other.data_mut().unwrap();
            device.fill(1.0, other.view_mut().slice(0..256 * length).unwrap()).unwrap();
            queue.order_after(&device).unwrap();
            rounds += 1;
        }
    }
    assert_eq!(first_element(&y), -7.5 * 3.0 * rounds as f32);
    assert_eq!(device.launch_counts().graphs, 150);
}

/// On GPU 2 of the test driver, the kernel `exp_f64` fails. A process with a failed kernel cannot
/// use the GPU again, so the test runs in a child process.
#[test]
fn the_error_of_a_kernel_in_a_graph_names_the_kernel() {
    let name = "graphs::the_error_of_a_kernel_in_a_graph_names_the_kernel";
    or_skip!(driver());
    if !is_child(name, "CUDA_ON_CPU_FAILING", "sqr_f64") {
        return;
    }
    let device = gpu_with_graphs(2).unwrap();
    let y = Blob::from_vec(&device, &[3], vec![1.0f64, 2.0, 3.0]).unwrap();
    let apply = |op| device.unary(op, cortado::Src::InPlace, y.data_mut().unwrap().view_mut());
    for _ in 0..2 {
        for op in [Unary::Exp, Unary::Neg, Unary::Exp, Unary::Abs] {
            apply(op).unwrap();
        }
        device.synchronize().unwrap();
    }
    assert_eq!(device.launch_counts().graphs, 1);
    for op in [Unary::Exp, Unary::Sqr, Unary::Exp, Unary::Abs] {
        apply(op).unwrap();
    }
    let message = device.synchronize().unwrap_err().to_string();
    assert!(message.contains("(700)") && message.contains("sqr_f64 called at"), "{message}");
    assert!(matches!(apply(Unary::Neg).unwrap_err().root(), Error::Device { .. }));
}

#[test]
fn without_graphs_in_the_driver_kernels_are_launched_one_by_one() {
    for (variable, value) in [("CUDA_ON_CPU_WITHOUT_GRAPHS", "1"), ("CUDA_ON_CPU_DRIVER", "11030")]
    {
        let name = "graphs::without_graphs_in_the_driver_kernels_are_launched_one_by_one";
        or_skip!(driver());
        if is_child(name, variable, value) {
            let device = gpu_with_graphs(0).unwrap();
            let y = Blob::<f32, _>::new(&device, &[40]).unwrap();
            for _ in 0..3 {
                add_steps(&device, &[1.0; 5], &values(&device, 40), &y);
                device.synchronize().unwrap();
            }
            assert_eq!(first_element(&y), -7.5 * 15.0);
            let expected = LaunchCounts { kernels: 15, ..LaunchCounts::default() };
            assert_eq!(device.launch_counts(), expected);
            return;
        }
    }
}

/// While the queue records, an event before and an event after each kernel measure its time.
#[test]
fn a_recording_measures_each_kernel_of_a_queue_with_graphs() {
    let device = or_skip!(gpu_with_graphs(0));
    let y = Blob::<f32, _>::new(&device, &[40]).unwrap();
    let run = || add_steps(&device, &[1.0; 5], &values(&device, 40), &y);
    run();
    device.record_spans(true).unwrap();
    run();
    // Each run uploads an operand.
    assert_eq!(device.take_spans().unwrap().len(), 6);
    device.record_spans(false).unwrap();
    run();
    assert_eq!(first_element(&y), -7.5 * 15.0);
    let counts = device.launch_counts();
    assert_eq!((counts.kernels, counts.graph_kernels), (10, 5), "{counts:?}");
}

#[test]
fn a_device_without_the_option_launches_kernels_at_once() {
    let device = or_skip!(gpu_with(0, |builder| builder.graphs(false)));
    let y = Blob::<f32, _>::new(&device, &[40]).unwrap();
    add_steps(&device, &[1.0; 5], &values(&device, 40), &y);
    let expected = LaunchCounts { kernels: 5, ..LaunchCounts::default() };
    assert_eq!(device.launch_counts(), expected);
}
