//! Trains a net in `f32`, `f16` and `bf16`, and prints the accuracy and the size of the weights.
//!
//! Kernels on 16-bit elements compute in `f32`, and round each result only once, when storing the
//! result. The solver updates an `f32` copy of 16-bit weights, because one update is often smaller
//! than the distance between adjacent 16-bit numbers.
//!
//! `cargo run --release --example half_precision`

use cortado::{prelude::*, proto, solver::Event};

const SOLVER: &str = r#"
    base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
    max_iter: 200 random_seed: 1 snapshot_after_train: false
    test_iter: 10 test_interval: 200 test_initialization: false
    net_param {
      layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
              transform_param { scale: 0.00390625 }
              data_param { source: "digits:train?count=6400&seed=1" batch_size: 64 } }
      layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
              transform_param { scale: 0.00390625 }
              data_param { source: "digits:test?count=1000&seed=1" batch_size: 100 } }
      layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
              inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
      layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
      layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
              inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
              include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
    }"#;

fn train<T: Element>() -> Result<()> {
    let definition = proto::parse_text(SOLVER, "solver")?;
    let mut solver = Solver::<T>::new(definition, &CpuDevice::new())?;
    let weight_count: usize = solver.net().params().iter().map(|param| param.blob().count()).sum();
    let (name, bytes) = (T::DTYPE.name(), weight_count * size_of::<T>());
    solver.add_observer(move |event| {
        if let Event::Tested { outputs, .. } = event {
            println!("{name:>4}: accuracy {:.3}, weights {bytes} bytes", outputs[0].value);
        }
    });
    solver.solve()
}

fn main() -> Result<()> {
    train::<f32>()?;
    train::<f16>()?;
    train::<bf16>()
}
