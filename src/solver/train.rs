//! The training loop of a solver.

use super::{
    event::Event,
    gradient_reduction::GradientReduction,
    score::{Score, scores},
    shards::start_mean,
    smoothed_loss::SmoothedLoss,
    training_run::{LastDisplay, Solver},
};
use crate::{
    element::{Element, compiled_for},
    error::Result,
    kernel::traits::*,
    memory::trace,
    net::Net,
};
use std::{
    mem,
    time::{Duration, Instant},
};

impl<T: Element> Solver<T> {
    /// Trains until `max_iter` updates are made, with the tests and snapshots that the definition
    /// schedules.
    ///
    /// # Errors
    /// Returns any error from the nets and of the device, and [`Error::Diverged`](crate::Error::Diverged) as
    /// [`OnNan`](super::OnNan) describes. If a snapshot cannot be written, the solver logs a
    /// warning and goes on. If writing the last of these snapshots failed, the solver writes
    /// another snapshot at the end, and returns an error if this snapshot fails as well.
    #[doc(alias = "Solve")]
    pub fn solve(&mut self) -> Result<()> {
        compiled_for!(T, fn(&mut Solver<T>) -> Result<()> = Solver::run_to_end)(self)
    }

    fn run_to_end(&mut self) -> Result<()> {
        let result = self.train_to_end();
        self.leave_after_error(result)
    }

    /// Leaves the run if `result` is an error, so that the other processes fail, too. Returns
    /// `result`.
    pub(super) fn leave_after_error<R>(&mut self, result: Result<R>) -> Result<R> {
        if result.is_err() {
            self.processes.leave();
        }
        result
    }

    fn train_to_end(&mut self) -> Result<()> {
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
            loss = Some(smoothed.add(self.mean_of_nets(Net::forward)?));
        }
        if !self.stopped && self.is_due(self.param.test_interval()) {
            self.run_tests()?;
        }
        // Wait for the device, because the last solver update may still be running and may fail.
        self.nets.train.device().synchronize()?;
        self.check_weights()?;
        let (iteration, early) = (self.iteration, self.stopped);
        self.observers.notify(&Event::Finished { iteration, loss, early });
        Ok(())
    }

    /// Makes `iterations` updates with the tests and snapshots that are due, or fewer updates if
    /// [`Action::Stop`](super::Action::Stop) ends training. Every call to `step` starts a new average
    /// of the loss.
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
        let result = self.train(iterations, &mut smoothed);
        self.leave_after_error(result)
    }

    fn smoothed_loss(&self) -> SmoothedLoss {
        SmoothedLoss::new(usize::try_from(self.param.average_loss()).unwrap_or(1))
    }

    fn train(&mut self, iterations: usize, smoothed: &mut SmoothedLoss) -> Result<()> {
        (self.stopped, self.states_before_tests) = (false, None);
        self.last_display = self.progress();
        self.share_statistics()?;
        for _ in 0..iterations {
            let _span = trace::numbered_span("iteration", self.iteration);
            self.nets.shards().try_for_each(Net::clear_param_diffs)?;
            let may_test = self.iteration > 0 || self.param.test_initialization();
            if may_test && self.is_due(self.param.test_interval()) {
                self.run_tests()?;
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
            trace::collect()?;
            let action = self.processes.agree((self.action_function)())?;
            if action.snapshot || self.is_due(self.param.snapshot()) {
                self.snapshot_or_warn()?;
            }
            if action.stop {
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
        let mut reduction = GradientReduction::new(&self.nets, self.shards.count);
        let mut losses = Vec::with_capacity(self.shards.own);
        let mut mean_loss = None;
        for shard in 0..self.shards.own {
            let mut loss = 0.0;
            for pass in 1..=pass_count {
                if is_traced && shard == 0 {
                    loss += self.traced_pass()?;
                    continue;
                }
                let Some(net) = self.nets.shards_mut().nth(shard) else { continue };
                loss += net.forward()?;
                let is_last = pass == pass_count && shard + 1 == self.shards.own;
                if !is_last || self.shards.count == 1 {
                    net.backward()?;
                    continue;
                }
                // The losses and the gradients of the other shards of this process are complete. The
                // backward pass runs while processes exchange losses and gradients.
                losses.push(vec![loss / f64::from(pass_count)]);
                let own = mem::take(&mut losses);
                mean_loss = Some(start_mean(&self.processes, self.shards, own)?);
                net.backward_with(&mut |layer| reduction.after_layer(layer, &self.processes))?;
            }
            if mean_loss.is_none() {
                losses.push(vec![loss / f64::from(pass_count)]);
            }
        }
        if self.shards.count > 1 {
            reduction.finish(&mut self.processes)?;
        }
        self.average_statistics()?;
        let mean_loss = match mean_loss {
            Some(mean_loss) => self.processes.wait(mean_loss)?,
            None => self.mean_over_shards(losses)?,
        };
        Ok(mean_loss.into_iter().sum())
    }

    fn progress(&self) -> LastDisplay {
        let data_wait = self.data_wait_time().unwrap_or_default();
        let process_wait = self.processes.waited().unwrap_or_default();
        let exchange_time = self.processes.exchanged().unwrap_or_default();
        LastDisplay {
            time: Instant::now(),
            iteration: self.iteration,
            data_wait,
            process_wait,
            exchange_time,
        }
    }

    fn report_iteration(&mut self, loss: f64, smoothed: f64, rate: f64) -> Result<()> {
        let iteration = self.iteration;
        let (waited, waited_for_processes) = (self.data_wait_time(), self.processes.waited());
        self.observers.notify(&Event::Iterated {
            iteration,
            loss,
            smoothed,
            rate,
            waited,
            waited_for_processes,
        });
        if self.is_due(self.param.display()) {
            let outputs = &self.mean_outputs()?[..];
            let last = self.last_display;
            let (seconds, passed) = (last.time.elapsed().as_secs_f64(), iteration - last.iteration);
            let waited = waited.map(|waited| waited.saturating_sub(last.data_wait).as_secs_f64());
            let waited_for_processes = waited_for_processes
                .map(|waited| waited.saturating_sub(last.process_wait).as_secs_f64());
            let exchanged = self.processes.exchanged();
            let exchanged =
                exchanged.map(|time| time.saturating_sub(last.exchange_time).as_secs_f64());
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
                waited_for_processes,
                exchanged,
                display,
            });
            self.last_display = self.progress();
        }
        Ok(())
    }

    /// Returns the outputs of the train nets, averaged over all shards.
    fn mean_outputs(&mut self) -> Result<Vec<Score>> {
        let own = self.nets.shards().map(scores).collect::<Result<Vec<_>>>()?;
        let values = own.iter().map(|scores| scores.iter().map(|score| score.value).collect());
        let means = self.mean_over_shards::<f64>(values.collect())?;
        let mut outputs = own.into_iter().next().unwrap_or_default();
        outputs.iter_mut().zip(means).for_each(|(output, mean)| output.value = mean);
        Ok(outputs)
    }

    /// Returns the total time for which the train nets of this process have waited for data.
    fn data_wait_time(&self) -> Option<Duration> {
        self.nets.shards().filter_map(Net::data_wait_time).reduce(Duration::saturating_add)
    }
}
