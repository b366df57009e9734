//! Typed, bounds-checked ranges of a [`SyncedMemory`].
//!
//! A kernel accesses the elements of a view through the methods `host` and `device`. `host` and
//! `device` first copy the elements to the host or to the device if needed.

use super::{
    coherent_bytes::{CoherentBytes, Overwrite},
    ledger::context::device_use_event,
    memory_trait::Memory,
    synced::SyncedMemory,
};
use crate::{
    element::Storable,
    error::{Error, Result},
};
use std::{any::TypeId, fmt, marker::PhantomData, mem::size_of, ops::Range};

/// A shared, read-only view of a range of elements of a [`SyncedMemory`].
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, View};
///
/// let mut memory = SyncedMemory::new(&CpuDevice::new(), 4);
/// memory.host_mut()?.copy_from_slice(&[1, 2, 3, 4]);
/// let bytes = View::<u8, _>::new(&memory, 4)?;
/// assert_eq!(bytes.slice(1..3)?.host()?, [2, 3]);
/// assert!(bytes.slice(3..5).is_err());
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct View<'a, T, D: Memory> {
    mem: &'a CoherentBytes,
    span: Span,
    marker: PhantomData<(&'a [T], D)>,
}

/// An exclusive, mutable view of a range of elements of a [`SyncedMemory`].
///
/// ```
/// use cortado::{kernel::Elementwise, prelude::*};
///
/// let device = CpuDevice::new();
/// let x = Blob::<f32, _>::zeros(&device, &[4])?;
/// device.fill(1.0, x.data_mut()?.view_mut().slice(2..4)?)?;
/// assert_eq!(x.to_vec()?, [0.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ViewMut<'a, T, D: Memory> {
    mem: &'a mut CoherentBytes,
    span: Span,
    marker: PhantomData<(&'a mut [T], D)>,
}

/// An input operand of a kernel that may alias the output operand, for kernels that can run in
/// place.
///
/// ```
/// use cortado::{Src, kernel::Elementwise, prelude::*};
///
/// let device = CpuDevice::new();
/// let x = Blob::from_slice(&device, &[2], &[3.0f32, 4.0])?;
/// let y = Blob::zeros(&device, &[2])?;
/// device.unary(Unary::Sqr, x.data()?.view().into(), y.data_mut()?.view_mut())?;
/// device.unary(Unary::Neg, Src::InPlace, y.data_mut()?.view_mut())?;
/// assert_eq!(y.to_vec()?, [-9.0, -16.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub enum Src<'a, T, D: Memory> {
    /// The input operand is the output operand, so the kernel runs in place.
    InPlace,
    /// The input operand is the given view, separate from the output operand.
    View(View<'a, T, D>),
}

/// A device buffer, and the byte range of the buffer that a view covers.
///
/// ```
/// use cortado::prelude::*;
///
/// let x = Blob::from_slice(&SimulatedDevice::new(), &[4], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let data = x.data()?;
/// let slice = data.view().slice(1..3)?.device()?;
/// assert_eq!((slice.offset, slice.bytes, slice.buffer.bytes()), (4, 8, 16));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DeviceSlice<'a, D: Memory> {
    /// The device buffer that contains the view's elements.
    pub buffer: &'a D::Buffer,
    /// Offset in bytes from the start of the buffer to the view.
    pub offset: usize,
    /// Size of the view in bytes.
    pub bytes: usize,
}

/// Like [`DeviceSlice`], but with mutable access to the buffer.
///
/// ```
/// use cortado::prelude::*;
///
/// let x = Blob::<f32, _>::zeros(&CpuDevice::new(), &[3])?;
/// let mut data = x.data_mut()?;
/// let mut last_element = data.view_mut().slice(2..3)?;
/// let slice = last_element.device_mut()?;
/// slice.buffer[slice.offset..][..slice.bytes].copy_from_slice(&7f32.to_ne_bytes());
/// assert_eq!(data.host_mut()?, [0.0, 0.0, 7.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DeviceSliceMut<'a, D: Memory> {
    /// The device buffer that contains the view's elements.
    pub buffer: &'a mut D::Buffer,
    /// Offset in bytes from the start of the buffer to the view.
    pub offset: usize,
    /// Size of the view in bytes.
    pub bytes: usize,
}

/// The elements of an output view in host memory, which a host kernel overwrites.
pub(crate) struct HostOutput<'a, T> {
    memory: Overwrite<'a>,
    range: Range<usize>,
    elements: PhantomData<&'a mut [T]>,
}

