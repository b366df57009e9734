//! The fields of `convolution_param` for kernel, stride, padding and dilation.

use super::prelude::*;
use crate::{op::SpatialAxis, proto::ConvolutionParameter};

/// Returns the window geometry along each spatial axis. `inputs` holds the spatial extents of the
/// input.
///
/// As in Caffe, the kernel, stride and padding are each given as a pair of fields, such as
/// `kernel_h` and `kernel_w`, or as a list. A pair of fields for height and width requires exactly
/// two spatial axes. A list field holds one value for all spatial axes, or one value per spatial
/// axis.
pub(crate) fn spatial_axes(
    param: &ConvolutionParameter,
    inputs: &[usize],
) -> Result<Vec<SpatialAxis>> {
    let axes = inputs.len();
    let kernel = pair_or_list(
        ("kernel", [param.kernel_h, param.kernel_w], &param.kernel_size),
        (axes, None),
    )?;
    let stride =
        pair_or_list(("stride", [param.stride_h, param.stride_w], &param.stride), (axes, Some(1)))?;
    let pad = pair_or_list(("pad", [param.pad_h, param.pad_w], &param.pad), (axes, Some(0)))?;
    let dilation = pair_or_list(("dilation", [None, None], &param.dilation), (axes, Some(1)))?;
    let fields = inputs.iter().zip(kernel).zip(stride).zip(pad).zip(dilation);
    Ok(fields
        .map(|((((&input, kernel), stride), pad), dilation)| SpatialAxis {
            input,
            kernel,
            stride,
            pad,
            dilation,
        })
        .collect())
}

/// Returns one value per spatial axis, from a pair of fields for height and width or from a list
/// field. Returns `default` for each axis if the definition sets neither the pair nor the list.
fn pair_or_list(
    (name, pair, list): (&str, [Option<u32>; 2], &[u32]),
    (axes, default): (usize, Option<usize>),
) -> Result<Vec<usize>> {
    let reject = |reason: String| invalid(format!("convolution_param: {reason}"));
    if pair != [None, None] {
        if !list.is_empty() {
            return reject(format!("{name}_h and {name}_w exclude the list {name}"));
        }
        if axes != 2 {
            return reject(format!("{name}_h and {name}_w need 2 spatial axes, found {axes}"));
        }
        let values = pair.map(|value| value.map(|value| value as usize).or(default));
        return match (name, values) {
            ("stride", _) if pair.contains(&None) => {
                reject("give both stride_h and stride_w, or neither".into())
            }
            (_, [Some(height), Some(width)]) => Ok(vec![height, width]),
            _ => reject(format!("give both {name}_h and {name}_w, or neither")),
        };
    }
    match (list, default) {
        ([], Some(default)) => Ok(vec![default; axes]),
        ([one], _) => Ok(vec![*one as usize; axes]),
        (list, _) if list.len() == axes => Ok(list.iter().map(|&value| value as usize).collect()),
        (list, _) => reject(format!("{name}: expected 1 or {axes} values, found {}", list.len())),
    }
}
