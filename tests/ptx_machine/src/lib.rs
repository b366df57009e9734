//! A machine that runs cortado's PTX on the CPU, for tests.
//!
//! The machine runs the instructions that occur in `kernels/ptx`, as the PTX ISA (version 7.0)
//! defines them. A kernel with any other instruction is rejected with an error. While a kernel
//! runs, the machine checks:
//!
//! - the bounds and the alignment of each access to device, shared and parameter memory;
//! - that registers, shared memory and device memory are written before they are read;
//! - that accesses to shared memory by different threads between two barriers do not conflict;
//! - that no thread accesses device memory that a thread of another block has written in the same
//!   launch, or another thread of the block since the last barrier;
//! - that all lanes take part in the instructions of a warp, and all threads in barriers;
//! - that no integer is divided by zero.
//!
//! The ISA does not define every result exactly. [`Precision`] selects the most precise or the
//! least precise results that the ISA allows.
//!
//! On request, the machine counts the instructions and transfers that determine the speed of a
//! launch on a GPU ([`Counters`]).
//!
//! A fault ends the launch with an error that names the kernel, the line of the PTX file, the thread
//! and the address.

mod arithmetic;
mod convert;
mod device_memory;
mod kernel;
mod random;
mod text;
mod flow;
mod warp;
mod shared;
mod counters;
mod block;
mod access;
mod matrix;
mod warp_operations;
mod instructions;
mod decode;
mod machine;
pub mod interface;

pub use arithmetic::Precision;
pub use counters::{Counters, Kind, Requests};
pub use device_memory::DeviceMemory;
pub use kernel::Kernel;
pub use machine::{Launch, Machine};
pub use text::Module;
