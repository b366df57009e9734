//! Tests of the memory limit of a device: which allocations count, and how errors name the blob.

use cortado::{
    AnyDevice, Blob, CpuDevice, Error, Memory, Net, SimulatedDevice, Solver,
    proto::{self, NetParameter, SolverParameter},
};

fn cpu(limit: usize) -> AnyDevice {
    AnyDevice::new(&CpuDevice::with_threads(1).unwrap()).with_memory_limit(limit)
}

/// Asserts that an error is an `Error::MemoryLimit` of `bytes` requested bytes, and that its
/// message starts with `start`.
fn assert_limit<T>(result: cortado::Result<T>, bytes: usize, start: &str) {
    let error = result.err().unwrap();
    assert!(matches!(error.root(), Error::MemoryLimit { bytes: b, .. } if *b == bytes), "{error}");
    assert!(error.to_string().starts_with(start), "{error}");
}

/// A net whose blobs `x`, `t` and `z` take 400 bytes each. The blob `y` and the weights of each of
/// the two layers take 4000 bytes.
const NET: &str = r#"
    layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
      shape { dim: 10 dim: 10 } data_filler { value: 0.5 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 100 bias_term: false axis: 1
        weight_filler { type: "xavier" } } }
    layer { name: "back" type: "InnerProduct" bottom: "y" top: "z"
      inner_product_param { num_output: 10 bias_term: false } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "t" top: "loss" }"#;

fn net(limit: usize) -> cortado::Result<Net<f32>> {
    let definition: NetParameter = proto::parse_text(NET, "net").unwrap();
    Net::builder(&cpu(limit)).phase(proto::Phase::Train).build(&definition)
}

#[test]
fn allocations_count_until_they_are_dropped() {
    let device = cpu(100);
    let first = device.alloc(60).unwrap();
    assert_limit(device.alloc(41), 41, "memory limit of `cpu`: 41 bytes wanted, 60 bytes in use");
    let second = device.alloc(40).unwrap();
    drop(first);
    let third = device.alloc(60).unwrap();
    assert!(device.alloc(1).is_err());
    drop((second, third));
    device.alloc(100).unwrap();
    assert!(device.alloc(usize::MAX).is_err());
}

#[test]
fn clones_and_forks_share_the_limit_and_other_handles_have_none() {
    let cpu = CpuDevice::with_threads(1).unwrap();
    let device = AnyDevice::new(&cpu).with_memory_limit(100);
    let _buffer = device.alloc(60).unwrap();
    assert!(device.clone().alloc(60).is_err());
    assert!(device.fork_queue().unwrap().alloc(60).is_err());
    assert!(device.fork_queue().unwrap().fork_queue().unwrap().alloc(60).is_err());
    AnyDevice::new(&cpu).alloc(1000).unwrap();
    device.with_memory_limit(1000).alloc(900).unwrap();
}

#[test]
fn host_and_device_memory_count_together() {
    let device = AnyDevice::new(&SimulatedDevice::new()).with_memory_limit(1000);
    let blob: Blob<f32> = Blob::new(&device, &[100]).unwrap();
    blob.data_mut().unwrap().host_mut().unwrap().fill(1.0); // 400 bytes on the host
    let queue = device.fork_queue().unwrap();
    blob.data().unwrap().prefetch(&queue).unwrap(); // 400 bytes on the device
    assert_limit(device.alloc(201), 201, "memory limit of `simulated`");
    assert_eq!(blob.to_vec().unwrap(), [1.0; 100]);
    drop(blob);
    device.alloc(1000).unwrap();
}

#[test]
fn an_error_of_a_net_names_the_layer_and_the_blob() {
    assert_limit(net(399), 400, "layer `x`: data of top 0 of shape [10, 10]: memory limit of ");
    assert_limit(net(799), 400, "layer `x`: data of top 1 of shape [10, 10]: ");
    let start = "layer `ip`: data of parameter 0 of shape [100, 10]: memory limit of `cpu`: ";
    assert_limit(net(800), 4000, start);
    let start = "layer `back`: data of parameter 0 of shape [10, 100]: ";
    assert_limit(net(8799), 4000, start);

    let mut small_net = net(8800).unwrap();
    let start = "layer `ip` (InnerProduct): data of blob `y` of shape [10, 100]: ";
    assert_limit(small_net.forward(), 4000, start);
    // The forward pass needs the weights (8000 bytes), x, t and z (1200), y (4000), the loss, its
    // gradient, and the difference of z and t (400).
    let mut forward_only_net = net(8000 + 1200 + 4000 + 2 * 4 + 400).unwrap();
    forward_only_net.forward().unwrap();
    let error = forward_only_net.backward().unwrap_err();
    assert!(matches!(error.root(), Error::MemoryLimit { .. }), "{error}");
    assert!(error.to_string().contains(": diff of blob `"), "{error}");
}

#[test]
fn a_training_run_within_the_limit_is_bit_identical_to_an_unlimited_run() {
    let train = |limit| {
        let param = format!(
            "net_param {{ {NET} }} base_lr: 0.01 lr_policy: 'fixed' max_iter: 3 random_seed: 1"
        );
        let param: SolverParameter = proto::parse_text(param, "solver").unwrap();
        let mut solver = Solver::<f32>::new(param, &cpu(limit))?;
        solver.solve()?;
        Ok::<_, Error>(solver.net().params()[0].blob().to_vec().unwrap())
    };
    assert!(train(1 << 20).unwrap() == train(usize::MAX).unwrap());
    // The solver allocates its history last.
    let fails = |limit: usize| train(limit).err();
    let last = (0..100_000).step_by(400).map_while(fails).last().unwrap();
    assert!(matches!(last.root(), Error::MemoryLimit { bytes: 4000, .. }), "{last}");
    let start = "history of parameter 0 of layer `back`: memory limit of `cpu`: ";
    assert!(last.to_string().contains(start), "{last}");
}
