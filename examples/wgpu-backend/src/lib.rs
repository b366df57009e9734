//! A backend of cortado in WGSL compute shaders, on whatever wgpu finds: Vulkan, Metal or
//! Direct3D 12, a GPU or a processor that plays one. The README tells how it came to be.
//!
//! What is native is so for `f32`; other elements, and kernels that have no shader, run on the
//! host, by default.

#![warn(missing_docs)]

mod complaints;
mod device;
mod kernel;
mod kernels;
mod memory;
mod stream;

pub use device::WgpuDevice;
