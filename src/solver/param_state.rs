//! What a solver keeps of the parameters that it updates.

use super::LearnableParam;
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    net::{Net, Param},
    proto::{BlobProto, LayerParameter, NetParameter},
};

/// What is kept of each learnable parameter of a net, in their order.
pub(super) struct ParamState<T: Element, D: Device> {
    params: Vec<Kept<T, D>>,
    /// Blobs of history of each.
    histories: usize,
}

struct Kept<T: Element, D: Device> {
    masters: Option<Blob<T::Acc, D>>,
    history: Vec<Blob<T::Acc, D>>,
}

impl<T: Element, D: Device> ParamState<T, D> {
    pub(super) fn new(net: &Net<T, D>, histories: usize) -> Result<Self> {
        let has_masters = size_of::<T>() < size_of::<T::Acc>();
        let kept = |param: &Param<T, D>| {
            let zeros = || Blob::new(net.device(), param.blob().shape());
            let masters = has_masters.then(zeros).transpose()?;
            let history = (0..histories).map(|_| zeros()).collect::<Result<_>>()?;
            Ok(Kept { masters, history })
        };
        Ok(Self { params: net.learnable_params().map(kept).collect::<Result<_>>()?, histories })
    }

    /// Each learnable parameter of `net` with what is kept of it.
    pub(super) fn of<'a>(
        &'a self,
        net: &'a Net<T, D>,
    ) -> impl Iterator<Item = (&'a Param<T, D>, LearnableParam<'a, T, D>)> {
        net.learnable_params().zip(&self.params).map(|(param, Kept { masters, history })| {
            (param, LearnableParam { blob: param.blob(), masters: masters.as_ref(), history })
        })
    }

    /// The history as files hold it: the first blob of every parameter, then the second of every.
    pub(super) fn history(&self) -> Result<Vec<BlobProto>> {
        let mut history = Vec::with_capacity(self.histories * self.params.len());
        for i in 0..self.histories {
            for kept in &self.params {
                history.push(kept.history[i].to_proto(false)?);
            }
        }
        Ok(history)
    }

    /// The history of a file, for [`set_history`](Self::set_history).
    ///
    /// # Errors
    /// [`Error::InvalidData`] and [`Error::Shape`] if it is another method's or another net's.
    pub(super) fn read_history(
        &self,
        net: &Net<T, D>,
        history: &[BlobProto],
    ) -> Result<Vec<Blob<T::Acc, D>>> {
        let (count, each) = (self.params.len(), self.histories);
        if history.len() != count * each {
            let why = format!(
                "holds {} blobs of history, where {each} for each of {count} parameters are \
                 needed: it is of another net or another type of solver",
                history.len()
            );
            return Err(Error::InvalidData(why));
        }
        let names: Vec<&str> = net.layer_names().collect();
        let params: Vec<_> = net.learnable_params().collect();
        let mut read = Vec::with_capacity(history.len());
        for (proto, param) in history.iter().zip(params.iter().cycle()) {
            let mut blob = Blob::new(net.device(), param.blob().shape())?;
            blob.from_proto(proto, false).map_err(|error| {
                let layer = names.get(param.layer).unwrap_or(&"");
                error.context(format!("history of parameter {} of layer `{layer}`", param.index))
            })?;
            read.push(blob);
        }
        Ok(read)
    }

    /// Takes over a history that was read for these parameters.
    pub(super) fn set_history(&mut self, read: Vec<Blob<T::Acc, D>>) {
        let mut read = read.into_iter();
        for i in 0..self.histories {
            for (kept, blob) in self.params.iter_mut().zip(&mut read) {
                kept.history[i] = blob;
            }
        }
    }

    /// Puts the masters into a message of the net, where they are more exact than its weights.
    pub(super) fn put_masters(&self, net: &Net<T, D>, message: &mut NetParameter) -> Result<()> {
        let places: Vec<_> =
            net.learnable_params().map(|param| (param.layer, param.index)).collect();
        for param in net.params() {
            let owner = param.owner.and_then(|owner| net.params().get(owner)).unwrap_or(param);
            let place = places.iter().position(|place| *place == (owner.layer, owner.index));
            let masters = place.and_then(|place| self.params[place].masters.as_ref());
            let layer = message.layer.get_mut(param.layer);
            let blob = layer.and_then(|layer| layer.blobs.get_mut(param.index));
            let (Some(masters), Some(blob)) = (masters, blob) else { continue };
            let (masters, weights) = (masters.data()?, param.blob().data()?);
            let pairs = masters.host()?.iter().zip(weights.host()?);
            for (value, (&master, &weight)) in blob.data.iter_mut().zip(pairs) {
                if T::from_acc(master) == weight {
                    *value = master.to_f64() as f32;
                }
            }
        }
        Ok(())
    }

    /// Takes the masters over from a message of the net, whose weights the net already has.
    pub(super) fn set_masters(&mut self, net: &Net<T, D>, message: &NetParameter) -> Result<()> {
        let names: Vec<&str> = net.layer_names().collect();
        for (param, kept) in net.learnable_params().zip(&mut self.params) {
            let named = |layer: &&LayerParameter| names.get(param.layer) == Some(&layer.name());
            let layer = message.layer.iter().find(named);
            let proto = layer.and_then(|layer| layer.blobs.get(param.index));
            if let (Some(masters), Some(proto)) = (&mut kept.masters, proto) {
                masters.from_proto(proto, false)?;
            }
        }
        Ok(())
    }
}
