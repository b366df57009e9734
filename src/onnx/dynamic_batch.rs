//! Export with a symbolic batch size, by comparison of the graphs for two batch sizes.

use super::{
    graph::{Graph, OfLayer},
    net_export,
    operators::{Role, role},
};
use crate::{
    error::{Error, Result},
    net::Net,
    proto::onnx::{GraphProto, TensorProto},
};

/// Exports the net with a symbolic batch size. A layer depends on the batch size if its nodes or
/// constants differ between the graphs for two batch sizes.
///
/// # Errors
/// Returns [`Error::InvalidData`], with the name of the layer, if a layer depends on the batch size.
pub(super) fn export(net: &mut Net<f32>) -> Result<GraphProto> {
    let graph = net_export::export(net)?;
    let inputs = batched_inputs(net, &graph)?;
    let other = resize(net, &inputs, 1).and_then(|()| net_export::export_without_weights(net));
    // Restore the shapes even if the export failed.
    resize(net, &inputs, 0)?;
    let other = other.map_err(|error| error.context("dynamic batch"))?;
    if let Some(layer) = differing_layer(&graph, &other) {
        let name = net.layer_names().nth(layer).unwrap_or_default();
        let kind = net.layer_at(layer).map_or("", |layer| layer.kind());
        let reason = format!(
            "{kind} cannot be exported to ONNX with a dynamic batch: it depends on the batch size"
        );
        return Err(Error::InvalidData(reason).context(format!("layer `{name}`")));
    }
    Ok(graph.into_proto(net.name(), Some(&other)))
}

/// Returns the names and shapes of the net's inputs whose first extent is the batch size. The batch
/// size is the first extent of the first input of the graph.
fn batched_inputs(net: &Net<f32>, graph: &Graph) -> Result<Vec<(String, Vec<usize>)>> {
    let first_input = graph.inputs.first();
    let batch = first_input.and_then(|input| input.shape.first()).ok_or_else(|| {
        Error::InvalidData("net: the first input has no axis for a dynamic batch".into())
    })?;
    let mut inputs = Vec::new();
    for param in net.layer_params().filter(|param| role(param, false) == Role::Input) {
        for top in &param.top {
            let Some(blob) = net.blob(top).filter(|blob| blob.shape().first() == Some(batch))
            else {
                continue;
            };
            if param.r#type() != "Input" {
                let reason = format!(
                    "{}: the data determine the batch size; replace the layer by an Input layer",
                    param.r#type()
                );
                let error = Error::InvalidData(reason);
                return Err(error.context(format!("layer `{}`", param.name())));
            }
            inputs.push((top.clone(), blob.shape().to_vec()));
        }
    }
    Ok(inputs)
}

/// Reshapes the inputs of the net to the given shapes, with a first extent that is larger by
/// `added`.
fn resize(net: &mut Net<f32>, inputs: &[(String, Vec<usize>)], added: usize) -> Result<()> {
    for (name, shape) in inputs {
        let mut shape = shape.clone();
        shape[0] += added;
        if let Some(blob) = net.blob_mut(name) {
            blob.reshape(&shape)?;
        }
    }
    net.reshape()
}

/// Returns the index of the first layer whose nodes or constants differ. The constants of `other`
/// lack the values of weights, which do not depend on the batch size.
fn differing_layer(one: &Graph, other: &Graph) -> Option<usize> {
    let same_constant = |one: &TensorProto, other: &TensorProto| {
        (&one.name, &one.dims, &one.int64_data) == (&other.name, &other.dims, &other.int64_data)
            && (other.raw_data.is_none() || one.raw_data == other.raw_data)
    };
    first_difference(&one.nodes, &other.nodes, |one, other| one == other)
        .into_iter()
        .chain(first_difference(&one.constants, &other.constants, same_constant))
        .min()
}

fn first_difference<T>(
    one: &[OfLayer<T>],
    other: &[OfLayer<T>],
    same: impl Fn(&T, &T) -> bool,
) -> Option<usize> {
    let mut pairs = one.iter().zip(other);
    match pairs.find(|(one, other)| !same(&one.item, &other.item)) {
        Some((one, _)) => Some(one.layer),
        // One graph may have more nodes or constants than the other.
        None => one.get(other.len()).or(other.get(one.len())).map(|item| item.layer),
    }
}