impl<T: Storable> HostOutput<'_, T> {
    pub(crate) fn elements(&mut self) -> Result<&mut [T]> {
        let bytes = &mut self.memory.bytes()?[self.range.clone()];
        crate::cast::try_cast_slice_mut(bytes).ok_or_else(misaligned_error)
    }

    /// Makes the written elements the current value of the view; the device copy becomes
    /// stale.
    pub(crate) fn commit(self) {
        self.memory.commit();
    }
}

/// A range of elements of a [`SyncedMemory`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// Returns the range of the first `len` elements of type `T` in `bytes` bytes of memory.
    fn first<T>(len: usize, bytes: usize) -> Result<Self> {
        let available_len = bytes / size_of::<T>().max(1);
        if len > available_len {
            return Err(Error::Range { what: "a memory", start: 0, end: len, len: available_len });
        }
        Ok(Self { start: 0, len })
    }

    fn sub(self, range: Range<usize>) -> Result<Self> {
        let Range { start, end } = range;
        if start > end || end > self.len {
            return Err(Error::Range { what: "a view", start, end, len: self.len });
        }
        Ok(Self { start: self.start + start, len: end - start })
    }

    fn bytes<T>(self) -> Range<usize> {
        self.start * size_of::<T>()..(self.start + self.len) * size_of::<T>()
    }
}

impl<T, D: Memory> Clone for View<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, D: Memory> Copy for View<'_, T, D> {}

impl<T, D: Memory> Clone for Src<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, D: Memory> Copy for Src<'_, T, D> {}

impl<'a, T: Storable, D: Memory> View<'a, T, D> {
    /// Creates a view of the first `len` elements of `mem`.
    ///
    /// # Errors
    /// Returns [`Error::Range`] if `mem` holds fewer than `len` elements.
    pub fn new(mem: &'a SyncedMemory<D>, len: usize) -> Result<Self> {
        let mem = &mem.value;
        Ok(Self { mem, span: Span::first::<T>(len, mem.size())?, marker: PhantomData })
    }

    /// Creates a view of the first `len` elements of `mem`, which must hold at least `len`
    /// elements.
    pub(crate) fn new_unchecked(mem: &'a SyncedMemory<D>, len: usize) -> Self {
        debug_assert!(len * size_of::<T>() <= mem.size());
        Self { mem: &mem.value, span: Span { start: 0, len }, marker: PhantomData }
    }

    /// Returns the number of elements in the view.
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// Returns whether the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// Returns a view of the elements of this view at the indices `range`.
    ///
    /// # Errors
    /// Returns [`Error::Range`] if `range` reaches outside the view.
    pub fn slice(self, range: Range<usize>) -> Result<Self> {
        Ok(Self { span: self.span.sub(range)?, ..self })
    }

    /// Returns the elements as a slice of host memory.
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::host`]. Returns [`Error::InvalidData`] if the memory
    /// has adopted bytes that are not aligned for `T`.
    #[track_caller]
    pub fn host(self) -> Result<&'a [T]> {
        let bytes = self.mem.host()?;
        crate::cast::try_cast_slice(&bytes[self.span.bytes::<T>()]).ok_or_else(misaligned_error)
    }

    /// Returns the device buffer that holds the elements, and the range of the elements in the
    /// buffer.
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::device`].
    #[track_caller]
    pub fn device(self) -> Result<DeviceSlice<'a, D>> {
        device_use_event();
        let Range { start, end } = self.span.bytes::<T>();
        Ok(DeviceSlice { buffer: self.mem.device()?, offset: start, bytes: end - start })
    }
}

impl<'a, T: Storable, D: Memory> ViewMut<'a, T, D> {
    /// Creates a view of the first `len` elements of `mem`.
    ///
    /// # Errors
    /// Returns [`Error::Range`] if `mem` holds fewer than `len` elements.
    pub fn new(mem: &'a mut SyncedMemory<D>, len: usize) -> Result<Self> {
        let span = Span::first::<T>(len, mem.size())?;
        Ok(Self { mem: &mut mem.value, span, marker: PhantomData })
    }

    /// Creates a view of the first `len` elements of `mem`, which must hold at least `len`
    /// elements.
    pub(crate) fn new_unchecked(mem: &'a mut SyncedMemory<D>, len: usize) -> Self {
        debug_assert!(len * size_of::<T>() <= mem.size());
        Self { mem: &mut mem.value, span: Span { start: 0, len }, marker: PhantomData }
    }

    /// Returns the number of elements in the view.
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// Returns whether the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// Consumes this view, and returns a view of the elements at the indices `range`.
    ///
    /// # Errors
    /// Returns [`Error::Range`] if `range` reaches outside the view.
    pub fn slice(self, range: Range<usize>) -> Result<Self> {
        Ok(Self { span: self.span.sub(range)?, ..self })
    }

