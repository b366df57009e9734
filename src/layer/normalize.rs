//! The Normalize layer, which divides by the L2 norm and multiplies by a learned factor.

use super::{
    prelude::*,
    saved_input::SavedInput,
    weight_bias::{filled_blob, filler},
};
use crate::{
    filler::Filler,
    memory::Src,
    op::{Axis, Binary, Reduce, Tile, Unary},
    proto::NormalizeParameter,
};

/// `y = s · x / √(Σ x² + eps)`. The sum runs over all channels and all positions of an item of the
/// batch, or over the channels of each position if `across_spatial` is false. The layer learns one
/// factor `s`, or one factor per channel if `channel_shared` is false. The second axis of the
/// bottom holds the channels.
///
/// The Normalize layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where its
/// field `norm_param` has the number 206. OpenCV calls the layer NormalizeBBox. The method was
/// introduced with ParseNet by Liu, Rabinovich and Berg (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 1 dim: 1 } } }
///     layer { type: "Normalize" bottom: "x" top: "y"
///       norm_param { across_spatial: false scale_filler { value: 10 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[3.0, 4.0]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!((y[0] - 6.0).abs() < 1e-5 && (y[1] - 8.0).abs() < 1e-5);
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "NormalizeBBox")]
pub struct NormalizeLayer<T: Element> {
    param: NormalizeParameter,
    axes: Option<Axes>,
    /// The norms, and the sums `Σ g·n` of the backward pass.
    norms: Blob<T>,
    norm_gradients: Blob<T>,
    /// Scratch blobs of the size of the bottom: for each element, the norm that divides the
    /// element; and `x` divided by the norms.
    spread: Blob<T>,
    normalized: Blob<T>,
    saved_input: SavedInput<T>,
    params: Vec<Blob<T>>,
}

#[derive(Clone, Copy)]
struct Axes {
    /// The axis over which the norm is computed.
    norm: Axis,
    /// The axis of the learned factors.
    scale: Axis,
}

impl Axes {
    /// Returns the descriptor of the kernel that repeats each norm for all elements that the norm
    /// divides.
    fn spread(&self) -> Tile {
        Tile { outer: self.norm.outer, inner: self.norm.inner, tiles: self.norm.extent }
    }
}

impl<T: Element> NormalizeLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Propagates errors from the device.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let empty = || Blob::new(cx.device, &[0]);
        Ok(Self {
            param: param.norm_param.clone().unwrap_or_default(),
            axes: None,
            norms: empty()?,
            norm_gradients: empty()?,
            spread: empty()?,
            normalized: empty()?,
            saved_input: SavedInput::new(cx.device)?,
            params: Vec::new(),
        })
    }

    /// Computes `normalized` from `x` and `norms`, and leaves the norm of each element in `spread`.
    fn normalize(&self, device: &AnyDevice, axes: &Axes, x: &Blob<T>) -> Result<()> {
        let (norms, mut spread) = (self.norms.data()?, self.spread.data_mut()?);
        device.tile(&axes.spread(), norms.view(), spread.view_mut())?;
        let (x, mut normalized) = (x.data()?, self.normalized.data_mut()?);
        device.binary(Binary::Div, x.view().into(), spread.view(), normalized.view_mut())
    }
}

impl<T: Element> Layer<T> for NormalizeLayer<T> {
    fn kind(&self) -> &'static str {
        "Normalize"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let channels = [Axis::of(bottom[0].shape(), 1)?.extent];
        let shape = if self.param.channel_shared() { &[] } else { &channels[..] };
        let filler = filler(&self.param.scale_filler, Filler::Constant { value: 1.0 })?;
        self.params = vec![filled_blob(cx, shape, &filler, 0)?];
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let channels = Axis::of(bottom[0].shape(), 1)?;
        let scale = match self.param.channel_shared() {
            true => Axis::new(1, 1, channels.count())?,
            false => channels,
        };
        if scale.extent != self.params[0].count() {
            let factors = self.params[0].count();
            return wrong_shape(format!("{factors} factors do not fit {} channels", scale.extent));
        }
        let norm = match self.param.across_spatial() {
            true => per_item_axis(bottom[0].shape())?,
            false => channels,
        };
        self.axes = Some(Axes { norm, scale });
        self.norms.reshape(&[norm.outer, norm.inner])?;
        self.norm_gradients.reshape(&[norm.outer, norm.inner])?;
        self.spread.reshape_like(&bottom[0])?;
        self.normalized.reshape_like(&bottom[0])?;
        top[0].reshape_like(&bottom[0])?;
        self.saved_input.reshape(&bottom[0], &top[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let axes = *reshaped(&self.axes)?;
        let input = self.saved_input.save(&bottom[0], &top[0])?;
        {
            let mut norms = self.norms.data_mut()?;
            device.reduce(Reduce::SumSq, &axes.norm, input.data()?.view(), norms.view_mut())?;
            // A single function adds `eps` and takes the root in the accumulator type, because
            // `eps` may be rounded to 0 in 16 bits.
            let norm = Unary::PowAffine {
                scale: T::acc(1.0),
                shift: T::acc(self.param.eps().into()),
                power: T::acc(0.5),
            };
            device.unary(norm, Src::InPlace, norms.view_mut())?;
        }
        self.normalize(device, &axes, input)?;
        let (normalized, scale) = (self.normalized.data()?, self.params[0].data()?);
        let (x, mut y) = (normalized.view().into(), top[0].data_mut()?);
        device.broadcast(Binary::Mul, &axes.scale, x, scale.view(), y.view_mut())
    }

    /// With `g = s · dy` and the normalized input `n`, the gradient of the input is
    /// `(g − n · Σ g·n) / norm`.
    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let axes = *reshaped(&self.axes)?;
        self.normalize(device, &axes, self.saved_input.input(&bottom[0], &top[0]))?;
        let (normalized, mut spread) = (self.normalized.data()?, self.spread.data_mut()?);
        if propagate.params[0] {
            let (dy, mut ds) = (top[0].diff()?, self.params[0].diff_mut()?);
            let (dy, n) = (dy.view(), normalized.view());
            device.dot_to_axis(&axes.scale, T::acc(1.0), dy, n, ds.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let scale = self.params[0].data()?;
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        device.broadcast(Binary::Mul, &axes.scale, dy.src(), scale.view(), dx.view_mut())?;
        let mut dots = self.norm_gradients.data_mut()?;
        let (n, g) = (normalized.view(), dx.view());
        device.binary(Binary::Mul, n.into(), g, spread.view_mut())?;
        device.reduce(Reduce::Sum, &axes.norm, spread.view(), dots.view_mut())?;
        device.tile(&axes.spread(), dots.view(), spread.view_mut())?;

        device.binary(Binary::Mul, Src::InPlace, normalized.view(), spread.view_mut())?;

        device.binary(Binary::Sub, Src::InPlace, spread.view(), dx.view_mut())?;
        device.tile(&axes.spread(), self.norms.data()?.view(), spread.view_mut())?;

        device.binary(Binary::Div, Src::InPlace, spread.view(), dx.view_mut())
    }

    fn params(&self) -> &[Blob<T>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.params
    }
}
