//! The tests of a solver's test nets.

use super::{
    average_precision::{Evaluation, Integral, ROW_LEN},
    event::Event,
    score::{Score, ScoreSums, scores},
    training_run::Solver,
};
use crate::{
    element::{Element, compiled_for},
    error::{Error, Result},
    memory::trace,
    net::Net,
    proto::SolverParameter,
};

/// The result that a test computes from the outputs of a test net.
#[derive(Clone, Copy)]
pub(super) enum TestKind {
    /// The mean of each element of the outputs over the batches.
    Means,
    /// The mean average precision of each output, which is the top of a DetectionEvaluate layer.
    AveragePrecision { integral: Integral, lists_classes: bool },
}

impl TestKind {
    /// Reads the fields `eval_type`, `ap_version` and `show_per_class_result`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which names the field, for an unknown value.
    pub(super) fn new(param: &SolverParameter) -> Result<Self> {
        let integral = Integral::named(param.ap_version())?;
        let lists_classes = param.show_per_class_result();
        match param.eval_type() {
            "classification" => Ok(Self::Means),
            "detection" => Ok(Self::AveragePrecision { integral, lists_classes }),
            other => Err(Error::InvalidData(format!(
                "eval_type: expected classification or detection, found `{other}`"
            ))),
        }
    }
}

/// The objective of a batch, and the values of the outputs. In a test of detection, each output is
/// preceded by its number of rows.
type BatchResult = (f64, Vec<f64>);

impl<T: Element> Solver<T> {
    /// Tests all test nets in turn. [`Action::Stop`](super::Action::Stop) ends the current test and
    /// skips the remaining test nets.
    ///
    /// # Errors
    /// Returns any error from the nets and of the device, and errors of writing a snapshot for
    /// [`Action::Snapshot`](super::Action::Snapshot).
    #[doc(alias = "TestAll")]
    pub fn test_all(&mut self) -> Result<()> {
        let result = compiled_for!(T, fn(&mut Solver<T>) -> Result<()> = Solver::run_tests)(self);
        self.leave_after_error(result)
    }

    pub(super) fn run_tests(&mut self) -> Result<()> {
        // A snapshot during the tests, or after a test that ended early, must contain the states
        // before the tests, because a resumed run repeats all tests.
        self.states_before_tests = Some(self.nets.test_states()?);
        for index in 0..self.nets.tests.len() {
            if self.run_test(index)?.is_none() {
                return Ok(());
            }
        }
        self.states_before_tests = None;
        Ok(())
    }

    /// Tests one test net and returns the means of its outputs over the batches, or the mean average
    /// precision of each output if the `eval_type` of the solver is `detection`. Calls the action
    /// function before each batch, and returns `None` if the action function returns
    /// [`Action::Stop`](super::Action::Stop).
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the solver has no test net with the index `index`, and the
    /// errors of [`test_all`](Self::test_all).
    #[doc(alias = "Test")]
    pub fn test(&mut self, index: usize) -> Result<Option<Vec<Score>>> {
        let result = compiled_for!(T, fn(&mut Solver<T>, usize) -> Result<Option<Vec<Score>>> = Solver::run_test)(
            self, index,
        );
        self.leave_after_error(result)
    }

    fn run_test(&mut self, index: usize) -> Result<Option<Vec<Score>>> {
        let _span = trace::numbered_span("test of test net", index);
        let count = self.nets.tests.len();
        let (rank, size) = (self.processes.rank(), self.processes.size());
        let Some(test) = self.nets.tests.get_mut(index) else {
            return Err(Error::InvalidData(format!(
                "test net {index}: the solver has only {count}"
            )));
        };
        test.net.share_trained_with(&self.nets.train)?;
        let kind = TestKind::new(&self.param)?;
        let (iteration, batches) = (self.iteration, test.batches);
        self.observers.notify(&Event::Testing { iteration, net: index });
        // A test that ends early leaves each process at another batch.
        let state_before = (self.shards.count > 1).then(|| test.net.run_state()).transpose()?;
        // The processes divide the batches, unless a layer needs the values of all earlier batches.
        let is_divided = size > 1 && test.net.skip_passes(0)?;
        let (own, rounds) = match is_divided {
            true => (rank * batches / size..(rank + 1) * batches / size, batches.div_ceil(size)),
            false => (0..batches, batches),
        };
        skip_batches(&mut test.net, own.start)?;
        let mut results = Vec::new();
        for round in 0..rounds {
            let action = self.processes.agree((self.action_function)())?;
            if action.snapshot {
                self.snapshot_or_warn()?;
            }
            if action.stop {
                self.stopped = true;
                if let Some(state) = &state_before {
                    self.nets.tests[index].net.set_run_state(state)?;
                }
                self.observers.notify(&Event::Interrupted { iteration, net: index });
                return Ok(None);
            }
            if round < own.len() {
                let loss = match self.param.debug_info() {
                    true => self.traced_test(index)?,
                    false => self.nets.tests[index].net.forward()?,
                };
                results.push((loss, batch_values(&self.nets.tests[index].net, kind)?));
                trace::collect()?;
            }
        }
        skip_batches(&mut self.nets.tests[index].net, batches - own.end)?;
        if is_divided {
            results = self.gather_results(results)?;
        }
        let net = &self.nets.tests[index].net;
        let (loss, outputs) = match kind {
            TestKind::Means => means(net, &results)?,
            TestKind::AveragePrecision { integral, lists_classes } => {
                average_precisions(net, &results, integral, lists_classes)?
            }
        };
        let loss = self.param.test_compute_loss().then_some(loss);
        self.observers.notify(&Event::Tested { iteration, net: index, outputs: &outputs, loss });
        Ok(Some(outputs))
    }

