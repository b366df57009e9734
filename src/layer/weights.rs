//! Filters and biases: the parameters that convolution and inner product have in common.

use super::Context;
use crate::{
    blob::Blob, device::Device, element::Element, error::Result, filler::Filler,
    proto::FillerParameter,
};

/// How to make a layer's weights and, if it has one, its bias.
pub(super) struct Fillers {
    weights: Filler,
    /// `None` if the layer has no bias.
    bias: Option<Filler>,
}

impl Fillers {
    pub(super) fn new(
        weights: Option<&FillerParameter>,
        bias: Option<&FillerParameter>,
        has_bias: bool,
    ) -> Result<Self> {
        let filler = |param: Option<&FillerParameter>| match param {
            Some(param) => Filler::from_proto(param),
            None => Ok(Filler::default()),
        };
        let bias = has_bias.then(|| filler(bias)).transpose()?;
        Ok(Self { weights: filler(weights)?, bias })
    }

    pub(super) fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    /// Weights of `shape`, then a bias of `outputs`, filled from the layer's own streams.
    pub(super) fn make<T: Element, D: Device>(
        &self,
        cx: &Context<'_, D>,
        shape: &[usize],
        outputs: usize,
    ) -> Result<Vec<Blob<T, D>>> {
        let mut params = vec![Blob::new(cx.device, shape)?];
        self.weights.fill(&params[0], cx.key.child(0))?;
        if let Some(filler) = &self.bias {
            let bias = Blob::new(cx.device, &[outputs])?;
            filler.fill(&bias, cx.key.child(1))?;
            params.push(bias);
        }
        Ok(params)
    }
}
