//! Tests of nets and solvers whose data sources fail or are slow.

use cortado::{
    CpuDevice, Error, Net, Result, Solver,
    data::{Record, Source, SourceRegistry},
    proto::{self, BlobProto},
    solver::Event,
};
use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, Weak},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longest time that a test waits for a thread before the test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

type Read = fn(u64, &TempDir, &mut Record) -> Result<()>;

/// Data source that calls the function `read` for each record, with the number of the record and a
/// temporary directory.
struct Scripted {
    read: Read,
    next: u64,
    dir: Arc<TempDir>,
}

impl Source for Scripted {
    fn describe(&self) -> String {
        "script:a".into()
    }
    fn records(&self) -> Option<u64> {
        Some(100)
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        record.bytes_mut([1, 1, 2])?.fill(1);
        self.next += 1;
        (self.read)(self.next - 1, &self.dir, record)
    }
}

/// Returns a registry with the source scheme `script`. The returned weak reference expires when the
/// reader thread ends and drops the source.
fn sources(read: Read) -> (SourceRegistry, Weak<TempDir>) {
    let dir = Arc::new(TempDir::new().unwrap());
    let weak_dir = Arc::downgrade(&dir);
    let dir = Mutex::new(Some(dir));
    let mut sources = SourceRegistry::default();
    sources.register("script", move |_| {
        let dir = dir.lock().unwrap().take().unwrap();
        Ok(Box::new(Scripted { read, next: 0, dir }))
    });
    (sources, weak_dir)
}

const CLASSIFIER: &str = r#"
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "l" }"#;

fn layers(source: &str, transform: &str) -> String {
    format!(
        r#"layer {{ name: "d" type: "Data" top: "x" top: "label"
             data_param {{ source: "{source}" batch_size: 4 prefetch: 2 }}
             transform_param {{ {transform} }} }} {CLASSIFIER}"#
    )
}

fn net(text: &str, sources: SourceRegistry) -> Result<Net<f32>> {
    let device = CpuDevice::with_threads(1)?;
    Net::builder(&device).sources(sources).build(&proto::parse_text(text, "net.prototxt")?)
}

fn fail_at_9(i: u64, _: &TempDir, _: &mut Record) -> Result<()> {
    if i == 9 { Err(Error::InvalidData("unreadable".into())) } else { Ok(()) }
}

fn panic_at_9(i: u64, _: &TempDir, _: &mut Record) -> Result<()> {
    assert!(i != 9, "broken");
    Ok(())
}

/// Reads records from a file, and removes the file before record 9.
fn remove_file_at_9(i: u64, dir: &TempDir, record: &mut Record) -> Result<()> {
    let path = dir.path().join("records");
    let io_error = |error| Error::io(&path, error);
    match i {
        0 => fs::write(&path, [7; 2]).map_err(io_error)?,
        9 => fs::remove_file(&path).map_err(io_error)?,
        _ => {}
    }
    let bytes = fs::read(&path).map_err(io_error)?;
    record.bytes_mut([1, 1, 2])?.copy_from_slice(&bytes);
    Ok(())
}

fn change_shape_at_9(i: u64, _: &TempDir, record: &mut Record) -> Result<()> {
    if i == 9 { record.bytes_mut([1, 2, 2]).map(|bytes| bytes.fill(1)) } else { Ok(()) }
}

fn read_slowly(_: u64, _: &TempDir, _: &mut Record) -> Result<()> {
    thread::sleep(Duration::from_millis(5));
    Ok(())
}

#[test]
fn forward_returns_errors_and_panics_of_a_source_with_the_record_number() {
    let cases: [(Read, &str); 4] = [
        (fail_at_9, "layer `d` (Data): script:a, record 9: unreadable"),
        (panic_at_9, "layer `d` (Data): script:a, record 9: panicked: broken"),
        (remove_file_at_9, "records: No such file"),
        (
            change_shape_at_9,
            "layer `d` (Data): script:a, record 9: expected shape 1 x 1 x 2, found 1 x 2 x 2",
        ),
    ];
    for (read, want) in cases {
        let (sources, weak_dir) = sources(read);
        let mut net = net(&layers("script:a", ""), sources).unwrap();
        // Two batches of four records precede the batch with the invalid record 9, so the first two
        // passes must succeed.
        net.forward().unwrap();
        net.forward().unwrap();
        let error = net.forward().unwrap_err().to_string();
        assert!(error.starts_with("layer `d` (Data): script:a, record 9: "), "{error}");
        assert!(error.contains(want), "{error}");
        for _ in 0..2 {
            let next_error = net.forward().unwrap_err().to_string();
            assert_eq!(
                next_error,
                "layer `d` (Data): script:a: no records are available after an earlier error"
            );
        }
        let start = Instant::now();
        while weak_dir.strong_count() > 0 {
            assert!(start.elapsed() < TIMEOUT, "the reader thread must end after an error");
            thread::yield_now();
        }
    }
}

