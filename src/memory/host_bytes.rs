//! Owned bytes in host memory, which the library has allocated or adopted.

use crate::{
    element::Storable,
    error::{Error, Result},
    host::CACHE_LINE,
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
};
use zerocopy::FromZeros;

/// An owner of host memory, such as a vector, a pinned allocation or a mapped file.
///
/// ```
/// use cortado::memory::{HostBytes, HostStorage};
///
/// struct Page(Box<[u8; 4096]>);
///
/// impl HostStorage for Page {
///     fn bytes(&self) -> &[u8] { &self.0[..] }
///     fn bytes_mut(&mut self) -> &mut [u8] { &mut self.0[..] }
/// }
///
/// assert_eq!(HostBytes::adopt(Page(Box::new([7; 4096])))[4095], 7);
/// ```
pub trait HostStorage: Send + Sync {
    /// Returns the bytes.
    fn bytes(&self) -> &[u8];
    /// Returns the bytes as a mutable slice.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: Storable> HostStorage for Vec<T> {
    fn bytes(&self) -> &[u8] {
        crate::cast::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        crate::cast::cast_slice_mut(self)
    }
}

/// Owned host bytes: either allocated by this type, zeroed and aligned to 64 bytes, or adopted from
/// a [`HostStorage`].
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, memory::HostBytes};
///
/// assert_eq!(HostBytes::zeroed(2)?[..], [0, 0]);
/// let mut memory = SyncedMemory::new(&CpuDevice::new(), 3);
/// memory.adopt(HostBytes::adopt(vec![1u8, 2, 3]))?;
/// assert_eq!(memory.host()?, [1, 2, 3]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct HostBytes(Repr);

enum Repr {
    /// The `len` elements of `bytes` from index `start`, whose address is aligned to a cache line.
    Own {
        bytes: Box<[u8]>,
        start: usize,
        len: usize,
    },
    Adopted(Box<dyn HostStorage>),
}

impl HostBytes {
    /// Allocates `len` zeroed bytes. The operating system maps each page of the allocation at the
    /// first access to the page.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self> {
        // Allocate extra bytes and align `start` instead of requesting an aligned allocation. For a
        // zeroed allocation with a large alignment, the allocator writes the zeros itself instead
        // of mapping fresh zero pages.
        let bytes = len
            .checked_add(CACHE_LINE - 1)
            .and_then(|padded| <[u8]>::new_box_zeroed_with_elems(padded).ok())
            .ok_or_else(|| Error::out_of_host_memory(len))?;
        let start = bytes.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE - 1);
        Ok(Self(Repr::Own { bytes, start, len }))
    }

    /// Takes ownership of `storage` without copying its bytes.
    pub fn adopt(storage: impl HostStorage + 'static) -> Self {
        Self(Repr::Adopted(Box::new(storage)))
    }

    /// Returns whether the bytes belong to an adopted [`HostStorage`], such as a pinned allocation.
    ///
    /// ```
    /// use cortado::memory::HostBytes;
    ///
    /// assert!(HostBytes::adopt(vec![1u8]).is_adopted() && !HostBytes::zeroed(1)?.is_adopted());
    /// # Ok::<(), cortado::Error>(())
    /// ```
    pub fn is_adopted(&self) -> bool {
        matches!(self.0, Repr::Adopted(_))
    }
}

impl Deref for HostBytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Own { bytes, start, len } => &bytes[*start..][..*len],
            Repr::Adopted(storage) => storage.bytes(),
        }
    }
}

impl DerefMut for HostBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Repr::Own { bytes, start, len } => &mut bytes[*start..][..*len],
            Repr::Adopted(storage) => storage.bytes_mut(),
        }
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Repr::Own { .. } => "own",
            Repr::Adopted(_) => "adopted",
        };
        write!(f, "HostBytes({kind}, {} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_bytes_are_zero_and_aligned_to_a_cache_line() {
        for len in [0, 1, 63, 64, 65, 1000, 1 << 20] {
            let bytes = HostBytes::zeroed(len).unwrap();
            assert_eq!(bytes.len(), len);
            assert!(bytes.as_ptr().addr().is_multiple_of(CACHE_LINE));
            assert!(bytes.iter().all(|&byte| byte == 0));
        }
        for len in [usize::MAX, usize::MAX / 2] {
            assert!(
                matches!(HostBytes::zeroed(len), Err(Error::OutOfMemory { bytes, .. }) if bytes == len)
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn zeroed_bytes_do_not_occupy_pages_before_use() {
        const LEN: usize = 1 << 30;
        let resident_bytes = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
        };
        let bytes_before = resident_bytes();
        let bytes = HostBytes::zeroed(LEN).unwrap();
        // Allow the resident memory to grow by up to `LEN / 2`, because concurrent tests also
        // allocate memory.
        assert!(resident_bytes().saturating_sub(bytes_before) < LEN / 2);
        assert_eq!(bytes[LEN / 2], 0);
    }
}
