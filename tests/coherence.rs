//! Random histories of two memories on one mirror device, with failures injected anywhere, work in
//! flight included.
//!
//! The model knows what the documentation promises and no more:
//! - Reads return what was last written. An operation that fails changes no value.
//! - Work in flight may fail. Then what it was to write is lost, which shows as NaN, and the next
//!   wait tells of it, once; a wait on a fork that comes after that work tells of it too. The
//!   work behind it runs all the same.
//!
//! `CORTADO_SEED` and `CORTADO_CASES` draw other histories, and more of them.

use cortado::{
    Error, Head, Memory, Result, SyncedMemory, View, ViewMut,
    device::{SimulatedDevice, simulated::Fault},
    kernel::{Blas, Elementwise},
    memory::HostBytes,
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, RngSeed, TestError, TestRunner},
};
use proptest_state_machine::ReferenceStateMachine;
use std::{collections::VecDeque, ops::Range, sync::atomic::Ordering::SeqCst};

const LEN: usize = 4;
const MEMORIES: usize = 2;
const STEPS: usize = 50;
/// Under an interpreter a few histories must do.
const CASES: u32 = if cfg!(miri) { 8 } else { 10_000 };

/// What can be done to the memories, of which the first number picks one.
#[derive(Clone, Debug)]
enum Step {
    ReadHost(usize, Range<usize>),
    ReadDevice(usize),
    WriteHost(usize, Range<usize>, f32),
    /// Fetches nothing if the range is all.
    OverwriteHost(usize, Range<usize>, f32),
    CommitHost(usize, f32),
    RefuseHost(usize),
    Adopt(usize, f32),
    /// Through a fork.
    Prefetch(usize),
    /// A kernel that overwrites: fetches nothing if the range is all.
    Fill(usize, Range<usize>, f32),
    /// A kernel that updates.
    Scal(usize, Range<usize>, f32),
    /// The same on a fork, ordered after the device's queue and before what follows there.
    ScalElsewhere(usize, Range<usize>, f32),
    /// From the other memory.
    Axpy(usize, Range<usize>, f32),
    Copy(usize, Range<usize>),
    Wait,
    /// Drops a memory, with whatever is in flight, for a new one.
    Replace(usize),
    Inject(Fault, u64),
}
use Step::*;

fn steps() -> BoxedStrategy<Step> {
    let range = || {
        let part = (0..LEN).prop_flat_map(|start| (Just(start), start..=LEN));
        prop_oneof![Just(0..LEN), part.prop_map(|(start, end)| start..end)]
    };
    let (one, number) = (0..MEMORIES, (1..100u8).prop_map(f32::from));
    let factor = prop::sample::select(vec![-1.0f32, 2.0]);
    let all = (one.clone(), number.clone());
    let some = (one.clone(), range(), number);
    let scaled = (one.clone(), range(), factor);
    let faults = vec![Fault::Alloc, Fault::Copy, Fault::Launch, Fault::InFlight, Fault::InFlight];
    prop_oneof![
        2 => (one.clone(), range()).prop_map(|(at, part)| ReadHost(at, part)),
        2 => one.clone().prop_map(ReadDevice),
        1 => some.clone().prop_map(|(at, part, value)| WriteHost(at, part, value)),
        1 => some.clone().prop_map(|(at, part, value)| OverwriteHost(at, part, value)),
        1 => all.clone().prop_map(|(at, value)| CommitHost(at, value)),
        1 => one.clone().prop_map(RefuseHost),
        1 => all.prop_map(|(at, value)| Adopt(at, value)),
        2 => one.clone().prop_map(Prefetch),
        2 => some.prop_map(|(at, part, value)| Fill(at, part, value)),
        2 => scaled.clone().prop_map(|(at, part, factor)| Scal(at, part, factor)),
        1 => scaled.clone().prop_map(|(at, part, factor)| ScalElsewhere(at, part, factor)),
        2 => scaled.prop_map(|(at, part, factor)| Axpy(at, part, factor)),
        1 => (one.clone(), range()).prop_map(|(at, part)| Copy(at, part)),
        1 => Just(Wait),
        1 => one.prop_map(Replace),
        3 => (prop::sample::select(faults), 1..6u64).prop_map(|(fault, nth)| Inject(fault, nth)),
    ]
    .boxed()
}

// The model.

/// Elements, of which those without a value were lost in flight.
type Values = [Option<f32>; LEN];
/// A failure; which one does not matter.
type Told<T = ()> = Result<T, ()>;

#[derive(Clone, Debug, Default)]
struct Model {
    memories: [Sides; MEMORIES],
    /// All device allocations ever made: queued work may outlive its memory.
    buffers: Vec<Values>,
    queue: VecDeque<Job>,
    /// Whether a failure in flight is still to be told.
    failed: bool,
    faults: Vec<(Fault, u64)>,
    /// What the last step has to return.
    outcome: Outcome,
}

