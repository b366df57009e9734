//! Which layers of a definition belong to a net in a given state.

use crate::{
    error::{Error, Result},
    proto::{LayerParameter, NetParameter, NetState, NetStateRule},
};

/// The definition without the layers that its include and exclude rules leave out of `state`.
///
/// # Errors
/// [`Error::InvalidData`] for a layer that has rules of both kinds.
#[doc(alias = "FilterNet")]
pub fn filter_net(param: &NetParameter, state: &NetState) -> Result<NetParameter> {
    let mut filtered = NetParameter { layer: Vec::new(), ..param.clone() };
    for layer in &param.layer {
        if includes(layer, state)? {
            filtered.layer.push(layer.clone());
        }
    }
    Ok(filtered)
}

fn includes(layer: &LayerParameter, state: &NetState) -> Result<bool> {
    let met = |rule| state_meets_rule(state, rule);
    match (&layer.include[..], &layer.exclude[..]) {
        ([], exclude) => Ok(!exclude.iter().any(met)),
        (include, []) => Ok(include.iter().any(met)),
        _ => {
            let why = "give either include or exclude rules, not both";
            Err(Error::InvalidData(why.into()).context(format!("layer `{}`", layer.name())))
        }
    }
}

/// Whether a state meets a rule: its phase, a level between both bounds, all of `stage` and none
/// of `not_stage`.
#[doc(alias = "StateMeetsRule")]
pub fn state_meets_rule(state: &NetState, rule: &NetStateRule) -> bool {
    let has = |stage: &String| state.stage.contains(stage);
    rule.phase.is_none_or(|phase| phase == state.phase() as i32)
        && rule.min_level.is_none_or(|least| state.level() >= least)
        && rule.max_level.is_none_or(|most| state.level() <= most)
        && rule.stage.iter().all(has)
        && !rule.not_stage.iter().any(has)
}
