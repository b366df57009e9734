//! Pool of device buffers, which reuses freed memory in queue order.

use super::memory_trait::Memory;
use crate::{
    error::{Error, Result},
    sync::Mutex,
};
use std::{
    collections::BTreeMap,
    fmt, mem,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A pool that caches freed device buffers by size class, for a [`Memory`] whose `alloc` is slow.
///
/// A pool belongs to one queue of the device. Dropping a [`PooledBuffer`] puts the memory into the
/// cache, although queued work may still use the memory. If the next owner of the memory uses the
/// same queue, the owner's work runs after the queued work. If the next owner uses another queue,
/// the pool first orders that queue after the queue of the previous owner.
///
/// The pool and its [forks](Self::fork) share the cache, the limit and the statistics. The limit of
/// a pool bounds the bytes in use and in the cache together. If an allocation would exceed the
/// limit, or the device is out of memory, the pool first frees cached buffers.
///
/// A device that uses a pool consists of two types: a type without a pool, the driver, and the
/// device itself, whose buffers are `PooledBuffer`s:
///
/// - **Kernels.** Each kernel of the device must call [`used_by`](PooledBuffer::used_by) for each
///   of its operands, like `upload` and `download` in the example.
/// - **Order.** The pool calls the driver's `order_after` by itself, to order a queue after the
///   queues that used the reused memory. The driver's `order_after` must only order the queues. If
///   the driver's `order_after` passed on a failure of the other queue, unrelated queues would
///   report the failure. The device's own `order_after` also passes on the failure, as [`Memory`]
///   requires.
/// - **Injected failures.** Make an injected `Alloc` failure in the device's own `alloc`, before it
///   calls the pool. The driver's `alloc` is the wrong place for injected failures: an allocation
///   from the cache does not call the driver, and after a failure the pool frees its cache and
///   retries.
///
/// ```
/// use cortado::{Memory, Result, SimulatedDevice, memory::{BufferPool, PooledBuffer}};
///
/// #[derive(Clone, Debug)]
/// struct Pooled {
///     driver: SimulatedDevice, // stands for a type whose `alloc` is slow
///     pool: BufferPool<SimulatedDevice>,
/// }
///
/// impl Memory for Pooled {
///     type Buffer = PooledBuffer<SimulatedDevice>;
///
///     fn name(&self) -> String { self.driver.name() }
///     fn alloc(&self, bytes: usize) -> Result<Self::Buffer> { self.pool.alloc(bytes) }
///     fn upload(&self, src: &[u8], dst: &mut Self::Buffer, at: usize) -> Result<()> {
///         dst.used_by(&self.pool); // this handle may be a fork of the buffer's owner
///         self.driver.upload(src, dst, at)
///     }
///     fn download(&self, src: &Self::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
///         src.used_by(&self.pool);
///         self.driver.download(src, at, dst)
///     }
///     fn synchronize(&self) -> Result<()> { self.driver.synchronize() }
///     fn fork_queue(&self) -> Result<Self> {
///         let driver = self.driver.fork_queue()?;
///         Ok(Self { pool: self.pool.fork(&driver), driver })
///     }
///     fn order_after(&self, other: &Self) -> Result<()> { self.driver.order_after(&other.driver) }
/// }
///
/// let driver = SimulatedDevice::new();
/// let device = Pooled { pool: BufferPool::new(&driver, 1 << 30), driver };
/// drop(device.alloc(1000)?);
/// let (buffer, mut bytes) = (device.alloc(900)?, [1; 900]);
/// device.download(&buffer, 0, &mut bytes)?;
/// assert_eq!(bytes, [0; 900]); // reused memory is zeroed
/// assert_eq!((device.pool.statistics().hits, device.pool.statistics().misses), (1, 1));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct BufferPool<M: Memory> {
    queue: PoolQueue<M>,
    shared: Arc<Shared<M>>,
}

/// A device buffer that returns to its [`BufferPool`] when it is dropped. The allocation on the
/// device may be larger than requested.
///
/// ```
/// use cortado::{Memory, SimulatedDevice, memory::BufferPool};
///
/// let device = SimulatedDevice::new();
/// let pool = BufferPool::new(&device, 1 << 20);
/// let mut buffer = pool.alloc(3)?;
/// device.upload(&[1, 2, 3], &mut buffer, 0)?; // derefs to the device's buffer
/// assert_eq!((buffer.bytes(), pool.statistics().in_use), (3, 256));
/// drop(buffer);
/// assert_eq!((pool.statistics().in_use, pool.statistics().cached), (0, 256));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct PooledBuffer<M: Memory> {
    /// `None` only if the buffer is about to be dropped.
    buffer: Option<M::Buffer>,
    bytes: usize,
    class: usize,
    owner: PoolQueue<M>,
    /// Queues other than that of `owner` that have used the buffer.
    users: Mutex<Vec<PoolQueue<M>>>,
    shared: Arc<Shared<M>>,
}

