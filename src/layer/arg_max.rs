//! The ArgMax layer: indices and values of the greatest elements.

use super::{concat_layout::ConcatLayout, prelude::*};
use crate::{
    op::{Axis, TopK},
    shape::Shape,
};

/// The top holds the indices of the `top_k` greatest elements along `axis`, in descending order of
/// the elements. With `out_max_val`, the top holds the elements instead of the indices. Among equal
/// elements, the element with the larger index comes first, as in Caffe.
///
/// Without `axis`, the layer compares all elements of an item and has a top of `N × 1 × top_k`.
/// Without `axis` and with `out_max_val`, the top is `N × 2 × top_k` and holds the indices before
/// the values.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 } } }
///     layer { type: "ArgMax" bottom: "x" top: "best" argmax_param { top_k: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[3.0, 9.0, 1.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("best").unwrap().to_vec()?, [1.0, 3.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ArgMaxLayer<T: Element> {
    axis: Option<isize>,
    top_k: usize,
    values: bool,
    op: Option<TopK>,
    /// Scratch blob: the data hold the greatest elements of the bottom, and the diff holds their
    /// indices.
    greatest_elements: Blob<T>,
}

impl<T: Element> ArgMaxLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `top_k` is 0.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.argmax_param.unwrap_or_default();
        if param.top_k() == 0 {
            return invalid("argmax_param: top_k must be positive");
        }
        Ok(Self {
            axis: param.axis.map(|axis| axis as isize),
            top_k: param.top_k() as usize,
            values: param.out_max_val(),
            op: None,
            greatest_elements: Blob::new(cx.device, &[0])?,
        })
    }

    fn op(&self, shape: &Shape) -> Result<TopK> {
        let axis = match self.axis {
            Some(axis) => Axis::of(shape, axis)?,
            None => per_item_axis(shape)?,
        };
        if self.top_k > axis.extent {
            return invalid(format!(
                "argmax_param: top_k is {}, but only {} elements are compared",
                self.top_k, axis.extent
            ));
        }
        Ok(TopK { axis, k: self.top_k })
    }
}

impl<T: Element> Layer<T> for ArgMaxLayer<T> {
    fn kind(&self) -> &'static str {
        "ArgMax"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let op = self.op(shape)?;
        self.op = Some(op);
        self.greatest_elements.reshape(&[op.axis.outer, op.k, op.axis.inner])?;
        if let Some(axis) = self.axis {
            let mut output = shape.to_vec();
            output[shape.canonical_axis(axis)?] = op.k;
            return top[0].reshape(&output);
        }
        let mut output = vec![1; shape.len().max(3)];
        output[..3].copy_from_slice(&[op.axis.outer, 1 + usize::from(self.values), op.k]);
        top[0].reshape(&output)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = reshaped(&self.op)?;
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        match (self.values, self.axis) {
            (false, _) => {
                let mut values = self.greatest_elements.data_mut()?;
                device.top_k(op, x.view(), values.view_mut(), y.view_mut())
            }
            (true, Some(_)) => {
                let mut indices = self.greatest_elements.diff_mut()?;
                device.top_k(op, x.view(), y.view_mut(), indices.view_mut())
            }
            (true, None) => {
                let (mut values, mut indices) =
                    (self.greatest_elements.data_mut()?, self.greatest_elements.diff_mut()?);
                device.top_k(op, x.view(), values.view_mut(), indices.view_mut())?;
                let layout = ConcatLayout::new(op.axis.outer, [op.k, op.k]);
                layout.write_part(device, 0, indices.view(), y.view_mut())?;
                layout.write_part(device, 1, values.view(), y.view_mut())
            }
        }
    }
}