    /// Reborrows the elements of this view at the indices `range` as a shorter-lived view.
    ///
    /// # Errors
    /// Returns [`Error::Range`] if `range` reaches outside the view.
    pub fn slice_mut(&mut self, range: Range<usize>) -> Result<ViewMut<'_, T, D>> {
        Ok(ViewMut { span: self.span.sub(range)?, mem: self.mem, marker: PhantomData })
    }

    /// Reborrows this view, so that the caller can pass the reborrowed view to a kernel and then
    /// use this view again.
    pub fn reborrow(&mut self) -> ViewMut<'_, T, D> {
        ViewMut { mem: self.mem, span: self.span, marker: PhantomData }
    }

    /// Returns a shared view of the elements of this exclusive view.
    pub fn as_view(&self) -> View<'_, T, D> {
        View { mem: self.mem, span: self.span, marker: PhantomData }
    }

    /// Returns the elements as a mutable slice of host memory; the device copy becomes
    /// stale.
    ///
    /// # Errors
    /// Returns the same errors as [`View::host`].
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [T]> {
        let range = self.span.bytes::<T>();
        crate::cast::try_cast_slice_mut(&mut self.mem.host_mut()?[range])
            .ok_or_else(misaligned_error)
    }

    /// Like [`host_mut`](Self::host_mut), but for kernels that overwrite every element of the view.
    /// If the view covers its whole memory, downloads nothing.
    ///
    /// # Errors
    /// Returns the same errors as [`View::host`].
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [T]> {
        let range = self.span.bytes::<T>();
        let bytes = match self.is_whole() {
            true => self.mem.host_write_only()?,
            false => self.mem.host_part(range.clone())?,
        };
        crate::cast::try_cast_slice_mut(&mut bytes[range]).ok_or_else(misaligned_error)
    }

    /// Calls `write` to overwrite every element of the view in host memory; the device copy becomes
    /// stale. If the view covers its whole memory, downloads nothing. If `write` fails before it
    /// has written an element, the elements are unchanged.
    ///
    /// # Errors
    /// Returns the same errors as [`View::host`]. Propagates errors from `write`.
    #[track_caller]
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [T]) -> Result<R>) -> Result<R> {
        let mut output = self.host_output()?;
        let result = write(output.elements()?)?;
        output.commit();
        Ok(result)
    }

    /// Prepares to overwrite every element of the view in host memory, like
    /// [`host_overwrite`](Self::host_overwrite). The caller commits the returned `HostOutput` after
    /// the host kernel has succeeded.
    #[track_caller]
    pub(crate) fn host_output(&mut self) -> Result<HostOutput<'_, T>> {
        let range = self.span.bytes::<T>();
        let memory = match self.is_whole() {
            true => self.mem.begin_overwrite()?,
            false => self.mem.begin_part_overwrite(range.clone())?,
        };
        Ok(HostOutput { memory, range, elements: PhantomData })
    }

    /// Returns the device buffer that holds the elements, for writing; the host copy becomes
    /// stale.
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::device_mut`].
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<DeviceSliceMut<'_, D>> {
        device_use_event();
        let Range { start, end } = self.span.bytes::<T>();
        Ok(DeviceSliceMut { buffer: self.mem.device_mut()?, offset: start, bytes: end - start })
    }

    /// Allocates device memory in advance, so that later calls to
    /// [`device_write_only`](Self::device_write_only) and [`device_mut`](Self::device_mut) need no
    /// allocation and cannot run out of memory. The elements of the view keep their values. If the
    /// view covers only a part of its memory and the device copy is stale, also uploads the whole
    /// memory.
    ///
    /// A kernel with several outputs calls `reserve_device` on each output before it discards the
    /// value of the first output. The first output then keeps its value even if the second output
    /// does not fit in device memory.
    ///
    /// ```
    /// use cortado::{Memory, Result, ViewMut};
    ///
    /// /// Overwrites two outputs, or neither.
    /// fn fill_both<D: Memory>(
    ///     device: &D,
    ///     mut y: ViewMut<'_, u8, D>,
    ///     mut mask: ViewMut<'_, u8, D>,
    /// ) -> Result<()> {
    ///     y.reserve_device()?;
    ///     mask.reserve_device()?;
    ///     for output in [y.device_write_only()?, mask.device_write_only()?] {
    ///         device.upload(&vec![7; output.bytes], output.buffer, output.offset)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::reserve_device`] and [`SyncedMemory::device`].
    #[track_caller]
    pub fn reserve_device(&mut self) -> Result<()> {
        match self.is_whole() {
            true => self.mem.reserve_device(),
            false => self.mem.fetch_device(),
        }
    }

    /// Like [`device_mut`](Self::device_mut), but for kernels that overwrite every element of the
    /// view. If the view covers its whole memory, uploads nothing.
    ///
    /// # Errors
    /// Returns any error from [`SyncedMemory::device_write_only`].
    #[track_caller]
    pub fn device_write_only(&mut self) -> Result<DeviceSliceMut<'_, D>> {
        device_use_event();
        let range = self.span.bytes::<T>();
        let Range { start, end } = range;
        let buffer = match self.is_whole() {
            true => self.mem.device_write_only()?,
            false => self.mem.device_part(range)?,
        };
        Ok(DeviceSliceMut { buffer, offset: start, bytes: end - start })
    }

    /// Returns the offset in bytes of the view's first element from the start of the memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn byte_offset(&self) -> usize {
        self.as_view().byte_offset()
    }

    fn is_whole(&self) -> bool {
        self.span.bytes::<T>() == (0..self.mem.size())
    }
}

