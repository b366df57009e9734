//! The command `cortado time`, which times the layers of a net.

use super::{
    byte_size::mebibytes,
    copy_args::CopyArgs,
    device_args::DeviceArgs,
    escape::{escape_control, escape_json},
    net_state_args::{NetStateArgs, PhaseArg},
    output::{print, print_unescaped},
    processes::Processes,
    signals::{SecondSignal, stop_flag},
    table::{align_columns, milliseconds},
    trace_args::{TraceArgs, TraceRecording},
};
use clap::Args;
use cortado::device::AnyDevice;
use cortado::kernel::traits::*;
use cortado::{
    bench_kit::{Limits, report_folder},
    error::{Error, Result},
    ledger::{self, Diagnosis},
    memory::{MemoryUsage, PoolUsage},
    net::{MemoryUse, Net},
    proto::{NetParameter, read_net},
};
use std::{fs, path::PathBuf, sync::atomic::Ordering::Relaxed, time::Instant};

mod gradient_sums;
mod json;
mod kernel_times;
mod layer_passes;
mod measurements;
mod roofline;

use gradient_sums::time_gradient_sums;
use json::document;
use kernel_times::KernelTimes;
use layer_passes::{backward_layers, forward_layers};
use measurements::{Measurements, Row, median};
use roofline::Roofline;

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
/// --roofline measures the peak rates of the device, and prints the rates of each layer's passes and
/// their share of the limit: the least time that the peak rates allow. The bytes are those that the
/// layer's kernels read and write. The floating-point operations are those of matrix products and
/// convolutions.
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
    /// After the timing, print each layer's share of the measured peak rates of the device, and add
    /// the layers to the report of the benchmarks, FOLDER/index.html; the default FOLDER is
    /// target/report
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    roofline: Option<Option<PathBuf>>,
    /// Print the results as one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    device: DeviceArgs,
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
        let (memory, usage) = (net.memory_use()?, device.memory_usage()?);
        let roofline = self.roofline.is_some().then(|| {
            let (limits, name) = (Limits::measure(device)?, self.net_name(&definition));
            Roofline::measure(&mut net, &name, &times.rows, self.forward_only, limits)
        });
        let roofline = roofline.transpose()?;
        if let (Some(roofline), Some(folder)) = (&roofline, &self.roofline) {
            let page = roofline.store(&folder.clone().unwrap_or_else(report_folder))?;
            log::info!("Wrote the roofline to {}", page.display());
        }
        if self.json {
            let json = document(&times, &memory, usage, roofline.as_ref(), diagnosis.as_ref());
            return print_unescaped(&(escape_json(&format!("{json:#}")) + "\n"));
        }
        let mut text = report(&times, &memory, usage);
        if let Some(roofline) = roofline {
            text += &format!("\n{}", roofline.table());
        }
        if let Some(diagnosis) = diagnosis {
            text += &format!("\nTransfers of two passes:\n{diagnosis}");
        }
        print(&text)
    }

    /// Returns the name of the net, or the name of its file for a net without a name.
    fn net_name(&self, definition: &NetParameter) -> String {
        match definition.name() {
            "" => self.model.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            name => escape_control(name),
        }
    }
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

/// Returns the peak resident memory of this process in bytes on Linux, and `None` on other systems.
fn peak_resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests;
