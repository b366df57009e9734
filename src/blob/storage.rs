//! Shared storage of a blob's data or diff, and the guards that give access to the storage.

use crate::{
    device::Device,
    element::Storable,
    error::{Error, Result, check_len},
    memory::{Head, HostBytes, HostStorage, Src, SyncedMemory, View, ViewMut},
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};
use std::{marker::PhantomData, mem, sync::Arc};

/// Storage of a blob's data or diff, which aliases of the blob share.
pub(super) struct Storage<D: Device> {
    /// Name of the storage in error messages, `data` or `diff`.
    name: &'static str,
    memory: Arc<RwLock<SyncedMemory<D>>>,
}

impl<D: Device> Storage<D> {
    pub(super) fn new(name: &'static str, device: &D, bytes: usize) -> Self {
        Self { name, memory: Arc::new(RwLock::new(SyncedMemory::new(device, bytes))) }
    }

    pub(super) fn share(&self) -> Self {
        Self { name: self.name, memory: Arc::clone(&self.memory) }
    }

    pub(super) fn same_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }

    /// Returns a new storage of `bytes` bytes if this storage is smaller, otherwise `None`. Aliases
    /// of the blob keep this storage, so a blob with a new storage has no aliases.
    pub(super) fn grown(&self, device: &D, bytes: usize) -> Result<Option<Self>> {
        Ok((bytes > self.bytes()?).then(|| Self::new(self.name, device, bytes)))
    }

    pub(super) fn bytes(&self) -> Result<usize> {
        Ok(self.try_read()?.size())
    }

    pub(super) fn allocated(&self) -> Result<usize> {
        Ok(self.try_read()?.allocated_bytes())
    }

    pub(super) fn set_name(&self, name: Arc<str>) -> Result<()> {
        self.try_read()?.set_name(name);
        Ok(())
    }

    #[cfg(feature = "net")]
    pub(super) fn has_name(&self) -> Result<bool> {
        Ok(self.try_read()?.name().is_some())
    }

    #[cfg(feature = "net")]
    pub(super) fn handles(&self) -> usize {
        Arc::strong_count(&self.memory)
    }

    #[track_caller]
    pub(super) fn adopt(&self, storage: impl HostStorage + 'static) -> Result<()> {
        self.try_write()?.adopt(HostBytes::adopt(storage))
    }

    pub(super) fn read<T: Storable>(&self, len: usize) -> Result<ReadGuard<'_, T, D>> {
        Ok(ReadGuard { memory: self.try_read()?, len, elements: PhantomData })
    }

    pub(super) fn write<T: Storable>(&self, len: usize) -> Result<WriteGuard<'_, T, D>> {
        Ok(WriteGuard { memory: self.try_write()?, len, elements: PhantomData })
    }

    /// Locks this storage for writing and the storage `input` for reading; the two may be the same
    /// storage.
    pub(super) fn write_from<'a, T: Storable>(
        &'a self,
        len: usize,
        input: &'a Self,
        input_len: usize,
    ) -> Result<(SrcGuard<'a, T, D>, WriteGuard<'a, T, D>)> {
        let input = match self.same_storage(input) {
            true => SrcGuard::InPlace,
            false => SrcGuard::Other(input.read(input_len)?),
        };
        Ok((input, self.write(len)?))
    }

    /// Swaps the contents of two storages of equal size. The sizes must be equal, because aliases
    /// rely on the size of their storage.
    pub(super) fn swap(&self, other: &Self) -> Result<()> {
        if self.same_storage(other) {
            return Ok(());
        }
        let (mut ours, mut theirs) = (self.try_write()?, other.try_write()?);
        check_len("swap_data", "storage of other", ours.size(), theirs.size())?;
        mem::swap(&mut *ours, &mut *theirs);
        Ok(())
    }

    fn try_read(&self) -> Result<RwLockReadGuard<'_, SyncedMemory<D>>> {
        self.memory.try_read().ok_or(Error::Borrowed { what: self.name })
    }

    fn try_write(&self) -> Result<RwLockWriteGuard<'_, SyncedMemory<D>>> {
        self.memory.try_write().ok_or(Error::Borrowed { what: self.name })
    }
}

