//! The accesses to one memory, by which a diagnosis recognizes needless work.

use super::{place::Place, waste::Waste};
use crate::memory::ledger::record::EventKind;
use std::{
    hash::{DefaultHasher, Hasher},
    ops::Range,
    sync::{Arc, Weak},
    time::Duration,
};

/// A side of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::memory) enum Side {
    Host,
    Device,
}

/// How an access uses a side of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::memory) enum Access {
    /// Reads the value.
    Read,
    /// Makes the side valid without reading it, as a prefetch does.
    Fetch,
    /// Reads and writes the value.
    Update,
    /// Overwrites the given range of bytes. The other bytes keep their value.
    OverwritePart(Range<usize>),
    /// Overwrites all bytes.
    Overwrite,
}

/// The downloads of one call of a kernel that fell back to the host.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::memory::ledger) struct FallbackDownloads {
    /// Number of the call, unique in the process.
    pub(in crate::memory::ledger) call: u64,
    pub(in crate::memory::ledger) cost: Cost,
}

/// The place of an access, and the downloads that the kernel call at this place has caused so far.
#[derive(Clone, Debug)]
pub(in crate::memory::ledger) struct Actor {
    pub(in crate::memory::ledger) place: Place,
    pub(in crate::memory::ledger) downloads: FallbackDownloads,
}

/// The number, bytes and time of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::memory::ledger) struct Cost {
    pub(in crate::memory::ledger) copies: u64,
    pub(in crate::memory::ledger) bytes: u64,
    pub(in crate::memory::ledger) time: Duration,
}

impl Cost {
    pub(in crate::memory::ledger) fn add(&mut self, other: Self) {
        self.copies += other.copies;
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

/// Needless work that an access or a transfer reveals.
#[derive(Clone, Debug)]
pub(in crate::memory::ledger) struct Symptom {
    pub(in crate::memory::ledger) waste: Waste,
    pub(in crate::memory::ledger) place: Place,
    pub(in crate::memory::ledger) other: Option<Place>,
    pub(in crate::memory::ledger) saved: Cost,
}

impl Symptom {
    /// Describes the needless work for a warning or an error, with both places and the remedy.
    pub(in crate::memory::ledger) fn describe(
        &self,
        device: &str,
        memory: Option<&Arc<str>>,
    ) -> String {
        let Self { waste, place, other, .. } = self;
        let memory = memory.map(|memory| format!(", memory `{memory}`")).unwrap_or_default();
        let [role, other_role] = waste.roles();
        let other = match other {
            Some(other) => other.to_string(),
            None => "an access before the diagnosis".into(),
        };
        let remedy = waste.remedy();
        format!("{waste} on `{device}`{memory}: {role} {place}; {other_role} {other}; {remedy}")
    }
}

/// The content of a transfer, as far as a diagnosis compares contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::memory::ledger) struct Content {
    pub(in crate::memory::ledger) hash: u64,
    /// Whether all four-byte words of the content are equal.
    is_constant: bool,
}

impl Content {
    pub(in crate::memory::ledger) fn of(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        let mut words = bytes.chunks_exact(4);
        let first = words.next();
        let is_constant = first.is_some_and(|first| words.all(|word| word == first));
        Self { hash: hasher.finish(), is_constant }
    }
}

/// A transfer of a memory.
#[derive(Clone, Debug)]
pub(in crate::memory::ledger) struct CopyEvent {
    pub(in crate::memory::ledger) kind: EventKind,
    pub(in crate::memory::ledger) content: Option<Content>,
    pub(in crate::memory::ledger) cost: Cost,
}

/// A fetch that is needless if a write overwrites all bytes before a read.
#[derive(Clone, Debug)]
struct Fetch {
    side: Side,
    place: Place,
    cost: Cost,
    /// Disjoint ranges that have been overwritten since, in ascending order.
    overwritten: Vec<Range<usize>>,
}

/// The last write of a memory.
#[derive(Clone, Debug)]
struct Write {
    actor: Actor,
    /// Whether an access has read the written value.
    is_read: bool,
}

/// The accesses to one memory since a diagnosis was opened.
#[derive(Clone, Debug, Default)]
pub(in crate::memory::ledger) struct History {
    last_write: Option<Write>,
    last_copy: Option<CopyEvent>,
    /// The copy that the current access has caused, until the access itself is recorded.
    fresh_copy: Option<CopyEvent>,
    /// A copy that no access has read yet, with the side that received the copy.
    unread_copy: Option<(Side, Place, Cost)>,
    fetch: Option<Fetch>,
    /// A download for an access outside kernels, if the access may have overwritten all bytes with
    /// one constant.
    constant_candidate: Option<Fetch>,
    /// Number of the last fallback whose downloads a finding contains.
    counted_fallback: u64,
    /// Lives as long as the memory.
    lifetime: Option<Arc<()>>,
}

impl History {
    /// Returns the place that wrote the current value; `None` if the value was written before the
    /// diagnosis was opened.
    pub(in crate::memory::ledger) fn writer(&self) -> Option<&Place> {
        self.last_write.as_ref().map(|write| &write.actor.place)
    }

