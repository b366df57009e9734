//! Program that trains a net on a device that the program defines by four methods.

use cortado::{Error, Memory, Result, Solver, proto};

/// Device whose memory the host can access only by copies.
#[derive(Clone, Debug)]
struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        let range = dst.get_mut(at..at + src.len());
        range.ok_or_else(|| Error::device("remote", "out of range"))?.copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        let range = src.get(at..at + dst.len());
        dst.copy_from_slice(range.ok_or_else(|| Error::device("remote", "out of range"))?);
        Ok(())
    }
}

cortado::families!(Remote);

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
    Solver::<f32>::new(param, &Remote)?.solve()
}
