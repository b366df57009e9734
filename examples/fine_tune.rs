//! Fine-tunes a net: trains a net on many images, and then trains a second net on a small data set,
//! starting from the weights of the first net.
//!
//! Each layer of the second net copies the weights of the layer of the same name in the first net.
//! The last layer of the second net has a name that the first net lacks, so this layer starts from
//! random weights. An `lr_mult` of 0 keeps the copied weights constant.
//!
//! `cargo run --release --example fine_tune`

use cortado::{
    prelude::*,
    proto::{self, SolverParameter},
    solver::Event,
};

/// Returns the definition of a solver for a net with one hidden layer. The hidden layer learns at
/// `hidden_rate` times the learning rate of the last layer.
fn definition(images: u32, last: &str, hidden_rate: f32) -> Result<SolverParameter> {
    let text = format!(
        r#"base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 max_iter: 150 random_seed: 1
        snapshot_after_train: false test_iter: 10 test_interval: 150 test_initialization: false
        net_param {{
          layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: TRAIN }}
                  transform_param {{ scale: 0.00390625 }}
                  data_param {{ source: "digits:train?count={images}&seed=1" batch_size: 64 }} }}
          layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: TEST }}
                  transform_param {{ scale: 0.00390625 }}
                  data_param {{ source: "digits:test?count=1000&seed=1" batch_size: 100 }} }}
          layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
                  param {{ lr_mult: {hidden_rate} }} param {{ lr_mult: {hidden_rate} }}
                  inner_product_param {{ num_output: 100 weight_filler {{ type: "xavier" }} }} }}
          layer {{ name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }}
          layer {{ name: "{last}" type: "InnerProduct" bottom: "ip1" top: "{last}"
                  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
          layer {{ name: "accuracy" type: "Accuracy" bottom: "{last}" bottom: "label"
                  top: "accuracy" include {{ phase: TEST }} }}
          layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "{last}" bottom: "label"
                  top: "loss" }}
        }}"#
    );
    proto::parse_text(&text, "solver")
}

/// Trains the solver's net, and prints the accuracy on the test images.
fn train(solver: &mut Solver<f32>, label: &'static str) -> Result<()> {
    solver.add_observer(move |event| {
        if let Event::Tested { outputs, .. } = event {
            println!("{label}: accuracy {:.3}", outputs[0].value);
        }
    });
    solver.solve()
}

fn main() -> Result<()> {
    let device = CpuDevice::new();
    let mut pretraining_solver = Solver::new(definition(19_200, "ip2", 1.0)?, &device)?;
    train(&mut pretraining_solver, "19200 images")?;

    let mut baseline_solver = Solver::new(definition(64, "ip2", 1.0)?, &device)?;
    train(&mut baseline_solver, "64 images, from random weights")?;

    let mut fine_tuning_solver = Solver::new(definition(64, "ip2_tuned", 0.0)?, &device)?;
    let copied_layers = fine_tuning_solver
        .net_mut()
        .copy_trained_from(&pretraining_solver.net().to_proto(false)?)?;
    println!("copied layers: {}", copied_layers.join(", "));
    train(&mut fine_tuning_solver, "64 images, fine-tuned")
}
