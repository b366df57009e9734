//! Where work is done.

use crate::{
    device::{self, Device, DeviceJob, DeviceOptions, GemmBackend, with_device_options},
    error::{Error, Result},
};
use clap::{Args, ValueEnum, builder::TypedValueParser};

/// Device, threads, and what multiplies matrices.
#[derive(Args, Clone)]
pub(super) struct DeviceArgs {
    /// Device to run on, one of those that `cortado device-query` lists
    #[arg(long, value_name = "NAME", default_value = "cpu", conflicts_with = "gpu")]
    device: String,
    /// GPU to run on, by its number, or `all` there are: `--gpu 0` is the device cuda:0
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = gpu)]
    gpu: Vec<GpuArg>,
    /// Host threads; 0 takes as many as the machine runs at once
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,
    /// What multiplies matrices on a GPU: cortado itself, or NVIDIA's cuBLAS
    #[arg(long, value_name = "WHOSE", value_enum)]
    products: Option<GemmBackendArg>,
    /// Lets a GPU round f32 operands of products to ten bits (TF32), as fast ones take them
    #[arg(long)]
    tf32: bool,
}

/// Products as an argument.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum GemmBackendArg {
    Builtin,
    Cublas,
}

/// A GPU as Caffe's flag names it.
#[derive(Clone, Copy)]
pub(super) enum GpuArg {
    All,
    Number(u32),
}

/// What the names of GPUs begin with.
const GPU: &str = "cuda:";

impl DeviceArgs {
    /// Does the work there, and logs where.
    pub(super) fn run<J: DeviceJob>(&self, job: J) -> Result<J::Output> {
        let device = match &self.gpu[..] {
            [] => self.device.clone(),
            gpus => one(gpus, &device::device_names())?,
        };
        self.refuse(&device)?;
        let opening = self.opening();
        with_device_options(&device, opening, Logged { job, opening })
    }

    fn opening(&self) -> DeviceOptions {
        let products = match self.products {
            Some(GemmBackendArg::Cublas) => GemmBackend::Cublas,
            Some(GemmBackendArg::Builtin) | None => GemmBackend::Builtin,
        };
        DeviceOptions { threads: self.threads.into(), products, tf32: self.tf32 }
    }

    /// Fails if what GPUs alone have is asked of another device. Of one that nobody knows more
    /// is told as it is opened.
    fn refuse(&self, device: &str) -> Result<()> {
        let asked = [("--products", self.products.is_some()), ("--tf32", self.tf32)];
        match asked.iter().find(|(_, given)| *given) {
            Some((option, _)) if device == "cpu" => Err(Error::InvalidData(format!(
                "{option}: the device cpu has no such choice; name a GPU by --gpu or --device"
            ))),
            _ => Ok(()),
        }
    }
}

/// The GPUs that were asked for, all of which have to be among these devices.
pub(super) fn resolve_gpus(gpus: &[GpuArg], known: &[String]) -> Result<Vec<String>> {
    let there: Vec<_> = known.iter().filter(|name| name.starts_with(GPU)).cloned().collect();
    let wanted: Vec<_> = gpus.iter().flat_map(|gpu| gpu.names(&there)).collect();
    let gone = wanted.iter().find(|name| !there.contains(name));
    let known = known.join(", ");
    let why = match gone {
        _ if there.is_empty() => {
            let why =
                device::cuda_device_count().err().map_or(String::new(), |why| format!(" ({why})"));
            format!("there are no GPU devices, only {known}{why}: leave out --gpu to use that")
        }
        Some(gone) => format!("there is no {gone}; the devices are {known}"),
        None => return Ok(wanted),
    };
    Err(Error::InvalidData(format!("--gpu: {why}")))
}

/// The one GPU that was asked for.
fn one(gpus: &[GpuArg], known: &[String]) -> Result<String> {
    let mut named = resolve_gpus(gpus, known)?;
    match (named.pop(), named.len()) {
        (Some(name), 0) => Ok(name),
        _ => Err(Error::InvalidData("--gpu: a net runs on one device: give one number".into())),
    }
}

impl GpuArg {
    fn names(self, there: &[String]) -> Vec<String> {
        match self {
            Self::All => there.to_vec(),
            Self::Number(number) => vec![format!("{GPU}{number}")],
        }
    }
}

/// Reads one.
pub(super) fn gpu(text: &str) -> Result<GpuArg, String> {
    match text {
        "all" => Ok(GpuArg::All),
        _ => text.parse().map(GpuArg::Number).map_err(|_| "neither a number nor `all`".into()),
    }
}

/// More than any machine runs at once, and few enough to be started.
fn threads() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(..=1024)
}

/// Work that is logged before it begins.
struct Logged<J> {
    job: J,
    opening: DeviceOptions,
}

impl<J: DeviceJob> DeviceJob for Logged<J> {
    type Output = J::Output;

    fn run<D: Device>(self, device: D) -> Result<J::Output> {
        let (name, threads) = (device.name(), device.host_workers().count());
        log::info!("Use {name}, {threads} host threads{}.", products(self.opening, &device));
        self.job.run(device)
    }
}

/// What multiplies matrices, and how, where that was asked for.
fn products<D: Device>(opening: DeviceOptions, device: &D) -> String {
    let version = device.properties().into_iter().find(|(name, _)| *name == "cuBLAS");
    let by = version.map_or(String::new(), |(name, version)| format!(" by {name} {version}"));
    match (opening.tf32, &by[..]) {
        (false, "") => String::new(),
        (false, by) => format!(", products{by}"),
        (true, by) => format!(", products{by} in TF32"),
    }
}

#[cfg(test)]
mod tests {
    use super::{gpu, one, resolve_gpus};

    #[test]
    fn gpus_are_devices() {
        let devices = |count: usize| {
            let gpus = (0..count).map(|number| format!("cuda:{number}"));
            ["cpu".to_owned()].into_iter().chain(gpus).collect::<Vec<_>>()
        };
        let ids = |text: &str| text.split(',').map(|id| gpu(id).unwrap()).collect::<Vec<_>>();
        let said = |text: &str, count| one(&ids(text), &devices(count)).unwrap_err().to_string();
        assert_eq!(one(&ids("1"), &devices(2)).unwrap(), "cuda:1");
        assert_eq!(one(&ids("all"), &devices(1)).unwrap(), "cuda:0");
        assert_eq!(resolve_gpus(&ids("all"), &devices(2)).unwrap(), ["cuda:0", "cuda:1"]);
        assert!(said("all", 2).contains("one device") && said("0,1", 2).contains("one device"));
        assert!(said("2", 2).contains("no cuda:2; the devices are cpu, cuda:0, cuda:1"));
        for none in ["0", "all", "0,1"] {
            assert!(said(none, 0).contains("no GPU devices, only cpu"));
        }
        assert!(gpu("first").is_err() && gpu("-1").is_err());
    }
}
