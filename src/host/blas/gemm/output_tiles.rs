//! Output matrix `C`, of which each thread writes a separate part.

use std::marker::PhantomData;

/// Exclusively borrowed row-major matrix; several threads write disjoint parts of the matrix
/// through raw pointers.
pub(crate) struct OutputTiles<'a, T> {
    first: *mut T,
    len: usize,
    ld: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: `OutputTiles` acts like a `&mut [T]`, which may move to another thread if `T` is `Send`.
unsafe impl<T: Send> Send for OutputTiles<'_, T> {}

// SAFETY: a shared reference to `OutputTiles` gives access only to raw pointers. Code that
// dereferences a pointer from `OutputTiles` is unsafe, and must ensure that no two threads access
// the same element.
unsafe impl<T: Send> Sync for OutputTiles<'_, T> {}

impl<'a, T> OutputTiles<'a, T> {
    /// Borrows `matrix`, whose rows are `ld` elements apart.
    pub(crate) fn new(matrix: &'a mut [T], ld: usize) -> Self {
        Self { first: matrix.as_mut_ptr(), len: matrix.len(), ld, borrow: PhantomData }
    }

    /// Returns a pointer to the matrix element at `row` and `column`.
    ///
    /// # Panics
    /// Panics if the offset of the element exceeds the length of the matrix.
    pub(crate) fn at(&self, row: usize, column: usize) -> *mut T {
        let offset = row * self.ld + column;
        assert!(offset <= self.len, "output matrix: element {offset} of {}", self.len);
        self.first.wrapping_add(offset)
    }
}
