//! Training of the digits example.

use cortado::{
    Device, Result, Solver,
    proto::{self, SolverParameter},
    solver::Event,
};
use std::sync::{Arc, Mutex};

/// Trains the digits example's LeNet in batches of 16. Returns all losses and the final weights.
pub(crate) fn train_digits<D: Device>(
    device: &D,
    iterations: usize,
) -> Result<(Vec<f64>, Vec<f32>)> {
    let mut net = proto::read_net("examples/digits/lenet.prototxt")?;
    if let Some(data) = &mut net.layer[0].data_param {
        data.batch_size = Some(16);
    }
    let mut param: SolverParameter = proto::read_solver("examples/digits/solver.prototxt")?;
    (param.net, param.train_net_param, param.test_iter) = (None, Some(net), Vec::new());
    param.snapshot_after_train = Some(false);
    let mut solver = Solver::<f32>::new(param, device)?;
    let losses = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&losses);
    solver.add_observer(move |event| {
        if let Event::Iterated { loss, .. } = event {
            recorded.lock().unwrap().push(*loss);
        }
    });
    solver.step(iterations)?;
    let mut weights = Vec::new();
    for param in solver.net().learnable_params() {
        weights.extend_from_slice(param.blob().data()?.host()?);
    }
    let losses = losses.lock().unwrap().clone();
    Ok((losses, weights))
}
