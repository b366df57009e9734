//! Magnitudes of all that a pass computes: Caffe's `debug_info`.

use super::{Event, Solver, TracedBlob};
use crate::{blob::Blob, device::Device, element::Element, error::Result, net::Net};

impl<T: Element, D: Device> Solver<T, D> {
    /// One forward and one backward pass, told layer by layer; returns the objective.
    pub(super) fn traced_pass(&mut self) -> Result<f64> {
        let Self { nets, observers, .. } = self;
        let mut tell = |event: &Event<'_>| observers.iter_mut().for_each(|observe| observe(event));
        let net = &mut nets.train;
        let loss = forward(net, &mut tell)?;
        let layers = net.layer_names().len();
        for layer in (0..layers).rev() {
            net.backward_layers(layer..layer + 1)?;
            told_backward(net, layer, &mut tell)?;
        }
        let (mut l1, mut squares) = ([0.0; 2], [0.0; 2]);
        for param in net.learnable_params() {
            let blob = param.blob();
            for (sum, of) in l1.iter_mut().zip([blob.asum_data()?, blob.asum_diff()?]) {
                *sum += of.to_f64();
            }
            for (sum, of) in squares.iter_mut().zip([blob.sumsq_data()?, blob.sumsq_diff()?]) {
                *sum += of.to_f64();
            }
        }
        tell(&Event::Norms { l1, l2: squares.map(f64::sqrt) });
        Ok(loss)
    }

    /// One forward pass of a test net, told layer by layer; returns the objective.
    pub(super) fn traced_test(&mut self, index: usize) -> Result<f64> {
        let Self { nets, observers, .. } = self;
        let mut tell = |event: &Event<'_>| observers.iter_mut().for_each(|observe| observe(event));
        forward(&mut nets.tests[index].net, &mut tell)
    }
}

fn forward<T: Element, D: Device>(
    net: &mut Net<T, D>,
    tell: &mut impl FnMut(&Event<'_>),
) -> Result<f64> {
    let layers = net.layer_names().len();
    let mut loss = 0.0;
    for layer in 0..layers {
        loss += net.forward_layers(layer..layer + 1)?;
        told_forward(net, layer, tell)?;
    }
    Ok(loss)
}

#[doc(alias = "ForwardDebugInfo")]
fn told_forward<T: Element, D: Device>(
    net: &Net<T, D>,
    place: usize,
    tell: &mut impl FnMut(&Event<'_>),
) -> Result<()> {
    let layer = net.layer_names().nth(place).unwrap_or_default();
    let (_, tops) = net.bottoms_and_tops(place).unwrap_or_default();
    for name in tops {
        let Some(blob) = net.blob(name) else { continue };
        let mean = per_element(blob.asum_data()?, blob);
        tell(&Event::Traced { layer, what: TracedBlob::Top, name, mean });
    }
    for param in net.params().iter().filter(|param| param.layer == place) {
        let mean = per_element(param.blob().asum_data()?, param.blob());
        tell(&Event::Traced { layer, what: TracedBlob::Param, name: &param.name, mean });
    }
    Ok(())
}

#[doc(alias = "BackwardDebugInfo")]
fn told_backward<T: Element, D: Device>(
    net: &Net<T, D>,
    place: usize,
    tell: &mut impl FnMut(&Event<'_>),
) -> Result<()> {
    let layer = net.layer_names().nth(place).unwrap_or_default();
    let (bottoms, _) = net.bottoms_and_tops(place).unwrap_or_default();
    let (backward, needed) = net.needs_backward(place).unwrap_or_default();
    if !backward {
        return Ok(());
    }
    for (name, _) in bottoms.into_iter().zip(needed).filter(|(_, needed)| **needed) {
        let Some(blob) = net.blob(name) else { continue };
        let mean = per_element(blob.asum_diff()?, blob);
        tell(&Event::Traced { layer, what: TracedBlob::BottomDiff, name, mean });
    }
    let learns = |lr_mult: Option<f32>| lr_mult != Some(0.0);
    let params = net.params().iter().filter(|param| param.layer == place);
    for param in params.filter(|param| learns(param.lr_mult)) {
        let mean = per_element(param.blob().asum_diff()?, param.blob());
        let name = &param.index.to_string();
        tell(&Event::Traced { layer, what: TracedBlob::ParamDiff, name, mean });
    }
    Ok(())
}

fn per_element<T: Element, D: Device>(sum: T::Acc, blob: &Blob<T, D>) -> f64 {
    sum.to_f64() / blob.count() as f64
}
