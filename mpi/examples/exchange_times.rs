//! Measures exchanges between the processes of a run: the time of a short exchange, the rate of a
//! long exchange, and the time to add the gradients of a net along the tree.
//!
//! ```sh
//! cargo build --release -p cortado-mpi --example exchange_times
//! mpiexec -n 2 target/release/examples/exchange_times
//! ```

use cortado::{
    Result,
    communicator::{Communicator, sum_tree},
};
use cortado_mpi::{Mpi, MpiCommunicator};
use std::time::Instant;

/// Numbers of `f32` values: from one value to the 61 million parameters of AlexNet.
const COUNTS: [usize; 6] = [1, 256, 16_384, 431_080, 6_998_552, 60_965_224];

fn main() -> Result<()> {
    let (mpi, mut communicator) = Mpi::init()?;
    if mpi.rank() == 0 {
        println!("{} processes, {}", mpi.size(), mpi.library_version());
        println!("{:>10}  {:>12}  {:>8}  {:>12}", "values", "exchange/µs", "GB/s", "tree sum/µs");
    }
    for count in COUNTS {
        let [exchange, sum] = median_times(&mut communicator, count)?;
        if mpi.rank() == 0 {
            let rate = 4e-9 * count as f64 / exchange;
            println!("{count:10}  {:12.1}  {rate:8.3}  {:12.1}", 1e6 * exchange, 1e6 * sum);
        }
    }
    drop(communicator);
    mpi.finalize()
}

/// Returns the median times, in seconds, of an exchange of `count` values with the neighbour, and of
/// the sum of `count` values over all processes.
fn median_times(communicator: &mut MpiCommunicator, count: usize) -> Result<[f64; 2]> {
    let repetitions = (20_000_000 / (count + 1000)).clamp(3, 1001);
    let mut values = vec![1f32; count];
    let bytes = vec![0u8; 4 * count];
    let mut received = bytes.clone();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        let peer = communicator.rank() ^ 1;
        if peer < communicator.size() {
            let start = Instant::now();
            communicator.exchange(peer, &bytes, &mut received)?;
            times[0].push(start.elapsed().as_secs_f64());
        }
        values.fill(1.0);
        let start = Instant::now();
        sum_tree(communicator, &mut values)?;
        times[1].push(start.elapsed().as_secs_f64());
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }))
}
