//! Classifies an image of a digit with cortado, like `examples/classify.rs` but with a timer.

use cortado::{
    classifier::{Classifier, Preprocessing},
    prelude::*,
};

fn main() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/digits");
    let (definition, weights) =
        (format!("{folder}/deploy.prototxt"), format!("{folder}/lenet_iter_1000.caffemodel"));
    // The net was trained on pixel values from 0 to 1, without mean subtraction.
    let preprocessing = Preprocessing { scale: 1.0 / 256.0, ..Default::default() };
    let mut classifier = Classifier::open(&CpuDevice::new(), definition, weights, &preprocessing)?;
    for prediction in classifier.classify(shared::IMAGE, 5)? {
        println!("{:.4}  {}", prediction.score, prediction.class);
    }
    shared::time("image", 1, || classifier.classify(shared::IMAGE, 5));
    Ok(())
}
