//! Tests of communicators of threads, and of the operations on values of all processes.

use super::{Communicator, ThreadCommunicator, all_gather, sum_tree};
#[cfg(feature = "net")]
use super::{gather_bytes, scaled_sum_tree};
use crate::{
    element::{Element, f16},
    error::{Error, Result},
};
use std::thread;

/// Runs `process` on one thread per process, and returns the results in the order of the ranks.
fn run<R: Send>(size: usize, process: impl Fn(ThreadCommunicator) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let start = |communicator| scope.spawn(|| process(communicator));
        let threads: Vec<_> = ThreadCommunicator::group(size).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns the `index`-th value of a process, whose sums round differently in another order.
fn value(rank: usize, index: usize) -> f32 {
    let hash = ((rank * 1009 + index) as u32).wrapping_mul(2_654_435_761);
    (hash as f32 / 2f32.powi(31) - 1.0) * 10f32.powi((hash % 7) as i32)
}

fn tree_sum<T: Element>(values: &[T]) -> T {
    match values {
        [value] => *value,
        _ => {
            let (lower, upper) = values.split_at(values.len() / 2);
            T::from_acc(tree_sum(lower).to_acc() + tree_sum(upper).to_acc())
        }
    }
}

fn check_sums<T: Element>(size: usize, count: usize) {
    let element = |rank, index| T::from_f64(value(rank, index).into());
    let sums = run(size, |mut communicator| {
        let rank = communicator.rank();
        let mut values: Vec<T> = (0..count).map(|index| element(rank, index)).collect();
        sum_tree(&mut communicator, &mut values).map(|()| values)
    });
    let expected = |index| {
        let values: Vec<T> = (0..size).map(|rank| element(rank, index)).collect();
        tree_sum(&values)
    };
    let expected: Vec<T> = (0..count).map(expected).collect();
    for found in sums {
        assert_eq!(T::bytes_of(&found.unwrap()), T::bytes_of(&expected), "{size} of {count}");
    }
}

#[test]
fn sums_of_all_processes_follow_the_binary_tree_over_ranks() {
    for size in [1, 2, 4, 8] {
        for count in [0, 1, 2, 3, 5, 8, 1000] {
            check_sums::<f32>(size, count);
            check_sums::<f64>(size, count);
            check_sums::<f16>(size, count);
        }
    }
}

/// The values are divided into pieces of 1 MiB, of which the last is shorter.
#[test]
fn sums_of_several_pieces_follow_the_binary_tree_over_ranks() {
    for size in [2, 4] {
        check_sums::<f32>(size, 600_001);
        check_sums::<f16>(size, 600_001);
    }
}

/// Some of the scaled sums are subnormal, so that the multiplication rounds.
#[cfg(feature = "net")]
#[test]
fn scaled_sums_are_rounded_before_and_after_the_multiplication() {
    let value = |rank: usize, index: usize| f16::from_f64((rank + 2) as f64 * 6e-8 * index as f64);
    for size in [1, 2, 4, 8] {
        let sums = run(size, |mut communicator| {
            let rank = communicator.rank();
            let mut values: Vec<f16> = (0..1001).map(|index| value(rank, index)).collect();
            scaled_sum_tree(&mut communicator, &mut values, 0.125).map(|()| values)
        });
        let expected = |index| {
            let values: Vec<f16> = (0..size).map(|rank| value(rank, index)).collect();
            f16::from_f64(tree_sum(&values).to_f64() / 8.0)
        };
        let expected: Vec<f16> = (0..1001).map(expected).collect();
        for found in sums {
            assert_eq!(found.unwrap(), expected, "{size} processes");
        }
    }
}

#[cfg(feature = "net")]
#[test]
fn gathered_bytes_are_in_the_order_of_ranks() {
    for size in [1, 2, 4, 8] {
        let expected: Vec<u8> = (0..size).map(|rank| 10 + rank as u8).collect();
        let gathered = run(size, |mut communicator| {
            let own = 10 + communicator.rank() as u8;
            gather_bytes(&mut communicator, own).unwrap()
        });
        assert_eq!(gathered, vec![expected; size]);
    }
}

#[test]
fn gathered_messages_are_in_the_order_of_ranks() {
    for size in [1, 2, 4, 8] {
        let message = |rank: usize| vec![rank as u8; (rank * 5) % 7];
        let expected: Vec<_> = (0..size).map(message).collect();
        let gathered = run(size, |mut communicator| {
            let own = message(communicator.rank());
            all_gather(&mut communicator, &own).unwrap()
        });
        assert_eq!(gathered, vec![expected; size]);
    }
}

#[test]
fn three_processes_are_refused() {
    let results = run(3, |mut communicator| {
        (sum_tree(&mut communicator, &mut [0f32]), all_gather(&mut communicator, &[]))
    });
    for (sum, messages) in results {
        let expected = "sum_tree: the number of processes must be a power of two, found 3";
        assert_eq!(sum.unwrap_err().to_string(), expected);
        assert!(matches!(messages, Err(Error::InvalidInput { op: "all_gather", .. })));
    }
}

#[test]
fn an_exchange_with_an_invalid_rank_fails() {
    let mut communicator = ThreadCommunicator::group(2).remove(0);
    for peer in [0, 2] {
        let error = communicator.exchange(peer, &[], &mut []).unwrap_err();
        assert!(error.to_string().contains("another process below 2"), "{error}");
    }
}

#[test]
fn an_exchange_of_unequal_lengths_fails_in_the_receiver() {
    let results: Vec<Result<()>> = run(2, |mut communicator| {
        let receive_len = [3, 2][communicator.rank()];
        communicator.exchange(1 - communicator.rank(), &[1, 2], &mut vec![0; receive_len])
    });
    let error = results[0].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("process 0: exchange with process 1: expected 3 bytes, received 2"));
    assert!(results[1].is_ok());
}

#[test]
fn a_process_that_ends_during_a_sum_fails_the_others() {
    let results = run(4, |mut communicator| {
        if communicator.rank() == 2 {
            return None;
        }
        Some(sum_tree(&mut communicator, &mut [1f32; 10]))
    });
    for result in results.into_iter().flatten() {
        assert!(matches!(result, Err(Error::Communication { .. })));
    }
}
