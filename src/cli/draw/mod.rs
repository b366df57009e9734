//! `cortado draw`

mod layout;
mod svg;

use super::{
    definition::read_net,
    net_state_args::{NetStateArgs, PhaseArg},
    table::plain,
};
use crate::{
    device::CpuDevice,
    error::{Error, Result},
    atomic_fs,
    net::{Net, filter_net},
    proto::{LayerParameter, NetParameter},
};
use clap::Args;
use std::path::PathBuf;

/// Draws a net as an SVG image
///
/// A row for each layer, in the order in which they run: name, type, what it is set to, the shapes
/// of its tops, and how many parameters it has. Lines are blobs; a hollow mark works in place.
/// Without its data sources a net is drawn without shapes.
#[derive(Args)]
#[command(after_help = "Example: cortado draw examples/digits/lenet.prototxt -o lenet.svg")]
pub(super) struct Draw {
    /// Net definition, in text format
    #[arg(value_name = "FILE")]
    model: PathBuf,
    /// Image to write
    #[arg(short, long, value_name = "FILE.svg")]
    output: PathBuf,
    /// Phase to draw the net in; as its `state` says, else TEST, if not given
    #[arg(long, value_enum, ignore_case = true)]
    phase: Option<PhaseArg>,
    #[command(flatten)]
    stages: NetStateArgs,
}

/// A layer as it is drawn.
struct Row {
    name: String,
    kind: String,
    settings: String,
    shapes: String,
    params: usize,
    bottoms: Vec<String>,
    tops: Vec<String>,
}

impl Draw {
    pub(super) fn run(self) -> Result<()> {
        let mut definition = read_net(&self.model)?;
        let state = definition.state.get_or_insert_default();
        if let Some(phase) = self.phase {
            state.set_phase(phase.into());
        }
        self.stages.put(state);
        let state = state.clone();
        let within = |error: Error| error.context(self.model.display().to_string());
        let filtered = filter_net(&definition, &state).map_err(within)?;
        let net = Net::<f32, _>::builder(&CpuDevice::with_threads(1)?).build(&definition);
        let net = net.inspect_err(|error| log::warn!("without shapes: {error}")).ok();
        let rows: Vec<Row> =
            filtered.layer.iter().map(|layer| Row::new(layer, net.as_ref())).collect();
        atomic_fs::write_atomically(&self.output, svg::draw(&title(&filtered), &rows).as_bytes())
    }
}

fn title(net: &NetParameter) -> String {
    match net.name() {
        "" => "net".into(),
        name => plain(name),
    }
}

impl Row {
    fn new(layer: &LayerParameter, net: Option<&Net<f32, CpuDevice>>) -> Self {
        let shape = |top: &String| {
            let blob = net?.blob(top)?;
            let extents: Vec<_> = blob.shape().iter().map(usize::to_string).collect();
            Some(extents.join("×"))
        };
        let shapes: Vec<_> = layer.top.iter().filter_map(shape).collect();
        let params = net.and_then(|net| net.layer(layer.name()));
        Self {
            name: plain(layer.name()),
            kind: plain(layer.r#type()),
            settings: settings(layer),
            shapes: shapes.join("  "),
            params: params.map_or(0, |layer| layer.params().iter().map(|blob| blob.count()).sum()),
            bottoms: layer.bottom.clone(),
            tops: layer.top.clone(),
        }
    }

    fn in_place(&self) -> bool {
        !self.tops.is_empty() && self.tops.iter().all(|top| self.bottoms.contains(top))
    }
}

/// What people look for in a layer of windows or of weights.
fn settings(layer: &LayerParameter) -> String {
    let square = |sizes: &[u32], h: Option<u32>, w: Option<u32>| match (sizes, h, w) {
        (_, Some(h), Some(w)) => Some(format!("{h}×{w}")),
        ([size], ..) => Some(format!("{size}×{size}")),
        ([_, ..], ..) => Some(sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("×")),
        _ => None,
    };
    let mut words = Vec::new();
    let mut say = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}{value}")));
    };
    if let Some(conv) = &layer.convolution_param {
        say("", conv.num_output.map(|outputs| format!("{outputs} of")));
        say("", square(&conv.kernel_size, conv.kernel_h, conv.kernel_w));
        say("/", conv.stride.first().or(conv.stride_h.as_ref()).map(u32::to_string));
        say("pad ", conv.pad.first().or(conv.pad_h.as_ref()).map(u32::to_string));
        say("dilation ", conv.dilation.first().map(u32::to_string));
        say("groups ", conv.group.map(|group| group.to_string()));
    }
    if let Some(pool) = &layer.pooling_param {
        say("", Some(pool.pool().as_str_name().to_owned()));
        let sizes: Vec<u32> = pool.kernel_size.into_iter().collect();
        say("", square(&sizes, pool.kernel_h, pool.kernel_w));
        say("/", pool.stride.or(pool.stride_h).map(|stride| stride.to_string()));
        say("pad ", pool.pad.or(pool.pad_h).map(|pad| pad.to_string()));
        say("", pool.global_pooling().then(|| "global".into()));
    }
    if let Some(dropout) = &layer.dropout_param {
        say("ratio ", Some(dropout.dropout_ratio().to_string()));
    }
    if let Some(eltwise) = &layer.eltwise_param {
        say("", Some(eltwise.operation().as_str_name().to_owned()));
    }
    words.join(" ")
}
