//! Counters of a launch that determine how fast a GPU executes the launch: instructions of warps,
//! sectors of device memory, and wavefronts of shared memory.

use crate::{
    kernel::{End, Kernel},
    warp::{LANES, Lanes},
};
use std::{collections::HashMap, fmt, ops::Range};

/// Bytes of a sector, the unit in which a GPU transfers device memory.
const SECTOR: u64 = 32;
/// Number of banks of shared memory. Each bank transfers one word of four bytes per wavefront.
const BANKS: usize = 32;
const WORD: u64 = 4;

/// Kind of an instruction, by the unit of the GPU that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `mma`.
    Matrix,
    /// Sums, products and FMAs of `f32` and 16-bit numbers.
    Float,
    /// Arithmetic of `f64`.
    Double,
    /// Approximations such as `ex2`, and divisions and square roots of `f32`.
    Special,
    /// Arithmetic of integers, comparisons, selections and conversions.
    Integer,
    /// Copies between registers, and loads of parameters.
    Move,
    /// Accesses to device and shared memory.
    Memory,
    /// Exchanges between the lanes of a warp.
    Exchange,
    /// Branches, barriers, and ends of threads.
    Control,
}

/// Number of kinds of instructions.
const KINDS: usize = 9;

/// Names of the kinds, in their order.
const KIND_NAMES: [&str; KINDS] =
    ["mma", "float", "double", "special", "integer", "move", "memory", "exchange", "control"];

impl Kind {
    /// Returns the kind of an instruction by its text.
    pub(crate) fn of(text: &str) -> Self {
        let opcode = text.split_whitespace().next().unwrap_or_default();
        let parts: Vec<&str> = opcode.split('.').collect();
        let is_double = parts.contains(&"f64");
        let is_float = parts
            .iter()
            .any(|part| matches!(*part, "f32" | "f16" | "bf16" | "f16x2" | "bf16x2") && !is_double);
        match parts[0] {
            "mma" => Self::Matrix,
            "ld" | "st" if parts.contains(&"param") => Self::Move,
            "ld" | "st" | "atom" | "red" | "ldmatrix" | "cp" => Self::Memory,
            "mov" | "cvta" => Self::Move,
            "shfl" | "vote" => Self::Exchange,
            "bra" | "bar" | "ret" => Self::Control,
            "fma" | "add" | "sub" | "mul" if is_float => Self::Float,
            "div" | "sqrt" | "rsqrt" | "rcp" | "ex2" | "lg2" | "sin" | "cos" | "tanh"
                if is_float =>
            {
                Self::Special
            }
            _ if is_double => Self::Double,
            _ => Self::Integer,
        }
    }
}

/// Requests of warps to a memory. A request is one instruction of one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Number of requests.
    pub requests: u64,
    /// Number of transfers that the requests need: sectors of device memory, or wavefronts of shared
    /// memory.
    pub transfers: u64,
    /// Number of transfers that bank conflicts add; 0 for device memory, which has no bank
    /// conflicts.
    pub conflicts: u64,
}

/// Counters of one launch.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Number of warp instructions of each kind, in the order of [`Kind`].
    instructions: [u64; KINDS],
    /// Number of active lanes, summed over all warp instructions.
    pub active_lanes: u64,
    /// Number of warp instructions in the main loop: the shortest loop whose text has at least half
    /// of the main kind's instructions in loops.
    pub loop_instructions: u64,
    /// Number of warp instructions of the main kind in the main loop.
    pub loop_main: u64,
    /// Number of instructions in the text of the main loop, and how many of them are of the main
    /// kind.
    pub loop_text: [u64; 2],
    /// Loads from device memory.
    pub global_loads: Requests,
    /// Stores to device memory.
    pub global_stores: Requests,
    /// Loads from shared memory, including `ldmatrix`.
    pub shared_loads: Requests,
    /// Stores to shared memory.
    pub shared_stores: Requests,
    /// Number of atomic operations, counted for each lane.
    pub atomics: u64,
    /// Sectors of device memory that the launch reads and writes.
    read: Sectors,
    written: Sectors,
    /// For each basic block, the number of executions by warps, and the number of active lanes.
    executed: Vec<(u64, u64)>,
}

/// Accesses of the active lanes of a warp by one instruction.
pub(crate) struct Access<'a> {
    pub(crate) active: u32,
    pub(crate) addresses: &'a Lanes<u64>,
    /// Bytes that each lane accesses.
    pub(crate) bytes: usize,
    pub(crate) is_store: bool,
}

