//! The export of one layer: its definition, its bottoms and tops, and the nodes that it adds.

use super::{
    graph::{Graph, Value},
    tensors::{extents, float_tensor, integer_tensor},
};
use crate::{
    blob::Blob,
    error::{Error, Result},
    proto::{
        LayerParameter,
        onnx::{AttributeProto, NodeProto, TensorProto, attribute_proto::AttributeType},
    },
    shape::Shape,
};

/// The layer that is being exported, and the graph to which it adds nodes.
pub(super) struct LayerExport<'a> {
    pub(super) graph: &'a mut Graph,
    /// Index of the layer in the net.
    pub(super) layer: usize,
    pub(super) param: &'a LayerParameter,
    pub(super) bottoms: Vec<Value>,
    pub(super) tops: Vec<Value>,
    /// The layer's parameters.
    pub(super) params: Vec<&'a Blob<f32>>,
    /// Index of the layer's first node in the graph.
    pub(super) first_node: usize,
}

impl LayerExport<'_> {
    /// Returns the first characters of the layer's name, for the names of nodes and of temporary
    /// values. A layer can have thousands of nodes, so a long name in each would need much memory.
    fn short_name(&self) -> &str {
        let name = self.param.name();
        name.char_indices().nth(64).map_or(name, |(end, _)| &name[..end])
    }

    /// Starts a node with the operator `operator`, which reads the values `inputs`.
    pub(super) fn node(&mut self, operator: &str, inputs: &[&str]) -> Node<'_> {
        let node = NodeProto {
            op_type: Some(operator.into()),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            ..Default::default()
        };
        let name = self.short_name().to_owned();
        Node { graph: self.graph, layer: self.layer, name, node }
    }

    /// Makes `value` the top with index `index`. A value that a node of this layer computes gets
    /// the top's name; any other value is copied to a new value with this name.
    pub(super) fn set_top(&mut self, index: usize, value: &str) {
        let top = self.tops[index].name.clone();
        let is_own = self.graph.nodes[self.first_node..]
            .iter()
            .any(|node| node.item.output.iter().any(|output| output == value));
        if is_own {
            self.graph.rename(self.first_node, value, &top);
        } else {
            let copy = self.node("Identity", &[value]).value();
            self.graph.rename(self.first_node, &copy, &top);
        }
    }

    /// Returns the name of the bottom with index `index`.
    pub(super) fn bottom(&self, index: usize) -> String {
        self.bottoms[index].name.clone()
    }

    /// Returns the shape of the bottom with index `index`.
    pub(super) fn shape(&self, index: usize) -> Result<Shape> {
        Shape::new(&self.bottoms[index].shape)
    }

    /// Adds a constant of the shape `shape`.
    pub(super) fn floats(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.graph.unique_name(&format!("{}/constant", self.short_name()));
        let tensor = float_tensor(name.clone(), shape, values);
        self.graph.add_constant(self.layer, tensor);
        name
    }

    /// Adds a constant without axes.
    pub(super) fn scalar(&mut self, value: f32) -> String {
        self.floats(&[], &[value])
    }

    /// Adds a constant of integers with one axis.
    pub(super) fn integers(&mut self, values: &[i64]) -> String {
        let name = self.graph.unique_name(&format!("{}/constant", self.short_name()));
        let tensor = integer_tensor(name.clone(), values);
        self.graph.add_constant(self.layer, tensor);
        name
    }

    /// Adds the layer's parameter with index `index` as a constant.
    pub(super) fn parameter(&mut self, index: usize) -> Result<String> {
        let shape = self.params[index].shape().to_vec();
        self.parameter_as(index, &shape)
    }

    /// Adds the layer's parameter with index `index` as a constant of the shape `shape`.
    pub(super) fn parameter_as(&mut self, index: usize, shape: &[usize]) -> Result<String> {
        let name = self.graph.unique_name(&format!("{}.{index}", self.short_name()));
        let tensor = match self.graph.with_weights {
            true => float_tensor(name.clone(), shape, &self.params[index].to_vec()?),
            false => TensorProto { raw_data: None, ..float_tensor(name.clone(), shape, &[]) },
        };
        self.graph.add_constant(self.layer, tensor);
        Ok(name)
    }

    /// Reshapes `value` to `shape`. The node computes the first extent from the number of elements,
    /// so that the node also fits another batch size.
    pub(super) fn reshape(&mut self, value: &str, shape: &[usize]) -> String {
        let mut extents = extents(shape);
        if let Some(first) = extents.first_mut() {
            *first = -1;
        }
        let shape = self.integers(&extents);
        self.node("Reshape", &[value, &shape]).value()
    }

    /// Applies `operator` to `value` and a number.
    pub(super) fn with_scalar(&mut self, operator: &str, value: &str, scalar: f32) -> String {
        let scalar = self.scalar(scalar);
        self.node(operator, &[value, &scalar]).value()
    }

    /// Returns the error for a layer that ONNX cannot express.
    pub(super) fn refuse<T>(&self, reason: &str) -> Result<T> {
        Err(refusal(self.param, reason))
    }
}

/// Returns the error for a layer that ONNX cannot express.
pub(super) fn refusal(param: &LayerParameter, reason: &str) -> Error {
    let kind = param.r#type();
    Error::InvalidData(format!("{kind} cannot be exported to ONNX: {reason}"))
}

/// A node under construction.
pub(super) struct Node<'a> {
    graph: &'a mut Graph,
    layer: usize,
    name: String,
    node: NodeProto,
}

impl Node<'_> {
    pub(super) fn int(self, name: &str, value: i64) -> Self {
        let value = AttributeProto { i: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::Int, value)
    }

    pub(super) fn ints(self, name: &str, values: &[i64]) -> Self {
        let value = AttributeProto { ints: values.to_vec(), ..Default::default() };
        self.attribute(name, AttributeType::Ints, value)
    }

    pub(super) fn float(self, name: &str, value: f32) -> Self {
        let value = AttributeProto { f: Some(value), ..Default::default() };
        self.attribute(name, AttributeType::Float, value)
    }

    fn attribute(mut self, name: &str, kind: AttributeType, value: AttributeProto) -> Self {
        let mut attribute = AttributeProto { name: Some(name.into()), ..value };
        attribute.set_type(kind);
        self.node.attribute.push(attribute);
        self
    }

    /// Adds the node to the graph, and returns the name of its output.
    pub(super) fn value(self) -> String {
        self.values(1).swap_remove(0)
    }

    /// Adds the node to the graph, and returns the names of its `count` outputs.
    pub(super) fn values(mut self, count: usize) -> Vec<String> {
        let name = format!("{}/{}", self.name, self.node.op_type());
        let outputs: Vec<_> = (0..count).map(|_| self.graph.unique_name(&name)).collect();
        self.node.output = outputs.clone();
        self.graph.add_node(self.layer, &name, self.node);
        outputs
    }
}
