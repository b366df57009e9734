//! The [`Layer`] trait, and the types that a net passes to its layers.

use super::shard::Shard;
use crate::{
    blob::Blob,
    data::SourceRegistry,
    device::AnyDevice,
    element::Element,
    error::{Error, Result},
    op::{RngKey, Unary},
    proto::{LayerState, Phase},
};
use std::{any::Any, ops::RangeInclusive, time::Duration};

/// Settings that a net passes to the constructor and to [`Layer::setup`] of each of its layers.
///
/// ```
/// use cortado::{LayerRegistry, data::SourceRegistry, layer::{LayerContext, Shard}, op::RngKey};
/// use cortado::{prelude::*, proto::{LayerParameter, Phase, parse_text}};
///
/// let (device, sources) = (AnyDevice::new(&CpuDevice::new()), SourceRegistry::default());
/// let (phase, key) = (Phase::Test, RngKey::new(1));
/// let shard = Shard::WHOLE;
/// let cx = LayerContext { device: &device, phase, key, shard, sources: &sources };
/// let param: LayerParameter = parse_text(r#"type: "Sigmoid""#, "layer")?;
/// assert_eq!(LayerRegistry::<f32>::standard().make(&param, &cx)?.kind(), "Sigmoid");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct LayerContext<'a> {
    /// The device on which the net runs.
    pub device: &'a AnyDevice,
    /// The phase of the net: training or testing.
    pub phase: Phase,
    /// The key of the layer's random number streams; every layer has a different key. The nets of
    /// all shards of a run use the same keys, so that their parameters have the same initial values
    /// and their data layers shuffle in the same order. Forward passes use
    /// [`pass_key`](Self::pass_key).
    pub key: RngKey,
    /// The shard of the training run to which the net belongs.
    pub shard: Shard,
    /// The registry through which data layers open their record sources.
    pub sources: &'a SourceRegistry,
}

impl LayerContext<'_> {
    /// Returns the key of random numbers that differ among the shards of a run, such as the masks of
    /// Dropout. Without shards and in the TEST phase, returns [`key`](Self::key).
    pub fn pass_key(&self) -> RngKey {
        match self.shard.in_phase(self.phase) {
            Shard { count: 1, .. } => self.key,
            Shard { index, .. } => self.key.named_child("shard").child(index),
        }
    }
}

/// Flags for the gradients that a layer's backward pass must compute.
///
/// ```
/// use cortado::{layer::{EuclideanLossLayer, Layer, PropagateDown}, prelude::*};
///
/// let device = AnyDevice::new(&CpuDevice::new());
/// let ab = [Blob::from_slice(&device, &[1], &[3.0])?, Blob::from_slice(&device, &[1], &[1.0])?];
/// let loss = [Blob::<f32>::new(&device, &[])?];
/// loss[0].diff_mut()?.host_mut()?.fill(1.0);
/// let propagate = PropagateDown { bottom: &[true, false], params: &[] };
/// EuclideanLossLayer.backward(&device, &loss, propagate, &ab)?;
/// assert_eq!((ab[0].diff_at(&[0])?, ab[1].diff_at(&[0])?), (2.0, 0.0));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PropagateDown<'a> {
    /// For each bottom, whether the backward pass must compute the bottom's gradient.
    pub bottom: &'a [bool],
    /// For each parameter, whether the backward pass must compute the parameter's gradient.
    pub params: &'a [bool],
}

/// The numbers of bottoms and tops that a layer takes.
///
/// ```
/// use cortado::layer::Arity;
///
/// let loss = Arity::between(2..=3, 1..=1);
/// assert!(loss.check(3, 1).is_ok());
/// let error = loss.check(1, 1).unwrap_err().to_string();
/// assert!(error.contains("expected 2 to 3 bottom blobs, found 1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The range of the allowed numbers of bottoms.
    pub bottom: RangeInclusive<usize>,
    /// The range of the allowed numbers of tops.
    pub top: RangeInclusive<usize>,
    /// Whether the number of tops must equal the number of bottoms.
    pub tops_equal_bottoms: bool,
}

impl Arity {
    /// Returns the arity of a layer with exactly `bottom` bottoms and `top` tops.
    pub fn exactly(bottom: usize, top: usize) -> Self {
        Self::between(bottom..=bottom, top..=top)
    }

    /// Returns the arity of a layer that takes a number of bottoms in the range `bottom` and a
    /// number of tops in the range `top`.
    pub fn between(bottom: RangeInclusive<usize>, top: RangeInclusive<usize>) -> Self {
        Self { bottom, top, tops_equal_bottoms: false }
    }

