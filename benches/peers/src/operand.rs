//! Operands that all who do the same thing share.

use cortado::Element;
use std::{
    cell::{Ref, RefCell, RefMut},
    rc::Rc,
};

/// Elements of the widest type that lie in a line of a cache.
const LINE: usize = 64;

/// Memory that begins at a line, as cortado's does; clones share it.
///
/// Where memory lies decides what a small or a very large kernel takes: by up to twice within a
/// cache, and by a tenth where pages of it come to lie better or worse in the last one.
pub(crate) struct Operand<T> {
    room: Rc<RefCell<Vec<T>>>,
    start: usize,
    len: usize,
}

impl<T: Element> Operand<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        let room = vec![T::default(); len + LINE];
        let start = room.as_ptr().align_offset(LINE).min(LINE);
        Self { room: Rc::new(RefCell::new(room)), start, len }
    }

    pub(crate) fn get(&self) -> Ref<'_, [T]> {
        Ref::map(self.room.borrow(), |room| &room[self.start..][..self.len])
    }

    pub(crate) fn get_mut(&self) -> RefMut<'_, [T]> {
        RefMut::map(self.room.borrow_mut(), |room| &mut room[self.start..][..self.len])
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
        Self { room: self.room.clone(), ..*self }
    }
}
