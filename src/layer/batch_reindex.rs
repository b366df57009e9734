//! The BatchReindex layer, which selects items of a batch by index.

use super::prelude::*;
use crate::{op::RowIndexing, shape::Shape};

/// `y[i] = x[index[i]]`. The first bottom holds the items x of a batch, and the second bottom holds
/// a list of item indices. The forward pass fails if an index is not less than the number of items.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 dim: 1 } } }
///     layer { type: "Input" top: "index" input_param { shape { dim: 4 } } }
///     layer { type: "BatchReindex" bottom: "x" bottom: "index" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0, 20.0, 30.0]);
/// net.blob("index").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0, 0.0, 2.0, 1.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [30.0, 10.0, 30.0, 20.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct BatchReindexLayer {
    indices: Blob<u32>,
}

impl BatchReindexLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns any error from [`Blob::new`].
    pub fn new(_: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { indices: Blob::new(cx.device, &[0])? })
    }

    fn op(&self, shape: &Shape) -> Result<RowIndexing> {
        let items = per_item_axis(shape)?;
        Ok(RowIndexing { table: items.outer, width: items.extent, count: self.indices.count() })
    }
}

impl<T: Element> Layer<T> for BatchReindexLayer {
    fn kind(&self) -> &'static str {
        "BatchReindex"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (shape, indices) = (bottom[0].shape(), bottom[1].shape());
        if indices.len() != 1 || shape.is_empty() {
            return wrong_shape(format!(
                "indices: expected one axis for items {shape}, found shape {indices}"
            ));
        }
        self.indices.reshape(indices)?;
        top[0].reshape(&[&indices[..], &shape[1..]].concat())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = self.op(bottom[0].shape())?;
        let (x, index, mut y) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        let mut indices = self.indices.data_mut()?;
        let bound = u32::try_from(op.table).unwrap_or(u32::MAX);
        device.to_indices(bound, index.view(), indices.view_mut())?;
        device.gather(&op, x.view(), indices.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 1, "indices")?;
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (op, indices) = (self.op(bottom[0].shape())?, self.indices.data()?);
        device.fill(T::default(), dx.view_mut())?;
        device.scatter_add(&op, dy.view(), indices.view(), dx.view_mut())
    }
}