    /// Returns the results of all processes in the order of the batches.
    fn gather_results(&mut self, own: Vec<BatchResult>) -> Result<Vec<BatchResult>> {
        // Each batch is preceded by the number of its values, because this number differs from
        // batch to batch in a test of detection.
        let values = own.iter().flat_map(|(loss, values)| {
            [values.len() as f64, *loss].into_iter().chain(values.iter().copied())
        });
        let message = values.flat_map(f64::to_le_bytes).collect();
        let messages = self.processes.all_gather(message)?;
        let mut results = Vec::new();
        for message in messages {
            let bytes = message.as_chunks::<8>().0;
            let mut values = bytes.iter().map(|bytes| f64::from_le_bytes(*bytes));
            while let (Some(len), Some(loss)) = (values.next(), values.next()) {
                results.push((loss, values.by_ref().take(len as usize).collect()));
            }
        }
        Ok(results)
    }
}

/// Returns the values of the outputs of a net after a batch.
fn batch_values<T: Element>(net: &Net<T>, kind: TestKind) -> Result<Vec<f64>> {
    if let TestKind::Means = kind {
        return Ok(scores(net)?.into_iter().map(|score| score.value).collect());
    }
    let mut values = Vec::new();
    for (name, blob, _) in net.outputs() {
        if blob.shape().last() != Some(&ROW_LEN) {
            return Err(Error::Shape(format!(
                "output `{name}`: a test with the eval_type `detection` needs the top of a \
                 DetectionEvaluate layer, with a shape of 1 × 1 × n × {ROW_LEN}, found {}; consume \
                 the output with a Silence layer",
                blob.shape()
            )));
        }
        values.push((blob.count() / ROW_LEN) as f64);
        values.extend(blob.data()?.host()?.iter().map(|value| value.to_f64()));
    }
    Ok(values)
}

/// Returns the means of the objective and of each element of the outputs.
fn means<T: Element>(net: &Net<T>, results: &[BatchResult]) -> Result<(f64, Vec<Score>)> {
    // The outputs of a process without batches still have the right names.
    let names = scores(net)?;
    let mut sums = ScoreSums::default();
    for (loss, values) in results {
        let named = names.iter().zip(values);
        let scores: Vec<_> =
            named.map(|(score, &value)| Score { value, ..score.clone() }).collect();
        sums.add(*loss, &scores);
    }
    Ok(sums.means())
}

/// Returns the mean of the objective, and the mean average precision of each output. If
/// `lists_classes` is true, the average precisions of the classes precede the mean average
/// precision of their output.
fn average_precisions<T: Element>(
    net: &Net<T>,
    results: &[BatchResult],
    integral: Integral,
    lists_classes: bool,
) -> Result<(f64, Vec<Score>)> {
    let mut evaluations: Vec<_> = net.outputs().map(|_| Evaluation::default()).collect();
    for (_, values) in results {
        let mut rest = &values[..];
        for evaluation in &mut evaluations {
            let Some((&count, rows)) = rest.split_first() else { break };
            let (rows, next) =
                rows.split_at(rows.len().min((count as usize).saturating_mul(ROW_LEN)));
            evaluation.add(rows.as_chunks().0);
            rest = next;
        }
    }
    let mut outputs = Vec::new();
    for ((name, ..), evaluation) in net.outputs().zip(&evaluations) {
        let score = |name: String, value| Score { name, value, loss_weight: 0.0 };
        let classes = evaluation.average_precisions(integral);
        if lists_classes {
            let classes = classes.iter();
            outputs.extend(classes.map(|(label, value)| score(format!("class{label}"), *value)));
        }
        let sum: f64 = classes.iter().map(|(_, value)| value).sum();
        outputs.push(score(name.to_owned(), sum / classes.len().max(1) as f64));
    }
    let losses = results.iter().map(|(loss, _)| loss);
    Ok((losses.sum::<f64>() / results.len().max(1) as f64, outputs))
}

/// Changes the states of the layers of a test net as forward passes of `batches` batches would.
fn skip_batches<T: Element>(net: &mut Net<T>, batches: usize) -> Result<()> {
    if batches > 0 { net.skip_passes(batches as u64).map(drop) } else { Ok(()) }
}
