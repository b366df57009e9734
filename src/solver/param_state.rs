//! The solver's state for the learnable parameters: history blobs and master weights.

use super::method::LearnableParam;
use crate::{
    blob::Blob,
    element::Element,
    error::{Error, Result},
    net::{Net, Param},
    proto::{BlobProto, LayerParameter, NetParameter},
};

/// The history and the master weights of each learnable parameter of a net, in the net's order.
pub(super) struct ParamState<T: Element> {
    params: Vec<HistoryAndMasters<T>>,
    histories: usize,
}

struct HistoryAndMasters<T: Element> {
    masters: Option<Blob<T::Acc>>,
    history: Vec<Blob<T::Acc>>,
}

impl<T: Element> ParamState<T> {
    pub(super) fn new(net: &Net<T>, histories: usize) -> Result<Self> {
        let has_master_weights = size_of::<T>() < size_of::<T::Acc>();
        let zero_state = |param: &Param<T>| {
            let zeros = || Blob::new(net.device(), param.blob().shape());
            let masters = has_master_weights.then(zeros).transpose()?;
            let history = (0..histories).map(|_| zeros()).collect::<Result<_>>()?;
            Ok(HistoryAndMasters { masters, history })
        };
        let params = net.learnable_params().map(zero_state).collect::<Result<_>>()?;
        Ok(Self { params, histories })
    }

    pub(super) fn learnable_params<'a>(
        &'a self,
        net: &'a Net<T>,
    ) -> impl Iterator<Item = (&'a Param<T>, LearnableParam<'a, T>)> {
        net.learnable_params().zip(&self.params).map(|(param, state)| {
            let (masters, history) = (state.masters.as_ref(), &state.history[..]);
            (param, LearnableParam { blob: param.blob(), masters, history })
        })
    }

    /// Returns the history blobs in the order of a snapshot: the first history blobs of all
    /// parameters, then the second history blobs of all parameters.
    pub(super) fn history(&self) -> Result<Vec<BlobProto>> {
        let mut history = Vec::with_capacity(self.histories * self.params.len());
        for i in 0..self.histories {
            for state in &self.params {
                history.push(state.history[i].to_proto(false)?);
            }
        }
        Ok(history)
    }

    /// Reads the history blobs of a snapshot, for a later call to
    /// [`set_history`](Self::set_history).
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] or [`Error::Shape`] if the history belongs to a different
    /// solver method or net.
    pub(super) fn read_history(
        &self,
        net: &Net<T>,
        history: &[BlobProto],
    ) -> Result<Vec<Blob<T::Acc>>> {
        let (count, each) = (self.params.len(), self.histories);
        if history.len() != count * each {
            let found = history.len();
            return Err(Error::InvalidData(format!(
                "history: expected {each} blobs for each of {count} parameters, found {found} \
                 blobs; the file is from another net or another type of solver"
            )));
        }
        let names: Vec<&str> = net.layer_names().collect();
        let params: Vec<_> = net.learnable_params().collect();
        let mut blobs = Vec::with_capacity(history.len());
        for (proto, param) in history.iter().zip(params.iter().cycle()) {
            let mut blob = Blob::new(net.device(), param.blob().shape())?;
            blob.from_proto(proto, false).map_err(|error| {
                let layer = names.get(param.layer).unwrap_or(&"");
                error.context(format!("history of parameter {} of layer `{layer}`", param.index))
            })?;
            blobs.push(blob);
        }
        Ok(blobs)
    }

    /// Replaces the history blobs with `history`, the result of
    /// [`read_history`](Self::read_history).
    pub(super) fn set_history(&mut self, history: Vec<Blob<T::Acc>>) {
        let mut history = history.into_iter();
        for i in 0..self.histories {
            for (state, blob) in self.params.iter_mut().zip(&mut history) {
                state.history[i] = blob;
            }
        }
    }

    /// Replaces the 16-bit weights in `message`, which contains the net's weights, with master
    /// weights. If a weight differs from its rounded master weight, the caller has changed the
    /// weight, and the method does not replace it.
    pub(super) fn write_masters(&self, net: &Net<T>, message: &mut NetParameter) -> Result<()> {
        let ids: Vec<_> = net.learnable_params().map(|param| (param.layer, param.index)).collect();
        for param in net.params() {
            let owner = param.owner.and_then(|owner| net.params().get(owner)).unwrap_or(param);
            let index = ids.iter().position(|id| *id == (owner.layer, owner.index));
            let masters = index.and_then(|index| self.params[index].masters.as_ref());
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

    /// Sets the master weights to the weights in `message`. The caller has already copied the
    /// weights in `message` to the net.
    pub(super) fn read_masters(&mut self, net: &Net<T>, message: &NetParameter) -> Result<()> {
        let names: Vec<&str> = net.layer_names().collect();
        for (param, state) in net.learnable_params().zip(&mut self.params) {
            let is_same = |layer: &&LayerParameter| names.get(param.layer) == Some(&layer.name());
            let layer = message.layer.iter().find(is_same);
            let proto = layer.and_then(|layer| layer.blobs.get(param.index));
            if let (Some(masters), Some(proto)) = (&mut state.masters, proto) {
                masters.from_proto(proto, false)?;
            }
        }
        Ok(())
    }
}
