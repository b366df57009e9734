//! Decoded kernels: instructions in basic blocks.

use crate::{arithmetic::Precision, block::Block, counters::Kind, text::is_location, warp::Warp};
use std::{ops::Range, sync::Arc};

/// Runs one instruction for the active lanes of a warp.
pub(crate) type Execute = fn(&mut Warp, &mut Block<'_>, &Instruction);

/// One decoded instruction. Operands are numbers of registers within their class.
pub(crate) struct Instruction {
    pub(crate) execute: Execute,
    /// Destination.
    pub(crate) to: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    /// Offset of an address.
    pub(crate) offset: i64,
    /// Further operands: the registers of vectors and fragments, in the order in which the
    /// instruction lists them.
    pub(crate) list: Box<[u32]>,
    /// Line of the PTX file.
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

impl Instruction {
    /// Returns an instruction without operands.
    pub(crate) fn new(execute: Execute) -> Self {
        let (list, kind) = (Box::default(), Kind::Move);
        Self { execute, to: 0, a: 0, b: 0, c: 0, offset: 0, list, line: 0, kind }
    }
}

/// How a basic block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Goto(usize),
    Branch {
        predicate: u32,
        negated: bool,
        taken: usize,
        next: usize,
    },
    /// A barrier for all threads of the block.
    Barrier(usize),
    Exit,
}

/// Number of the imaginary basic block at which all threads have ended.
pub(crate) const ENDED: usize = usize::MAX;

pub(crate) struct BasicBlock {
    pub(crate) instructions: Range<usize>,
    pub(crate) end: End,
    /// Line of the PTX file of the block's end.
    pub(crate) line: u32,
    /// Immediate post-dominator, at which diverged lanes meet again, or `ENDED`.
    pub(crate) reconvergence: usize,
}

/// Special registers with the indices of threads and blocks and the sizes of blocks and grids.
pub(crate) const SPECIAL: [&str; 12] = [
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
];

/// A variable in shared memory, or a kernel parameter in PTX's `.param` space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// A kernel, decoded from PTX.
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) precision: Precision,
    /// Name of the PTX file.
    pub(crate) file: String,
    pub(crate) code: Vec<Instruction>,
    pub(crate) blocks: Vec<BasicBlock>,
    pub(crate) parameters: Vec<Variable>,
    pub(crate) shared: Vec<Variable>,
    /// Width in bytes of the narrowest access to shared memory.
    pub(crate) shared_granule: usize,
    /// The largest number of threads of a block that the kernel allows.
    pub(crate) max_threads: u32,
    /// Registers that hold a constant, with their values.
    pub(crate) word_constants: Vec<(u32, u32)>,
    pub(crate) double_constants: Vec<(u32, u64)>,
    pub(crate) predicate_constants: Vec<(u32, bool)>,
    /// Number of word registers. The registers of `SPECIAL` come first.
    pub(crate) words: usize,
    pub(crate) doubles: usize,
    pub(crate) predicates: usize,
    /// Text of the PTX file.
    pub(crate) module_text: Arc<str>,
}

/// Returns the numbers of the file and of the line in `.loc 1 20 5` or in `1 20 5`.
fn place(location: &str) -> (&str, &str) {
    let mut words = location.split_whitespace().skip_while(|word| *word == ".loc");
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

impl Kernel {
    /// Returns the name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sizes of the kernel's parameters in bytes.
    pub fn parameter_sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.parameters.iter().map(|parameter| parameter.bytes)
    }

    /// Returns the size of the memory of parameters in bytes.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.bytes)
    }

    /// Returns the text of a line of the PTX file.
    pub(crate) fn text(&self, line: u32) -> &str {
        self.module_text.lines().nth(line as usize - 1).unwrap_or_default().trim()
    }

    /// Returns the place in the CUDA sources of a line of the PTX file, if the PTX has line
    /// information. Code of an inlined function has two places: in the function, and in its caller.
    pub(crate) fn source(&self, line: u32) -> Option<String> {
        let lines: Vec<&str> = self.module_text.lines().take(line as usize).collect();
        let of_kernel = lines.iter().rev().take_while(|line| !line.starts_with(".visible"));
        // Line 0 stands for an unknown line.
        let locations = of_kernel.filter(|line| is_location(line));
        let location = locations.map(|line| line.trim()).find(|line| place(line).1 != "0")?;
        let (inner, outer) = location.split_once("inlined_at").unwrap_or((location, ""));
        let inner = self.place(place(inner))?;
        Some(match self.place(place(outer)) {
            Some(outer) => format!("{inner}, inlined at {outer}"),
            None => inner,
        })
    }

    /// Returns the path and line of a place, by the number of its file.
    fn place(&self, (number, line): (&str, &str)) -> Option<String> {
        let mut lines = self.module_text.lines().map(str::split_whitespace);
        let path = lines.find_map(|mut words| {
            let is_file = words.next() == Some(".file") && words.next() == Some(number);
            is_file.then(|| words.next())?
        })?;
        let path = path.trim_matches('"');
        // The path relative to the root of the repository.
        let path = path.rfind("/kernels/").map_or(path, |start| &path[start + 1..]);
        Some(format!("{path}:{line}"))
    }
}
