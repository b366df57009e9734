//! The command `cortado draw`, which draws a net as an SVG image.

mod layout;
mod row;
mod svg;

use super::{
    device_args::main_memory,
    escape::escape_control,
    net_state_args::{NetStateArgs, PhaseArg},
    output::print_unescaped,
    suffix::check_svg,
};
use clap::Args;
use cortado::{
    atomic_fs,
    device::{self, DeviceOptions},
    error::{Error, Result},
    net::{Net, filter_net},
    proto::{NetParameter, read_net},
};
use row::Row;
use std::path::PathBuf;

/// Draw a net as an SVG image
///
/// Draws one row per layer, in execution order: name, type, main parameters, shapes of the tops and
/// number of learnable parameters. Each line in the drawing represents a blob. A hollow mark
/// denotes a layer that works in place. If the net's data sources cannot be opened, the drawing
/// shows no blob shapes.
#[derive(Args)]
#[command(after_help = "Example: cortado draw examples/digits/lenet.prototxt -o lenet.svg")]
pub(super) struct Draw {
    /// Net definition in text format
    #[arg(value_name = "FILE")]
    model: PathBuf,
    /// SVG file to write, or - for standard output
    #[arg(short, long, value_name = "FILE.svg")]
    output: PathBuf,
    /// Phase of the net; default: the phase in the definition's `state`, or TEST if the definition
    /// has none
    #[arg(long, value_enum, ignore_case = true)]
    phase: Option<PhaseArg>,
    #[command(flatten)]
    net_state: NetStateArgs,
}

impl Draw {
    pub(super) fn run(self) -> Result<()> {
        check_svg(&self.output)?;
        let mut definition = read_net(&self.model)?;
        let state = definition.state.get_or_insert_default();
        if let Some(phase) = self.phase {
            state.set_phase(phase.into());
        }
        self.net_state.apply(state);
        let state = state.clone();
        let with_path = |error: Error| error.context(self.model.display().to_string());
        let filtered_net = filter_net(&definition, &state).map_err(with_path)?;
        let options =
            DeviceOptions { memory_limit: main_memory(), ..DeviceOptions::with_threads(1) };
        let builder = Net::<f32>::builder(&device::open("cpu", options)?);
        let net = match builder.build_from(&definition, &self.model) {
            Ok(net) => Some(net),
            Err(error) if filtered_net.layer.is_empty() => return Err(error),
            Err(error) => {
                log::warn!("the drawing has no shapes: {error}");
                None
            }
        };
        let rows: Vec<Row> =
            filtered_net.layer.iter().map(|layer| Row::new(layer, net.as_ref())).collect();
        let drawing = svg::draw(&title(&filtered_net), &rows);
        match self.output.to_str() {
            Some("-") => print_unescaped(&drawing),
            _ => atomic_fs::write_atomically(&self.output, drawing.as_bytes()),
        }
    }
}

fn title(net: &NetParameter) -> String {
    match net.name() {
        "" => "net".into(),
        name => escape_control(name),
    }
}
