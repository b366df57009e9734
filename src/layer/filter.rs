//! The Filter layer, which keeps those items of a batch for which a selector is not zero.

use super::prelude::*;
use crate::op::RowIndexing;

/// Copies those items of each bottom for which the selector, the last bottom, is not zero. The
/// layer has one top for each bottom except the selector.
///
/// The number of kept items depends on the values of the selector, which the layer reads on the
/// host. The first `reshape` keeps all items, because the selector has no values yet.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 dim: 1 } } }
///     layer { type: "Input" top: "keep" input_param { shape { dim: 3 } } }
///     layer { type: "Filter" bottom: "x" bottom: "keep" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0, 20.0, 30.0]);
/// net.blob("keep").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 0.0, 1.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [10.0, 30.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct FilterLayer {
    tops: usize,
    has_reshaped: bool,
    kept_items: Blob<u32>,
}

impl FilterLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless the definition gives one top for each bottom except
    /// the selector.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let (bottoms, tops) = (param.bottom.len(), param.top.len());
        if tops + 1 != bottoms {
            let expected = bottoms.saturating_sub(1);
            return invalid(format!(
                "expected {expected} tops for {bottoms} bottoms, found {tops}"
            ));
        }
        Ok(Self { tops, has_reshaped: false, kept_items: Blob::new(cx.device, &[0])? })
    }

    /// Stores the indices of the items for which the selector is not zero.
    fn select<T: Element>(&mut self, selector: &Blob<T>) -> Result<()> {
        let keep_all = !std::mem::replace(&mut self.has_reshaped, true);
        let selector = selector.data()?;
        let items = selector.host()?.iter().zip(0..);
        let kept_items = items.filter(|(value, _)| keep_all || value.to_f64() != 0.0);
        let kept_items: Vec<u32> = kept_items.map(|(_, item)| item).collect();
        self.kept_items.reshape(&[kept_items.len()])?;
        self.kept_items.data_mut()?.host_write_only()?.copy_from_slice(&kept_items);
        Ok(())
    }

    fn op<T: Element>(&self, bottom: &Blob<T>) -> Result<RowIndexing> {
        let (_, table, width) = bottom.shape().split_at_axis(0)?;
        Ok(RowIndexing { table, width, count: self.kept_items.count() })
    }
}

impl<T: Element> Layer<T> for FilterLayer {
    fn kind(&self) -> &'static str {
        "Filter"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(self.tops.max(1) + 1, self.tops.max(1))
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [bottom @ .., selector] = bottom else { return invalid("the selector is missing") };
        let shape = selector.shape();
        let (_, items, width) = shape.split_at_axis(0)?;
        if width != 1 {
            return wrong_shape(format!("selector: expected one axis, found shape {shape}"));
        }
        for other in bottom.iter().map(Blob::shape) {
            if other.first() != Some(&items) {
                return wrong_shape(format!(
                    "a bottom of shape {other} does not have the selector's {items} items"
                ));
            }
        }
        self.select(selector)?;
        for (bottom, top) in bottom.iter().zip(top) {
            top.reshape(&[&[self.kept_items.count()], &bottom.shape()[1..]].concat())?;
        }
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let kept_items = self.kept_items.data()?;
        for (bottom, top) in bottom.iter().zip(top) {
            let (x, mut y) = (bottom.data()?, top.data_mut()?);
            device.gather(&self.op(bottom)?, x.view(), kept_items.view(), y.view_mut())?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, bottom.len() - 1, "selector")?;
        let kept_items = self.kept_items.data()?;
        let pairs = bottom.iter().zip(top).zip(propagate.bottom);
        for ((bottom, top), _) in pairs.filter(|(_, propagates)| **propagates) {
            let (dy, mut dx) = (top.diff()?, bottom.diff_mut()?);
            device.fill(T::default(), dx.view_mut())?;
            device.scatter_add(&self.op(bottom)?, dy.view(), kept_items.view(), dx.view_mut())?;
        }
        Ok(())
    }
}
