//! Loom tests of the thread pool. loom fails a test in which a thread outlives the pool, threads
//! deadlock, or a thread accesses a result without synchronization.

use crate::check_with_preemptions;
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
    check_with_preemptions(3, || {
        let workers = Workers::new(2).unwrap();
        run_region(&workers, 1);
        run_region(&workers, 5);
    });
}

/// The caller must wake a sleeping pool thread, because each of the two tasks waits for the other
/// task.
#[test]
fn a_pool_thread_joins_the_region_whether_it_sleeps_or_not() {
    check_with_preemptions(3, || {
        let workers = Workers::new(2).unwrap();
        for _ in 0..2 {
            let (task_count, started) = (Mutex::new(0), Condvar::new());
            workers.run(2, |_| {
                let mut task_count = task_count.lock().unwrap();
                *task_count += 1;
                started.notify_one();
                while *task_count < 2 {
                    task_count = started.wait(task_count).unwrap();
                }
            });
        }
    });
}

#[test]
fn two_callers_share_a_pool_thread() {
    check_with_preemptions(2, || {
        let workers = Arc::new(Workers::new(2).unwrap());
        let shared_workers = Arc::clone(&workers);
        let handle = thread::spawn(move || run_region(&shared_workers, 1));
        run_region(&workers, 5);
        handle.join().unwrap();
    });
}

#[test]
fn a_caller_shares_its_region_with_two_pool_threads() {
    check_with_preemptions(2, || {
        let workers = Workers::new(3).unwrap();
        run_region(&workers, 1);
    });
}
