//! The kernels with two types, of which [`Kernels`](super::kernels::Kernels) fixes one.

use super::AnyDevice;
use crate::{
    element::{DType, Element, Storable, bf16, f16},
    error::Result,
    kernel::fallback,
    memory::{View, ViewMut},
};

/// An output of any element type.
pub(super) enum AnyViewMut<'a> {
    F16(ViewMut<'a, f16, AnyDevice>),
    Bf16(ViewMut<'a, bf16, AnyDevice>),
    F32(ViewMut<'a, f32, AnyDevice>),
    F64(ViewMut<'a, f64, AnyDevice>),
}

/// An input of integers.
pub(super) enum IntegerView<'a> {
    I32(View<'a, i32, AnyDevice>),
    U32(View<'a, u32, AnyDevice>),
}

pub(super) fn convert<T: Element, U: Element>(
    device: &AnyDevice,
    x: View<'_, T, AnyDevice>,
    y: ViewMut<'_, U, AnyDevice>,
) -> Result<()> {
    let y = match U::DTYPE {
        DType::F16 => y.downcast().map(AnyViewMut::F16),
        DType::Bf16 => y.downcast().map(AnyViewMut::Bf16),
        DType::F32 => y.downcast().map(AnyViewMut::F32),
        DType::F64 => y.downcast().map(AnyViewMut::F64),
    };
    y.map_or(Ok(()), |y| device.kernels::<T>().convert(x, y))
}

/// Converts integers on the device if they are of a type that devices support, else on the host.
pub(super) fn convert_integers<N: Storable + Into<f64>, T: Element>(
    device: &AnyDevice,
    x: View<'_, N, AnyDevice>,
    y: ViewMut<'_, T, AnyDevice>,
) -> Result<()> {
    if let Some(x) = x.downcast::<i32>() {
        device.kernels::<T>().convert_integers(IntegerView::I32(x), y)
    } else if let Some(x) = x.downcast::<u32>() {
        device.kernels::<T>().convert_integers(IntegerView::U32(x), y)
    } else {
        fallback::convert_integers(device, x, y)
    }
}
