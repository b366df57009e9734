//! The Concat layer, which concatenates blobs along an axis.

use super::{concat_layout::ConcatLayout, prelude::*, proto_shape, shared_top::SharedTop};

/// Concatenates its bottoms along `axis`; the bottoms must agree in the extents of all other axes.
/// If the layer has only one bottom, the top shares the bottom's storage.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "Input" top: "b" input_param { shape { dim: 2 dim: 2 } } }
///     layer { type: "Concat" bottom: "a" bottom: "b" top: "y" concat_param { axis: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.blob("b").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0, 11.0, 20.0, 21.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 10.0, 11.0, 2.0, 20.0, 21.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ConcatLayer {
    axis: isize,
    shared_top: SharedTop,
    layout: ConcatLayout,
}

impl ConcatLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if both `axis` and `concat_dim` are given.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let concat = param.concat_param.unwrap_or_default();
        let axis = proto_shape::axis(concat.axis, ("concat_dim", concat.concat_dim))?;
        Ok(Self { axis, shared_top: SharedTop::new(param), layout: ConcatLayout::default() })
    }
}

impl<T: Element> Layer<T> for ConcatLayer {
    fn kind(&self) -> &'static str {
        "Concat"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=usize::MAX, 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let first = bottom[0].shape();
        let axis = first.canonical_axis(self.axis)?;
        let mut shape = first.to_vec();
        for other in bottom[1..].iter().map(Blob::shape) {
            let extents_agree = |i: usize| i == axis || first[i] == other[i];
            if other.len() != first.len() || !(0..first.len()).all(extents_agree) {
                return wrong_shape(format!(
                    "bottoms of shapes {first} and {other} differ outside axis {axis}"
                ));
            }
            shape[axis] = shape[axis].saturating_add(other[axis]);
        }
        top[0].reshape(&shape)?;
        if let [only] = bottom {
            return self.shared_top.share(only, &mut top[0]);
        }
        let inner = first.count_range(axis + 1, first.len())?;
        let columns = bottom.iter().map(|bottom| bottom.shape()[axis] * inner);
        self.layout = ConcatLayout::new(first.count_range(0, axis)?, columns);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if bottom.len() == 1 {
            return Ok(());
        }
        let mut y = top[0].data_mut()?;
        for (i, bottom) in bottom.iter().enumerate() {
            self.layout.write_part(device, i, bottom.data()?.view(), y.view_mut())?;
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
        if let [only] = bottom {
            return SharedTop::backward(device, &top[0], only);
        }
        let dy = top[0].diff()?;
        for (i, bottom) in bottom.iter().enumerate().filter(|(i, _)| propagate.bottom[*i]) {
            self.layout.read_part(device, i, dy.view(), bottom.diff_mut()?.view_mut())?;
        }
        Ok(())
    }
}