/// Guard that gives shared read access to a blob's data or diff.
///
/// ```
/// use cortado::prelude::*;
///
/// let x = Blob::from_slice(&CpuDevice::new(), &[2], &[1.0, 2.0])?;
/// let (first, second) = (x.data()?, x.data()?); // shared
/// assert_eq!(first.host()?, second.host()?);
/// assert!(matches!(x.data_mut(), Err(Error::Borrowed { .. })));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ReadGuard<'a, T: Storable, D: Device> {
    memory: RwLockReadGuard<'a, SyncedMemory<D>>,
    len: usize,
    elements: PhantomData<T>,
}

/// Guard that gives exclusive access to a blob's data or diff.
///
/// ```
/// use cortado::prelude::*;
///
/// let x = Blob::<f32, _>::new(&CpuDevice::new(), &[2])?;
/// let mut values = x.data_mut()?;
/// values.host_mut()?[1] = 5.0;
/// assert!(x.to_vec().is_err()); // `values` has exclusive access
/// drop(values);
/// assert_eq!(x.to_vec()?, [0.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct WriteGuard<'a, T: Storable, D: Device> {
    memory: RwLockWriteGuard<'a, SyncedMemory<D>>,
    len: usize,
    elements: PhantomData<T>,
}

/// Input of a kernel that may run in place: either the output's own storage or another storage.
///
/// ```
/// use cortado::{blob::SrcGuard, kernel::traits::*, prelude::*};
///
/// let x = Blob::<f32, _>::full(&CpuDevice::new(), &[2], 3.0)?;
/// let alias = x.share();
/// let (input, mut output) = alias.data_mut_from(&x)?;
/// assert!(matches!(input, SrcGuard::InPlace));
/// alias.device().unary(Unary::Sqr, input.src(), output.view_mut())?;
/// assert_eq!(output.host_mut()?, [9.0, 9.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub enum SrcGuard<'a, T: Storable, D: Device> {
    /// The input shares the output's storage.
    InPlace,
    /// The input does not share the output's storage.
    Other(ReadGuard<'a, T, D>),
}

impl<T: Storable, D: Device> ReadGuard<'_, T, D> {
    /// Returns the elements as an input operand of a kernel.
    pub fn view(&self) -> View<'_, T, D> {
        View::new_unchecked(&self.memory, self.len)
    }

    /// Returns the elements on the host.
    ///
    /// # Errors
    /// Returns any error from [`View::host`].
    #[track_caller]
    pub fn host(&self) -> Result<&[T]> {
        self.view().host()
    }

    /// Returns which sides are valid: host, device or both.
    pub fn head(&self) -> Head {
        self.memory.head()
    }

    /// Uploads the elements through `queue`, a forked queue of the blob's device, and waits for the
    /// copy.
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::prefetch`].
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        self.memory.prefetch(queue)
    }
}

impl<T: Storable, D: Device> WriteGuard<'_, T, D> {
    /// Returns the elements as an input operand of a kernel.
    pub fn view(&self) -> View<'_, T, D> {
        View::new_unchecked(&self.memory, self.len)
    }

    /// Returns the elements as an output operand of a kernel.
    pub fn view_mut(&mut self) -> ViewMut<'_, T, D> {
        ViewMut::new_unchecked(&mut self.memory, self.len)
    }

    /// Returns the elements on the host, for reading and writing.
    ///
    /// # Errors
    /// Returns any error from [`View::host`].
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [T]> {
        let range = 0..self.len * size_of::<T>();
        slice_mut(&mut self.memory.host_mut()?[range])
    }

    /// Returns the elements on the host, for a caller that overwrites all of them. If the blob's
    /// elements fill the whole storage, no transfer takes place. Elements that the caller has not
    /// yet written have unspecified values.
    ///
    /// # Errors
    /// Returns any error from [`View::host`].
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [T]> {
        let bytes = self.len * size_of::<T>();
        if bytes < self.memory.size() {
            return self.host_mut();
        }
        slice_mut(&mut self.memory.host_write_only()?[..bytes])
    }

    /// Returns which sides are valid: host, device or both.
    pub fn head(&self) -> Head {
        self.memory.head()
    }
}

impl<T: Storable, D: Device> SrcGuard<'_, T, D> {
    /// Returns the input as an operand of a kernel.
    pub fn src(&self) -> Src<'_, T, D> {
        match self {
            Self::InPlace => Src::InPlace,
            Self::Other(read) => Src::View(read.view()),
        }
    }
}

fn slice_mut<T: Storable>(bytes: &mut [u8]) -> Result<&mut [T]> {
    let misaligned_error =
        || Error::InvalidData("adopted bytes are not aligned for the element type".into());
    crate::cast::try_cast_slice_mut(bytes).ok_or_else(misaligned_error)
}
