//! One time step of a long short-term memory (LSTM).

use crate::{
    error::{Result, check_len},
    shape::Shape,
};

/// Descriptor of one LSTM time step of `streams` independent sequences with `outputs` cells each.
///
/// Each stream has a row of `outputs` elements in the cell state `c` and the hidden state `h`, and
/// a row of `4·outputs` elements in `gates`. The operand `cont` has one element per stream: 0 where
/// a sequence begins, else 1. If a row of `gates` consists of x₀, x₁, x₂ and x₃, each with
/// `outputs` elements, the time step computes:
///
/// ```text
/// i = σ(x₀)   f = cont · σ(x₁)   o = σ(x₂)   g = tanh x₃
/// c = f · c_prev + i · g         h = o · tanh c
/// ```
///
/// LSTM was introduced by Hochreiter and Schmidhuber (1997), and the forget gate by Gers,
/// Schmidhuber and Cummins (2000).
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
    /// Creates the descriptor of an LSTM time step.
    ///
    /// # Errors
    /// Returns [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if the number of gate elements
    /// overflows.
    pub fn new(streams: usize, outputs: usize) -> Result<Self> {
        Shape::new(&[streams, 4, outputs])?;
        Ok(Self { streams, outputs })
    }

    /// Returns the number of independent sequences.
    pub fn streams(&self) -> usize {
        self.streams
    }

    /// Returns the number of LSTM cells per sequence.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the number of elements of the operand `gates`, `4·streams·outputs`.
    pub fn gates(&self) -> usize {
        4 * self.state()
    }

    /// Returns the number of elements of each of the states `c` and `h`, `streams·outputs`.
    pub fn state(&self) -> usize {
        self.streams * self.outputs
    }

    /// Fails unless the lengths of the gates and of the states match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
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
