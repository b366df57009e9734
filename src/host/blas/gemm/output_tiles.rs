//! A matrix that several threads write, each its own part.

use std::marker::PhantomData;

/// A row-major matrix under exclusive borrow, handed out in parts.
pub(crate) struct OutputTiles<'a, T> {
    first: *mut T,
    len: usize,
    ld: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a `&mut [T]`, which may go to another thread if `T` may.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for OutputTiles<'_, T> {}

// SAFETY: through `&Tiles` elements are reached by pointer only, whose users see to it that no two
// threads use the same element.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for OutputTiles<'_, T> {}

impl<'a, T> OutputTiles<'a, T> {
    /// Takes `matrix`, whose rows are `ld` elements apart.
    pub(crate) fn new(matrix: &'a mut [T], ld: usize) -> Self {
        Self { first: matrix.as_mut_ptr(), len: matrix.len(), ld, borrow: PhantomData }
    }

    /// Pointer to the element at `row` and `column`.
    pub(crate) fn at(&self, row: usize, column: usize) -> *mut T {
        let at = row * self.ld + column;
        assert!(at <= self.len, "element {at} of {}", self.len);
        self.first.wrapping_add(at)
    }
}
