//! Model-based test of the coherence of host and device memory. The test runs random operations on
//! two `SyncedMemory` values of one simulated device, and injects faults into calls and queued
//! work.
//!
//! The model predicts the behaviour that cortado's documentation specifies:
//! - A read of a `SyncedMemory` returns the value that was written last. A failed operation on a
//!   `SyncedMemory` does not change the value of the `SyncedMemory`.
//! - Queued work may fail after the call that queued the work has succeeded. The outputs of failed
//!   work are lost and read as NaN. The next wait for the queue returns the error, and later waits
//!   do not. If a forked queue is ordered after the failed work, the next wait for the forked queue
//!   also returns the error. Work that is queued after failed work still runs.
//!
//! `CORTADO_SEED` selects the random operations, and `CORTADO_CASES` sets the number of sequences.

use cortado::{
    Error, Head, Memory, Result, Storable, SyncedMemory, View, ViewMut,
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
/// Default number of sequences of operations, which is small under Miri, because Miri is slow.
const CASES: u32 = if cfg!(miri) { 8 } else { 1_000 };

/// Operation of a random sequence. The first field of an operation on a `SyncedMemory` is the index
/// of the `SyncedMemory`.
#[derive(Clone, Debug)]
enum Step {
    ReadHost(usize, Range<usize>),
    ReadDevice(usize),
    WriteHost(usize, Range<usize>, f32),
    /// Overwrites a range of elements on the host, without a transfer if the range covers all
    /// elements.
    OverwriteHost(usize, Range<usize>, f32),
    CommitHost(usize, f32),
    RefuseHost(usize),
    Adopt(usize, f32),
    /// Prefetches a `SyncedMemory` to the device on a forked queue.
    Prefetch(usize),
    /// Overwrites a range of elements with a kernel, without a transfer if the range covers all
    /// elements.
    Fill(usize, Range<usize>, f32),
    /// Updates a range of elements with a kernel.
    Scal(usize, Range<usize>, f32),
    /// Runs the kernel `scal` on a forked queue, after the earlier work and before the later work
    /// of the device's own queue.
    ScalOnFork(usize, Range<usize>, f32),
    /// Updates a range of one `SyncedMemory` with a kernel that also reads the other
    /// `SyncedMemory`.
    Axpy(usize, Range<usize>, f32),
    Copy(usize, Range<usize>),
    Wait,
    /// Replaces a `SyncedMemory` by a new one while queued work may still use the old one.
    Replace(usize),
    Inject(Fault, u64),
}
use Step::*;

fn steps() -> BoxedStrategy<Step> {
    let range = || {
        let part = (0..LEN).prop_flat_map(|start| (Just(start), start..=LEN));
        prop_oneof![Just(0..LEN), part.prop_map(|(start, end)| start..end)]
    };
    let (memory_index, number) = (0..MEMORIES, (1..100u8).prop_map(f32::from));
    let factor = prop::sample::select(vec![-1.0f32, 2.0]);
    let whole_write = (memory_index.clone(), number.clone());
    let part_write = (memory_index.clone(), range(), number);
    let part_scale = (memory_index.clone(), range(), factor);
    let faults = vec![Fault::Alloc, Fault::Copy, Fault::Launch, Fault::InFlight, Fault::InFlight];
    prop_oneof![
        2 => (memory_index.clone(), range()).prop_map(|(index, part)| ReadHost(index, part)),
        2 => memory_index.clone().prop_map(ReadDevice),
        1 => part_write.clone().prop_map(|(index, part, value)| WriteHost(index, part, value)),
        1 => part_write.clone().prop_map(|(index, part, value)| OverwriteHost(index, part, value)),
        1 => whole_write.clone().prop_map(|(index, value)| CommitHost(index, value)),
        1 => memory_index.clone().prop_map(RefuseHost),
        1 => whole_write.prop_map(|(index, value)| Adopt(index, value)),
        2 => memory_index.clone().prop_map(Prefetch),
        2 => part_write.prop_map(|(index, part, value)| Fill(index, part, value)),
        2 => part_scale.clone().prop_map(|(index, part, factor)| Scal(index, part, factor)),
        1 => part_scale.clone().prop_map(|(index, part, factor)| ScalOnFork(index, part, factor)),
        2 => part_scale.prop_map(|(index, part, factor)| Axpy(index, part, factor)),
        1 => (memory_index.clone(), range()).prop_map(|(index, part)| Copy(index, part)),
        1 => Just(Wait),
        1 => memory_index.prop_map(Replace),
        3 => (prop::sample::select(faults), 1..6u64).prop_map(|(fault, nth)| Inject(fault, nth)),
    ]
    .boxed()
}

/// Elements of the host or device copy of a memory; `None` for an element that was lost because
/// queued work failed.
type Values = [Option<f32>; LEN];
/// Result of an operation in the model. The model predicts whether an operation fails, but not
/// which error the operation returns.
type ModelResult<T = ()> = Result<T, ()>;

#[derive(Clone, Debug, Default)]
struct Model {
    memories: [Sides; MEMORIES],
    /// Contents of all device allocations of a sequence. The model never frees an allocation,
    /// because queued work may still use it.
    buffers: Vec<Values>,
    queue: VecDeque<Job>,
    /// Whether queued work has failed and no call has returned its error yet.
    failed: bool,
    faults: Vec<(Fault, u64)>,
    /// Outcome that the model predicts for the last operation.
    outcome: Outcome,
}

type Outcome = Option<ModelResult<Option<Values>>>;

#[derive(Clone, Debug, Default)]
struct Sides {
    /// Value of the host side, or `None` if the host side is stale.
    host: Option<Values>,
    device_valid: bool,
    /// Index in `buffers` of the device allocation, whose contents may be stale.
    buffer: Option<usize>,
}

/// Kernel or copy that a call has queued.
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
    fn run_step(&mut self, step: &Step) -> ModelResult<Option<Values>> {
        match step.clone() {
            ReadHost(index, _) => return self.host(index).map(Some),
            ReadDevice(index) => {
                let buffer = self.device(index)?;
                self.event(Fault::Copy)?;
                self.wait()?;
                return Ok(Some(self.buffers[buffer]));
            }
            WriteHost(index, part, value) | OverwriteHost(index, part, value) => {
                let mut values = [None; LEN];
                if part != (0..LEN) || matches!(step, WriteHost(..)) {
                    values = self.host(index)?;
                }
                values[part].fill(Some(value));
                self.set_host(index, values);
            }
            CommitHost(index, value) | Adopt(index, value) => {
                self.set_host(index, [Some(value); LEN])
            }
            RefuseHost(index) => {
                // A failed write may have changed the host side, so the host side becomes stale if
                // the device side is valid.
                let sides = &mut self.memories[index];
                sides.host = sides.host.filter(|_| !sides.device_valid);
                return Err(());
            }
            Prefetch(index) => self.prefetch(index)?,
            Fill(index, part, value) => {
                self.event(Fault::Launch)?;
                self.queue_kernel(index, part, true, Work::Put([Some(value); LEN]))?;
            }
            Scal(index, part, factor) => {
                self.event(Fault::Launch)?;
                self.queue_kernel(index, part, false, Work::Scal(factor))?;
            }
            ScalOnFork(index, part, factor) => {
                self.device(index)?;
                self.event(Fault::Launch)?;
                self.queue_kernel(index, part, false, Work::Scal(factor))?;
            }
            Axpy(index, part, factor) => {
                self.event(Fault::Launch)?;
                let x = self.device(1 - index)?;
                self.queue_kernel(index, part, false, Work::Axpy(factor, x))?;
            }
            Copy(index, part) => {
                self.event(Fault::Launch)?;
                let x = self.device(1 - index)?;
                self.queue_kernel(index, part, true, Work::Copy(x))?;
            }
            Wait => self.wait()?,
            Replace(index) => self.memories[index] = Sides::default(),
            Inject(fault, nth) => self.faults.push((fault, nth)),
        }
        Ok(None)
    }

    fn head(&self, index: usize) -> Head {
        match (self.memories[index].host.is_some(), self.memories[index].device_valid) {
            (false, false) => Head::Uninitialized,
            (true, false) => Head::HeadAtHost,
            (false, true) => Head::HeadAtDevice,
            (true, true) => Head::Synced,
        }
    }

    fn host(&mut self, index: usize) -> ModelResult<Values> {
        let Sides { host, device_valid, buffer } = self.memories[index];
        let values = match (host, buffer) {
            (Some(values), _) => values,
            (None, Some(buffer)) if device_valid => {
                self.event(Fault::Copy)?;
                self.wait()?;
                self.buffers[buffer]
            }
            _ => [Some(0.0); LEN],
        };
        self.memories[index].host = Some(values);
        Ok(values)
    }

    fn set_host(&mut self, index: usize, values: Values) {
        self.memories[index].host = Some(values);
        self.memories[index].device_valid = false;
    }

    fn allocate(&mut self, index: usize) -> ModelResult<usize> {
        if self.memories[index].buffer.is_none() {
            self.event(Fault::Alloc)?;
            self.memories[index].buffer = Some(self.buffers.len());
            self.buffers.push([Some(0.0); LEN]);
        }
        self.memories[index].buffer.ok_or(())
    }

    /// Returns the upload that makes a stale device side valid, or `None` if the device side is
    /// valid.
    fn upload(&mut self, index: usize) -> ModelResult<Option<Job>> {
        let to = self.allocate(index)?;
        let Some(values) = self.memories[index].host else { return Ok(None) };
        self.event(Fault::Copy)?;
        Ok(Some(Job { to, range: 0..LEN, work: Work::Put(values) }))
    }

    fn device(&mut self, index: usize) -> ModelResult<usize> {
        if !self.memories[index].device_valid {
            let upload = self.upload(index)?;
            self.queue.extend(upload);
            self.memories[index].device_valid = true;
        }
        self.allocate(index)
    }

    /// Models a prefetch: an upload on a forked queue that is ordered after the device's queue. The
    /// prefetch also fails if earlier work of the device's queue has failed, and the next wait for
    /// the device still returns the error of that work.
    fn prefetch(&mut self, index: usize) -> ModelResult {
        if self.memories[index].device_valid {
            return Ok(());
        }
        let upload = self.upload(index)?;
        self.run_queue();
        let is_lost = upload.is_some_and(|job| self.run(job));
        if is_lost || self.failed {
            return Err(());
        }
        self.memories[index].device_valid = true;
        Ok(())
    }

    fn queue_kernel(
        &mut self,
        index: usize,
        range: Range<usize>,
        overwrites: bool,
        work: Work,
    ) -> ModelResult {
        let covers_all = range == (0..LEN);
        let to = if overwrites && covers_all { self.allocate(index)? } else { self.device(index)? };
        let sides = &mut self.memories[index];
        (sides.host, sides.device_valid) = (None, true);
        self.queue.push_back(Job { to, range, work });
        Ok(())
    }

    fn wait(&mut self) -> ModelResult {
        self.run_queue();
        if std::mem::take(&mut self.failed) { Err(()) } else { Ok(()) }
    }

    fn run_queue(&mut self) {
        while let Some(job) = self.queue.pop_front() {
            self.failed |= self.run(job);
        }
    }

    fn run(&mut self, Job { to, range, work }: Job) -> bool {
        let is_lost = self.event(Fault::InFlight).is_err();
        for i in range {
            let y = self.buffers[to][i];
            self.buffers[to][i] = match work {
                _ if is_lost => None,
                Work::Put(values) => values[i],
                Work::Scal(factor) => y.map(|y| factor * y),
                Work::Axpy(factor, x) => y.zip(self.buffers[x][i]).map(|(y, x)| factor * x + y),
                Work::Copy(x) => self.buffers[x][i],
            };
        }
        is_lost
    }

    /// Decrements the counter of each injected fault of the kind `event`, and fails if a counter
    /// reaches 0.
    fn event(&mut self, event: Fault) -> ModelResult {
        for (_, remaining) in self.faults.iter_mut().filter(|(fault, _)| *fault == event) {
            *remaining -= 1;
        }
        let count = self.faults.len();
        self.faults.retain(|(_, remaining)| *remaining > 0);
        if self.faults.len() < count { Err(()) } else { Ok(()) }
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
            // The proptest strategy is created once per thread, because creating a strategy takes
            // longer than drawing a value.
            static STEPS: BoxedStrategy<Step> = steps();
        }
        STEPS.with(Clone::clone)
    }
    fn apply(mut model: Self, step: &Step) -> Self {
        model.outcome = Some(model.run_step(step));
        model
    }
}

