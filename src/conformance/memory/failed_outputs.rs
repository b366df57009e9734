//! Check of kernels with several outputs: all operands keep their values if the device memory of
//! one operand cannot be allocated.

use super::failing::NOT_INJECTED;
use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, flaw},
        runner::CheckRunner,
        values::byte_pattern,
    },
    device::AnyDevice,
    error::{Error, Result},
    kernel::traits::*,
    memory::{
        FailureKind, SyncedMemory, View, ViewMut,
        ledger::{EventKind, Ledger},
    },
    op::{Axis, Lrn, LrnRegion, Lstm, Pool2d, PoolRounding, TopK},
};

type Memories = [SyncedMemory<AnyDevice>];

/// Kernel call with several outputs.
struct Kernel {
    name: &'static str,
    /// Names and lengths of the inputs. Every operand has elements of four bytes.
    inputs: &'static [(&'static str, usize)],
    /// Names and lengths of the outputs.
    outputs: &'static [(&'static str, usize)],
    /// Calls the kernel with the given inputs and outputs.
    call: fn(&AnyDevice, &Memories, &mut Memories) -> Result<()>,
}

const KERNELS: [Kernel; 6] = [
    Kernel {
        name: "top_k",
        inputs: &[("x", 6)],
        outputs: &[("values", 4), ("places", 4)],
        call: |device, inputs, outputs| {
            let op = TopK { axis: Axis::new(2, 3, 1)?, k: 2 };
            let [values, places] = views(outputs)?;
            device.top_k(&op, view(inputs, 0)?, values, places)
        },
    },
    Kernel {
        name: "max_pool",
        inputs: &[("x", 8)],
        outputs: &[("y", 2), ("mask", 2)],
        call: |device, inputs, outputs| {
            let [y, mask] = memories(outputs)?;
            device.max_pool(&pooling()?, view(inputs, 0)?, view_mut(y)?, view_mut(mask)?)
        },
    },
    Kernel {
        name: "stochastic_pool",
        inputs: &[("x", 8), ("u", 2)],
        outputs: &[("y", 2), ("mask", 2)],
        call: |device, inputs, outputs| {
            let ([y, mask], u) = (memories(outputs)?, view(inputs, 1)?);
            let (y, mask) = (view_mut::<f32>(y)?, view_mut(mask)?);
            device.stochastic_pool(&pooling()?, view(inputs, 0)?, u, y, mask)
        },
    },
    Kernel {
        name: "lrn",
        inputs: &[("x", 6)],
        outputs: &[("scale", 6), ("y", 6)],
        call: |device, inputs, outputs| {
            let (region, alpha, beta, k) = (LrnRegion::AcrossChannels, 0.5, 0.75, 2.0);
            let (channels, plane, size) = (3, [1, 2], 3);
            let op = Lrn { region, batch: 1, channels, plane, size, alpha, beta, k };
            let [scale, y] = views(outputs)?;
            device.lrn(&op, view(inputs, 0)?, scale, y)
        },
    },
    Kernel {
        name: "moments",
        inputs: &[("x", 6)],
        outputs: &[("mean", 3), ("variance", 3)],
        call: |device, inputs, outputs| {
            let [mean, variance] = views(outputs)?;
            device.moments(&Axis::new(2, 3, 1)?, view(inputs, 0)?, mean, variance)
        },
    },
    Kernel {
        name: "lstm",
        inputs: &[("c_prev", 2), ("cont", 1)],
        outputs: &[("gates", 8), ("c", 2), ("h", 2)],
        call: |device, inputs, outputs| {
            let [gates, c, h] = views(outputs)?;
            device.lstm(&Lstm::new(1, 2)?, view(inputs, 0)?, view(inputs, 1)?, gates, c, h)
        },
    },
];

fn pooling() -> Result<Pool2d> {
    Pool2d::new(1, [2, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Floor)
}

fn wrong_count() -> Error {
    Error::invalid_input("conformance", "wrong number of operands")
}

/// Returns a view of the elements of input number `index`.
fn view(inputs: &Memories, index: usize) -> Result<View<'_, f32, AnyDevice>> {
    let memory = inputs.get(index).ok_or_else(wrong_count)?;
    View::new(memory, memory.size() / size_of::<f32>())
}

fn memories<const N: usize>(outputs: &mut Memories) -> Result<[&mut SyncedMemory<AnyDevice>; N]> {
    let outputs: &mut [_; N] = outputs.try_into().map_err(|_| wrong_count())?;
    Ok(outputs.each_mut())
}

fn view_mut<T: crate::element::Storable>(
    memory: &mut SyncedMemory<AnyDevice>,
) -> Result<ViewMut<'_, T, AnyDevice>> {
    let len = memory.size() / size_of::<T>();
    ViewMut::new(memory, len)
}

/// Returns views of all outputs, which have elements of one type.
fn views<const N: usize>(outputs: &mut Memories) -> Result<[ViewMut<'_, f32, AnyDevice>; N]> {
    let views: Vec<_> = memories::<N>(outputs)?.into_iter().map(view_mut).collect::<Result<_>>()?;
    views.try_into().map_err(|_| wrong_count())
}

