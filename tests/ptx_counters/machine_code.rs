//! Machine code of the kernels for compute capability 8.0: registers, shared memory and spills from
//! the messages of ptxas, and the main loop from the output of nvdisasm.

use crate::table::{Row, Table};
use std::{collections::BTreeMap, env, fs, ops::Range, path::Path, process::Command};

/// Resources of a multiprocessor of compute capability 8.0 ("CUDA C++ Programming Guide",
/// "Technical Specifications per Compute Capability").
const REGISTERS: u32 = 65_536;
const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const SHARED_BYTES: u32 = 164 << 10;
/// Registers are allocated for each warp in multiples of this number.
const REGISTER_UNIT: u32 = 256;
/// Bytes of shared memory that the system uses in each block.
const SYSTEM_BYTES: u32 = 1024;
/// Shared memory is allocated in multiples of this number of bytes.
const SHARED_UNIT: u32 = 128;
/// Number of threads per block of a kernel without launch bounds.
const THREADS: u32 = 256;

/// Properties of a kernel that ptxas reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Resources {
    registers: u32,
    shared: u32,
    /// Bytes that loads and stores of spilled registers transfer per thread.
    spills: u32,
}

impl Resources {
    /// Returns how many blocks of `warps` warps fit in a multiprocessor.
    fn resident_blocks(self, warps: u32) -> u32 {
        let registers = (self.registers * 32).next_multiple_of(REGISTER_UNIT) * warps;
        let shared = (self.shared + SYSTEM_BYTES).next_multiple_of(SHARED_UNIT);
        [REGISTERS / registers.max(1), SHARED_BYTES / shared, WARPS / warps, BLOCKS]
            .into_iter()
            .min()
            .unwrap_or(0)
    }
}

/// Returns the number of threads of a block of each kernel of a PTX file, from its launch bounds.
fn block_threads(ptx: &str) -> BTreeMap<&str, u32> {
    let kernels = ptx.split(".entry ").skip(1).filter_map(|kernel| {
        let (name, rest) = kernel.split_once('(')?;
        let (header, _) = rest.split_once('{')?;
        let bound = header.split_once(".maxntid ").and_then(|(_, bound)| bound.split_once(','));
        Some((name, bound.and_then(|(threads, _)| threads.parse().ok()).unwrap_or(THREADS)))
    });
    kernels.collect()
}

/// Parses the messages of `ptxas -v`.
fn resources(messages: &str) -> BTreeMap<String, Resources> {
    let mut kernels = BTreeMap::new();
    let mut kernel = None;
    for line in messages.lines() {
        let before = |unit: &str| -> u32 {
            let number = line.split_once(unit).and_then(|(text, _)| text.rsplit(' ').next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default();
            kernel = Some(kernels.entry(name.to_owned()).or_insert(Resources::default()));
        } else if let Some(kernel) = &mut kernel {
            if line.contains("bytes spill stores") {
                kernel.spills = before(" bytes spill stores") + before(" bytes spill loads");
            } else if line.contains(" registers") {
                kernel.registers = before(" registers");
                kernel.shared = before(" bytes smem");
            }
        }
    }
    kernels
}

/// The main loop of a kernel.
#[derive(Debug, Default, PartialEq, Eq)]
struct MainLoop {
    /// Kind of the kernel's main arithmetic: `mma`, `double` or `float`.
    kind: &'static str,
    instructions: usize,
    /// Number of instructions of the main kind.
    main: usize,
}

/// An instruction or a label of a kernel.
enum Line<'a> {
    Label(&'a str),
    Instruction { opcode: &'a str, target: Option<&'a str> },
}

/// Parses a line of nvdisasm, such as `/*0c40*/ @P1 BRA `(.L_x_11) ;`.
fn line(text: &str) -> Option<Line<'_>> {
    if let Some(label) = text.strip_suffix(':') {
        return label.starts_with(".L_").then_some(Line::Label(label));
    }
    let code = text.trim().strip_prefix("/*")?.split_once("*/")?.1.trim();
    let code = match code.strip_prefix('@') {
        Some(predicated) => predicated.split_once(char::is_whitespace)?.1.trim(),
        None => code,
    };
    let opcode = code.split([' ', ';']).next()?;
    let target = || code.split_once("`(")?.1.split(')').next();
    let target = if opcode == "BRA" { target() } else { None };
    opcode
        .starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(Line::Instruction { opcode, target })
}