/// Statistics of a [`BufferPool`] and its forks. The statistics count the bytes of each buffer's
/// size class, not the requested bytes: the pool rounds a requested size up by less than a quarter,
/// or to 256 bytes.
///
/// ```
/// use cortado::{SimulatedDevice, memory::{BufferPool, PoolStatistics}};
///
/// let pool = BufferPool::new(&SimulatedDevice::new(), 1 << 20);
/// let _buffer = pool.alloc(1000)?;
/// let expected = PoolStatistics { in_use: 1024, cached: 0, hits: 0, misses: 1 };
/// assert_eq!(pool.statistics(), expected);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Number of bytes of the buffers that are not dropped yet.
    pub in_use: usize,
    /// Number of bytes of the cached buffers.
    pub cached: usize,
    /// Number of allocations that reused a cached buffer.
    pub hits: u64,
    /// Number of allocations that did not reuse a cached buffer.
    pub misses: u64,
}

/// A queue of the device, with an identity that tells whether two handles refer to the same queue.
struct PoolQueue<M> {
    memory: M,
    id: Arc<()>,
}

/// A cached buffer, and the queue of its last owner. Another queue must be ordered after this queue
/// before work on the other queue uses the buffer.
struct FreedBuffer<M: Memory> {
    buffer: M::Buffer,
    queue: PoolQueue<M>,
}

type Zero<M> = dyn Fn(&M, &mut <M as Memory>::Buffer, usize) -> Result<()> + Send + Sync;

struct Shared<M: Memory> {
    limit: usize,
    zero: Box<Zero<M>>,
    state: Mutex<State<M>>,
}

struct State<M: Memory> {
    /// Cached buffers by size class, least recently freed first.
    cached_buffers: BTreeMap<usize, Vec<FreedBuffer<M>>>,
    statistics: PoolStatistics,
}

/// Smallest size class in bytes.
const MIN_CLASS: usize = 256;

/// Number of size classes from one power of two to the next.
const CLASSES_PER_OCTAVE: usize = 4;

/// Largest number of bytes that one upload zeroes.
const ZEROS: usize = 1 << 16;

impl<M: Memory> BufferPool<M> {
    /// Creates a pool for the queue of `memory`. Buffers in use and cached buffers together take at
    /// most `limit` bytes. The pool zeroes reused memory by uploading zeros; see
    /// [`with_zero`](Self::with_zero) for a device that can do so without a transfer.
    pub fn new(memory: &M, limit: usize) -> Self {
        Self::with_zero(memory, limit, upload_zeros)
    }

    /// Like [`new`](Self::new), but zeroes reused memory with `zero(memory, buffer, bytes)`, which
    /// zeroes the first `bytes` bytes of `buffer` on the queue of `memory`.
    pub fn with_zero(
        memory: &M,
        limit: usize,
        zero: impl Fn(&M, &mut M::Buffer, usize) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let state =
            State { cached_buffers: BTreeMap::new(), statistics: PoolStatistics::default() };
        let shared = Shared { limit, zero: Box::new(zero), state: Mutex::new(state) };
        Self { queue: PoolQueue::new(memory), shared: Arc::new(shared) }
    }

    /// Returns a pool for the queue of `memory`, which must be a handle to the device of this pool.
    /// The returned pool and this pool share the cache, the limit and the statistics.
    #[must_use]
    pub fn fork(&self, memory: &M) -> Self {
        Self { queue: PoolQueue::new(memory), shared: Arc::clone(&self.shared) }
    }

    /// Allocates a buffer of `bytes` zeroed bytes, as [`Memory::alloc`] requires.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`] if the bytes in use would exceed the limit, or the device is
    /// out of memory even without cached buffers. Propagates errors from the device.
    pub fn alloc(&self, bytes: usize) -> Result<PooledBuffer<M>> {
        let (mut buffer, is_reused) = self.take(bytes)?;
        if is_reused {
            (self.shared.zero)(&self.queue.memory, &mut buffer, bytes)?;
        }
        Ok(buffer)
    }

