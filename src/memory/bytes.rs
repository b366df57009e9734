//! Owned host bytes.

use crate::{
    element::Scalar,
    error::{Error, Result},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// A cache line: the unit in which host memory is allocated, and its alignment.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Host memory that somebody else allocated: a vector, pinned memory of a driver, a mapped file.
pub trait HostStorage: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The same bytes, writable.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: Scalar> HostStorage for Vec<T> {
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
    Lines { lines: Box<[Line]>, len: usize },
    Adopted(Box<dyn HostStorage>),
}

impl HostBytes {
    /// `len` zeroed bytes. Pages are not touched until they are used.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self> {
        let lines = bytemuck::allocation::try_zeroed_slice_box(len.div_ceil(64))
            .map_err(|()| Error::OutOfMemory { device: "host".into(), bytes: len })?;
        Ok(Self(Repr::Lines { lines, len }))
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
            Repr::Lines { lines, len } => &bytemuck::cast_slice(lines)[..*len],
            Repr::Adopted(storage) => storage.bytes(),
        }
    }
}

impl DerefMut for HostBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Repr::Lines { lines, len } => &mut bytemuck::cast_slice_mut(lines)[..*len],
            Repr::Adopted(storage) => storage.bytes_mut(),
        }
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Repr::Lines { .. } => "own",
            Repr::Adopted(_) => "adopted",
        };
        write!(f, "HostBytes({kind}, {} bytes)", self.len())
    }
}
