//! The training loop and its tests.

use super::{
    Action, Event, Score, Shown, Solver,
    score::{Sums, scores},
    smoothed_loss::Smoothed,
};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
};
use std::time::Instant;

impl<T: Element, D: Device> Solver<T, D> {
    /// Trains up to `max_iter`, with the tests and snapshots that the definition asks for.
    ///
    /// # Errors
    /// Those of the nets, of the device and of writing snapshots.
    #[doc(alias = "Solve")]
    pub fn solve(&mut self) -> Result<()> {
        let net = self.nets.train.name().to_owned();
        let policy = self.param.lr_policy().to_owned();
        let end = usize::try_from(self.param.max_iter()).unwrap_or(0);
        self.tell(&Event::Started { net: &net, policy: &policy, iteration: self.iteration, end });
        let mut smoothed = self.smoothed();
        self.train(end.saturating_sub(self.iteration), &mut smoothed)?;
        if self.param.snapshot_after_train() && !self.falls_due(self.param.snapshot()) {
            self.snapshot()?;
        }
        let mut loss = None;
        if !self.stopped && self.falls_due(self.param.display()) {
            loss = Some(smoothed.add(self.nets.train.forward()?));
        }
        if !self.stopped && self.falls_due(self.param.test_interval()) {
            self.test_all()?;
        }
        // The last update may be on its way still, and fail.
        self.nets.train.device().synchronize()?;
        let (iteration, early) = (self.iteration, self.stopped);
        self.tell(&Event::Finished { iteration, loss, early });
        Ok(())
    }

    /// Makes `iterations` updates, with the tests and snapshots that fall due, or fewer if a
    /// request stops it. Losses are averaged anew.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    #[doc(alias = "Step")]
    pub fn step(&mut self, iterations: usize) -> Result<()> {
        let mut smoothed = self.smoothed();
        self.train(iterations, &mut smoothed)
    }

    fn smoothed(&self) -> Smoothed {
        Smoothed::new(usize::try_from(self.param.average_loss()).unwrap_or(1))
    }

    fn train(&mut self, iterations: usize, smoothed: &mut Smoothed) -> Result<()> {
        self.stopped = false;
        self.shown = self.standing();
        for _ in 0..iterations {
            self.nets.train.clear_param_diffs()?;
            let may_test = self.iteration > 0 || self.param.test_initialization();
            if may_test && self.falls_due(self.param.test_interval()) {
                self.test_all()?;
                if self.stopped {
                    break;
                }
            }
            let loss = self.forward_backward()?;
            let rate = self.learning_rate();
            self.show(loss, smoothed.add(loss), rate)?;
            self.update(rate)?;
            self.iteration += 1;
            let action = (self.request)();
            if action == Action::Snapshot || self.falls_due(self.param.snapshot()) {
                self.snapshot()?;
            }
            if action == Action::Stop {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    /// Whether something that is done every so many iterations is to be done now; never for 0.
    fn falls_due(&self, interval: i32) -> bool {
        usize::try_from(interval)
            .is_ok_and(|every| every > 0 && self.iteration.is_multiple_of(every))
    }

    fn forward_backward(&mut self) -> Result<f64> {
        let passes = self.param.iter_size();
        let traced = self.param.debug_info() && self.falls_due(self.param.display());
        let mut loss = 0.0;
        for _ in 0..passes {
            if traced {
                loss += self.traced_pass()?;
                continue;
            }
            loss += self.nets.train.forward()?;
            self.nets.train.backward()?;
        }
        Ok(loss / f64::from(passes))
    }

    /// Where training stands now.
    fn standing(&self) -> Shown {
        let waited = self.nets.train.data_wait_time().unwrap_or_default();
        Shown { at: Instant::now(), iteration: self.iteration, waited }
    }

    fn show(&mut self, loss: f64, smoothed: f64, rate: f64) -> Result<()> {
        let iteration = self.iteration;
        let waited = self.nets.train.data_wait_time();
        self.tell(&Event::Iterated { iteration, loss, smoothed, rate, waited });
        if self.falls_due(self.param.display()) {
            let outputs = &scores(&self.nets.train)?[..];
            let Shown { at, iteration: from, waited: before } = self.shown;
            let (seconds, passed) = (at.elapsed().as_secs_f64(), iteration - from);
            let waited = waited.map(|waited| waited.saturating_sub(before).as_secs_f64());
            let display = usize::try_from(self.param.display()).unwrap_or(0);
            let loss = smoothed;
            self.tell(&Event::Displayed {
                iteration,
                loss,
                rate,
                outputs,
                passed,
                seconds,
                waited,
                display,
            });
            self.shown = self.standing();
        }
        Ok(())
    }

    /// Tests with every test net, or with fewer if a request stops it.
    ///
    /// # Errors
    /// Those of the nets and the device; of writing snapshots, if one is requested.
    #[doc(alias = "TestAll")]
    pub fn test_all(&mut self) -> Result<()> {
        for index in 0..self.nets.tests.len() {
            if self.test(index)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Tests with one test net; returns the means of its outputs over its batches, or `None` if a
    /// request stopped it. Requests are asked for before each batch.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if there is no such net; else as [`test_all`](Self::test_all).
    #[doc(alias = "Test")]
    pub fn test(&mut self, index: usize) -> Result<Option<Vec<Score>>> {
        let count = self.nets.tests.len();
        let Some(test) = self.nets.tests.get_mut(index) else {
            return Err(Error::InvalidData(format!("there is no test net {index}, only {count}")));
        };
        test.net.share_trained_with(&self.nets.train)?;
        let (iteration, batches) = (self.iteration, test.batches);
        self.tell(&Event::Testing { iteration, net: index });
        let mut sums = Sums::default();
        for _ in 0..batches {
            match (self.request)() {
                Action::Continue => {}
                Action::Snapshot => _ = self.snapshot()?,
                Action::Stop => {
                    self.stopped = true;
                    self.tell(&Event::Interrupted { iteration, net: index });
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
        self.tell(&Event::Tested { iteration, net: index, outputs: &outputs, loss });
        Ok(Some(outputs))
    }
}
