//! Operands that all runs of a benchmark case share.

use cortado::Element;
use std::{
    cell::{Ref, RefCell, RefMut},
    rc::Rc,
};

/// Alignment of operands in bytes. Each operand also allocates this number of extra elements, so
/// that it can start at an aligned address.
const CACHE_LINE: usize = 64;

/// Operand that starts at a cache-line boundary, like memory that cortado allocates. Clones of an
/// operand share its memory.
///
/// The runs of a case share operands, because the addresses of operands affect a kernel's time. If
/// the operands are in cache, their addresses change a kernel's time by up to a factor of 2. If the
/// operands exceed the caches, a kernel's time changes by a tenth when pages of the operands
/// compete for sets of the last-level cache.
pub(crate) struct Operand<T> {
    memory: Rc<RefCell<Vec<T>>>,
    start: usize,
    len: usize,
}

impl<T: Element> Operand<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        let memory = vec![T::default(); len + CACHE_LINE];
        let start = memory.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
        Self { memory: Rc::new(RefCell::new(memory)), start, len }
    }

    pub(crate) fn get(&self) -> Ref<'_, [T]> {
        Ref::map(self.memory.borrow(), |memory| &memory[self.start..][..self.len])
    }

    pub(crate) fn get_mut(&self) -> RefMut<'_, [T]> {
        RefMut::map(self.memory.borrow_mut(), |memory| &mut memory[self.start..][..self.len])
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        self.get().as_ptr()
    }

    pub(crate) fn as_mut_ptr(&self) -> *mut T {
        self.get_mut().as_mut_ptr()
    }
}

impl<T> Clone for Operand<T> {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), ..*self }
    }
}
