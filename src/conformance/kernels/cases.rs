//! Cases of kernel checks: fixed and random descriptors, with values and placements of operands.

use crate::{
    conformance::{
        operand::{Placement, unset},
        values::{ValueStream, Values},
    },
    element::Element,
    op::Axis,
};
use proptest::prelude::*;
use std::fmt::{self, Debug};

/// Name of an operand, and its elements before the kernel call.
pub(super) type NamedValues<T> = (&'static str, Vec<T>);

/// Name of an operand, and a slice of its elements before the call.
pub(super) type NamedSlice<'a, T> = (&'static str, &'a [T]);

/// Name and length of an operand.
pub(super) type Length = (&'static str, usize);

/// Largest number of operands of any kernel.
const OPERANDS: usize = 5;

/// Values and placements of a case's operands.
#[derive(Clone, Copy)]
pub(super) struct CaseSetup {
    pub(super) values: Values,
    /// Seed of the operands' values.
    pub(super) seed: u64,
    /// Placements of the inputs, followed by the placements of the outputs.
    pub(super) places: [Placement; OPERANDS],
}

impl fmt::Debug for CaseSetup {
    /// Formats the setup. A placement states the valid sides and the numbers of guard elements
    /// around an operand. If the placements differ, they are listed: inputs first, then outputs,
    /// then unused placements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, seed, places } = self;
        write!(f, "{values:?} of seed {seed}; ")?;
        if places.iter().all(|place| place == &places[0]) {
            return write!(f, "every operand is valid on: {:?}", places[0]);
        }
        let places = places.map(|place| format!("({place:?})")).join(" ");
        write!(
            f,
            "inputs, then outputs, are valid on: {places} (a kernel with fewer operands uses the \
             first of these)"
        )
    }
}

impl CaseSetup {
    /// Setup in which each operand holds integers, fills its memory and is valid on the device.
    pub(super) const WHOLE: Self =
        Self { values: Values::Integers, seed: 1, places: [Placement::WHOLE; OPERANDS] };

    /// Setup like [`WHOLE`](Self::WHOLE), but each operand starts more than 64 KiB into its memory.
    pub(super) const FAR: Self = Self { places: [Placement::FAR; OPERANDS], ..Self::WHOLE };

    /// Returns setups with operands in which some elements are NaN, an infinity or −0.
    pub(super) fn specials() -> impl Iterator<Item = Self> + Clone {
        (1..=4).map(|seed| Self { values: Values::Specials, seed, ..Self::WHOLE })
    }

    /// Returns a setup with integer operands that all have the placement `place`.
    pub(super) fn placed(place: Placement) -> Self {
        Self { places: [place; OPERANDS], ..Self::WHOLE }
    }

    /// Returns setups that together cover every placement of every operand. Adjacent operands have
    /// different placements.
    fn placements() -> impl Iterator<Item = Self> {
        let placements = Placement::CORNERS;
        (0..placements.len()).map(move |turn| Self {
            places: std::array::from_fn(|operand| placements[(turn + operand) % placements.len()]),
            ..Self::WHOLE
        })
    }

    /// Returns setups in which every two consecutive operands of the kernel have every pair of
    /// placements in their memories.
    fn pairs_of_placements() -> impl Iterator<Item = Self> {
        let pairs = |(x, seed)| {
            Placement::CORNERS.map(|y| Self { seed, places: [x, y, x, y, x], ..Self::WHOLE })
        };
        Placement::CORNERS.into_iter().zip(0..).flat_map(pairs)
    }

    /// Returns a strategy that draws the kind of values, the seed and the placements of a case.
    pub(super) fn any() -> impl Strategy<Value = Self> {
        let places = prop::array::uniform5(Placement::any());
        let setup = |(values, seed, places)| Self { values, seed, places };
        (Values::any(), any::<u64>(), places).prop_map(setup)
    }

    /// Returns the stream of pseudo-random numbers for the operands of this case.
    pub(super) fn stream(&self) -> ValueStream {
        self.values.stream(self.seed)
    }

    /// Returns operands with the given names and lengths, filled in order from the stream of this
    /// case.
    pub(super) fn operands<T: Element, const N: usize>(
        &self,
        lengths: [Length; N],
    ) -> [NamedValues<T>; N] {
        let mut stream = self.stream();
        lengths.map(|(name, len)| (name, stream.take(len)))
    }

    /// Returns inputs with values from [`operands`](Self::operands), and outputs that the kernel
    /// must overwrite, filled with NaN.
    pub(super) fn inputs_and_outputs<T: Element, const I: usize, const O: usize>(
        &self,
        inputs: [Length; I],
        outputs: [Length; O],
    ) -> ([NamedValues<T>; I], [NamedValues<T>; O]) {
        (self.operands(inputs), outputs.map(|(name, len)| (name, unset(len))))
    }
}

/// Returns the previous content of an output that a kernel multiplies by `β`. If β is 0, the output
/// is NaN, because the kernel must not read the output.
pub(super) fn output_before_kernel<T: Element>(
    (name, y): NamedValues<T>,
    beta: f64,
) -> NamedValues<T> {
    (name, if beta == 0.0 { unset(y.len()) } else { y })
}

/// Cases of a kernel check: in each case, a `C` describes the kernel call and a [`CaseSetup`]
/// describes the operands.
#[derive(Clone, Debug)]
pub(super) struct Cases<C: Debug> {
    pub(super) fixed_cases: Vec<(C, CaseSetup)>,
    pub(super) random_cases: BoxedStrategy<C>,
    /// Kernel calls that must fail if one operand has a wrong length.
    pub(super) refused_calls: Vec<C>,
    pub(super) large_cases: Vec<LargeCase<C>>,
}

/// Case of a kernel call with large operands, which are tiled from the operands of a small case.
#[derive(Clone, Debug)]
pub(super) struct LargeCase<C> {
    /// The small case.
    pub(super) small_case: C,
    /// The large case.
    pub(super) large_case: C,
    /// Number of copies.
    pub(super) copies: usize,
    /// Names of the operands that have the same elements in the small case and in the large case.
    pub(super) shared: &'static [&'static str],
}

