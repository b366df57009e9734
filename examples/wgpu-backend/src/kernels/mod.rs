//! The kernels, family by family.

mod blas;
mod convolution;
mod elementwise;
mod fold;
mod gemm;
mod indexing;
mod losses;
mod normalize;
mod pooling;
mod random;
mod reductions;
mod scratch;
mod update;

use cortado::Element;

/// A scalar of a native kernel.
fn float<A: Element>(scalar: A) -> f32 {
    scalar.to_f64() as f32
}

/// `unary`, `binary`, … for which another operand may stand in for the output: the WGSL function
/// `source` that reads it.
fn source_of(operand: &str) -> String {
    format!("fn source(i: u32) -> f32 {{ return {operand}[p.{operand} + i]; }}\n")
}
