//! Loom tests of the thread pool. loom fails a test in which a thread outlives the pool, threads
//! deadlock, or a thread accesses a result without synchronization.

use crate::preemptions;
use cortado::host::Workers;
use loom::{
    cell::Cell,
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// Runs a parallel region of two tasks, and checks the results.
fn run_region(workers: &Workers, round: usize) {
    let mut results = [Cell::new(0), Cell::new(0)];
    workers.for_each_chunk(&mut results, 1, |i, result| result[0].set(round + i));
    assert_eq!(results.each_ref().map(Cell::get), [round, round + 1]);
}

#[test]
fn a_caller_receives_every_result_and_the_pool_thread_ends() {
    preemptions(3, || {
        let workers = Workers::new(2).unwrap();
        run_region(&workers, 1);
        run_region(&workers, 5);
    });
}

/// The caller must wake a sleeping pool thread, because each of the two tasks waits for the other
/// task.
#[test]
fn a_pool_thread_joins_the_region_whether_it_sleeps_or_not() {
    preemptions(3, || {
        let workers = Workers::new(2).unwrap();
        for _ in 0..2 {
            let (tasks, started) = (Mutex::new(0), Condvar::new());
            workers.run(2, |_| {
                let mut tasks = tasks.lock().unwrap();
                *tasks += 1;
                started.notify_one();
                while *tasks < 2 {
                    tasks = started.wait(tasks).unwrap();
                }
            });
        }
    });
}

#[test]
fn two_callers_share_a_pool_thread() {
    preemptions(2, || {
        let workers = Arc::new(Workers::new(2).unwrap());
        let shared = Arc::clone(&workers);
        let other = thread::spawn(move || run_region(&shared, 1));
        run_region(&workers, 5);
        other.join().unwrap();
    });
}

#[test]
fn a_caller_shares_its_region_with_two_pool_threads() {
    preemptions(2, || {
        let workers = Workers::new(3).unwrap();
        run_region(&workers, 1);
    });
}