struct SystemUnderTest {
    device: SimulatedDevice,
    memories: [SyncedMemory<SimulatedDevice>; MEMORIES],
}

impl SystemUnderTest {
    fn new() -> Result<Self> {
        let device = SimulatedDevice::with_threads(1)?;
        let memories = [(); MEMORIES].map(|()| Self::memory(&device));
        Ok(Self { device, memories })
    }

    fn memory(device: &SimulatedDevice) -> SyncedMemory<SimulatedDevice> {
        SyncedMemory::new(device, LEN * size_of::<f32>())
    }

    /// Returns a mutable view of a range of one `SyncedMemory`, and a view of the same range of the
    /// other `SyncedMemory`.
    fn parts(
        &mut self,
        index: usize,
        part: Range<usize>,
    ) -> Result<(ViewMut<'_, f32, SimulatedDevice>, View<'_, f32, SimulatedDevice>)> {
        let [first, second] = &mut self.memories;
        let (own, other) = if index == 0 { (first, second) } else { (second, first) };
        Ok((ViewMut::new(own, LEN)?.slice(part.clone())?, View::new(&*other, LEN)?.slice(part)?))
    }

    /// Runs an operation on the simulated device, and returns the range and the values that the
    /// operation read. If `changes_host` is true, the operation `RefuseHost` changes half of the
    /// host side before it fails.
    fn run_step(
        &mut self,
        step: Step,
        changes_host: bool,
    ) -> Result<Option<(Range<usize>, Vec<f32>)>> {
        let device = self.device.clone();
        match step {
            ReadHost(index, part) => {
                let view = View::<f32, _>::new(&self.memories[index], LEN)?.slice(part.clone())?;
                return Ok(Some((part, view.host()?.to_vec())));
            }
            ReadDevice(index) => {
                let mut read = vec![0.0f32; LEN];
                let buffer = self.memories[index].device()?;
                device.download(buffer, 0, f32::bytes_of_mut(&mut read))?;
                return Ok(Some((0..LEN, read)));
            }
            WriteHost(index, part, value) => self.parts(index, part)?.0.host_mut()?.fill(value),
            OverwriteHost(index, part, value) => {
                self.parts(index, part)?.0.host_write_only()?.fill(value);
            }
            CommitHost(index, value) => self.parts(index, 0..LEN)?.0.host_overwrite(|values| {
                values.fill(value);
                Ok(())
            })?,
            RefuseHost(index) => self.parts(index, 0..LEN)?.0.host_overwrite(|values| {
                if changes_host {
                    values[..LEN / 2].fill(-7.0);
                }
                Err(Error::invalid_input("test", "refused"))
            })?,
            Adopt(index, value) => {
                self.memories[index].adopt(HostBytes::adopt(vec![value; LEN]))?
            }
            Prefetch(index) => self.memories[index].prefetch(&device.fork_queue()?)?,
            Fill(index, part, value) => device.fill(value, self.parts(index, part)?.0)?,
            Scal(index, part, factor) => device.scal(factor, self.parts(index, part)?.0)?,
            ScalOnFork(index, part, factor) => {
                let fork = device.fork_queue()?;
                // The upload that precedes the kernel must be queued on the device's queue, not on
                // the fork's queue.
                self.memories[index].device()?;
                fork.order_after(&device)?;
                fork.scal(factor, self.parts(index, part)?.0)?;
                device.order_after(&fork)?;
            }
            Axpy(index, part, factor) => {
                let (y, x) = self.parts(index, part)?;
                device.axpy(factor, x, y)?;
            }
            Copy(index, part) => {
                let (y, x) = self.parts(index, part)?;
                device.copy(x, y)?;
            }
            Wait => device.synchronize()?,
            Replace(index) => self.memories[index] = Self::memory(&device),
            Inject(fault, nth) => device.inject_fault(fault, nth),
        }
        Ok(None)
    }

