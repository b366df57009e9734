//! The training loop of a solver, and the tests of its test nets.

use super::{
    event::{Action, Event},
    score::{Score, ScoreSums, scores},
    smoothed_loss::SmoothedLoss,
    training_run::{LastDisplay, Solver},
};
use crate::{
    element::{Element, compiled_for},
    error::{Error, Result},
    kernel::traits::*,
};
use std::time::Instant;

impl<T: Element> Solver<T> {
    /// Trains until `max_iter` updates are made, with the tests and snapshots that the definition
    /// schedules.
    ///
    /// # Errors
    /// Returns any error from the nets and of the device, and [`Error::Diverged`] as
    /// [`OnNan`](super::OnNan) describes. If a snapshot cannot be written, the solver logs a
    /// warning and goes on. If writing the last of these snapshots failed, the solver writes
    /// another snapshot at the end, and returns an error if this snapshot fails as well.
    #[doc(alias = "Solve")]
    pub fn solve(&mut self) -> Result<()> {
        compiled_for!(T, fn(&mut Solver<T>) -> Result<()> = Solver::run_to_end)(self)
    }

    fn run_to_end(&mut self) -> Result<()> {
        let net = self.nets.train.name().to_owned();
        let policy = self.param.lr_policy().to_owned();
        let end = usize::try_from(self.param.max_iter()).unwrap_or(0);
        self.observers.notify(&Event::Started {
            net: &net,
            policy: &policy,
            iteration: self.iteration,
            end,
        });
        let mut smoothed = self.smoothed_loss();
        self.train(end.saturating_sub(self.iteration), &mut smoothed)?;
        let final_snapshot =
            self.param.snapshot_after_train() && !self.is_due(self.param.snapshot());
        if final_snapshot || self.snapshot_failed {
            self.snapshot()?;
        }
        let mut loss = None;
        if !self.stopped && self.is_due(self.param.display()) {
            loss = Some(smoothed.add(self.nets.train.forward()?));
        }
        if !self.stopped && self.is_due(self.param.test_interval()) {
            self.test_all()?;
        }
        // Wait for the device, because the last solver update may still be running and may fail.
        self.nets.train.device().synchronize()?;
        self.check_weights()?;
        let (iteration, early) = (self.iteration, self.stopped);
        self.observers.notify(&Event::Finished { iteration, loss, early });
        Ok(())
    }

    /// Makes `iterations` updates with the tests and snapshots that are due, or fewer updates if
    /// [`Action::Stop`] ends training. Every call to `step` starts a new average of the loss.
    ///
    /// # Errors
    /// Returns any error from [`solve`](Self::solve).
    #[doc(alias = "Step")]
    pub fn step(&mut self, iterations: usize) -> Result<()> {
        compiled_for!(T, fn(&mut Solver<T>, usize) -> Result<()> = Solver::run_steps)(
            self, iterations,
        )
    }

    fn run_steps(&mut self, iterations: usize) -> Result<()> {
        let mut smoothed = self.smoothed_loss();
        self.train(iterations, &mut smoothed)
    }

    fn smoothed_loss(&self) -> SmoothedLoss {
        SmoothedLoss::new(usize::try_from(self.param.average_loss()).unwrap_or(1))
    }