pub(super) fn failed_outputs(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    if device.host_mapping().is_some() {
        runner.skip("the host and the device share memory, so outputs need no allocation".into());
        return Ok(());
    }
    let mut native_count = 0;
    for kernel in &KERNELS {
        runner.start_step(format!("`{}` without device memory for an operand", kernel.name));
        let Some(want) = kernel.native_results(device)? else { continue };
        native_count += 1;
        for failing_operand in 0..kernel.inputs.len() + kernel.outputs.len() {
            let in_kernel = |CaseFailure(reason)| flaw!("`{}`: {reason}", kernel.name);
            if !kernel.fails_without(device, failing_operand, &want).map_err(in_kernel)? {
                runner.skip(NOT_INJECTED.into());
                return Ok(());
            }
        }
    }
    if native_count == 0 {
        runner.skip("the device has no native kernel with several outputs".into());
    }
    Ok(())
}

impl Kernel {
    fn operands(&self) -> impl Iterator<Item = (usize, &'static str, usize)> {
        let all = self.inputs.iter().chain(self.outputs).enumerate();
        all.map(|(index, &(name, len))| (index, name, len))
    }

    /// Returns the initial bytes of operand number `index`: numbers if the kernel reads the
    /// operand, otherwise a byte pattern.
    fn content(&self, index: usize, len: usize) -> Vec<u8> {
        let numbers = (0..len).map(|i| 0.25 + ((3 * i + index) % 4) as f32 / 4.0);
        // The kernel `lstm` also reads its output `gates`.
        if index < self.inputs.len() || self.outputs[index - self.inputs.len()].0 == "gates" {
            return numbers.flat_map(f32::to_ne_bytes).collect();
        }
        byte_pattern(index as u64, size_of::<f32>() * len)
    }

    /// Returns the inputs and the outputs, which are all valid on the host. All operands except for
    /// number `failing_operand` have device memory, in which the inputs are valid and the outputs
    /// are stale.
    fn placed(
        &self,
        device: &AnyDevice,
        failing_operand: Option<usize>,
    ) -> Verdict<[Vec<SyncedMemory<AnyDevice>>; 2]> {
        let mut operands = [Vec::new(), Vec::new()];
        for (index, _, len) in self.operands() {
            let content = self.content(index, len);
            let mut memory = SyncedMemory::new(device, content.len());
            memory.host_write_only()?.fill(0);
            if failing_operand != Some(index) {
                memory.device()?;
                memory.host_mut()?;
            }
            memory.host_write_only()?.copy_from_slice(&content);
            let is_input = index < self.inputs.len();
            if is_input && failing_operand != Some(index) {
                memory.device()?;
            }
            operands[usize::from(!is_input)].push(memory);
        }
        device.synchronize()?;
        Ok(operands)
    }

    /// Returns the results of the kernel, or `None` if the kernel falls back to the host.
    fn native_results(&self, device: &AnyDevice) -> Verdict<Option<Vec<Vec<u8>>>> {
        let [inputs, mut outputs] = self.placed(device, None)?;
        let ledger = Ledger::new();
        let guard = ledger.open();
        (self.call)(device, &inputs, &mut outputs)?;
        drop(guard);
        let results = outputs.iter().map(|output| Ok(output.host()?.to_vec()));
        let results = results.collect::<Result<_>>()?;
        Ok((ledger.total(EventKind::Fallback).count == 0).then_some(results))
    }

    /// Fails unless all operands keep their values if the device memory of operand number
    /// `failing_operand` cannot be allocated. Returns false if the device does not inject failures.
    fn fails_without(
        &self,
        device: &AnyDevice,
        failing_operand: usize,
        want: &[Vec<u8>],
    ) -> Verdict<bool> {
        let [inputs, mut outputs] = self.placed(device, Some(failing_operand))?;
        if !device.inject_failure(FailureKind::Alloc) {
            return Ok(false);
        }
        if (self.call)(device, &inputs, &mut outputs).is_ok() {
            // The kernel allocated no memory, or handled the failure. If the kernel allocated no
            // memory, the failure is still pending, so this allocation consumes it.
            let _ = device.alloc(1);
            return Ok(true);
        }
        let failing_name = self.operands().nth(failing_operand).map_or("", |(_, name, _)| name);
        device.synchronize()?;
        let memories = inputs.iter().chain(&outputs);
        for (memory, (index, name, len)) in memories.zip(self.operands()) {
            let result = expect_bits("byte", memory.host()?, &self.content(index, len));
            result.map_err(|CaseFailure(reason)| {
                flaw!(
                    "`{name}` lost its value when the allocation of `{failing_name}` on the device \
                     failed; request the inputs, and reserve all outputs by \
                     `ViewMut::reserve_device`, before you request the first output for writing: \
                     {reason}"
                )
            })?;
        }
        (self.call)(device, &inputs, &mut outputs)?;
        for (output, want) in outputs.iter().zip(want) {
            let name =
                format!("byte of a second call, after the allocation of `{failing_name}` failed");
            expect_bits(&name, output.host()?, want)?;
        }
        Ok(true)
    }
}
