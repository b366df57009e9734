//! One time step of a long short-term memory (LSTM).

use crate::{
    error::{Result, check_len},
    shape::Shape,
};

/// One LSTM time step of `streams` independent sequences with `outputs` cells each.
///
/// Each stream has a row of `outputs` elements in the states `c` (cells) and `h` (hidden) and a row
/// of `4·outputs` elements in `gates`. `cont` has one element per stream: 0 where a sequence
/// begins, else 1. Let x₀ to x₃ be the four parts of a row of `gates`, each with `outputs`
/// elements:
///
/// ```text
/// i = σ(x₀)   f = cont · σ(x₁)   o = σ(x₂)   g = tanh x₃
/// c = f · c_prev + i · g         h = o · tanh c
/// ```
///
/// Sources: Hochreiter, Schmidhuber 1997; for the forget gate, Gers, Schmidhuber, Cummins 2000.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::Lstm};
///
/// let (c_prev, cont) = ([8.0f32, 8.0], [1.0, 0.0]); // the second sequence begins
/// let (mut gates, mut c, mut h) = ([0.0; 8], [0.0; 2], [0.0; 2]);
/// let op = Lstm::new(2, 1)?;
/// slices::lstm(Workers::global(), &op, &c_prev, &cont, &mut gates, &mut c, &mut h)?;
/// assert_eq!(c, [4.0, 0.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lstm {
    streams: usize,
    outputs: usize,
}

impl Lstm {
    /// Describes an LSTM time step.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if the number of gates overflows.
    pub fn new(streams: usize, outputs: usize) -> Result<Self> {
        Shape::new(&[streams, 4, outputs])?;
        Ok(Self { streams, outputs })
    }

    /// Returns the number of independent sequences.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Returns the number of cells of each sequence.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the number of elements of the gates.
    pub fn gates(&self) -> usize {
        4 * self.state()
    }

    /// Returns the number of elements of a state.
    pub fn state(&self) -> usize {
        self.streams * self.outputs
    }

    /// Fails unless the lengths of gates and states match.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) with the operand's name.
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