impl<C> LargeCase<C> {
    /// Pairs each operand with its number of copies, which is 1 for shared operands.
    pub(super) fn copied<'a, T, const N: usize>(
        &self,
        operands: [NamedSlice<'a, T>; N],
    ) -> [(NamedSlice<'a, T>, usize); N] {
        operands
            .map(|(name, x)| ((name, x), if self.shared.contains(&name) { 1 } else { self.copies }))
    }
}

impl<C: Clone + Debug + 'static> Cases<C> {
    /// Creates cases that combine every corner case with integers and with real numbers, and the
    /// last corner case with every placement and with special values.
    pub(super) fn new(
        corner_cases: Vec<C>,
        random_cases: impl Strategy<Value = C> + 'static,
        refused_call: C,
    ) -> Self {
        let mut fixed_cases = Vec::new();
        for values in [Values::Integers, Values::Reals] {
            let setup = CaseSetup { values, ..CaseSetup::WHOLE };
            fixed_cases.extend(corner_cases.iter().map(|case| (case.clone(), setup)));
        }
        if let Some(last_case) = corner_cases.last() {
            let setups = CaseSetup::placements().chain([CaseSetup::FAR]);
            let setups = setups.chain(CaseSetup::specials());
            fixed_cases.extend(setups.map(|setup| (last_case.clone(), setup)));
        }
        Self {
            fixed_cases,
            random_cases: random_cases.boxed(),
            refused_calls: vec![refused_call],
            large_cases: Vec::new(),
        }
    }

    /// Removes the cases that `keep` rejects.
    pub(super) fn filter(mut self, keep: fn(&C) -> bool) -> Self {
        self.fixed_cases.retain(|(case, _)| keep(case));
        Self {
            random_cases: self.random_cases.prop_filter("rejected by the filter", keep).boxed(),
            ..self
        }
    }

    /// Removes the cases with special values.
    pub(super) fn without_specials(mut self) -> Self {
        self.fixed_cases.retain(|(_, setup)| setup.values != Values::Specials);
        self
    }

    /// Adds fixed cases.
    pub(super) fn and(mut self, fixed_cases: impl IntoIterator<Item = (C, CaseSetup)>) -> Self {
        self.fixed_cases.extend(fixed_cases);
        self
    }

