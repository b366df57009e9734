//! NVIDIA's driver, opened when it is first needed.
//!
//! `cust` names the driver's entry points as a linker would find them. They are defined here
//! instead, so that a program starts on any machine: each looks its place up in the driver's
//! library when it is first called. A machine without the library has no devices, which is an
//! error like another.

mod entry;
mod library;
#[allow(non_snake_case)]
mod symbols;

pub(super) use {
    entry::{describe, raw_code},
    library::open,
};
