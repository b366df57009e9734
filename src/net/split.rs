//! Insertion of a Split layer after each top that has several consumers.

use crate::{
    error::{Error, Result},
    proto::{LayerParameter, NetParameter},
    suggest::did_you_mean,
};
use std::collections::HashMap;

/// Identifies a top by the index of its layer and the top's index among the tops of this layer.
type Top = (usize, usize);

/// Uses of blobs in a net definition: the top to which each bottom refers, and the number of
/// consumers of each top.
#[derive(Default)]
struct BlobUses {
    /// For each layer, the tops to which the layer's bottoms refer.
    sources: Vec<Vec<Top>>,
    uses: HashMap<Top, TopUses>,
}

#[derive(Default)]
struct TopUses {
    /// The number of bottoms that refer to the top, plus one if the top has a loss weight.
    count: usize,
    loss_weight: f32,
    /// The number of tops of the Split layer that are already assigned to consumers.
    assigned_tops: usize,
}

/// Returns the net definition with a Split layer inserted after each top that has several
/// consumers. Each consumer reads a separate top of the Split layer. The objective counts as a
/// consumer of a top with a loss weight; the first top of the Split layer gets the loss weight.
///
/// ```
/// use cortado::{net::insert_splits, proto::parse_text};
///
/// let text = r#"layer { name: "x" type: "Input" top: "x" }
///     layer { name: "a" bottom: "x" top: "a" } layer { name: "b" bottom: "x" top: "b" }"#;
/// let split = insert_splits(&parse_text(text, "net")?)?;
/// let names: Vec<&str> = split.layer.iter().map(|layer| layer.name()).collect();
/// assert_eq!(names, ["x", "x_x_0_split", "a", "b"]);
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::InvalidData`] if a bottom is not the top of an earlier layer.
#[doc(alias = "InsertSplits")]
pub fn insert_splits(param: &NetParameter) -> Result<NetParameter> {
    let BlobUses { sources, mut uses } = blob_uses(param)?;
    let mut split = NetParameter { layer: Vec::new(), ..param.clone() };
    for (i, layer) in param.layer.iter().enumerate() {
        let mut layer = layer.clone();
        for (bottom, source) in layer.bottom.iter_mut().zip(&sources[i]) {
            let Some(top_uses) = uses.get_mut(source).filter(|top_uses| top_uses.count > 1) else {
                continue;
            };
            let producer = param.layer[source.0].name();
            *bottom = split_top(bottom, producer, source.1, top_uses.assigned_tops);
            top_uses.assigned_tops += 1;
        }
        let mut splits = Vec::new();
        for (j, top) in layer.top.iter().enumerate() {
            let Some(top_uses) = uses.get_mut(&(i, j)).filter(|top_uses| top_uses.count > 1) else {
                continue;
            };
            splits.push(split_layer(top, layer.name(), j, top_uses));
            if top_uses.loss_weight != 0.0 {
                top_uses.assigned_tops += 1;
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

fn blob_uses(param: &NetParameter) -> Result<BlobUses> {
    let mut last_top: HashMap<&str, Top> = HashMap::new();
    let BlobUses { mut sources, mut uses } = BlobUses::default();
    for (i, layer) in param.layer.iter().enumerate() {
        let mut bottoms = Vec::with_capacity(layer.bottom.len());
        for (j, bottom) in layer.bottom.iter().enumerate() {
            let source = last_top.get(bottom.as_str()).copied().ok_or_else(|| {
                let unknown_error = unknown_bottom_error(bottom, j, last_top.keys().copied());
                unknown_error.context(format!("layer `{}`", layer.name()))
            })?;
            uses.entry(source).or_default().count += 1;
            bottoms.push(source);
        }
        sources.push(bottoms);
        for (j, top) in layer.top.iter().enumerate() {
            last_top.insert(top, (i, j));
        }
        for (top, &weight) in layer.top.iter().zip(&layer.loss_weight) {
            let top_uses = uses.entry(last_top[top.as_str()]).or_default();
            top_uses.loss_weight = weight;
            top_uses.count += usize::from(weight != 0.0);
        }
    }
    Ok(BlobUses { sources, uses })
}

/// Returns the error for a bottom that no earlier layer produces. The error message suggests a
/// known blob name that is similar to `bottom`.
pub(super) fn unknown_bottom_error<'a>(
    bottom: &str,
    index: usize,
    known: impl IntoIterator<Item = &'a str>,
) -> Error {
    let suggestion = did_you_mean(bottom, known);
    Error::InvalidData(format!("unknown bottom blob `{bottom}`{suggestion} (bottom {index})"))
}

fn split_layer(top: &str, producer: &str, index: usize, top_uses: &TopUses) -> LayerParameter {
    let mut loss_weight = Vec::new();
    if top_uses.loss_weight != 0.0 {
        loss_weight.resize(top_uses.count, 0.0);
        loss_weight[0] = top_uses.loss_weight;
    }
    LayerParameter {
        name: Some(format!("{top}_{producer}_{index}_split")),
        r#type: Some("Split".into()),
        bottom: vec![top.into()],
        top: (0..top_uses.count).map(|k| split_top(top, producer, index, k)).collect(),
        loss_weight,
        ..Default::default()
    }
}

fn split_top(blob: &str, producer: &str, index: usize, k: usize) -> String {
    format!("{blob}_{producer}_{index}_split_{k}")
}