impl Access<'_> {
    /// Returns the addresses of the active lanes among the lanes `first..first + count`.
    fn active(&self, first: usize, count: usize) -> impl Iterator<Item = u64> + '_ {
        let lanes = first..first + count;
        lanes.filter(|lane| self.active >> lane & 1 != 0).map(|lane| self.addresses[lane])
    }
}

/// Calls a function with each distinct one of at most 32 values.
fn distinct(values: impl Iterator<Item = u64>, mut call: impl FnMut(u64)) {
    let (mut found, mut count) = ([0; LANES], 0);
    for value in values {
        // Neighbouring lanes often access the same value.
        if count == 0 || found[count - 1] != value {
            found[count] = value;
            count += 1;
        }
    }
    let found = &mut found[..count];
    if !found.is_sorted() {
        found.sort_unstable();
    }
    for (i, value) in found.iter().enumerate() {
        if i == 0 || found[i - 1] != *value {
            call(*value);
        }
    }
}

/// A set of sectors.
#[derive(Clone, Debug, Default)]
struct Sectors {
    /// Maps the number of each group of 64 consecutive sectors to a mask of the sectors in the set.
    groups: HashMap<u64, u64>,
}

impl Sectors {
    /// Adds the sectors of the accesses, and returns the number of these sectors.
    fn add(&mut self, access: &Access<'_>) -> u64 {
        let (mut group, mut mask, mut count) = (u64::MAX, 0, 0);
        let sectors = access.active(0, LANES).map(|address| address / SECTOR);
        distinct(sectors, |sector| {
            if sector / 64 != group {
                if mask != 0 {
                    *self.groups.entry(group).or_default() |= mask;
                }
                (group, mask) = (sector / 64, 0);
            }
            mask |= 1 << (sector % 64);
            count += 1;
        });
        if mask != 0 {
            *self.groups.entry(group).or_default() |= mask;
        }
        count
    }

    fn count(&self) -> u64 {
        self.groups.values().map(|mask| u64::from(mask.count_ones())).sum()
    }
}

impl Counters {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self { executed: vec![(0, 0); kernel.blocks.len()], ..Self::default() }
    }

    /// Counts the execution of a basic block by the lanes `lanes` of a warp.
    pub(crate) fn execute(&mut self, block: usize, lanes: u32) {
        let (executions, active) = &mut self.executed[block];
        *executions += 1;
        *active += u64::from(lanes.count_ones());
    }

    /// Counts a request to device memory. An aligned access of at most 16 bytes lies in one sector.
    pub(crate) fn global(&mut self, access: &Access<'_>) {
        let (requests, touched) = match access.is_store {
            false => (&mut self.global_loads, &mut self.read),
            true => (&mut self.global_stores, &mut self.written),
        };
        requests.requests += 1;
        requests.transfers += touched.add(access);
    }

    /// Counts atomic operations on device memory.
    pub(crate) fn atomic(&mut self, access: &Access<'_>) {
        self.atomics += u64::from(access.active.count_ones());
        self.read.add(access);
        self.written.add(access);
    }

    /// Counts a request to shared memory. A wavefront transfers at most 128 bytes, so that the
    /// lanes of accesses of 8 and 16 bytes form two and four groups. Within a group, each
    /// additional word in the same bank needs another wavefront.
    pub(crate) fn shared(&mut self, access: &Access<'_>) {
        let words = (access.bytes as u64).div_ceil(WORD);
        let group = LANES / words as usize;
        let requests = match access.is_store {
            false => &mut self.shared_loads,
            true => &mut self.shared_stores,
        };
        requests.requests += 1;
        for first in (0..LANES).step_by(group) {
            let addresses = access.active(first, group);
            let mut touched: Vec<u64> =
                addresses.flat_map(|address| address / WORD..address / WORD + words).collect();
            touched.sort_unstable();
            touched.dedup();
            let mut banks = [0; BANKS];
            for word in touched {
                banks[word as usize % BANKS] += 1;
            }
            let wavefronts = banks.into_iter().max().unwrap_or(0);
            requests.transfers += wavefronts;
            requests.conflicts += wavefronts.saturating_sub(1);
        }
    }

    /// Sums the instructions of the basic blocks that were executed.
    pub(crate) fn finish(&mut self, kernel: &Kernel) {
        let main_loop = kernel.main_loop();
        for (number, (executions, lanes)) in self.executed.iter().copied().enumerate() {
            let kinds = kernel.kinds(number);
            for kind in 0..KINDS {
                self.instructions[kind] += executions * kinds[kind];
            }
            let count: u64 = kinds.iter().sum();
            self.active_lanes += lanes * count;
            if let Some((range, main)) = &main_loop
                && range.contains(&number)
            {
                self.loop_text[0] += count;
                self.loop_text[1] += kinds[*main as usize];
                self.loop_instructions += executions * count;
                self.loop_main += executions * kinds[*main as usize];
            }
        }
    }

    /// Returns the number of warp instructions.
    pub fn instructions(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Returns the number of warp instructions of a kind.
    pub fn instructions_of(&self, kind: Kind) -> u64 {
        self.instructions[kind as usize]
    }

    /// Returns how many distinct sectors the launch reads, and how many it writes.
    pub fn touched_sectors(&self) -> [u64; 2] {
        [self.read.count(), self.written.count()]
    }
}

