//! Tensors and value types of ONNX graphs.

use crate::proto::onnx::{
    TensorProto, TensorShapeProto, TensorShapeProtoDimension, TypeProto, TypeProtoTensor,
    ValueInfoProto, tensor_proto::DataType,
};

/// Returns a tensor of `f32` elements.
pub(super) fn float_tensor(name: String, shape: &[usize], values: &[f32]) -> TensorProto {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorProto {
        dims: extents(shape),
        data_type: Some(DataType::Float.into()),
        name: Some(name),
        raw_data: Some(bytes),
        ..Default::default()
    }
}

/// Returns a tensor of integers with one axis.
pub(super) fn integer_tensor(name: String, values: &[i64]) -> TensorProto {
    TensorProto {
        dims: extents(&[values.len()]),
        data_type: Some(DataType::Int64.into()),
        name: Some(name),
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

/// Returns the type of an `f32` value.
///
/// If `other` is `None`, the type has the shape `shape`. `other` is the shape of the same value for
/// another batch size, and `batches` holds both batch sizes. An extent that is a batch size in both
/// shapes is the symbol `batch`, and any other extent in which the shapes differ is unknown.
pub(super) fn value_info(
    name: &str,
    shape: &[usize],
    other: Option<&[usize]>,
    batches: [usize; 2],
) -> ValueInfoProto {
    let other = other.unwrap_or(shape);
    let dimension = |(&extent, &other): (&usize, &usize)| match [extent, other] {
        [extent, other] if extent == other => {
            TensorShapeProtoDimension { dim_value: Some(extent as i64), ..Default::default() }
        }
        both if both == batches => {
            TensorShapeProtoDimension { dim_param: Some("batch".into()), ..Default::default() }
        }
        _ => TensorShapeProtoDimension::default(),
    };
    let dim = shape.iter().zip(other).map(dimension).collect();
    let tensor = TypeProtoTensor {
        elem_type: Some(DataType::Float.into()),
        shape: Some(TensorShapeProto { dim }),
    };
    let kind = TypeProto { tensor_type: Some(tensor), ..Default::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(kind), ..Default::default() }
}

/// Converts a shape to ONNX's integers.
pub(super) fn extents(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&extent| extent as i64).collect()
}
