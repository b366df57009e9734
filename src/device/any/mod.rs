//! A device of any type, so that the code above the kernels is compiled once for all devices.
//!
//! - `handle` has the type and its memory.
//! - `kernels` calls the kernels of the device, for one element type at a time; `operand` has the
//!   operands of kernels with two types.
//! - `erase` makes an `AnyDevice` of a device.

mod erase;
mod handle;
mod kernels;
mod operand;

pub use handle::AnyDevice;