    /// Adds a case with large operands. Each operand of the large case holds `copies` copies of the
    /// operand of `small_case`, except for the operands that `shared` names, which are equal in
    /// both cases.
    pub(super) fn and_large(
        mut self,
        [small_case, large_case]: [C; 2],
        copies: usize,
        shared: &'static [&'static str],
    ) -> Self {
        self.large_cases.push(LargeCase { small_case, large_case, copies, shared });
        self
    }

    /// Adds large cases whose operands are generated at full size, and not tiled from the operands
    /// of small cases.
    pub(super) fn and_whole(mut self, cases: impl IntoIterator<Item = C>) -> Self {
        let to_large_case = |large_case: C| LargeCase {
            small_case: large_case.clone(),
            large_case,
            copies: 1,
            shared: &[],
        };
        self.large_cases.extend(cases.into_iter().map(to_large_case));
        self
    }

    /// Removes the tests of wrong operand lengths.
    pub(super) fn without_refused(self) -> Self {
        Self { refused_calls: Vec::new(), ..self }
    }

    /// Adds one of the `parameters` to each case: fixed cases cycle through the `parameters`, and
    /// random cases draw from them.
    pub(super) fn with<P: Clone + Debug + 'static>(self, parameters: &[P]) -> Cases<(C, P)> {
        let cycled_parameters = || parameters.iter().cloned().cycle();
        let fixed_cases = self.fixed_cases.into_iter().zip(cycled_parameters());
        let random_cases = (self.random_cases, prop::sample::select(parameters.to_vec()));
        Cases {
            fixed_cases: fixed_cases
                .map(|((case, setup), parameter)| ((case, parameter), setup))
                .collect(),
            random_cases: random_cases.boxed(),
            refused_calls: self.refused_calls.into_iter().zip(cycled_parameters()).collect(),
            large_cases: self
                .large_cases
                .into_iter()
                .zip(cycled_parameters())
                .map(|(LargeCase { small_case, large_case, copies, shared }, parameter)| {
                    LargeCase {
                        small_case: (small_case, parameter.clone()),
                        large_case: (large_case, parameter),
                        copies,
                        shared,
                    }
                })
                .collect(),
        }
    }

    /// Creates cases from a list of fixed cases and a strategy for random cases, without tests of
    /// wrong operand lengths.
    pub(super) fn from_fixed(
        fixed_cases: Vec<(C, CaseSetup)>,
        random_cases: impl Strategy<Value = C> + 'static,
    ) -> Self {
        Self {
            fixed_cases,
            random_cases: random_cases.boxed(),
            refused_calls: Vec::new(),
            large_cases: Vec::new(),
        }
    }
}

/// Values of the scalars α and β. Kernels have special code for some values of α and β, and the
/// product of each value with a small integer is exact.
pub(super) const SCALARS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, 2.0];

/// Operand lengths near the sizes of SIMD vectors, warps, tasks and GPU thread blocks.
const LENGTHS: [usize; 14] = [0, 1, 2, 3, 7, 8, 31, 33, 64, 255, 257, 1024, 1025, 4099];

/// Number of elements, rows or planes in each small operand from which a large operand is tiled.
/// `PERIOD` is a prime factor of 2²⁰ + 3, so elements 2¹⁶ or 2²⁰ apart are not copies of the same
/// element.
pub(super) const PERIOD: usize = 919;

/// Number of copies of [`PERIOD`] elements in an operand of 2²⁰ + 3 elements. An index that wraps
/// at 2²⁰ addresses wrong elements.
pub(super) const COPIES: usize = ((1 << 20) + 3) / PERIOD;

/// Number of copies of [`PERIOD`] rows or planes in an operand with more than 65,535 rows or
/// planes, which are too many for 16-bit indices and for some axes of a GPU grid.
pub(super) const ROW_COPIES: usize = (1 << 16) / PERIOD + 1;

/// Number of rows, images or labels of a large operand, more than 65,535.
pub(super) const ROWS: usize = PERIOD * ROW_COPIES;

/// Length above which [`sparse`] sets elements of an operand to 0.
const SPARSE: usize = 1 << 16;

/// Sets all but the last 30 elements of a large operand to 0, so that the error bound of a sum is
/// small enough to reveal a kernel that skips the last elements.
pub(super) fn sparse<T: Element>(mut x: Vec<T>) -> Vec<T> {
    if x.len() > SPARSE {
        let end = x.len() - 30;
        x[..end].fill(T::default());
    }
    x
}

