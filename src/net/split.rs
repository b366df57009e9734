//! Split layers where a blob has several consumers.

use crate::{
    error::{Error, Result},
    proto::{LayerParameter, NetParameter},
    words::did_you_mean,
};
use std::collections::HashMap;

/// A top: the layer's place, and its place among the layer's tops.
type Top = (usize, usize);

/// Which tops a definition's bottoms mean, and how tops are used.
#[derive(Default)]
struct BlobUses {
    /// For each layer the source of each bottom.
    sources: Vec<Vec<Top>>,
    uses: HashMap<Top, Uses>,
}

/// How a top is used.
#[derive(Default)]
struct Uses {
    /// Consumers, and one more if the top has a weight in the objective.
    count: usize,
    loss_weight: f32,
    /// Splits handed out so far.
    taken: usize,
}

/// The definition with a Split layer after each top that has several consumers, which then
/// consume the splits. A top with a loss weight counts as consumed by the objective: its first
/// split carries the weight.
///
/// # Errors
/// [`Error::InvalidData`] if a bottom is no layer's top.
#[doc(alias = "InsertSplits")]
pub fn insert_splits(param: &NetParameter) -> Result<NetParameter> {
    let BlobUses { sources, mut uses } = survey(param)?;
    let mut split = NetParameter { layer: Vec::new(), ..param.clone() };
    for (i, layer) in param.layer.iter().enumerate() {
        let mut layer = layer.clone();
        for (bottom, source) in layer.bottom.iter_mut().zip(&sources[i]) {
            let Some(used) = uses.get_mut(source).filter(|used| used.count > 1) else { continue };
            let producer = param.layer[source.0].name();
            *bottom = split_top(bottom, producer, source.1, used.taken);
            used.taken += 1;
        }
        let mut splits = Vec::new();
        for (j, top) in layer.top.iter().enumerate() {
            let Some(used) = uses.get_mut(&(i, j)).filter(|used| used.count > 1) else { continue };
            splits.push(split_layer(top, layer.name(), j, used));
            if used.loss_weight != 0.0 {
                used.taken += 1;
            }
        }
        if splits.iter().any(|split| !split.loss_weight.is_empty()) {
            layer.loss_weight.clear();
        }
        split.layer.push(layer);
        split.layer.extend(splits);
    }
    Ok(split)
}

fn survey(param: &NetParameter) -> Result<BlobUses> {
    let mut last: HashMap<&str, Top> = HashMap::new();
    let BlobUses { mut sources, mut uses } = BlobUses::default();
    for (i, layer) in param.layer.iter().enumerate() {
        let mut tops = Vec::with_capacity(layer.bottom.len());
        for (j, bottom) in layer.bottom.iter().enumerate() {
            let source = last.get(bottom.as_str()).copied().ok_or_else(|| {
                let unknown = unknown_bottom_error(bottom, j, last.keys().copied());
                unknown.context(format!("layer `{}`", layer.name()))
            })?;
            uses.entry(source).or_default().count += 1;
            tops.push(source);
        }
        sources.push(tops);
        for (j, top) in layer.top.iter().enumerate() {
            last.insert(top, (i, j));
        }
        for (top, &weight) in layer.top.iter().zip(&layer.loss_weight) {
            let used = uses.entry(last[top.as_str()]).or_default();
            used.loss_weight = weight;
            used.count += usize::from(weight != 0.0);
        }
    }
    Ok(BlobUses { sources, uses })
}

/// A bottom that no layer before makes: of those known, one may be meant.
pub(super) fn unknown_bottom_error<'a>(
    bottom: &str,
    index: usize,
    known: impl IntoIterator<Item = &'a str>,
) -> Error {
    let meant = did_you_mean(bottom, known);
    Error::InvalidData(format!("unknown bottom blob `{bottom}`{meant} (bottom {index})"))
}

fn split_layer(top: &str, producer: &str, index: usize, used: &Uses) -> LayerParameter {
    let mut loss_weight = Vec::new();
    if used.loss_weight != 0.0 {
        loss_weight.resize(used.count, 0.0);
        loss_weight[0] = used.loss_weight;
    }
    LayerParameter {
        name: Some(format!("{top}_{producer}_{index}_split")),
        r#type: Some("Split".into()),
        bottom: vec![top.into()],
        top: (0..used.count).map(|k| split_top(top, producer, index, k)).collect(),
        loss_weight,
        ..Default::default()
    }
}

fn split_top(blob: &str, producer: &str, index: usize, k: usize) -> String {
    format!("{blob}_{producer}_{index}_split_{k}")
}
