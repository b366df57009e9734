//! One step of long short-term memory.

use crate::{
    error::{Result, check_len},
    shape::Shape,
};

/// One time step of `streams` independent sequences with `outputs` cells each.
///
/// A stream has a row of `outputs` elements in the states `c` (cells) and `h` (hidden), a row of
/// `4·outputs` in `gates`, and one element of `cont`, which is 0 where a sequence begins and
/// otherwise 1. With x a row of gates, cut into four:
///
/// ```text
/// i = σ(x₀)   f = cont · σ(x₁)   o = σ(x₂)   g = tanh x₃
/// c = f · c_prev + i · g         h = o · tanh c
/// ```
///
/// Source: Hochreiter, Schmidhuber 1997; the forget gate: Gers, Schmidhuber, Cummins 2000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lstm {
    streams: usize,
    outputs: usize,
}

impl Lstm {
    /// Describes a step.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if the gates are too many to count.
    pub fn new(streams: usize, outputs: usize) -> Result<Self> {
        Shape::new(&[streams, 4, outputs])?;
        Ok(Self { streams, outputs })
    }

    /// Independent sequences.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Cells of each.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Elements of the gates.
    pub fn gates(&self) -> usize {
        4 * self.state()
    }

    /// Elements of a state.
    pub fn state(&self) -> usize {
        self.streams * self.outputs
    }

    /// Fails unless operands of these lengths are gates and states.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) names the operand.
    pub fn check(
        &self,
        op: &'static str,
        gates: (&'static str, usize),
        states: &[(&'static str, usize)],
    ) -> Result<()> {
        check_len(op, gates.0, self.gates(), gates.1)?;
        states.iter().try_for_each(|&(name, got)| check_len(op, name, self.state(), got))
    }
}
