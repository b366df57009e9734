//! Classifies an image of a digit with burn.

use burn::{
    nn::{
        Linear, LinearConfig,
        conv::{Conv2d, Conv2dConfig},
        pool::{MaxPool2d, MaxPool2dConfig},
    },
    prelude::*,
    store::{ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore},
    tensor::activation::{relu, softmax},
};
use image::imageops::FilterType;
use std::error::Error;

#[derive(Module, Debug)]
struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    ip1: Linear,
    ip2: Linear,
}

impl LeNet {
    fn new(device: &Device) -> Self {
        Self {
            conv1: Conv2dConfig::new([1, 20], [5, 5]).init(device),
            conv2: Conv2dConfig::new([20, 50], [5, 5]).init(device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            ip1: LinearConfig::new(800, 500).init(device),
            ip2: LinearConfig::new(500, 10).init(device),
        }
    }

    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(self.conv1.forward(images));
        let x = self.pool.forward(self.conv2.forward(x));
        let x = relu(self.ip1.forward(x.flatten(1, 3)));
        softmax(self.ip2.forward(x), 1)
    }
}

/// Returns the five highest scores and the indices of their classes, highest score first.
fn classify(net: &LeNet, path: &str, device: &Device) -> Result<Vec<(f32, i64)>, Box<dyn Error>> {
    let image = image::open(path)?.resize_exact(28, 28, FilterType::Triangle).to_luma8();
    let image = TensorData::new(image.into_raw(), [1, 1, 28, 28]);
    // The net was trained on pixel values from 0 to 1, without mean subtraction.
    let (scores, classes) =
        net.forward(Tensor::from_data(image, device) / 256).topk_with_indices(5, 1);
    let (scores, classes) = (scores.into_data(), classes.into_data());
    Ok(scores.iter().zip(classes.iter()).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    // cortado names parameters by their index in the layer, and stores weight matrices like
    // PyTorch, with a row for each output.
    let mut store = SafetensorsStore::from_file(format!("{}/lenet.safetensors", shared::DATA))
        .with_from_adapter(PyTorchToBurnAdapter)
        .with_key_remapping(r"\.0$", ".weight")
        .with_key_remapping(r"\.1$", ".bias");
    let mut net = LeNet::new(&device);
    net.load_from(&mut store)?;
    for (score, class) in classify(&net, shared::IMAGE, &device)? {
        println!("{score:.4}  {class}");
    }
    shared::time("image", 1, || classify(&net, shared::IMAGE, &device));
    Ok(())
}
