//! The mean of the gradients of all shards, which the solver computes while the backward pass runs.

use super::{
    nets::Nets,
    processes::{Pending, Processes},
};
use crate::{
    blob::Blob,
    communicator::{Communicator, scaled_sum_tree},
    device::AnyDevice,
    element::Element,
    error::Result,
    kernel::traits::*,
    net::Net,
};

/// The size in bytes from which a gradient is exchanged on its own, in place. Smaller gradients
/// wait for the gradients of further layers, and are copied to a bucket of at least this number of
/// bytes, because each exchange among P processes costs 2·log₂ P times the latency of a message.
/// The limit is the length of the pieces of [`scaled_sum_tree`]: a longer bucket would only be sent
/// later, and would still be split into pieces.
const BUCKET_BYTES: usize = 1 << 20;

/// The gradients of the train nets of a process, which are added as soon as a layer's backward pass
/// in the last net is complete, and then averaged over all processes on the communication thread.
pub(super) struct GradientReduction<T: Element> {
    device: AnyDevice,
    /// The gradients in the order in which the backward pass completes them.
    gradients: Vec<Gradient<T>>,
    /// The number of gradients that are complete.
    complete: usize,
    /// The factor by which the sums over all shards are multiplied: one divided by the number of
    /// shards.
    scale: T::Acc,
    /// Complete gradients below [`BUCKET_BYTES`] that have not been sent yet, and their total size
    /// in bytes.
    bucket: Vec<Blob<T>>,
    bucket_bytes: usize,
    sent: Vec<Pending<()>>,
}

/// The gradients of one parameter in each train net of the process.
struct Gradient<T: Element> {
    /// The first layer that uses the parameter: the backward pass reaches this layer last.
    layer: usize,
    blobs: Vec<Blob<T>>,
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
            scale: T::acc(1.0 / shards as f64),
            bucket: Vec::new(),
            bucket_bytes: 0,
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
                let blob = gradient.blobs[0].share();
                // Download the gradient on this thread, which uses the device, so that the
                // communication thread accesses only the host side.
                blob.diff()?.host()?;
                self.send(blob, processes)?;
            }
        }
        Ok(())
    }

    /// Sends a gradient, or adds a small gradient to the bucket and sends a full bucket.
    fn send(&mut self, gradient: Blob<T>, processes: &Processes) -> Result<()> {
        let bytes = gradient.count() * size_of::<T>();
        if bytes >= BUCKET_BYTES {
            return self.send_all(vec![gradient], processes);
        }
        self.bucket.push(gradient);
        self.bucket_bytes += bytes;
        if self.bucket_bytes >= BUCKET_BYTES { self.send_bucket(processes) } else { Ok(()) }
    }

    fn send_bucket(&mut self, processes: &Processes) -> Result<()> {
        self.bucket_bytes = 0;
        match std::mem::take(&mut self.bucket) {
            bucket if bucket.is_empty() => Ok(()),
            bucket => self.send_all(bucket, processes),
        }
    }

    fn send_all(&mut self, gradients: Vec<Blob<T>>, processes: &Processes) -> Result<()> {
        let scale = self.scale;
        let means = processes.start(move |communicator| average(communicator, &gradients, scale));
        self.sent.push(means?);
        Ok(())
    }

    /// Waits until the gradients of the first train net of the process are the means over all
    /// shards.
    pub(super) fn finish(mut self, processes: &mut Processes) -> Result<()> {
        self.after_layer(0, processes)?;
        if processes.size() > 1 {
            self.send_bucket(processes)?;
            return self.sent.into_iter().try_for_each(|means| processes.wait(means));
        }
        self.gradients.iter().try_for_each(|gradient| {
            self.device.scal(self.scale, gradient.blobs[0].diff_mut()?.view_mut())
        })
    }
}

/// Replaces the gradients by their sums over all processes, times `scale`. Several gradients are
/// copied to one buffer, so that they take one exchange; a single gradient is not copied.
fn average<T: Element>(
    communicator: &mut dyn Communicator,
    gradients: &[Blob<T>],
    scale: T::Acc,
) -> Result<()> {
    if let [gradient] = gradients {
        return scaled_sum_tree(communicator, gradient.diff_mut()?.host_mut()?, scale);
    }
    let mut values = Vec::with_capacity(gradients.iter().map(Blob::count).sum());
    for gradient in gradients {
        values.extend_from_slice(gradient.diff()?.host()?);
    }
    scaled_sum_tree(communicator, &mut values, scale)?;
    let mut means = &values[..];
    for gradient in gradients {
        let (first, rest) = means.split_at(gradient.count());
        gradient.diff_mut()?.host_write_only()?.copy_from_slice(first);
        means = rest;
    }
    Ok(())
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