type Outcome = Option<Told<Option<Values>>>;

#[derive(Clone, Debug, Default)]
struct Sides {
    /// The host's value, if it is current.
    host: Option<Values>,
    /// Whether the device's is.
    on_device: bool,
    /// The device's allocation, current or not.
    buffer: Option<usize>,
}

/// Work in flight.
#[derive(Clone, Debug)]
struct Job {
    to: usize,
    range: Range<usize>,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Put(Values),
    Scal(f32),
    Axpy(f32, usize),
    Copy(usize),
}

impl Model {
    fn take(&mut self, step: &Step) -> Told<Option<Values>> {
        match step.clone() {
            ReadHost(at, _) => return self.host(at).map(Some),
            ReadDevice(at) => {
                let buffer = self.device(at)?;
                self.event(Fault::Copy)?;
                self.wait()?;
                return Ok(Some(self.buffers[buffer]));
            }
            WriteHost(at, part, value) | OverwriteHost(at, part, value) => {
                let mut values = [None; LEN];
                if part != (0..LEN) || matches!(step, WriteHost(..)) {
                    values = self.host(at)?;
                }
                values[part].fill(Some(value));
                self.wrote_host(at, values);
            }
            CommitHost(at, value) | Adopt(at, value) => self.wrote_host(at, [Some(value); LEN]),
            RefuseHost(at) => {
                // What was not written is kept where it is safe from a half-written host.
                let sides = &mut self.memories[at];
                sides.host = sides.host.filter(|_| !sides.on_device);
                return Err(());
            }
            Prefetch(at) => self.prefetch(at)?,
            Fill(at, part, value) => {
                self.event(Fault::Launch)?;
                self.kernel(at, part, true, Work::Put([Some(value); LEN]))?;
            }
            Scal(at, part, factor) => {
                self.event(Fault::Launch)?;
                self.kernel(at, part, false, Work::Scal(factor))?;
            }
            ScalElsewhere(at, part, factor) => {
                self.device(at)?;
                self.event(Fault::Launch)?;
                self.kernel(at, part, false, Work::Scal(factor))?;
            }
            Axpy(at, part, factor) => {
                self.event(Fault::Launch)?;
                let x = self.device(1 - at)?;
                self.kernel(at, part, false, Work::Axpy(factor, x))?;
            }
            Copy(at, part) => {
                self.event(Fault::Launch)?;
                let x = self.device(1 - at)?;
                self.kernel(at, part, true, Work::Copy(x))?;
            }
            Wait => self.wait()?,
            Replace(at) => self.memories[at] = Sides::default(),
            Inject(fault, nth) => self.faults.push((fault, nth)),
        }
        Ok(None)
    }

    fn head(&self, at: usize) -> Head {
        match (self.memories[at].host.is_some(), self.memories[at].on_device) {
            (false, false) => Head::Uninitialized,
            (true, false) => Head::HeadAtHost,
            (false, true) => Head::HeadAtDevice,
            (true, true) => Head::Synced,
        }
    }

    fn host(&mut self, at: usize) -> Told<Values> {
        let Sides { host, on_device, buffer } = self.memories[at];
        let values = match (host, buffer) {
            (Some(values), _) => values,
            (None, Some(buffer)) if on_device => {
                self.event(Fault::Copy)?;
                self.wait()?;
                self.buffers[buffer]
            }
            _ => [Some(0.0); LEN],
        };
        self.memories[at].host = Some(values);
        Ok(values)
    }

    fn wrote_host(&mut self, at: usize, values: Values) {
        self.memories[at].host = Some(values);
        self.memories[at].on_device = false;
    }

    fn allocated(&mut self, at: usize) -> Told<usize> {
        if self.memories[at].buffer.is_none() {
            self.event(Fault::Alloc)?;
            self.memories[at].buffer = Some(self.buffers.len());
            self.buffers.push([Some(0.0); LEN]);
        }
        self.memories[at].buffer.ok_or(())
    }

    /// The upload that makes the device's side current, if it takes one.
    fn upload(&mut self, at: usize) -> Told<Option<Job>> {
        let to = self.allocated(at)?;
        let Some(values) = self.memories[at].host else { return Ok(None) };
        self.event(Fault::Copy)?;
        Ok(Some(Job { to, range: 0..LEN, work: Work::Put(values) }))
    }

    fn device(&mut self, at: usize) -> Told<usize> {
        if !self.memories[at].on_device {
            let upload = self.upload(at)?;
            self.queue.extend(upload);
            self.memories[at].on_device = true;
        }
        self.allocated(at)
    }

