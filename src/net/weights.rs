//! Parameters in and out of nets: trained layers by name, shared between nets, as messages.

use super::{Net, Param};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::{BlobProto, NetParameter},
};

impl<T: Element, D: Device> Net<T, D> {
    /// Copies the parameters of layers that have the same name in `source`; other layers stay as
    /// they are, and so do parameters that share another's values and have none in `source`, be it
    /// that their message is empty or that they are the last and have none. Returns the names of
    /// the layers copied.
    ///
    /// [`proto::read_trained_net`](crate::proto::read_trained_net) reads files of any age.
    ///
    /// # Errors
    /// [`Error::InvalidData`] or [`Error::Shape`] if a layer's parameters are other in number or
    /// shape: nothing has been changed. For messages that contradict themselves, too, and those of
    /// the device; the layers before are then already copied.
    #[doc(alias = "CopyTrainedLayersFrom")]
    pub fn copy_trained_from(&mut self, source: &NetParameter) -> Result<Vec<String>> {
        if !source.layers.is_empty() {
            let why =
                "the weights are in an old format; upgrade them first (`proto::upgrade::net`)";
            return Err(Error::InvalidData(why.into()));
        }
        for from in &source.layer {
            let Some(place) = self.place(from.name()) else { continue };
            let fits = self.expect_blobs(place, &from.blobs).map_err(renamed);
            fits.map_err(|error| self.at_layer(place, error))?;
        }
        let mut copied = Vec::new();
        for from in &source.layer {
            let Some(place) = self.place(from.name()) else { continue };
            let params = self.steps[place].layer.params_mut().iter_mut();
            let result = params
                .zip(&from.blobs)
                .filter(|(_, proto)| has_data(proto))
                .try_for_each(|(param, proto)| param.from_proto(proto, false));
            result.map_err(|error| self.at_layer(place, error))?;
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
    /// [`Error::InvalidData`] or [`Error::Shape`] if a layer's parameters are other in number or
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

    /// Takes out of a message of this net the values of parameters that share another's: a file
    /// then has them once, as Caffe's HDF5 files do. Gradients stay.
    pub fn strip_shared_params(&self, message: &mut NetParameter) {
        for param in self.params.iter().filter(|param| param.owner.is_some()) {
            let layer = message.layer.get_mut(param.layer);
            if let Some(blob) = layer.and_then(|layer| layer.blobs.get_mut(param.index)) {
                (blob.data, blob.double_data) = Default::default();
            }
        }
    }

    /// As [`copy_trained_from`](Self::copy_trained_from), from a file that has to have some of
    /// the net's layers.
    pub(crate) fn copy_some_from(&mut self, source: &NetParameter) -> Result<()> {
        let copied = self.copy_trained_from(source)?;
        let trained = source.layer.iter().filter(|layer| !layer.blobs.is_empty());
        self.check_copied(&copied, trained.map(|layer| layer.name()))
    }

    /// Fails if there was something to copy and nothing was `copied`, from a file that has weights
    /// of layers of these names.
    pub(crate) fn check_copied<'a>(
        &self,
        copied: &[String],
        found: impl IntoIterator<Item = &'a str>,
    ) -> Result<()> {
        if !copied.is_empty() || self.learnable.is_empty() {
            return Ok(());
        }
        let ours = self.steps.iter().filter(|step| !step.layer.params().is_empty());
        let ours = few(ours.map(|step| step.param.name()));
        let why = "no layer of the net has trained weights in this file";
        Err(Error::InvalidData(format!("{why}: it has {}, the net {ours}", few(found))))
    }

    /// Fails unless a layer's parameters can be copied from these messages.
    fn expect_blobs(&self, place: usize, blobs: &[BlobProto]) -> Result<()> {
        let params = self.steps[place].layer.params();
        let shared = |index| {
            let at = |param: &&Param<T, D>| (param.layer, param.index) == (place, index);
            self.params.iter().find(at).is_some_and(|param| param.owner.is_some())
        };
        for (index, param) in params.iter().enumerate() {
            match blobs.get(index) {
                Some(proto) if has_data(proto) => {
                    let expected = param.expect_shape(proto);
                    expected.map_err(|error| error.context(format!("parameter {index}")))?;
                }
                _ if shared(index) => {}
                Some(_) if blobs.len() == params.len() => {
                    let why = format!("the other net has no values for parameter {index}");
                    return Err(Error::InvalidData(why));
                }
                _ => expect_params(params.len(), blobs.len())?,
            }
        }
        if blobs.len() > params.len() { expect_params(params.len(), blobs.len()) } else { Ok(()) }
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

/// What fine-tuning does about weights of another shape.
fn renamed(error: Error) -> Error {
    match error.root() {
        Error::Shape(_) => {
            Error::Shape(format!("{error}; a layer of another name would be trained anew"))
        }
        _ => error,
    }
}

/// The first of some names.
fn few<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<_> = names.by_ref().take(4).map(|name| format!("`{name}`")).collect();
    match (first.is_empty(), names.count()) {
        (true, _) => "none".into(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

fn has_data(proto: &BlobProto) -> bool {
    !proto.data.is_empty() || !proto.double_data.is_empty()
}

fn expect_params(ours: usize, theirs: usize) -> Result<()> {
    if ours != theirs {
        let why = format!("has {ours} parameters, the other net's layer has {theirs}");
        return Err(Error::InvalidData(why));
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
