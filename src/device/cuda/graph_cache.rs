//! The graphs of a queue, by the shapes of their launches.

use super::{
    context::Context,
    error::{CudaFailure, check_driver},
    graph::Graph,
    kernel_launch::{KernelLaunch, LaunchShape},
};
use cust::sys::{CUstream, cuStreamSynchronize};
use std::collections::HashMap;

/// Number of launches from which a graph replaces separate launches.
const MIN_LAUNCHES: usize = 4;

/// Number of sequences of launches that the cache remembers.
const MAX_SEQUENCES: usize = 128;

/// Graphs by the shapes of their launches. A sequence of launches becomes a graph at its second
/// occurrence, because the creation of a graph takes longer than the launches.
#[derive(Default)]
pub(super) struct GraphCache {
    sequences: HashMap<Vec<LaunchShape>, Sequence>,
    /// Number of calls of `launch`, which orders the uses of the sequences.
    now: u64,
    /// Whether the driver failed to create or launch a graph, so that the queue uses no more graphs.
    has_failed: bool,
}

/// A sequence of launches that has occurred at least once.
struct Sequence {
    /// The graph of the sequence; `None` after the first occurrence.
    graph: Option<Graph>,
    last_use: u64,
}

impl GraphCache {
    /// Queues `launches` on the stream as one graph, if the cache has or can create a graph of this
    /// sequence. Returns the number of nodes whose arguments changed, or `None` if nothing was
    /// queued, and the caller must queue the launches one by one. The context must be current.
    pub(super) fn launch(
        &mut self,
        launches: &mut [KernelLaunch],
        context: &Context,
        stream: CUstream,
    ) -> Option<u64> {
        if self.has_failed || launches.len() < MIN_LAUNCHES {
            return None;
        }
        self.now += 1;
        let shapes: Vec<_> = launches.iter().map(KernelLaunch::shape).collect();
        let Some(sequence) = self.sequences.get_mut(&shapes) else {
            self.make_room(stream);
            self.sequences.insert(shapes, Sequence { graph: None, last_use: self.now });
            return None;
        };
        sequence.last_use = self.now;
        let launch = || -> Result<u64, CudaFailure> {
            let changed = match &mut sequence.graph {
                Some(graph) => graph.update(launches)?,
                none => {
                    *none = Some(Graph::new(launches)?);
                    0
                }
            };
            sequence.graph.iter().try_for_each(|graph| graph.launch(stream))?;
            Ok(changed)
        };
        match { launch }() {
            Ok(changed) => Some(changed),
            Err(failure) => {
                let error = context.error(failure);
                log::warn!("{error}; the queue launches kernels one by one from now on");
                self.has_failed = true;
                self.clear(stream);
                None
            }
        }
    }

    /// Removes the sequence that was not used for the longest time, if the cache is full.
    fn make_room(&mut self, stream: CUstream) {
        if self.sequences.len() < MAX_SEQUENCES {
            return;
        }
        let oldest = self.sequences.values().map(|sequence| sequence.last_use).min();
        let is_oldest = |sequence: &Sequence| Some(sequence.last_use) == oldest;
        if self.sequences.values().any(|sequence| is_oldest(sequence) && sequence.graph.is_some()) {
            synchronize(stream);
        }
        self.sequences.retain(|_, sequence| !is_oldest(sequence));
    }

    /// Removes all sequences. The stream's context must be current.
    pub(super) fn clear(&mut self, stream: CUstream) {
        if self.sequences.values().any(|sequence| sequence.graph.is_some()) {
            synchronize(stream);
        }
        self.sequences.clear();
    }
}

/// Waits for the queued launches of the graphs that are about to be dropped. The next wait for the
/// queue returns an error of its work again, because such errors make the context unusable.
fn synchronize(stream: CUstream) {
    // SAFETY: the stream is live, and its context is current.
    let _ = check_driver("cuStreamSynchronize", unsafe { cuStreamSynchronize(stream) });
}
