//! Tests of the CUDA backend. A test driver (`tests/cuda_on_cpu`) runs the CUDA kernels on the CPU.
//! With `CORTADO_REQUIRE_CUDA=1`, the kernels run on a GPU. With `CORTADO_CUDA_GRAPHS=1`, CUDA graphs
//! launch the kernels.

#[macro_use]
mod skip {
    macro_rules! or_skip {
        ($device:expr) => {
            match $device {
                Some(device) => device,
                None => return,
            }
        };
    }
}
#[path = "cuda/cublas.rs"]
mod cublas;
#[path = "cuda/cublas_lt.rs"]
mod cublas_lt;
mod cuda_on_cpu;
#[path = "cuda/elementwise.rs"]
mod elementwise;
#[path = "cuda/graphs.rs"]
mod graphs;
#[path = "cuda/products.rs"]
mod products;
#[path = "cuda/spans.rs"]
mod spans;
#[path = "cuda/steps.rs"]
mod steps;
#[path = "cuda/usage.rs"]
mod usage;

use cortado::{
    Blob, Device, Error, Memory, Result, Src, SyncedMemory, View, ViewMut,
    conformance::Kit,
    device::{
        CudaDevice,
        cuda::{CudaBuilder, CudaFailure},
    },
    kernel::{Blas, Elementwise, Indexing, Pooling},
    ledger::{self, Policy, PolicyGuard},
    op::{Axis, Binary, Gemm, Pool2d, PoolRounding, RowIndexing, Unary},
};
use cust::{context::CurrentContext, error::CudaError};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
};

/// Returns whether the tests must run on a GPU, and must fail without a GPU.
fn gpu_required() -> bool {
    env::var_os("CORTADO_REQUIRE_CUDA").is_some_and(|value| value == "1")
}

/// Returns the path of the test driver, or `None` if g++ is missing or the tests require a GPU.
fn driver() -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if gpu_required() {
        return None;
    }
    let library = DRIVER.get_or_init(cuda_on_cpu::library).as_deref();
    if library.is_none() {
        println!("SKIPPED: g++ not found; needed to compile the GPU kernels for the CPU");
    }
    library
}

/// Opens a GPU if the tests require one, else a simulated GPU of the test driver. Returns `None` if
/// the test driver cannot be built because g++ is missing.
fn gpu(ordinal: u32) -> Option<CudaDevice> {
    gpu_with(ordinal, |builder| builder)
}

/// Opens a GPU like [`gpu`], but `configure` sets options of the device builder.
fn gpu_with(
    ordinal: u32,
    configure: impl FnOnce(CudaBuilder) -> CudaBuilder,
) -> Option<CudaDevice> {
    let graphs = env::var_os("CORTADO_CUDA_GRAPHS").is_some_and(|value| value == "1");
    let builder = configure(CudaDevice::builder().threads(1).graphs(graphs));
    let builder = if gpu_required() { builder } else { builder.driver_path(driver()?) };
    Some(builder.open(ordinal).unwrap())
}

/// Opens a simulated GPU for a test that cannot run on a real GPU.
fn simulated_gpu(ordinal: u32) -> Option<CudaDevice> {
    if gpu_required() { None } else { gpu(ordinal) }
}

/// Opens a GPU, and turns fallbacks to the host into errors until the returned guard is dropped. A
/// simulated GPU of compute capability 7.5 may fall back to the host, because such GPUs have no
/// kernels for products of bf16.
fn gpu_without_fallbacks(ordinal: u32) -> Option<(CudaDevice, PolicyGuard)> {
    let lacks_kernels = env::var_os("CUDA_ON_CPU_CAPABILITY").is_some_and(|value| value == "75");
    let policy = if lacks_kernels { Policy::Allow } else { Policy::Deny };
    Some((gpu(ordinal)?, ledger::set_fallback_policy(policy)))
}

cortado::conformance!(cuda, or_skip!(gpu_without_fallbacks(0)).0);

#[test]
fn the_readme_lists_every_kernel_as_native_on_cuda() {
    let table =
        include_str!("../README.md").split_once("| kernel | CPU | simulated | CUDA | wgpu |\n");
    let (_, rows) = table.unwrap();
    for row in rows.lines().skip(1).take_while(|row| row.starts_with('|')) {
        assert_eq!(row.split('|').nth(4), Some(" all "), "{row}");
    }
}

