//! Writes a safetensors file with the weights of LeNet, trained on the example digits, and a file
//! with the random numbers of the points as `f32`. The benchmark programs for other frameworks read
//! the weights and the random numbers.
//!
//! `cargo run --release --features export --bin export`

use cortado::{op::RngKey, prelude::*, proto, tensor_io};
use std::fs;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/digits");
    let device = CpuDevice::new();
    fs::create_dir_all(shared::DATA)?;

    let definition = proto::read_net(format!("{folder}/deploy.prototxt"))?;
    let mut net = Net::<f32>::builder(&device).build(&definition)?;
    let weights = proto::read_trained_net(format!("{folder}/lenet_iter_1000.caffemodel"))?;
    net.copy_trained_from(&weights)?;
    tensor_io::write_safetensors(
        format!("{}/lenet.safetensors", shared::DATA),
        &net.to_tensors()?,
    )?;

    let noise = Blob::<f32, _>::new(&device, &[shared::MAX_POINTS, 2])?;
    Filler::Gaussian { mean: 0.0, std: 0.7, sparse: None }.fill(&noise, RngKey::new(1))?;
    let bytes: Vec<u8> = noise.to_vec()?.into_iter().flat_map(f32::to_le_bytes).collect();
    fs::write(format!("{}/noise.f32", shared::DATA), bytes)?;
    Ok(())
}
