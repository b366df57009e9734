use super::*;
use crate::data::testing::{Mishap, Numbers, heard, listen, slow};
use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(20);

fn reader(source: Numbers, run: usize) -> DataReader {
    DataReader::new(Box::new(source), 0, run).unwrap()
}

/// The label's half of the next record, which is consumed.
fn next(reader: &mut DataReader) -> Result<u64> {
    let label = reader.records()?[0].label();
    reader.consume(1);
    Ok(label as u64 / 2)
}

#[test]
fn records_come_in_order_round_and_round() {
    for run in [1, 3, 64] {
        let mut data = reader(Numbers::new(5), run);
        for i in 0..50 {
            assert_eq!((data.next_record(), next(&mut data).unwrap()), (i, i % 5), "runs of {run}");
        }
        // Several at once, as many as there are.
        let mut i = 50;
        while i < 100 {
            let records = data.records().unwrap();
            let labels: Vec<_> = records.iter().map(|record| record.label() as u64 / 2).collect();
            assert!((1..=run).contains(&labels.len()));
            let count = labels.len() as u64;
            assert_eq!(labels, (i..i + count).map(|i| i % 5).collect::<Vec<_>>());
            data.consume(usize::MAX);
            i += count;
        }
    }
}

#[test]
fn what_is_skipped_counts_in_the_name_of_a_record_alone() {
    let source = Numbers::failing(7, 12, |_| Err(Error::InvalidData("unreadable".into())));
    let mut data = DataReader::new(Box::new(source), 3, 4).unwrap();
    for i in 0..9 {
        assert_eq!((data.next_record(), next(&mut data).unwrap()), (i, (i + 3) % 7));
    }
    // 3 + 9 = 12, the sixth of the second round.
    assert_eq!(next(&mut data).unwrap_err().to_string(), "numbers, record 5: unreadable");

    let source = Numbers::failing(7, 2, |_| Err(Error::InvalidData("unreadable".into())));
    let error = DataReader::new(Box::new(source), 3, 4).unwrap_err();
    assert_eq!(error.to_string(), "numbers: unreadable");
}

#[test]
fn runs_and_readers_are_counted() {
    for (run, count) in [(0, 1), (1025, 1), (usize::MAX, 1), (1, 0), (1, 1025), (1, usize::MAX)] {
        let error = DataReader::shared(Box::new(Numbers::new(7)), 0, run, count).unwrap_err();
        assert!(matches!(error, Error::InvalidInput { op: "DataReader", .. }), "{error}");
    }
}

#[test]
fn several_take_turns_whatever_their_speed() {
    for run in [1, 2, 5] {
        let readers = DataReader::shared(Box::new(Numbers::new(11)), 2, run, 3).unwrap();
        thread::scope(|scope| {
            for (which, mut data) in (0..).zip(readers) {
                scope.spawn(move || {
                    for j in 0..200 {
                        let number = which + 3 * j;
                        assert_eq!((data.next_record(), data.stride()), (number, 3));
                        assert_eq!(next(&mut data).unwrap(), (number + 2) % 11);
                        if which == 1 && j % 50 == 0 {
                            thread::sleep(Duration::from_millis(2));
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn who_is_dropped_holds_nobody_up() {
    for (run, taken) in [(1, 0), (4, 0), (4, 1), (4, 7), (2, 20)] {
        let mut readers = DataReader::shared(Box::new(Numbers::new(1000)), 0, run, 3).unwrap();
        let mut last = readers.pop().unwrap();
        let mut dropped = readers.pop().unwrap();
        let mut first = readers.pop().unwrap();
        for j in 0..100 {
            if j < taken {
                assert_eq!(next(&mut dropped).unwrap(), 3 * j + 1);
            } else if j == taken {
                dropped = DataReader::shared(Box::new(Numbers::new(1)), 0, 1, 1).unwrap().remove(0);
            }
            assert_eq!(next(&mut last).unwrap(), 3 * j + 2);
            assert_eq!(next(&mut first).unwrap(), 3 * j);
        }
        drop(dropped);
    }
}

/// Each of several gets what precedes the error, and then hears of it.
#[test]
fn an_error_comes_to_everyone_after_what_precedes_it() {
    let mishaps: [(Mishap, &str); 2] = [
        (|_| Err(Error::InvalidData("unreadable".into())), "numbers, record 5: unreadable"),
        (|_| panic!("broken {}", 7), "numbers, record 5: panicked: broken 7"),
    ];
    for (mishap, want) in mishaps {
        for run in [1, 2, 16] {
            let source = Numbers::failing(100, 5, mishap);
            let gone = source.watch();
            let mut readers = DataReader::shared(Box::new(source), 0, run, 2).unwrap();
            for number in 0..5 {
                assert_eq!(next(&mut readers[number % 2]).unwrap(), number as u64);
            }
            for data in &mut readers {
                assert_eq!(data.records().unwrap_err().to_string(), want);
                for _ in 0..2 {
                    let again = data.records().unwrap_err().to_string();
                    assert_eq!(again, "numbers: no more is read after an error");
                }
                data.consume(1);
            }
            // The thread ends by itself; nobody waits for it here.
            let start = Instant::now();
            while gone.strong_count() > 0 {
                assert!(start.elapsed() < LONG, "the thread goes on");
                thread::yield_now();
            }
        }
    }
}

#[test]
fn an_error_is_told_to_the_log_unless_the_reader_was_told() {
    listen();
    let mishaps: [(Mishap, &str); 2] = [
        (|_| Err(Error::InvalidData("a page nobody read".into())), "a page nobody read"),
        (|_| Err(Error::InvalidData("a page somebody read".into())), "a page somebody read"),
    ];
    for (told, (mishap, words)) in [false, true].into_iter().zip(mishaps) {
        let source = Numbers::failing(100, 1, mishap);
        let gone = source.watch();
        let mut data = reader(source, 1);
        assert_eq!(next(&mut data).unwrap(), 0);
        if told {
            assert!(next(&mut data).unwrap_err().to_string().contains(words));
        }
        while gone.strong_count() > 0 {
            thread::yield_now();
        }
        drop(data);
        assert_eq!(heard(words).len(), usize::from(!told));
    }
}

#[test]
fn buffers_of_records_go_round() {
    let mut data = reader(Numbers::new(9), 4);
    let mut buffers = HashSet::new();
    for _ in 0..100 {
        let crate::data::RecordValues::Floats(values) = data.records().unwrap()[0].values() else {
            panic!("bytes")
        };
        buffers.insert(values.as_ptr().addr());
        data.consume(1);
    }
    assert_eq!(buffers.len(), RUNS * 4);
}

#[test]
fn dropping_ends_the_thread_in_every_state() {
    let start = Instant::now();
    let panicking: Mishap = |_| panic!("broken");
    for (at, mishap) in [(u64::MAX, slow as Mishap), (0, slow), (5, slow), (5, panicking)] {
        for taken in 0..4 {
            for pause in [0, 10] {
                let source = Numbers::failing(7, at, mishap);
                let gone = source.watch();
                let mut readers = DataReader::shared(Box::new(source), 0, 2, 2).unwrap();
                for i in 0..taken {
                    let _ = next(&mut readers[i % 2]);
                }
                thread::sleep(Duration::from_millis(pause));
                drop(readers);
                assert_eq!(gone.strong_count(), 0, "the thread is gone");
            }
        }
    }
    assert!(start.elapsed() < LONG);
}

/// Not after a whole run: reading one may take long.
#[test]
fn dropping_waits_for_a_single_record() {
    let data = reader(Numbers::failing(7, 0, slow), 1000);
    let start = Instant::now();
    drop(data);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
