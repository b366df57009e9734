//! A part of a blob, of another's extents.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::Copy2d,
    proto::LayerParameter,
    shape::Shape,
};

/// Crops its first bottom to the extents of the second from `axis` on, `offset` elements in: one
/// for all axes or one for each. The second bottom gives its shape only; its gradient is zero.
pub struct CropLayer {
    axis: isize,
    offsets: Vec<usize>,
    /// For the bottoms' present shapes.
    window: CropRegion,
}

/// One axis, cropped.
struct Cut {
    whole: usize,
    part: usize,
    offset: usize,
}

/// Where the top lies in the bottom: the blocks to copy, whose places are the same multiples of
/// the axes in `outer`.
#[derive(Default)]
struct CropRegion {
    outer: Vec<Cut>,
    rows: Option<Cut>,
    columns: Option<Cut>,
}

impl CropRegion {
    /// Axes that are not cropped join the one before: what remains is few blocks of long rows.
    fn new(axes: impl IntoIterator<Item = Cut>) -> Self {
        let mut outer: Vec<Cut> = Vec::new();
        for axis in axes {
            match outer.last_mut() {
                Some(last) if axis.whole == axis.part => {
                    last.whole *= axis.whole;
                    last.part *= axis.whole;
                    last.offset *= axis.whole;
                }
                _ => outer.push(axis),
            }
        }
        let columns = outer.pop();
        let rows = outer.pop();
        Self { outer, rows, columns }
    }

    /// Calls `copy` with the place of each block in the whole and in the part, and its extents.
    fn blocks(&self, mut copy: impl FnMut(usize, usize, Copy2d) -> Result<()>) -> Result<()> {
        let one = Cut { whole: 1, part: 1, offset: 0 };
        let columns = self.columns.as_ref().unwrap_or(&one);
        let rows = self.rows.as_ref().unwrap_or(&one);
        let op = Copy2d {
            rows: rows.part,
            columns: columns.part,
            ldx: columns.whole,
            ldy: columns.part,
        };
        let blocks: usize = self.outer.iter().map(|cut| cut.part).product();
        if op.rows * op.columns == 0 {
            return Ok(());
        }
        for block in 0..blocks {
            // The block's indices, innermost first, give its place in the whole.
            let (mut rest, mut at, mut stride) = (block, 0, rows.whole * columns.whole);
            for cut in self.outer.iter().rev() {
                at += (rest % cut.part + cut.offset) * stride;
                rest /= cut.part;
                stride *= cut.whole;
            }
            let first = at + rows.offset * columns.whole + columns.offset;
            copy(first, block * op.rows * op.columns, op)?;
        }
        Ok(())
    }
}

impl CropLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.crop_param.clone().unwrap_or_default();
        let offsets = param.offset.iter().map(|&offset| offset as usize).collect();
        Ok(Self { axis: param.axis() as isize, offsets, window: CropRegion::default() })
    }

    /// How each axis is cropped.
    fn cuts(&self, shape: &Shape, like: &Shape) -> Result<Vec<Cut>> {
        let axis = shape.canonical_axis(self.axis)?;
        let (axes, offsets) = (shape.len() - axis, self.offsets.len());
        if offsets > 1 && offsets != axes {
            let why = format!("{offsets} offsets for {axes} axes from axis {axis} on of {shape}");
            return Err(Error::Shape(why));
        }
        if like.len() != shape.len() {
            let why = format!("bottoms of shapes {shape} and {like} differ in their axes");
            return Err(Error::Shape(why));
        }
        let cut = |(at, (&whole, &part)): (usize, (&usize, &usize))| {
            let Some(from) = at.checked_sub(axis) else {
                return Ok(Cut { whole, part: whole, offset: 0 });
            };
            let offset = self.offsets.get(from).or(self.offsets.first()).copied().unwrap_or(0);
            if offset.checked_add(part).is_none_or(|end| end > whole) {
                let why = format!("axis {at} of {shape} does not hold {part} elements at {offset}");
                return Err(Error::Shape(why));
            }
            Ok(Cut { whole, part, offset })
        };
        shape.iter().zip(like.iter()).enumerate().map(cut).collect()
    }
}

impl<T: Element, D: Device> Layer<T, D> for CropLayer {
    fn kind(&self) -> &'static str {
        "Crop"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let cuts = self.cuts(bottom[0].shape(), bottom[1].shape())?;
        top[0].reshape(&cuts.iter().map(|cut| cut.part).collect::<Vec<_>>())?;
        self.window = CropRegion::new(cuts);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (x, mut y) = (x.view(), y.view_mut());
        self.window.blocks(|whole, part, op| {
            let (x, ends) = (x.slice(whole..x.len())?, part..part + op.rows * op.columns);
            device.copy_2d(&op, x, y.slice_mut(ends)?)
        })
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            device.fill(T::default(), bottom[1].diff_mut()?.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (dy, mut dx) = (dy.view(), dx.view_mut());
        device.fill(T::default(), dx.reborrow())?;
        self.window.blocks(|whole, part, op| {
            let (dy, end) = (dy.slice(part..part + op.rows * op.columns)?, dx.len());
            let op = Copy2d { ldx: op.ldy, ldy: op.ldx, ..op };
            device.copy_2d(&op, dy, dx.slice_mut(whole..end)?)
        })
    }
}
