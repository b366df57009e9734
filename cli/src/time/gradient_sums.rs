//! Times of the sums of gradients over several processes.

use cortado::{
    communicator::{Communicator, sum_tree},
    error::Result,
    net::Net,
};
use std::time::Instant;

/// Adds as many values as `net` has gradients over all processes, `count` times after one untimed
/// sum. Returns the time of each sum in seconds.
pub(super) fn time_gradient_sums(
    communicator: &mut dyn Communicator,
    net: &Net<f32>,
    count: u32,
) -> Result<Vec<f64>> {
    let len = net.learnable_params().map(|param| param.blob().count()).sum();
    let mut values = vec![0f32; len];
    sum_tree(communicator, &mut values)?;
    let mut times = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        sum_tree(communicator, &mut values)?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}
