//! The upgrade of a solver's `solver_type` to `type`.

use super::change::Change;
use crate::{
    error::{Error, Result},
    proto::messages::{SolverParameter, solver_parameter::SolverType},
};

#[doc(alias = "UpgradeSolverType")]
pub(super) fn upgrade(solver: &mut SolverParameter) -> Result<Vec<Change>> {
    let Some(number) = solver.solver_type else { return Ok(Vec::new()) };
    if solver.r#type.is_some() {
        let reason = "both type and solver_type are set; remove solver_type, the older form";
        return Err(Error::InvalidData(reason.into()));
    }
    let name = type_name(number)
        .ok_or_else(|| Error::InvalidData(format!("unknown solver_type {number}")))?;
    (solver.r#type, solver.solver_type) = (Some(name.into()), None);
    Ok(vec![Change::SolverType])
}

fn type_name(number: i32) -> Option<&'static str> {
    Some(match SolverType::try_from(number).ok()? {
        SolverType::Sgd => "SGD",
        SolverType::Nesterov => "Nesterov",
        SolverType::Adagrad => "AdaGrad",
        SolverType::Rmsprop => "RMSProp",
        SolverType::Adadelta => "AdaDelta",
        SolverType::Adam => "Adam",
    })
}
