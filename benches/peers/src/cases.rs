//! What is timed: cases, each done by several.

use crate::{library::Peers, maps, operand::Operand, products, vectors, windows};
use cortado::{
    Element,
    host::{Workers, uniform},
    op::RngKey,
};

/// How much one run does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Floating-point operations.
    Flops(u64),
    /// Bytes that have to be read and written, each operand once.
    Bytes(u64),
}

/// Somebody's way to do it.
pub struct Run {
    /// Whose.
    pub who: &'static str,
    /// Does it once.
    pub once: Box<dyn FnMut()>,
}

impl Run {
    pub(crate) fn new(who: &'static str, once: impl FnMut() + 'static) -> Self {
        Self { who, once: Box::new(once) }
    }
}

/// Operands are made when they are needed, and gone after.
pub(crate) type Make = Box<dyn Fn(&Peers, &Workers) -> Vec<Run>>;

/// One thing to do.
pub struct Case {
    /// Its family: `sgemm`, `level1`, …
    pub group: &'static str,
    /// What and how large, unique in the group.
    pub name: String,
    /// How much that is.
    pub work: Work,
    /// Those who can do it, cortado first.
    pub runs: Make,
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

/// Everything.
pub fn cases() -> Vec<Case> {
    let mut list = Vec::new();
    products::add(&mut list);
    vectors::add(&mut list);
    maps::add(&mut list);
    windows::add(&mut list);
    list
}

/// Lengths of vectors: from the first-level cache to memory.
pub(crate) const LENGTHS: [usize; 8] =
    [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

/// Elements from `min` to `max`.
pub(crate) fn vector<T: Element>(len: usize, [min, max]: [f64; 2]) -> Operand<T> {
    let x = Operand::zeros(len);
    uniform(&Workers::sequential(), RngKey::new(len as u64), min, max, &mut x.get_mut())
        .expect("a range of numbers");
    x
}

/// Moving `len` elements: what the memory allows.
pub(crate) fn copy<T: Element>(len: usize) -> Run {
    let (x, y) = (vector::<T>(len, [-1.0, 1.0]), Operand::zeros(len));
    Run::new("copy", move || y.get_mut().copy_from_slice(std::hint::black_box(&x.get())))
}
