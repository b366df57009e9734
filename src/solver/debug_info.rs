//! Caffe's `debug_info`: the mean absolute values of each layer's blobs after a forward or backward
//! pass.

use super::{
    event::{Event, TracedBlob},
    training_run::{Observers, Solver},
};
use crate::{blob::Blob, element::Element, error::Result, net::Net};

impl<T: Element> Solver<T> {
    /// Runs a forward and a backward pass and reports the mean absolute values of each layer's
    /// blobs. Returns the objective.
    pub(super) fn traced_pass(&mut self) -> Result<f64> {
        let (net, observers) = (&mut self.nets.train, &mut self.observers);
        let loss = forward(net, observers)?;
        let layers = 0..net.layer_names().len();
        for layer in layers.rev() {
            net.backward_layers(layer..layer + 1)?;
            trace_backward(net, layer, observers)?;
        }
        let (mut l1, mut squares) = ([0.0; 2], [0.0; 2]);
        for param in net.learnable_params() {
            let blob = param.blob();
            for (sum, value) in l1.iter_mut().zip([blob.asum_data()?, blob.asum_diff()?]) {
                *sum += value.to_f64();
            }
            for (sum, value) in squares.iter_mut().zip([blob.sumsq_data()?, blob.sumsq_diff()?]) {
                *sum += value.to_f64();
            }
        }
        observers.notify(&Event::Norms { l1, l2: squares.map(f64::sqrt) });
        Ok(loss)
    }

    /// Runs a forward pass of a test net and reports the mean absolute values of each layer's
    /// blobs. Returns the objective.
    pub(super) fn traced_test(&mut self, index: usize) -> Result<f64> {
        forward(&mut self.nets.tests[index].net, &mut self.observers)
    }
}

fn forward<T: Element>(net: &mut Net<T>, observers: &mut Observers) -> Result<f64> {
    let mut loss = 0.0;
    let layers = 0..net.layer_names().len();
    for layer in layers {
        loss += net.forward_layers(layer..layer + 1)?;
        trace_forward(net, layer, observers)?;
    }
    Ok(loss)
}

#[doc(alias = "ForwardDebugInfo")]
fn trace_forward<T: Element>(net: &Net<T>, index: usize, observers: &mut Observers) -> Result<()> {
    let layer = net.layer_names().nth(index).unwrap_or_default();
    let mut notify = |what, name: &str, blob: &Blob<T>| {
        let mean = blob.asum_data()?.to_f64() / blob.count() as f64;
        observers.notify(&Event::Traced { layer, what, name, mean });
        Ok(())
    };
    let (_, tops) = net.bottoms_and_tops(index).unwrap_or_default();
    for name in tops {
        let Some(blob) = net.blob(name) else { continue };
        notify(TracedBlob::Top, name, blob)?;
    }
    let mut params = net.params().iter().filter(|param| param.layer == index);
    params.try_for_each(|param| notify(TracedBlob::Param, &param.name, param.blob()))
}

#[doc(alias = "BackwardDebugInfo")]
fn trace_backward<T: Element>(net: &Net<T>, index: usize, observers: &mut Observers) -> Result<()> {
    let layer = net.layer_names().nth(index).unwrap_or_default();
    let mut notify = |what, name: &str, blob: &Blob<T>| {
        let mean = blob.asum_diff()?.to_f64() / blob.count() as f64;
        observers.notify(&Event::Traced { layer, what, name, mean });
        Ok(())
    };
    let (bottoms, _) = net.bottoms_and_tops(index).unwrap_or_default();
    let (backward, needed) = net.needs_backward(index).unwrap_or_default();
    if !backward {
        return Ok(());
    }
    for (name, _) in bottoms.into_iter().zip(needed).filter(|(_, needed)| **needed) {
        let Some(blob) = net.blob(name) else { continue };
        notify(TracedBlob::BottomDiff, name, blob)?;
    }
    let params = net.params().iter().filter(|param| param.layer == index);
    let mut trained_params = params.filter(|param| param.lr_mult != Some(0.0));
    trained_params
        .try_for_each(|param| notify(TracedBlob::ParamDiff, &param.index.to_string(), param.blob()))
}
