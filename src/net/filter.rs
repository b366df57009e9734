//! Selection of the layers in a net definition by phase, level and stage.

use crate::{
    error::{Error, Result},
    proto::{LayerParameter, NetParameter, NetState, NetStateRule},
};

/// Returns the net definition without the layers that `include` and `exclude` rules remove for
/// `state`.
///
/// ```
/// use cortado::{net::filter_net, proto::{NetState, Phase, parse_text}};
///
/// let text = r#"layer { name: "data" include { phase: TRAIN } } layer { name: "ip" }"#;
/// let test = NetState { phase: Some(Phase::Test as i32), ..Default::default() };
/// let filtered_net = filter_net(&parse_text(text, "net")?, &test)?;
/// assert_eq!(filtered_net.layer.len(), 1);
/// assert_eq!(filtered_net.layer[0].name(), "ip");
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::InvalidData`] if a layer has both `include` and `exclude` rules.
#[doc(alias = "FilterNet")]
pub fn filter_net(param: &NetParameter, state: &NetState) -> Result<NetParameter> {
    let mut filtered_net = NetParameter { layer: Vec::new(), ..param.clone() };
    for layer in &param.layer {
        if includes(layer, state)? {
            filtered_net.layer.push(layer.clone());
        }
    }
    Ok(filtered_net)
}

/// Returns whether the rules of `layer` include it in a net in state `state`.
pub(super) fn includes(layer: &LayerParameter, state: &NetState) -> Result<bool> {
    let is_met = |rule| state_meets_rule(state, rule);
    match (&layer.include[..], &layer.exclude[..]) {
        ([], exclude) => Ok(!exclude.iter().any(is_met)),
        (include, []) => Ok(include.iter().any(is_met)),
        _ => {
            let reason = "give either include or exclude rules, not both";
            Err(Error::InvalidData(reason.into()).context(format!("layer `{}`", layer.name())))
        }
    }
}

/// Returns whether `state` meets `rule`: the state has the rule's phase, a level within the rule's
/// bounds, every `stage` and no `not_stage`.
///
/// ```
/// use cortado::{net::state_meets_rule, proto::parse_text};
///
/// let deploy = parse_text(r#"phase: TEST stage: "deploy""#, "state")?;
/// assert!(state_meets_rule(&deploy, &parse_text(r#"stage: "deploy""#, "rule")?));
/// assert!(!state_meets_rule(&deploy, &parse_text("phase: TEST min_level: 1", "rule")?));
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "StateMeetsRule")]
pub fn state_meets_rule(state: &NetState, rule: &NetStateRule) -> bool {
    let has_stage = |stage: &String| state.stage.contains(stage);
    rule.phase.is_none_or(|phase| phase == state.phase() as i32)
        && rule.min_level.is_none_or(|min| state.level() >= min)
        && rule.max_level.is_none_or(|max| state.level() <= max)
        && rule.stage.iter().all(has_stage)
        && !rule.not_stage.iter().any(has_stage)
}
