//! Rows of a net drawing, one per layer.

use crate::escape::escape_control;
use cortado::{net::Net, proto::LayerParameter};

/// Row of a layer in a net drawing, with the row's texts and the names of the layer's blobs.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) settings: String,
    pub(super) shapes: String,
    pub(super) params: usize,
    pub(super) bottoms: Vec<String>,
    pub(super) tops: Vec<String>,
}

impl Row {
    pub(super) fn new(layer: &LayerParameter, net: Option<&Net<f32>>) -> Self {
        let shape = |top: &String| {
            let blob = net?.blob(top)?;
            let extents: Vec<_> = blob.shape().iter().map(usize::to_string).collect();
            Some(extents.join("×"))
        };
        let shapes: Vec<_> = layer.top.iter().filter_map(shape).collect();
        let params = net.and_then(|net| net.layer(layer.name()));
        Self {
            name: escape_control(layer.name()),
            kind: escape_control(layer.r#type()),
            settings: settings(layer),
            shapes: shapes.join("  "),
            params: params.map_or(0, |layer| layer.params().iter().map(|blob| blob.count()).sum()),
            bottoms: layer.bottom.clone(),
            tops: layer.top.clone(),
        }
    }

    /// Returns whether the layer works in place: all its tops are also bottoms.
    pub(super) fn in_place(&self) -> bool {
        !self.tops.is_empty() && self.tops.iter().all(|top| self.bottoms.contains(top))
    }
}

/// Formats the most important parameters of a layer, such as its kernel size.
fn settings(layer: &LayerParameter) -> String {
    let square = |sizes: &[u32], h: Option<u32>, w: Option<u32>| match (sizes, h, w) {
        (_, Some(h), Some(w)) => Some(format!("{h}×{w}")),
        ([size], ..) => Some(format!("{size}×{size}")),
        ([_, ..], ..) => Some(sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("×")),
        _ => None,
    };
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}{value}")));
    };
    if let Some(conv) = &layer.convolution_param {
        add("", conv.num_output.map(|outputs| format!("{outputs} of")));
        add("", square(&conv.kernel_size, conv.kernel_h, conv.kernel_w));
        add("/", conv.stride.first().or(conv.stride_h.as_ref()).map(u32::to_string));
        add("pad ", conv.pad.first().or(conv.pad_h.as_ref()).map(u32::to_string));
        add("dilation ", conv.dilation.first().map(u32::to_string));
        add("groups ", conv.group.map(|group| group.to_string()));
    }
    if let Some(pool) = &layer.pooling_param {
        add("", Some(pool.pool().as_str_name().to_owned()));
        let sizes: Vec<u32> = pool.kernel_size.into_iter().collect();
        add("", square(&sizes, pool.kernel_h, pool.kernel_w));
        add("/", pool.stride.or(pool.stride_h).map(|stride| stride.to_string()));
        add("pad ", pool.pad.or(pool.pad_h).map(|pad| pad.to_string()));
        add("", pool.global_pooling().then(|| "global".into()));
    }
    if let Some(dropout) = &layer.dropout_param {
        add("ratio ", Some(dropout.dropout_ratio().to_string()));
    }
    if let Some(eltwise) = &layer.eltwise_param {
        add("", Some(eltwise.operation().as_str_name().to_owned()));
    }
    words.join(" ")
}
