//! The upgrade of layers from the V0 format to the V1 format.

use super::{change::Change, padding};
use crate::{
    error::{Error, Result},
    proto::messages::{
        NetParameter, TransformationParameter, V0LayerParameter, V1LayerParameter,
        v1_layer_parameter::LayerType,
    },
};
use std::mem;

/// The layer types of the V0 format: the type's name in the V0 format and its enum value in the V1
/// format.
const TYPES: [(&str, LayerType); 24] = [
    ("accuracy", LayerType::Accuracy),
    ("bnll", LayerType::Bnll),
    ("concat", LayerType::Concat),
    ("conv", LayerType::Convolution),
    ("data", LayerType::Data),
    ("dropout", LayerType::Dropout),
    ("euclidean_loss", LayerType::EuclideanLoss),
    ("flatten", LayerType::Flatten),
    ("hdf5_data", LayerType::Hdf5Data),
    ("hdf5_output", LayerType::Hdf5Output),
    ("im2col", LayerType::Im2col),
    ("images", LayerType::ImageData),
    ("infogain_loss", LayerType::InfogainLoss),
    ("innerproduct", LayerType::InnerProduct),
    ("lrn", LayerType::Lrn),
    ("multinomial_logistic_loss", LayerType::MultinomialLogisticLoss),
    ("pool", LayerType::Pooling),
    ("relu", LayerType::Relu),
    ("sigmoid", LayerType::Sigmoid),
    ("softmax", LayerType::Softmax),
    ("softmax_loss", LayerType::SoftmaxLoss),
    ("split", LayerType::Split),
    ("tanh", LayerType::Tanh),
    ("window_data", LayerType::WindowData),
];

#[doc(alias = "UpgradeV0Net")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    if net.layers.iter().all(|layer| layer.layer.is_none()) {
        return Ok(Vec::new());
    }
    padding::merge(net)?;
    let mut changes = vec![Change::V0];
    for layer in &mut net.layers {
        let (upgraded, dropped_fields) = to_v1(mem::take(layer))?;
        let dropped_fields = dropped_fields.into_iter();
        let name = upgraded.name();
        changes
            .extend(dropped_fields.map(|field| Change::Dropped { layer: name.to_owned(), field }));
        *layer = upgraded;
    }
    Ok(changes)
}

/// Converts a V0 layer to the V1 format. Returns the V1 layer and the names of the fields that the
/// conversion dropped.
fn to_v1(mut outer: V1LayerParameter) -> Result<(V1LayerParameter, Vec<&'static str>)> {
    let Some(old) = outer.layer.take() else {
        let reason = "the layer is not in the V0 format, unlike other layers of the net";
        return Err(layer_error(outer.name(), reason));
    };
    let (bottom, top) = (mem::take(&mut outer.bottom), mem::take(&mut outer.top));
    if outer != V1LayerParameter::default() {
        return Err(layer_error(old.name(), "the layer mixes fields of the V0 and the V1 format"));
    }
    let (layer, dropped_fields) = parameters(old)?;
    Ok((V1LayerParameter { bottom, top, ..layer }, dropped_fields))
}

fn v1_type(layer: &str, kind: &str) -> Result<LayerType> {
    let found = TYPES.iter().find(|(old, _)| *old == kind);
    let unknown_error = || layer_error(layer, format!("unknown V0 layer type `{kind}`"));
    found.map(|&(_, new)| new).ok_or_else(unknown_error)
}

fn layer_error(layer: &str, problem: impl Into<String>) -> Error {
    Error::InvalidData(problem.into()).context(format!("layer `{layer}`"))
}

/// A field of a V1 message that can store a value of type `T`. `put` sets an optional field, or
/// appends a value to a repeated field.
trait Put<T> {
    fn put(&mut self, value: T);
}

impl<T> Put<T> for Option<T> {
    fn put(&mut self, value: T) {
        *self = Some(value);
    }
}

impl<T> Put<T> for Vec<T> {
    fn put(&mut self, value: T) {
        self.push(value);
    }
}

/// Image sizes are signed in the V0 format and unsigned in the V1 format. As in Caffe, a negative
/// image size wraps to a large unsigned number.
impl Put<i32> for Option<u32> {
    fn put(&mut self, value: i32) {
        *self = Some(value.cast_unsigned());
    }
}

