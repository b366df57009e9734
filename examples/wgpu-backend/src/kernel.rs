//! Kernels: what they are made of, and how they are launched.
//!
//! A kernel is declared by its operands and scalars, from which bindings and parameters are
//! written in WGSL, and by a body, a file under `shaders`. Parameters travel as immediates: `p.n`,
//! the number of items, then for each operand the element at which its view starts, under the
//! operand's name, then the scalars.

use crate::{complaints::Complaint, device::WgpuDevice};
use cortado::{
    Memory, Result,
    memory::{DeviceSlice, DeviceSliceMut},
};
use std::{fmt::Write, sync::Arc};

/// Threads of a workgroup.
pub(crate) const THREADS: usize = 256;

/// Workgroups launched at most: those that there are go on with what is left.
const GROUPS: usize = 32768;

/// A kernel, apart from its variants.
pub(crate) struct Kernel {
    pub name: &'static str,
    /// Operands that are read, of `f32` if the name has no type after a colon.
    pub reads: &'static [&'static str],
    /// Operands that are written, alike.
    pub writes: &'static [&'static str],
    /// Scalars, of `u32` if there is no type.
    pub scalars: &'static [&'static str],
    /// What is needed besides: functions, then the kernel.
    pub body: &'static [&'static str],
}

/// `main` of bodies that are functions `each` of an item's number.
pub(crate) const EACH: &str = include_str!("shaders/each.wgsl");

/// A compiled kernel.
pub(crate) struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// A kernel about to be launched: operands and scalars are given in the order declared.
pub(crate) struct Launch<'d> {
    device: &'d WgpuDevice,
    pipeline: Arc<Pipeline>,
    buffers: Vec<wgpu::Buffer>,
    words: Vec<u32>,
}

impl Kernel {
    /// To be launched as it is.
    pub(crate) fn on<'d>(&self, device: &'d WgpuDevice) -> Launch<'d> {
        self.variant(device, "", String::new)
    }

    /// To be launched in a variant: `source` is put before the body.
    pub(crate) fn variant<'d>(
        &self,
        device: &'d WgpuDevice,
        variant: &str,
        source: impl FnOnce() -> String,
    ) -> Launch<'d> {
        let key = format!("{} {variant}", self.name);
        let pipelines = &mut *device.shared.pipelines.lock();
        let compile = || Arc::new(self.compile(device, &key, &source()));
        let pipeline = match pipelines.get(&key) {
            Some(pipeline) => Arc::clone(pipeline),
            None => Arc::clone(pipelines.entry(key.clone()).or_insert(compile())),
        };
        Launch { device, pipeline, buffers: Vec::new(), words: vec![0] }
    }

    fn compile(&self, device: &WgpuDevice, label: &str, variant: &str) -> Pipeline {
        let device = &device.shared.device;
        let source = [&self.header(), variant, &self.body.concat()].concat();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let kinds = self.reads.iter().map(|_| true).chain(self.writes.iter().map(|_| false));
        let entries: Vec<_> = (0..).zip(kinds).map(|(i, read_only)| entry(i, read_only)).collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(label),
            entries: &entries,
        });
        let words = 1 + entries.len() + self.scalars.len();
        let whole = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 4 * words as u32,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&whole),
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

    /// Bindings and parameters.
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
    /// The next operand, which is read.
    pub(crate) fn read<D: Memory<Buffer = wgpu::Buffer>>(self, x: DeviceSlice<'_, D>) -> Self {
        self.operand(x.buffer, x.offset / 4)
    }

    /// The next operand, which is written.
    pub(crate) fn write<D: Memory<Buffer = wgpu::Buffer>>(self, y: DeviceSliceMut<'_, D>) -> Self {
        self.operand(y.buffer, y.offset / 4)
    }

    /// The next operand, from an element on.
    pub(crate) fn operand(mut self, buffer: &wgpu::Buffer, start: usize) -> Self {
        self.buffers.push(buffer.clone());
        self.words.push(start as u32);
        self
    }

    /// The next scalars.
    pub(crate) fn sizes<const N: usize>(mut self, values: [usize; N]) -> Self {
        self.words.extend(values.map(|value| value as u32));
        self
    }

    /// The next scalars.
    pub(crate) fn floats<const N: usize>(mut self, values: [f32; N]) -> Self {
        self.words.extend(values.map(f32::to_bits));
        self
    }

    /// The next operand, to which a complaint of this kind goes.
    pub(crate) fn complaints(self, kind: Complaint) -> Self {
        let device = self.device;
        self.operand(&device.stream.complaints, kind as usize)
    }

    /// For `n` items, one a thread.
    pub(crate) fn each(self, n: usize) -> Result<()> {
        self.groups(n, n.div_ceil(THREADS))
    }

    /// For `n` items that `groups` workgroups share; nothing happens if there are none.
    pub(crate) fn groups(self, n: usize, groups: usize) -> Result<()> {
        match n == 0 || groups == 0 {
            true => Ok(()),
            false => self.dispatch(n, groups),
        }
    }

    /// For `n` items, even none, in one workgroup.
    pub(crate) fn once(self, n: usize) -> Result<()> {
        self.dispatch(n, 1)
    }

    fn dispatch(mut self, n: usize, groups: usize) -> Result<()> {
        self.words[0] = n as u32;
        let entries: Vec<_> = (0..)
            .zip(&self.buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.layout,
            entries: &entries,
        });
        self.device.record(|pass| {
            pass.set_pipeline(&self.pipeline.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.set_immediates(0, bytemuck::cast_slice(&self.words));
            pass.dispatch_workgroups(groups.min(GROUPS) as u32, 1, 1);
        });
        Ok(())
    }
}
