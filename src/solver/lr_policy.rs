//! Learning rate policies.

use crate::{
    error::{Error, Result},
    proto::SolverParameter,
};

/// The learning rate as a function of the iteration.
///
/// ```
/// use cortado::{proto::parse_text, solver::LrPolicy};
///
/// let definition = r#"base_lr: 0.5 lr_policy: "step" gamma: 0.5 stepsize: 10"#;
/// let policy = LrPolicy::new(&parse_text(definition, "solver")?)?;
/// assert_eq!([0, 9, 10, 25].map(|iteration| policy.rate_at(iteration)), [0.5, 0.5, 0.25, 0.125]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LrPolicy {
    base_lr: f64,
    kind: PolicyKind,
}

/// The factor by which a learning rate policy multiplies `base_lr` in iteration `i`.
#[derive(Clone, Debug, PartialEq)]
enum PolicyKind {
    /// 1
    Fixed,
    /// `gamma^⌊i / size⌋`
    Step { gamma: f64, size: usize },
    /// `gammaⁱ`
    Exp { gamma: f64 },
    /// `(1 + gamma·i)^(−power)`
    Inv { gamma: f64, power: f64 },
    /// The factor is `gammaⁿ`, where `n` is the number of `stepvalue` fields that training has
    /// reached by iteration `i`.
    MultiStep { gamma: f64, values: Vec<usize> },
    /// `(1 − i / end)^power`
    Poly { power: f64, end: f64 },
    /// `1 / (1 + e^(−gamma·(i − midpoint)))`
    Sigmoid { gamma: f64, midpoint: f64 },
}

impl LrPolicy {
    /// Creates the learning rate policy that a solver's definition selects by `lr_policy`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for an unknown `lr_policy` or a missing parameter of the
    /// policy.
    pub fn new(param: &SolverParameter) -> Result<Self> {
        let missing_error = |field: &str| {
            let policy = param.lr_policy();
            Error::InvalidData(format!("lr_policy `{policy}` needs a {field}"))
        };
        let gamma = || match param.gamma {
            Some(gamma) if gamma >= 0.0 => Ok(f64::from(gamma)),
            _ => Err(missing_error("gamma of at least 0")),
        };
        let require_positive = |value: Option<i32>, field| match value {
            Some(value) if value > 0 => Ok(value as usize),
            _ => Err(missing_error(field)),
        };
        let power = f64::from(param.power());
        let kind = match param.lr_policy() {
            "fixed" => PolicyKind::Fixed,
            "step" => PolicyKind::Step {
                gamma: gamma()?,
                size: require_positive(param.stepsize, "positive stepsize")?,
            },
            "exp" => PolicyKind::Exp { gamma: gamma()? },
            "inv" => PolicyKind::Inv { gamma: gamma()?, power },
            "multistep" => {
                let values = param.stepvalue.iter().map(|&value| value.max(0) as usize);
                PolicyKind::MultiStep { gamma: gamma()?, values: values.collect() }
            }
            "poly" => PolicyKind::Poly {
                power,
                end: require_positive(param.max_iter, "positive max_iter")? as f64,
            },
            "sigmoid" => {
                let midpoint = require_positive(param.stepsize, "positive stepsize")? as f64;
                let gamma = match param.gamma.map(f64::from) {
                    Some(gamma) if gamma.is_finite() => gamma,
                    _ => return Err(missing_error("finite gamma")),
                };
                if gamma < 0.0 {
                    log::warn!(
                        "lr_policy `sigmoid`: gamma {gamma} is negative, so the learning rate \
                         falls from base_lr to 0"
                    );
                }
                PolicyKind::Sigmoid { gamma, midpoint }
            }
            other => {
                let known = "fixed, step, exp, inv, multistep, poly, sigmoid";
                let reason = format!("unknown lr_policy `{other}`; known policies: {known}");
                return Err(Error::InvalidData(reason));
            }
        };
        Ok(Self { base_lr: param.base_lr().into(), kind })
    }

    /// Returns the number of times that a `step` or `multistep` policy has changed the learning
    /// rate up to `iteration`; 0 for other policies.
    pub(super) fn steps(&self, iteration: usize) -> i32 {
        let steps = match &self.kind {
            PolicyKind::Step { size, .. } => iteration / size,
            PolicyKind::MultiStep { values, .. } => steps_reached(values, iteration),
            _ => 0,
        };
        i32::try_from(steps).unwrap_or(i32::MAX)
    }

    /// Returns the learning rate of the next update after `iteration` updates.
    pub fn rate_at(&self, iteration: usize) -> f64 {
        let i = iteration as f64;
        let factor = match &self.kind {
            PolicyKind::Fixed => 1.0,
            PolicyKind::Step { gamma, size } => gamma.powf((iteration / size) as f64),
            PolicyKind::Exp { gamma } => gamma.powf(i),
            PolicyKind::Inv { gamma, power } => (1.0 + gamma * i).powf(-power),
            PolicyKind::MultiStep { gamma, values } => {
                gamma.powf(steps_reached(values, iteration) as f64)
            }
            PolicyKind::Poly { power, end } => (1.0 - i / end).powf(*power),
            PolicyKind::Sigmoid { gamma, midpoint } => {
                1.0 / (1.0 + (-gamma * (i - midpoint)).exp())
            }
        };
        self.base_lr * factor
    }
}

/// Returns the number of `stepvalue` fields, given in `values`, that training has reached by
/// iteration `iteration`. As in Caffe, a `multistep` policy counts its `stepvalue` fields in the
/// given order, at most one per iteration.
fn steps_reached(values: &[usize], iteration: usize) -> usize {
    let mut step_iteration = 0;
    let mut steps = 0;
    for &value in values {
        // A `stepvalue` that is not greater than its predecessor takes effect one iteration after
        // its predecessor.
        step_iteration = value.max(if steps == 0 { 0 } else { step_iteration + 1 });
        if step_iteration > iteration {
            break;
        }
        steps += 1;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multistep_policy_with_equal_values_steps_one_iteration_apart() {
        let steps: Vec<_> = (0..8).map(|i| steps_reached(&[3, 3, 6], i)).collect();
        assert_eq!(steps, [0, 0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn inv_policy_with_lenet_parameters_matches_caffe() {
        let param = SolverParameter {
            lr_policy: Some("inv".into()),
            base_lr: Some(0.01),
            gamma: Some(0.0001),
            power: Some(0.75),
            ..Default::default()
        };
        let policy = LrPolicy::new(&param).unwrap();
        for (iteration, rate) in [(0, 0.01), (100, 0.00992565), (500, 0.00964069)] {
            assert!((policy.rate_at(iteration) - rate).abs() < 5e-9, "{iteration}");
        }
    }

    #[test]
    fn lr_policy_that_is_unknown_or_lacks_a_parameter_is_an_error() {
        let cases = [
            ("step", ["`step`", "gamma"]),
            ("inv", ["`inv`", "gamma"]),
            ("poly", ["`poly`", "max_iter"]),
            ("steps", ["`steps`", "multistep"]),
        ];
        for (policy, parts) in cases {
            let param = SolverParameter { lr_policy: Some(policy.into()), ..Default::default() };
            let error = LrPolicy::new(&param).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