    /// Returns a weak reference, which cannot be upgraded once the memory has been dropped.
    pub(in crate::memory::ledger) fn lifetime(&mut self) -> Weak<()> {
        Arc::downgrade(self.lifetime.get_or_insert_default())
    }

    /// Records an access of `actor` to `side` of a memory of `bytes` bytes. Returns needless work
    /// that the access reveals.
    pub(in crate::memory::ledger) fn access(
        &mut self,
        side: Side,
        access: Access,
        bytes: usize,
        actor: Actor,
    ) -> Option<Symptom> {
        let copy = self.fresh_copy.take();
        match access {
            Access::Read => {
                self.read(side);
                None
            }
            Access::Fetch => {
                if let Some(copy) = copy {
                    self.unread_copy = Some((side, actor.place.clone(), copy.cost));
                    self.fetch = Some(Fetch::new(side, actor.place, copy.cost));
                }
                None
            }
            Access::Update => {
                let symptom = self.stale_copy(side, &actor);
                self.read(side);
                // The content before the write must not be constant, because any elementwise
                // operation turns a constant into another constant, although it reads the content.
                let is_variable = |content: Content| !content.is_constant;
                self.constant_candidate = copy
                    .filter(|copy| copy.content.is_some_and(is_variable))
                    .filter(|_| actor.place.is_direct_access())
                    .map(|copy| Fetch::new(side, actor.place.clone(), copy.cost));
                self.write(actor);
                symptom
            }
            Access::OverwritePart(range) => {
                let mut symptom = self.stale_copy(side, &actor);
                if let Some(copy) = copy {
                    self.fetch = Some(Fetch::new(side, actor.place.clone(), copy.cost));
                }
                self.unread_copy = None;
                self.fetch.take_if(|fetch| fetch.side != side);
                if let Some(fetch) = &mut self.fetch {
                    fetch.cover(range);
                    if fetch.overwritten == [Range { start: 0, end: bytes }] {
                        symptom = self.fetch.take().map(|fetch| fetch.symptom(&actor.place));
                    }
                }
                self.write(actor);
                // The bytes outside the range may still be read.
                self.last_write.iter_mut().for_each(|write| write.is_read = true);
                symptom
            }
            Access::Overwrite => {
                let symptom = self.stale_copy(side, &actor).or_else(|| self.unread(bytes, &actor));
                self.write(actor);
                (self.fetch, self.unread_copy) = (None, None);
                symptom
            }
        }
    }

