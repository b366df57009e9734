//! Small kernels for tests, and device memory for them.
#![allow(unsafe_code, dead_code)]

use ptx_machine::{Counters, Launch, Machine, Module, Precision};

/// Returns PTX with the kernel `test`, which has the parameter `memory`, an address. The register
/// `%rd0` holds the address, and `%r0` the number of the thread.
pub(crate) fn module(declarations: &str, body: &str) -> Module {
    Module::new("test.ptx", &text(declarations, body)).unwrap()
}

/// Returns the text of [`module`].
pub(crate) fn text(declarations: &str, body: &str) -> String {
    format!(
        ".version 7.0
.target sm_80
.address_size 64
.visible .entry test(
\t.param .u64 memory
)
{{
\t.reg .pred %p<20>;
\t.reg .b16 %rs<40>;
\t.reg .b32 %r<60>;
\t.reg .f32 %f<40>;
\t.reg .b64 %rd<40>;
\t.reg .f64 %fd<20>;
{declarations}
\tld.param.u64 %rd0, [memory];
\tmov.u32 %r0, %tid.x;
{body}
\tret;
}}
"
    )
}

/// Runs the kernel `test` with a number of threads on `memory`. The words that are `None` count as
/// not written. Returns the memory afterwards.
pub(crate) fn run_on(
    module: &Module,
    grid: [u32; 3],
    threads: u32,
    (seed, precision): (u64, Precision),
    memory: &[Option<u32>],
) -> Result<Vec<u32>, String> {
    let kernel = module.kernel("test", precision)?;
    let mut machine = Machine::new(seed);
    with_memory(&mut machine, memory, |machine, address| {
        let launch = Launch { card: 0, grid, threads: [threads, 1, 1], arguments: &[address] };
        machine.launch(&kernel, &launch)
    })
    .map(|((), words)| words)
}

/// Calls `launch` with the address of device memory that contains `memory`. Returns the result of
/// `launch`, and the contents of the memory after the launch.
fn with_memory<T>(
    machine: &mut Machine,
    memory: &[Option<u32>],
    launch: impl FnOnce(&mut Machine, &[u8]) -> Result<T, String>,
) -> Result<(T, Vec<u32>), String> {
    let mut words: Vec<u32> = memory.iter().map(|word| word.unwrap_or(0)).collect();
    // The alignment of a driver's allocation.
    let mut buffer = vec![0u8; 4 * words.len() + 256];
    let start = (buffer.as_mut_ptr() as usize).next_multiple_of(256);
    let offset = start - buffer.as_ptr() as usize;
    for (bytes, word) in buffer[offset..].chunks_exact_mut(4).zip(&words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    // SAFETY: the buffer outlives the launch and is not accessed until the launch has ended; the
    // machine runs no other launch.
    unsafe { machine.memory.add(start as u64, 4 * words.len() as u64, Some(0)) };
    for (i, word) in memory.iter().enumerate() {
        if word.is_some() {
            machine.memory.mark_written(start as u64 + 4 * i as u64, 4);
        }
    }
    let result = launch(machine, &(start as u64).to_le_bytes())?;
    for (bytes, word) in buffer[offset..].chunks_exact(4).zip(&mut words) {
        *word = u32::from_le_bytes(bytes.try_into().unwrap());
    }
    Ok((result, words))
}

/// Runs the kernel `test` in one block, on written memory, and returns the counters.
pub(crate) fn count(module: &Module, threads: u32, memory: &[u32]) -> Result<Counters, String> {
    let kernel = module.kernel("test", Precision::Best)?;
    let memory: Vec<_> = memory.iter().copied().map(Some).collect();
    let counted = with_memory(&mut Machine::new(1), &memory, |machine, address| {
        let launch =
            Launch { card: 0, grid: [1; 3], threads: [threads, 1, 1], arguments: &[address] };
        machine.launch_counted(&kernel, &launch)
    });
    counted.map(|(counters, _)| counters)
}

/// Runs the kernel `test` in one block, on written memory.
pub(crate) fn run(module: &Module, threads: u32, memory: &[u32]) -> Result<Vec<u32>, String> {
    let memory: Vec<_> = memory.iter().copied().map(Some).collect();
    run_on(module, [1; 3], threads, (1, Precision::Best), &memory)
}
