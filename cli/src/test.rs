//! The command `cortado test`, which prints the mean of each output of a trained net.

use super::{
    caffe_log::score,
    copy_args::CopyArgs,
    device_args::DeviceArgs,
    format_g::format_g,
    net_state_args::NetStateArgs,
    output::print,
    signals::{SecondSignal, stop_flag},
    trace_args::{TraceArgs, TraceRecording},
};
use clap::Args;
use cortado::{
    error::{Error, Result},
    net::Net,
    proto::{Phase, read_net},
    solver::mean_scores,
};
use std::{ops::ControlFlow, path::PathBuf, sync::atomic::Ordering::Relaxed};

/// Test a trained net: print the mean of each output over all batches
///
/// After Ctrl-C or SIGTERM, the command finishes the current batch and prints the means over the
/// batches so far. A second Ctrl-C ends the process immediately.
#[derive(Args)]
#[command(after_help = "Example: cortado test --model examples/digits/lenet.prototxt \
    --weights examples/digits/lenet_iter_1000.caffemodel --iterations 100")]
pub(super) struct Test {
    /// Net definition in text format, built for the TEST phase
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    weights: Vec<PathBuf>,
    /// Number of batches to run
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Test {
    pub(super) fn run(self) -> Result<()> {
        let recording = self.trace.start(None)?;
        let outcome = self.run_in(&recording);
        recording.finish(outcome)
    }

    fn run_in(self, recording: &TraceRecording) -> Result<()> {
        let device = &self.device.open()?;
        recording.record_queue(device)?;
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let builder = Net::<f32>::builder(device).phase(Phase::Test);
        let mut net = builder.build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, &self.weights)?;
        log::info!("Running for {} iterations.", self.iterations);
        let stop = stop_flag(SecondSignal::Exit)?;
        let (total, mut batches_done) = (self.iterations as usize, 0);
        let (loss, scores) = mean_scores(&mut net, total, |batch, scores| {
            for score in scores {
                log::info!("Batch {batch}, {} = {}", score.name, format_g(score.value));
            }
            batches_done = batch + 1;
            match stop.load(Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        let scores = scores.iter().map(|mean| format!("{}\n", score(mean)));
        print(&format!("Loss: {}\n{}", format_g(loss), scores.collect::<String>()))?;
        if batches_done < total {
            let reason =
                format!("interrupted; the means are those of {batches_done} of {total} batches");
            return Err(Error::InvalidData(reason));
        }
        Ok(())
    }
}
