//! Operands of a kernel, placed with care and looked at afterwards.

use super::failure::{Verdict, flaw};
use crate::{
    element::{Element, Storable},
    error::Result,
    memory::{Head, Memory, SyncedMemory, View, ViewMut},
};
use proptest::prelude::*;
use std::ops::Range;

/// Which sides are current when a kernel starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Host,
    Device,
    Both,
}

/// Where in its memory an operand lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// Elements before it.
    pub(super) lead: usize,
    /// Elements behind it.
    pub(super) tail: usize,
    /// Where its value is current.
    pub(super) side: Side,
}

impl Placement {
    /// A whole memory, current on the device.
    pub(super) const WHOLE: Self = Self { lead: 0, tail: 0, side: Side::Device };

    /// Each side, of a whole memory and of a part of one that is aligned to nothing.
    pub(super) const CORNERS: [Self; 6] = [
        Self::WHOLE,
        Self { lead: 3, tail: 2, side: Side::Device },
        Self { lead: 0, tail: 0, side: Side::Host },
        Self { lead: 1, tail: 5, side: Side::Host },
        Self { lead: 0, tail: 0, side: Side::Both },
        Self { lead: 5, tail: 1, side: Side::Both },
    ];

    /// Any placement; whole memories as often as parts.
    pub(super) fn any() -> BoxedStrategy<Self> {
        let ends = prop_oneof![Just((0, 0)), (0..=7usize, 0..=7usize)];
        let sides = prop_oneof![Just(Side::Device), Just(Side::Host), Just(Side::Both)];
        (ends, sides).prop_map(|((lead, tail), side)| Self { lead, tail, side }).boxed()
    }
}

/// Elements placed for a kernel, between guards that it must neither use nor change.
pub(super) struct Operand<T: Storable, D: Memory> {
    memory: SyncedMemory<D>,
    before: Vec<T>,
    range: Range<usize>,
}

impl<T: Storable, D: Memory> Operand<T, D> {
    /// What a kernel reads.
    pub(super) fn input(device: &D, values: &[T], at: Placement) -> Result<Self> {
        let guards = |n: usize| (0..n).map(guard::<T>);
        let before: Vec<T> =
            guards(at.lead).chain(values.iter().copied()).chain(guards(at.tail)).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&before);
        let mut memory = SyncedMemory::new(device, bytes.len());
        memory.host_write_only()?.copy_from_slice(bytes);
        match at.side {
            Side::Host => {}
            Side::Device => _ = memory.device_mut()?,
            Side::Both => _ = memory.device()?,
        }
        Ok(Self { memory, before, range: at.lead..at.lead + values.len() })
    }

    /// What a kernel writes, and what it holds `before`: [`unset`] if that must not be read.
    pub(super) fn output(device: &D, before: &[T], at: Placement) -> Result<Self> {
        Self::input(device, before, at)
    }

    /// The elements, for a kernel to read.
    pub(super) fn view(&self) -> Result<View<'_, T, D>> {
        View::new(&self.memory, self.before.len())?.slice(self.range.clone())
    }

    /// The elements, for a kernel to write.
    pub(super) fn view_mut(&mut self) -> Result<ViewMut<'_, T, D>> {
        ViewMut::new(&mut self.memory, self.before.len())?.slice(self.range.clone())
    }

    /// What the elements are now. Fails if anything before or behind them changed.
    pub(super) fn finish(&self) -> Verdict<Vec<T>> {
        let held = self.held()?;
        let guards = (0..self.range.start).chain(self.range.end..held.len());
        for at in guards {
            if bytes(&held[at]) != bytes(&self.before[at]) {
                let (first, len) = (self.range.start, self.range.len());
                return Err(flaw!(
                    "wrote outside an operand: element {at} of its memory, whose elements \
                     {first}..{} are the operand's",
                    first + len
                ));
            }
        }
        Ok(held[self.range.clone()].to_vec())
    }

    /// Fails if anything changed at all: an input, or an output of a call that was refused.
    pub(super) fn unchanged(&self, name: &str) -> Verdict {
        let held = self.held()?;
        let changed = |at: &usize| bytes(&held[*at]) != bytes(&self.before[*at]);
        match (0..held.len()).find(changed) {
            None => Ok(()),
            Some(at) => {
                let at = at as isize - self.range.start as isize;
                Err(flaw!("`{name}` was changed at element {at}"))
            }
        }
    }

    /// All elements of the memory, as the device holds them if its side is current.
    fn held(&self) -> Result<Vec<T>> {
        let mut held = vec![T::zeroed(); self.before.len()];
        let to = bytemuck::cast_slice_mut(&mut held);
        match self.memory.head() {
            Head::HeadAtDevice | Head::Synced => {
                self.memory.device_handle().download(self.memory.device()?, 0, to)?;
            }
            Head::HeadAtHost | Head::Uninitialized => to.copy_from_slice(self.memory.host()?),
        }
        Ok(held)
    }
}

/// What an output holds that a kernel overwrites without reading it: NaN spreads.
pub(super) fn unset<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(f64::NAN); len]
}

/// As [`unset`], for indices and counts.
pub(super) const UNSET: u32 = 0x7f7f_7f7f;

/// Element `i` of a guard: NaN or huge, so that a sum that takes it in is far off.
fn guard<T: Storable>(i: usize) -> T {
    let mut guard = T::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut guard);
    bytes.fill(0x7f);
    if let Some(low) = bytes.first_mut() {
        *low = 0x40 + i as u8 % 0x20;
    }
    guard
}

fn bytes<T: Storable>(element: &T) -> &[u8] {
    bytemuck::bytes_of(element)
}
