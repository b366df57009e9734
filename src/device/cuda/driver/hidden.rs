//! The symbols of the driver's entry points, to which `cust` links.
//!
//! On Linux, assembly defines the symbols, because stable Rust has no attributes for the visibility
//! and the binding of a symbol. The code at each symbol jumps to the Rust function of the same
//! name. On other systems, the Rust functions themselves are the symbols, which are not hidden.

/// Defines a symbol for each of the named functions. The functions must be in scope.
///
/// A hidden symbol is visible only within the program or the shared library that contains cortado.
/// If another crate in the same program defines a symbol of the same name, the linker uses that
/// definition instead of the weak symbol.
#[cfg(target_os = "linux")]
macro_rules! define_symbols {
    ($($name:ident)*) => {
        std::arch::global_asm!(
            ".pushsection .text.cortado_cuda_driver, \"ax\"",
            $(
                concat!(".weak ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ", %function"),
                concat!(stringify!($name), ":"),
                $crate::device::cuda::driver::hidden::jump_to!($name),
            )*
            ".popsection",
            $($name = sym $name,)*
        );
    };
}

#[cfg(not(target_os = "linux"))]
macro_rules! define_symbols {
    ($($name:ident)*) => {};
}

/// Expands to the instruction that jumps to a function.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
macro_rules! jump_to {
    ($name:ident) => {
        concat!("jmp {", stringify!($name), "}")
    };
}

#[cfg(all(target_os = "linux", not(target_arch = "x86_64")))]
macro_rules! jump_to {
    ($name:ident) => {
        concat!("b {", stringify!($name), "}")
    };
}

pub(super) use define_symbols;
#[cfg(target_os = "linux")]
pub(super) use jump_to;