/// Writes the counters as `name=value`, separated by tabs.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [read, written] = self.touched_sectors();
        write!(f, "instructions={}\tactive_lanes={}", self.instructions(), self.active_lanes)?;
        for (name, count) in KIND_NAMES.iter().zip(self.instructions) {
            write!(f, "\t{name}={count}")?;
        }
        let [text, main_text] = self.loop_text;
        write!(f, "\tloop={}\tloop_main={}", self.loop_instructions, self.loop_main)?;
        write!(f, "\tloop_text={text}\tloop_main_text={main_text}")?;
        for (name, requests) in [("loads", self.global_loads), ("stores", self.global_stores)] {
            write!(f, "\t{name}={}\t{name}_sectors={}", requests.requests, requests.transfers)?;
        }
        write!(f, "\tread_sectors={read}\twritten_sectors={written}")?;
        let shared = [("shared_loads", self.shared_loads), ("shared_stores", self.shared_stores)];
        for (name, Requests { requests, transfers, conflicts }) in shared {
            write!(f, "\t{name}={requests}\t{name}_wavefronts={transfers}")?;
            write!(f, "\t{name}_conflicts={conflicts}")?;
        }
        write!(f, "\tatomics={}", self.atomics)
    }
}

impl Kernel {
    /// Returns the number of instructions of each kind in a basic block. A jump to the next basic
    /// block is not an instruction.
    fn kinds(&self, number: usize) -> [u64; KINDS] {
        let block = &self.blocks[number];
        let mut kinds = [0; KINDS];
        for instruction in &self.code[block.instructions.clone()] {
            kinds[instruction.kind as usize] += 1;
        }
        if block.end != End::Goto(number + 1) {
            kinds[Kind::Control as usize] += 1;
        }
        kinds
    }

    /// Returns the range of basic blocks of the main loop, and the main kind of arithmetic. The
    /// main kind is `mma` if the kernel has `mma` instructions, else `f64` or `f32`, whichever has
    /// more instructions. The main loop is the shortest loop that contains at least half of the
    /// main kind's instructions in loops. Returns `None` if no loop has instructions of the main
    /// kind.
    fn main_loop(&self) -> Option<(Range<usize>, Kind)> {
        let kinds: Vec<_> = (0..self.blocks.len()).map(|number| self.kinds(number)).collect();
        let total = |range: Range<usize>, kind: Kind| -> u64 {
            kinds[range].iter().map(|kinds| kinds[kind as usize]).sum()
        };
        let all = 0..kinds.len();
        let main = if total(all.clone(), Kind::Matrix) > 0 {
            Kind::Matrix
        } else if total(all.clone(), Kind::Double) > total(all, Kind::Float) {
            Kind::Double
        } else {
            Kind::Float
        };
        let loops: Vec<_> = self.loops().map(|range| (total(range.clone(), main), range)).collect();
        let most = loops.iter().map(|(count, _)| *count).max().filter(|count| *count > 0)?;
        let candidates = loops.into_iter().filter(|(count, _)| 2 * count >= most);
        let (_, range) = candidates.min_by_key(|(_, range)| (range.len(), range.start))?;
        Some((range, main))
    }

    /// Returns the loops, as ranges of basic blocks from the target of a backward branch to the
    /// branch.
    fn loops(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.blocks.iter().enumerate().filter_map(|(number, block)| {
            let target = match block.end {
                End::Goto(next) => next,
                End::Branch { taken, .. } => taken,
                End::Barrier(_) | End::Exit => return None,
            };
            (target <= number).then_some(target..number + 1)
        })
    }
}