/// Returns the kind of an arithmetic instruction: 0 for tensor cores, 1 for `double` and 2 for
/// `float`. Returns `None` for any other instruction.
fn kind(opcode: &str) -> Option<usize> {
    match opcode.split('.').next()? {
        "HMMA" => Some(0),
        "DFMA" | "DMUL" | "DADD" => Some(1),
        "FFMA" | "FMUL" | "FADD" | "HFMA2" | "HMUL2" | "HADD2" => Some(2),
        _ => None,
    }
}

/// Returns the main loops of the kernels in the output of nvdisasm: in each kernel, the shortest loop
/// that contains at least half of the main kind's instructions in loops.
fn main_loops(disassembly: &str) -> BTreeMap<String, MainLoop> {
    let mut kernels: BTreeMap<String, Vec<Line<'_>>> = BTreeMap::new();
    let mut kernel = None;
    for text in disassembly.lines() {
        if let Some(name) = text.strip_prefix(".text.").and_then(|name| name.strip_suffix(':')) {
            kernel = Some(kernels.entry(name.to_owned()).or_default());
        } else if let (Some(kernel), Some(line)) = (&mut kernel, line(text)) {
            kernel.push(line);
        }
    }
    kernels.into_iter().map(|(name, lines)| (name, main_loop(&lines))).collect()
}

fn main_loop(lines: &[Line<'_>]) -> MainLoop {
    let count = |range: Range<usize>, wanted: usize| {
        let is_wanted = |line: &&Line<'_>| match line {
            Line::Instruction { opcode, .. } => kind(opcode) == Some(wanted),
            Line::Label(_) => false,
        };
        lines[range].iter().filter(is_wanted).count()
    };
    let all = 0..lines.len();
    let wanted = match [0, 1, 2].map(|kind| count(all.clone(), kind)) {
        [matrix, _, _] if matrix > 0 => 0,
        [_, double, float] if double > float => 1,
        _ => 2,
    };
    let mut labels = BTreeMap::new();
    let mut loops = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match line {
            Line::Label(label) => {
                labels.insert(*label, i);
            }
            // If the label of the target precedes the branch, the branch ends a loop.
            Line::Instruction { target: Some(target), .. } => {
                if let Some(&start) = labels.get(target) {
                    loops.push((count(start..i + 1, wanted), start..i + 1));
                }
            }
            Line::Instruction { target: None, .. } => {}
        }
    }
    let most = loops.iter().map(|(main, _)| *main).max().unwrap_or(0);
    let candidates = loops.into_iter().filter(|(main, _)| *main > 0 && 2 * main >= most);
    let Some((main, range)) = candidates.min_by_key(|(_, range)| (range.len(), range.start)) else {
        return MainLoop::default();
    };
    let is_instruction = |line: &&Line<'_>| matches!(line, Line::Instruction { .. });
    let instructions = lines[range].iter().filter(is_instruction).count();
    MainLoop { kind: ["mma", "double", "float"][wanted], instructions, main }
}