    /// Returns the arity of a layer with one or more bottoms and exactly one top per bottom.
    pub fn one_top_per_bottom() -> Self {
        Self { bottom: 1..=usize::MAX, top: 1..=usize::MAX, tops_equal_bottoms: true }
    }

    /// Checks that this arity allows `bottoms` bottoms and `tops` tops.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`], which states the expected and the found number of blobs, if
    /// the arity does not allow `bottoms` or `tops`.
    pub fn check(&self, bottoms: usize, tops: usize) -> Result<()> {
        for (kind, range, found) in [("bottom", &self.bottom, bottoms), ("top", &self.top, tops)] {
            if !range.contains(&found) {
                let expected = match (*range.start(), *range.end()) {
                    (min, usize::MAX) => format!("at least {min}"),
                    (min, max) if min == max => min.to_string(),
                    (min, max) => format!("{min} to {max}"),
                };
                let plural_suffix = if expected == "1" { "" } else { "s" };
                let reason =
                    format!("expected {expected} {kind} blob{plural_suffix}, found {found}");
                return Err(Error::InvalidData(reason));
            }
        }
        if self.tops_equal_bottoms && bottoms != tops {
            let reason = format!("expected one top blob per bottom: {bottoms} tops, found {tops}");
            return Err(Error::InvalidData(reason));
        }
        Ok(())
    }
}

/// A layer of a net, which computes tops from bottoms and gradients of bottoms from gradients of
/// tops. The `Layer` trait is object-safe: nets hold `Box<dyn Layer<T>>`.
///
/// A [`LayerRegistry`](crate::LayerRegistry) creates a layer from its `LayerParameter`. A net calls
/// [`setup`](Self::setup) of a layer once, and [`reshape`](Self::reshape) before every
/// [`forward`](Self::forward). Only `reshape` changes the shapes of the tops; all other methods of
/// a layer only write the values of blobs.
///
/// A registry wraps each layer in a layer that checks the bottoms and tops. A method of the wrapper
/// returns an error, without running the layer's code, if the numbers of bottoms and tops violate
/// [`arity`](Self::arity) or differ between calls. A forward or backward pass also returns an error
/// if the shape of a blob has changed since the last call of `reshape`.
///
/// ```
/// use cortado::{layer::Layer, prelude::*};
///
/// struct Double;
/// impl Layer<f32> for Double {
///     fn kind(&self) -> &'static str { "Double" }
///     fn reshape(&mut self, x: &[Blob<f32>], y: &mut [Blob<f32>]) -> Result<()> {
///         y[0].reshape_like(&x[0])
///     }
///     fn forward(&mut self, _: &AnyDevice, x: &[Blob<f32>], y: &[Blob<f32>]) -> Result<()> {
///         x[0].apply_into(Unary::Scale(2.0), &y[0])
///     }
/// }
/// let registry = cortado::LayerRegistry::standard().with("Double", |_, _| Ok(Double));
/// assert!(registry.kinds().any(|kind| kind == "Double"));
/// ```
pub trait Layer<T: Element>: Any + Send {
    /// Returns the layer type, which is the value of the field `type` in a prototxt definition.
    #[doc(alias = "type")]
    fn kind(&self) -> &'static str;

    /// Returns the numbers of bottoms and tops that the layer takes; by default, one bottom and one
    /// top.
    #[doc(alias = "ExactNumBottomBlobs")]
    #[doc(alias = "EqualNumBottomTopBlobs")]
    fn arity(&self) -> Arity {
        Arity::exactly(1, 1)
    }