    /// Runs an operation on the simulated device after the model has run the same operation.
    /// Compares the operation's result and the valid sides with those of the model.
    fn check_step(&mut self, model: &Model, step: &Step) -> Result<(), TestCaseError> {
        let changes_host = matches!(step, RefuseHost(index) if model.memories[*index].device_valid);
        let result = self.run_step(step.clone(), changes_host);
        let agrees = match (&result, &model.outcome) {
            (Err(_), Some(Err(()))) | (Ok(None), Some(Ok(None))) => true,
            (Ok(Some((part, read))), Some(Ok(Some(values)))) => {
                values[part.clone()].iter().zip(read).all(|(want, read)| match want {
                    Some(want) => want.to_bits() == read.to_bits(),
                    None => read.is_nan(),
                })
            }
            _ => false,
        };
        prop_assert!(agrees, "{step:?}: {result:?}, expected {:?}", model.outcome);
        for (index, memory) in self.memories.iter().enumerate() {
            prop_assert_eq!(
                memory.head(),
                model.head(index),
                "valid sides (host, device) of memory {} after {:?}",
                index,
                step
            );
        }
        Ok(())
    }
}

/// Runs a sequence of operations, and then reads each host and device side until the read succeeds,
/// because injected faults may still be pending.
fn check_sequence(
    (mut model, steps, count): <Sequences as Strategy>::Value,
) -> Result<(), TestCaseError> {
    let mut system =
        SystemUnderTest::new().map_err(|error| TestCaseError::fail(error.to_string()))?;
    for step in steps {
        if let Some(count) = &count {
            // `count` is the number of operations that ran: to shorten a failing sequence, proptest
            // first drops the operations that never ran.
            count.fetch_add(1, SeqCst);
        }
        model = Model::apply(model, &step);
        system.check_step(&model, &step)?;
    }
    for step in (0..MEMORIES).flat_map(|index| [ReadDevice(index), ReadHost(index, 0..LEN)]) {
        loop {
            model = Model::apply(model, &step);
            system.check_step(&model, &step)?;
            if matches!(model.outcome, Some(Ok(_))) {
                break;
            }
        }
    }
    Ok(())
}

