//! Export of layers that select or compare elements: Embed, BatchReindex and ArgMax.

use super::layer_export::LayerExport;
use crate::error::Result;

pub(super) fn embed(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.embed_param.clone().unwrap_or_default();
    let (table, x) = (cx.parameter(0)?, cx.bottom(0));
    let indices = cx.cast_to_integer(&x);
    let mut y = cx.node("Gather", &[&table, &indices]).int("axis", 0).value();
    if param.bias_term() {
        let bias = cx.parameter(1)?;
        y = cx.node("Add", &[&y, &bias]).value();
    }
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn batch_reindex(cx: &mut LayerExport<'_>) -> Result<()> {
    let (x, indices) = (cx.bottom(0), cx.bottom(1));
    let indices = cx.cast_to_integer(&indices);
    let y = cx.node("Gather", &[&x, &indices]).int("axis", 0).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn arg_max(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.argmax_param.unwrap_or_default();
    let shape = cx.shape(0)?;
    let mut x = cx.bottom(0);
    let axis = match param.axis {
        Some(axis) => shape.canonical_axis(axis as isize)?,
        None => {
            x = cx.node("Flatten", &[&x]).int("axis", 1).value();
            1
        }
    };
    let extent = match param.axis {
        Some(_) => shape[axis],
        None => shape.count_range(1, shape.len())?,
    };
    let (values, indices) = top_k(cx, &x, axis, extent, param.top_k() as usize);
    let mut y = match (param.out_max_val(), param.axis) {
        (false, _) => cx.cast_to_float(&indices),
        (true, Some(_)) => values,
        (true, None) => {
            let indices = cx.cast_to_float(&indices);
            cx.concat(&[indices, values], 1)
        }
    };
    if param.axis.is_none() {
        let shape = cx.tops[0].shape.clone();
        y = cx.reshape(&y, &shape);
    }
    cx.set_top(0, &y);
    Ok(())
}

/// Adds nodes that compute the `k` greatest elements along `axis`, whose extent is `extent`, and
/// their indices.
///
/// Among equal elements, ONNX's `TopK` puts the smallest index first, and Caffe the largest index.
/// `top_k` therefore applies `TopK` to the elements in reverse order.
fn top_k(
    cx: &mut LayerExport<'_>,
    x: &str,
    axis: usize,
    extent: usize,
    k: usize,
) -> (String, String) {
    let axis = axis as i64;
    // An end below every index, so that the slice includes index 0.
    let [start, end] = [-1, i64::MIN + 1].map(|value| cx.integers(&[value]));
    let [axes, step, k] = [axis, -1, k as i64].map(|value| cx.integers(&[value]));
    let reversed = cx.node("Slice", &[x, &start, &end, &axes, &step]).value();
    let outputs = cx.node("TopK", &[&reversed, &k]).int("axis", axis).values(2);
    let last = cx.integers(&[extent as i64 - 1]);
    let indices = cx.node("Sub", &[&last, &outputs[1]]).value();
    (outputs[0].clone(), indices)
}
