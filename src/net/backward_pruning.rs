//! Selection of the gradients that a net computes in its backward pass.

use super::graph::Net;
use crate::element::Element;
use std::collections::HashSet;

impl<T: Element> Net<T> {
    /// Disables the backward pass of each layer that does not contribute to the objective, and of
    /// each layer whose top gradients no later layer computes. `prune_backward` visits the layers
    /// from the last to the first.
    pub(super) fn prune_backward(&mut self) {
        let Self { nodes, blobs, .. } = self;
        // Identify blobs by name, as Caffe does, because all tops of a chain of in-place layers
        // have the same name.
        let mut contributing_blobs: HashSet<&str> = HashSet::new();
        let mut skipped_blobs: HashSet<&str> = HashSet::new();
        for node in nodes.iter_mut().rev() {
            let name = |&id: &usize| blobs[id].name.as_str();
            let has_loss_weight = node.loss_weights.iter().any(|&weight| weight != 0.0);
            let contributes =
                has_loss_weight || node.tops.iter().any(|id| contributing_blobs.contains(name(id)));
            let all_skipped = node.tops.iter().all(|id| skipped_blobs.contains(name(id)));
            if !contributes || node.backward && all_skipped {
                node.backward = false;
                node.propagate_bottoms.fill(false);
            }
            for (id, &propagates) in node.bottoms.iter().zip(&node.propagate_bottoms) {
                if contributes {
                    contributing_blobs.insert(name(id));
                }
                if !propagates {
                    skipped_blobs.insert(name(id));
                }
            }
        }
    }

    /// Enables the gradients of all parameters, and of all bottoms for which
    /// [`Layer::allow_force_backward`](crate::layer::Layer::allow_force_backward) returns `true`.
    /// `Net::force_backward` runs if the net's definition sets the field `force_backward`.
    pub(super) fn force_backward(&mut self) {
        for node in &mut self.nodes {
            node.backward = true;
            for (index, propagates) in node.propagate_bottoms.iter_mut().enumerate() {
                *propagates |= node.layer.allow_force_backward(index);
            }
            node.propagate_params.fill(true);
        }
    }
}
