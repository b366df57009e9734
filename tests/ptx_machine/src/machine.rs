//! Launches of kernels.

use crate::{
    arithmetic::Precision,
    block::{self, Block, Dim},
    counters::Counters,
    decode::decode,
    device_memory::{DeviceMemory, Tags},
    kernel::Kernel,
    random::Random,
    shared::Shared,
    text::Module,
    warp::{ALL, LANES, Warp},
};

/// A machine that runs kernels on device memory.
#[derive(Default)]
pub struct Machine {
    /// The device memory that kernels may access.
    pub memory: DeviceMemory,
    /// Seed of the order of blocks, warps and diverged lanes.
    seed: u64,
    /// Number of instructions that warps have run, in all launches.
    pub instructions: u64,
    launches: u64,
}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Index of the GPU, starting at 0.
    pub card: u32,
    /// Numbers of blocks in x, y and z.
    pub grid: [u32; 3],
    /// Numbers of threads of a block in x, y and z.
    pub threads: [u32; 3],
    /// Values of the parameters.
    pub arguments: &'a [&'a [u8]],
}

impl Module {
    /// Decodes a kernel. An instruction that the machine does not know is an error.
    pub fn kernel(&self, name: &str, precision: Precision) -> Result<Kernel, String> {
        decode(self, name, precision)
    }
}

impl Machine {
    /// Returns a machine without memory. The seed determines the order of blocks, warps and diverged
    /// lanes.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Runs a kernel. Returns an error that describes the first fault of a thread.
    pub fn launch(&mut self, kernel: &Kernel, launch: &Launch<'_>) -> Result<(), String> {
        self.launch_with(kernel, launch, None).map(drop)
    }

    /// Like [`launch`](Self::launch), but returns the counters of the launch.
    pub fn launch_counted(
        &mut self,
        kernel: &Kernel,
        launch: &Launch<'_>,
    ) -> Result<Counters, String> {
        let counters = self.launch_with(kernel, launch, Some(Counters::new(kernel)))?;
        Ok(counters.expect("the launch returns the counters that it was given"))
    }

    fn launch_with(
        &mut self,
        kernel: &Kernel,
        launch: &Launch<'_>,
        counters: Option<Counters>,
    ) -> Result<Option<Counters>, String> {
        let invalid =
            |problem: String| format!("{}: kernel `{}`: {problem}", kernel.file, kernel.name);
        let count: u32 = launch.threads.iter().product();
        if count > kernel.max_threads {
            let max = kernel.max_threads;
            return Err(invalid(format!("found {count} threads, expected at most {max}")));
        }
        let mut parameters = vec![0; kernel.parameter_bytes()];
        if launch.arguments.len() != kernel.parameters.len() {
            return Err(invalid(format!("found {} arguments", launch.arguments.len())));
        }
        for (parameter, argument) in kernel.parameters.iter().zip(launch.arguments) {
            parameters[parameter.offset..parameter.offset + parameter.bytes]
                .copy_from_slice(argument);
        }
        self.launches += 1;
        // Tags start again when a launch would have less than half of all tags.
        let mut first_tag = self.memory.tags.interval + 1024;
        if first_tag > u32::MAX / 2 {
            self.memory.clear_writers();
            first_tag = 1;
        }
        self.memory.tags = Tags { launch: first_tag, block: first_tag, interval: first_tag };
        let count = count as usize;
        let mut warps: Vec<Warp> = (0..count.div_ceil(LANES))
            .map(|number| {
                let lanes = (count - number * LANES).min(LANES);
                Warp::new(kernel, number, ALL >> (LANES - lanes))
            })
            .collect();
        let mut block = Block {
            kernel,
            memory: &mut self.memory,
            card: launch.card,
            parameters: &parameters,
            shared: Shared::default(),
            random: Random::new(self.seed ^ self.launches << 32),
            grid: launch.grid,
            threads: launch.threads,
            index: [0; 3],
            precision: kernel.precision,
            instructions: 0,
            counters,
        };
        let mut indices: Vec<Dim> = Vec::new();
        for z in 0..launch.grid[2] {
            for y in 0..launch.grid[1] {
                indices.extend((0..launch.grid[0]).map(|x| [x, y, z]));
            }
        }
        block.random.shuffle(&mut indices);
        let mut result = Ok(());
        for index in indices {
            block.index = index;
            result = block::run(&mut block, &mut warps);
            if result.is_err() {
                break;
            }
        }
        self.instructions += block.instructions;
        result?;
        let mut counters = block.counters;
        if let Some(counters) = &mut counters {
            counters.finish(kernel);
        }
        Ok(counters)
    }
}
