//! [`AnyDevice`]: a device of any type, so that nets and solvers are compiled once for all devices.
//!
//! - `handle` defines `AnyDevice` and implements its memory.
//! - `kernels` calls the kernels of the wrapped device; `operand` defines the operands of kernels
//!   with two type parameters, and `kernel_shape` the shapes of kernel calls, which traces record.
//! - `erase` converts a device to an `AnyDevice`.

mod erase;
mod handle;
mod kernel_shape;
mod kernels;
mod operand;

pub use handle::AnyDevice;
