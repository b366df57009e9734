//! The command `cortado time`, which times the layers of a net.

use super::{
    byte_size::mebibytes,
    copy_args::CopyArgs,
    device_args::DeviceArgs,
    escape::escape_control,
    net_state_args::{NetStateArgs, PhaseArg},
    output::print,
    processes::Processes,
    signals::{SecondSignal, stop_flag},
    table::{align_columns, milliseconds},
    trace_args::{TraceArgs, TraceRecording},
};
use clap::Args;
use cortado::device::AnyDevice;
use cortado::kernel::traits::*;
use cortado::{
    error::{Error, Result},
    ledger::{self, Diagnosis},
    memory::{MemoryUsage, PoolUsage},
    net::{MemoryUse, Net},
    proto::{LayerParameter, read_net},
};
use std::{
    fs,
    path::PathBuf,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

mod gradient_sums;
mod kernel_times;
mod layer_passes;

use gradient_sums::time_gradient_sums;
use kernel_times::KernelTimes;
use layer_passes::{backward_layers, forward_layers};

/// Time the layers of a net
///
/// Prints each layer's number of parameters and median time over the iterations. The first
/// iteration is not timed, because it allocates memory and uploads the parameters. The GFLOP/s
/// columns count the multiplications and additions of convolutions and inner products. The time of
/// a layer includes waiting until the device has finished the layer's work. If the device measures
/// the times of its kernels, the device columns show the median times of up to ten further passes
/// on the device, and a second table lists the kernels; these times exclude the launches and waits
/// of the host. An activation that is fused into the preceding layer has no separate forward time:
/// the table shows `above`, and the preceding row includes the activation. The times of data layers
/// include the wait for data, whose mean the command also prints.
///
/// With --trace, the times include the recording of the timeline, and Ctrl-C stops the command after
/// the current pass.
///
/// `mpiexec -n P cortado time` also prints the time to add the gradients of P processes.
#[derive(Args)]
#[command(after_help = "Example: cortado time --model examples/digits/lenet.prototxt")]
pub(super) struct Time {
    /// Net definition, in text format
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name. By
    /// default, the fillers in the definition initialize the weights
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    weights: Vec<PathBuf>,
    #[command(flatten)]
    copy: CopyArgs,
    /// Number of forward and backward passes to time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Phase for which the net is built; with --forward-only, blobs of a net in the TEST phase
    /// share memory
    #[arg(long, value_enum, ignore_case = true, default_value = "train")]
    phase: PhaseArg,
    #[command(flatten)]
    net_state: NetStateArgs,
    /// Time forward passes only
    #[arg(long, alias = "forward")]
    forward_only: bool,
    /// After the timing, run two more passes, and print the cause of each transfer and the needless
    /// transfers, writes and waits
    #[arg(long)]
    doctor: bool,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Row of the printed table: a layer and its times.
struct Row {
    name: String,
    kind: String,
    tops: String,
    /// Number of values of the parameters that the layer does not share with an earlier layer.
    parameters: usize,
    /// Time of the layer in each forward pass, in seconds; empty if the layer is fused into the
    /// preceding layer.
    forward: Vec<f64>,
    backward: Vec<f64>,
    /// Times of the layer's kernels and transfers in each forward and backward pass, in seconds, as
    /// the device measured them.
    device: [Vec<f64>; 2],
    /// Number of floating-point operations in the layer's forward pass, if known.
    forward_flops: Option<f64>,
    backward_flops: Option<f64>,
}

impl Time {
    pub(super) fn run(self) -> Result<()> {
        let mut processes = Processes::connect("time")?;
        let recording = self.trace.start(Some(&mut processes));
        let outcome = recording.and_then(|recording| {
            let outcome = self.run_in(&mut processes, &recording);
            recording.finish(outcome)
        });
        processes.finish(outcome)
    }

    fn run_in(self, processes: &mut Processes, recording: &TraceRecording) -> Result<()> {
        let device = &processes.device_args(&self.device)?.open()?;
        recording.record_queue(device)?;
        let stop = recording.is_on().then(|| stop_flag(SecondSignal::Exit)).transpose()?;
        let after_pass = || {
            recording.collect()?;
            match &stop {
                Some(stop) if stop.load(Relaxed) => Err(Error::InvalidData("interrupted".into())),
                _ => Ok(()),
            }
        };
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let mut net = Net::<f32>::builder(device)
            .phase(self.phase.into())
            .reuse_memory(self.forward_only && self.phase == PhaseArg::Test)
            .build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, &self.weights)?;
        let mut times = measure(&mut net, self.iterations, self.forward_only, &after_pass)?;
        if let Some(communicator) = processes.communicator().filter(|_| !self.forward_only) {
            let sums = time_gradient_sums(communicator, &net, self.iterations)?;
            times.gradient_sums = Some((communicator.size(), sums));
        }
        let diagnosis = self.doctor.then(|| diagnose(&mut net, self.forward_only)).transpose()?;
        if processes.rank() > 0 {
            return Ok(());
        }
        let report = report(&times, &net.memory_use()?, device.memory_usage()?);
        match diagnosis {
            Some(diagnosis) => print(&format!("{report}\nTransfers of two passes:\n{diagnosis}")),
            None => print(&report),
        }
    }
}

/// Text in the forward-time column for an activation that is fused into the preceding layer and
/// therefore has no separate time.
const FUSED_ABOVE: &str = "above";

/// Measured times of a net's layers and of its passes.
struct Measurements {
    rows: Vec<Row>,
    /// Times of the forward passes and of the backward passes of the net, in seconds.
    passes: [Vec<f64>; 2],
    /// Total time that the timed passes waited for data; `None` if the net reads no data.
    data_wait: Option<Duration>,
    /// Times of the kernels and transfers; `None` if the device does not measure times.
    kernels: Option<KernelTimes>,
    /// Number of processes, and times in seconds of sums of the gradients over all processes; `None`
    /// if this process is alone.
    gradient_sums: Option<(usize, Vec<f64>)>,
}

/// Times the forward and backward passes of each layer of `net`, after one untimed pass. Calls
/// `after_pass` after each pass.
fn measure(
    net: &mut Net<f32>,
    iterations: u32,
    forward_only: bool,
    after_pass: &dyn Fn() -> Result<()>,
) -> Result<Measurements> {
    let device = net.device().clone();
    let loss = net.forward()?;
    log::info!("Initial loss: {}", super::format_g::format_g(loss));
    if !forward_only {
        net.backward()?;
    }
    device.synchronize()?;
    after_pass()?;
    log::info!("Testing for {iterations} iterations.");
    let mut rows: Vec<Row> = (0..net.layer_names().len()).map(|i| Row::new(net, i)).collect();
    let mut passes = [Vec::new(), Vec::new()];
    let earlier_wait = net.data_wait_time().unwrap_or_default();
    for _ in 0..iterations {
        passes[0].push(seconds_to_finish(&device, || {
            forward_layers(net, |index, layer| {
                seconds_to_finish(&device, layer).map(|seconds| rows[index].forward.push(seconds))
            })
        })?);
        after_pass()?;
        if forward_only {
            continue;
        }
        passes[1].push(seconds_to_finish(&device, || {
            backward_layers(net, |index, layer| {
                seconds_to_finish(&device, layer).map(|seconds| rows[index].backward.push(seconds))
            })
        })?);
        after_pass()?;
    }
    let data_wait = net.data_wait_time().map(|wait| wait.saturating_sub(earlier_wait));
    let kernels = KernelTimes::measure(net, iterations, forward_only)?;
    for (row, seconds) in rows.iter_mut().zip(kernels.iter().flat_map(KernelTimes::layers)) {
        row.device.clone_from(seconds);
    }
    Ok(Measurements { rows, passes, data_wait, kernels, gradient_sums: None })
}

/// Runs two forward and backward passes of `net`, and returns the diagnosis of their transfers. A
/// second pass shows which work repeats.
fn diagnose(net: &mut Net<f32>, forward_only: bool) -> Result<Diagnosis> {
    let ((), diagnosis) = ledger::diagnose(|| {
        for _ in 0..2 {
            net.forward()?;
            if !forward_only {
                net.backward()?;
            }
        }
        Ok(())
    })?;
    Ok(diagnosis)
}

/// Runs `work` and returns the time in seconds until the device has finished.
fn seconds_to_finish(device: &AnyDevice, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64())
}

