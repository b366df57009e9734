//! Times of layers and kernels on a device that measures times.

use super::layer_passes::{backward_layers, forward_layers};
use crate::table::{align_columns, milliseconds};
use cortado::kernel::traits::*;
use cortado::{
    device::AnyDevice,
    error::Result,
    memory::{DeviceSpan, DeviceWork},
    net::Net,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Largest number of passes in which the device measures times. A recording slows down the host, so
/// the passes in which the host measures times are not recorded.
const MAX_PASSES: u32 = 10;

/// Name, element type and device function of a kernel. Transfers have only a name.
type KernelName = [&'static str; 3];

/// Times of kernels and transfers, as the device measured them.
pub(super) struct KernelTimes {
    /// Number of forward passes, each followed by a backward pass unless only forward passes ran.
    passes: u32,
    /// For each layer, the seconds of each forward and of each backward pass.
    layers: Vec<[Vec<f64>; 2]>,
    /// Number of launches and total time of each kernel in all passes.
    totals: BTreeMap<KernelName, (u32, Duration)>,
}

impl KernelTimes {
    /// Runs at most [`MAX_PASSES`] passes of the net, and measures their times on the net's device.
    /// Returns `None` if the device does not measure times.
    pub(super) fn measure(
        net: &mut Net<f32>,
        iterations: u32,
        forward_only: bool,
    ) -> Result<Option<Self>> {
        let device = &net.device().clone();
        if !device.record_spans(true)? {
            return Ok(None);
        }
        let passes = iterations.min(MAX_PASSES);
        let layers = vec![Default::default(); net.layer_names().len()];
        let mut times = Self { passes, layers, totals: BTreeMap::new() };
        for _ in 0..passes {
            forward_layers(net, |index, layer| times.measure_layer(device, [index, 0], layer))?;
            if !forward_only {
                backward_layers(net, |index, layer| {
                    times.measure_layer(device, [index, 1], layer)
                })?;
            }
        }
        device.record_spans(false)?;
        Ok(Some(times))
    }

    /// Runs a pass of a layer, and adds the times of the layer's kernels and transfers. `position` is
    /// the index of the layer, and 0 for a forward or 1 for a backward pass.
    fn measure_layer(
        &mut self,
        device: &AnyDevice,
        position: [usize; 2],
        layer: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        layer()?;
        let spans = device.take_spans()?;
        spans.iter().for_each(|span| self.add(span));
        let time = spans.iter().map(|span| span.duration).sum::<Duration>();
        self.layers[position[0]][position[1]].push(time.as_secs_f64());
        Ok(())
    }

    /// For each layer, returns the seconds that the layer's kernels and transfers took in each
    /// forward pass, and in each backward pass.
    pub(super) fn layers(&self) -> &[[Vec<f64>; 2]] {
        &self.layers
    }

    fn add(&mut self, span: &DeviceSpan) {
        let name = match span.work {
            DeviceWork::Kernel { call, function } => [call.name, call.element, function],
            DeviceWork::Upload { .. } => ["(upload)", "", ""],
            DeviceWork::Download { .. } => ["(download)", "", ""],
        };
        let (launches, time) = self.totals.entry(name).or_default();
        *launches += 1;
        *time += span.duration;
    }

    /// Returns the kernels and transfers as JSON, with the number of launches and the seconds of one
    /// pass.
    pub(super) fn to_json(&self) -> Value {
        let per_pass = 1.0 / f64::from(self.passes);
        let kernel = |(name, total): (&KernelName, &(u32, Duration))| {
            let ([kernel, element, function], (launches, time)) = (name, total);
            json!({
                "kernel": kernel, "element": element, "function": function,
                "launches": f64::from(*launches) * per_pass,
                "seconds": time.as_secs_f64() * per_pass,
            })
        };
        self.totals.iter().map(kernel).collect()
    }

    /// Formats a table of the kernels, in descending order of time.
    pub(super) fn table(&self) -> String {
        let all: Duration = self.totals.values().map(|(_, time)| *time).sum();
        let mut totals: Vec<_> = self.totals.iter().collect();
        totals.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        let header = ["kernel", "type", "function", "launches", "device ms", "%"];
        let mut table = vec![header.map(str::to_owned).to_vec()];
        table.extend(totals.into_iter().map(|([kernel, element, function], (launches, time))| {
            let per_pass = 1.0 / f64::from(self.passes);
            vec![
                (*kernel).to_owned(),
                (*element).to_owned(),
                (*function).to_owned(),
                format!("{:.0}", f64::from(*launches) * per_pass),
                milliseconds(Some(time.as_secs_f64() * per_pass)),
                format!("{:.1}", 100.0 * time.as_secs_f64() / all.as_secs_f64()),
            ]
        }));
        align_columns(&table, 3)
    }
}
