//! Runs every benchmark case with every library, on one thread and on two threads.

use cortado::host::Workers;
use cortado_peers::{Peers, Work, cases};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;

fn peers(c: &mut Criterion) {
    let peers = Peers::find();
    for threads in [1, 2] {
        let workers = Workers::new(threads).expect("threads start");
        peers.set_threads(threads);
        for case in cases() {
            let mut group = c.benchmark_group(format!("{}/{threads}", case.group));
            group.throughput(match case.work {
                Work::Flops(flops) => Throughput::Elements(flops),
                Work::Bytes(bytes) => Throughput::Bytes(bytes),
            });
            for mut run in (case.runs)(&peers, &workers) {
                let id = BenchmarkId::new(run.library, &case.name);
                group.bench_function(id, |bencher| bencher.iter(|| (run.call)()));
            }
        }
    }
}

/// Returns a Criterion configuration with a short measurement time per case, because there are many
/// cases.
fn config() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
}

criterion_group! {
    name = benches;
    config = config();
    targets = peers
}
criterion_main!(benches);
