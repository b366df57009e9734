//! NVIDIA's CUDA driver, loaded at run time.
//!
//! `cust` declares the driver's entry points as external symbols. The module `driver` defines the
//! driver's symbols, so that a program links and starts without the driver library. On Linux, the
//! symbols are hidden and weak (`docs/decisions/0033-hidden-driver-symbols.md`). The first call of
//! an entry point looks up the address in the driver library. Without the driver library, opening a
//! device returns an error.

mod entry;
mod hidden;
mod library;
#[allow(non_snake_case)]
mod symbols;

pub(super) use {
    entry::{describe, raw_code},
    library::open,
};
