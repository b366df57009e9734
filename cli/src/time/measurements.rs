//! Measured times of a net: of its layers, of its passes, and of its kernels.

use super::kernel_times::KernelTimes;
use crate::{escape::escape_control, table::milliseconds};
use cortado::{net::Net, proto::LayerParameter};
use std::time::Duration;

/// Text in the forward-time column for an activation that is fused into the preceding layer and
/// therefore has no separate time.
const FUSED_ABOVE: &str = "above";

/// Measured times of a net's layers and of its passes.
pub(super) struct Measurements {
    pub(super) rows: Vec<Row>,
    /// Times of the forward passes and of the backward passes of the net, in seconds.
    pub(super) passes: [Vec<f64>; 2],
    /// Total time that the timed passes waited for data; `None` if the net reads no data.
    pub(super) data_wait: Option<Duration>,
    /// Times of the kernels and transfers; `None` if the device does not measure times.
    pub(super) kernels: Option<KernelTimes>,
    /// Number of processes, and times in seconds of sums of the gradients over all processes; `None`
    /// if this process is alone.
    pub(super) gradient_sums: Option<(usize, Vec<f64>)>,
}

/// Row of the printed table: a layer and its times.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) tops: String,
    /// Number of values of the parameters that the layer does not share with an earlier layer.
    pub(super) parameters: usize,
    /// Time of the layer in each forward pass, in seconds; empty if the layer is fused into the
    /// preceding layer.
    pub(super) forward: Vec<f64>,
    pub(super) backward: Vec<f64>,
    /// Times of the layer's kernels and transfers in each forward and backward pass, in seconds, as
    /// the device measured them.
    pub(super) device: [Vec<f64>; 2],
    /// Number of floating-point operations in the layer's forward pass, if known.
    pub(super) forward_flops: Option<f64>,
    pub(super) backward_flops: Option<f64>,
}

impl Row {
    pub(super) fn new(net: &Net<f32>, index: usize) -> Self {
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
    pub(super) fn cells(&self, total_seconds: f64, has_device_times: bool) -> Vec<String> {
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

/// Returns the median of `values`; `None` if there are no values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted_values = values.to_vec();
    sorted_values.sort_by(f64::total_cmp);
    let middle = sorted_values.len() / 2;
    let upper_median = sorted_values.get(middle)?;
    let lower_median = sorted_values.get((sorted_values.len() - 1) / 2)?;
    Some((lower_median + upper_median) / 2.0)
}
