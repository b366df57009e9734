//! Operands that the runs of a case share.

use cortado::Element;
use std::{
    cell::{Ref, RefCell, RefMut},
    rc::Rc,
};

/// Alignment of operands in bytes, and number of spare elements that the alignment needs.
const CACHE_LINE: usize = 64;

/// Operand that starts at a cache line, like cortado's memory. Clones share the memory.
///
/// The runs of a case share operands, because the addresses of operands affect a kernel's time. In
/// cache, the addresses change the time by up to a factor of 2. The time changes by a tenth if
/// pages of different operands compete for sets of the last-level cache.
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
