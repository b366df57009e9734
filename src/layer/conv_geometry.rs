//! How prototxt gives windows: kernels, strides, padding and dilation.

use crate::{
    error::{Error, Result},
    op::SpatialAxis,
    proto::ConvolutionParameter,
};

/// The windows along spatial axes of these extents, by Caffe's rules for giving their parameters:
/// `kernel_h` and `kernel_w` for two axes, or one value for all, or one for each.
pub(super) fn extents(param: &ConvolutionParameter, spatial: &[usize]) -> Result<Vec<SpatialAxis>> {
    let axes = spatial.len();
    let kernel = pair_or_list(
        ("kernel", [param.kernel_h, param.kernel_w], &param.kernel_size),
        (axes, None),
    )?;
    let stride =
        pair_or_list(("stride", [param.stride_h, param.stride_w], &param.stride), (axes, Some(1)))?;
    let pad = pair_or_list(("pad", [param.pad_h, param.pad_w], &param.pad), (axes, Some(0)))?;
    let dilation = pair_or_list(("dilation", [None, None], &param.dilation), (axes, Some(1)))?;
    let each = spatial.iter().zip(kernel).zip(stride).zip(pad).zip(dilation);
    Ok(each
        .map(|((((&input, kernel), stride), pad), dilation)| SpatialAxis {
            input,
            kernel,
            stride,
            pad,
            dilation,
        })
        .collect())
}

/// One value for each of `axes` from a height and width or from a list; `default` where neither
/// is given.
fn pair_or_list(
    (name, pair, list): (&str, [Option<u32>; 2], &[u32]),
    (axes, default): (usize, Option<usize>),
) -> Result<Vec<usize>> {
    let invalid = |why: String| Error::InvalidData(format!("convolution_param: {why}"));
    if pair != [None, None] {
        if !list.is_empty() {
            return Err(invalid(format!("{name} is given both by _h and _w and as a list")));
        }
        if axes != 2 {
            return Err(invalid(format!("{name}_h and {name}_w need 2 spatial axes, not {axes}")));
        }
        let both = pair.map(|value| value.map(|value| value as usize).or(default));
        return match (name, both) {
            ("stride", _) if pair.contains(&None) => {
                Err(invalid("stride_h and stride_w need each other".into()))
            }
            (_, [Some(height), Some(width)]) => Ok(vec![height, width]),
            _ => Err(invalid(format!("{name}_h and {name}_w need each other"))),
        };
    }
    match (list, default) {
        ([], Some(default)) => Ok(vec![default; axes]),
        ([one], _) => Ok(vec![*one as usize; axes]),
        (list, _) if list.len() == axes => Ok(list.iter().map(|&value| value as usize).collect()),
        (list, _) => {
            Err(invalid(format!("{} values of {name} for {axes} spatial axes", list.len())))
        }
    }
}
