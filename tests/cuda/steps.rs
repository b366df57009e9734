//! Training steps of the example nets on CUDA, with fewer channels and smaller images. All kernels
//! of a training step must run on the GPU.

use super::gpu;
use cortado::{
    Solver,
    ledger::{self, EventKind, Ledger, Policy},
    proto::{LayerParameter, NetParameter, SolverParameter, parse_text},
};
use std::fs;

/// Reads a net definition and reduces the net to an eighth of its channels and to images of `side`
/// × `side` pixels.
pub(super) fn small_net(path: &str, channels: usize, side: usize) -> NetParameter {
    let text = fs::read_to_string(path).unwrap();
    let mut net: NetParameter = parse_text(text, path).unwrap();
    net.layer.retain(|layer| !["Data", "Input"].contains(&layer.r#type()));
    let input = format!(
        "name: 'data' type: 'Input' top: 'data' top: 'label' input_param {{
            shape {{ dim: [2, {channels}, {side}, {side}] }} shape {{ dim: 2 }} }}"
    );
    net.layer.insert(0, parse_text::<LayerParameter>(input, "the input").unwrap());
    for layer in &mut net.layer {
        if let Some(convolution) = &mut layer.convolution_param {
            convolution.num_output = convolution.num_output.map(|planes| planes.div_ceil(8));
        }
        if let Some(product) = &mut layer.inner_product_param {
            product.num_output = product.num_output.map(|outputs| outputs.div_ceil(8).min(64));
        }
        // GoogLeNet's last pooling window covers the whole plane, which is 7 × 7 at the full image
        // size and 3 × 3 in this test.
        if let Some(pool) = layer.pooling_param.as_mut().filter(|pool| pool.kernel_size == Some(7))
        {
            pool.kernel_size = Some(3);
        }
    }
    net
}

/// Checks that a training step uploads only images and labels, downloads only the losses, and never
/// falls back to the host.
fn check_step(net: NetParameter, losses: u64) {
    let device = or_skip!(gpu(0));
    let param = "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' \
                 random_seed: 1 snapshot_after_train: false";
    let mut param: SolverParameter = parse_text(param, "the solver").unwrap();
    param.net_param = Some(net);
    let mut solver = Solver::<f32>::new(param, &device).unwrap();
    // `fill` overwrites a blob and returns its size in bytes.
    let fill = |name| {
        let mut blob = solver.net().blob(name).unwrap().data_mut().unwrap();
        let values = blob.host_mut().unwrap();
        values.iter_mut().enumerate().for_each(|(i, x)| *x = (i * 7 % 2) as f32);
        size_of_val(values) as u64
    };
    let inputs = fill("data") + fill("label");
    let record = Ledger::new();
    {
        let (_record, _policy) = (record.open(), ledger::set_fallback_policy(Policy::Deny));
        solver.step(1).unwrap();
    }
    let transferred_bytes =
        [EventKind::Upload, EventKind::Download].map(|kind| record.total(kind).bytes);
    assert_eq!(transferred_bytes, [inputs, 4 * losses], "{:#?}", record.entries());
}

#[test]
fn a_training_step_of_lenet_runs_entirely_on_the_device() {
    check_step(small_net("examples/mnist/lenet.prototxt", 1, 28), 1);
}

#[test]
fn a_training_step_of_alexnet_runs_entirely_on_the_device() {
    check_step(small_net("examples/imagenet/alexnet.prototxt", 3, 67), 1);
}

#[test]
fn a_training_step_of_googlenet_runs_entirely_on_the_device() {
    check_step(small_net("examples/imagenet/googlenet.prototxt", 3, 96), 3);
}
