//! Classifies an image of a digit with candle.

use candle_core::{D, DType, Device, Error, Module, Result, Tensor};
use candle_nn::{Conv2d, Linear, VarBuilder, conv2d, linear, ops::softmax};
use image::imageops::FilterType;

struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    ip1: Linear,
    ip2: Linear,
}

impl LeNet {
    fn new(vars: VarBuilder) -> Result<Self> {
        Ok(Self {
            conv1: conv2d(1, 20, 5, Default::default(), vars.pp("conv1"))?,
            conv2: conv2d(20, 50, 5, Default::default(), vars.pp("conv2"))?,
            ip1: linear(800, 500, vars.pp("ip1"))?,
            ip2: linear(500, 10, vars.pp("ip2"))?,
        })
    }
}

impl Module for LeNet {
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let x = images.apply(&self.conv1)?.max_pool2d(2)?;
        let x = x.apply(&self.conv2)?.max_pool2d(2)?;
        let x = x.flatten_from(1)?.apply(&self.ip1)?.relu()?;
        softmax(&x.apply(&self.ip2)?, D::Minus1)
    }
}

/// Returns the scores and indices of all classes, highest score first.
fn classify(net: &LeNet, path: &str) -> Result<(Vec<f32>, Vec<u32>)> {
    let image = image::open(path).map_err(Error::wrap)?;
    let image = image.resize_exact(28, 28, FilterType::Triangle).to_luma8();
    let image = Tensor::from_vec(image.into_raw(), (1, 1, 28, 28), &Device::Cpu)?;
    // The net was trained on pixel values from 0 to 1, without mean subtraction.
    let scores = net.forward(&(image.to_dtype(DType::F32)? / 256.0)?)?;
    let (scores, classes) = scores.squeeze(0)?.sort_last_dim(false)?;
    Ok((scores.to_vec1()?, classes.to_vec1()?))
}

fn main() -> Result<()> {
    let weights = std::fs::read(format!("{}/lenet.safetensors", shared::DATA))?;
    let vars = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?;
    // cortado names parameters by their index in the layer.
    let vars = vars.rename_f(|name| name.replace("weight", "0").replace("bias", "1"));
    let net = LeNet::new(vars)?;
    let (scores, classes) = classify(&net, shared::IMAGE)?;
    for (score, class) in scores.iter().zip(&classes).take(5) {
        println!("{score:.4}  {class}");
    }
    shared::time("image", 1, || classify(&net, shared::IMAGE));
    Ok(())
}