/// Length and scalars of an elementwise kernel call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector {
    pub(super) len: usize,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Vector {
    /// The small and the large case of an elementwise kernel.
    pub(super) const LARGE: [Self; 2] = [
        Self { len: PERIOD, alpha: 0.5, beta: 2.0 },
        Self { len: PERIOD * COPIES, alpha: 0.5, beta: 2.0 },
    ];
}

/// Returns cases of elementwise kernels with every length in [`LENGTHS`], every pair of
/// [`SCALARS`], every pair of placements and special values.
pub(super) fn vector_cases() -> Cases<Vector> {
    let of_len = |len| Vector { len, alpha: 0.5, beta: 2.0 };
    let scalars = SCALARS.into_iter().flat_map(|a| SCALARS.map(|b| (a, b)));
    let scaled_cases = scalars.map(|(alpha, beta)| Vector { len: 19, alpha, beta });
    let whole_cases =
        LENGTHS.into_iter().map(of_len).chain(scaled_cases).map(|case| (case, CaseSetup::WHOLE));
    let setups = CaseSetup::pairs_of_placements().chain([CaseSetup::FAR]);
    let placed_cases = setups.map(|setup| (of_len(37), setup));
    // A vector of 5 elements often has no special value, so that its sum is finite. A vector of 90
    // elements has every special value.
    let special_cases =
        [(5, 0.5, 2.0), (90, 0.5, 2.0), (90, 0.0, 2.0), (90, 2.0, 0.0), (90, 0.0, 0.0)]
            .map(|(len, alpha, beta)| Vector { len, alpha, beta });
    let special_cases = special_cases
        .into_iter()
        .flat_map(|case| CaseSetup::specials().map(move |setup| (case, setup)));
    let scalar = || prop::sample::select(&SCALARS[..]);
    let random_cases = (prop_oneof![0..80usize, 0..3000usize], scalar(), scalar());
    let random_cases = random_cases.prop_map(|(len, alpha, beta)| Vector { len, alpha, beta });
    let refused_calls = [1, 4, 1024].map(of_len).into();
    let fixed_cases = whole_cases.chain(placed_cases).chain(special_cases);
    Cases { refused_calls, ..Cases::from_fixed(fixed_cases.collect(), random_cases) }
}

/// Operand shapes around an axis, as `[outer, extent, inner]`, including factors that are 0, 1 or
/// large.
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

/// Axis along which a kernel computes, and the factor β by which the kernel multiplies the output's
/// previous value.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisCase {
    pub(super) axis: Axis,
    pub(super) beta: f64,
}

/// Returns cases of kernels that compute along an axis, with every shape in [`SHAPES`], every β in
/// [`SCALARS`], every pair of placements and special values. In every case, the axis has at least
/// one element.
pub(super) fn axis_cases() -> Cases<AxisCase> {
    let case = |[outer, extent, inner]: [usize; 3], beta| AxisCase {
        axis: Axis { outer, extent, inner },
        beta,
    };
    let seeded_case = |(shape, seed)| (case(shape, 0.0), CaseSetup { seed, ..CaseSetup::WHOLE });
    let scaled_cases = SCALARS.map(|beta| (case([3, 5, 2], beta), CaseSetup::WHOLE));
    let setups = CaseSetup::pairs_of_placements().chain([CaseSetup::FAR]);
    let placed_cases = setups.map(|setup| (case([2, 9, 3], 0.0), setup));
    let special_cases = [([4, 5, 3], 0.0), ([7, 9, 1], 2.0), ([2, 40, 9], 0.0), ([1, 3, 90], 0.0)];
    let special_cases = special_cases.into_iter().flat_map(|(shape, beta)| {
        CaseSetup::specials().map(move |setup| (case(shape, beta), setup))
    });
    let shape = prop_oneof![
        [0..4usize, 1..9usize, 1..9usize],
        [0..3usize, 1..200usize, 1..4usize],
        [0..40usize, 1..6usize, 1..40usize],
    ];
    let random_cases = (shape, prop::sample::select(&SCALARS[..]));
    let random_cases = random_cases.prop_map(move |(shape, beta)| case(shape, beta));
    let fixed_cases =
        SHAPES.into_iter().zip(0..).map(seeded_case).chain(scaled_cases).chain(placed_cases);
    let fixed_cases = fixed_cases.chain(special_cases).collect();
    Cases {
        refused_calls: vec![case([2, 3, 4], 1.0)],
        ..Cases::from_fixed(fixed_cases, random_cases)
    }
}
