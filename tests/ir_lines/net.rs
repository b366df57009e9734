//! Program that trains a net in Caffe's text format, read from a file, on the CPU.

use cortado::{CpuDevice, Result, Solver};

fn main() -> Result<()> {
    Solver::<f32>::from_file("examples/digits/solver.prototxt", &CpuDevice::new())?.solve()
}