/// Returns a blob with the values −7.5, −6.5, … .
fn values<D: Device>(device: &D, n: usize) -> Blob<f32, D> {
    Blob::from_vec(device, &[n], (0..n).map(|i| i as f32 - 7.5).collect()).unwrap()
}

fn first_element(blob: &Blob<f32, CudaDevice>) -> f32 {
    blob.data().unwrap().host().unwrap()[0]
}

#[test]
fn properties_describe_the_gpu_and_its_driver() {
    let device = or_skip!(gpu(0));
    assert_eq!(device.name(), "cuda:0");
    let properties = device.properties();
    for name in ["processor", "compute capability", "multiprocessors", "memory", "driver"] {
        let found = properties.iter().find(|(found, _)| *found == name);
        assert!(found.is_some_and(|(_, value)| !value.is_empty()), "{name}");
    }
}

/// Runs the test `name` again in a child process with an environment variable, like
/// [`is_child_with`].
fn is_child(name: &str, variable: &str, value: &str) -> bool {
    is_child_with(name, &[(variable, value)])
}

/// Runs the test `name` again in a child process with environment variables, and returns whether
/// this process is the child. A child process is necessary, because a process cannot unload a
/// driver, and all tests of a process run in parallel with the same environment.
fn is_child_with(name: &str, variables: &[(&str, &str)]) -> bool {
    if env::var_os("CORTADO_CHILD").is_some_and(|child| child == name) {
        return true;
    }
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", name]).env("CORTADO_CHILD", name).envs(variables.iter().copied());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    false
}

#[test]
fn without_a_driver_the_error_names_its_path() {
    let name = "without_a_driver_the_error_names_its_path";
    if !is_child(name, "CORTADO_LIBCUDA", "/nowhere/libcuda.so.1") {
        return;
    }
    for _ in 0..2 {
        let message = CudaDevice::new(0).unwrap_err().to_string();
        assert!(message.starts_with("device `cuda`: "), "{message}");
        assert!(message.contains("/nowhere/libcuda"), "{message}");
    }
    assert_eq!(cortado::device::device_names(), ["cpu"]);
}

#[test]
fn an_unknown_ordinal_and_a_second_driver_are_errors() {
    let _device = or_skip!(gpu(0));
    let message = CudaDevice::new(99).unwrap_err().to_string();
    let expected = ["cuda:99", "cannot open a second driver"];
    assert!(gpu_required() || expected.iter().any(|part| message.contains(part)), "{message}");
    let other = CudaDevice::builder().driver_path("/nowhere/libcuda.so.1");
    let message = other.open(0).unwrap_err().to_string();
    let expected = "/nowhere/libcuda.so.1: cannot open a second driver; ";
    assert!(message.contains(expected), "{message}");
}

/// Opens GPU 0 of the test driver, which must fail, and returns the error message.
fn error_of_gpu(driver: &Path) -> String {
    CudaDevice::builder().driver_path(driver).open(0).unwrap_err().to_string()
}

#[test]
fn an_old_driver_is_an_error_with_both_versions() {
    let driver = or_skip!(driver());
    if is_child("an_old_driver_is_an_error_with_both_versions", "CUDA_ON_CPU_DRIVER", "10020") {
        let expected = "device `cuda:0`: the driver is too old: found CUDA 10.2, expected 11.0 or \
                        later; install driver R450 or later";
        assert_eq!(error_of_gpu(driver), expected);
    }
}

#[test]
fn an_old_gpu_is_an_error_with_both_capabilities() {
    let driver = or_skip!(driver());
    if is_child("an_old_gpu_is_an_error_with_both_capabilities", "CUDA_ON_CPU_CAPABILITY", "70") {
        let expected = "device `cuda:0`: CUDA on the CPU: the compute capability is too low: found \
                        7.0, expected 7.5 or later; use another GPU or the device `cpu`";
        assert_eq!(error_of_gpu(driver), expected);
    }
}

/// Returns the value of the device property `name`.
fn property(device: &CudaDevice, name: &str) -> Option<String> {
    device.properties().into_iter().find_map(|(found, value)| (found == name).then_some(value))
}

fn memory_pools(device: &CudaDevice) -> String {
    property(device, "memory pools").unwrap()
}