    /// Like [`alloc`](Self::alloc), but the bytes are unspecified, for a workspace that the next
    /// kernel overwrites.
    ///
    /// # Errors
    /// Returns the same errors as [`alloc`](Self::alloc).
    pub fn alloc_workspace(&self, bytes: usize) -> Result<PooledBuffer<M>> {
        self.take(bytes).map(|(buffer, _)| buffer)
    }

    /// Returns the statistics of the pool and its forks.
    pub fn statistics(&self) -> PoolStatistics {
        self.shared.state.lock().statistics
    }

    /// Frees all cached buffers.
    pub fn trim(&self) {
        // Drop the buffers only after the lock is released, because freeing device memory may take
        // long.
        let cached_buffers = self.shared.state.lock().take_cached();
        drop(cached_buffers);
    }

    /// Returns a buffer of at least `bytes` bytes, and whether the buffer comes from the cache.
    fn take(&self, bytes: usize) -> Result<(PooledBuffer<M>, bool)> {
        let out_of_memory = || Error::OutOfMemory { device: self.queue.memory.name(), bytes };
        let Some(class) = size_class(bytes) else {
            self.shared.state.lock().statistics.misses += 1;
            return Err(out_of_memory());
        };
        let pooled_buffer = |buffer| PooledBuffer {
            buffer: Some(buffer),
            bytes,
            class,
            owner: self.queue.clone(),
            users: Mutex::default(),
            shared: Arc::clone(&self.shared),
        };
        let freed_buffer = self.shared.state.lock().reuse(class, &self.queue);
        if let Some(FreedBuffer { buffer, queue }) = freed_buffer {
            let mut buffer = pooled_buffer(buffer);
            if !queue.is(&self.queue)
                && let Err(error) = self.queue.memory.order_after(&queue.memory)
            {
                // If the queues are not ordered, the cache would record the wrong queue for the
                // buffer, so drop the buffer instead of returning it to the cache.
                buffer.buffer = None;
                return Err(error);
            }
            return Ok((buffer, true));
        }
        let evicted_buffers = self.shared.state.lock().reserve(class, self.shared.limit);
        drop(evicted_buffers.ok_or_else(out_of_memory)?);
        let buffer = self.alloc_from_device(class).map_err(|error| {
            self.shared.state.lock().statistics.in_use -= class;
            match error {
                Error::OutOfMemory { .. } => out_of_memory(),
                error => error,
            }
        })?;
        Ok((pooled_buffer(buffer), false))
    }

    /// Allocates device memory. If the device is out of memory, frees all cached buffers, waits for
    /// queued work that uses them, and retries.
    fn alloc_from_device(&self, class: usize) -> Result<M::Buffer> {
        match self.queue.memory.alloc(class) {
            Err(Error::OutOfMemory { .. }) => {
                self.trim();
                self.queue.memory.synchronize()?;
                self.queue.memory.alloc(class)
            }
            result => result,
        }
    }
}

impl<M: Memory> PooledBuffer<M> {
    /// Returns the requested size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that work on the queue of `pool` uses this buffer. Queued work of the buffer's next
    /// owner runs after all work that `used_by` has recorded. A caller need not call `used_by` for
    /// the pool that allocated the buffer.
    pub fn used_by(&self, pool: &BufferPool<M>) {
        if pool.queue.is(&self.owner) {
            return;
        }
        let mut users = self.users.lock();
        if !users.iter().any(|user| user.is(&pool.queue)) {
            users.push(pool.queue.clone());
        }
    }
}

impl<M: Memory> Deref for PooledBuffer<M> {
    type Target = M::Buffer;

    fn deref(&self) -> &M::Buffer {
        self.buffer.as_ref().expect("the buffer is present until it is dropped")
    }
}

impl<M: Memory> DerefMut for PooledBuffer<M> {
    fn deref_mut(&mut self) -> &mut M::Buffer {
        self.buffer.as_mut().expect("the buffer is present until it is dropped")
    }
}

impl<M: Memory> Drop for PooledBuffer<M> {
    fn drop(&mut self) {
        let users = mem::take(self.users.get_mut());
        // If the queues cannot be ordered, the pool drops the buffer instead of reusing it. The
        // device frees the memory of a dropped buffer after the queued work that uses the buffer.
        let order_result =
            users.iter().try_for_each(|user| self.owner.memory.order_after(&user.memory));
        let buffer = self.buffer.take().filter(|_| order_result.is_ok());
        let mut state = self.shared.state.lock();
        state.statistics.in_use -= self.class;
        if let Some(buffer) = buffer {
            state.statistics.cached += self.class;
            let buffer = FreedBuffer { buffer, queue: self.owner.clone() };
            state.cached_buffers.entry(self.class).or_default().push(buffer);
        }
    }
}

