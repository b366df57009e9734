//! Data and gradient under one shape.

mod arithmetic;
mod storage;
mod proto;
#[cfg(feature = "tensor-io")]
mod tensor;

pub use storage::{ReadGuard, SrcGuard, WriteGuard};

use crate::{
    device::Device,
    element::Storable,
    error::{Error, Result, check_len},
    memory::{Head, HostStorage},
    shape::Shape,
};
use storage::Storage;
use std::{fmt, marker::PhantomData, mem::size_of};

/// Caffe's `Blob`: values and their gradient, in one shape, on one device.
///
/// Nothing is allocated before it is touched; what nobody wrote reads as zero.
///
/// Contents can be shared between blobs ([`share_data`](Self::share_data)), so they are reached
/// through guards, as an `RwLock`'s are, which check what `&` and `&mut` cannot see: that no alias
/// is in use. A conflict is [`Error::Borrowed`] at once, never a wait. The shape belongs to the
/// handle and changes only through `&mut`.
pub struct Blob<T: Storable, D: Device> {
    device: D,
    shape: Shape,
    data: Storage<D>,
    diff: Storage<D>,
    elements: PhantomData<T>,
}

impl<T: Storable, D: Device> Blob<T, D> {
    /// A blob of this shape, all zero. Allocates nothing until it is touched.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] as [`Shape::new`].
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

