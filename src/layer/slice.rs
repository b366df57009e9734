//! The Slice layer, which splits a blob along an axis.

use super::{concat_layout::ConcatLayout, prelude::*, proto_shape, shared_top::SharedTop};

/// Splits its bottom along `axis`, before each index in `slice_point`, or into equal parts if
/// `slice_point` is empty. If the layer has only one top, the top shares the bottom's storage.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
///     layer { type: "Slice" bottom: "x" top: "a" top: "b"
///       slice_param { axis: 1 slice_point: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// net.forward()?;
/// assert_eq!(net.blob("a").unwrap().to_vec()?, [1.0, 4.0]);
/// assert_eq!(net.blob("b").unwrap().to_vec()?, [2.0, 3.0, 5.0, 6.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SliceLayer {
    axis: isize,
    points: Vec<usize>,
    shared_top: SharedTop,
    layout: ConcatLayout,
}

impl SliceLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if both `axis` and `slice_dim` are given. Returns
    /// [`Error::InvalidData`] unless the number of `slice_point` entries is 0 or one less than the
    /// number of tops.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let slice = param.slice_param.clone().unwrap_or_default();
        let axis = proto_shape::axis(slice.axis, ("slice_dim", slice.slice_dim))?;
        let (point_count, tops) = (slice.slice_point.len(), param.top.len());
        if point_count > 0 && point_count + 1 != tops {
            return invalid(format!(
                "slice_point: expected {} values, found {point_count}",
                tops.max(1) - 1
            ));
        }
        let points = slice.slice_point.iter().map(|&point| point as usize).collect();
        Ok(Self {
            axis,
            points,
            shared_top: SharedTop::new(param),
            layout: ConcatLayout::default(),
        })
    }

    /// Returns the extent of each top along `axis`, for a bottom whose extent along `axis` is
    /// `extent`.
    fn extents(&self, extent: usize, tops: usize) -> Result<Vec<usize>> {
        if self.points.is_empty() {
            if !extent.is_multiple_of(tops) {
                return wrong_shape(format!(
                    "extent {extent} is not a multiple of the number of tops, {tops}"
                ));
            }
            return Ok(vec![extent / tops; tops]);
        }
        let ends = self.points.iter().copied().chain([extent]);
        let mut start = 0;
        let part_extent = |end: usize| match end.checked_sub(start) {
            Some(part_extent) if part_extent > 0 => {
                start = end;
                Ok(part_extent)
            }
            _ => {
                let points = &self.points;
                wrong_shape(format!(
                    "slice_point: {points:?} must ascend strictly between 0 and {extent}"
                ))
            }
        };
        ends.map(part_extent).collect()
    }
}

impl<T: Element> Layer<T> for SliceLayer {
    fn kind(&self) -> &'static str {
        "Slice"
    }

    fn arity(&self) -> Arity {
        match self.points.len() {
            0 => Arity::between(1..=1, 1..=usize::MAX),
            point_count => Arity::exactly(1, point_count + 1),
        }
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let axis = shape.canonical_axis(self.axis)?;
        let extents = self.extents(shape[axis], top.len())?;
        for (top, &extent) in top.iter_mut().zip(&extents) {
            let mut part_shape = shape.to_vec();
            part_shape[axis] = extent;
            top.reshape(&part_shape)?;
        }
        if let [only] = top {
            return self.shared_top.share(&bottom[0], only);
        }
        let inner = shape.count_range(axis + 1, shape.len())?;
        let columns = extents.into_iter().map(|extent| extent * inner);
        self.layout = ConcatLayout::new(shape.count_range(0, axis)?, columns);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if top.len() == 1 {
            return Ok(());
        }
        let x = bottom[0].data()?;
        for (i, top) in top.iter().enumerate() {
            self.layout.read_part(device, i, x.view(), top.data_mut()?.view_mut())?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        if let [only] = top {
            return SharedTop::backward(device, only, &bottom[0]);
        }
        let mut dx = bottom[0].diff_mut()?;
        for (i, top) in top.iter().enumerate() {
            self.layout.write_part(device, i, top.diff()?.view(), dx.view_mut())?;
        }
        Ok(())
    }
}
