//! Whole numbers as elements.

use super::vector_cases::{Case, refused};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::exact,
        failure::Verdict,
        operand::{Operand, Placement, unset},
    },
    device::Device,
    element::{Element, Storable},
};
use std::fmt::Debug;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "convert_integers" of "convert_integers": convert_integers();
    }
}

fn convert_integers<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    // Those that `f32` and what is narrower have to round.
    from::<i32, T, D>(bench, [-1, 16_777_217, -33_554_434, i32::MIN, i32::MAX])?;
    from::<u32, T, D>(bench, [1, 16_777_217, 33_554_434, 1 << 31, u32::MAX])
}

/// Tries one type of integers, with some large ones.
fn from<N, T: Element, D: Device>(bench: &CheckRunner<'_, D>, large: [N; 5]) -> Verdict
where
    N: Storable + From<u16> + Into<f64> + Debug,
{
    let test = |case: &Case| {
        let few = case.values.from(case.seed).below(9, case.len);
        let small = |(i, few): (usize, usize)| {
            if few < 2 { large[i % large.len()] } else { N::from(few as u16 * 100) }
        };
        let xs: Vec<N> = few.into_iter().enumerate().map(small).collect();
        let want: Vec<f64> = xs.iter().map(|&x| x.into()).collect();
        let x = Operand::input(bench.device, &xs, case.x)?;
        let mut y = Operand::output(bench.device, &unset::<T>(xs.len()), case.y)?;
        bench.device.convert_integers(x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        exact("y", &y.finish()?, &want)
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)?;
    bench.all([(3, 4), (4, 3)], |&(xs, ys): &(usize, usize)| {
        let x = Operand::input(bench.device, &vec![N::from(1); xs], Placement::WHOLE)?;
        let ys = vec![T::from_f64(2.0); ys];
        let mut y = Operand::output(bench.device, &ys, Placement::WHOLE)?;
        let result = bench.device.convert_integers(x.view()?, y.view_mut()?);
        refused(result, "different lengths")?;
        y.unchanged("y")
    })
}