    fn train(&mut self, iterations: usize, smoothed: &mut SmoothedLoss) -> Result<()> {
        (self.stopped, self.states_before_tests) = (false, None);
        self.last_display = self.progress();
        for _ in 0..iterations {
            self.nets.train.clear_param_diffs()?;
            let may_test = self.iteration > 0 || self.param.test_initialization();
            if may_test && self.is_due(self.param.test_interval()) {
                self.test_all()?;
                if self.stopped {
                    break;
                }
            }
            let loss = self.forward_backward()?;
            let rate = self.learning_rate();
            self.report_iteration(loss, smoothed.add(loss), rate)?;
            self.check_loss(loss)?;
            self.update(rate)?;
            self.iteration += 1;
            let action = (self.action_function)();
            if action == Action::Snapshot || self.is_due(self.param.snapshot()) {
                self.snapshot_or_warn()?;
            }
            if action == Action::Stop {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the current iteration is a multiple of `interval`; returns `false` if
    /// `interval` ≤ 0.
    fn is_due(&self, interval: i32) -> bool {
        usize::try_from(interval)
            .is_ok_and(|interval| interval > 0 && self.iteration.is_multiple_of(interval))
    }

    fn forward_backward(&mut self) -> Result<f64> {
        let pass_count = self.param.iter_size();
        let is_traced = self.param.debug_info() && self.is_due(self.param.display());
        let mut loss = 0.0;
        for _ in 0..pass_count {
            if is_traced {
                loss += self.traced_pass()?;
                continue;
            }
            loss += self.nets.train.forward()?;
            self.nets.train.backward()?;
        }
        Ok(loss / f64::from(pass_count))
    }

    fn progress(&self) -> LastDisplay {
        let data_wait = self.nets.train.data_wait_time().unwrap_or_default();
        LastDisplay { time: Instant::now(), iteration: self.iteration, data_wait }
    }

    fn report_iteration(&mut self, loss: f64, smoothed: f64, rate: f64) -> Result<()> {
        let iteration = self.iteration;
        let waited = self.nets.train.data_wait_time();
        self.observers.notify(&Event::Iterated { iteration, loss, smoothed, rate, waited });
        if self.is_due(self.param.display()) {
            let outputs = &scores(&self.nets.train)?[..];
            let last = self.last_display;
            let (seconds, passed) = (last.time.elapsed().as_secs_f64(), iteration - last.iteration);
            let waited = waited.map(|waited| waited.saturating_sub(last.data_wait).as_secs_f64());
            let display = usize::try_from(self.param.display()).unwrap_or(0);
            let loss = smoothed;
            self.observers.notify(&Event::Displayed {
                iteration,
                loss,
                rate,
                outputs,
                passed,
                seconds,
                waited,
                display,
            });
            self.last_display = self.progress();
        }
        Ok(())
    }

    /// Tests all test nets in turn. [`Action::Stop`] ends the current test and skips the remaining
    /// test nets.
    ///
    /// # Errors
    /// Returns any error from the nets and of the device, and errors of writing a snapshot for
    /// [`Action::Snapshot`].
    #[doc(alias = "TestAll")]
    pub fn test_all(&mut self) -> Result<()> {
        // A snapshot during the tests, or after a test that ended early, must contain the states
        // before the tests, because a resumed run repeats all tests.
        self.states_before_tests = Some(self.nets.test_states()?);
        for index in 0..self.nets.tests.len() {
            if self.test(index)?.is_none() {
                return Ok(());
            }
        }
        self.states_before_tests = None;
        Ok(())
    }

    /// Tests one test net and returns the means of its outputs over the batches. Calls the action
    /// function before each batch, and returns `None` if the action function returns
    /// [`Action::Stop`].
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the solver has no test net with the index `index`, and the
    /// errors of [`test_all`](Self::test_all).
    #[doc(alias = "Test")]
    pub fn test(&mut self, index: usize) -> Result<Option<Vec<Score>>> {
        compiled_for!(T, fn(&mut Solver<T>, usize) -> Result<Option<Vec<Score>>> = Solver::run_test)(
            self, index,
        )
    }

    fn run_test(&mut self, index: usize) -> Result<Option<Vec<Score>>> {
        let count = self.nets.tests.len();
        let Some(test) = self.nets.tests.get_mut(index) else {
            return Err(Error::InvalidData(format!(
                "test net {index}: the solver has only {count}"
            )));
        };
        test.net.share_trained_with(&self.nets.train)?;
        let (iteration, batches) = (self.iteration, test.batches);
        self.observers.notify(&Event::Testing { iteration, net: index });
        let mut sums = ScoreSums::default();
        for _ in 0..batches {
            match (self.action_function)() {
                Action::Continue => {}
                Action::Snapshot => self.snapshot_or_warn()?,
                Action::Stop => {
                    self.stopped = true;
                    self.observers.notify(&Event::Interrupted { iteration, net: index });
                    return Ok(None);
                }
            }
            let loss = match self.param.debug_info() {
                true => self.traced_test(index)?,
                false => self.nets.tests[index].net.forward()?,
            };
            sums.add(loss, &scores(&self.nets.tests[index].net)?);
        }
        let (loss, outputs) = sums.means();
        let loss = self.param.test_compute_loss().then_some(loss);
        self.observers.notify(&Event::Tested { iteration, net: index, outputs: &outputs, loss });
        Ok(Some(outputs))
    }
}
