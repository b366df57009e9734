//! The notes that a memory keeps: its name, and its accesses while a diagnosis is open.

use super::{
    context::{LedgerContext, diagnosis_generation, is_diagnosed, with_context},
    diagnosis::{
        history::{Access, Content, CopyEvent, Cost, History, Side, Symptom},
        waste::Waste,
    },
    kernel_call::{DIRECT_ACCESS, KernelCall},
    record::EventKind,
};
use crate::{
    error::Result,
    memory::erased::ErasedMemory,
    sync::{Mutex, MutexGuard, OnceLock},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The name of a memory and the history of its accesses. Takes 16 bytes, and allocates only if the
/// memory gets a name or a diagnosis is open.
pub(in crate::memory) struct MemoryNotes(OnceLock<Box<Mutex<Notes>>>);

#[derive(Default)]
struct Notes {
    name: Option<Arc<str>>,
    history: History,
    /// The [`diagnosis_generation`] in which `history` started.
    generation: u64,
}

impl MemoryNotes {
    pub(in crate::memory) fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(in crate::memory) fn name(&self) -> Option<Arc<str>> {
        self.0.get()?.lock().name.clone()
    }

    pub(in crate::memory) fn set_name(&self, name: Arc<str>) {
        self.lock().name = Some(name);
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.get_or_init(Default::default).lock()
    }

    /// Records an access to `side` of the memory, which has `bytes` bytes on `device`. The caller
    /// has already made the side valid, unless the access overwrites all bytes, but has not yet
    /// made the other side stale.
    ///
    /// # Errors
    /// Returns [`Error::Denied`](crate::Error::Denied) if a policy denies the access as needless.
    #[inline]
    #[track_caller]
    pub(in crate::memory) fn access(
        &self,
        (device, bytes): (&dyn ErasedMemory, usize),
        side: Side,
        access: Access,
    ) -> Result<()> {
        if !is_diagnosed() {
            return Ok(());
        }
        self.diagnose_access(device, bytes, side, access)
    }

    #[cold]
    #[track_caller]
    fn diagnose_access(
        &self,
        device: &dyn ErasedMemory,
        bytes: usize,
        side: Side,
        access: Access,
    ) -> Result<()> {
        let direct_access = KernelCall::new(DIRECT_ACCESS, "");
        let Some(context) = self.diagnosed_context() else { return Ok(()) };
        if side == Side::Device {
            context.diagnoses.iter().for_each(|diagnosis| diagnosis.use_device());
        }
        if device.is_unified() {
            return Ok(());
        }
        let mut notes = self.lock();
        let mut history = notes.current_history();
        let symptom = history.access(side, access, bytes, context.actor(direct_access));
        if let Some(symptom) = symptom {
            context.report((&device.name(), notes.name.as_ref()), symptom)?;
        }
        notes.history = history;
        Ok(())
    }

    /// Records a transfer of the memory through `queue`. `bytes` are its bytes, and `start` is the
    /// time at which the transfer started ([`copy_start`]).
    ///
    /// # Errors
    /// Returns [`Error::Denied`](crate::Error::Denied) if a policy denies the transfer as needless.
    #[inline]
    #[track_caller]
    pub(in crate::memory) fn copied(
        &self,
        queue: &dyn ErasedMemory,
        kind: EventKind,
        bytes: &[u8],
        start: Option<Instant>,
    ) -> Result<()> {
        match start {
            Some(start) => self.diagnose_copy(queue, kind, bytes, start.elapsed()),
            None => Ok(()),
        }
    }

    #[cold]
    #[track_caller]
    fn diagnose_copy(
        &self,
        queue: &dyn ErasedMemory,
        kind: EventKind,
        bytes: &[u8],
        time: Duration,
    ) -> Result<()> {
        let direct_access = KernelCall::new(DIRECT_ACCESS, "");
        let Some(context) = self.diagnosed_context() else { return Ok(()) };
        let actor = context.actor(direct_access);
        let compares = context.diagnoses.iter().any(|diagnosis| diagnosis.compares_contents());
        let cost = Cost { copies: 1, bytes: bytes.len() as u64, time };
        let copy = CopyEvent { kind, content: compares.then(|| Content::of(bytes)), cost };
        let device = queue.name();
        let mut notes = self.lock();
        let mut history = notes.current_history();
        let writer = history.writer().cloned();
        let mut symptoms = history.copied(copy.clone(), &actor);
        if symptoms.is_empty() {
            // Ask every diagnosis, because each of them records the transfer.
            let earlier = context.diagnoses.iter().map(|diagnosis| {
                diagnosis.sent(&copy, &actor, writer.as_ref(), history.lifetime())
            });
            symptoms = earlier.fold(None, Option::or).into_iter().collect();
        }
        for diagnosis in &context.diagnoses {
            let subject = (kind, device.clone(), notes.name.clone());
            diagnosis.record_transfer(subject, (actor.place.clone(), writer.clone()), cost);
        }
        for symptom in symptoms {
            context.report((&device, notes.name.as_ref()), symptom)?;
        }
        notes.history = history;
        drop(notes);
        if kind == EventKind::Upload {
            context.diagnoses.iter().for_each(|diagnosis| diagnosis.use_device());
        } else {
            with_context(|context| {
                let state = &mut context.fallback_state;
                if state.is_fallback {
                    state.downloads.cost.add(cost);
                }
            });
            context.record_wait(queue.queue_id(), &actor.place);
        }
        Ok(())
    }

    /// Returns the ledger context of the calling thread if a diagnosis is open on it. Otherwise
    /// discards the history, which would lack this access.
    fn diagnosed_context(&self) -> Option<LedgerContext> {
        let context = LedgerContext::current();
        if !context.diagnoses.is_empty() {
            return Some(context);
        }
        if let Some(notes) = self.0.get() {
            notes.lock().generation = 0;
        }
        None
    }
}

impl Notes {
    /// Returns a copy of the history, or an empty history if the memory may have been accessed
    /// while no diagnosis was open.
    fn current_history(&mut self) -> History {
        let generation = diagnosis_generation();
        if self.generation != generation {
            (self.generation, self.history) = (generation, History::default());
        }
        self.history.clone()
    }
}

impl LedgerContext {
    /// Records that a transfer at `place` has waited for `queue`.
    fn record_wait(&self, queue: Option<usize>, place: &super::Place) {
        for diagnosis in &self.diagnoses {
            queue.map(|queue| diagnosis.wait(queue, place));
        }
    }
}

/// Returns the current time if a diagnosis is open in the process.
#[inline]
pub(in crate::memory) fn copy_start() -> Option<Instant> {
    is_diagnosed().then(Instant::now)
}

/// Records that the running kernel has copied a result of `bytes` bytes to the host through
/// `queue`.
#[track_caller]
pub(super) fn result_copied(
    device: &str,
    queue: Option<usize>,
    kind: EventKind,
    bytes: usize,
    time: Duration,
) {
    let direct_access = KernelCall::new(DIRECT_ACCESS, "");
    let context = LedgerContext::current();
    let place = context.actor(direct_access).place;
    let cost = Cost { copies: 1, bytes: bytes as u64, time };
    for diagnosis in &context.diagnoses {
        let places = (place.clone(), Some(place.clone()));
        diagnosis.record_transfer((kind, device.to_owned(), None), places, cost);
    }
    context.record_wait(queue, &place);
}

/// Runs `wait`, which waits for `queue` of `device`. If the queue is known and has no work, open
/// diagnoses record the wait as needless.
///
/// # Errors
/// Returns [`Error::Denied`](crate::Error::Denied) if a policy denies the wait as needless.
/// Propagates errors from `wait`.
#[inline]
#[track_caller]
pub(crate) fn diagnose_wait(
    device: &dyn ErasedMemory,
    wait: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !is_diagnosed() {
        return wait();
    }
    let direct_access = KernelCall::new(DIRECT_ACCESS, "");
    let context = LedgerContext::current();
    let Some(queue) = device.queue_id().filter(|_| !context.diagnoses.is_empty()) else {
        return wait();
    };
    let place = context.actor(direct_access).place;
    let earlier = context.diagnoses.iter().map(|diagnosis| diagnosis.wait(queue, &place));
    let Some(other) = earlier.fold(None, Option::or) else { return wait() };
    let saved = Cost::default();
    let symptom = Symptom { waste: Waste::NeedlessWait, place, other: Some(other), saved };
    context.report((&device.name(), None), symptom)?;
    wait()
}