    /// A blob of this shape that holds `data`, without copying it where the device allows.
    ///
    /// # Errors
    /// [`Error::Length`] unless `data` holds as many elements as the shape counts;
    /// [`Error::ShapeOverflow`].
    #[doc(alias = "set_cpu_data")]
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
        let overflow = || Error::ShapeOverflow {
            shape: shape.to_vec(),
            why: "the number of bytes does not fit",
        };
        shape.count().checked_mul(size_of::<T>()).ok_or_else(overflow)
    }

    /// The device this blob lives on.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Extents, outermost first, with what Caffe asks of them: `count`, `count_range`,
    /// `canonical_axis`, `offset`.
    #[doc(alias = "shape_string")]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.shape.count()
    }

    /// Number of axes.
    pub fn num_axes(&self) -> usize {
        self.shape.len()
    }

    /// Extent of the first of at most four axes; 1 if there is none.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than four axes.
    pub fn num(&self) -> Result<usize> {
        self.shape.legacy(0)
    }

    /// Extent of the second of at most four axes; 1 if there is none.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than four axes.
    pub fn channels(&self) -> Result<usize> {
        self.shape.legacy(1)
    }

    /// Extent of the third of at most four axes; 1 if there is none.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than four axes.
    pub fn height(&self) -> Result<usize> {
        self.shape.legacy(2)
    }

    /// Extent of the last of four axes; 1 if there is none.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than four axes.
    pub fn width(&self) -> Result<usize> {
        self.shape.legacy(3)
    }

    /// Changes the shape. Storage is replaced, by zeros, only where it has to grow; values stay
    /// if it does not.
    ///
    /// A blob that shares its contents and outgrows them gets contents of its own: the others
    /// keep theirs, whole.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`]; [`Error::Borrowed`] if the contents are in use. The blob is
    /// then as it was.
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

    /// Takes the shape of another blob.
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape).
    #[doc(alias = "ReshapeLike")]
    pub fn reshape_like<U: Storable>(&mut self, other: &Blob<U, D>) -> Result<()> {
        self.reshape(&other.shape)
    }

    /// Reads the data.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is written.
    #[doc(alias = "cpu_data")]
    #[doc(alias = "gpu_data")]
    pub fn data(&self) -> Result<ReadGuard<'_, T, D>> {
        self.data.read(self.count())
    }

    /// Writes the data.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is in use.
    #[doc(alias = "mutable_cpu_data")]
    #[doc(alias = "mutable_gpu_data")]
    pub fn data_mut(&self) -> Result<WriteGuard<'_, T, D>> {
        self.data.write(self.count())
    }

    /// Reads the diff.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is written.
    #[doc(alias = "cpu_diff")]
    #[doc(alias = "gpu_diff")]
    pub fn diff(&self) -> Result<ReadGuard<'_, T, D>> {
        self.diff.read(self.count())
    }

    /// Writes the diff.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is in use.
    #[doc(alias = "mutable_cpu_diff")]
    #[doc(alias = "mutable_gpu_diff")]
    pub fn diff_mut(&self) -> Result<WriteGuard<'_, T, D>> {
        self.diff.write(self.count())
    }

    /// Writes the data as a function of `input`'s, which may share it.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is in use.
    pub fn data_mut_from<'a>(
        &'a self,
        input: &'a Self,
    ) -> Result<(SrcGuard<'a, T, D>, WriteGuard<'a, T, D>)> {
        self.data.write_from(self.count(), &input.data, input.count())
    }

    /// Writes the diff as a function of `input`'s, which may share it.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is in use.
    pub fn diff_mut_from<'a>(
        &'a self,
        input: &'a Self,
    ) -> Result<(SrcGuard<'a, T, D>, WriteGuard<'a, T, D>)> {
        self.diff.write_from(self.count(), &input.diff, input.count())
    }

    /// Which sides hold the data, without touching it.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is written.
    pub fn data_head(&self) -> Result<Head> {
        Ok(self.data()?.head())
    }

    /// Bytes of storage behind the data; nothing need be allocated yet.
    fn capacity(&self) -> Result<usize> {
        self.data.bytes()
    }

    /// Bytes allocated at present behind data and diff, on host and device together. Blobs that
    /// share count the same bytes.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while an alias is written.
    pub fn allocated_bytes(&self) -> Result<[usize; 2]> {
        Ok([self.data.allocated()?, self.diff.allocated()?])
    }

    /// How many blobs share this one's data, itself included.
    #[cfg(feature = "net")]
    pub(crate) fn data_ref_count(&self) -> usize {
        self.data.handles()
    }

    /// Puts this blob's data into storage that others use at other times, unless it is too small.
    #[cfg(feature = "net")]
    pub(crate) fn use_storage_of(&mut self, storage: &Self) -> Result<()> {
        if storage.capacity()? >= Self::bytes(&self.shape)? {
            self.data = storage.data.share();
        }
        Ok(())
    }

    /// Another handle on the same contents, in the same shape. Not a copy.
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

    /// Makes this blob's data an alias of `other`'s.
    ///
    /// # Errors
    /// [`Error::Length`] unless both count the same.
    #[doc(alias = "ShareData")]
    pub fn share_data(&mut self, other: &Self) -> Result<()> {
        check_len("share_data", "other", self.count(), other.count())?;
        self.data = other.data.share();
        Ok(())
    }

    /// Makes this blob's diff an alias of `other`'s.
    ///
    /// # Errors
    /// [`Error::Length`] unless both count the same.
    #[doc(alias = "ShareDiff")]
    pub fn share_diff(&mut self, other: &Self) -> Result<()> {
        check_len("share_diff", "other", self.count(), other.count())?;
        self.diff = other.diff.share();
        Ok(())
    }

    /// Whether both blobs' data are one.
    pub fn shares_data_with(&self, other: &Self) -> bool {
        self.data.same_storage(&other.data)
    }

    /// Whether both blobs' diffs are one.
    pub fn shares_diff_with(&self, other: &Self) -> bool {
        self.diff.same_storage(&other.diff)
    }

    /// Exchanges data with `other` without copying: how a data layer takes a batch that was
    /// prepared elsewhere and hands its old storage back. Aliases of either see the exchange.
    ///
    /// # Errors
    /// [`Error::Length`] unless both count the same in storage of the same size;
    /// [`Error::Borrowed`].
    pub fn swap_data(&self, other: &Self) -> Result<()> {
        check_len("swap_data", "other", self.count(), other.count())?;
        self.data.swap(&other.data)
    }
}

impl<T: Storable, D: Device> fmt::Debug for Blob<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} on {})", self.shape, self.device.name())
    }
}