/// Moves each V0 field to the V1 field of the layer's type, as given by entries of the form `field:
/// "type" => message.field, …;`. Reports a V0 field as dropped if the entries for the field do not
/// list the layer's type.
///
/// The pattern that destructures the V0 layer has no `..`, so the compiler reports a field that the
/// macro call omits.
macro_rules! move_layer_fields {
    ($old:ident: $($field:ident: $($type:literal => $to:ident $(.$part:ident)?),+;)*) => {{
        let V0LayerParameter {
            name, r#type, blobs, blobs_lr, weight_decay, scale, meanfile, cropsize, mirror,
            new_num, new_channels, $($field),*
        } = $old;
        let mut dropped_fields = Vec::new();
        for (field, given) in [("new_num", new_num), ("new_channels", new_channels)] {
            dropped_fields.extend(given.map(|_| field));
        }
        let transform = TransformationParameter {
            scale,
            mean_file: meanfile,
            crop_size: cropsize,
            mirror,
            ..Default::default()
        };
        let mut new = V1LayerParameter {
            name,
            blobs,
            blobs_lr,
            weight_decay,
            transform_param: Some(transform).filter(|given| *given != Default::default()),
            ..Default::default()
        };
        let kind = r#type.as_deref();
        if let Some(kind) = kind {
            new.set_type(v1_type(new.name(), kind)?);
        }
        $(if let Some(value) = $field {
            match kind {
                $(Some($type) => new.$to $(.get_or_insert_default().$part)? .put(value),)+
                _ => dropped_fields.push(stringify!($field)),
            }
        })*
        (new, dropped_fields)
    }};
}

/// Returns the V1 layer without bottoms and tops, and the names of the V0 fields that the layer's
/// type does not use.
#[doc(alias = "UpgradeV0LayerParameter")]
fn parameters(old: V0LayerParameter) -> Result<(V1LayerParameter, Vec<&'static str>)> {
    Ok(move_layer_fields! { old:
        num_output: "conv" => convolution_param.num_output,
            "innerproduct" => inner_product_param.num_output;
        biasterm: "conv" => convolution_param.bias_term,
            "innerproduct" => inner_product_param.bias_term;
        weight_filler: "conv" => convolution_param.weight_filler,
            "innerproduct" => inner_product_param.weight_filler;
        bias_filler: "conv" => convolution_param.bias_filler,
            "innerproduct" => inner_product_param.bias_filler;
        pad: "conv" => convolution_param.pad, "pool" => pooling_param.pad;
        kernelsize: "conv" => convolution_param.kernel_size, "pool" => pooling_param.kernel_size;
        group: "conv" => convolution_param.group;
        stride: "conv" => convolution_param.stride, "pool" => pooling_param.stride;
        pool: "pool" => pooling_param.pool; // the enums of both formats have the same numbers
        dropout_ratio: "dropout" => dropout_param.dropout_ratio;
        local_size: "lrn" => lrn_param.local_size;
        alpha: "lrn" => lrn_param.alpha;
        beta: "lrn" => lrn_param.beta;
        k: "lrn" => lrn_param.k;
        source: "data" => data_param.source, "hdf5_data" => hdf5_data_param.source,
            "images" => image_data_param.source, "window_data" => window_data_param.source,
            "infogain_loss" => infogain_loss_param.source;
        batchsize: "data" => data_param.batch_size, "hdf5_data" => hdf5_data_param.batch_size,
            "images" => image_data_param.batch_size, "window_data" => window_data_param.batch_size;
        rand_skip: "data" => data_param.rand_skip, "images" => image_data_param.rand_skip;
        shuffle_images: "images" => image_data_param.shuffle;
        new_height: "images" => image_data_param.new_height;
        new_width: "images" => image_data_param.new_width;
        concat_dim: "concat" => concat_param.concat_dim;
        det_fg_threshold: "window_data" => window_data_param.fg_threshold;
        det_bg_threshold: "window_data" => window_data_param.bg_threshold;
        det_fg_fraction: "window_data" => window_data_param.fg_fraction;
        det_context_pad: "window_data" => window_data_param.context_pad;
        det_crop_mode: "window_data" => window_data_param.crop_mode;
        hdf5_output_param: "hdf5_output" => hdf5_output_param;
    })
}