    /// The fork has a queue, and a failure, of its own.
    fn prefetch(&mut self, at: usize) -> Told {
        if self.memories[at].on_device {
            return Ok(());
        }
        let upload = self.upload(at)?;
        self.settle();
        let lost = upload.is_some_and(|job| self.run(job));
        if lost || self.failed {
            return Err(());
        }
        self.memories[at].on_device = true;
        Ok(())
    }

    fn kernel(&mut self, at: usize, range: Range<usize>, overwrites: bool, work: Work) -> Told {
        let whole = range == (0..LEN);
        let to = if overwrites && whole { self.allocated(at)? } else { self.device(at)? };
        let sides = &mut self.memories[at];
        (sides.host, sides.on_device) = (None, true);
        self.queue.push_back(Job { to, range, work });
        Ok(())
    }

    fn wait(&mut self) -> Told {
        self.settle();
        if std::mem::take(&mut self.failed) { Err(()) } else { Ok(()) }
    }

    fn settle(&mut self) {
        while let Some(job) = self.queue.pop_front() {
            self.failed |= self.run(job);
        }
    }

    /// Whether it fails.
    fn run(&mut self, Job { to, range, work }: Job) -> bool {
        let lost = self.event(Fault::InFlight).is_err();
        for i in range {
            let here = self.buffers[to][i];
            self.buffers[to][i] = match work {
                _ if lost => None,
                Work::Put(values) => values[i],
                Work::Scal(factor) => here.map(|here| factor * here),
                Work::Axpy(factor, x) => here.zip(self.buffers[x][i]).map(|(y, x)| factor * x + y),
                Work::Copy(x) => self.buffers[x][i],
            };
        }
        lost
    }

    /// Fails if this event is to fail.
    fn event(&mut self, event: Fault) -> Told {
        for (_, left) in self.faults.iter_mut().filter(|(fault, _)| *fault == event) {
            *left -= 1;
        }
        let before = self.faults.len();
        self.faults.retain(|(_, left)| *left > 0);
        if self.faults.len() < before { Err(()) } else { Ok(()) }
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }
    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        thread_local! {
            // Made once: making it takes longer than drawing from it.
            static STEPS: BoxedStrategy<Step> = steps();
        }
        STEPS.with(Clone::clone)
    }
    fn apply(mut model: Self, step: &Step) -> Self {
        model.outcome = Some(model.take(step));
        model
    }
}

// What is tried.

struct Trial {
    device: SimulatedDevice,
    memories: [SyncedMemory<SimulatedDevice>; MEMORIES],
}

impl Trial {
    fn new() -> Result<Self> {
        let device = SimulatedDevice::with_threads(1)?;
        let memories = [(); MEMORIES].map(|()| Self::memory(&device));
        Ok(Self { device, memories })
    }

    fn memory(device: &SimulatedDevice) -> SyncedMemory<SimulatedDevice> {
        SyncedMemory::new(device, LEN * size_of::<f32>())
    }

    /// A part of a memory, and the same part of the other.
    fn parts(
        &mut self,
        at: usize,
        part: Range<usize>,
    ) -> Result<(ViewMut<'_, f32, SimulatedDevice>, View<'_, f32, SimulatedDevice>)> {
        let [first, second] = &mut self.memories;
        let (ours, other) = if at == 0 { (first, second) } else { (second, first) };
        Ok((ViewMut::new(ours, LEN)?.slice(part.clone())?, View::new(&*other, LEN)?.slice(part)?))
    }

