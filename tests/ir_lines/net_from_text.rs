//! Program that trains a net in Caffe's text format, given as a string, on the CPU.

use cortado::{CpuDevice, Result, Solver, proto};

const SOLVER: &str = r#"
    base_lr: 0.05
    lr_policy: "fixed"
    max_iter: 10
    snapshot_after_train: false
    net_param {
      layer {
        name: "digits"
        type: "Data"
        top: "image"
        top: "label"
        data_param { source: "digits:train?count=64&seed=1" batch_size: 16 }
      }
      layer {
        name: "scores"
        type: "InnerProduct"
        bottom: "image"
        top: "scores"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
      }
      layer {
        name: "loss"
        type: "SoftmaxWithLoss"
        bottom: "scores"
        bottom: "label"
        top: "loss"
      }
    }
"#;

fn main() -> Result<()> {
    let param = proto::parse_text(SOLVER, "the solver above")?;
    Solver::<f32>::new(param, &CpuDevice::new())?.solve()
}
