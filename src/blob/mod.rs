//! Blobs: arrays of values, each with a gradient of the same shape.

mod storage;
mod create; // creation of blobs, and copies from and to slices
mod debug;
mod arithmetic; // Caffe's methods: copies, sums, scaling, update
mod matmul;
mod elementwise;
mod conv_pool; // convolution and pooling
mod reductions;
#[cfg(feature = "ndarray")]
mod ndarray;
mod proto;
#[cfg(feature = "tensor-io")]
mod tensor;

pub use conv_pool::{Conv2d, PoolWindow};
pub use matmul::{Matrix, matmul, matmul_add, matmul_into};
pub use storage::{ReadGuard, SrcGuard, WriteGuard};

use crate::{
    device::{AnyDevice, Device},
    element::Storable,
    error::{Error, Result, check_len},
    memory::{Head, HostStorage},
    shape::Shape,
};
use std::{marker::PhantomData, mem::size_of};
use storage::Storage;

/// Caffe's `Blob`: values and their gradient, of the same shape, on one device.
///
/// The first access to a blob allocates the memory; elements that were never written are 0.
///
/// Several blobs, called aliases, can share one storage ([`share_data`](Self::share_data)). All
/// access to the storage goes through guards like the guards of an `RwLock`, so conflicting
/// accesses are detected at run time. A conflicting access returns [`Error::Borrowed`] at once
/// instead of waiting. Each alias has a separate shape, which changes only through a `&mut`
/// reference to that alias.
///
/// ```
/// use cortado::prelude::*;
///
/// let w = Blob::from_slice(&CpuDevice::new(), &[2], &[1.0_f32, 2.0])?;
/// w.diff_mut()?.host_mut()?.copy_from_slice(&[0.25, 0.5]);
/// w.update()?; // data ← data − diff
/// assert_eq!(w.data()?.host()?, [0.75, 1.5]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Blob<T: Storable, D: Device = AnyDevice> {
    device: D,
    shape: Shape,
    data: Storage<D>,
    diff: Storage<D>,
    elements: PhantomData<T>,
}

impl<T: Storable, D: Device> Blob<T, D> {
    /// Creates a blob of zeros. The first access allocates the blob's memory.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`], like [`Shape::new`].
    pub fn new(device: &D, shape: &[usize]) -> Result<Self> {
        let shape = Shape::new(shape)?;
        let bytes = Self::bytes(&shape)?;
        Ok(Self {
            device: device.clone(),
            shape,
            data: Storage::new("data", device, bytes),
            diff: Storage::new("diff", device, bytes),
            elements: PhantomData,
        })
    }

    /// Creates a blob that holds `data`, without a copy if the device can adopt `data`.
    ///
    /// # Errors
    /// [`Error::Length`] unless the length of `data` is the count of `shape`;
    /// [`Error::ShapeOverflow`].
    #[doc(alias = "set_cpu_data")]
    #[track_caller]
    pub fn from_vec(device: &D, shape: &[usize], data: Vec<T>) -> Result<Self>
    where
        Vec<T>: HostStorage + 'static,
    {
        let blob = Self::new(device, shape)?;
        check_len("from_vec", "data", blob.count(), data.len())?;
        blob.data.adopt(data)?;
        Ok(blob)
    }

    fn bytes(shape: &Shape) -> Result<usize> {
        let overflow_error = || Error::ShapeOverflow {
            shape: shape.to_vec(),
            reason: "the number of bytes overflows",
        };
        shape.count().checked_mul(size_of::<T>()).ok_or_else(overflow_error)
    }

