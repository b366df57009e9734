//! `cortado device-query`

use super::{
    device_args::{GpuArg, gpu, resolve_gpus},
    print,
    table::aligned,
};
use crate::{
    device::{self, Device, DeviceJob, with_device},
    error::Result,
};
use clap::Args;

/// Lists the devices that nets can run on here, with their properties
#[derive(Args)]
#[command(after_help = "Example: cortado device-query")]
pub(super) struct DeviceQuery {
    /// Tells of this device only
    #[arg(long, value_name = "NAME", conflicts_with = "gpu")]
    device: Option<String>,
    /// Tells of these GPUs only, by number, or of `all` there are
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = gpu)]
    gpu: Vec<GpuArg>,
}

impl DeviceQuery {
    pub(super) fn run(self) -> Result<()> {
        let known = device::device_names();
        let names = match (self.device, &self.gpu[..]) {
            (Some(name), _) => vec![name],
            (None, []) => known,
            (None, gpus) => resolve_gpus(gpus, &known)?,
        };
        let told = names.iter().map(|name| with_device(name, 0, Describe));
        print(&told.collect::<Result<Vec<_>>>()?.join("\n"))
    }
}

/// Tells of a device.
struct Describe;

impl DeviceJob for Describe {
    type Output = String;

    fn run<D: Device>(self, device: D) -> Result<String> {
        let memory = if device.host_mapping().is_some() { "is the host's" } else { "of its own" };
        let threads = device.host_workers().count().to_string();
        let mut rows = device.properties();
        rows.extend([("address space", memory.to_owned()), ("host threads", threads)]);
        let rows = rows.into_iter().map(|(name, value)| vec![format!("  {name}"), value]);
        Ok(format!("{}\n{}", device.name(), aligned(&rows.collect::<Vec<_>>(), 2)))
    }
}
