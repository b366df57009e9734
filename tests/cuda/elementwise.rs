//! Compares broadcasts and conversions on CUDA with those of the CPU, for functions and integer types
//! that the conformance kit checks only in other kernels.

use super::gpu;
use cortado::{
    CpuDevice, Device, Element, Storable, SyncedMemory, View, ViewMut,
    device::CudaDevice,
    element::{DType, bf16, f16},
    kernel::Elementwise,
    op::{Axis, Binary},
};

/// Returns a memory with the given elements.
fn memory<T: Storable, D: Device>(device: &D, values: &[T]) -> SyncedMemory<D> {
    let mut memory = SyncedMemory::new(device, size_of_val(values));
    let mut view = ViewMut::<T, D>::new(&mut memory, values.len()).unwrap();
    view.host_mut().unwrap().copy_from_slice(values);
    memory
}

/// Broadcasts `b` along the axis on a device.
fn broadcast<T: Element, D: Device>(device: &D, op: Binary<f64>, axis: &Axis) -> Vec<f64> {
    let element = |i: usize| T::from_f64([0.75, -1.5, 0.0, 2.0, 0.25, -0.5, 1.25][i % 7]);
    let values = |len, start| (start..start + len).map(element).collect::<Vec<T>>();
    let (a, b) =
        (memory(device, &values(axis.count(), 0)), memory(device, &values(axis.extent, 3)));
    let mut y = SyncedMemory::new(device, axis.count() * size_of::<T>());
    let (a, b) =
        (View::<T, D>::new(&a, axis.count()).unwrap(), View::new(&b, axis.extent).unwrap());
    device
        .broadcast(op.cast(), axis, a.into(), b, ViewMut::new(&mut y, axis.count()).unwrap())
        .unwrap();
    let y = View::<T, D>::new(&y, axis.count()).unwrap();
    y.host().unwrap().iter().map(|y| y.to_f64()).collect()
}

fn check_broadcasts<T: Element>(device: &CudaDevice) {
    let digits = match T::DTYPE {
        DType::F16 => 10,
        DType::Bf16 => 7,
        DType::F32 => 23,
        _ => 52,
    };
    let epsilon = 2f64.powi(-digits);
    let ops = [
        Binary::MulScaled(0.5),
        Binary::MulNegative,
        Binary::DivOrZero,
        Binary::Greater,
        Binary::GreaterEqual,
        Binary::AbsGrad,
        Binary::EluGrad { alpha: 0.5 },
        Binary::EluGrad { alpha: -0.5 },
        Binary::SoftplusGrad,
        Binary::SwishGrad { beta: 1.5 },
        Binary::ClipGrad { low: -0.5, high: 1.0 },
        Binary::LnAffineGrad { scale: 0.5, shift: 2.0, factor: -1.5 },
        Binary::PowAffineGrad { scale: 0.5, shift: 2.0, power: 0.75 },
    ];
    for op in ops {
        for (outer, extent, inner) in [(3, 5, 7), (40, 9, 1), (1, 6, 64)] {
            let axis = Axis::new(outer, extent, inner).unwrap();
            let found = broadcast::<T, _>(device, op, &axis);
            let expected = broadcast::<T, _>(&CpuDevice::new(), op, &axis);
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let tolerance = 8.0 * epsilon * expected.abs().max(1e-3);
                let close = (found - expected).abs() <= tolerance;
                assert!(close || found == expected, "{op:?} at {i}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn broadcasts_of_every_function_equal_the_cpu() {
    let device = or_skip!(gpu(0));
    check_broadcasts::<f16>(&device);
    check_broadcasts::<bf16>(&device);
    check_broadcasts::<f32>(&device);
    check_broadcasts::<f64>(&device);
}

/// Checks the conversion of integers that `f32` and `f64` represent exactly, and that `f16` and
/// `bf16` round.
fn check_conversions<N: Storable + Into<f64>, T: Element>(device: &CudaDevice, integers: &[N]) {
    let x = memory(device, integers);
    let mut y = SyncedMemory::new(device, integers.len() * size_of::<T>());
    let (x, len) = (View::<N, _>::new(&x, integers.len()).unwrap(), integers.len());
    device.convert_integers(x, ViewMut::<T, _>::new(&mut y, len).unwrap()).unwrap();
    let y = View::<T, _>::new(&y, len).unwrap();
    for (integer, found) in integers.iter().zip(y.host().unwrap()) {
        let expected = T::from_f64((*integer).into());
        assert_eq!(found.to_f64(), expected.to_f64());
    }
}

#[test]
fn conversions_of_narrow_integers_round_to_nearest() {
    fn check<T: Element>(device: &CudaDevice) {
        let all = i16::MIN..=i16::MAX;
        check_conversions::<u8, T>(device, &(0..=u8::MAX).collect::<Vec<_>>());
        check_conversions::<i8, T>(device, &(i8::MIN..=i8::MAX).collect::<Vec<_>>());
        check_conversions::<i16, T>(device, &all.clone().step_by(7).collect::<Vec<_>>());
        check_conversions::<u16, T>(device, &all.step_by(7).map(|x| x as u16).collect::<Vec<_>>());
    }
    let device = or_skip!(gpu(0));
    check::<f16>(&device);
    check::<bf16>(&device);
    check::<f32>(&device);
    check::<f64>(&device);
}
