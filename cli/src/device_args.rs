//! Command-line flags that select a device.

use super::byte_size::byte_size;
use clap::{Args, ValueEnum, builder::TypedValueParser};
use cortado::kernel::traits::*;
use cortado::{
    device::{self, AnyDevice, DeviceOptions, GemmBackend},
    error::{Error, Result},
};

/// Command-line flags for the device, its number of host threads, and its GEMM backend.
#[derive(Args, Clone)]
pub(super) struct DeviceArgs {
    /// Device to run on, as listed by `cortado device-query`, or `simulated`: a device for tests,
    /// which computes on the host and has a separate memory
    #[arg(long, value_name = "NAME", default_value = "cpu", conflicts_with = "gpu")]
    device: String,
    /// Number of the GPU to run on, or `all`; `--gpu 0` is the device cuda:0
    #[arg(long, value_name = "ID,..", value_delimiter = ',', value_parser = gpu)]
    gpu: Vec<GpuArg>,
    /// Number of host threads; 0 means one per core that the process may use
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,
    /// GEMM on a GPU: cortado's own kernels, NVIDIA's cuBLAS or cuBLASLt; by default, cuBLASLt on a
    /// GPU of compute capability 9.0 or later if cuBLASLt is found, else cortado's own kernels
    #[arg(long, alias = "products", value_name = "BACKEND", value_enum)]
    gemm_backend: Option<GemmBackendArg>,
    /// Allow a GPU to round f32 operands of GEMM to TF32 (10-bit mantissa), which is faster
    #[arg(long, alias = "tf32")]
    allow_tf32: bool,
    /// Launch up to 32 kernels of a GPU by one call of the driver, as a CUDA graph; changes no result
    #[arg(long)]
    cuda_graphs: bool,
    /// Memory limit for the blobs of nets and solvers, such as 512MiB or 2GiB; by default, the size
    /// of main memory on the device cpu, and no limit on a GPU
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    max_memory: Option<usize>,
}

/// Value of the flag `--gemm-backend`.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum GemmBackendArg {
    Auto,
    #[value(alias = "own")]
    Builtin,
    Cublas,
    #[value(name = "cublaslt")]
    CublasLt,
}

/// A value of the flag `--gpu`, as in Caffe: the number of a GPU, or all GPUs.
#[derive(Clone, Copy)]
pub(super) enum GpuArg {
    All,
    Number(u32),
}

/// Prefix of the names of CUDA devices, followed by the GPU's number.
const GPU_PREFIX: &str = "cuda:";

impl DeviceArgs {
    /// Opens the device that the flags select, and logs its name.
    pub(super) fn open(&self) -> Result<AnyDevice> {
        let name = match &self.gpu[..] {
            [] => self.device.clone(),
            gpus => single_gpu(gpus, &device::device_names())?,
        };
        self.check(&name)?;
        let options = self.options(&name);
        let device = device::open(&name, options)?;
        let (name, threads) = (device.name(), device.host_workers().count());
        log::info!("Use {name}, {threads} host threads{}.", gemm_note(options, &device));
        Ok(device)
    }

    /// Replaces the selected device with the GPU that has the given number.
    pub(super) fn on_gpu(self, number: u32) -> Self {
        Self { gpu: vec![GpuArg::Number(number)], ..self }
    }

    /// Returns the flags of the process with the index `rank` among the `size` processes of this
    /// host. The process takes the `rank`-th of the GPUs. Without `--threads`, the process takes its
    /// share of the cores.
    ///
    /// # Errors
    /// Fails if the host has fewer GPUs than processes.
    #[cfg(feature = "mpi")]
    pub(super) fn for_process(&self, rank: usize, size: usize) -> Result<Self> {
        let mut args = self.clone();
        if size > 1 && !self.gpu.is_empty() {
            args.device = gpu_of_process(&self.gpu, &device::device_names(), rank, size)?;
            args.gpu = Vec::new();
        }
        if self.threads == 0 {
            args.threads = threads_per_process(size);
        }
        Ok(args)
    }

