//! Kernels of the backend, in one module per kernel family.

mod blas;
mod convolution;
mod elementwise;
mod gemm;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reduce_launch;
mod reductions;
mod scratch;
mod update;

use cortado::Element;

/// Converts a scalar to `f32`, the type of the shaders' scalars.
fn float<A: Element>(scalar: A) -> f32 {
    scalar.to_f64() as f32
}

/// Returns the WGSL function `source`, which reads an element of `operand`. If a kernel runs in
/// place, `operand` is the kernel's output.
fn source_function(operand: &str) -> String {
    format!("fn source(i: u32) -> f32 {{ return {operand}[p.{operand} + i]; }}\n")
}
