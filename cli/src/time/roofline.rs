//! Rooflines of layers: the rate of each pass of a layer, and its share of the measured peak rates
//! of the device.

use super::{
    layer_passes::{backward_layers, forward_layers},
    measurements::Row,
};
use crate::table::{align_columns, milliseconds};
use cortado::{
    bench_kit::{Limits, Part, Record, Samples, Work},
    error::Result,
    net::Net,
    trace::{self, Trace},
};
use std::path::{Path, PathBuf};

/// Names of the passes, in the order of the times in a [`Row`].
const PASSES: [&str; 2] = ["forward", "backward"];

/// Rates of the passes of a net's layers.
pub(super) struct Roofline {
    part: Part,
    rows: Vec<PassRow>,
}

/// Row of the table: one pass of a layer.
struct PassRow {
    layer: String,
    pass: &'static str,
    record: Record,
    /// Least times of the pass in seconds: first at the peak rate of arithmetic, and then at that
    /// of memory accesses.
    least: [f64; 2],
}

/// Work of the kernels of a pass.
struct PassWork {
    work: Work,
    /// Least times in seconds: first at the peak rate of arithmetic, and then at that of memory
    /// accesses.
    least: [f64; 2],
    /// Sum of the least times of the kernels in seconds; `None` if no peak rate is known.
    limit_seconds: Option<f64>,
    has_fallback: bool,
}

impl Roofline {
    /// Runs each pass of each layer once to record the bytes and floating-point operations of its
    /// kernels, and compares the times in `rows` with the peak rates in `limits`. Uses the times
    /// that the device measured, if the device measures times.
    pub(super) fn measure(
        net: &mut Net<f32>,
        name: &str,
        rows: &[Row],
        forward_only: bool,
        limits: Limits,
    ) -> Result<Self> {
        let subject = format!("{}-{name}", limits.device);
        let mut roofline = Self { part: Part::of("layers", &subject), rows: Vec::new() };
        let mut add = |index: usize, pass: usize, layer: &mut dyn FnMut() -> Result<()>| {
            let work = pass_work(&limits, layer)?;
            roofline.rows.extend(PassRow::new(name, &rows[index], pass, work, &limits.device));
            Ok(())
        };
        forward_layers(net, |index, layer| add(index, 0, layer))?;
        if !forward_only {
            backward_layers(net, |index, layer| add(index, 1, layer))?;
        }
        roofline.part.limits.push(limits);
        roofline.part.records = roofline.rows.iter().map(|row| row.record.clone()).collect();
        Ok(roofline)
    }

    /// Adds the rates to the report in `folder`, and returns the path of its page.
    pub(super) fn store(&self, folder: &Path) -> Result<PathBuf> {
        self.part.store(folder, false)
    }

    /// Returns the results of the passes.
    pub(super) fn records(&self) -> &[Record] {
        &self.part.records
    }

    /// Formats a table of the passes, and the share of the limit that all passes reach together.
    pub(super) fn table(&self) -> String {
        let header =
            ["layer", "pass", "limited by", "ms", "flop/byte", "GFLOP/s", "GB/s", "% of the limit"];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(self.rows.iter().map(PassRow::cells));
        let mut text = align_columns(&table, 3);
        let with_limit = || self.rows.iter().filter(|row| row.record.percent_of_limit().is_some());
        let seconds: f64 = with_limit().map(|row| row.record.seconds).sum();
        let limit: f64 = with_limit().filter_map(|row| row.record.limit_seconds).sum();
        if seconds > 0.0 {
            let [time, least] = [seconds, limit].map(|seconds| milliseconds(Some(seconds)));
            let percent = 100.0 * limit / seconds;
            text += &format!(
                "Layers with kernels: {time} ms, at least {least} ms at the peak rates, \
                 {percent:.0} % of the limit\n"
            );
        }
        text
    }
}

impl PassRow {
    /// Returns the row of a pass; `None` if the pass has no time or runs no kernel.
    fn new(net: &str, row: &Row, pass: usize, work: PassWork, device: &str) -> Option<Self> {
        let on_host = [&row.forward, &row.backward][pass];
        let seconds = if row.device[pass].is_empty() { on_host } else { &row.device[pass] };
        let PassWork { work, least, limit_seconds, has_fallback } = work;
        if seconds.is_empty() || work.bytes == 0 {
            return None;
        }
        let samples = Samples::new(seconds.clone());
        let record = Record {
            case: format!("{net}/{}/{}", row.name, PASSES[pass]),
            kernel: format!("{} {}", row.kind, PASSES[pass]),
            element: "f32".into(),
            device: device.into(),
            size: None,
            bytes: work.bytes,
            flops: work.flops,
            seconds: samples.median().as_secs_f64(),
            interval: samples.interval().map(|time| time.as_secs_f64()),
            limit_seconds,
            fallback: has_fallback,
        };
        Some(Self { layer: row.name.clone(), pass: PASSES[pass], record, least })
    }

    fn cells(&self) -> Vec<String> {
        let Record { bytes, flops, seconds, .. } = self.record;
        let giga = |work: u64| format!("{:.1}", work as f64 / seconds / 1e9);
        let [arithmetic, memory] = self.least;
        let limited_by = match self.record.limit_seconds {
            None => "–",
            Some(_) if arithmetic > memory => "arithmetic",
            Some(_) => "memory",
        };
        let computes = flops > 0;
        vec![
            self.layer.clone(),
            self.pass.into(),
            limited_by.into(),
            milliseconds(Some(seconds)),
            if computes { format!("{:.2}", flops as f64 / bytes as f64) } else { String::new() },
            if computes { giga(flops) } else { String::new() },
            giga(bytes),
            self.record.share(),
        ]
    }
}

/// Runs a pass of a layer, and returns the work of its kernels. A kernel that is a part of another
/// kernel has no work of its own.
fn pass_work(limits: &Limits, layer: &mut dyn FnMut() -> Result<()>) -> Result<PassWork> {
    let trace = Trace::new();
    let guard = trace.open();
    let outcome = layer();
    drop(guard);
    outcome?;
    let mut sum = PassWork {
        work: Work { bytes: 0, flops: 0 },
        least: [0.0; 2],
        limit_seconds: None,
        has_fallback: false,
    };
    for span in trace.spans() {
        let trace::Work::Kernel { call, is_fallback, size: Some(size) } = span.work else {
            continue;
        };
        let work = Work { bytes: size.bytes, flops: size.flops.unwrap_or(0) };
        let seconds = |work| limits.seconds(call.element, work);
        let parts = [Work { bytes: 0, ..work }, Work { flops: 0, ..work }];
        for (least, part) in sum.least.iter_mut().zip(parts) {
            *least += seconds(part).unwrap_or(0.0);
        }
        if let Some(seconds) = seconds(work) {
            *sum.limit_seconds.get_or_insert(0.0) += seconds;
        }
        sum.work.bytes += work.bytes;
        sum.work.flops += work.flops;
        sum.has_fallback |= is_fallback;
    }
    Ok(sum)
}