    fn options(&self, device: &str) -> DeviceOptions {
        let default_limit = if device == "cpu" { main_memory() } else { None };
        let gemm_backend = match self.gemm_backend {
            Some(GemmBackendArg::Cublas) => GemmBackend::Cublas,
            Some(GemmBackendArg::CublasLt) => GemmBackend::CublasLt,
            Some(GemmBackendArg::Builtin) => GemmBackend::Builtin,
            Some(GemmBackendArg::Auto) | None => GemmBackend::Auto,
        };
        DeviceOptions {
            threads: self.threads.into(),
            gemm_backend,
            tf32: self.allow_tf32,
            cuda_graphs: self.cuda_graphs,
            memory_limit: self.max_memory.or(default_limit),
        }
    }

    /// Fails if the user combines a flag for GPUs with the device `cpu`. For all other devices,
    /// `device::open` checks whether the flags are valid.
    fn check(&self, device: &str) -> Result<()> {
        let gpu_flags = [
            ("--gemm-backend", self.gemm_backend.is_some()),
            ("--allow-tf32", self.allow_tf32),
            ("--cuda-graphs", self.cuda_graphs),
        ];
        match gpu_flags.iter().find(|(_, given)| *given) {
            Some((option, _)) if device == "cpu" => Err(Error::InvalidData(format!(
                "{option}: not supported by the device cpu; choose a GPU with --gpu or --device"
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns the number of threads for each of `size` processes on this host, so that all processes
/// together use all cores. If `mpiexec` has bound this process to a part of the processors, returns
/// the number of cores of these processors.
#[cfg(feature = "mpi")]
fn threads_per_process(size: usize) -> u16 {
    let available = cortado::host::default_threads();
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let online = read("/sys/devices/system/cpu/online");
    let is_bound =
        allowed.is_some_and(|allowed| listed_processors(allowed) < listed_processors(&online));
    let threads = if is_bound { available } else { (available / size).max(1) };
    u16::try_from(threads).unwrap_or(u16::MAX)
}

/// Returns the number of processors in a list such as `0-3,8`, as Linux writes it.
#[cfg(feature = "mpi")]
fn listed_processors(list: &str) -> usize {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some((last + 1).saturating_sub(first))
    });
    ranges.sum()
}

/// Returns the size of main memory in bytes, which is the default memory limit of the device `cpu`,
/// or `None` if the size is unknown.
pub(super) fn main_memory() -> Option<usize> {
    usize::try_from(device::host_memory_bytes()?).ok()
}

/// Returns the device names of the requested GPUs. Fails if a requested GPU is not in
/// `device_names`.
pub(super) fn resolve_gpus(gpus: &[GpuArg], device_names: &[String]) -> Result<Vec<String>> {
    let known_gpus: Vec<_> =
        device_names.iter().filter(|name| name.starts_with(GPU_PREFIX)).cloned().collect();
    let names: Vec<_> = gpus.iter().flat_map(|gpu| gpu.names(&known_gpus)).collect();
    let missing_name = names.iter().find(|name| !known_gpus.contains(name));
    let device_names = device_names.join(", ");
    let reason = match missing_name {
        _ if known_gpus.is_empty() => {
            let reason = device::cuda_device_count()
                .err()
                .map_or(String::new(), |reason| format!(" ({reason})"));
            format!(
                "no GPU found, only the device {device_names}{reason}; omit --gpu to run on the CPU"
            )
        }
        Some(missing) => format!("device {missing} not found; the devices are {device_names}"),
        None => return Ok(names),
    };
    Err(Error::InvalidData(format!("--gpu: {reason}")))
}

/// Returns the device name of the GPU for the process with index `rank` among the `size` processes
/// of this host: the requested GPU with this index. Fails if fewer GPUs than processes are requested.
#[cfg(feature = "mpi")]
fn gpu_of_process(
    gpus: &[GpuArg],
    device_names: &[String],
    rank: usize,
    size: usize,
) -> Result<String> {
    let mut names = resolve_gpus(gpus, device_names)?;
    let count = names.len();
    if count < size {
        return Err(Error::InvalidData(format!(
            "--gpu: expected at least {size} GPUs for the {size} processes of this host, found \
             {count}; pass `--gpu all`, or start fewer processes on this host"
        )));
    }
    Ok(names.swap_remove(rank))
}

/// Returns the device name of the requested GPU. Fails unless exactly one GPU is requested.
fn single_gpu(gpus: &[GpuArg], device_names: &[String]) -> Result<String> {
    let mut names = resolve_gpus(gpus, device_names)?;
    match (names.pop(), names.len()) {
        (Some(name), 0) => Ok(name),
        _ => Err(Error::InvalidData("--gpu: a net runs on one device; pass one number".into())),
    }
}

impl GpuArg {
    fn names(self, known_gpus: &[String]) -> Vec<String> {
        match self {
            Self::All => known_gpus.to_vec(),
            Self::Number(number) => vec![format!("{GPU_PREFIX}{number}")],
        }
    }
}

/// Parses one value of the comma-separated flag `--gpu`.
pub(super) fn gpu(text: &str) -> Result<GpuArg, String> {
    match text {
        "all" => Ok(GpuArg::All),
        _ => text.parse().map(GpuArg::Number).map_err(|_| "expected a number or `all`".into()),
    }
}

/// Returns the parser for the flag `--threads`. The limit of 1024 threads is above common processor
/// counts, but low enough that a process can start them all.
fn threads() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(..=1024)
}

/// Returns a log note about the GEMM backend and TF32, or an empty string if both settings have
/// their default values.
fn gemm_note(options: DeviceOptions, device: &AnyDevice) -> String {
    let version =
        device.properties().into_iter().find(|(name, _)| matches!(*name, "cuBLAS" | "cuBLASLt"));
    let library_text =
        version.map_or(String::new(), |(name, version)| format!(" by {name} {version}"));
    match (options.tf32, &library_text[..]) {
        (false, "") => String::new(),
        (false, library_text) => format!(", GEMM{library_text}"),
        (true, library_text) => format!(", GEMM{library_text} in TF32"),
    }
}

#[cfg(test)]
mod tests {
    use super::{gpu, resolve_gpus, single_gpu};

    #[test]
    fn gpu_numbers_resolve_to_devices_and_errors_name_a_missing_gpu() {
        let devices = |count: usize| {
            let gpus = (0..count).map(|number| format!("cuda:{number}"));
            ["cpu".to_owned()].into_iter().chain(gpus).collect::<Vec<_>>()
        };
        let ids = |text: &str| text.split(',').map(|id| gpu(id).unwrap()).collect::<Vec<_>>();
        let error =
            |text: &str, count| single_gpu(&ids(text), &devices(count)).unwrap_err().to_string();
        assert_eq!(single_gpu(&ids("1"), &devices(2)).unwrap(), "cuda:1");
        assert_eq!(single_gpu(&ids("all"), &devices(1)).unwrap(), "cuda:0");
        assert_eq!(resolve_gpus(&ids("all"), &devices(2)).unwrap(), ["cuda:0", "cuda:1"]);
        assert!(error("all", 2).contains("one device") && error("0,1", 2).contains("one device"));
        assert!(
            error("2", 2).contains("device cuda:2 not found; the devices are cpu, cuda:0, cuda:1")
        );
        for none in ["0", "all", "0,1"] {
            assert!(error(none, 0).contains("no GPU found, only the device cpu"));
        }
        assert!(gpu("first").is_err() && gpu("-1").is_err());
    }

    #[cfg(feature = "mpi")]
    #[test]
    fn each_process_of_a_host_takes_the_requested_gpu_with_its_index() {
        let devices = ["cpu", "cuda:0", "cuda:1", "cuda:2"].map(str::to_owned);
        let of_processes = |text: &str, size| {
            let gpus: Vec<_> = text.split(',').map(|id| gpu(id).unwrap()).collect();
            let of_rank = |rank| super::gpu_of_process(&gpus, &devices, rank, size);
            (0..size).map(of_rank).collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(of_processes("all", 2).unwrap(), ["cuda:0", "cuda:1"]);
        assert_eq!(of_processes("2,0", 2).unwrap(), ["cuda:2", "cuda:0"]);
        let error = of_processes("all", 4).unwrap_err().to_string();
        assert!(
            error.contains("at least 4 GPUs for the 4 processes of this host, found 3"),
            "{error}"
        );
        assert!(of_processes("1", 2).unwrap_err().to_string().contains("found 1"));
        assert!(of_processes("7", 2).unwrap_err().to_string().contains("cuda:7 not found"));
    }
}
