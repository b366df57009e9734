//! What nets put out, and means of it.

use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
};

/// An element of a net's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The output's name.
    pub name: String,
    /// Its value, or the mean over a test.
    pub value: f64,
    /// The output's weight in the objective; 0 if it has none.
    pub loss_weight: f32,
}

/// Each element of each output of a net.
pub(super) fn scores<T: Element, D: Device>(net: &Net<T, D>) -> Result<Vec<Score>> {
    let mut scores = Vec::new();
    for (name, blob, loss_weight) in net.outputs() {
        for value in blob.data()?.host()? {
            scores.push(Score { name: name.to_owned(), value: value.to_f64(), loss_weight });
        }
    }
    Ok(scores)
}

/// Sums of the objective and the outputs over batches.
#[derive(Default)]
pub(super) struct Sums {
    loss: f64,
    scores: Vec<Score>,
    batches: usize,
}

impl Sums {
    /// Adds those of a batch.
    pub(super) fn add(&mut self, loss: f64, batch: &[Score]) {
        self.loss += loss;
        if self.batches == 0 {
            self.scores = batch.to_vec();
        } else {
            for (sum, score) in self.scores.iter_mut().zip(batch) {
                sum.value += score.value;
            }
        }
        self.batches += 1;
    }

    /// The means of the objective and of the outputs.
    pub(super) fn means(mut self) -> (f64, Vec<Score>) {
        let batches = self.batches as f64;
        self.scores.iter_mut().for_each(|score| score.value /= batches);
        (self.loss / batches, self.scores)
    }
}

/// Runs a net forward over `batches` batches and shows each batch's outputs to `each`; returns
/// the means of the objective and of each element of each output.
///
/// # Errors
/// [`Error::InvalidData`] for no batches; those of the net.
pub fn mean_scores<T: Element, D: Device>(
    net: &mut Net<T, D>,
    batches: usize,
    mut each: impl FnMut(usize, &[Score]),
) -> Result<(f64, Vec<Score>)> {
    if batches == 0 {
        return Err(Error::InvalidData("a test needs at least one batch".into()));
    }
    let mut sums = Sums::default();
    for index in 0..batches {
        let loss = net.forward()?;
        let batch = scores(net)?;
        each(index, &batch);
        sums.add(loss, &batch);
    }
    Ok(sums.means())
}