/// Returns the table of the machine code in a folder, which contains for each PTX file a cubin and
/// the messages of `ptxas -v` (`gemm.cubin` and `gemm.log`).
pub(crate) fn table(folder: &Path) -> Table {
    let nvdisasm = env::var_os("CORTADO_NVDISASM").expect("CORTADO_NVDISASM is not set");
    let columns = [
        "registers",
        "shared",
        "spills",
        "resident_blocks",
        "resident_warps",
        "main",
        "loop",
        "loop_main",
    ];
    let ptx_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/ptx/sm_80");
    let mut table = Table::new(&["kernel"], &columns.map(str::to_owned));
    let mut rows = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let cubin = entry.unwrap().path();
        if cubin.extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let messages = fs::read_to_string(cubin.with_extension("log")).unwrap();
        let ptx = ptx_folder.join(cubin.file_name().unwrap()).with_extension("ptx");
        let ptx = fs::read_to_string(ptx).unwrap();
        let threads = block_threads(&ptx);
        let output = Command::new(&nvdisasm).arg("-c").arg(&cubin).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut loops = main_loops(&String::from_utf8(output.stdout).unwrap());
        for (kernel, resources) in resources(&messages) {
            let MainLoop { kind, instructions, main } = loops.remove(&kernel).unwrap_or_default();
            let Resources { registers, shared, spills } = resources;
            let warps = threads[kernel.as_str()].div_ceil(32);
            let blocks = resources.resident_blocks(warps);
            let numbers = [registers, shared, spills, blocks, blocks * warps];
            let mut values: Vec<String> = numbers.iter().map(u32::to_string).collect();
            values.extend([kind.to_owned(), instructions.to_string(), main.to_string()]);
            rows.insert(kernel, columns.map(str::to_owned).into_iter().zip(values).collect());
        }
    }
    table.rows.extend(rows.into_iter().map(|(kernel, values)| Row { key: vec![kernel], values }));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_from_the_messages_of_ptxas() {
        let messages = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'a' for 'sm_80'\n\
            ptxas info    : Function properties for a\n\
            \x20   16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n\
            ptxas info    : Used 96 registers, used 1 barriers, 33792 bytes smem, 440 bytes cmem[0]\n\
            ptxas info    : Compiling entry function 'b' for 'sm_80'\n\
            ptxas info    : Function properties for b\n\
            \x20   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 10 registers, used 0 barriers, 380 bytes cmem[0]\n";
        let found = resources(messages);
        assert_eq!(found["a"], Resources { registers: 96, shared: 33_792, spills: 32 });
        assert_eq!(found["b"], Resources { registers: 10, shared: 0, spills: 0 });
    }

    #[test]
    fn the_launch_bounds_state_the_threads_of_a_block() {
        let ptx = ".visible .entry a(\n\t.param .u64 a_param_0\n)\n.maxntid 128, 1, 1\n\
            .minnctapersm 2\n{\n\tret;\n}\n.visible .entry b(\n)\n{\n\tret;\n}\n";
        assert_eq!(block_threads(ptx), BTreeMap::from([("a", 128), ("b", THREADS)]));
    }

    /// The counts agree with the table of NVIDIA's occupancy calculator for capability 8.0.
    #[test]
    fn registers_and_shared_memory_limit_the_resident_blocks() {
        let blocks =
            |registers, shared| Resources { registers, shared, spills: 0 }.resident_blocks(8);
        assert_eq!(blocks(32, 0), 8);
        assert_eq!(blocks(33, 0), 6);
        assert_eq!(blocks(80, 0), 3);
        assert_eq!(blocks(81, 0), 2);
        assert_eq!(blocks(128, 0), 2);
        assert_eq!(blocks(129, 0), 1);
        assert_eq!(blocks(32, 40_000), 4);
        assert_eq!(blocks(32, 48 << 10), 3);
        let small_block = Resources { registers: 255, shared: 40_960, spills: 0 };
        assert_eq!(small_block.resident_blocks(4), 2);
    }

    #[test]
    fn the_main_loop_is_found_by_its_backward_branch() {
        let disassembly = "\t.section\t.text.a,\"ax\",@progbits\n\
            .text.a:\n\
            .L_x_0:\n\
            \x20       /*0000*/                   MOV R1, c[0x0][0x28] ;\n\
            \x20       /*0010*/                   FFMA R2, R2, R2, R2 ;\n\
            .L_x_1:\n\
            \x20       /*0020*/                   FFMA R2, R2, R2, R2 ;\n\
            \x20       /*0030*/              @!P0 FADD.FTZ R2, R2, R2 ;\n\
            \x20       /*0040*/                   LDS R2, [R2] ;\n\
            \x20       /*0050*/               @P1 BRA `(.L_x_1) ;\n\
            \x20       /*0060*/                   BRA P2, `(.L_x_0) ;\n\
            \x20       /*0070*/                   EXIT ;\n\
            .L_x_2:\n\
            \x20       /*0080*/                   BRA `(.L_x_2);\n\
            .text.b:\n\
            .L_x_3:\n\
            \x20       /*0000*/                   HMMA.16816.F32.BF16 R4, R4, R2, R4 ;\n\
            \x20       /*0010*/                   FADD R2, R2, R2 ;\n\
            \x20       /*0020*/               @P1 BRA `(.L_x_3) ;\n";
        let found = main_loops(disassembly);
        assert_eq!(found["a"], MainLoop { kind: "float", instructions: 4, main: 2 });
        assert_eq!(found["b"], MainLoop { kind: "mma", instructions: 3, main: 1 });
    }
}
