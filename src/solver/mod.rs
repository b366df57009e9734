//! Solvers: the training loop.
//!
//! A [`Solver`] owns a train net, test nets that share its weights, and the state of its method.
//! It prints nothing: what happens is told to observers as [`Event`]s.

mod event;
mod nets;
mod rate;
mod sgd;
mod smooth;
mod snapshot;

pub use event::{Action, Event, Score};
pub use rate::RatePolicy;

use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
    proto::{self, SolverParameter},
};
use nets::Nets;
use sgd::SgdMethod;
use smooth::Smoothed;
use std::{path::Path, time::Instant};

type Observer = Box<dyn FnMut(&Event<'_>) + Send>;
type Request = Box<dyn FnMut() -> Action + Send>;

/// Trains a net.
pub struct Solver<T: Element, D: Device> {
    param: SolverParameter,
    rates: RatePolicy,
    nets: Nets<T, D>,
    method: SgdMethod<T, D>,
    /// Updates made.
    iteration: usize,
    observers: Vec<Observer>,
    request: Request,
    /// When, and at which iteration, progress was last shown.
    shown: (Instant, usize),
    stopped: bool,
}

impl<T: Element, D: Device> Solver<T, D> {
    /// Reads a solver's definition from a text file. Files it names are relative to the current
    /// folder; without a `snapshot_prefix`, snapshots go beside the file, under its name.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Parse`]; those of [`new`](Self::new), with the file's name.
    pub fn from_file(path: impl AsRef<Path>, device: &D) -> Result<Self> {
        let path = path.as_ref();
        let built = Self::new(read_definition(path)?, device);
        built.map_err(|error| error.within(path.display().to_string()))
    }

    /// Builds the nets of a solver's definition.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the definition makes no solver; those of the nets.
    pub fn new(param: SolverParameter, device: &D) -> Result<Self> {
        let param = proto::logged(proto::upgrade::solver(param), "solver")?;
        if param.r#type() != "SGD" {
            let why = format!("unknown solver type `{}`; known types: SGD", param.r#type());
            return Err(Error::Invalid(why));
        }
        if param.iter_size() < 1 || param.average_loss() < 1 {
            return Err(Error::Invalid("iter_size and average_loss must be positive".into()));
        }
        let rates = RatePolicy::new(&param)?;
        let nets = Nets::new(&param, device)?;
        let method = SgdMethod::new(&param, &nets.train)?;
        snapshot::check_writable(&param, &nets.train)?;
        Ok(Self {
            param,
            rates,
            nets,
            method,
            iteration: 0,
            observers: Vec::new(),
            request: Box::new(|| Action::Continue),
            shown: (Instant::now(), 0),
            stopped: false,
        })
    }

    /// The definition.
    pub fn param(&self) -> &SolverParameter {
        &self.param
    }

    /// The net being trained.
    pub fn net(&self) -> &Net<T, D> {
        &self.nets.train
    }

    /// The net being trained, to be changed: weights copied in, inputs written.
    pub fn net_mut(&mut self) -> &mut Net<T, D> {
        &mut self.nets.train
    }

    /// The nets it is tested with.
    pub fn test_nets(&self) -> impl ExactSizeIterator<Item = &Net<T, D>> {
        self.nets.tests.iter().map(|test| &test.net)
    }

    /// Updates made so far.
    #[doc(alias = "iter")]
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The learning rate of the next update.
    #[doc(alias = "GetLearningRate")]
    pub fn rate(&self) -> f64 {
        self.rates.at(self.iteration)
    }

    /// Tells `observer` of all that happens from now on.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.observers.push(Box::new(observer));
    }

    /// Asks `request` after each iteration whether to go on.
    #[doc(alias = "SetActionFunction")]
    pub fn ask(&mut self, request: impl FnMut() -> Action + Send + 'static) {
        self.request = Box::new(request);
    }

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
        self.stopped = false;
        self.step(end.saturating_sub(self.iteration))?;
        let due = |interval: i32| interval > 0 && self.iteration.is_multiple_of(interval as usize);
        let (snapped, show, test) = (
            due(self.param.snapshot()),
            due(self.param.display()),
            due(self.param.test_interval()),
        );
        if self.param.snapshot_after_train() && !snapped {
            self.snapshot()?;
        }
        let mut loss = None;
        if !self.stopped {
            if show {
                loss = Some(self.nets.train.forward()?);
            }
            if test {
                self.test_all()?;
            }
        }
        self.tell(&Event::Finished { iteration: self.iteration, loss, early: self.stopped });
        Ok(())
    }

    /// Makes `iterations` updates, with the tests and snapshots that fall due, or fewer if a
    /// request stops it.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    #[doc(alias = "Step")]
    pub fn step(&mut self, iterations: usize) -> Result<()> {
        let end = self.iteration + iterations;
        let mut smoothed = Smoothed::new(self.param.average_loss() as usize);
        self.shown = (Instant::now(), self.iteration);
        while self.iteration < end {
            self.nets.train.clear_param_diffs()?;
            let interval = self.param.test_interval().max(0) as usize;
            let first = self.iteration > 0 || self.param.test_initialization();
            if interval > 0 && self.iteration.is_multiple_of(interval) && first {
                self.test_all()?;
            }
            let loss = smoothed.add(self.forward_backward()?);
            let rate = self.rate();
            self.show(loss, rate)?;
            self.method.update(&self.param, rate, &self.nets.train)?;
            self.iteration += 1;
            let action = (self.request)();
            let due = self.param.snapshot() > 0
                && self.iteration.is_multiple_of(self.param.snapshot() as usize);
            if due || action == Action::Snapshot {
                self.snapshot()?;
            }
            if action == Action::Stop {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    /// Tests with every test net.
    ///
    /// # Errors
    /// Those of the nets and the device.
    #[doc(alias = "TestAll")]
    pub fn test_all(&mut self) -> Result<()> {
        for index in 0..self.nets.tests.len() {
            self.test(index)?;
        }
        Ok(())
    }

    /// Tests with one test net; returns the means of its outputs over its batches.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such net; those of the net and the device.
    #[doc(alias = "Test")]
    pub fn test(&mut self, index: usize) -> Result<Vec<Score>> {
        let count = self.nets.tests.len();
        if index >= count {
            return Err(Error::Invalid(format!("there is no test net {index}, only {count}")));
        }
        self.tell(&Event::Testing { iteration: self.iteration, net: index });
        let test = &mut self.nets.tests[index];
        test.net.share_trained_with(&self.nets.train)?;
        let (loss, outputs) = mean_scores(&mut test.net, test.batches, |_, _| ())?;
        let loss = self.param.test_compute_loss().then_some(loss);
        let iteration = self.iteration;
        self.tell(&Event::Tested { iteration, net: index, outputs: &outputs, loss });
        Ok(outputs)
    }

    fn forward_backward(&mut self) -> Result<f64> {
        let passes = self.param.iter_size();
        let mut loss = 0.0;
        for _ in 0..passes {
            loss += self.nets.train.forward()?;
            self.nets.train.backward()?;
        }
        Ok(loss / f64::from(passes))
    }

    fn show(&mut self, loss: f64, rate: f64) -> Result<()> {
        let iteration = self.iteration;
        self.tell(&Event::Iterated { iteration, loss, rate });
        let display = self.param.display();
        if display > 0 && iteration.is_multiple_of(display as usize) {
            let outputs = scores(&self.nets.train)?;
            let (since, from) = self.shown;
            let (seconds, passed) = (since.elapsed().as_secs_f64(), iteration - from);
            let outputs = &outputs[..];
            let display = display as usize;
            let event =
                Event::Displayed { iteration, loss, rate, outputs, passed, seconds, display };
            self.tell(&event);
            self.shown = (Instant::now(), iteration);
        }
        Ok(())
    }

    fn tell(&mut self, event: &Event<'_>) {
        for observer in &mut self.observers {
            observer(event);
        }
    }
}

/// Reads a solver's definition from a text file of any age; without a `snapshot_prefix`, or with a
/// folder as one, the file's own name completes it.
///
/// # Errors
/// Those of [`proto::read_solver`].
pub fn read_definition(path: &Path) -> Result<SolverParameter> {
    let mut param = proto::read_solver(path)?;
    let stem = path.file_stem().unwrap_or_default();
    let prefix = match param.snapshot_prefix.as_deref() {
        None | Some("") => path.with_extension(""),
        Some(prefix) if Path::new(prefix).is_dir() => Path::new(prefix).join(stem),
        Some(prefix) => prefix.into(),
    };
    param.snapshot_prefix = Some(prefix.to_string_lossy().into_owned());
    Ok(param)
}

/// Runs a net forward over `batches` batches and shows each batch's outputs to `each`; returns
/// the means of the objective and of each element of each output.
///
/// # Errors
/// [`Error::Invalid`] for no batches; those of the net.
pub fn mean_scores<T: Element, D: Device>(
    net: &mut Net<T, D>,
    batches: usize,
    mut each: impl FnMut(usize, &[Score]),
) -> Result<(f64, Vec<Score>)> {
    if batches == 0 {
        return Err(Error::Invalid("a test needs at least one batch".into()));
    }
    let mut loss = 0.0;
    let mut sums: Vec<Score> = Vec::new();
    for index in 0..batches {
        loss += net.forward()?;
        let batch = scores(net)?;
        each(index, &batch);
        if sums.is_empty() {
            sums = batch;
        } else {
            for (sum, score) in sums.iter_mut().zip(batch) {
                sum.value += score.value;
            }
        }
    }
    for sum in &mut sums {
        sum.value /= batches as f64;
    }
    Ok((loss / batches as f64, sums))
}

/// Each element of each output of a net.
fn scores<T: Element, D: Device>(net: &Net<T, D>) -> Result<Vec<Score>> {
    let mut scores = Vec::new();
    for (name, blob, loss_weight) in net.outputs() {
        for value in blob.data()?.host()? {
            scores.push(Score { name: name.to_owned(), value: value.to_f64(), loss_weight });
        }
    }
    Ok(scores)
}
