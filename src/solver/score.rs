//! Values of the outputs of nets, and their means over several batches.

use crate::{
    element::Element,
    error::{Error, Result},
    memory::trace,
    net::Net,
};
use std::ops::ControlFlow;

/// The value of one element of a net's output blob.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text, solver::{Score, mean_scores}};
/// use std::ops::ControlFlow;
///
/// let text = r#"layer { type: "DummyData" top: "y"
///     dummy_data_param { shape { dim: 1 } data_filler { value: 3 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let (loss, scores) = mean_scores(&mut net, 10, |_, _| ControlFlow::Continue(()))?;
/// assert_eq!(loss, 0.0); // `y` has no loss weight
/// assert_eq!(scores, [Score { name: "y".into(), value: 3.0, loss_weight: 0.0 }]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The name of the net's output blob.
    pub name: String,
    /// The value of the element, or its mean over the batches of a test.
    pub value: f64,
    /// The loss weight of the output blob; 0 if the output is not part of the objective.
    pub loss_weight: f32,
}

pub(super) fn scores<T: Element>(net: &Net<T>) -> Result<Vec<Score>> {
    let mut scores = Vec::new();
    for (name, blob, loss_weight) in net.outputs() {
        for value in blob.data()?.host()? {
            scores.push(Score { name: name.to_owned(), value: value.to_f64(), loss_weight });
        }
    }
    Ok(scores)
}

#[derive(Default)]
pub(super) struct ScoreSums {
    loss: f64,
    scores: Vec<Score>,
    batches: usize,
}

impl ScoreSums {
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

    pub(super) fn means(mut self) -> (f64, Vec<Score>) {
        let batches = self.batches as f64;
        self.scores.iter_mut().for_each(|score| score.value /= batches);
        (self.loss / batches, self.scores)
    }
}

/// Runs the forward pass of a net for `batches` batches, and calls `observe` with the index and the
/// outputs of each batch. If `observe` returns [`ControlFlow::Break`], `mean_scores` runs no further
/// batches. Returns the means of the objective and of every element of every output, over the
/// batches that ran.
///
/// # Errors
/// Returns [`Error::InvalidData`] for 0 batches, and any error from the net.
pub fn mean_scores<T: Element>(
    net: &mut Net<T>,
    batches: usize,
    mut observe: impl FnMut(usize, &[Score]) -> ControlFlow<()>,
) -> Result<(f64, Vec<Score>)> {
    if batches == 0 {
        return Err(Error::InvalidData("expected at least one batch, found 0".into()));
    }
    let mut sums = ScoreSums::default();
    for index in 0..batches {
        let _span = trace::numbered_span("batch", index);
        let loss = net.forward()?;
        let batch = scores(net)?;
        sums.add(loss, &batch);
        trace::collect()?;
        if observe(index, &batch).is_break() {
            break;
        }
    }
    Ok(sums.means())
}
