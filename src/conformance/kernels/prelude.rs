//! Imports that most checks of kernels need.

pub(super) use super::{
    cases::{
        COPIES, CaseSetup, Cases, NamedValues, PERIOD, ROW_COPIES, ROWS, Vector, axis_cases,
        output_before_kernel, vector_cases,
    },
    harness::ExpectedOutput,
};
pub(super) use crate::{
    conformance::{
        check::checks,
        compare::{Output, expect_bits, expect_nearest, expect_same_bits, expect_within},
        expected::Expected,
        failure::Verdict,
        operand::{Operand, Placement, UNSET, unset},
        runner::CheckRunner,
        values::{Values, wide},
    },
    device::AnyDevice,
    element::{Element, Storable},
    error::Result,
    kernel::traits::*,
    memory::{Src, View, ViewMut},
    op::Axis,
};
pub(super) use proptest::prelude::*;
