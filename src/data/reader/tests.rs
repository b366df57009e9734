use super::*;
use crate::data::testing::{Fault, Numbers, TIMEOUT, record_warnings, slow, wait_until, warnings};
use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

fn reader(source: Numbers, run: usize) -> DataReader {
    DataReader::new(Box::new(source), 0, run).unwrap()
}

/// Consumes the next record and returns its position in the source, which is half the label.
fn next(reader: &mut DataReader) -> Result<u64> {
    let label = reader.records()?[0].label();
    reader.consume(1);
    Ok(label as u64 / 2)
}

#[test]
fn a_reader_returns_the_records_in_order_and_repeats_them() {
    for run in [1, 3, 64] {
        let mut data = reader(Numbers::new(5), run);
        for i in 0..50 {
            assert_eq!((data.next_record(), next(&mut data).unwrap()), (i, i % 5), "runs of {run}");
        }
        // From record 50 on, consume all available records at once.
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
fn skipped_records_count_in_errors_but_not_in_record_numbers() {
    let source = Numbers::failing(7, 12, |_| Err(Error::InvalidData("unreadable".into())));
    let mut data = DataReader::new(Box::new(source), 3, 4).unwrap();
    for i in 0..9 {
        assert_eq!((data.next_record(), next(&mut data).unwrap()), (i, (i + 3) % 7));
    }
    // The reader skips 3 of the 7 records, so its record 9 is record (9 + 3) mod 7 = 5 of the
    // source.
    assert_eq!(next(&mut data).unwrap_err().to_string(), "numbers, record 5: unreadable");

    let source = Numbers::failing(7, 2, |_| Err(Error::InvalidData("unreadable".into())));
    let error = DataReader::new(Box::new(source), 3, 4).unwrap_err();
    assert_eq!(error.to_string(), "numbers: unreadable");
}

#[test]
fn invalid_run_lengths_and_reader_counts_are_rejected() {
    for (run, count) in [(0, 1), (1025, 1), (usize::MAX, 1), (1, 0), (1, 1025), (1, usize::MAX)] {
        let error = DataReader::shared(Box::new(Numbers::new(7)), 0, run, count).unwrap_err();
        assert!(matches!(error, Error::InvalidInput { op: "DataReader", .. }), "{error}");
    }
}

#[test]
fn readers_of_different_speed_get_the_records_in_turn() {
    for run in [1, 2, 5] {
        let readers = DataReader::shared(Box::new(Numbers::new(11)), 2, run, 3).unwrap();
        thread::scope(|scope| {
            for (reader, mut data) in (0..).zip(readers) {
                scope.spawn(move || {
                    for j in 0..200 {
                        let number = reader + 3 * j;
                        assert_eq!((data.next_record(), data.stride()), (number, 3));
                        assert_eq!(next(&mut data).unwrap(), (number + 2) % 11);
                        if reader == 1 && j % 50 == 0 {
                            thread::sleep(Duration::from_millis(2));
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_dropped_reader_does_not_block_the_others() {
    for (run, consumed) in [(1, 0), (4, 0), (4, 1), (4, 7), (2, 20)] {
        let mut readers = DataReader::shared(Box::new(Numbers::new(1000)), 0, run, 3).unwrap();
        let mut last_reader = readers.pop().unwrap();
        let mut dropped_reader = readers.pop().unwrap();
        let mut first_reader = readers.pop().unwrap();
        for j in 0..100 {
            if j < consumed {
                assert_eq!(next(&mut dropped_reader).unwrap(), 3 * j + 1);
            } else if j == consumed {
                dropped_reader =
                    DataReader::shared(Box::new(Numbers::new(1)), 0, 1, 1).unwrap().remove(0);
            }
            assert_eq!(next(&mut last_reader).unwrap(), 3 * j + 2);
            assert_eq!(next(&mut first_reader).unwrap(), 3 * j);
        }
        drop(dropped_reader);
    }
}

#[test]
fn every_reader_gets_the_records_before_an_error_and_then_the_error() {
    let faults: [(Fault, &str); 2] = [
        (|_| Err(Error::InvalidData("unreadable".into())), "numbers, record 5: unreadable"),
        (|_| panic!("broken {}", 7), "numbers, record 5: panicked: broken 7"),
    ];
    for (fault, want) in faults {
        for run in [1, 2, 16] {
            let source = Numbers::failing(100, 5, fault);
            let alive = source.watch();
            let mut readers = DataReader::shared(Box::new(source), 0, run, 2).unwrap();
            for number in 0..5 {
                assert_eq!(next(&mut readers[number % 2]).unwrap(), number as u64);
            }
            for data in &mut readers {
                assert_eq!(data.records().unwrap_err().to_string(), want);
                for _ in 0..2 {
                    let next_error = data.records().unwrap_err().to_string();
                    assert_eq!(
                        next_error,
                        "numbers: no records are available after an earlier error"
                    );
                }
                data.consume(1);
            }
            wait_until(|| alive.strong_count() == 0, "the reader thread must end after an error");
        }
    }
}

#[test]
fn an_error_is_logged_unless_the_reader_received_it() {
    record_warnings();
    let faults: [(bool, Fault, &str); 2] = [
        (false, |_| Err(Error::InvalidData("unreceived error".into())), "unreceived error"),
        (true, |_| Err(Error::InvalidData("received error".into())), ": received error"),
    ];
    for (received, fault, text) in faults {
        let source = Numbers::failing(100, 1, fault);
        let alive = source.watch();
        let mut data = reader(source, 1);
        assert_eq!(next(&mut data).unwrap(), 0);
        if received {
            assert!(next(&mut data).unwrap_err().to_string().contains(text));
        }
        wait_until(|| alive.strong_count() == 0, "the reader thread must end after an error");
        drop(data);
        assert_eq!(warnings(text).len(), usize::from(!received));
    }
}

#[test]
fn record_buffers_are_recycled() {
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
fn dropping_all_readers_ends_the_thread_in_every_state() {
    let start = Instant::now();
    let panicking: Fault = |_| panic!("broken");
    for (at, fault) in [(u64::MAX, slow as Fault), (0, slow), (5, slow), (5, panicking)] {
        for consumed in 0..4 {
            for pause in [0, 10] {
                let source = Numbers::failing(7, at, fault);
                let alive = source.watch();
                let mut readers = DataReader::shared(Box::new(source), 0, 2, 2).unwrap();
                for i in 0..consumed {
                    let _ = next(&mut readers[i % 2]);
                }
                thread::sleep(Duration::from_millis(pause));
                drop(readers);
                assert_eq!(alive.strong_count(), 0, "drop must join the reader thread");
            }
        }
    }
    assert!(start.elapsed() < TIMEOUT);
}

#[test]
fn dropping_a_reader_waits_for_one_record_and_not_for_a_run() {
    let data = reader(Numbers::failing(7, 0, slow), 1000);
    let start = Instant::now();
    drop(data);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