impl<M: Memory> State<M> {
    /// Removes and returns a cached buffer of a size class, preferably one that `queue` has freed.
    fn reuse(&mut self, class: usize, queue: &PoolQueue<M>) -> Option<FreedBuffer<M>> {
        let buffers = self.cached_buffers.get_mut(&class).filter(|buffers| !buffers.is_empty())?;
        let own_index = buffers.iter().rposition(|buffer| buffer.queue.is(queue));
        let buffer = buffers.remove(own_index.unwrap_or(0));
        self.statistics.hits += 1;
        self.statistics.cached -= class;
        self.statistics.in_use += class;
        Some(buffer)
    }

    /// Counts a new buffer of a size class as in use. Removes and returns the cached buffers that
    /// must be freed so that the pool does not exceed `limit`. Returns `None` if the buffers in use
    /// would exceed `limit`.
    fn reserve(&mut self, class: usize, limit: usize) -> Option<Vec<FreedBuffer<M>>> {
        self.statistics.misses += 1;
        let in_use = self.statistics.in_use.checked_add(class).filter(|sum| *sum <= limit)?;
        self.statistics.in_use = in_use;
        let mut evicted_buffers = Vec::new();
        while self.statistics.cached > limit - in_use {
            let mut largest_class = self.cached_buffers.last_entry()?;
            let class = *largest_class.key();
            match largest_class.get_mut().pop() {
                Some(buffer) => {
                    self.statistics.cached -= class;
                    evicted_buffers.push(buffer);
                }
                None => drop(largest_class.remove()),
            }
        }
        Some(evicted_buffers)
    }

    fn take_cached(&mut self) -> BTreeMap<usize, Vec<FreedBuffer<M>>> {
        self.statistics.cached = 0;
        mem::take(&mut self.cached_buffers)
    }
}

impl<M: Memory> PoolQueue<M> {
    fn new(memory: &M) -> Self {
        Self { memory: memory.clone(), id: Arc::new(()) }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.id, &other.id)
    }
}

impl<M: Clone> Clone for PoolQueue<M> {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), id: Arc::clone(&self.id) }
    }
}

impl<M: Memory> Clone for BufferPool<M> {
    /// Returns a pool for the queue of `self`, which shares the cache, the limit and the statistics
    /// with `self`.
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<M: Memory> fmt::Debug for BufferPool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, statistics) = (self.shared.limit, self.statistics());
        write!(f, "BufferPool(limit {limit} bytes, {statistics:?})")
    }
}

impl<M: Memory> fmt::Debug for PooledBuffer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PooledBuffer({} of {} bytes)", self.bytes, self.class)
    }
}

/// Returns the size of the smallest class with at least `bytes` bytes, or `None` if that size
/// overflows.
pub(crate) fn size_class(bytes: usize) -> Option<usize> {
    if bytes <= MIN_CLASS {
        return Some(MIN_CLASS);
    }
    // A size from 2ⁿ + 1 to 2ⁿ⁺¹ is rounded up to a multiple of 2ⁿ / `CLASSES_PER_OCTAVE`.
    let octave = 1 << (bytes - 1).ilog2();
    bytes.checked_next_multiple_of(octave / CLASSES_PER_OCTAVE)
}

fn upload_zeros<M: Memory>(memory: &M, buffer: &mut M::Buffer, bytes: usize) -> Result<()> {
    static BLOCK: [u8; ZEROS] = [0; ZEROS];
    (0..bytes)
        .step_by(ZEROS)
        .try_for_each(|start| memory.upload(&BLOCK[..ZEROS.min(bytes - start)], buffer, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_class_wastes_less_than_a_quarter() {
        for bytes in (257..5000).chain([1 << 30, (1 << 30) + 1, 3 << (usize::BITS - 24)]) {
            let class = size_class(bytes).unwrap();
            assert!(class >= bytes && 4 * (class - bytes) < bytes, "{bytes}: {class}");
            assert_eq!(size_class(class), Some(class));
        }
        assert_eq!([0, 1, 256].map(size_class), [Some(256); 3]);
        assert_eq!(size_class(usize::MAX), None);
    }
}