    /// Records a transfer that `actor` has caused. Returns needless work that the transfer reveals.
    pub(in crate::memory::ledger) fn copied(
        &mut self,
        copy: CopyEvent,
        actor: &Actor,
    ) -> Vec<Symptom> {
        let constant = self.constant_candidate.take();
        let symptoms = match copy.kind {
            EventKind::Upload => {
                let is_constant = copy.content.is_some_and(|content| content.is_constant);
                let constant = constant.filter(|_| is_constant).map(|fetch| {
                    let writer = fetch.place.clone();
                    fetch.symptom(&writer)
                });
                let fallback = self.fallback(&copy, &actor.place);
                let content = fallback.or_else(|| self.same_content(&copy, &actor.place));
                constant.into_iter().chain(content).collect()
            }
            _ => self.same_content(&copy, &actor.place).into_iter().collect(),
        };
        (self.last_copy, self.fresh_copy) = (Some(copy.clone()), Some(copy));
        symptoms
    }

    /// Returns the transfer `copy`, which `reader` needs, as needless if it has the content of the
    /// previous transfer.
    fn same_content(&self, copy: &CopyEvent, reader: &Place) -> Option<Symptom> {
        let previous = self.last_copy.as_ref()?;
        if previous.content?.hash != copy.content?.hash {
            return None;
        }
        let is_return = previous.kind != copy.kind;
        let waste = if is_return { Waste::RoundTrip } else { Waste::SentAgain };
        let (place, other) = (reader.clone(), self.writer().cloned());
        Some(Symptom { waste, place, other, saved: copy.cost })
    }

    /// Returns the copies that a fallback costs if `copy` uploads the result of the fallback to the
    /// native kernel `reader`.
    fn fallback(&mut self, copy: &CopyEvent, reader: &Place) -> Option<Symptom> {
        let Actor { place, downloads } = &self.last_write.as_ref()?.actor;
        if downloads.cost.copies == 0 || !reader.is_native_kernel() {
            return None;
        }
        let mut saved = copy.cost;
        if self.counted_fallback != downloads.call {
            self.counted_fallback = downloads.call;
            saved.add(downloads.cost);
        }
        let (place, other) = (place.clone(), Some(reader.clone()));
        Some(Symptom { waste: Waste::Fallback, place, other, saved })
    }

    fn read(&mut self, side: Side) {
        self.last_write.iter_mut().for_each(|write| write.is_read = true);
        self.unread_copy.take_if(|(copied_side, ..)| *copied_side == side);
        self.fetch = None;
    }

    fn write(&mut self, actor: Actor) {
        self.last_write = Some(Write { actor, is_read: false });
    }

    /// Returns the needless copy that a write to `side` makes stale before an access has read it.
    fn stale_copy(&mut self, side: Side, actor: &Actor) -> Option<Symptom> {
        let (_, place, saved) = self.unread_copy.take_if(|(copied, ..)| *copied != side)?;
        Some(Symptom {
            waste: Waste::OverwrittenUnread,
            place: actor.place.clone(),
            other: Some(place),
            saved,
        })
    }

    /// Returns the needless copy or write whose bytes `actor` overwrites before an access has read
    /// them.
    fn unread(&mut self, bytes: usize, actor: &Actor) -> Option<Symptom> {
        let (place, saved) = match (self.unread_copy.take(), &self.last_write) {
            (Some((_, place, cost)), _) => (place, cost),
            (None, Some(write)) if !write.is_read => {
                let cost = Cost { bytes: bytes as u64, ..Cost::default() };
                (write.actor.place.clone(), cost)
            }
            _ => return None,
        };
        Some(Symptom {
            waste: Waste::OverwrittenUnread,
            place: actor.place.clone(),
            other: Some(place),
            saved,
        })
    }
}

impl Fetch {
    fn new(side: Side, place: Place, cost: Cost) -> Self {
        Self { side, place, cost, overwritten: Vec::new() }
    }

    /// Adds `range` to the overwritten ranges.
    fn cover(&mut self, range: Range<usize>) {
        self.overwritten.push(range);
        self.overwritten.sort_by_key(|range| range.start);
        self.overwritten.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
    }

    /// Returns the fetch as needless: all its bytes have been overwritten, the last ones by
    /// `writer`.
    fn symptom(self, writer: &Place) -> Symptom {
        Symptom {
            waste: Waste::FetchedOverwritten,
            place: self.place,
            other: Some(writer.clone()),
            saved: self.cost,
        }
    }
}
