//! The states of a net's layers, which a snapshot saves and a resumed run restores.

use super::graph::Net;
use crate::{
    element::{Element, compiled_for},
    error::Result,
    limits,
    proto::{LayerState, NetRunState},
};
use std::collections::BTreeMap;

impl<T: Element> Net<T> {
    /// Returns the states of all layers that have a state besides their parameters: the position of
    /// a data layer in its source, the number of random number streams that a Dropout layer has
    /// used, or the hidden state of an LSTM layer.
    ///
    /// ```
    /// use cortado::{prelude::*, proto::parse_text};
    ///
    /// let text = r#"layer { name: "data" type: "Data" top: "image" top: "label"
    ///     data_param { source: "digits:test?count=100" batch_size: 10 } }"#;
    /// let build = || Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?);
    /// let (mut net, mut resumed_net) = (build()?, build()?);
    /// net.forward()?;
    /// assert_eq!(net.run_state()?.layer[0].position(), 10); // the next record
    /// resumed_net.set_run_state(&net.run_state()?)?;
    /// net.forward()?;
    /// resumed_net.forward()?;
    /// let image = |net: &Net<f32>| net.blob("image").unwrap().to_vec();
    /// assert_eq!(image(&net)?, image(&resumed_net)?);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`Layer::state`](crate::layer::Layer::state). Each error gives the
    /// layer's name and type.
    pub fn run_state(&self) -> Result<NetRunState> {
        let mut layer = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let state = node.layer.state().map_err(|error| self.in_layer(index, error))?;
            let name = || Some(node.param.name().to_owned());
            layer.extend(state.map(|state| LayerState { name: name(), ..state }));
        }
        Ok(NetRunState { layer })
    }

    /// Restores the states of the layers from `state`. A layer without an entry in `state` keeps
    /// its current state. If a layer has several entries, the last one applies. Logs warnings
    /// for entries whose layers are not in the net.
    ///
    /// # Errors
    /// Returns any error from [`Layer::set_state`](crate::layer::Layer::set_state). Each error
    /// gives the layer's name and type. In case of an error, the states of preceding layers are
    /// already restored.
    pub fn set_run_state(&mut self, state: &NetRunState) -> Result<()> {
        compiled_for!(T, fn(&mut Net<T>, &NetRunState) -> Result<()> = Net::restore_layers)(
            self, state,
        )
    }

    /// Changes the states of all layers as `passes` forward passes would, without computing anything.
    /// Returns `false`, without any change, if a layer of the net cannot
    /// [skip passes](crate::layer::Layer::skip_passes).
    ///
    /// ```
    /// use cortado::{prelude::*, proto::parse_text};
    ///
    /// let text = r#"layer { name: "data" type: "Data" top: "image" top: "label"
    ///     data_param { source: "digits:test?count=100" batch_size: 10 } }"#;
    /// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
    /// assert!(net.skip_passes(3)?);
    /// assert_eq!(net.run_state()?.layer[0].position(), 30); // the next record
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from the layers. Each error gives the layer's name and type.
    pub fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        for passes in [0, passes] {
            for index in 0..self.nodes.len() {
                let outcome = self.nodes[index].layer.skip_passes(passes);
                if !outcome.map_err(|error| self.in_layer(index, error))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn restore_layers(&mut self, state: &NetRunState) -> Result<()> {
        let (mut states, mut unknown_count) = (BTreeMap::new(), 0);
        for state in &state.layer {
            match self.layer_index(state.name()) {
                // Restoring the state of a data layer opens its source, so restore each layer only
                // once.
                Some(index) => drop(states.insert(index, state)),
                None => {
                    unknown_count += 1;
                    if unknown_count <= limits::WARNINGS {
                        log::warn!("no layer `{}`: its state is not restored", state.name());
                    }
                }
            }
        }
        if unknown_count > limits::WARNINGS {
            let omitted_count = unknown_count - limits::WARNINGS;
            log::warn!("{omitted_count} more states of layers that the net does not have");
        }
        for (index, state) in states {
            let outcome = self.nodes[index].layer.set_state(state);
            outcome.map_err(|error| self.in_layer(index, error))?;
        }
        Ok(())
    }
}
