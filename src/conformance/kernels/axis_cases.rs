//! What kernels are tried on that work along an axis.

use super::vector_cases::SCALARS;
use crate::{
    conformance::{operand::Placement, values::Values},
    error::Result,
    op::Axis,
};
use proptest::prelude::*;

/// Outer, own and inner extent: nothing of each, one of each, long of each.
const SHAPES: [[usize; 3]; 17] = [
    [1, 1, 1],
    [0, 3, 2],
    [2, 3, 0],
    [1, 7, 1],
    [5, 1, 3],
    [3, 5, 7],
    [2, 33, 65],
    [65, 33, 1],
    [1, 33, 65],
    [1, 1, 130],
    [130, 1, 1],
    [1, 1025, 1],
    [3, 1025, 2],
    [2, 4, 1025],
    [300, 3, 5],
    [1, 4099, 1],
    [17, 16, 16],
];

/// Operands of a kernel along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) shape: [usize; 3],
    pub(super) beta: f64,
    pub(super) values: Values,
    pub(super) seed: u64,
    pub(super) x: Placement,
    pub(super) y: Placement,
}

impl Case {
    fn of(shape: [usize; 3], seed: u64) -> Self {
        let (x, y) = (Placement::WHOLE, Placement::WHOLE);
        Self { shape, beta: 0.0, values: Values::Integers, seed, x, y }
    }

    /// Every shape, every scalar, every placement.
    pub(super) fn corners() -> Vec<Self> {
        let mut cases: Vec<_> = SHAPES.into_iter().zip(0..).map(|(s, i)| Self::of(s, i)).collect();
        cases.extend(SCALARS.map(|beta| Self { beta, ..Self::of([3, 5, 2], 1) }));
        for (x, seed) in Placement::CORNERS.into_iter().zip(0..) {
            let of = |y| Self { x, y, ..Self::of([2, 9, 3], seed) };
            cases.extend(Placement::CORNERS.map(of));
        }
        cases
    }

    /// Any; no extent is zero but the outer.
    pub(super) fn any() -> BoxedStrategy<Self> {
        let shape = prop_oneof![
            [0..4usize, 1..9usize, 1..9usize],
            [0..3usize, 1..200usize, 1..4usize],
            [0..40usize, 1..6usize, 1..40usize],
        ];
        let scalar = prop::sample::select(&SCALARS[..]);
        (shape, scalar, Values::any(), any::<u64>(), Placement::any(), Placement::any())
            .prop_map(|(shape, beta, values, seed, x, y)| Self { shape, beta, values, seed, x, y })
            .boxed()
    }

    pub(super) fn axis(&self) -> Result<Axis> {
        let [outer, extent, inner] = self.shape;
        Axis::new(outer, extent, inner)
    }
}
