//! The command `cortado device-query`, which lists the devices of the machine.

use super::{
    byte_size::mebibytes,
    device_args::{GpuArg, gpu, resolve_gpus},
    output::print,
    table::align_columns,
};
use clap::Args;
use cortado::kernel::traits::*;
use cortado::{
    device::{self, AnyDevice, DeviceOptions},
    error::Result,
    memory::{MemoryUsage, PoolUsage},
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
        let selected_names = match (self.device, &self.gpu[..]) {
            (Some(name), _) => vec![name],
            (None, []) => device_names,
            (None, gpus) => resolve_gpus(gpus, &device_names)?,
        };
        let describe = |name| open(name).and_then(|device| describe_device(&device));
        let descriptions = selected_names.iter().map(|name| match describe(name) {
            // A GPU that cortado cannot use must not hide the other devices.
            Err(error) if lists_all => Ok(format!("{name}\n  not usable  {error}\n")),
            description => description,
        });
        print(&descriptions.collect::<Result<Vec<_>>>()?.join("\n"))
    }
}

/// Formats the name, the properties and the memory usage of a device.
fn describe_device(device: &AnyDevice) -> Result<String> {
    let memory = if device.host_mapping().is_some() { "shared with the host" } else { "separate" };
    let threads = device.host_workers().count().to_string();
    let mut rows = device.properties();
    rows.extend(device.memory_usage()?.iter().flat_map(usage_rows));
    rows.extend([("address space", memory.to_owned()), ("host threads", threads)]);
    let rows = rows.into_iter().map(|(name, value)| vec![format!("  {name}"), value]);
    Ok(format!("{}\n{}", device.name(), align_columns(&rows.collect::<Vec<_>>(), 2)))
}

/// Returns the names and values of a device's memory usage.
fn usage_rows(usage: &MemoryUsage) -> Vec<(&'static str, String)> {
    let MemoryUsage { total, free, pool } = *usage;
    let free = format!("{} of {} MiB", mebibytes(free), mebibytes(total));
    let amount = |now, peak| format!("{} MiB, at most {} MiB", mebibytes(now), mebibytes(peak));
    let mut rows = vec![("free memory", free)];
    if let Some(PoolUsage { used, peak_used, reserved, peak_reserved }) = pool {
        rows.push(("pool memory in use", amount(used, peak_used)));
        rows.push(("pool memory reserved", amount(reserved, peak_reserved)));
    }
    rows
}
