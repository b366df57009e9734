//! The functions of cuBLASLt, and its descriptors.

use super::super::{
    files::LibraryFiles,
    functions::{check_status, library},
};
use crate::error::BoxError;
use std::{
    ffi::{c_int, c_void},
    mem::ManuallyDrop,
    path::Path,
    ptr,
};

const FILES: LibraryFiles = LibraryFiles {
    name: "cuBLASLt",
    files: if cfg!(windows) {
        &["cublasLt64_13.dll", "cublasLt64_12.dll"]
    } else {
        &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]
    },
};

/// First major version of cuBLASLt whose header has the signatures and constants that this folder
/// uses.
const MIN_VERSION: c_int = 12;

/// An opaque pointer: a handle, a descriptor or a layout.
pub(super) type Raw = *mut c_void;

/// A function that sets an attribute. The arguments are the object, the attribute, and the address
/// and the size of the value.
type Set = unsafe extern "C" fn(Raw, c_int, *const c_void, usize) -> c_int;

library! {
    FILES, MIN_VERSION;
    fn property = b"cublasLtGetProperty\0"(c_int, *mut c_int);
    fn create = b"cublasLtCreate\0"(*mut Raw);
    fn destroy = b"cublasLtDestroy\0"(Raw);
    fn create_operation = b"cublasLtMatmulDescCreate\0"(*mut Raw, c_int, c_int);
    fn destroy_operation = b"cublasLtMatmulDescDestroy\0"(Raw);
    fn set_operation = b"cublasLtMatmulDescSetAttribute\0"(Raw, c_int, *const c_void, usize);
    fn create_layout = b"cublasLtMatrixLayoutCreate\0"(*mut Raw, c_int, u64, u64, i64);
    fn destroy_layout = b"cublasLtMatrixLayoutDestroy\0"(Raw);
    fn set_layout = b"cublasLtMatrixLayoutSetAttribute\0"(Raw, c_int, *const c_void, usize);
    fn create_preference = b"cublasLtMatmulPreferenceCreate\0"(*mut Raw);
    fn destroy_preference = b"cublasLtMatmulPreferenceDestroy\0"(Raw);
    fn set_preference = b"cublasLtMatmulPreferenceSetAttribute\0"(Raw, c_int, *const c_void, usize);
    fn find_algorithms = b"cublasLtMatmulAlgoGetHeuristic\0"(
        Raw, Raw, Raw, Raw, Raw, Raw, Raw, c_int, *mut FoundAlgorithm, *mut c_int,
    );
    fn multiply = b"cublasLtMatmul\0"(
        Raw, Raw, *const c_void, *const c_void, Raw, *const c_void, Raw, *const c_void,
        *const c_void, Raw, *mut c_void, Raw, *const Algorithm, *mut c_void, usize, *mut c_void,
    );
}

/// The type `cublasLtMatmulAlgo_t`.
pub(super) type Algorithm = [u64; 8];

/// The type `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct FoundAlgorithm {
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
    pub(super) status: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// A descriptor of cuBLASLt, which is destroyed on drop.
pub(super) struct Descriptor {
    pub(super) raw: Raw,
    destroy: unsafe extern "C" fn(Raw) -> c_int,
    set: Set,
}

// SAFETY: any thread may use a descriptor, but only one thread at a time, which a mutex ensures.
unsafe impl Send for Descriptor {}

impl Library {
    /// Creates the descriptor of a GEMM. `sums` is the `cublasComputeType_t`, and `scalars` the
    /// `cudaDataType` of α and β.
    pub(super) fn operation(&self, sums: c_int, scalars: c_int) -> Result<Descriptor, String> {
        // SAFETY: `raw` is valid for writing the descriptor.
        let create = |raw: &mut Raw| unsafe { (self.create_operation)(raw, sums, scalars) };
        let functions = (self.destroy_operation, self.set_operation);
        Descriptor::new("cublasLtMatmulDescCreate", create, functions)
    }

    /// Creates the layout of a column-major matrix with elements of the `cudaDataType` `element`.
    pub(super) fn layout(
        &self,
        element: c_int,
        (rows, columns, leading): (usize, usize, usize),
    ) -> Result<Descriptor, String> {
        let (rows, columns, leading) = (rows as u64, columns as u64, leading as i64);
        // SAFETY: `raw` is valid for writing the layout.
        let create =
            |raw: &mut Raw| unsafe { (self.create_layout)(raw, element, rows, columns, leading) };
        let functions = (self.destroy_layout, self.set_layout);
        Descriptor::new("cublasLtMatrixLayoutCreate", create, functions)
    }

    /// Creates the descriptor of the requirements that an algorithm for a GEMM must meet.
    pub(super) fn preference(&self) -> Result<Descriptor, String> {
        // SAFETY: `raw` is valid for writing the preference.
        let create = |raw: &mut Raw| unsafe { (self.create_preference)(raw) };
        let functions = (self.destroy_preference, self.set_preference);
        Descriptor::new("cublasLtMatmulPreferenceCreate", create, functions)
    }
}

impl Descriptor {
    fn new(
        call: &str,
        create: impl FnOnce(&mut Raw) -> c_int,
        (destroy, set): (unsafe extern "C" fn(Raw) -> c_int, Set),
    ) -> Result<Self, String> {
        let mut raw = ptr::null_mut();
        check_status(call, create(&mut raw))?;
        Ok(Self { raw, destroy, set })
    }

    /// Sets an attribute. `V` must be the type that NVIDIA's header states for the attribute;
    /// cuBLASLt rejects values of another size.
    pub(super) fn set<V: Copy>(&self, attribute: c_int, value: V) -> Result<(), String> {
        // SAFETY: the descriptor is live, and cuBLASLt reads `value` during the call.
        let status =
            unsafe { (self.set)(self.raw, attribute, (&raw const value).cast(), size_of::<V>()) };
        check_status("cublasLt…SetAttribute", status)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: `self` owns the descriptor. Queued work does not use the descriptor.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}
