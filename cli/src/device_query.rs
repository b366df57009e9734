//! The command `cortado device-query`, which lists the devices of the machine.

use super::{
    device_args::{GpuArg, gpu, resolve_gpus},
    output::print,
    table::align_columns,
};
use clap::Args;
use cortado::kernel::traits::*;
use cortado::{
    device::{self, AnyDevice, DeviceOptions},
    error::Result,
};

/// List the devices of this machine, with their properties
#[derive(Args)]
#[command(after_help = "Example: cortado device-query")]
pub(super) struct DeviceQuery {
    /// List only the device with this name
    #[arg(long, value_name = "NAME", conflicts_with = "gpu")]
    device: Option<String>,
    /// List only the GPUs with these numbers; `all` lists every GPU
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = gpu)]
    gpu: Vec<GpuArg>,
}

impl DeviceQuery {
    pub(super) fn run(self) -> Result<()> {
        let device_names = device::device_names();
        let open = |name: &String| device::open(name, DeviceOptions::default());
        let lists_all = self.device.is_none() && self.gpu.is_empty();
        let names = match (self.device, &self.gpu[..]) {
            (Some(name), _) => vec![name],
            (None, []) => device_names,
            (None, gpus) => resolve_gpus(gpus, &device_names)?,
        };
        let descriptions = names.iter().map(|name| match open(name) {
            // A GPU that cortado cannot use must not hide the other devices.
            Err(error) if lists_all => Ok(format!("{name}\n  not usable  {error}\n")),
            device => Ok(describe_device(&device?)),
        });
        print(&descriptions.collect::<Result<Vec<_>>>()?.join("\n"))
    }
}

/// Formats the name and the properties of a device.
fn describe_device(device: &AnyDevice) -> String {
    let memory = if device.host_mapping().is_some() { "shared with the host" } else { "separate" };
    let threads = device.host_workers().count().to_string();
    let mut rows = device.properties();
    rows.extend([("address space", memory.to_owned()), ("host threads", threads)]);
    let rows = rows.into_iter().map(|(name, value)| vec![format!("  {name}"), value]);
    format!("{}\n{}", device.name(), align_columns(&rows.collect::<Vec<_>>(), 2))
}
