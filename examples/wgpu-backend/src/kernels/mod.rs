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

/// Converts a scalar to the type of the shaders.
fn float<A: Element>(scalar: A) -> f32 {
    scalar.to_f64() as f32
}

/// Returns the WGSL function `source`, which reads an element of `operand`. In-place variants pass
/// their output as `operand`.
fn source_function(operand: &str) -> String {
    format!("fn source(i: u32) -> f32 {{ return {operand}[p.{operand} + i]; }}\n")
}
