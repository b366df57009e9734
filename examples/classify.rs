//! Classifies an image with a trained net.
//!
//! The first of the following commands trains LeNet and writes the weights. The second command runs
//! the example `classify`, which classifies an image:
//!
//! ```sh
//! cargo run --profile quick -- train --solver examples/digits/solver.prototxt
//! cargo run --profile quick --features image --example classify
//! ```
//!
//! The first argument of this example is the file of weights, and the other arguments are images;
//! without arguments, the example classifies a default image with the weights that the first
//! command wrote.

use cortado::{
    classifier::{Classifier, Preprocessing},
    prelude::*,
};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let weights = args.next().unwrap_or("examples/digits/lenet_iter_1000.caffemodel".into());
    let mut images: Vec<String> = args.collect();
    if images.is_empty() {
        images.push("examples/digits/seven.png".into());
    }
    // The net was trained on pixel values from 0 to 1, without mean subtraction.
    let preprocessing = Preprocessing { scale: 1.0 / 256.0, ..Default::default() };
    let definition = "examples/digits/deploy.prototxt";
    let mut classifier = Classifier::open(&CpuDevice::new(), definition, weights, &preprocessing)?;
    for image in images {
        println!("{image}:");
        for prediction in classifier.classify(&image, 3)? {
            println!("  {:.4}  {}", prediction.score, prediction.class);
        }
    }
    Ok(())
}
