//! CUDA graphs of kernel launches.

use super::{
    error::{CudaFailure, check_driver},
    kernel_launch::KernelLaunch,
};
use cust::sys::{
    CUgraph, CUgraphExec, CUgraphNode, CUstream, cuGraphAddKernelNode, cuGraphCreate,
    cuGraphDestroy, cuGraphExecDestroy, cuGraphExecKernelNodeSetParams,
    cuGraphInstantiateWithFlags, cuGraphLaunch,
};
use std::ptr;

/// An executable graph of kernel launches, each of which starts when the launch before it is done.
pub(super) struct Graph {
    raw: CUgraph,
    executable: CUgraphExec,
    /// The node of each launch, and the arguments with which the node launches its kernel.
    nodes: Vec<(CUgraphNode, Vec<u64>)>,
}

// SAFETY: any thread may pass graphs to the driver's functions, but only one thread at a time, which
// the lock of the queue ensures.
unsafe impl Send for Graph {}

impl Graph {
    /// Creates a graph of `launches` in the current context.
    pub(super) fn new(launches: &mut [KernelLaunch]) -> Result<Self, CudaFailure> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes of a graph handle.
        check_driver("cuGraphCreate", unsafe { cuGraphCreate(&mut raw, 0) })?;
        // If a later call fails, `graph` is dropped without an executable graph.
        let mut graph = Self { raw, executable: ptr::null_mut(), nodes: Vec::new() };
        for launch in launches {
            let previous = graph.nodes.last().map(|(node, _)| *node);
            let mut node = ptr::null_mut();
            launch.with_node_parameters("cuGraphAddKernelNode", |parameters| {
                let dependencies = previous.as_slice();
                // SAFETY: the dependency is a node of the same graph, and `parameters` describes a
                // launch whose arguments match the kernel's parameters.
                unsafe {
                    cuGraphAddKernelNode(
                        &mut node,
                        raw,
                        dependencies.as_ptr(),
                        dependencies.len(),
                        parameters,
                    )
                }
            })?;
            graph.nodes.push((node, launch.argument_words.clone()));
        }
        // SAFETY: the graph is complete, and `executable` is valid for writes of a handle.
        let result = unsafe { cuGraphInstantiateWithFlags(&mut graph.executable, raw, 0) };
        check_driver("cuGraphInstantiate", result)?;
        Ok(graph)
    }

    /// Gives the nodes of the graph the arguments of `launches`, which have the shapes of the
    /// launches with which the graph was created. Returns the number of changed nodes. Queued
    /// launches of the graph keep their arguments.
    ///
    /// # Errors
    /// After an error, the graph must not be launched.
    pub(super) fn update(&mut self, launches: &mut [KernelLaunch]) -> Result<u64, CudaFailure> {
        let mut changed = 0;
        for ((node, words), launch) in self.nodes.iter_mut().zip(launches) {
            if *words == launch.argument_words {
                continue;
            }
            let executable = self.executable;
            launch.with_node_parameters("cuGraphExecKernelNodeSetParams", |parameters| {
                // SAFETY: the node belongs to the graph of the executable graph, and `parameters`
                // has the node's kernel and arguments that match the kernel's parameters.
                unsafe { cuGraphExecKernelNodeSetParams(executable, *node, parameters) }
            })?;
            words.clone_from(&launch.argument_words);
            changed += 1;
        }
        Ok(changed)
    }

    /// Queues the launches of the graph on a stream of the graph's context, which must be current.
    pub(super) fn launch(&self, stream: CUstream) -> Result<(), CudaFailure> {
        // SAFETY: the executable graph is live. Its arguments are those of launches that the caller
        // would otherwise queue now, so their operands are live, too.
        check_driver("cuGraphLaunch", unsafe { cuGraphLaunch(self.executable, stream) })
    }
}

/// The stream on which the graph was launched must have been synchronized before the graph is
/// dropped, and the graph's context must be current.
impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: `self` owns the graph and the executable graph, and no launch of the graph is
        // queued.
        unsafe {
            if !self.executable.is_null() {
                let _ = cuGraphExecDestroy(self.executable);
            }
            let _ = cuGraphDestroy(self.raw);
        }
    }
}