    /// Creates and fills the layer's parameters, whose shapes may depend on the bottoms.
    #[doc(alias = "LayerSetUp")]
    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let _ = (cx, bottom);
        Ok(())
    }

    /// Derives the shapes of the tops from the shapes of the bottoms.
    #[doc(alias = "Reshape")]
    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()>;

    /// Computes the data of the tops from the data of the bottoms.
    #[doc(alias = "Forward_cpu")]
    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()>;

    /// Returns the activation function that this layer applies to every element. Returns `None` if
    /// this layer is not an elementwise activation, or if its in-place [`forward`](Self::forward)
    /// has side effects, such as saving the input. A net may pass the activation function to
    /// [`forward_fused`](Self::forward_fused) of the preceding layer, instead of calling `forward`
    /// of this layer.
    fn fusible_activation(&self) -> Option<Unary<f64>> {
        None
    }

    /// Computes the tops and applies `function` to every element of the tops. The tops are
    /// bit-identical to the result of [`forward`](Self::forward) followed by `function`, unless a
    /// GPU computes the layer with cuBLASLt. Returns `false`, without computing anything, if the
    /// layer has no fused implementation.
    fn forward_fused(
        &mut self,
        device: &AnyDevice,
        bottom: &[Blob<T>],
        top: &[Blob<T>],
        function: Unary<f64>,
    ) -> Result<bool> {
        let _ = (device, bottom, top, function);
        Ok(false)
    }

    /// Computes the gradients that `propagate` requests: overwrites the diffs of bottoms and adds
    /// to the diffs of parameters. A layer that a registry has created skips `backward` if
    /// `propagate` requests no gradient.
    ///
    /// # Errors
    /// The default implementation of `backward`, for layers without gradients, returns
    /// [`Error::InvalidData`] if `propagate` requests a gradient.
    #[doc(alias = "Backward_cpu")]
    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let _ = (device, top, bottom);
        match propagate.bottom.contains(&true) || propagate.params.contains(&true) {
            true => Err(Error::InvalidData(format!("{} has no gradient", self.kind()))),
            false => Ok(()),
        }
    }

    /// Returns whether the layer can run in place, with the same blob as bottom and top.
    fn allows_in_place(&self) -> bool {
        false
    }

    /// Returns whether a net with `force_backward` computes the gradient of the bottom with index
    /// `bottom`.
    #[doc(alias = "AllowForceBackward")]
    fn allow_force_backward(&self, bottom: usize) -> bool {
        let _ = bottom;
        true
    }

    /// Returns whether this layer is a loss layer. The first top of a loss layer has the weight 1
    /// in the objective unless the definition sets `loss_weight`. If the definition of a loss layer
    /// omits a required top, the net adds an unnamed top.
    #[doc(alias = "AutoTopBlobs")]
    #[doc(alias = "SetLossWeights")]
    fn is_loss(&self) -> bool {
        false
    }

    /// Returns whether a solver may update the layer's parameters. Parameters that are not
    /// trainable have `lr_mult` 0: a definition may omit the `lr_mult` of these parameters, but
    /// must not set it to a nonzero value.
    fn params_are_trainable(&self) -> bool {
        true
    }

    /// Returns whether a net sets `lr_mult` and `decay_mult` of the parameter with index `index` to
    /// 0 regardless of the definition, so that no solver changes the parameter.
    fn keeps_param(&self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// Returns the total time for which the layer's forward passes have waited for data; `None` for
    /// a layer that reads no data.
    fn data_wait_time(&self) -> Option<Duration> {
        None
    }

    /// Returns the number of records in one pass over the layer's source; `None` for a layer without
    /// a source, or if the number is unknown. Processes that train together compare these numbers.
    fn source_records(&self) -> Option<u64> {
        None
    }

    /// Returns the layer's state: the values, besides the parameters, that the next forward pass
    /// depends on; `None` for a layer without a state. A snapshot of a solver contains the states
    /// of the layers, so that a resumed run computes the same values as an uninterrupted run.
    ///
    /// # Errors
    /// Propagates errors from the device if the state contains values of blobs.
    fn state(&self) -> Result<Option<LayerState>> {
        Ok(None)
    }

    /// Sets the state of the layer to `state`, which [`state`](Self::state) of a layer with the
    /// same definition has returned. The caller must call [`reshape`](Self::reshape) first.
    ///
    /// # Errors
    /// Returns an error if the state does not fit the layer, or if the layer cannot read its data
    /// from the position in the state. The default implementation, for layers without a state,
    /// returns [`Error::InvalidData`].
    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        let _ = state;
        Err(Error::InvalidData(format!("{} has no state to restore", self.kind())))
    }

    /// Changes the layer's state as `passes` forward passes would, without computing the tops.
    /// Returns `false`, without any change, if the layer cannot skip passes because its state
    /// depends on the values of its bottoms. Several processes divide the batches of a test net
    /// among themselves only if all layers of the net can skip passes.
    ///
    /// The default implementation changes nothing, and returns `true` only if the layer has no
    /// [`state`](Self::state).
    ///
    /// # Errors
    /// Returns any error from [`state`](Self::state) and [`set_state`](Self::set_state).
    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        let _ = passes;
        Ok(self.state()?.is_none())
    }

    /// Returns the layer's parameters.
    #[doc(alias = "blobs")]
    fn params(&self) -> &[Blob<T>] {
        &[]
    }

    /// Returns a mutable slice of the layer's parameters, so that a net can share or replace the
    /// parameters.
    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut []
    }
}
