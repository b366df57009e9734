//! Items of a batch that a selector picks.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::RowIndexing,
    proto::LayerParameter,
};

/// Keeps the items of its bottoms for which the last bottom, the selector, is not zero: each
/// other bottom has its top.
///
/// How many there are is known from the selector's values only, so these are read on the host.
/// Before the first pass, when there are none, all items count as kept.
pub struct FilterLayer<D: Device> {
    shaped: bool,
    /// Indices of the items kept.
    kept: Blob<u32, D>,
}

impl<D: Device> FilterLayer<D> {
    /// From the layer's parameters, of which there are none.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless there is one top less than there are bottoms.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let (bottoms, tops) = (param.bottom.len(), param.top.len());
        if tops + 1 != bottoms {
            let why = format!("takes a top for each bottom but the last, not {tops} of {bottoms}");
            return Err(Error::InvalidData(why));
        }
        Ok(Self { shaped: false, kept: Blob::new(cx.device, &[0])? })
    }

    /// Reads the selector.
    fn select<T: Element>(&mut self, selector: &Blob<T, D>) -> Result<()> {
        let all = !std::mem::replace(&mut self.shaped, true);
        let selector = selector.data()?;
        let chosen = selector.host()?.iter().zip(0..);
        let kept = chosen.filter(|(value, _)| all || value.to_f64() != 0.0).map(|(_, item)| item);
        let kept: Vec<u32> = kept.collect();
        self.kept.reshape(&[kept.len()])?;
        self.kept.data_mut()?.host_write_only()?.copy_from_slice(&kept);
        Ok(())
    }

    /// Items kept of a bottom.
    fn op<T: Element>(&self, bottom: &Blob<T, D>) -> Result<RowIndexing> {
        let (_, table, width) = bottom.shape().split_at_axis(0)?;
        Ok(RowIndexing { table, width, count: self.kept.count() })
    }
}

impl<T: Element, D: Device> Layer<T, D> for FilterLayer<D> {
    fn kind(&self) -> &'static str {
        "Filter"
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=usize::MAX, 1..=usize::MAX)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let (selector, bottom) = bottom.split_last().ok_or_else(no_selector)?;
        let shape = selector.shape();
        let (_, items, width) = shape.split_at_axis(0)?;
        if width != 1 {
            return Err(Error::Shape(format!("the selector, {shape}, has more than one axis")));
        }
        for other in bottom.iter().map(Blob::shape) {
            if other.first() != Some(&items) {
                let why = format!("a bottom {other} for a selector of {items} items");
                return Err(Error::Shape(why));
            }
        }
        self.select(selector)?;
        for (bottom, top) in bottom.iter().zip(top) {
            top.reshape(&[&[self.kept.count()], &bottom.shape()[1..]].concat())?;
        }
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let kept = self.kept.data()?;
        for (bottom, top) in bottom.iter().zip(top) {
            let (x, mut y) = (bottom.data()?, top.data_mut()?);
            device.gather(&self.op(bottom)?, x.view(), kept.view(), y.view_mut())?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom.last() == Some(&true) {
            return Err(Error::InvalidData(
                "no gradient reaches the selector (the last bottom)".into(),
            ));
        }
        let kept = self.kept.data()?;
        let pairs = bottom.iter().zip(top).zip(propagate.bottom);
        for ((bottom, top), _) in pairs.filter(|(_, propagates)| **propagates) {
            let (dy, mut dx) = (top.diff()?, bottom.diff_mut()?);
            device.fill(T::default(), dx.view_mut())?;
            device.scatter_add(&self.op(bottom)?, dy.view(), kept.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

fn no_selector() -> Error {
    Error::InvalidData("needs a selector, the last bottom".into())
}
