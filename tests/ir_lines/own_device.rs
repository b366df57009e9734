//! Program that trains a net on a device that the program defines with the four required methods.

use cortado::{Error, Memory, Result, Solver};

/// Device whose memory the host can access only by copies.
#[derive(Clone, Debug)]
struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        let range = dst.get_mut(at..at + src.len());
        range.ok_or_else(|| Error::device("remote", "out of range"))?.copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        let range = src.get(at..at + dst.len());
        dst.copy_from_slice(range.ok_or_else(|| Error::device("remote", "out of range"))?);
        Ok(())
    }
}

cortado::families!(Remote);

fn main() -> Result<()> {
    Solver::<f32>::from_file("examples/digits/solver.prototxt", &Remote)?.solve()
}