/// GPUs of compute capability 7.5 have no tensor cores for bf16 and TF32.
#[test]
fn a_gpu_of_capability_7_5_runs_only_bf16_products_on_the_host() {
    let name = "a_gpu_of_capability_7_5_runs_only_bf16_products_on_the_host";
    or_skip!(driver());
    if !is_child(name, "CUDA_ON_CPU_CAPABILITY", "75") {
        assert_eq!(property(&or_skip!(gpu(0)), "run on the host"), None);
        return;
    }
    let device = or_skip!(gpu_with(0, |builder| builder.tf32(true)));
    let note = property(&device, "run on the host").unwrap();
    assert!(note.contains("gemm") && note.contains("bf16"), "{note}");
    let (device, tf32) = (or_skip!(gpu(0)), device);
    let products = ["gemm", "gemm_batched", "convolve", "convolve_backward_input"];
    for check in products.into_iter().chain(["convolve_backward_filters", "unary_exp", "copy"]) {
        Kit::new().cases(4).check(&device, check).unwrap();
    }
    // The kit's error bounds are too tight for operands that are rounded to TF32.
    Kit::new().cases(4).check(&tf32, "gemm").unwrap();
    let _policy = ledger::set_fallback_policy(Policy::Deny);
    multiply::<f32>(&device).unwrap();
    multiply::<f64>(&device).unwrap();
    multiply::<cortado::f16>(&device).unwrap();
    let message = multiply::<cortado::bf16>(&device).unwrap_err().to_string();
    assert!(message.contains("gemm"), "{message}");
}

fn multiply<T: cortado::Element>(device: &CudaDevice) -> Result<()> {
    let [a, c] = [(); 2].map(|()| Blob::<T, _>::new(device, &[4, 4]).unwrap());
    let (a, mut c) = (a.data()?, c.data_mut()?);
    device.gemm(&Gemm::new(4, 4, 4), a.view(), a.view(), c.view_mut())
}

/// The driver of CUDA 11.0 rejects PTX of versions later than 7.0, and has no memory pools.
#[test]
fn the_driver_of_cuda_11_runs_the_kernels() {
    or_skip!(driver());
    if is_child("the_driver_of_cuda_11_runs_the_kernels", "CUDA_ON_CPU_DRIVER", "11000") {
        let device = or_skip!(gpu(0));
        assert_eq!(memory_pools(&device), "no");
        check_dropped_memory(&device);
        Kit::new().check(&device, "gemm").unwrap();
    }
}

#[test]
fn a_gpu_without_memory_pools_frees_memory_after_queued_work() {
    let device = or_skip!(simulated_gpu(4));
    assert_eq!(memory_pools(&device), "no");
    assert_eq!(memory_pools(&or_skip!(gpu(0))), "yes");
    check_dropped_memory(&device);
    device.trim_pools().unwrap();
    let limited_gpu = or_skip!(gpu_with(4, |builder| builder.memory_limit(1 << 10)));
    assert!(matches!(limited_gpu.alloc(1 << 11), Err(Error::OutOfMemory { .. })));
    drop(limited_gpu.alloc(1 << 10).unwrap());
    assert_eq!(limited_gpu.alloc(1 << 10).unwrap().len(), 1 << 10);
}

/// The test driver rejects a module that is already loaded.
#[test]
fn devices_on_one_gpu_load_each_module_once() {
    or_skip!(driver());
    if is_child("devices_on_one_gpu_load_each_module_once", "CUDA_ON_CPU_LOAD_ONCE", "1") {
        let scale = |device: &CudaDevice| {
            let x = values(device, 40);
            x.scale_data(2.0).unwrap();
            assert_eq!(first_element(&x), -15.0);
        };
        let devices = [0, 0, 1].map(|ordinal| gpu(ordinal).unwrap());
        devices.iter().for_each(scale);
        // Dropping the last device on a GPU unloads the modules, and a later device loads them
        // again.
        drop(devices);
        scale(&gpu(0).unwrap());
    }
}

#[test]
fn each_device_on_a_gpu_has_its_own_memory_limit() {
    let limited_gpu = or_skip!(gpu_with(0, |builder| builder.memory_limit(1 << 20)));
    let other = or_skip!(gpu(0));
    let _large_buffer = other.alloc(4 << 20).unwrap();
    let _half_of_limit = limited_gpu.alloc(1 << 19).unwrap();
    let fork = limited_gpu.fork_queue().unwrap();
    assert!(matches!(fork.alloc(1 << 20), Err(Error::OutOfMemory { .. })));
    assert_eq!(other.alloc(1 << 20).unwrap().len(), 1 << 20);
}

