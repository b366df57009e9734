//! Which gradients a net has to compute.

use super::Net;
use crate::{device::Device, element::Element};
use std::collections::HashSet;

impl<T: Element, D: Device> Net<T, D> {
    /// Leaves out what does not reach the objective, and what nothing below needs: walks the
    /// layers from the last to the first.
    pub(super) fn prune_backward(&mut self) {
        let Self { steps, blobs, .. } = self;
        // By name, as in Caffe: an in-place chain is one blob.
        let mut under_loss: HashSet<&str> = HashSet::new();
        let mut skipped: HashSet<&str> = HashSet::new();
        for step in steps.iter_mut().rev() {
            let name = |&id: &usize| blobs[id].name.as_str();
            let weighted = step.loss_weights.iter().any(|&weight| weight != 0.0);
            let contributes = weighted || step.tops.iter().any(|id| under_loss.contains(name(id)));
            let unwanted = step.tops.iter().all(|id| skipped.contains(name(id)));
            if step.backward && unwanted {
                step.backward = false;
                step.propagate_bottoms.fill(false);
            }
            if !contributes {
                step.backward = false;
                step.propagate_bottoms.fill(false);
            }
            for (id, &propagates) in step.bottoms.iter().zip(&step.propagate_bottoms) {
                if contributes {
                    under_loss.insert(name(id));
                }
                if !propagates {
                    skipped.insert(name(id));
                }
            }
        }
    }

    /// Computes every gradient there is, as `force_backward` asks.
    pub(super) fn force_backward(&mut self) {
        for step in &mut self.steps {
            step.backward = true;
            for (index, propagates) in step.propagate_bottoms.iter_mut().enumerate() {
                *propagates |= step.layer.allow_force_backward(index);
            }
            step.propagate_params.fill(true);
        }
    }
}
