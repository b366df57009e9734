//! Entry points of the driver: lookup of addresses, and conversion of result codes.

use super::library::{NO_DEVICE, library};
use std::{
    cell::Cell,
    ffi::{CStr, c_void},
    mem::transmute,
    os::raw::{c_char, c_uint},
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// The result code `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: c_uint = 500;
/// The result code `CUDA_ERROR_UNKNOWN`.
const UNKNOWN: c_uint = 999;

/// An entry point of the driver, whose address is looked up once.
pub(super) struct Entry {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Entry {
    pub(super) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Returns the address of the entry point, or an error code if the library or the symbol is
    /// missing.
    pub(super) fn find(&self) -> Result<NonNull<c_void>, c_uint> {
        if let Some(known) = NonNull::new(self.address.load(Relaxed)) {
            return Ok(known);
        }
        // SAFETY: `find` only stores the address, so the type of the symbol does not matter.
        let found = unsafe { library()?.get::<*mut c_void>(self.name.to_bytes_with_nul()) };
        let found = found.ok().and_then(|symbol| NonNull::new(*symbol)).ok_or(NOT_FOUND)?;
        self.address.store(found.as_ptr(), Relaxed);
        Ok(found)
    }
}

thread_local! {
    static LAST_ERROR: Cell<c_uint> = const { Cell::new(0) };
}

/// Returns the driver's last error code on this thread, without conversion for `cust`.
pub(crate) fn raw_code() -> c_uint {
    LAST_ERROR.get()
}

/// Returns `code` if `cust` declares it, and otherwise `CUDA_ERROR_UNKNOWN`; [`raw_code`] returns
/// the original code. The enumeration of result codes in `cust` ends with CUDA 11.4, and an
/// undeclared value of the enumeration would be undefined behaviour.
pub(super) fn to_cust_code(code: c_uint) -> c_uint {
    if code != 0 {
        LAST_ERROR.set(code);
    }
    match code {
        0..=8 | 34 | 100..=102 | 200..=202 | 205..=224 | 300..=304 => code,
        400 | 401 | 500 | 600 | 700..=705 | 708..=720 | 800..=809 | 900..=911 => code,
        _ => UNKNOWN,
    }
}

/// Defines functions that forward to the driver library's functions of the same name.
macro_rules! entry_points {
    ($(fn $name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
        #[cfg_attr(not(target_os = "linux"), unsafe(no_mangle))]
        unsafe extern "C" fn $name($($argument: $kind),*) -> c_uint {
            type Function = unsafe extern "C" fn($($kind),*) -> c_uint;
            static ENTRY: $crate::device::cuda::driver::entry::Entry =
                $crate::device::cuda::driver::entry::Entry::new(
                    match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("the name contains a zero byte"),
                    },
                );
            let code = match ENTRY.find() {
                // SAFETY: `cust::sys` declares the same signature for the driver function of the
                // same name.
                Ok(found) => unsafe {
                    std::mem::transmute::<*mut c_void, Function>(found.as_ptr())($($argument),*)
                },
                Err(code) => code,
            };
            $crate::device::cuda::driver::entry::to_cust_code(code)
        }
        )*

        $crate::device::cuda::driver::hidden::define_symbols!(cuGetErrorString $($name)*);
    };
}
pub(super) use entry_points;

/// Stores the description of an error code to `text`. Succeeds even without a driver, because
/// `cust` panics if `cuGetErrorString` fails.
#[cfg_attr(not(target_os = "linux"), unsafe(no_mangle))]
#[allow(non_snake_case)]
pub(super) unsafe extern "C" fn cuGetErrorString(
    error: c_uint,
    text: *mut *const c_char,
) -> c_uint {
    type Function = unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint;
    static ENTRY: Entry = Entry::new(c"cuGetErrorString");
    if let Ok(found) = ENTRY.find() {
        // SAFETY: `cuGetErrorString` has this signature in every version of the driver.
        let code = unsafe { transmute::<*mut c_void, Function>(found.as_ptr())(error, text) };
        if code == 0 {
            return code;
        }
    }
    let unknown = match error {
        NO_DEVICE => c"no CUDA-capable device or no driver found",
        _ => c"unknown error",
    };
    // SAFETY: `cust` passes a pointer that is valid for writing the address of the text.
    unsafe { text.write(unknown.as_ptr()) };
    0
}

/// Returns the name and the description that the driver gives for an error code. The name of an
/// unknown error code contains the code as a number.
pub(crate) fn describe(code: c_uint) -> (String, String) {
    type Function = unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint;
    let lookup = |name: &'static CStr| -> Option<String> {
        let found = Entry::new(name).find().ok()?;
        let mut text = ptr::null();
        // SAFETY: `cuGetErrorName` and `cuGetErrorString` have this signature and return static
        // strings.
        unsafe {
            let code = transmute::<*mut c_void, Function>(found.as_ptr())(code, &mut text);
            let found = code == 0 && !text.is_null();
            found.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    let name = lookup(c"cuGetErrorName").unwrap_or_else(|| format!("CUDA error {code}"));
    let text = lookup(c"cuGetErrorString").unwrap_or_else(|| "no description".into());
    (name, text)
}
