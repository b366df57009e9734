//! `cortado test`

use super::{Place, lines::score, number::g, train::copy_weights};
use crate::{
    device::{Device, OnDevice, on_device},
    error::{Error, Result},
    net::Net,
    proto::{self, Phase},
    solver::{Score, mean_scores},
};
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// Scores a trained net: means of its outputs over batches
#[derive(Args)]
#[command(after_help = "Example: cortado test --model examples/digits/lenet.prototxt \
    --weights examples/digits/lenet_iter_1000.caffemodel --iterations 100")]
pub(super) struct Test {
    /// Net definition, in text format, built for the TEST phase
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights, copied by layer name: .safetensors, .npz, .h5, or else a caffemodel
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    /// Batches to run
    #[arg(long, value_name = "N", default_value_t = 50)]
    iterations: usize,
    #[command(flatten)]
    place: Place,
}

impl Test {
    pub(super) fn run(self) -> Result<()> {
        let Place { device, threads } = &self.place;
        on_device(&device.clone(), usize::from(*threads), self)
    }
}

impl OnDevice for Test {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Result<()> {
        log::info!("Use {}, {} host threads.", device.name(), device.workers().count());
        let definition = proto::read_net(&self.model)?;
        let mut net = Net::<f32, D>::builder(&device)
            .phase(Phase::Test)
            .build(&definition)
            .map_err(|error| error.within(self.model.display().to_string()))?;
        for path in &self.weights {
            copy_weights(&mut net, path)?;
        }
        log::info!("Running for {} iterations.", self.iterations);
        let (loss, scores) = mean_scores(&mut net, self.iterations, |batch, scores| {
            for score in scores {
                log::info!("Batch {batch}, {} = {}", score.name, g(score.value));
            }
        })?;
        print(loss, &scores).map_err(|error| Error::io("standard output", error))
    }
}

fn print(loss: f64, means: &[Score]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "Loss: {}", g(loss))?;
    means.iter().try_for_each(|mean| writeln!(out, "{}", score(mean)))?;
    out.flush()
}
