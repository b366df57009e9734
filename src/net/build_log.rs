//! How a net is built, told to the log in Caffe's words at the level of debugging.

use super::{Net, NetLayer};
use crate::{device::Device, element::Element};
use log::debug;

/// Tells how the newest layer is wired and which shapes it gives its tops.
pub(super) fn layer<T: Element, D: Device>(net: &Net<T, D>) {
    let Some(NetLayer { param, bottoms, tops, loss_weights, .. }) = net.steps.last() else {
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
        debug!("Top shape: {}", net.blobs[id].blob.shape());
        if weight != 0.0 {
            debug!("    with loss weight {weight}");
        }
    }
}

/// Tells which layers have a backward pass and what the net puts out.
pub(super) fn net<T: Element, D: Device>(net: &Net<T, D>) {
    for NetLayer { param, backward, .. } in net.steps.iter().rev() {
        let needs = if *backward { "needs" } else { "does not need" };
        debug!("{} {needs} backward computation.", param.name());
    }
    for (name, ..) in net.outputs() {
        debug!("This network produces output {name}");
    }
    debug!("Network initialization done.");
}
