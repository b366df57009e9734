//! A cortado backend in WGSL compute shaders, on any adapter that wgpu finds: a GPU or a software
//! renderer, through Vulkan, Metal or Direct3D 12. The README describes how the backend was
//! written.
//!
//! Kernels with a shader are native for `f32`. For element types other than `f32`, and without a
//! shader, a kernel falls back to the host.

#![warn(missing_docs)]

mod device;
mod kernel;
mod kernel_errors;
mod kernels;
mod memory;
mod stream;

pub use device::WgpuDevice;
