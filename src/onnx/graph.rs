//! The graph that an export builds: nodes, constants, and unique names.

use super::tensors::value_info;
use crate::proto::onnx::{GraphProto, NodeProto, TensorProto};
use std::collections::{HashMap, HashSet};

/// A value of the graph: its name and its shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

/// A node or constant, and the index of the layer that it belongs to.
pub(super) struct OfLayer<T> {
    pub(super) layer: usize,
    pub(super) item: T,
}

#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<OfLayer<NodeProto>>,
    pub(super) constants: Vec<OfLayer<TensorProto>>,
    pub(super) inputs: Vec<Value>,
    pub(super) outputs: Vec<Value>,
    /// The values of blobs that are neither inputs nor outputs.
    pub(super) intermediate: Vec<Value>,
    /// Whether the constants hold the values of weights.
    pub(super) with_weights: bool,
    names: HashSet<String>,
    node_names: HashSet<String>,
}

impl Graph {
    /// Creates an empty graph. No temporary value gets one of the names in `reserved`.
    pub(super) fn new(reserved: impl IntoIterator<Item = String>, with_weights: bool) -> Self {
        Self { names: reserved.into_iter().collect(), with_weights, ..Self::default() }
    }

    /// Returns `name`, or `name` with a number if another value has the name.
    pub(super) fn unique_name(&mut self, name: &str) -> String {
        unique(&mut self.names, name)
    }

    /// Adds a constant of a layer.
    pub(super) fn add_constant(&mut self, layer: usize, item: TensorProto) {
        self.constants.push(OfLayer { layer, item });
    }

    /// Adds a node with a unique name that starts with `name`.
    pub(super) fn add_node(&mut self, layer: usize, name: &str, mut node: NodeProto) {
        node.name = Some(unique(&mut self.node_names, name));
        self.nodes.push(OfLayer { layer, item: node });
    }

    /// Renames a value in all nodes from index `first` on.
    pub(super) fn rename(&mut self, first: usize, from: &str, to: &str) {
        for node in &mut self.nodes[first..] {
            let names = node.item.input.iter_mut().chain(&mut node.item.output);
            names.filter(|name| *name == from).for_each(|name| *name = to.to_owned());
        }
    }

    /// Returns the names of the values that nodes read.
    pub(super) fn read_values(&self) -> HashSet<String> {
        self.nodes.iter().flat_map(|node| node.item.input.iter().cloned()).collect()
    }

    /// Converts the graph to a message. `other` is the same net's graph for another batch size; if
    /// it is given, extents that differ are symbolic or unknown.
    pub(super) fn into_proto(self, name: &str, other: Option<&Graph>) -> GraphProto {
        let batch = |graph: &Graph| {
            graph.inputs.first().and_then(|input| input.shape.first()).copied().unwrap_or(0)
        };
        let batches = [batch(&self), other.map_or(0, batch)];
        let shapes: HashMap<&str, &[usize]> = other
            .into_iter()
            .flat_map(|graph| [&graph.inputs, &graph.outputs, &graph.intermediate])
            .flatten()
            .map(|value| (&value.name[..], &value.shape[..]))
            .collect();
        let info = |value: &Value| {
            value_info(&value.name, &value.shape, shapes.get(&value.name[..]).copied(), batches)
        };
        GraphProto {
            name: Some(if name.is_empty() { "net" } else { name }.into()),
            input: self.inputs.iter().map(info).collect(),
            output: self.outputs.iter().map(info).collect(),
            value_info: self.intermediate.iter().map(info).collect(),
            node: self.nodes.into_iter().map(|node| node.item).collect(),
            initializer: self.constants.into_iter().map(|constant| constant.item).collect(),
            ..Default::default()
        }
    }
}

fn unique(names: &mut HashSet<String>, name: &str) -> String {
    let mut unique_name = name.to_owned();
    let mut number = 1;
    while !names.insert(unique_name.clone()) {
        number += 1;
        unique_name = format!("{name}_{number}");
    }
    unique_name
}