impl Row {
    fn new(net: &Net<f32>, index: usize) -> Self {
        let param = net.layer_params().nth(index).cloned().unwrap_or_default();
        let (_, tops) = net.bottoms_and_tops(index).unwrap_or_default();
        let shapes = tops.iter().filter_map(|top| net.blob(top)).map(|blob| {
            let extents: Vec<_> = blob.shape().iter().map(usize::to_string).collect();
            extents.join("×")
        });
        let forward_flops = flops(net, index, &param);
        // The gradient of the weights and the gradient of the bottom each take as many
        // floating-point operations as a forward pass.
        let gradients = net.needs_backward(index).map_or(0, |(backward, bottoms)| {
            usize::from(backward) + usize::from(bottoms.contains(&true))
        });
        let own_params = net.learnable_params().filter(|param| param.layer == index);
        Self {
            name: escape_control(param.name()),
            kind: escape_control(param.r#type()),
            tops: shapes.collect::<Vec<_>>().join(" "),
            parameters: own_params.map(|param| param.blob().count()).sum(),
            forward: Vec::new(),
            backward: Vec::new(),
            device: Default::default(),
            forward_flops,
            backward_flops: forward_flops.map(|flops| flops * gradients as f64),
        }
    }

    /// Returns the cells of the row, with those of the device's times if `has_device_times` is true.
    fn cells(&self, total_seconds: f64, has_device_times: bool) -> Vec<String> {
        let [forward, backward] = [median(&self.forward), median(&self.backward)];
        let speed = |flops: Option<f64>, seconds: Option<f64>| match (flops, seconds) {
            (Some(flops), Some(seconds)) if flops > 0.0 => format!("{:.1}", flops / seconds / 1e9),
            _ => String::new(),
        };
        let seconds = forward.unwrap_or(0.0) + backward.unwrap_or(0.0);
        let [forward_on_device, backward_on_device] = self
            .device
            .each_ref()
            .map(|seconds| has_device_times.then(|| milliseconds(median(seconds))));
        [
            Some(self.name.clone()),
            Some(self.kind.clone()),
            Some(self.tops.clone()),
            Some(if self.parameters > 0 { self.parameters.to_string() } else { String::new() }),
            Some(forward.map_or(FUSED_ABOVE.into(), |forward| milliseconds(Some(forward)))),
            forward_on_device,
            Some(speed(self.forward_flops, forward)),
            Some(milliseconds(backward)),
            backward_on_device,
            Some(speed(self.backward_flops, backward)),
            Some(format!("{:.1}", 100.0 * seconds / total_seconds)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns the number of floating-point operations in a layer's forward pass: two for each
/// multiplication of a weight and an input element.
fn flops(net: &Net<f32>, index: usize, param: &LayerParameter) -> Option<f64> {
    let (bottoms, tops) = net.bottoms_and_tops(index)?;
    let weights = net.params().iter().find(|p| p.layer == index && p.index == 0)?.blob();
    let count = |names: &[&str]| -> usize {
        names.iter().filter_map(|name| net.blob(name)).map(|blob| blob.count()).sum()
    };
    let (elements, filters) = match param.r#type() {
        "Convolution" => (count(&tops), param.convolution_param.as_ref()?.num_output()),
        "InnerProduct" => (count(&tops), param.inner_product_param.as_ref()?.num_output()),
        "Deconvolution" => (count(&bottoms), u32::try_from(*weights.shape().first()?).ok()?),
        _ => return None,
    };
    Some(2.0 * elements as f64 * weights.count() as f64 / f64::from(filters.max(1)))
}

/// Formats the measured times, the memory of the net's blobs, and the device's memory usage.
fn report(times: &Measurements, memory: &MemoryUse, usage: Option<MemoryUsage>) -> String {
    let Measurements { rows, passes, data_wait, kernels, gradient_sums } = times;
    let [forward, backward] = passes.each_ref().map(|seconds| median(seconds));
    let medians = rows.iter().flat_map(|row| [median(&row.forward), median(&row.backward)]);
    let total_seconds: f64 = medians.flatten().sum();
    let device = kernels.as_ref().map(|_| "device ms");
    let times = ["forward ms", "backward ms"].map(|pass| [Some(pass), device, Some("GFLOP/s")]);
    let layer = ["layer", "type", "tops", "parameters"].map(Some);
    let header = layer.into_iter().chain([times[0], times[1]].concat()).chain([Some("%")]);
    let header = header.flatten().map(str::to_owned);
    let mut table = vec![header.collect()];
    table.extend(rows.iter().map(|row| row.cells(total_seconds, device.is_some())));
    let mut text = align_columns(&table, 3);
    text.push('\n');
    if let Some(kernels) = kernels {
        text.push_str(&kernels.table());
        text.push('\n');
    }
    let mut line = |name: &str, value: String| text.push_str(&format!("{name}: {value}\n"));
    line("Forward pass", format!("{} ms", milliseconds(forward)));
    if backward.is_some() {
        line("Backward pass", format!("{} ms", milliseconds(backward)));
        let sums: Vec<f64> = passes[0].iter().zip(&passes[1]).map(|(f, b)| f + b).collect();
        line("Forward and backward", format!("{} ms", milliseconds(median(&sums))));
    }
    if let Some((processes, sums)) = gradient_sums {
        line(
            &format!("Communication, sum of the gradients of {processes} processes"),
            format!("{} ms", milliseconds(median(sums))),
        );
    }
    if let Some(wait) = data_wait.map(|wait| wait.as_secs_f64()) {
        // Report the mean wait for data and not the median, because one pass may wait while several
        // batches for later passes are prefetched.
        let (count, all) = (passes[0].len().max(1) as f64, passes.iter().flatten().sum::<f64>());
        let (mean_wait, share) = (milliseconds(Some(wait / count)), 100.0 * wait / all);
        line("Waiting for data", format!("{mean_wait} ms per pass, {share:.1} % of the time"));
    }
    let MemoryUse { activations, gradients, params, param_gradients } = *memory;
    let sizes = [activations, gradients, params, param_gradients].map(mebibytes);
    let [activations, gradients, params, param_gradients] = sizes;
    line(
        "Memory",
        format!(
            "{activations} MiB of activations, {gradients} MiB of activation gradients, \
             {params} MiB of parameters, {param_gradients} MiB of parameter gradients"
        ),
    );
    if let Some(PoolUsage { peak_used, peak_reserved, .. }) = usage.and_then(|usage| usage.pool) {
        let [used, reserved] = [peak_used, peak_reserved].map(mebibytes);
        line("Peak memory of the device", format!("{used} MiB in use, {reserved} MiB reserved"));
    }
    if let Some(peak) = peak_resident() {
        line("Peak memory of the process", format!("{} MiB", mebibytes(peak)));
    }
    text
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted_values = values.to_vec();
    sorted_values.sort_by(f64::total_cmp);
    let middle = sorted_values.len() / 2;
    let upper_median = sorted_values.get(middle)?;
    let lower_median = sorted_values.get((sorted_values.len() - 1) / 2)?;
    Some((lower_median + upper_median) / 2.0)
}

/// Returns the peak resident memory of this process in bytes on Linux, and `None` on other systems.
fn peak_resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests;
