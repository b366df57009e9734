//! The tests of a solver's test nets.

use super::{
    event::Event,
    score::{Score, ScoreSums, scores},
    training_run::Solver,
};
use crate::{
    element::{Element, compiled_for},
    error::{Error, Result},
    memory::trace,
    net::Net,
};
use std::iter;

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

    /// Tests one test net and returns the means of its outputs over the batches. Calls the action
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
        let mut results = Vec::with_capacity(own.len());
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
                results.push((loss, scores(&self.nets.tests[index].net)?));
                trace::collect()?;
            }
        }
        skip_batches(&mut self.nets.tests[index].net, batches - own.end)?;
        if is_divided {
            results = self.gather_results(index, results)?;
        }
        let mut sums = ScoreSums::default();
        results.iter().for_each(|(loss, scores)| sums.add(*loss, scores));
        let (loss, outputs) = sums.means();
        let loss = self.param.test_compute_loss().then_some(loss);
        self.observers.notify(&Event::Tested { iteration, net: index, outputs: &outputs, loss });
        Ok(Some(outputs))
    }

    /// Returns the results of all processes in the order of the batches.
    fn gather_results(
        &mut self,
        index: usize,
        own: Vec<(f64, Vec<Score>)>,
    ) -> Result<Vec<(f64, Vec<Score>)>> {
        let values = own.iter().flat_map(|(loss, scores)| {
            iter::once(*loss).chain(scores.iter().map(|score| score.value))
        });
        let message = values.flat_map(f64::to_le_bytes).collect();
        let messages = self.processes.all_gather(message)?;
        // The outputs of a process without batches still have the right names.
        let names = scores(&self.nets.tests[index].net)?;
        let mut results = Vec::new();
        for message in messages {
            let (values, _) = message.as_chunks::<8>();
            for batch in values.chunks_exact(names.len() + 1) {
                let value = |index: usize| f64::from_le_bytes(batch[index]);
                let named = (1..).zip(&names);
                let scores = named.map(|(i, score)| Score { value: value(i), ..score.clone() });
                results.push((value(0), scores.collect()));
            }
        }
        Ok(results)
    }
}

/// Changes the states of the layers of a test net as forward passes of `batches` batches would.
fn skip_batches<T: Element>(net: &mut Net<T>, batches: usize) -> Result<()> {
    if batches > 0 { net.skip_passes(batches as u64).map(drop) } else { Ok(()) }
}
