//! Execution of a block of threads.
//!
//! A warp runs until a barrier or its end. Lanes that diverge at a branch run one group after the
//! other, and meet again at the immediate post-dominator of the branch.

use crate::{
    arithmetic::Precision,
    counters::Counters,
    device_memory::DeviceMemory,
    kernel::{ENDED, End, Kernel, SPECIAL},
    random::Random,
    shared::Shared,
    warp::{ALL, Fault, Frame, LANES, Warp},
};

/// Sizes or indices in x, y and z.
pub(crate) type Dim = [u32; 3];

/// The state that the threads of a block share.
pub(crate) struct Block<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) memory: &'a mut DeviceMemory,
    /// Index of the GPU, starting at 0.
    pub(crate) card: u32,
    pub(crate) parameters: &'a [u8],
    pub(crate) shared: Shared,
    pub(crate) random: Random,
    pub(crate) grid: Dim,
    pub(crate) threads: Dim,
    pub(crate) index: Dim,
    pub(crate) precision: Precision,
    /// Number of instructions that warps have run.
    pub(crate) instructions: u64,
    /// Counters of the launch; `None` if the caller does not request counters.
    pub(crate) counters: Option<Counters>,
}

impl Block<'_> {
    /// Returns the GPU and the tag of a thread.
    #[inline(always)]
    pub(crate) fn thread(&self, warp: &Warp, lane: usize) -> (u32, u32) {
        (self.card, self.memory.tags.interval + (warp.number * LANES + lane) as u32)
    }

    /// Gives the threads of the block new tags, which follow their old tags, one for each of
    /// `lanes` lanes. Returns false if too few tags are left.
    fn renew_tags(&mut self, lanes: u32) -> bool {
        let next = self.memory.tags.interval + lanes;
        self.memory.tags.interval = next;
        next < u32::MAX - 2 * lanes
    }
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The warp waits at the barrier at the end of a basic block.
    Barrier(usize),
    Ended,
    Faulty {
        line: u32,
    },
}

/// Number of basic blocks after which a warp counts as stuck in a loop.
const MAX_BLOCKS: u64 = 200_000_000;

impl Warp {
    /// Returns a warp whose constants are set.
    pub(crate) fn new(kernel: &Kernel, number: usize, threads: u32) -> Self {
        let mut warp = Self {
            number,
            active: 0,
            faulty: 0,
            fault: None,
            frames: Vec::new(),
            threads,
            ended: 0,
            words: vec![[0; LANES]; kernel.words],
            doubles: vec![[0; LANES]; kernel.doubles],
            predicates: vec![0; kernel.predicates],
            written_words: vec![0; kernel.words],
            written_doubles: vec![0; kernel.doubles],
            written_predicates: vec![0; kernel.predicates],
        };
        for (slot, value) in &kernel.word_constants {
            warp.words[*slot as usize] = [*value; LANES];
        }
        for (slot, value) in &kernel.double_constants {
            warp.doubles[*slot as usize] = [*value; LANES];
        }
        for (slot, value) in &kernel.predicate_constants {
            warp.predicates[*slot as usize] = if *value { ALL } else { 0 };
        }
        warp
    }

    /// Prepares the warp for the start of a block, and marks all registers except constants as not
    /// yet written.
    fn reset(&mut self, block: &Block<'_>) {
        let kernel = block.kernel;
        (self.faulty, self.fault, self.ended) = (0, None, 0);
        self.frames.clear();
        self.frames.push(Frame { block: 0, reconvergence: ENDED, lanes: self.threads });
        self.written_words.fill(0);
        self.written_doubles.fill(0);
        self.written_predicates.fill(0);
        self.written_words[..SPECIAL.len()].fill(ALL);
        for (slot, _) in &kernel.word_constants {
            self.written_words[*slot as usize] = ALL;
        }
        for (slot, _) in &kernel.double_constants {
            self.written_doubles[*slot as usize] = ALL;
        }
        for (slot, _) in &kernel.predicate_constants {
            self.written_predicates[*slot as usize] = ALL;
        }
        let threads = block.threads;
        for lane in 0..LANES {
            let index = thread_index(self.number * LANES + lane, threads);
            for (axis, value) in index.into_iter().enumerate() {
                self.words[axis][lane] = value;
            }
        }
        for (i, values) in [threads, block.index, block.grid].into_iter().enumerate() {
            for (axis, value) in values.into_iter().enumerate() {
                self.words[3 + 3 * i + axis] = [value; LANES];
            }
        }
    }

