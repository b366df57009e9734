//! A backend from outside the crate: four memory methods, and every kernel by default on the
//! host side. It trains the LeNet of the examples with the CPU's bits.
#![cfg(feature = "net")]

use cortado::{CpuDevice, Device, Error, Memory, Net, Result, Solver, proto, solver::Event};
use std::sync::{Arc, Mutex};

// The backend starts here.

/// Memory that is reached only by copies.
#[derive(Clone, Debug)]
struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        let range = dst.get_mut(at..at + src.len());
        range.ok_or_else(|| Error::device("remote", "out of range"))?.copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        let range = src.get(at..at + dst.len());
        dst.copy_from_slice(range.ok_or_else(|| Error::device("remote", "out of range"))?);
        Ok(())
    }
}

cortado::families!(Remote);

// The backend ends here.

/// Losses of the first iterations of the digits example, in small batches, and all its weights
/// then.
fn train<D: Device>(device: &D, iterations: usize) -> (Vec<f64>, Vec<f32>) {
    let mut net = proto::read_net("examples/digits/lenet.prototxt").unwrap();
    net.layer[0].data_param.as_mut().unwrap().batch_size = Some(16);
    let mut param = proto::read_solver("examples/digits/solver.prototxt").unwrap();
    (param.net, param.train_net_param, param.test_iter) = (None, Some(net), Vec::new());
    param.snapshot_after_train = Some(false);
    let mut solver = Solver::<f32, D>::new(param, device).unwrap();
    let losses = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            seen.lock().unwrap().push(*loss);
        }
    });
    solver.step(iterations).unwrap();
    let losses = losses.lock().unwrap().clone();
    (losses, weights(solver.net()))
}

fn weights<D: Device>(net: &Net<f32, D>) -> Vec<f32> {
    let blobs =
        net.learnable_params().map(|param| param.blob().data().unwrap().host().unwrap().to_vec());
    blobs.collect::<Vec<_>>().concat()
}

#[test]
fn trains_lenet_with_the_losses_of_the_cpu() {
    let (losses, weights) = train(&CpuDevice::new(), 20);
    assert_eq!(losses.len(), 20);
    assert!(losses[19] < losses[0], "nothing was learned: {losses:?}");
    let (theirs, their_weights) = train(&Remote, 20);
    assert_eq!(losses, theirs);
    assert!(weights == their_weights, "weights differ");
}

#[test]
fn trains_with_the_same_bits_on_any_number_of_threads() {
    let one = train(&CpuDevice::with_threads(1).unwrap(), 5);
    for threads in [2, 3] {
        let more = train(&CpuDevice::with_threads(threads).unwrap(), 5);
        assert_eq!(one.0, more.0, "{threads} threads");
        assert!(one.1 == more.1, "weights differ on {threads} threads");
    }
}
