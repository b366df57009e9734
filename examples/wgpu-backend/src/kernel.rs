//! Declaration, compilation and launch of kernels.
//!
//! The declaration of a kernel lists the operands, the scalars and the WGSL source, most of which
//! is in files under `shaders`. This module generates the WGSL bindings and parameters of a kernel
//! from the kernel's declaration. A kernel receives three kinds of parameters as immediates: the
//! number of items `p.n`; for each operand, the index of the first element of the operand's view
//! (`p.x` for an operand `x`); and the scalars.

use crate::{device::WgpuDevice, kernel_errors::KernelError, stream::lock};
use cortado::{
    Memory, Result,
    memory::{DeviceSlice, DeviceSliceMut},
};
use std::{fmt::Write, sync::Arc};

/// Number of threads per workgroup.
pub(crate) const THREADS: usize = 256;

/// Largest number of workgroups of a launch. If a launch has more items than threads, the
/// workgroups loop over the items.
const MAX_GROUPS: usize = 32768;

/// Declaration of a kernel: name, operands, scalars and WGSL source, which all variants of the
/// kernel share.
pub(crate) struct Kernel {
    pub name: &'static str,
    /// Operands that the kernel reads, as `name` for `f32` elements or `name: type` for other
    /// element types.
    pub reads: &'static [&'static str],
    /// Operands that the kernel writes, as `name` for `f32` elements or `name: type` for other
    /// element types.
    pub writes: &'static [&'static str],
    /// Scalars of the kernel, as `name` for `u32` or `name: type` for other types.
    pub scalars: &'static [&'static str],
    /// Strings that together form the kernel's WGSL source: helper functions, then the entry point.
    pub body: &'static [&'static str],
}

/// WGSL entry point that calls the kernel's function `each(i)` for every item `i`.
pub(crate) const EACH: &str = include_str!("shaders/each.wgsl");

/// A compiled kernel.
pub(crate) struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// Builder of a kernel launch. Callers add operands and scalars in the order in which the kernel
/// declares them.
pub(crate) struct Launch<'d> {
    device: &'d WgpuDevice,
    pipeline: Arc<Pipeline>,
    buffers: Vec<wgpu::Buffer>,
    /// Parameters of the launch as 32-bit words; the first word is the number of items.
    params: Vec<u32>,
}

impl Kernel {
    /// Prepares a launch of the kernel.
    pub(crate) fn on<'d>(&self, device: &'d WgpuDevice) -> Launch<'d> {
        self.variant(device, "", String::new)
    }

    /// Prepares a launch of a variant of the kernel, in which `source` precedes the body of the
    /// kernel. `variant` is a key that identifies `source` in the cache of compiled pipelines.
    pub(crate) fn variant<'d>(
        &self,
        device: &'d WgpuDevice,
        variant: &str,
        source: impl FnOnce() -> String,
    ) -> Launch<'d> {
        let key = format!("{} {variant}", self.name);
        let pipelines = &mut *lock(&device.context.pipelines);
        let compile = || Arc::new(self.compile(device, &key, &source()));
        let pipeline = match pipelines.get(&key) {
            Some(pipeline) => Arc::clone(pipeline),
            None => Arc::clone(pipelines.entry(key.clone()).or_insert(compile())),
        };
        Launch { device, pipeline, buffers: Vec::new(), params: vec![0] }
    }

    fn compile(&self, device: &WgpuDevice, label: &str, variant: &str) -> Pipeline {
        let device = &device.context.device;
        let source = [&self.header(), variant, &self.body.concat()].concat();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let operands = 0..(self.reads.len() + self.writes.len()) as u32;
        let entries: Vec<_> = operands.map(|i| entry(i, i < self.reads.len() as u32)).collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(label),
            entries: &entries,
        });
        let params = 1 + entries.len() + self.scalars.len();
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 4 * params as u32,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        Pipeline { pipeline, layout }
    }

    /// Returns the WGSL source of the kernel's bindings and parameters.
    fn header(&self) -> String {
        let mut bindings = String::new();
        let mut fields = "n: u32, ".to_string();
        let reads = self.reads.iter().map(|operand| ("read", operand));
        let writes = self.writes.iter().map(|operand| ("read_write", operand));
        for (i, (access, operand)) in reads.chain(writes).enumerate() {
            let (name, element) = operand.split_once(": ").unwrap_or((operand, "f32"));
            let _ = writeln!(
                bindings,
                "@group(0) @binding({i}) var<storage, {access}> {name}: array<{element}>;"
            );
            let _ = write!(fields, "{name}: u32, ");
        }
        for scalar in self.scalars {
            let (name, kind) = scalar.split_once(": ").unwrap_or((scalar, "u32"));
            let _ = write!(fields, "{name}: {kind}, ");
        }
        format!("{bindings}struct Params {{ {fields}}}\nvar<immediate> p: Params;\n")
    }
}

fn entry(binding: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

impl<'d> Launch<'d> {
    /// Adds an operand that the kernel reads.
    pub(crate) fn read<D: Memory<Buffer = wgpu::Buffer>>(self, x: DeviceSlice<'_, D>) -> Self {
        self.operand(x.buffer, x.offset / 4)
    }

    /// Adds an operand that the kernel writes.
    pub(crate) fn write<D: Memory<Buffer = wgpu::Buffer>>(self, y: DeviceSliceMut<'_, D>) -> Self {
        self.operand(y.buffer, y.offset / 4)
    }

    /// Adds an operand that begins at element `start` of `buffer`.
    pub(crate) fn operand(mut self, buffer: &wgpu::Buffer, start: usize) -> Self {
        self.buffers.push(buffer.clone());
        self.params.push(start as u32);
        self
    }

    /// Adds integer scalars.
    pub(crate) fn sizes<const N: usize>(mut self, values: [usize; N]) -> Self {
        self.params.extend(values.map(|value| value as u32));
        self
    }

    /// Adds `f32` scalars.
    pub(crate) fn floats<const N: usize>(mut self, values: [f32; N]) -> Self {
        self.params.extend(values.map(f32::to_bits));
        self
    }

    pub(crate) fn error_flag(self, kind: KernelError) -> Self {
        let device = self.device;
        self.operand(&device.stream.kernel_errors, kind as usize)
    }

    /// Launches one thread for each of `n` items.
    pub(crate) fn each(self, n: usize) -> Result<()> {
        self.groups(n, n.div_ceil(THREADS))
    }

    /// Launches `groups` workgroups that together process `n` items. Does nothing if `groups` or
    /// `n` is 0.
    pub(crate) fn groups(self, n: usize, groups: usize) -> Result<()> {
        match n == 0 || groups == 0 {
            true => Ok(()),
            false => self.dispatch(n, groups),
        }
    }

    /// Launches one workgroup that processes `n` items, even if `n` is 0.
    pub(crate) fn one_group(self, n: usize) -> Result<()> {
        self.dispatch(n, 1)
    }

    fn dispatch(mut self, n: usize, groups: usize) -> Result<()> {
        self.params[0] = n as u32;
        let entries: Vec<_> = (0..)
            .zip(&self.buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let bind_group = self.device.context.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.layout,
            entries: &entries,
        });
        self.device.record(|pass| {
            pass.set_pipeline(&self.pipeline.pipeline);
            pass.set_bind_group(0, &bind_group, &[]);
            pass.set_immediates(0, bytemuck::cast_slice(&self.params));
            pass.dispatch_workgroups(groups.min(MAX_GROUPS) as u32, 1, 1);
        });
        Ok(())
    }
}
