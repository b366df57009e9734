//! PTX modules, loaded when one of their kernels is first launched.

use super::error::{CudaFailure, from_cust};
use crate::sync::Mutex;
use cust::{module::Module, sys::CUfunction};
use std::collections::HashMap;

/// The name, requirements and argument sizes of a kernel in the committed PTX.
#[derive(Debug)]
pub(super) struct PtxKernel {
    /// Symbol of the kernel.
    pub(super) name: &'static str,
    /// Lowest compute capability for which this kernel exists, times 10.
    pub(super) capability: u32,
    module: usize,
    /// Size of each kernel parameter, in bytes.
    pub(super) parameters: &'static [usize],
}

// The build script defines three tables: `CAPABILITIES`, the compute capabilities times 10, in
// ascending order; `MODULES`, the PTX of each source file for each of these capabilities; and
// `KERNELS`, the kernels sorted by name.
include!(concat!(env!("OUT_DIR"), "/cuda_kernels.rs"));

fn find(name: &str) -> Option<&'static PtxKernel> {
    let at = KERNELS.binary_search_by(|kernel| kernel.name.cmp(name)).ok()?;
    KERNELS.get(at)
}

/// The modules that a context has loaded.
pub(super) struct Modules {
    /// Compute capability of the GPU, times 10.
    capability: u32,
    loaded: Mutex<LoadedModules>,
}

#[derive(Default)]
struct LoadedModules {
    functions: HashMap<&'static str, Function>,
    modules: HashMap<usize, Module>,
}

/// A loaded kernel, whose module lives as long as the context.
#[derive(Clone, Copy)]
pub(super) struct Function(pub(super) CUfunction);

// SAFETY: any thread may pass a kernel to the driver's functions.
unsafe impl Send for Function {}

impl Modules {
    /// Creates an empty set of modules for a GPU. `capability` is the GPU's compute capability
    /// times 10, and is at least the first of `CAPABILITIES`.
    pub(super) fn new(capability: u32) -> Self {
        Self { capability, loaded: Mutex::default() }
    }

    /// Returns the kernel called `name`, if it exists for the GPU's compute capability.
    pub(super) fn find(&self, name: &str) -> Option<&'static PtxKernel> {
        find(name).filter(|kernel| kernel.capability <= self.capability)
    }

    /// Returns a loaded kernel, and first loads the kernel's PTX module if necessary. The CUDA
    /// context must be current.
    pub(super) fn function(&self, kernel: &'static PtxKernel) -> Result<Function, CudaFailure> {
        let LoadedModules { functions, modules } = &mut *self.loaded.lock();
        if let Some(known) = functions.get(kernel.name) {
            return Ok(*known);
        }
        let module = match modules.entry(kernel.module) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let target = CAPABILITIES.iter().rposition(|target| *target <= self.capability);
                let ptx = MODULES[kernel.module][target.unwrap_or_default()];
                place.insert(Module::from_ptx(ptx, &[]).map_err(from_cust("cuModuleLoadDataEx"))?)
            }
        };
        let cust_function =
            module.get_function(kernel.name).map_err(from_cust("cuModuleGetFunction"))?;
        let function = Function(cust_function.to_raw());
        functions.insert(kernel.name, function);
        Ok(function)
    }
}

#[cfg(test)]
mod tests {
    use super::{KERNELS, find};

    #[test]
    fn kernels_are_found_by_name() {
        assert!(KERNELS.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(find("axpy_bf16").unwrap().parameters, [8, 4, 8, 8]);
        assert!(find("axpy").is_none());
        let capabilities = ["gemm_large_f16", "gemm_large_bf16", "gemm_tf32_small_f32"]
            .map(|name| find(name).unwrap().capability);
        assert_eq!(capabilities, [75, 80, 80]);
    }
}
