//! The memory usage that a device reports.

/// Memory usage of a device, as [`Memory::memory_usage`](crate::Memory::memory_usage) reports it.
///
/// ```
/// use cortado::{Memory, SimulatedDevice, memory::MemoryUsage};
///
/// /// Returns the share of a device's memory that is free, if the device reports its usage.
/// fn free_share<D: Memory>(device: &D) -> cortado::Result<Option<f64>> {
///     let share = |usage: MemoryUsage| usage.free as f64 / usage.total as f64;
///     Ok(device.memory_usage()?.map(share))
/// }
///
/// assert_eq!(free_share(&SimulatedDevice::new())?, None);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Size of the device's memory in bytes.
    pub total: usize,
    /// Number of bytes that no process has allocated.
    pub free: usize,
    /// Usage of the memory pool from which the device allocates; `None` if the device has no pool
    /// or does not report the pool's usage.
    pub pool: Option<PoolUsage>,
}

/// Usage of a device's memory pool, in bytes. A pool reserves memory of the device, and allocates
/// from the reserved memory. All queues and handles of a device in one process share the pool.
///
/// ```
/// use cortado::memory::PoolUsage;
///
/// /// Returns the number of bytes that the pool caches for later allocations.
/// fn cached(usage: &PoolUsage) -> usize {
///     usage.reserved - usage.used
/// }
///
/// assert_eq!(cached(&PoolUsage { used: 1, peak_used: 3, reserved: 4, peak_reserved: 4 }), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    /// Number of bytes that are allocated. Memory whose free is still queued counts as allocated.
    pub used: usize,
    /// Largest value of `used` since the pool was created.
    pub peak_used: usize,
    /// Number of bytes that the pool has reserved.
    pub reserved: usize,
    /// Largest value of `reserved` since the pool was created.
    pub peak_reserved: usize,
}
