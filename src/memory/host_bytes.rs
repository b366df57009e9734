//! Owned host bytes.

use crate::{
    element::Storable,
    error::{Error, Result},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Bytes of a cache line, at which host memory begins.
const CACHE_LINE: usize = 64;

/// Host memory that somebody else allocated: a vector, pinned memory of a driver, a mapped file.
pub trait HostStorage: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The same bytes, writable.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: Storable> HostStorage for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

/// Owned host bytes: allocated here, zeroed and aligned to 64, or adopted from their owner.
pub struct HostBytes(Repr);

enum Repr {
    /// From `start` on, which is at a line.
    Own {
        bytes: Box<[u8]>,
        start: usize,
        len: usize,
    },
    Adopted(Box<dyn HostStorage>),
}

impl HostBytes {
    /// `len` zeroed bytes. Pages are not touched until they are used.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self> {
        // Asked for without an alignment: with one, the allocator would write the zeros itself.
        let bytes = len
            .checked_add(CACHE_LINE - 1)
            .and_then(|room| bytemuck::allocation::try_zeroed_slice_box::<u8>(room).ok())
            .ok_or(Error::OutOfMemory { device: "host".into(), bytes: len })?;
        let start = bytes.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE - 1);
        Ok(Self(Repr::Own { bytes, start, len }))
    }

    /// Takes over `storage` without copying it.
    pub fn adopt(storage: impl HostStorage + 'static) -> Self {
        Self(Repr::Adopted(Box::new(storage)))
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
    fn memory_is_zero_and_begins_at_a_line() {
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
    fn pages_are_not_touched_until_they_are_used() {
        const LEN: usize = 1 << 30;
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
        };
        let before = resident();
        let bytes = HostBytes::zeroed(LEN).unwrap();
        // Other tests run beside this one.
        assert!(resident().saturating_sub(before) < LEN / 2);
        assert_eq!(bytes[LEN / 2], 0);
    }
}
