//! Tests of the pool of device buffers, on the simulated device, which runs queued work only when a
//! caller waits.

use cortado::{
    Error, Memory, Result, SimulatedDevice,
    device::simulated::{Buffer, Fault, POISON},
    memory::{BufferPool, PoolStatistics, PooledBuffer},
};

/// Device that allocates from a pool.
#[derive(Clone, Debug)]
struct Pooled {
    inner: SimulatedDevice,
    pool: BufferPool<SimulatedDevice>,
}

impl Pooled {
    fn new(limit: usize) -> Self {
        let inner = SimulatedDevice::new();
        Self { pool: BufferPool::new(&inner, limit), inner }
    }

    fn read(&self, buffer: &PooledBuffer<SimulatedDevice>) -> Vec<u8> {
        let mut bytes = vec![0xee; buffer.bytes()];
        self.download(buffer, 0, &mut bytes).unwrap();
        bytes
    }
}

impl Memory for Pooled {
    type Buffer = PooledBuffer<SimulatedDevice>;

    fn name(&self) -> String {
        "pooled".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer> {
        self.pool.alloc(bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut Self::Buffer, at: usize) -> Result<()> {
        dst.used_by(&self.pool);
        self.inner.upload(src, dst, at)
    }
    fn download(&self, src: &Self::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        src.used_by(&self.pool);
        self.inner.download(src, at, dst)
    }
    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }
    fn fork_queue(&self) -> Result<Self> {
        let inner = self.inner.fork_queue()?;
        Ok(Self { pool: self.pool.fork(&inner), inner })
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        self.inner.order_after(&other.inner)
    }
}

cortado::families!(Pooled);

#[cfg(feature = "conformance")]
#[test]
fn a_device_with_a_pool_passes_the_checks_of_memory() {
    use cortado::conformance::{Kit, NAMES};
    let device = Pooled::new(1 << 40);
    let memory = NAMES.iter().take_while(|name| **name != "copy");
    for name in memory.chain(["copy", "gemm", "max_pool", "top_k"].iter()) {
        Kit::new().cases(2).check(&device, name).unwrap();
    }
    let PoolStatistics { in_use, hits, .. } = device.pool.statistics();
    assert!(in_use == 0 && hits > 0, "{:?}", device.pool);
}

#[test]
fn freed_memory_is_reused_in_queue_order_without_a_wait() {
    let device = Pooled::new(1 << 20);
    let mut first = device.alloc(1000).unwrap();
    device.upload(&[1; 1000], &mut first, 0).unwrap();
    drop(first);
    let second = device.alloc(1024).unwrap();
    assert_eq!((device.inner.pending(), device.inner.counters().allocations), (2, 1));
    assert_eq!(device.read(&second), [0; 1024]);
    let expected = PoolStatistics { in_use: 1024, cached: 0, hits: 1, misses: 1 };
    assert_eq!(device.pool.statistics(), expected);
}

#[test]
fn memory_that_another_queue_uses_is_reused_only_after_that_queue() {
    for is_recorded in [true, false] {
        let device = Pooled::new(1 << 20);
        let fork = device.fork_queue().unwrap();
        let mut shared_buffer = device.alloc(300).unwrap();
        match is_recorded {
            true => fork.upload(&[7; 300], &mut shared_buffer, 0).unwrap(),
            false => fork.inner.upload(&[7; 300], &mut shared_buffer, 0).unwrap(),
        }
        drop(shared_buffer);
        let mut next_buffer = device.alloc(300).unwrap();
        device.upload(&[1; 100], &mut next_buffer, 0).unwrap();
        let bytes = device.read(&next_buffer);
        fork.synchronize().unwrap();
        let expected = [[1; 100], [0; 100], [0; 100]].concat();
        assert_eq!(bytes, expected);
        // Without `used_by`, the late upload of the fork would overwrite the new buffer.
        assert_eq!(device.read(&next_buffer) == expected, is_recorded);
    }
}

#[test]
fn a_queue_that_takes_memory_of_another_queue_is_ordered_after_it() {
    let device = Pooled::new(1 << 20);
    let fork = device.fork_queue().unwrap();
    let mut first = device.alloc(256).unwrap();
    device.upload(&[5; 256], &mut first, 0).unwrap();
    drop(first);
    let second = fork.alloc(256).unwrap();
    assert_eq!(fork.read(&second), [0; 256]);
    device.synchronize().unwrap();
    assert_eq!(fork.read(&second), [0; 256]);
    assert_eq!(device.pool.statistics().hits, 1);
}

#[test]
fn a_workspace_is_not_zeroed() {
    let device = Pooled::new(1 << 20);
    drop(device.alloc(256).unwrap());
    let workspace = device.pool.alloc_workspace(256).unwrap();
    assert_eq!((device.inner.pending(), device.pool.statistics().hits), (0, 1));
    drop(workspace);
    let poisoning_pool = BufferPool::with_zero(&device.inner, 1 << 20, |device, buffer, bytes| {
        device.upload(&POISON.repeat(bytes / 2), buffer, 0)
    });
    drop(poisoning_pool.alloc(4).unwrap());
    let (buffer, mut bytes) = (poisoning_pool.alloc(4).unwrap(), [0; 4]);
    device.inner.download(&buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes[..], POISON.repeat(2));
}

#[test]
fn the_limit_bounds_used_and_cached_memory() {
    let device = Pooled::new(4096);
    let bytes_on_device = || device.inner.counters().bytes;
    drop([1000, 1000, 2000].map(|bytes| device.alloc(bytes).unwrap()));
    assert_eq!((device.pool.statistics().cached, bytes_on_device()), (4096, 4096));
    // The pool frees the largest cached buffer, and keeps the other two.
    let large_buffer = device.alloc(1500).unwrap();
    assert_eq!((device.pool.statistics().cached, bytes_on_device()), (2048, 3584));
    let error = device.alloc(3000).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { bytes: 3000, .. }), "{error}");
    assert_eq!(device.pool.statistics().in_use, 1536);
    assert!(matches!(device.alloc(usize::MAX), Err(Error::OutOfMemory { bytes: usize::MAX, .. })));
    drop(large_buffer);
    device.pool.trim();
    assert_eq!(device.pool.statistics().cached, 0);
    assert_eq!((device.pool.statistics().in_use, bytes_on_device()), (0, 0));
}

#[test]
fn cached_memory_is_freed_if_the_device_is_out_of_memory() {
    let device = Pooled::new(1 << 20);
    let mut used_buffers: Vec<PooledBuffer<SimulatedDevice>> = Vec::new();
    drop(device.alloc(1 << 12).unwrap());
    device.inner.inject_fault(Fault::Alloc, 1);
    used_buffers.push(device.alloc(1 << 13).unwrap());
    assert_eq!(device.pool.statistics().cached, 0);
    device.inner.inject_fault(Fault::Alloc, 1);
    device.inner.inject_fault(Fault::Alloc, 2);
    let error = device.alloc(1000).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { bytes: 1000, .. }), "{error}");
    assert_eq!(device.pool.statistics().in_use, 1 << 13);
    // A buffer whose zeroing fails returns to the pool.
    drop(device.alloc(1 << 12).unwrap());
    device.inner.inject_fault(Fault::Copy, 1);
    assert!(device.alloc(1 << 12).is_err());
    assert_eq!(device.read(&device.alloc(1 << 12).unwrap()), vec![0; 1 << 12]);
    let _: &Buffer = &used_buffers[0];
}
