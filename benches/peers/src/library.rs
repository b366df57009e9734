//! Loading of BLAS libraries at run time.

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};
use std::{
    env,
    ffi::{CStr, c_char},
};

/// A BLAS library with the CBLAS interface.
#[derive(Debug)]
pub struct Library {
    /// Name of the library.
    pub name: &'static str,
    handle: Handle,
    prefix: &'static str,
}

impl Library {
    /// Loads the library whose path is in the environment variable `variable`, or prints a message.
    fn find(name: &'static str, variable: &str) -> Option<&'static Self> {
        let Some(path) = env::var_os(variable) else {
            eprintln!("{name}: skipped; set {variable} to the path of the library");
            return None;
        };
        // SAFETY: loading runs the library's initializers; the user guarantees that the file is a
        // BLAS library.
        let handle = match unsafe { Handle::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(handle) => handle,
            Err(error) => {
                eprintln!("{name}: skipped: {error}");
                return None;
            }
        };
        let mut library = Self { name, handle, prefix: "" };
        // SAFETY: the code only checks whether the symbol exists and does not call the function.
        if unsafe { library.symbol::<fn()>("cblas_sgemm") }.is_none() {
            library.prefix = "scipy_";
        }
        Some(Box::leak(Box::new(library)))
    }

    /// Returns the function `name`, or `None` if the library lacks the function.
    ///
    /// # Safety
    /// `F` must be the type of the library function `name`.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Option<F> {
        let name = format!("{}{name}", self.prefix);
        // SAFETY: the caller guarantees that `F` is the type of the library function.
        unsafe { self.handle.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    /// Returns the processor for which OpenBLAS chose its kernels, such as `SkylakeX`, or `None` if
    /// the library is not OpenBLAS. OpenBLAS chooses the kernels for the machine's processor, or
    /// for the one that the environment variable `OPENBLAS_CORETYPE` names.
    pub fn core_name(&self) -> Option<String> {
        // SAFETY: the function takes no arguments and returns a pointer to a string.
        let get = unsafe {
            self.symbol::<unsafe extern "C" fn() -> *const c_char>("openblas_get_corename")
        }?;
        // SAFETY: the returned string is static and ends with a zero byte.
        Some(unsafe { CStr::from_ptr(get()) }.to_string_lossy().into_owned())
    }

    fn set_threads(&self, count: usize) {
        for name in ["openblas_set_num_threads", "MKL_Set_Num_Threads"] {
            // SAFETY: both functions that set the number of threads take a C int and return
            // nothing.
            if let Some(set) = unsafe { self.symbol::<unsafe extern "C" fn(i32)>(name) } {
                // SAFETY: the library's function accepts any positive number of threads.
                unsafe { set(count as i32) };
            }
        }
    }
}

/// BLAS libraries with which the benchmarks compare cortado.
#[derive(Debug)]
pub struct Peers {
    /// Loaded BLAS libraries.
    pub libraries: Vec<&'static Library>,
}

impl Peers {
    /// Loads the BLAS libraries whose paths are in the environment variables.
    pub fn find() -> Self {
        let openblas = Library::find("OpenBLAS", "CORTADO_PEER_OPENBLAS");
        let mkl = Library::find("MKL", "CORTADO_PEER_MKL");
        Self { libraries: openblas.into_iter().chain(mkl).collect() }
    }

    /// Sets the number of threads of each library.
    pub fn set_threads(&self, count: usize) {
        self.libraries.iter().for_each(|library| library.set_threads(count));
    }
}
