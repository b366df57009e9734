//! Launches that a queue defers, in order to queue several launches as one CUDA graph.
//!
//! Decisions:
//! - A deferred launch contains its arguments. Before a graph is launched, each node whose arguments
//!   differ from the launch's arguments is updated, so a graph never uses outdated arguments.
//! - Everything else that the queue does (a transfer, a wait, an order between queues) first queues
//!   the deferred launches. Memory that is freed meanwhile is freed after the deferred launches.
//! - The queue cuts the launches after fixed numbers of launches since the last wait. A thread that
//!   queues the deferred launches at an unpredictable time, such as a prefetch thread, therefore
//!   disturbs only one graph.

use super::{
    context::Context, graph_cache::GraphCache, kernel_launch::KernelLaunch,
    launch_counts::LaunchCounts,
};
use crate::error::{Error, Result};
use cust::sys::{CUdeviceptr, CUstream};
use std::mem;

/// Largest number of launches in a graph. The GPU does not start a launch before the host has
/// prepared the rest of the graph, so that longer graphs delay the GPU.
const MAX_LAUNCHES: usize = 32;

/// The deferred launches of a queue, and the queue's graphs.
#[derive(Default)]
pub(super) struct Deferred {
    launches: Vec<KernelLaunch>,
    /// Memory to free after the deferred launches.
    freed: Vec<CUdeviceptr>,
    /// Number of launches since the last wait.
    count: usize,
    graphs: GraphCache,
    /// The first error of a deferred launch, which the next wait returns.
    failure: Option<Error>,
}

impl Deferred {
    /// Defers a launch. Returns whether the caller must now call [`flush`](Self::flush).
    #[must_use]
    pub(super) fn push(&mut self, launch: KernelLaunch) -> bool {
        self.launches.push(launch);
        self.count += 1;
        self.count.is_multiple_of(MAX_LAUNCHES)
    }

    /// Frees memory after the deferred launches, and at once if there are none. The context must be
    /// current.
    pub(super) fn free(&mut self, address: CUdeviceptr, context: &Context, stream: CUstream) {
        match self.launches.is_empty() {
            true => context.pool.give(address, stream),
            false => self.freed.push(address),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// Queues the deferred launches on the stream, and then frees. The context must be current.
    /// Returns whether one of the kernels reports invalid values.
    pub(super) fn flush(
        &mut self,
        context: &Context,
        stream: CUstream,
        counts: &mut LaunchCounts,
    ) -> bool {
        let mut launches = mem::take(&mut self.launches);
        let reports_values = launches.iter().any(|launch| launch.reports_values);
        let number = launches.len() as u64;
        if let Some(changed) = self.graphs.launch(&mut launches, context, stream) {
            launches.iter().for_each(|launch| context.launches.add(stream, launch.pending()));
            counts.graphs += 1;
            counts.graph_kernels += number;
            counts.updated_kernels += changed;
        } else {
            for launch in &mut launches {
                counts.kernels += 1;
                if let Err(error) = launch.enqueue(context, stream) {
                    self.failure.get_or_insert(error);
                }
            }
        }
        // The capacity of the list is reused.
        launches.clear();
        self.launches = launches;
        self.freed.drain(..).for_each(|address| context.pool.give(address, stream));
        reports_values
    }

    /// Returns the error of a deferred launch since the last wait, and starts to count launches
    /// anew. The caller waits for the queue.
    pub(super) fn start_wait(&mut self) -> Result<()> {
        self.count = 0;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Destroys the queue's graphs. The context must be current.
    pub(super) fn clear(&mut self, stream: CUstream) {
        self.graphs.clear(stream);
    }
}
