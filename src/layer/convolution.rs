//! Convolution in any number of spatial axes.

use super::{Arity, Context, Layer, Propagate, weights::Fillers};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, Convolution, Extent, Window},
    proto::{ConvolutionParameter, LayerParameter},
    shape::Shape,
};

/// Convolution with a bank of filters: axes before `axis` are the batch, `axis` holds the
/// channels, those after it are spatial. Each bottom has its top; all share the filters.
pub struct ConvolutionLayer<T: Element, D: Device> {
    param: ConvolutionParameter,
    fillers: Fillers,
    /// For the bottoms' present shape.
    op: Option<Convolution>,
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> ConvolutionLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] without a positive `num_output`; those of the fillers.
    pub fn new(param: &LayerParameter, _: &Context<'_, D>) -> Result<Self> {
        let param = param.convolution_param.clone().unwrap_or_default();
        if param.num_output() == 0 {
            return Err(Error::Invalid("convolution_param needs a positive num_output".into()));
        }
        let (weights, bias) = (param.weight_filler.as_ref(), param.bias_filler.as_ref());
        let fillers = Fillers::new(weights, bias, param.bias_term())?;
        Ok(Self { param, fillers, op: None, params: Vec::new() })
    }

    /// The convolution of a bottom of this shape, and the axis of its channels.
    fn describe(&self, shape: &Shape) -> Result<(Convolution, usize)> {
        let axis = shape.canonical_axis(self.param.axis() as isize)?;
        let extents = extents(&self.param, &shape[axis + 1..])?;
        let window = Window::new(shape[axis], &extents)?;
        let batch = shape.count_range(0, axis)?;
        let outputs = self.param.num_output() as usize;
        let groups = self.param.group() as usize;
        Ok((Convolution::new(batch, outputs, groups, window)?, axis))
    }

    fn op(&self) -> Result<&Convolution> {
        self.op.as_ref().ok_or_else(|| Error::Invalid("forward before reshape".into()))
    }
}

impl<T: Element, D: Device> Layer<T, D> for ConvolutionLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Convolution"
    }

    fn arity(&self) -> Arity {
        Arity::pairs()
    }

    fn setup(&mut self, cx: &Context<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let (op, _) = self.describe(bottom[0].shape())?;
        let mut shape = vec![op.outputs(), op.window().channels() / op.groups()];
        shape.extend(op.window().axes().iter().map(|axis| axis.kernel));
        self.params = self.fillers.make(cx, &shape, op.outputs())?;
        self.op = Some(op);
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let first = bottom[0].shape();
        let (op, axis) = self.describe(first)?;
        if op.filter_len() != self.params[0].count() {
            let channels = op.window().channels();
            let why = format!("{channels} channels do not fit filters {}", self.params[0].shape());
            return Err(Error::Shape(why));
        }
        let mut shape = first[..axis].to_vec();
        shape.push(op.outputs());
        shape.extend(op.window().output());
        for (bottom, top) in bottom.iter().zip(top) {
            if *bottom.shape() != *first {
                let why = format!("bottoms of shapes {first} and {}", bottom.shape());
                return Err(Error::Shape(why));
            }
            top.reshape(&shape)?;
        }
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let op = self.op()?;
        let filters = self.params[0].data()?;
        let bias = self.params.get(1).map(Blob::data).transpose()?;
        for (bottom, top) in bottom.iter().zip(top) {
            let (x, mut y) = (bottom.data()?, top.data_mut()?);
            let bias = bias.as_ref().map(|bias| bias.view());
            device.convolve(op, x.view(), filters.view(), bias, y.view_mut())?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let op = self.op()?;
        for (i, (bottom, top)) in bottom.iter().zip(top).enumerate() {
            let dy = top.diff()?;
            if self.fillers.has_bias() && propagate.params[1] {
                let axis = Axis::new(op.batch(), op.outputs(), op.window().positions())?;
                let mut db = self.params[1].diff_mut()?;
                device.sum_onto(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
            }
            if propagate.params[0] {
                let (x, mut dw) = (bottom.data()?, self.params[0].diff_mut()?);
                device.convolve_backward_filters(op, x.view(), dy.view(), dw.view_mut())?;
            }
            if propagate.bottom[i] {
                let (w, mut dx) = (self.params[0].data()?, bottom.diff_mut()?);
                device.convolve_backward_input(op, w.view(), dy.view(), dx.view_mut())?;
            }
        }
        Ok(())
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.params
    }
}

/// The windows along spatial axes of these extents, by Caffe's rules for giving their parameters:
/// `kernel_h` and `kernel_w` for two axes, or one value for all, or one for each.
fn extents(param: &ConvolutionParameter, spatial: &[usize]) -> Result<Vec<Extent>> {
    let axes = spatial.len();
    let kernel = pair_or_list(
        ("kernel", [param.kernel_h, param.kernel_w], &param.kernel_size),
        (axes, None),
    )?;
    let stride =
        pair_or_list(("stride", [param.stride_h, param.stride_w], &param.stride), (axes, Some(1)))?;
    let pad = pair_or_list(("pad", [param.pad_h, param.pad_w], &param.pad), (axes, Some(0)))?;
    let dilation = pair_or_list(("dilation", [None, None], &param.dilation), (axes, Some(1)))?;
    let each = spatial.iter().zip(kernel).zip(stride).zip(pad).zip(dilation);
    Ok(each
        .map(|((((&input, kernel), stride), pad), dilation)| Extent {
            input,
            kernel,
            stride,
            pad,
            dilation,
        })
        .collect())
}

/// One value for each of `axes` from a height and width or from a list; `default` where neither
/// is given.
fn pair_or_list(
    (name, pair, list): (&str, [Option<u32>; 2], &[u32]),
    (axes, default): (usize, Option<usize>),
) -> Result<Vec<usize>> {
    let invalid = |why: String| Error::Invalid(format!("convolution_param: {why}"));
    if pair != [None, None] {
        if !list.is_empty() {
            return Err(invalid(format!("{name} is given both by _h and _w and as a list")));
        }
        if axes != 2 {
            return Err(invalid(format!("{name}_h and {name}_w need 2 spatial axes, not {axes}")));
        }
        let both = pair.map(|value| value.map(|value| value as usize).or(default));
        return match (name, both) {
            ("stride", _) if pair.contains(&None) => {
                Err(invalid("stride_h and stride_w need each other".into()))
            }
            (_, [Some(height), Some(width)]) => Ok(vec![height, width]),
            _ => Err(invalid(format!("{name}_h and {name}_w need each other"))),
        };
    }
    match (list, default) {
        ([], Some(default)) => Ok(vec![default; axes]),
        ([one], _) => Ok(vec![*one as usize; axes]),
        (list, _) if list.len() == axes => Ok(list.iter().map(|&value| value as usize).collect()),
        (list, _) => {
            Err(invalid(format!("{} values of {name} for {axes} spatial axes", list.len())))
        }
    }
}
