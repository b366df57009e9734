//! Learning rates over time.

use crate::{
    error::{Error, Result},
    proto::SolverParameter,
};

/// How the learning rate depends on the iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct LrPolicy {
    base: f64,
    curve: PolicyKind,
}

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
    /// `gammaⁿ` with n the values passed
    MultiStep { gamma: f64, values: Vec<usize> },
    /// `(1 − i / end)^power`
    Poly { power: f64, end: f64 },
    /// `1 / (1 + e^(−gamma·(i − middle)))`
    Sigmoid { gamma: f64, middle: f64 },
}

impl LrPolicy {
    /// The policy `lr_policy` of a solver's definition.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for an unknown policy, or one that lacks a parameter it needs.
    pub fn new(param: &SolverParameter) -> Result<Self> {
        let missing = |field: &str| {
            let policy = param.lr_policy();
            Error::InvalidData(format!("lr_policy `{policy}` needs a {field}"))
        };
        let gamma = || match param.gamma {
            Some(gamma) if gamma >= 0.0 => Ok(f64::from(gamma)),
            _ => Err(missing("gamma of at least 0")),
        };
        let positive = |value: Option<i32>, field| match value {
            Some(value) if value > 0 => Ok(value as usize),
            _ => Err(missing(field)),
        };
        let power = f64::from(param.power());
        let curve = match param.lr_policy() {
            "fixed" => PolicyKind::Fixed,
            "step" => PolicyKind::Step {
                gamma: gamma()?,
                size: positive(param.stepsize, "positive stepsize")?,
            },
            "exp" => PolicyKind::Exp { gamma: gamma()? },
            "inv" => PolicyKind::Inv { gamma: gamma()?, power },
            "multistep" => {
                let values = param.stepvalue.iter().map(|&value| value.max(0) as usize);
                PolicyKind::MultiStep { gamma: gamma()?, values: values.collect() }
            }
            "poly" => PolicyKind::Poly {
                power,
                end: positive(param.max_iter, "positive max_iter")? as f64,
            },
            "sigmoid" => {
                let middle = positive(param.stepsize, "positive stepsize")? as f64;
                PolicyKind::Sigmoid { gamma: gamma()?, middle }
            }
            other => {
                let known = "fixed, step, exp, inv, multistep, poly, sigmoid";
                let why = format!("unknown lr_policy `{other}`; known policies: {known}");
                return Err(Error::InvalidData(why));
            }
        };
        Ok(Self { base: param.base_lr().into(), curve })
    }

    /// Steps that a `step` or `multistep` policy has taken by `iteration`; 0 for the others.
    pub(super) fn steps(&self, iteration: usize) -> i32 {
        let steps = match &self.curve {
            PolicyKind::Step { size, .. } => iteration / size,
            PolicyKind::MultiStep { values, .. } => passed(values, iteration),
            _ => 0,
        };
        i32::try_from(steps).unwrap_or(i32::MAX)
    }

    /// The rate of the update after `iteration` others.
    pub fn rate_at(&self, iteration: usize) -> f64 {
        let i = iteration as f64;
        let factor = match &self.curve {
            PolicyKind::Fixed => 1.0,
            PolicyKind::Step { gamma, size } => gamma.powf((iteration / size) as f64),
            PolicyKind::Exp { gamma } => gamma.powf(i),
            PolicyKind::Inv { gamma, power } => (1.0 + gamma * i).powf(-power),
            PolicyKind::MultiStep { gamma, values } => gamma.powf(passed(values, iteration) as f64),
            PolicyKind::Poly { power, end } => (1.0 - i / end).powf(*power),
            PolicyKind::Sigmoid { gamma, middle } => 1.0 / (1.0 + (-gamma * (i - middle)).exp()),
        };
        self.base * factor
    }
}

/// How many steps are taken by `iteration`: at most one an iteration, in the order given, as
/// Caffe's loop takes them.
fn passed(values: &[usize], iteration: usize) -> usize {
    let mut at = 0;
    let mut steps = 0;
    for &value in values {
        // A step that fell due together with the one before waits for the next iteration.
        at = value.max(if steps == 0 { 0 } else { at + 1 });
        if at > iteration {
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
    fn equal_step_values_act_one_iteration_apart() {
        let steps: Vec<_> = (0..8).map(|i| passed(&[3, 3, 6], i)).collect();
        assert_eq!(steps, [0, 0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn inv_as_the_lenet_solver_has_it() {
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
    fn what_a_policy_needs_is_asked_for() {
        let with =
            |policy: &str| SolverParameter { lr_policy: Some(policy.into()), ..Default::default() };
        for (policy, field) in [("step", "gamma"), ("inv", "gamma"), ("poly", "max_iter")] {
            let message = LrPolicy::new(&with(policy)).unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
        let message = LrPolicy::new(&with("steps")).unwrap_err().to_string();
        assert!(message.contains("`steps`") && message.contains("multistep"), "{message}");
    }
}
