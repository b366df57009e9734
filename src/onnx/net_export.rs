//! The export of a whole net: which value each blob name stands for, and which values are inputs and
//! outputs.

use super::{
    graph::{Graph, Value},
    layer_export::{LayerExport, refusal},
    operators::{Role, add_nodes, role},
};
use crate::{
    blob::Blob,
    error::{Error, Result},
    limits,
    net::Net,
    proto::{LayerParameter, Phase},
};
use std::collections::{HashMap, HashSet};

/// Exports the net with the current shapes of its blobs.
///
/// # Errors
/// Returns [`Error::InvalidData`] as [`export`](super::export) does.
pub(super) fn export(net: &Net<f32>) -> Result<Graph> {
    export_graph(net, true)
}

/// Exports the net without the values of its weights, for a comparison with another graph of the
/// net.
///
/// # Errors
/// Returns [`Error::InvalidData`] as [`export`](super::export) does.
pub(super) fn export_without_weights(net: &Net<f32>) -> Result<Graph> {
    export_graph(net, false)
}

fn export_graph(net: &Net<f32>, with_weights: bool) -> Result<Graph> {
    let mut export = NetExport::new(net, with_weights);
    for (layer, param) in net.layer_params().enumerate() {
        let result = export.add_layer(layer, param);
        result.map_err(|error| error.context(format!("layer `{}`", param.name())))?;
    }
    export.finish()
}

struct NetExport<'a> {
    net: &'a Net<f32>,
    graph: Graph,
    /// The value that each blob name currently stands for.
    values: HashMap<String, Value>,
    /// For each blob name, the number of layers that are still to write it.
    writers: HashMap<String, usize>,
    /// The type of the layer that computes a blob which is not exported.
    left_out: HashMap<String, String>,
    /// The values of tops in the order of the layers, without inputs.
    computed: Vec<Value>,
    /// The names of values that only a Silence layer reads.
    silenced: HashSet<String>,
    /// Maps the name of a value to the last Dropout top that stands for this value.
    dropout_tops: HashMap<String, String>,
}

impl<'a> NetExport<'a> {
    fn new(net: &'a Net<f32>, with_weights: bool) -> Self {
        let mut writers = HashMap::new();
        for (layer, param) in net.layer_params().enumerate() {
            if role(param, is_loss(net, layer)) == Role::Nodes {
                for top in tops(net, layer) {
                    *writers.entry(top.to_owned()).or_default() += 1;
                }
            }
        }
        Self {
            net,
            graph: Graph::new(net.blobs().map(|(name, _)| name.to_owned()), with_weights),
            values: HashMap::new(),
            writers,
            left_out: HashMap::new(),
            computed: Vec::new(),
            silenced: HashSet::new(),
            dropout_tops: HashMap::new(),
        }
    }

