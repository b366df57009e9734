//! [`AnyDevice`]: a device of any type, so that nets and solvers are compiled once for all devices.
//!
//! - `handle` defines `AnyDevice` and implements its memory.
//! - `kernels` calls the kernels of the wrapped device; `operand` defines the operands of kernels
//!   with two type parameters.
//! - `erase` converts a device to an `AnyDevice`.

mod erase;
mod handle;
mod kernels;
mod operand;

pub use handle::AnyDevice;
