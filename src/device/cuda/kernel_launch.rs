//! The launch of a CUDA kernel, with all of its arguments.

use super::{
    context::Context,
    error::{CudaFailure, PendingLaunch, check_driver},
    module::{Function, PtxKernel},
};
use crate::{error::Result, memory::DeviceWork};
use cust::sys::{CUDA_KERNEL_NODE_PARAMS, CUstream, cuLaunchKernel};
use std::{ffi::c_void, panic::Location, ptr};

/// A launch of a kernel. The number and the sizes of the arguments match the parameters that the
/// PTX declares.
pub(super) struct KernelLaunch {
    pub(super) kernel: &'static PtxKernel,
    pub(super) function: Function,
    pub(super) blocks: [u32; 3],
    pub(super) threads: [u32; 3],
    /// The kernel arguments, each aligned to eight bytes.
    pub(super) argument_words: Vec<u64>,
    /// Index in `argument_words` at which each argument starts.
    pub(super) starts: Vec<usize>,
    /// What the launch computes, and where it was called.
    pub(super) work: DeviceWork,
    pub(super) site: &'static Location<'static>,
    /// Whether the kernel reports invalid values.
    pub(super) reports_values: bool,
}

/// The kernel, blocks and threads of a launch: all that distinguishes launches, except arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaunchShape {
    function: usize,
    blocks: [u32; 3],
    threads: [u32; 3],
}

impl KernelLaunch {
    pub(super) fn shape(&self) -> LaunchShape {
        let Self { function, blocks, threads, .. } = *self;
        LaunchShape { function: function.0 as usize, blocks, threads }
    }

    /// Returns the addresses of the arguments, which are valid until `self` changes.
    fn arguments(&mut self) -> Vec<*mut c_void> {
        let words = &mut self.argument_words;
        self.starts.iter().map(|start| (&raw mut words[*start]).cast()).collect()
    }

    /// Queues the launch on a stream of the kernel's context, which must be current. If the driver
    /// accepts the launch, adds it to the context's recent launches.
    pub(super) fn enqueue(&mut self, context: &Context, stream: CUstream) -> Result<()> {
        let ([gx, gy, gz], [bx, by, bz]) = (self.blocks, self.threads);
        let mut arguments = self.arguments();
        // SAFETY: the sizes of the arguments match the parameters that the PTX declares. The driver
        // copies the arguments during the call. Each method that launches a kernel checks that its
        // operands hold the elements that the kernel accesses. The operands are freed, in queue
        // order, after the launch.
        let result = unsafe {
            cuLaunchKernel(
                self.function.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                0,
                stream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        context.check(self.kernel.name, result)?;
        // An error of `cuLaunchKernel` comes from an earlier launch, so only a successful launch
        // may cause later errors.
        context.launches.add(stream, self.pending());
        Ok(())
    }

    /// Returns the description of this launch for errors that it may cause.
    pub(super) fn pending(&self) -> PendingLaunch {
        PendingLaunch { kernel: self.kernel.name, site: self.site }
    }

    /// Calls `set` with the parameters of a graph node for this launch. `set` returns the result of
    /// the driver function `call`, which copies the parameters.
    pub(super) fn with_node_parameters(
        &mut self,
        call: &'static str,
        set: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> cust::sys::CUresult,
    ) -> Result<(), CudaFailure> {
        let mut arguments = self.arguments();
        let ([gx, gy, gz], [bx, by, bz]) = (self.blocks, self.threads);
        let parameters = CUDA_KERNEL_NODE_PARAMS {
            func: self.function.0,
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: 0,
            kernelParams: arguments.as_mut_ptr(),
            extra: ptr::null_mut(),
        };
        check_driver(call, set(&parameters))
    }
}
