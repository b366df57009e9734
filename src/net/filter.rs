//! Selection of a definition's layers by phase, level and stage.

use crate::{
    error::{Error, Result},
    proto::{LayerParameter, NetParameter, NetState, NetStateRule},
};

/// Returns the definition without the layers that `include` and `exclude` rules remove for `state`.
///
/// # Errors
/// Returns [`Error::InvalidData`] for a layer with both include and exclude rules.
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

/// Returns whether `state` meets `rule`: the state has the rule's phase, a level within the rule's
/// bounds, every `stage` and no `not_stage`.
#[doc(alias = "StateMeetsRule")]
pub fn state_meets_rule(state: &NetState, rule: &NetStateRule) -> bool {
    let has = |stage: &String| state.stage.contains(stage);
    rule.phase.is_none_or(|phase| phase == state.phase() as i32)
        && rule.min_level.is_none_or(|min| state.level() >= min)
        && rule.max_level.is_none_or(|max| state.level() <= max)
        && rule.stage.iter().all(has)
        && !rule.not_stage.iter().any(has)
}