impl<T: Storable, D: Memory> View<'_, T, D> {
    /// Returns the offset in bytes of the view's first element from the start of the memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn byte_offset(&self) -> usize {
        self.span.bytes::<T>().start
    }
}

impl<'a, T: Storable, D: Memory> View<'a, T, D> {
    /// Returns this view with the element type `U` if `T` is `U`, else `None`, for a kernel that
    /// supports only the element type `U`.
    pub fn downcast<U: Storable>(self) -> Option<View<'a, U, D>> {
        let Self { mem, span, .. } = self;
        (TypeId::of::<T>() == TypeId::of::<U>()).then_some(View { mem, span, marker: PhantomData })
    }
}

impl<'a, T: Storable, D: Memory> ViewMut<'a, T, D> {
    /// Returns this view with the element type `U` if `T` is `U`, else `None`, for a kernel that
    /// supports only the element type `U`.
    pub fn downcast<U: Storable>(self) -> Option<ViewMut<'a, U, D>> {
        let Self { mem, span, .. } = self;
        (TypeId::of::<T>() == TypeId::of::<U>()).then_some(ViewMut {
            mem,
            span,
            marker: PhantomData,
        })
    }
}

// The device type of a view matters only for the type of the buffer that the method `device`
// returns. The method `device` fails if the memory belongs to a device of another type.
impl<'a, T, D: Memory> View<'a, T, D> {
    /// Converts this view to the device type `E`, which must be the type of the memory's device.
    pub(crate) fn on<E: Memory>(self) -> View<'a, T, E> {
        View { mem: self.mem, span: self.span, marker: PhantomData }
    }
}

impl<'a, T, D: Memory> ViewMut<'a, T, D> {
    /// Converts this view to the device type `E`, which must be the type of the memory's device.
    pub(crate) fn on<E: Memory>(self) -> ViewMut<'a, T, E> {
        ViewMut { mem: self.mem, span: self.span, marker: PhantomData }
    }
}

impl<'a, T, D: Memory> Src<'a, T, D> {
    /// Converts this operand to the device type `E`, which must be the type of the memory's device.
    pub(crate) fn on<E: Memory>(self) -> Src<'a, T, E> {
        match self {
            Self::InPlace => Src::InPlace,
            Self::View(view) => Src::View(view.on()),
        }
    }
}

impl<'a, T, D: Memory> From<View<'a, T, D>> for Src<'a, T, D> {
    fn from(view: View<'a, T, D>) -> Self {
        Self::View(view)
    }
}

impl<T, D: Memory> fmt::Debug for View<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({}.., {} of {:?})", self.span.start, self.span.len, self.mem)
    }
}

impl<T, D: Memory> fmt::Debug for ViewMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewMut({}.., {} of {:?})", self.span.start, self.span.len, self.mem)
    }
}

fn misaligned_error() -> Error {
    Error::InvalidData("adopted bytes are not aligned for the element type".into())
}

/// Kani proofs about the ranges of views, run by `cargo kani --no-default-features`.
#[cfg(kani)]
mod proofs {
    use super::*;

    /// A sub-range of a sub-range covers exactly the requested bytes and stays inside the memory.
    #[kani::proof]
    fn sub_ranges_stay_inside_the_memory() {
        let (bytes, len): (usize, usize) = (kani::any(), kani::any());
        let [outer, inner]: [Range<usize>; 2] = [(); 2].map(|()| kani::any()..kani::any());
        let Ok(all) = Span::first::<u32>(len, bytes) else { return };
        let Ok(part) = all.sub(outer.clone()) else { return };
        let Ok(part) = part.sub(inner.clone()) else { return };
        let range = part.bytes::<u32>();
        assert!(range.end <= bytes);
        assert!(range.len() == 4 * (inner.end - inner.start));
        assert!(range.start == 4 * (outer.start + inner.start));
    }
}