#[test]
fn devices_have_separate_memory_and_queues() {
    let (a, b) = (or_skip!(simulated_gpu(0)), or_skip!(simulated_gpu(1)));
    let (x, y) = (values(&a, 40), values(&b, 40));
    x.scale_data(2.0).unwrap();
    y.scale_data(3.0).unwrap();
    b.order_after(&a).unwrap();
    assert_eq!([first_element(&x), first_element(&y)], [-15.0, -22.5]);
}

#[test]
fn another_thread_can_use_and_drop_memory() {
    let device = or_skip!(gpu(0));
    let x = values(&device, 1000);
    x.scale_data(2.0).unwrap();
    let worker = thread::spawn(move || {
        x.scale_data(0.5).unwrap();
        let first = first_element(&x);
        x.data_mut().unwrap().view_mut().device_mut().unwrap();
        first
    });
    assert_eq!(worker.join().unwrap(), -7.5);
    assert_eq!(values(&device, 3).sumsq_data().unwrap(), 7.5 * 7.5 + 6.5 * 6.5 + 5.5 * 5.5);
}

#[test]
fn dropped_memory_is_freed_after_the_work_of_other_queues() {
    check_dropped_memory(&or_skip!(gpu(0)));
}

/// Drops memory that queued work of another queue still reads, and checks the result of the work.
fn check_dropped_memory(device: &CudaDevice) {
    let queue = device.fork_queue().unwrap();
    for _ in 0..20 {
        let (x, y) = (values(device, 100_000), Blob::<f32, _>::new(device, &[100_000]).unwrap());
        x.data().unwrap().view().device().unwrap();
        {
            let (x, mut y) = (x.data().unwrap(), y.data_mut().unwrap());
            queue.unary(Unary::Neg, x.view().into(), y.view_mut()).unwrap();
        }
        drop(x);
        let other = Blob::<f32, _>::new(device, &[100_000]).unwrap();
        device.fill(9.0, other.data_mut().unwrap().view_mut()).unwrap();
        device.synchronize().unwrap();
        device.order_after(&queue).unwrap();
        assert_eq!(y.data().unwrap().host().unwrap()[..2], [7.5, 6.5]);
    }
}

#[test]
fn allocation_succeeds_again_after_out_of_memory() {
    let small_gpu = or_skip!(simulated_gpu(3));
    let first = small_gpu.alloc(600 << 10).unwrap();
    let second = small_gpu.alloc(600 << 10);
    assert!(matches!(second, Err(Error::OutOfMemory { bytes: 0x96000, .. })), "{second:?}");
    drop(first);
    drop(small_gpu.alloc(600 << 10).unwrap());
    small_gpu.trim_pools().unwrap();
}

#[test]
fn allocation_beyond_the_memory_limit_is_an_error() {
    let device = or_skip!(gpu_with(0, |builder| builder.memory_limit(1 << 20)));
    let half_of_limit = device.alloc(1 << 19).unwrap();
    assert!(matches!(device.alloc(1 << 20), Err(Error::OutOfMemory { .. })));
    drop(half_of_limit);
    assert_eq!(device.alloc(1 << 20).unwrap().len(), 1 << 20);
}

/// The input and the maxima fit in the memory limit, but the mask does not.
#[test]
fn out_of_memory_on_the_second_output_leaves_the_first_intact() {
    const N: usize = 100_000;
    let device = or_skip!(gpu_with(0, |builder| builder.memory_limit(1 << 20)));
    let x = Blob::from_vec(&device, &[N], vec![5.0f32; N]).unwrap();
    let y = Blob::from_vec(&device, &[N], vec![1.0f32; N]).unwrap();
    let mask = Blob::<i32, _>::from_vec(&device, &[N], vec![2; N]).unwrap();
    let op = Pool2d::new(1, [1, N], [1, 1], [1, 1], [0, 0], PoolRounding::Ceil).unwrap();
    let pool = || {
        let (mut y, mut mask) = (y.data_mut().unwrap(), mask.data_mut().unwrap());
        device.max_pool(&op, x.data().unwrap().view(), y.view_mut(), mask.view_mut())
    };
    let error = pool().unwrap_err();
    assert!(matches!(error.root(), Error::OutOfMemory { .. }), "{error}");
    assert!(y.to_vec().unwrap() == vec![1.0; N] && mask.to_vec().unwrap() == vec![2; N]);
}

