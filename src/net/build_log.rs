//! Debug log messages about the construction of a net, in the wording of Caffe's log.

use super::graph::{Net, NetLayer};
use crate::element::Element;
use log::debug;

/// Logs the bottoms and tops of the last layer of `net`, with the shapes of the tops.
pub(super) fn log_layer<T: Element>(net: &Net<T>) {
    let Some(NetLayer { param, bottoms, tops, loss_weights, .. }) = net.nodes.last() else {
        return;
    };
    let name = param.name();
    for &id in bottoms {
        debug!("{name} <- {}", net.blobs[id].name);
    }
    for &id in tops {
        let in_place = if bottoms.contains(&id) { " (in-place)" } else { "" };
        debug!("{name} -> {}{in_place}", net.blobs[id].name);
    }
    for (&id, &weight) in tops.iter().zip(loss_weights) {
        let shape = net.blobs[id].blob.shape();
        let extents: String = shape.iter().map(|extent| format!("{extent} ")).collect();
        debug!("Top shape: {extents}({})", shape.count());
        if weight != 0.0 {
            debug!("    with loss weight {weight}");
        }
    }
}

pub(super) fn log_net<T: Element>(net: &Net<T>) {
    for NetLayer { param, backward, .. } in net.nodes.iter().rev() {
        let needs_text = if *backward { "needs" } else { "does not need" };
        debug!("{} {needs_text} backward computation.", param.name());
    }
    for (name, ..) in net.outputs() {
        debug!("This network produces output {name}");
    }
    debug!("Network initialization done.");
}
