//! Libraries that are loaded when the program runs.

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};
use std::env;

/// A library with the C interface of the BLAS.
#[derive(Debug)]
pub struct Library {
    /// Whose it is.
    pub name: &'static str,
    handle: Handle,
    /// What its names begin with.
    prefix: &'static str,
}

impl Library {
    /// The library that the environment variable `at` names; tells if there is none.
    fn find(name: &'static str, at: &str) -> Option<&'static Self> {
        let Some(path) = env::var_os(at) else {
            eprintln!("{name} is left out: {at} names no library");
            return None;
        };
        // SAFETY: loading runs the library's own start, which is that of a BLAS.
        let handle = match unsafe { Handle::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(handle) => handle,
            Err(error) => {
                eprintln!("{name} is left out: {error}");
                return None;
            }
        };
        let mut library = Self { name, handle, prefix: "" };
        // SAFETY: the symbol is looked for, not called.
        if unsafe { library.symbol::<fn()>("cblas_sgemm") }.is_none() {
            library.prefix = "scipy_";
        }
        Some(Box::leak(Box::new(library)))
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `F` is its type.
    pub unsafe fn symbol<F: Copy>(&self, name: &str) -> Option<F> {
        let name = format!("{}{name}", self.prefix);
        // SAFETY: the caller's.
        unsafe { self.handle.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    /// Sets how many threads it works with.
    fn threads(&self, count: usize) {
        for name in ["openblas_set_num_threads", "MKL_Set_Num_Threads"] {
            // SAFETY: both take a C int and return nothing.
            if let Some(set) = unsafe { self.symbol::<unsafe extern "C" fn(i32)>(name) } {
                unsafe { set(count as i32) };
            }
        }
    }
}

/// Who is there.
#[derive(Debug)]
pub struct Peers {
    /// Libraries that were found.
    pub libraries: Vec<&'static Library>,
}

impl Peers {
    /// Looks for all of them.
    pub fn find() -> Self {
        let openblas = Library::find("OpenBLAS", "CORTADO_PEER_OPENBLAS");
        let mkl = Library::find("MKL", "CORTADO_PEER_MKL");
        Self { libraries: openblas.into_iter().chain(mkl).collect() }
    }

    /// Sets how many threads each works with.
    pub fn threads(&self, count: usize) {
        self.libraries.iter().for_each(|library| library.threads(count));
    }
}