/// On GPU 2 of the test driver, the kernel `exp_f64` fails.
#[test]
fn the_error_of_a_failed_kernel_names_its_call_site() {
    let broken_gpu = or_skip!(simulated_gpu(2));
    let y = Blob::from_vec(&broken_gpu, &[3], vec![1.0f64, 2.0, 3.0]).unwrap();
    let apply = |op| {
        let mut y = y.data_mut().unwrap();
        broken_gpu.unary(op, Src::InPlace, y.view_mut())
    };
    let line = line!() - 2;
    apply(Unary::Sqr).unwrap();
    broken_gpu.synchronize().unwrap();
    apply(Unary::Exp).unwrap();
    let error = broken_gpu.synchronize().unwrap_err();
    let message = error.to_string();
    let start = "device `cuda:2`: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)";
    assert!(message.starts_with(start), "{message}");
    let end = format!("in exp_f64 called at tests/cuda.rs:{line}:20");
    assert!(message.contains(&end), "{message}");
    let Error::Device { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.downcast_ref::<CudaFailure>().unwrap().code, 700);
    // The simulated GPU 2 stays unusable after its failure, but other GPUs still work.
    assert!(broken_gpu.alloc(4).is_err() && y.data().unwrap().host().is_err());
    assert_eq!(first_element(&values(&or_skip!(gpu(0)), 1)), -7.5);
}

/// On GPU 2 of the test driver, the kernel `exp_f64` fails. A process with a failed kernel cannot
/// use the GPU again, so the test runs in a child process.
#[test]
fn after_a_failed_kernel_every_error_names_the_kernel_and_the_remedy() {
    let name = "after_a_failed_kernel_every_error_names_the_kernel_and_the_remedy";
    or_skip!(driver());
    if !is_child(name, "CUDA_ON_CPU_FAILING", "exp_f64") {
        return;
    }
    let device = gpu(2).unwrap();
    let queue = device.fork_queue().unwrap();
    let x = Blob::from_vec(&device, &[2], vec![1.0f64, 2.0]).unwrap();
    x.data().unwrap().view().device().unwrap();
    let apply = |op| device.unary(op, Src::InPlace, x.data_mut().unwrap().view_mut());
    apply(Unary::Exp).unwrap();
    let first = device.synchronize().unwrap_err().to_string();
    let parts = ["(700)", "in exp_f64 called at", "; restart the program"];
    assert!(parts.iter().all(|part| first.contains(part)), "{first}");
    // The device remembers the names of its last launches only; later launches must not displace
    // the name of the failed kernel.
    for _ in 0..20 {
        let later = apply(Unary::Sqr).unwrap_err();
        assert_eq!(later.root().to_string(), first);
    }
    let errors = [
        device.alloc(4).unwrap_err(),
        device.synchronize().unwrap_err(),
        queue.synchronize().unwrap_err(),
        device.fork_queue().unwrap_err(),
        CudaDevice::builder().driver_path(driver().unwrap()).open(2).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.to_string() == first), "{errors:?}");
    drop((x, device, queue));
    let reopened = CudaDevice::builder().driver_path(driver().unwrap()).open(2);
    let message = reopened.unwrap_err().to_string();
    assert!(message.contains("(700)") && message.contains("; restart the program"), "{message}");
    assert_eq!(first_element(&values(&gpu(0).unwrap(), 1)), -7.5);
}

/// A released context must not stay current, because calls of other CUDA libraries would use it.
#[test]
fn dropping_the_last_device_on_a_gpu_leaves_no_released_context_current() {
    let name = "dropping_the_last_device_on_a_gpu_leaves_no_released_context_current";
    or_skip!(driver());
    if is_child(name, "CUDA_ON_CPU_DRIVER", "13000") {
        let [device, clone] = [(); 2].map(|()| gpu(1).unwrap());
        drop(device);
        assert_eq!(CurrentContext::synchronize(), Ok(()));
        drop(clone);
        assert_eq!(CurrentContext::synchronize(), Err(CudaError::InvalidContext));
    }
}

