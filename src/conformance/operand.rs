//! Operands between guard elements, with a valid host side, device side or both.

use super::{
    compare::first_difference,
    failure::{Verdict, flaw},
    values::repeated,
};
use crate::{
    device::AnyDevice,
    element::{Element, Storable},
    error::Result,
    memory::{Head, Memory, SyncedMemory, View, ViewMut},
};
use proptest::prelude::*;
use std::{fmt, ops::Range};

/// Sides of a memory that are valid when a kernel starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Host,
    Device,
    Both,
}

/// Position of an operand in its memory, and the memory's valid sides.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Placement {
    /// Number of guard elements before the operand.
    pub(super) lead: usize,
    /// Number of guard elements after the operand.
    pub(super) tail: usize,
    /// Valid sides of the memory.
    pub(super) side: Side,
}

impl fmt::Debug for Placement {
    /// Formats a placement briefly, such as `device, 3 before, 2 after`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Host => "host",
            Side::Device => "device",
            Side::Both => "both",
        };
        match (self.lead, self.tail) {
            (0, 0) => write!(f, "{side}"),
            (lead, tail) => write!(f, "{side}, {lead} before, {tail} after"),
        }
    }
}

impl Placement {
    /// Placement of an operand that fills its memory and is valid on the device.
    pub(super) const WHOLE: Self = Self { lead: 0, tail: 0, side: Side::Device };

    /// Placements that are valid on the device, on the host and on both, each for an operand that
    /// fills its memory and for an operand at an unaligned offset.
    pub(super) const CORNERS: [Self; 6] = [
        Self::WHOLE,
        Self { lead: 3, tail: 2, side: Side::Device },
        Self { lead: 0, tail: 0, side: Side::Host },
        Self { lead: 1, tail: 5, side: Side::Host },
        Self { lead: 0, tail: 0, side: Side::Both },
        Self { lead: 5, tail: 1, side: Side::Both },
    ];

    /// Placement of an operand that starts more than 64 KiB into its memory, even if an element has
    /// only 2 bytes.
    pub(super) const FAR: Self = Self { lead: 33_003, tail: 2, side: Side::Device };

    /// Returns a strategy that draws placements without guard elements as often as placements
    /// between guard elements.
    pub(super) fn any() -> BoxedStrategy<Self> {
        let ends = prop_oneof![Just((0, 0)), (0..=7usize, 0..=7usize)];
        let sides = prop_oneof![Just(Side::Device), Just(Side::Host), Just(Side::Both)];
        (ends, sides).prop_map(|((lead, tail), side)| Self { lead, tail, side }).boxed()
    }
}

/// Operand between guard elements. A kernel must neither use nor change the guard elements.
pub(super) struct Operand<T: Storable> {
    memory: SyncedMemory<AnyDevice>,
    before: Vec<T>,
    range: Range<usize>,
}

impl<T: Storable> Operand<T> {
    /// Creates an operand that holds `values`. Pass [`unset`] values for an output that the kernel
    /// must not read.
    pub(super) fn new(device: &AnyDevice, values: &[T], place: Placement) -> Result<Self> {
        let before = [&guards(place.lead)[..], values, &guards(place.tail)].concat();
        let bytes: &[u8] = crate::cast::cast_slice(&before);
        let mut memory = SyncedMemory::new(device, bytes.len());
        memory.host_write_only()?.copy_from_slice(bytes);
        match place.side {
            Side::Host => {}
            Side::Device => _ = memory.device_mut()?,
            Side::Both => _ = memory.device()?,
        }
        Ok(Self { memory, before, range: place.lead..place.lead + values.len() })
    }

    /// Returns a view of the operand for a kernel that reads the operand.
    pub(super) fn view(&self) -> Result<View<'_, T, AnyDevice>> {
        View::new(&self.memory, self.before.len())?.slice(self.range.clone())
    }

    /// Returns a view of the operand for a kernel that writes the operand.
    pub(super) fn view_mut(&mut self) -> Result<ViewMut<'_, T, AnyDevice>> {
        ViewMut::new(&mut self.memory, self.before.len())?.slice(self.range.clone())
    }

    /// Returns the current elements of the operand. Fails if a guard element has changed.
    pub(super) fn values(&self) -> Verdict<Vec<T>> {
        let Range { start, end } = self.range;
        let content = self.memory_content()?;
        let first_changed = self.first_change(&content, 0..start);
        match first_changed.or_else(|| self.first_change(&content, end..content.len())) {
            None => Ok(content[start..end].to_vec()),
            Some(i) => Err(flaw!(
                "wrote outside an operand: changed element {i} of the memory; the operand has \
                 elements {start}..{end}"
            )),
        }
    }

    /// Fails if any element of the operand's memory has changed. The harness calls `unchanged` for
    /// each input, and for each output of a call that the kernel refused.
    pub(super) fn unchanged(&self, name: &str) -> Verdict {
        let content = self.memory_content()?;
        let Some(i) = self.first_change(&content, 0..content.len()) else { return Ok(()) };
        let i = i as isize - self.range.start as isize;
        Err(flaw!("changed element {i} of `{name}`, which must not change"))
    }

    /// Returns the index of the first element in `range` that has changed.
    fn first_change(&self, content: &[T], range: Range<usize>) -> Option<usize> {
        first_difference(&content[range.clone()], &self.before[range.clone()])
            .map(|i| range.start + i)
    }

    /// Returns all elements of the memory, read from the device if the device side is valid.
    fn memory_content(&self) -> Result<Vec<T>> {
        let mut content = vec![T::zeroed(); self.before.len()];
        let bytes = crate::cast::cast_slice_mut(&mut content);
        match self.memory.head() {
            Head::HeadAtDevice | Head::Synced => {
                self.memory.device_handle().download(self.memory.device()?, 0, bytes)?;
            }
            Head::HeadAtHost | Head::Uninitialized => bytes.copy_from_slice(self.memory.host()?),
        }
        Ok(content)
    }
}

/// Returns NaN for every element of an output that a kernel must overwrite but not read. A kernel
/// that reads the NaNs of its output computes a wrong result.
pub(super) fn unset<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(f64::NAN); len]
}

/// Initial value of integer outputs that a kernel must overwrite but not read; floating-point
/// outputs hold NaN instead.
pub(super) const UNSET: u32 = 0x7f7f_7f7f;

/// Number of distinct guard elements; a longer run of guard elements repeats them.
const GUARDS: usize = 0x20;

/// Returns `n` guard elements.
fn guards<T: Storable>(n: usize) -> Vec<T> {
    let period: Vec<T> = (0..GUARDS.min(n)).map(guard).collect();
    let mut guards = repeated(&period, n.div_ceil(GUARDS));
    guards.truncate(n);
    guards
}

/// Returns guard element `i`, which is NaN or huge, so that a sum with a guard element is visibly
/// wrong.
fn guard<T: Storable>(i: usize) -> T {
    let mut guard = [T::zeroed()];
    let bytes = T::bytes_of_mut(&mut guard);
    bytes.fill(0x7f);
    if let Some(low) = bytes.first_mut() {
        *low = 0x40 + (i % GUARDS) as u8;
    }
    guard[0]
}
