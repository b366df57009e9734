//! The upgrade of BatchNorm layers: sets `lr_mult` and `decay_mult` of the statistics to 0.

use super::change::Change;
use crate::{error::Result, proto::messages::NetParameter};

const ZERO_MULTIPLIERS: (Option<f32>, Option<f32>) = (Some(0.0), Some(0.0));

#[doc(alias = "UpgradeNetBatchNorm")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    let mut has_changed = false;
    let layers = net.layer.iter_mut().filter(|layer| layer.r#type() == "BatchNorm");
    for layer in layers.filter(|layer| layer.param.len() == 3) {
        for spec in &mut layer.param {
            has_changed |= (spec.lr_mult, spec.decay_mult) != ZERO_MULTIPLIERS;
            (spec.lr_mult, spec.decay_mult) = ZERO_MULTIPLIERS;
        }
    }
    Ok(has_changed.then_some(Change::BatchNorm).into_iter().collect())
}