#[test]
fn allocation_waits_for_the_frees_of_other_queues() {
    let name = "allocation_waits_for_the_frees_of_other_queues";
    or_skip!(driver());
    // GPU 3 has only 1 MiB of memory, and other tests also allocate on GPU 3, so the test runs in a
    // child process.
    if is_child(name, "CUDA_ON_CPU_DRIVER", "13000") {
        let device = gpu(3).unwrap();
        let queue = device.fork_queue().unwrap();
        drop(queue.alloc(600 << 10).unwrap());
        let buffer = device.alloc(600 << 10).unwrap();
        let error = queue.alloc(600 << 10).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: 0x96000, .. }), "{error}");
        drop(buffer);
    }
}

/// The environment variable `CUDA_ON_CPU_DOWNLOADS` limits the number of copies to the host.
#[test]
fn a_wait_copies_error_words_only_after_a_kernel_that_can_report_errors() {
    let name = "a_wait_copies_error_words_only_after_a_kernel_that_can_report_errors";
    or_skip!(driver());
    if !is_child(name, "CUDA_ON_CPU_DOWNLOADS", "2") {
        return;
    }
    let device = gpu(0).unwrap();
    let (table, y) = (values(&device, 6), values(&device, 2));
    let gather = |index: u32| {
        let mut indices = SyncedMemory::new(&device, 4);
        ViewMut::<u32, _>::new(&mut indices, 1).unwrap().host_mut().unwrap()[0] = index;
        let (table, mut y) = (table.data().unwrap(), y.data_mut().unwrap());
        let indices = View::new(&indices, 1).unwrap();
        let op = RowIndexing { table: 3, width: 2, count: 1 };
        device.gather(&op, table.view(), indices, y.view_mut()).unwrap();
    };
    let fill = || device.fill(1.0, y.data_mut().unwrap().view_mut()).unwrap();
    fill();
    device.synchronize().unwrap();
    gather(2);
    device.synchronize().unwrap();
    fill();
    device.synchronize().unwrap();
    gather(3);
    let message = device.synchronize().unwrap_err().to_string();
    assert!(message.contains("the value at position 0 is outside the table"), "{message}");
    fill();
    device.synchronize().unwrap();
    gather(2);
    let message = device.synchronize().unwrap_err().to_string();
    assert!(message.contains("cuMemcpyDtoHAsync"), "{message}");
}

#[test]
fn kernels_run_without_fallbacks_and_transfers() {
    fn run<T: cortado::Element>(device: &CudaDevice) -> Result<()> {
        let blobs: [Blob<T, _>; 3] = [(); 3].map(|()| Blob::new(device, &[6]).unwrap());
        let [x, y, z] = &blobs;
        let channels = Blob::<T, _>::new(device, &[3])?;
        let axis = Axis { outer: 1, extent: 3, inner: 2 };
        for blob in [x, y, z, &channels] {
            device.fill(T::from_f64(2.0), blob.data_mut()?.view_mut())?;
        }
        let c = T::acc(0.5);
        device.copy(x.data()?.view(), y.data_mut()?.view_mut())?;
        device.scal(c, y.data_mut()?.view_mut())?;
        device.axpy(c, x.data()?.view(), y.data_mut()?.view_mut())?;
        device.axpby(c, x.data()?.view(), c, y.data_mut()?.view_mut())?;
        device.unary(Unary::Tanh, x.data()?.view().into(), y.data_mut()?.view_mut())?;
        let (x, y, mut z) = (x.data()?, y.data()?, z.data_mut()?);
        let channels = channels.data()?;
        device.binary(Binary::Mul, x.view().into(), y.view(), z.view_mut())?;
        device.broadcast(Binary::Add, &axis, x.view().into(), channels.view(), z.view_mut())?;
        device.affine(&axis, Src::InPlace, channels.view(), channels.view(), z.view_mut())?;
        device.convert(x.view(), z.view_mut())?;
        let integers = SyncedMemory::new(device, 24);
        device.convert_integers(cortado::View::<u32, _>::new(&integers, 6)?, z.view_mut())
    }
    let (device, _fallbacks) = or_skip!(gpu_without_fallbacks(0));
    let _transfers = ledger::set_transfer_policy(Policy::Deny);
    run::<cortado::f16>(&device).unwrap();
    run::<cortado::bf16>(&device).unwrap();
    run::<f32>(&device).unwrap();
    run::<f64>(&device).unwrap();
}
