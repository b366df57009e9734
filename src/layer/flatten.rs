//! The Flatten layer, which merges axes.

use super::{prelude::*, shared_top::SharedTop};

/// Merges the axes from `axis` to `end_axis` (inclusive) into one axis without copying. If
/// `end_axis` is `axis − 1`, the Flatten layer inserts an axis of extent 1 at `axis`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 } } }
///     layer { type: "Flatten" bottom: "x" top: "y" flatten_param { axis: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [2, 12]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct FlattenLayer {
    axis: isize,
    end: isize,
    shared_top: SharedTop,
}

impl FlattenLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let flatten = param.flatten_param.unwrap_or_default();
        let (axis, end) = (flatten.axis() as isize, flatten.end_axis() as isize);
        Ok(Self { axis, end, shared_top: SharedTop::new(param) })
    }
}

impl<T: Element> Layer<T> for FlattenLayer {
    fn kind(&self) -> &'static str {
        "Flatten"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let start = shape.canonical_axis(self.axis)?;
        let end = shape.canonical_axis(self.end)? + 1;
        if end < start {
            return wrong_shape(format!(
                "end_axis {} precedes axis {} of shape {shape}",
                self.end, self.axis
            ));
        }
        let merged_extent = shape.count_range(start, end)?;
        top[0].reshape(&[&shape[..start], &[merged_extent], &shape[end..]].concat())?;
        self.shared_top.share(&bottom[0], &mut top[0])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        SharedTop::backward(device, &top[0], &bottom[0])
    }
}