    /// Returns the device of this blob.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the shape, which has the methods `count`, `canonical_axis` and `offset` of Caffe's
    /// blobs.
    #[doc(alias = "shape_string")]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.shape.count()
    }

    /// Returns the number of axes.
    pub fn num_axes(&self) -> usize {
        self.shape.len()
    }

    /// Returns the extent of the first axis, or 1 if the blob has no such axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the blob has more than four axes.
    pub fn num(&self) -> Result<usize> {
        self.shape.legacy(0)
    }

    /// Returns the extent of the second axis, or 1 if the blob has no such axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the blob has more than four axes.
    pub fn channels(&self) -> Result<usize> {
        self.shape.legacy(1)
    }

    /// Returns the extent of the third axis, or 1 if the blob has no such axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the blob has more than four axes.
    pub fn height(&self) -> Result<usize> {
        self.shape.legacy(2)
    }

    /// Returns the extent of the fourth axis, or 1 if the blob has no such axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the blob has more than four axes.
    pub fn width(&self) -> Result<usize> {
        self.shape.legacy(3)
    }

    /// Sets the name under which traces and diagnoses show the memory of this blob: `name` for the
    /// data, and `name (diff)` for the diff. Blobs that share storage share the name.
    ///
    /// ```
    /// use cortado::{ledger, prelude::*};
    ///
    /// let x = Blob::from_slice(&SimulatedDevice::new(), &[2], &[1.0f32, 2.0])?;
    /// x.set_name("x")?;
    /// let ((), diagnosis) = ledger::diagnose(|| x.scale_data(2.0))?;
    /// assert_eq!(diagnosis.transfers()[0].memory.as_deref(), Some("x"));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing.
    pub fn set_name(&self, name: &str) -> Result<()> {
        self.data.set_name(name.into())?;
        self.diff.set_name(format!("{name} (diff)").into())
    }

    /// Like [`set_name`](Self::set_name), but keeps the names that the data or the diff already has,
    /// and ignores a storage that is locked for writing.
    #[cfg(feature = "net")]
    pub(crate) fn set_first_name(&self, name: &str) {
        for (storage, suffix) in [(&self.data, ""), (&self.diff, " (diff)")] {
            if matches!(storage.has_name(), Ok(false)) {
                let _ = storage.set_name(format!("{name}{suffix}").into());
            }
        }
    }

    /// Changes the shape. Keeps the storage and its values if the storage is large enough;
    /// otherwise replaces the storage with a storage of zeros.
    ///
    /// If a shared storage is too small, this blob gets a new storage and the aliases of the blob
    /// keep the shared storage.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let mut x = Blob::from_slice(&CpuDevice::new(), &[4], &[1.0, 2.0, 3.0, 4.0])?;
    /// x.reshape(&[1, 2])?; // keeps the storage
    /// assert_eq!(x.to_vec()?, [1.0, 2.0]);
    /// x.reshape(&[2, 2])?;
    /// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if the number of elements overflows; [`Error::Borrowed`] while this
    /// blob or an alias is locked for writing. On error, the blob is unchanged.
    #[doc(alias = "Reshape")]
    pub fn reshape(&mut self, shape: &[usize]) -> Result<()> {
        if *shape == *self.shape {
            return Ok(());
        }
        let shape = Shape::new(shape)?;
        let bytes = Self::bytes(&shape)?;
        let data = self.data.grown(&self.device, bytes)?;
        let diff = self.diff.grown(&self.device, bytes)?;
        self.data = data.unwrap_or_else(|| self.data.share());
        self.diff = diff.unwrap_or_else(|| self.diff.share());
        self.shape = shape;
        Ok(())
    }

    /// Reshapes this blob to the shape of `other`.
    ///
    /// # Errors
    /// Returns any error from [`reshape`](Self::reshape).
    #[doc(alias = "ReshapeLike")]
    pub fn reshape_like<U: Storable>(&mut self, other: &Blob<U, D>) -> Result<()> {
        self.reshape(&other.shape)
    }

    /// Locks the data of this blob for reading.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing.
    #[doc(alias = "cpu_data")]
    #[doc(alias = "gpu_data")]
    pub fn data(&self) -> Result<ReadGuard<'_, T, D>> {
        self.data.read(self.count())
    }

    /// Locks the data of this blob for writing.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked.
    #[doc(alias = "mutable_cpu_data")]
    #[doc(alias = "mutable_gpu_data")]
    pub fn data_mut(&self) -> Result<WriteGuard<'_, T, D>> {
        self.data.write(self.count())
    }

    /// Locks the diff of this blob for reading.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing.
    #[doc(alias = "cpu_diff")]
    #[doc(alias = "gpu_diff")]
    pub fn diff(&self) -> Result<ReadGuard<'_, T, D>> {
        self.diff.read(self.count())
    }

    /// Locks the diff of this blob for writing.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked.
    #[doc(alias = "mutable_cpu_diff")]
    #[doc(alias = "mutable_gpu_diff")]
    pub fn diff_mut(&self) -> Result<WriteGuard<'_, T, D>> {
        self.diff.write(self.count())
    }

    /// Locks this blob's data for writing and `input`'s data for reading; the two blobs may share
    /// storage.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked.
    pub fn data_mut_from<'a>(
        &'a self,
        input: &'a Self,
    ) -> Result<(SrcGuard<'a, T, D>, WriteGuard<'a, T, D>)> {
        self.data.write_from(self.count(), &input.data, input.count())
    }

    /// Locks this blob's diff for writing and `input`'s diff for reading; the two blobs may share
    /// storage.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked.
    pub fn diff_mut_from<'a>(
        &'a self,
        input: &'a Self,
    ) -> Result<(SrcGuard<'a, T, D>, WriteGuard<'a, T, D>)> {
        self.diff.write_from(self.count(), &input.diff, input.count())
    }

    /// Returns which sides of the data are valid (host, device or both), without a transfer.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing.
    pub fn data_head(&self) -> Result<Head> {
        Ok(self.data()?.head())
    }

    /// Returns the size of the data's storage in bytes, whether or not the storage is allocated.
    pub(crate) fn storage_bytes(&self) -> Result<usize> {
        self.data.bytes()
    }

    /// Returns the numbers of bytes that are allocated for the data and for the diff, on the host
    /// and the device together. Each alias reports the whole size of the shared storage.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing.
    pub fn allocated_bytes(&self) -> Result<[usize; 2]> {
        Ok([self.data.allocated()?, self.diff.allocated()?])
    }

    /// Returns the number of blobs that share this blob's data, including this blob.
    #[cfg(feature = "net")]
    pub(crate) fn data_ref_count(&self) -> usize {
        self.data.handles()
    }

    /// Makes this blob share the data storage of the blob `storage`, unless that storage is too
    /// small. The caller must ensure that the contents of the two blobs are never needed at the
    /// same time.
    #[cfg(feature = "net")]
    pub(crate) fn use_storage_of(&mut self, storage: &Self) -> Result<()> {
        if storage.storage_bytes()? >= Self::bytes(&self.shape)? {
            self.data = storage.data.share();
        }
        Ok(())
    }

    /// Returns an alias: a blob of the same shape that shares data and diff with this blob.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::<f32, _>::new(&CpuDevice::new(), &[3])?;
    /// let alias = x.share();
    /// alias.fill(7.0)?;
    /// assert_eq!(x.to_vec()?, [7.0; 3]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    #[must_use]
    pub fn share(&self) -> Self {
        Self {
            device: self.device.clone(),
            shape: self.shape.clone(),
            data: self.data.share(),
            diff: self.diff.share(),
            elements: PhantomData,
        }
    }

    /// Makes this blob share the data of `other`.
    ///
    /// # Errors
    /// [`Error::Length`] unless both blobs have the same count.
    #[doc(alias = "ShareData")]
    pub fn share_data(&mut self, other: &Self) -> Result<()> {
        check_len("share_data", "other", self.count(), other.count())?;
        self.data = other.data.share();
        Ok(())
    }

    /// Makes this blob share the diff of `other`.
    ///
    /// # Errors
    /// [`Error::Length`] unless both blobs have the same count.
    #[doc(alias = "ShareDiff")]
    pub fn share_diff(&mut self, other: &Self) -> Result<()> {
        check_len("share_diff", "other", self.count(), other.count())?;
        self.diff = other.diff.share();
        Ok(())
    }

    /// Returns whether this blob shares its data with `other`.
    pub fn shares_data_with(&self, other: &Self) -> bool {
        self.data.same_storage(&other.data)
    }

    /// Returns whether this blob shares its diff with `other`.
    pub fn shares_diff_with(&self, other: &Self) -> bool {
        self.diff.same_storage(&other.diff)
    }

    /// Swaps the data of this blob with the data of `other`, without a copy. The swap also changes
    /// the data of all aliases of the two blobs. A data layer calls `swap_data` to take a
    /// prefetched batch and return the storage of the previous batch.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let device = CpuDevice::new();
    /// let [front, back] = [1.0_f32, 2.0].map(|x| Blob::from_slice(&device, &[2], &[x; 2]));
    /// let (front, back) = (front?, back?);
    /// front.swap_data(&back)?;
    /// assert_eq!((front.to_vec()?, back.to_vec()?), (vec![2.0; 2], vec![1.0; 2]));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless both blobs have the same count and storage size;
    /// [`Error::Borrowed`].
    pub fn swap_data(&self, other: &Self) -> Result<()> {
        check_len("swap_data", "other", self.count(), other.count())?;
        self.data.swap(&other.data)
    }
}
