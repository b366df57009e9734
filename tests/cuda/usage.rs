//! Tests of the memory usage that the CUDA backend reports.

use super::{gpu, is_child, simulated_gpu};
use cortado::{AnyDevice, Memory, memory::PoolUsage};

const MIB: usize = 1 << 20;

/// Other tests of the same process also allocate memory, so the test runs in a child process.
#[test]
fn memory_usage_counts_the_memory_in_use_and_the_cached_memory() {
    let name = "usage::memory_usage_counts_the_memory_in_use_and_the_cached_memory";
    let gpu = or_skip!(simulated_gpu(0));
    if !is_child(name, "CUDA_ON_CPU_DRIVER", "13000") {
        return;
    }
    let device = AnyDevice::new(&gpu);
    let usage = || device.memory_usage().unwrap().unwrap();
    let pool = || usage().pool.unwrap();
    let expected = |used, peak_used, reserved, peak_reserved| PoolUsage {
        used: used * MIB,
        peak_used: peak_used * MIB,
        reserved: reserved * MIB,
        peak_reserved: peak_reserved * MIB,
    };
    assert_eq!(pool(), expected(0, 0, 0, 0));
    let buffers = [3, 4].map(|mib| device.alloc(mib * MIB).unwrap());
    assert_eq!(pool(), expected(7, 7, 7, 7));
    assert_eq!((usage().total, usage().free), (2048 * MIB, 2041 * MIB));
    drop(buffers);
    device.synchronize().unwrap();
    assert_eq!(pool(), expected(0, 7, 7, 7));
    gpu.trim_pools().unwrap();
    assert_eq!(pool(), expected(0, 7, 0, 7));
    assert_eq!(usage().free, 2048 * MIB);
}

#[test]
fn without_a_pool_the_usage_is_that_of_the_gpu() {
    let device = or_skip!(simulated_gpu(4));
    let before = device.memory_usage().unwrap().unwrap();
    let _buffer = device.alloc(5 * MIB).unwrap();
    let usage = device.memory_usage().unwrap().unwrap();
    assert_eq!((usage.pool, usage.total), (None, 2048 * MIB));
    assert!(before.free - usage.free >= 5 * MIB, "{before:?}, {usage:?}");
}

/// Drivers of CUDA 11.2 have memory pools, but no attributes for the usage of a pool.
#[test]
fn a_driver_that_does_not_report_the_usage_of_pools_is_not_an_error() {
    let name = "usage::a_driver_that_does_not_report_the_usage_of_pools_is_not_an_error";
    or_skip!(super::driver());
    if is_child(name, "CUDA_ON_CPU_DRIVER", "11020") {
        let device = gpu(0).unwrap();
        assert!(device.properties().contains(&("memory pools", "yes".into())));
        assert_eq!(device.memory_usage().unwrap().unwrap().pool, None);
    }
}
