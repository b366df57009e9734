//! A benchmark case, which compares a kernel of cortado with other libraries, and its operands.

use crate::{library::Peers, operand::Operand};
use cortado::{Element, host::Workers, kernel::slices::uniform, op::RngKey};

/// Amount of work of one kernel call.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Number of floating-point operations.
    Flops(u64),
    /// Total size of all operands in bytes. An operand that the kernel both reads and writes is
    /// counted once.
    Bytes(u64),
}

/// One library's kernel call for a benchmark case.
pub struct Run {
    /// Name of the library.
    pub library: &'static str,
    /// Closure that calls the library's kernel once.
    pub call: Box<dyn FnMut()>,
}

impl Run {
    pub(crate) fn new(library: &'static str, call: impl FnMut() + 'static) -> Self {
        Self { library, call: Box::new(call) }
    }
}

/// Function that creates the operands and the runs of a case just before the benchmark times the
/// runs.
pub(crate) type RunFactory = Box<dyn Fn(&Peers, &Workers) -> Vec<Run>>;

/// Benchmark case: a kernel with operands of one size.
pub struct Case {
    /// Name of the kernel or group of kernels, such as `sgemm` or `level1`.
    pub group: &'static str,
    /// Kernel name and problem size, unique within the group.
    pub name: String,
    /// Amount of work of one kernel call.
    pub work: Work,
    /// Function that creates one run for each library that implements the kernel, starting with
    /// cortado.
    pub runs: RunFactory,
}

impl Case {
    pub(crate) fn new(
        group: &'static str,
        name: String,
        work: Work,
        runs: impl Fn(&Peers, &Workers) -> Vec<Run> + 'static,
    ) -> Self {
        Self { group, name, work, runs: Box::new(runs) }
    }
}

/// Vector lengths of the benchmark cases: the shortest vectors fit in L1, and the longest only in
/// main memory.
pub(crate) const LENGTHS: [usize; 8] =
    [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

/// Returns a vector of uniformly distributed random elements between `min` and `max`.
pub(crate) fn vector<T: Element>(len: usize, [min, max]: [f64; 2]) -> Operand<T> {
    let x = Operand::zeros(len);
    uniform(&Workers::sequential(), RngKey::new(len as u64), min, max, &mut x.get_mut())
        .expect("finite bounds in order");
    x
}

/// Returns a run named `copy`, which copies `len` elements and shows the limit that the memory
/// bandwidth sets.
pub(crate) fn copy<T: Element>(len: usize) -> Run {
    let (x, y) = (vector::<T>(len, [-1.0, 1.0]), Operand::zeros(len));
    Run::new("copy", move || y.get_mut().copy_from_slice(std::hint::black_box(&x.get())))
}