#[test]
fn dropping_a_net_joins_its_reader_threads() {
    for passes in 0..3 {
        let (sources, weak_dir) = sources(read_slowly);
        let mut net = net(&layers("script:a", ""), sources).unwrap();
        (0..passes).for_each(|_| _ = net.forward().unwrap());
        drop(net);
        assert_eq!(weak_dir.strong_count(), 0);
    }
}

#[test]
fn the_error_for_a_mean_file_of_another_shape_names_source_and_record() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("mean.binaryproto").display().to_string();
    let extents = [Some(1), Some(1), Some(3), Some(3)];
    let [num, channels, height, width] = extents;
    let mean = BlobProto { num, channels, height, width, data: vec![0.0; 9], ..Default::default() };
    proto::write_binary(&path, &mean).unwrap();
    let (sources, weak_dir) = sources(|_, _, _| Ok(()));
    let text = layers("script:a", &format!("mean_file: {path:?}"));
    let error = net(&text, sources).err().unwrap().to_string();
    for part in ["`d`", "script:a, record 0: ", &path, "is 1 x 3 x 3, but the record is 1 x 1 x 2"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(weak_dir.strong_count(), 0);
}

#[test]
fn the_error_for_a_truncated_source_names_its_file() {
    let dir = TempDir::new().unwrap();
    let prefix = dir.path().join("t");
    let file = |ending: &str| PathBuf::from(format!("{}-{ending}", prefix.display()));
    let header = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut images: Vec<u8> = header(&[0x803, 2, 2, 2]);
    // The last byte of the second 2 × 2 image is missing.
    images.extend([0; 7]);
    let mut labels: Vec<u8> = header(&[0x801, 2]);
    labels.extend([0; 2]);
    fs::write(file("images-idx3-ubyte"), images).unwrap();
    fs::write(file("labels-idx1-ubyte"), labels).unwrap();
    let text = layers(&format!("idx:{}", prefix.display()), "");
    let error = net(&text, SourceRegistry::default()).err().unwrap().to_string();
    assert!(error.contains("`d`") && error.contains("t-images-idx3-ubyte: "), "{error}");
    assert!(error.contains("expected 8 bytes after the header, found 7"), "{error}");
}

#[test]
fn solver_events_contain_the_data_wait_time() {
    let text = |layers: &str| {
        format!(
            r#"base_lr: 0.01 lr_policy: "fixed" max_iter: 9 display: 4 snapshot_after_train: false
               net_param {{ {layers} }}"#
        )
    };
    let events = |text: &str, sources| {
        let device = CpuDevice::with_threads(1).unwrap();
        let builder = Solver::<f32>::builder(&device).sources(sources);
        let mut solver =
            builder.build(proto::parse_text(text, "solver.prototxt").unwrap()).unwrap();
        let waits = Arc::new(Mutex::new(Vec::new()));
        let observer_waits = Arc::clone(&waits);
        solver.add_observer(move |event| match *event {
            Event::Iterated { waited, .. } => {
                observer_waits
                    .lock()
                    .unwrap()
                    .push((waited.map(|waited| waited.as_secs_f64()), None));
            }
            Event::Displayed { waited, seconds, .. } => {
                let mut waits = observer_waits.lock().unwrap();
                waits.last_mut().unwrap().1 = waited.map(|waited| (waited, seconds));
            }
            _ => {}
        });
        solver.solve().unwrap();
        waits.lock().unwrap().clone()
    };

    let sources = sources(read_slowly).0;
    let waits = events(&text(&layers("script:a", "")), sources);
    let total_waits: Vec<_> = waits.iter().map(|(waited, _)| waited.unwrap()).collect();
    assert!(total_waits.is_sorted(), "{total_waits:?}");
    // The net waits 20 ms for each batch, except for the two batches that were prefetched.
    assert!(total_waits[8] > 0.1, "{total_waits:?}");
    let displayed_waits: Vec<_> = waits.iter().filter_map(|(_, displayed)| *displayed).collect();
    assert_eq!(displayed_waits.len(), 3);
    for (waited, seconds) in &displayed_waits[1..] {
        assert!(*waited > 0.5 * seconds && waited <= seconds, "{displayed_waits:?}");
    }
    let sum: f64 = displayed_waits.iter().map(|(waited, _)| waited).sum();
    assert!((sum - total_waits[8]).abs() < 1e-6, "{displayed_waits:?} {total_waits:?}");

    let dummy_layer = r#"layer { name: "d" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 2 } shape { dim: 4 } } }"#;
    let dummy_solver = text(&format!("{dummy_layer} {CLASSIFIER}"));
    assert!(
        events(&dummy_solver, SourceRegistry::empty()).iter().all(|wait| *wait == (None, None))
    );
}
