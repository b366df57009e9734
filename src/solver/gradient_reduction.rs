//! The mean of the gradients of all shards, which the solver computes while the backward pass runs.

use super::{
    nets::Nets,
    processes::{Pending, Processes},
};
use crate::{
    blob::Blob, device::AnyDevice, element::Element, error::Result, kernel::traits::*, net::Net,
};
use std::ops::Range;

/// The number of bytes of gradients from which the solver starts an exchange. Smaller buckets leave
/// earlier, but each bucket costs 2·log₂ P times the latency of an exchange. The bits of the sums do
/// not depend on the buckets, because a sum of gradients is computed element by element.
const BUCKET_BYTES: usize = 1 << 20;

/// The gradients of the train nets of a process, which are added as soon as a layer's backward pass
/// in the last net is complete, and then sent to the other processes in buckets.
pub(super) struct GradientReduction<T: Element> {
    device: AnyDevice,
    /// The gradients in the order in which the backward pass completes them.
    gradients: Vec<Gradient<T>>,
    /// The number of gradients that are complete.
    complete: usize,
    /// The values of complete gradients that have not been sent yet, and the first of these
    /// gradients.
    bucket: Vec<T>,
    bucket_start: usize,
    sent: Vec<Bucket<T>>,
}

/// The gradients of one parameter in each train net of the process.
struct Gradient<T: Element> {
    /// The first layer that uses the parameter: the backward pass reaches this layer last.
    layer: usize,
    blobs: Vec<Blob<T>>,
}

/// The sums of some of the gradients over all processes.
struct Bucket<T: Element> {
    gradients: Range<usize>,
    sums: Pending<Vec<T>>,
}

impl<T: Element> GradientReduction<T> {
    /// Prepares the reduction of the gradients of the next backward pass. In a run with one shard,
    /// there is nothing to reduce.
    pub(super) fn new(nets: &Nets<T>, shards: usize) -> Self {
        let mut gradients = Vec::new();
        if shards > 1 {
            let mut params: Vec<_> =
                nets.shards().map(|net: &Net<T>| net.params_with_gradients()).collect();
            while let Some(of_nets) =
                params.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>()
            {
                let blobs = of_nets.iter().map(|param| param.blob().share()).collect();
                let layer = of_nets.first().map_or(0, |param| param.layer);
                gradients.push(Gradient { layer, blobs });
            }
        }
        gradients.reverse();
        Self {
            device: nets.train.device().clone(),
            gradients,
            complete: 0,
            bucket: Vec::new(),
            bucket_start: 0,
            sent: Vec::new(),
        }
    }

    /// Adds the gradients of the layers from index `layer` on, whose backward passes are complete.
    /// Starts to send the sums to the other processes.
    pub(super) fn after_layer(&mut self, layer: usize, processes: &Processes) -> Result<()> {
        while let Some(gradient) = self.gradients.get(self.complete) {
            if gradient.layer < layer {
                break;
            }
            gradient.add(&self.device)?;
            self.complete += 1;
            if processes.size() > 1 {
                self.bucket.extend_from_slice(gradient.blobs[0].diff()?.host()?);
                if size_of_val(&self.bucket[..]) >= BUCKET_BYTES {
                    self.send(processes)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, processes: &Processes) -> Result<()> {
        let gradients = self.bucket_start..self.complete;
        if !gradients.is_empty() {
            let sums = processes.start_sum(std::mem::take(&mut self.bucket))?;
            self.sent.push(Bucket { gradients, sums });
            self.bucket_start = self.complete;
        }
        Ok(())
    }

    /// Waits for the sums, and replaces the gradients of the first train net of the process by the
    /// means over all shards.
    pub(super) fn finish(mut self, processes: &mut Processes, shards: usize) -> Result<()> {
        self.after_layer(0, processes)?;
        if processes.size() > 1 {
            self.send(processes)?;
        }
        for Bucket { gradients, sums } in self.sent {
            let sums = processes.wait(sums)?;
            let mut sums = &sums[..];
            for gradient in &self.gradients[gradients] {
                let blob = &gradient.blobs[0];
                let (first, rest) = sums.split_at(blob.count());
                blob.diff_mut()?.host_write_only()?.copy_from_slice(first);
                sums = rest;
            }
        }
        let scale = T::acc(1.0 / shards as f64);
        self.gradients.iter().try_for_each(|gradient| {
            self.device.scal(scale, gradient.blobs[0].diff_mut()?.view_mut())
        })
    }
}

impl<T: Element> Gradient<T> {
    /// Adds the gradients of the train nets along the binary tree over shards, into the gradient of
    /// the first net.
    fn add(&self, device: &AnyDevice) -> Result<()> {
        let mut distance = 1;
        while distance < self.blobs.len() {
            for pair in self.blobs.chunks(2 * distance) {
                let (mut lower, upper) = (pair[0].diff_mut()?, pair[distance].diff()?);
                device.axpy(T::acc(1.0), upper.view(), lower.view_mut())?;
            }
            distance *= 2;
        }
        Ok(())
    }
}