    fn add_layer(&mut self, layer: usize, param: &'a LayerParameter) -> Result<()> {
        match role(param, is_loss(self.net, layer)) {
            Role::Input => {
                for name in self.tops(layer) {
                    let value = Value { shape: self.shape(&name)?, name: name.clone() };
                    self.values.insert(name, value.clone());
                    self.graph.inputs.push(value);
                }
            }
            Role::Alias => self.add_alias(layer, param)?,
            Role::LeftOut => self.leave_out(layer, param.r#type()),
            Role::Silence => {
                let (bottoms, _) = self.net.bottoms_and_tops(layer).unwrap_or_default();
                let values = bottoms.iter().filter_map(|bottom| self.values.get(*bottom));
                self.silenced.extend(values.map(|value| value.name.clone()));
            }
            Role::Nodes => self.add_nodes(layer, param)?,
        }
        Ok(())
    }

    /// Makes the tops of a Split or Dropout layer stand for the value of the bottom.
    fn add_alias(&mut self, layer: usize, param: &LayerParameter) -> Result<()> {
        let is_dropout = param.r#type() == "Dropout";
        if is_dropout && param.phase() == Phase::Train {
            return Err(refusal(param, "its phase is TRAIN, in which it is random"));
        }
        let bottom = self.net.bottoms_and_tops(layer).map_or("", |(bottoms, _)| bottoms[0]);
        let Some(value) = self.values.get(bottom).cloned() else {
            let kind = self.left_out.get(bottom).cloned().unwrap_or_default();
            self.leave_out(layer, &kind);
            return Ok(());
        };
        for top in self.tops(layer) {
            if is_dropout {
                self.dropout_tops.insert(value.name.clone(), top.clone());
            }
            self.values.insert(top, value.clone());
        }
        Ok(())
    }

    /// Records that the model contains no values for the tops of the layer `layer`, because a layer
    /// of the type `kind` is left out.
    fn leave_out(&mut self, layer: usize, kind: &str) {
        for top in self.tops(layer) {
            self.values.remove(&top);
            self.left_out.insert(top, kind.to_owned());
        }
    }

    fn add_nodes(&mut self, layer: usize, param: &'a LayerParameter) -> Result<()> {
        let (bottoms, _) = self.net.bottoms_and_tops(layer).unwrap_or_default();
        let bottoms: Vec<Value> =
            bottoms.iter().map(|bottom| self.value(param, bottom)).collect::<Result<_>>()?;
        let mut tops = Vec::new();
        for name in self.tops(layer) {
            let shape = self.shape(&name)?;
            let is_last = self.writers.get_mut(&name).is_none_or(|count| {
                *count -= 1;
                *count == 0
            });
            let is_input = self.graph.inputs.iter().any(|input| input.name == name);
            let name = match is_last && !is_input {
                true => name,
                false => self.graph.unique_name(&format!("{name}/{}", param.name())),
            };
            tops.push(Value { name, shape });
        }
        for value in bottoms.iter().chain(&tops) {
            if value.shape.contains(&0) {
                let reason = format!("the blob `{}` has no elements", value.name);
                return Err(refusal(param, &reason));
            }
        }
        let params = self.net.params().iter().filter(|param| param.layer == layer);
        let params: Vec<&Blob<f32>> = params.map(|param| param.blob()).collect();
        let first_node = self.graph.nodes.len();
        let graph = &mut self.graph;
        add_nodes(&mut LayerExport {
            graph,
            layer,
            param,
            bottoms,
            tops: tops.clone(),
            params,
            first_node,
        })?;
        let limit = limits::GRAPH_NODES;
        if self.graph.nodes.len() > limit {
            return Err(refusal(param, &format!("the model would have more than {limit} nodes")));
        }
        for (name, value) in self.tops(layer).into_iter().zip(tops) {
            self.values.insert(name, value.clone());
            self.computed.push(value);
        }
        Ok(())
    }

    fn value(&self, param: &LayerParameter, bottom: &str) -> Result<Value> {
        self.values.get(bottom).cloned().ok_or_else(|| {
            let kind = self.left_out.get(bottom).map_or("", String::as_str);
            let reason = format!("its bottom `{bottom}` comes from {kind}, which is left out");
            refusal(param, &reason)
        })
    }

    fn tops(&self, layer: usize) -> Vec<String> {
        tops(self.net, layer).map(str::to_owned).collect()
    }

    fn shape(&self, blob: &str) -> Result<Vec<usize>> {
        let blob = self.net.blob(blob);
        let missing = || Error::InvalidData("the net lacks a blob of this layer".into());
        Ok(blob.ok_or_else(missing)?.shape().to_vec())
    }

    /// Chooses the inputs and outputs of the graph.
    fn finish(mut self) -> Result<Graph> {
        let read = self.graph.read_values();
        self.graph.inputs.retain(|input| read.contains(&input.name));
        let (intermediate, outputs): (Vec<_>, Vec<_>) = self
            .computed
            .into_iter()
            .partition(|value| read.contains(&value.name) || self.silenced.contains(&value.name));
        if outputs.is_empty() {
            let reason = "net: nothing to export: without losses and Accuracy, no layer computes \
                          an output";
            return Err(Error::InvalidData(reason.into()));
        }
        self.graph.intermediate = intermediate;
        for output in outputs {
            let Some(top) = self.dropout_tops.get(&output.name) else {
                self.graph.outputs.push(output);
                continue;
            };
            // The output has the name of the Dropout layer's top.
            self.graph.rename(0, &output.name, top);
            self.graph.outputs.push(Value { name: top.clone(), shape: output.shape });
        }
        Ok(self.graph)
    }
}

fn is_loss(net: &Net<f32>, layer: usize) -> bool {
    net.layer_at(layer).is_some_and(|layer| layer.is_loss())
}

fn tops(net: &Net<f32>, layer: usize) -> impl Iterator<Item = &str> {
    net.bottoms_and_tops(layer).into_iter().flat_map(|(_, tops)| tops)
}
