//! Export of InnerProduct.

use super::layer_export::LayerExport;
use crate::error::Result;

/// Exports InnerProduct as a matrix product of the bottom, flattened from `axis` on.
pub(super) fn inner_product(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.inner_product_param.clone().unwrap_or_default();
    let shape = cx.shape(0)?;
    let axis = shape.canonical_axis(param.axis() as isize)?;
    let mut x = cx.bottom(0);
    if axis != 1 || shape.len() != 2 {
        x = cx.node("Flatten", &[&x]).int("axis", axis as i64).value();
    }
    let mut operands = vec![x, cx.parameter(0)?];
    if param.bias_term() {
        operands.push(cx.parameter(1)?);
    }
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    let transposed = i64::from(!param.transpose());
    let mut y = cx.node("Gemm", &operands).int("transB", transposed).value();
    if axis != 1 {
        let shape = cx.tops[0].shape.clone();
        y = cx.reshape(&y, &shape);
    }
    cx.set_top(0, &y);
    Ok(())
}
