//! Parameters in and out of nets: trained layers by name, shared between nets, as messages.

use super::Net;
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::NetParameter,
};

impl<T: Element, D: Device> Net<T, D> {
    /// Copies the parameters of layers that have the same name in `source`; other layers stay as
    /// they are. Returns the names of the layers copied.
    ///
    /// [`proto::read_trained_net`](crate::proto::read_trained_net) reads files of any age.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Shape`] if a layer's parameters are other in number or
    /// shape; the layers before it are then already copied.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_trained_from(&mut self, source: &NetParameter) -> Result<Vec<String>> {
        if !source.layers.is_empty() {
            let why =
                "the weights are in an old format; upgrade them first (`proto::upgrade::net`)";
            return Err(Error::Invalid(why.into()));
        }
        let mut copied = Vec::new();
        for from in &source.layer {
            let Some(place) = self.place(from.name()) else { continue };
            let at = |net: &Self, error| net.at_layer(place, error);
            expect_params(self.steps[place].layer.params().len(), from.blobs.len())
                .map_err(|error| at(self, error))?;
            let result = self.steps[place]
                .layer
                .params_mut()
                .iter_mut()
                .zip(&from.blobs)
                .try_for_each(|(param, proto)| param.from_proto(proto, false));
            result.map_err(|error| at(self, error))?;
            if !from.blobs.is_empty() {
                copied.push(from.name().to_owned());
            }
        }
        Ok(copied)
    }

    /// Shares the values (not the gradients) of parameters with the layers that have the same
    /// name in `source`: what one net learns, the other has.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Shape`] if a layer's parameters are other in number or
    /// shape.
    #[doc(alias = "ShareTrainedLayersWith")]
    pub fn share_trained_with(&mut self, source: &Self) -> Result<()> {
        for from in &source.steps {
            let Some(place) = self.place(from.param.name()) else { continue };
            let params = self.steps[place].layer.params_mut();
            let shared = expect_params(params.len(), from.layer.params().len())
                .and_then(|()| params.iter_mut().zip(from.layer.params()).try_for_each(share_data));
            shared.map_err(|error| self.at_layer(place, error))?;
        }
        self.refresh_params();
        Ok(())
    }

    /// The net as a message, with the values of its parameters, and with their gradients if
    /// `diffs`.
    ///
    /// # Errors
    /// Those of the device.
    #[doc(alias = "ToProto")]
    pub fn to_proto(&self, diffs: bool) -> Result<NetParameter> {
        let mut net = NetParameter { name: Some(self.name.clone()), ..Default::default() };
        for step in &self.steps {
            let mut layer = step.param.clone();
            let params = step.layer.params().iter();
            layer.blobs = params.map(|param| param.to_proto(diffs)).collect::<Result<_>>()?;
            net.layer.push(layer);
        }
        Ok(net)
    }

    /// Takes handles on the layers' parameters as they now are.
    pub(super) fn refresh_params(&mut self) {
        for param in &mut self.params {
            param.blob = self.steps[param.layer].layer.params()[param.index].share();
        }
    }

    pub(super) fn place(&self, layer: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.param.name() == layer)
    }
}

fn expect_params(ours: usize, theirs: usize) -> Result<()> {
    if ours != theirs {
        let why = format!("has {ours} parameters, the other net's layer has {theirs}");
        return Err(Error::Invalid(why));
    }
    Ok(())
}

fn share_data<T: Element, D: Device>((ours, theirs): (&mut Blob<T, D>, &Blob<T, D>)) -> Result<()> {
    if *ours.shape() != *theirs.shape() {
        let why =
            format!("cannot share parameters of shapes {} and {}", ours.shape(), theirs.shape());
        return Err(Error::Shape(why));
    }
    ours.share_data(theirs)
}