    /// Takes a step; returns what it read, and where. `safe` is whether a refused write may leave
    /// half of it on the host.
    fn take(&mut self, step: Step, safe: bool) -> Result<Option<(Range<usize>, Vec<f32>)>> {
        let device = self.device.clone();
        match step {
            ReadHost(at, part) => {
                let view = View::<f32, _>::new(&self.memories[at], LEN)?.slice(part.clone())?;
                return Ok(Some((part, view.host()?.to_vec())));
            }
            ReadDevice(at) => {
                let mut read = vec![0.0f32; LEN];
                let buffer = self.memories[at].device()?;
                device.download(buffer, 0, bytemuck::cast_slice_mut(&mut read))?;
                return Ok(Some((0..LEN, read)));
            }
            WriteHost(at, part, value) => self.parts(at, part)?.0.host_mut()?.fill(value),
            OverwriteHost(at, part, value) => {
                self.parts(at, part)?.0.host_write_only()?.fill(value);
            }
            CommitHost(at, value) => self.parts(at, 0..LEN)?.0.host_overwrite(|values| {
                values.fill(value);
                Ok(())
            })?,
            RefuseHost(at) => self.parts(at, 0..LEN)?.0.host_overwrite(|values| {
                if safe {
                    values[..LEN / 2].fill(-7.0);
                }
                Err(Error::invalid_input("test", "refused"))
            })?,
            Adopt(at, value) => self.memories[at].adopt(HostBytes::adopt(vec![value; LEN]))?,
            Prefetch(at) => self.memories[at].prefetch(&device.fork_queue()?)?,
            Fill(at, part, value) => device.fill(value, self.parts(at, part)?.0)?,
            Scal(at, part, factor) => device.scal(factor, self.parts(at, part)?.0)?,
            ScalElsewhere(at, part, factor) => {
                let fork = device.fork_queue()?;
                // The copy that the kernel needs belongs to the memory's own queue.
                self.memories[at].device()?;
                fork.order_after(&device)?;
                fork.scal(factor, self.parts(at, part)?.0)?;
                device.order_after(&fork)?;
            }
            Axpy(at, part, factor) => {
                let (y, x) = self.parts(at, part)?;
                device.axpy(factor, x, y)?;
            }
            Copy(at, part) => {
                let (y, x) = self.parts(at, part)?;
                device.copy(x, y)?;
            }
            Wait => device.synchronize()?,
            Replace(at) => self.memories[at] = Self::memory(&device),
            Inject(fault, nth) => device.inject_fault(fault, nth),
        }
        Ok(None)
    }

    /// Takes a step that the model has taken.
    fn follow(&mut self, model: &Model, step: &Step) -> Result<(), TestCaseError> {
        let safe = matches!(step, RefuseHost(at) if model.memories[*at].on_device);
        let found = self.take(step.clone(), safe);
        let agree = match (&found, &model.outcome) {
            (Err(_), Some(Err(()))) | (Ok(None), Some(Ok(None))) => true,
            (Ok(Some((part, read))), Some(Ok(Some(values)))) => {
                values[part.clone()].iter().zip(read).all(|(want, read)| match want {
                    Some(want) => want.to_bits() == read.to_bits(),
                    None => read.is_nan(),
                })
            }
            _ => false,
        };
        prop_assert!(agree, "{step:?}: {found:?}, not {:?}", model.outcome);
        for (at, memory) in self.memories.iter().enumerate() {
            prop_assert_eq!(memory.head(), model.head(at), "memory {} after {:?}", at, step);
        }
        Ok(())
    }
}

/// Follows a history; then reads both sides of what it left, past all failures still to come.
fn follow((mut model, steps, seen): <Histories as Strategy>::Value) -> Result<(), TestCaseError> {
    let mut trial = Trial::new().map_err(|error| TestCaseError::fail(error.to_string()))?;
    for step in steps {
        if let Some(seen) = &seen {
            seen.fetch_add(1, SeqCst); // shrinking begins by dropping what nobody saw
        }
        model = Model::apply(model, &step);
        trial.follow(&model, &step)?;
    }
    for step in (0..MEMORIES).flat_map(|at| [ReadDevice(at), ReadHost(at, 0..LEN)]) {
        loop {
            model = Model::apply(model, &step);
            trial.follow(&model, &step)?;
            if matches!(model.outcome, Some(Ok(_))) {
                break;
            }
        }
    }
    Ok(())
}

type Histories = proptest_state_machine::strategy::Sequential<
    Model,
    Step,
    BoxedStrategy<Model>,
    BoxedStrategy<Step>,
>;

/// A number from the environment.
fn number<N: std::str::FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What a history comes to that no step can be left out of: shrinking tries each but once.
fn shortest(mut steps: Vec<Step>) -> Vec<Step> {
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        match follow((Model::default(), fewer.clone(), None)) {
            Ok(()) => at += 1,
            Err(_) => (steps, at) = (fewer, 0),
        }
    }
    steps
}

#[test]
fn random_histories_follow_the_model() {
    let (seed, cases) = (number("CORTADO_SEED", 1), number("CORTADO_CASES", CASES));
    println!("CORTADO_SEED={seed} CORTADO_CASES={cases}");
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        // The default takes three quarters of the time in a build that is not optimised.
        rng_algorithm: RngAlgorithm::XorShift,
        failure_persistence: None,
        ..Config::default()
    };
    let histories = Model::sequential_strategy(1..=STEPS);
    match TestRunner::new(config).run(&histories, follow) {
        Ok(()) => {}
        Err(TestError::Fail(_, (_, steps, _))) => {
            let steps = shortest(steps);
            let why = follow((Model::default(), steps.clone(), None));
            panic!("{why:?}\n  smallest history: {steps:?}\n  then both sides are read")
        }
        Err(error) => panic!("{error}"),
    }
}
