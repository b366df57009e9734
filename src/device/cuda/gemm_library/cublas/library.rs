//! The functions of cuBLAS.

use super::super::{
    files::LibraryFiles,
    functions::{check_status, library},
};
use crate::error::BoxError;
use std::{
    ffi::{c_int, c_longlong, c_void},
    mem::ManuallyDrop,
    path::Path,
};

const FILES: LibraryFiles = LibraryFiles {
    name: "cuBLAS",
    files: if cfg!(windows) {
        &["cublas64_13.dll", "cublas64_12.dll"]
    } else {
        &["libcublas.so.13", "libcublas.so.12", "libcublas.so"]
    },
};

/// First major version of cuBLAS whose functions have the signatures that this file declares.
const MIN_VERSION: c_int = 11;

/// The cuBLAS handle type `cublasHandle_t`.
pub(super) type RawHandle = *mut c_void;

library! {
    FILES, MIN_VERSION;
    fn property = b"cublasGetProperty\0"(c_int, *mut c_int);
    fn create = b"cublasCreate_v2\0"(*mut RawHandle);
    fn destroy = b"cublasDestroy_v2\0"(RawHandle);
    fn set_stream = b"cublasSetStream_v2\0"(RawHandle, *mut c_void);
    fn set_workspace = b"cublasSetWorkspace_v2\0"(RawHandle, *mut c_void, usize);
    fn set_math_mode = b"cublasSetMathMode\0"(RawHandle, c_int);
    fn gemm = b"cublasGemmEx\0"(
        RawHandle, c_int, c_int, c_int, c_int, c_int, *const c_void,
        *const c_void, c_int, c_int, *const c_void, c_int, c_int, *const c_void,
        *mut c_void, c_int, c_int, c_int, c_int,
    );
    fn gemm_batched = b"cublasGemmStridedBatchedEx\0"(
        RawHandle, c_int, c_int, c_int, c_int, c_int, *const c_void,
        *const c_void, c_int, c_int, c_longlong, *const c_void, c_int, c_int, c_longlong,
        *const c_void, *mut c_void, c_int, c_int, c_longlong, c_int, c_int, c_int,
    );
}