    /// Runs until a barrier, the end or a fault.
    fn run(&mut self, block: &mut Block<'_>) -> Stop {
        let kernel = block.kernel;
        let mut blocks = 0;
        loop {
            let Some(frame) = self.frames.last().copied() else { return Stop::Ended };
            let lanes = frame.lanes & !self.ended;
            if frame.block == frame.reconvergence || lanes == 0 {
                self.frames.pop();
                continue;
            }
            self.active = lanes;
            let basic_block = &kernel.blocks[frame.block];
            let code = &kernel.code[basic_block.instructions.clone()];
            block.instructions += code.len() as u64 + 1;
            if let Some(counters) = &mut block.counters {
                counters.execute(frame.block, lanes);
            }
            for instruction in code {
                (instruction.execute)(self, block, instruction);
                if self.faulty != 0 {
                    return Stop::Faulty { line: instruction.line };
                }
            }
            let next_block = match basic_block.end {
                End::Goto(next) => next,
                End::Branch { predicate, negated, taken, next } => {
                    let mask = self.predicate(predicate);
                    let mask = if negated { !mask } else { mask };
                    if self.faulty != 0 {
                        return Stop::Faulty { line: basic_block.line };
                    }
                    if mask & lanes == lanes {
                        taken
                    } else if mask & lanes == 0 {
                        next
                    } else {
                        self.diverge(block, basic_block.reconvergence, mask, [taken, next]);
                        continue;
                    }
                }
                End::Barrier(next) => {
                    if self.frames.len() > 1 || lanes != self.threads {
                        let lane = (self.threads & !lanes).trailing_zeros() as usize;
                        let problem = format!(
                            "bar.sync: of the lanes {:08x} of warp {}, only {lanes:08x} reach the \
                             barrier together",
                            self.threads, self.number
                        );
                        self.fail(lane, problem);
                        return Stop::Faulty { line: basic_block.line };
                    }
                    let barrier = frame.block;
                    self.frames.last_mut().expect("a frame runs").block = next;
                    return Stop::Barrier(barrier);
                }
                End::Exit => {
                    self.ended |= lanes;
                    self.frames.pop();
                    continue;
                }
            };
            self.frames.last_mut().expect("a frame runs").block = next_block;
            blocks += 1;
            if blocks > MAX_BLOCKS {
                let lane = lanes.trailing_zeros() as usize;
                self.fail(lane, "the warp does not end");
                return Stop::Faulty { line: basic_block.line };
            }
        }
    }

    /// Splits the lanes that run into those that take a branch (`mask`) and those that do not. The
    /// two groups of lanes run in random order.
    fn diverge(&mut self, block: &mut Block<'_>, meeting: usize, mask: u32, next: [usize; 2]) {
        let frame = self.frames.last_mut().expect("a frame runs");
        let lanes = frame.lanes & !self.ended;
        frame.block = meeting;
        if meeting == ENDED {
            // The groups of lanes meet again only when all their threads have ended.
            self.frames.pop();
        }
        let mut groups = [(next[0], lanes & mask), (next[1], lanes & !mask)];
        block.random.shuffle(&mut groups);
        for (block, lanes) in groups {
            self.frames.push(Frame { block, reconvergence: meeting, lanes });
        }
    }
}

/// Returns the index of a thread by its number in the block.
pub(crate) fn thread_index(number: usize, threads: Dim) -> Dim {
    let number = number as u32;
    let row = number / threads[0];
    [number % threads[0], row % threads[1], row / threads[1]]
}

/// Runs all threads of a block, and returns the description of a fault.
pub(crate) fn run(block: &mut Block<'_>, warps: &mut [Warp]) -> Result<(), String> {
    block.shared.reset(block.kernel);
    let lanes = (warps.len() * LANES) as u32;
    let mut has_tags = block.renew_tags(lanes);
    block.memory.tags.block = block.memory.tags.interval;
    for warp in &mut *warps {
        warp.reset(block);
    }
    let mut order: Vec<usize> = (0..warps.len()).collect();
    loop {
        block.random.shuffle(&mut order);
        let mut barrier = None;
        let mut ended = None;
        for &number in &order {
            let warp = &mut warps[number];
            match warp.run(block) {
                Stop::Faulty { line } => return Err(describe(block, warp, line)),
                Stop::Ended => ended = Some(number),
                Stop::Barrier(reached) => {
                    let (_, other) = *barrier.get_or_insert((number, reached));
                    if other != reached {
                        let line = block.kernel.blocks[reached].line;
                        let other = block.kernel.blocks[other].line;
                        warp.fail(0, format!("bar.sync: another warp waits at line {other}"));
                        return Err(describe(block, warp, line));
                    }
                }
            }
        }
        let Some((waiting, reached)) = barrier else { return Ok(()) };
        let line = block.kernel.blocks[reached].line;
        let warp = &mut warps[waiting];
        if let Some(ended) = ended {
            warp.fail(0, format!("bar.sync: warp {ended} has ended without reaching the barrier"));
            return Err(describe(block, warp, line));
        }
        has_tags &= block.renew_tags(lanes);
        if !(block.shared.pass_barrier() && has_tags) {
            warp.fail(0, "too many barriers");
            return Err(describe(block, warp, line));
        }
    }
}

/// Describes the fault of a warp.
fn describe(block: &Block<'_>, warp: &mut Warp, line: u32) -> String {
    let lane = warp.faulty.trailing_zeros() as usize;
    let unwritten = || Fault { lane, problem: "uninitialized register".to_owned() };
    let Fault { lane, problem } = warp.fault.take().unwrap_or_else(unwritten);
    let kernel = block.kernel;
    let thread = thread_index(warp.number * LANES + lane, block.threads);
    let source = kernel.source(line).map_or(String::new(), |source| format!(" ({source})"));
    format!(
        "{}:{line}: kernel `{}`: thread {thread:?} of block {:?}: {problem}: `{}`{source}",
        kernel.file,
        kernel.name,
        block.index,
        kernel.text(line)
    )
}
