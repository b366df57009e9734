//! Training of LeNet on the digits example, for tests that compare devices.

use cortado::{
    CpuDevice, Device, Result, Solver,
    proto::{self, SolverParameter},
    solver::Event,
};
use std::sync::{Arc, LazyLock, Mutex};

/// Result of a training run: losses of all iterations, and the final weights.
pub(crate) type Trained = (Vec<f64>, Vec<f32>);

pub(crate) static ON_ONE_THREAD: LazyLock<Trained> =
    LazyLock::new(|| train_digits(&CpuDevice::with_threads(1).unwrap()).unwrap());

/// Trains the LeNet of the digits example for four iterations, in batches of 8.
pub(crate) fn train_digits(device: &impl Device) -> Result<Trained> {
    let mut net = proto::read_net("examples/digits/lenet.prototxt")?;
    if let Some(data) = &mut net.layer[0].data_param {
        data.batch_size = Some(8);
    }
    let mut param: SolverParameter = proto::read_solver("examples/digits/solver.prototxt")?;
    (param.net, param.train_net_param, param.test_iter) = (None, Some(net), Vec::new());
    param.snapshot_after_train = Some(false);
    let mut solver = Solver::<f32>::new(param, device)?;
    let losses = Arc::new(Mutex::new(Vec::new()));
    let recorded_losses = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            recorded_losses.lock().unwrap().push(*loss);
        }
    });
    solver.step(4)?;
    let mut weights = Vec::new();
    for param in solver.net().learnable_params() {
        weights.extend_from_slice(param.blob().data()?.host()?);
    }
    let losses = losses.lock().unwrap().clone();
    Ok((losses, weights))
}