type Sequences = proptest_state_machine::strategy::Sequential<
    Model,
    Step,
    BoxedStrategy<Model>,
    BoxedStrategy<Step>,
>;

fn env_number<N: std::str::FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Shortens a failing sequence: removes single operations as long as the sequence still fails.
/// proptest itself tries each removal only once.
fn shortest(mut steps: Vec<Step>) -> Vec<Step> {
    let mut index = 0;
    while index < steps.len() {
        let mut shorter_steps = steps.clone();
        shorter_steps.remove(index);
        match check_sequence((Model::default(), shorter_steps.clone(), None)) {
            Ok(()) => index += 1,
            Err(_) => (steps, index) = (shorter_steps, 0),
        }
    }
    steps
}

#[test]
fn random_operations_agree_with_the_model() {
    let (seed, cases) = (env_number("CORTADO_SEED", 1), env_number("CORTADO_CASES", CASES));
    println!("CORTADO_SEED={seed} CORTADO_CASES={cases}");
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        // In an unoptimized build, proptest's default random number generator takes three quarters
        // of the test's time.
        rng_algorithm: RngAlgorithm::XorShift,
        failure_persistence: None,
        ..Config::default()
    };
    let sequences = Model::sequential_strategy(1..=STEPS);
    match TestRunner::new(config).run(&sequences, check_sequence) {
        Ok(()) => {}
        Err(TestError::Fail(_, (_, steps, _))) => {
            let steps = shortest(steps);
            let failure = check_sequence((Model::default(), steps.clone(), None));
            panic!(
                "{failure:?}\n  smallest failing sequence: {steps:?}, followed by reads of both sides"
            )
        }
        Err(error) => panic!("{error}"),
    }
}
