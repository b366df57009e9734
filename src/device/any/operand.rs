//! Operands whose element type is known only at run time, for the kernels with two type parameters.

use super::handle::AnyDevice;
use crate::{
    element::{bf16, f16},
    memory::{View, ViewMut},
};

pub(super) enum AnyViewMut<'a> {
    F16(ViewMut<'a, f16, AnyDevice>),
    Bf16(ViewMut<'a, bf16, AnyDevice>),
    F32(ViewMut<'a, f32, AnyDevice>),
    F64(ViewMut<'a, f64, AnyDevice>),
}

pub(super) enum IntegerView<'a> {
    I32(View<'a, i32, AnyDevice>),
    U32(View<'a, u32, AnyDevice>),
}
