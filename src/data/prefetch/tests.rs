use super::*;
use crate::{
    device::CpuDevice,
    memory::{Head, Memory},
    op::RngKey,
    proto::{Phase, TransformationParameter},
};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const LONG: Duration = Duration::from_secs(20);

type Mishap = fn(&mut Record) -> Result<()>;

/// Record i of `count` has the values i and i + 0.5 and the label 2i; what goes wrong at
/// record `at` is up to `mishap`.
struct Numbers {
    count: u64,
    next: u64,
    at: u64,
    mishap: Mishap,
}

impl Numbers {
    fn new(count: u64) -> Self {
        Self { count, next: 0, at: u64::MAX, mishap: |_| Ok(()) }
    }
}

impl Source for Numbers {
    fn describe(&self) -> String {
        "numbers".into()
    }
    fn records(&self) -> Option<u64> {
        Some(self.count)
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        let i = self.next % self.count;
        record.floats_mut([1, 1, 2])?.copy_from_slice(&[i as f32, i as f32 + 0.5]);
        record.set_label(2 * i as i32);
        self.next += 1;
        if self.next > self.at { (self.mishap)(record) } else { Ok(()) }
    }
}

fn prefetcher<D: Device>(
    device: &D,
    source: Numbers,
    batch: usize,
    depth: usize,
) -> Result<Prefetcher<f32, D>> {
    let param = TransformationParameter::default();
    let transformer = DataTransformer::new(&param, Phase::Train, RngKey::new(1))?;
    Prefetcher::new(device, Box::new(source), transformer, batch, depth)
}

fn labels<D: Device>(batch: &Batch<f32, D>) -> Vec<f32> {
    let (data, label) = (batch.data.data().unwrap(), batch.label.data().unwrap());
    let (data, label) = (data.host().unwrap(), label.host().unwrap());
    for (data, label) in data.chunks(2).zip(label) {
        assert_eq!(data, [label / 2.0, label / 2.0 + 0.5]);
    }
    label.to_vec()
}

#[test]
fn batches_hold_the_records_in_order_round_and_round() {
    for depth in [1, 2, 4] {
        let mut data = prefetcher(&CpuDevice::new(), Numbers::new(5), 3, depth).unwrap();
        assert_eq!((data.shape(), data.source()), ([3, 1, 1, 2], "numbers"));
        for j in 0..20 {
            let batch = data.next().unwrap();
            assert_eq!(
                (&**batch.data.shape(), &**batch.label.shape()),
                (&[3, 1, 1, 2][..], &[3][..])
            );
            let want: Vec<_> = (3 * j..3 * j + 3).map(|i| (i % 5 * 2) as f32).collect();
            assert_eq!(labels(&batch), want);
            data.recycle(batch);
        }
    }
}

#[test]
fn random_choices_are_the_same_whatever_the_depth() {
    let images = |depth| {
        let param = TransformationParameter {
            crop_size: Some(20),
            mirror: Some(true),
            ..Default::default()
        };
        let with = DataTransformer::new(&param, Phase::Train, RngKey::new(3)).unwrap();
        let digits = Box::new("train?count=10".parse::<crate::data::Digits>().unwrap());
        let device = CpuDevice::new();
        let mut data = Prefetcher::<f32, _>::new(&device, digits, with, 4, depth).unwrap();
        let batches = (0..6).map(|_| {
            let batch = data.next().unwrap();
            let images = batch.data.data().unwrap().host().unwrap().to_vec();
            data.recycle(batch);
            images
        });
        batches.collect::<Vec<_>>()
    };
    let want = images(1);
    assert_eq!(images(3), want);
    assert_ne!(want[0][..400], want[2][800..1200], "the first digit, and its second time");
}

#[test]
fn batches_that_are_not_given_back_are_replaced() {
    let mut data = prefetcher(&CpuDevice::new(), Numbers::new(100), 2, 2).unwrap();
    let mut kept: Vec<_> = (0..10).map(|_| data.next().unwrap()).collect();
    for (j, batch) in kept.iter().enumerate() {
        assert_eq!(labels(batch), [4.0 * j as f32, 4.0 * j as f32 + 2.0]);
    }
    kept.drain(..).for_each(|batch| data.recycle(batch));
    assert!(data.shared.batches.free.len() + data.shared.batches.full.len() <= 2);
    assert_eq!(labels(&data.next().unwrap()), [40.0, 42.0]);
}

#[test]
fn an_error_comes_after_the_batches_before_it_and_names_source_and_record() {
    let mishaps: [(Mishap, _); 3] = [
        (|_| Err(Error::Invalid("unreadable".into())), "numbers, record 5: unreadable"),
        (|_| panic!("broken {}", 7), "numbers, record 5: panicked: broken 7"),
        (
            |record| record.floats_mut([1, 2, 2]).map(|_| ()),
            "numbers, record 5: 1 x 2 x 2 after records of 1 x 1 x 2",
        ),
    ];
    for (mishap, want) in mishaps {
        // The second time round.
        let source = Numbers { at: 12, mishap, ..Numbers::new(7) };
        let mut data = prefetcher(&CpuDevice::new(), source, 3, 2).unwrap();
        for j in 0..4 {
            let batch = data.next().unwrap();
            assert_eq!(labels(&batch)[0], (3 * j % 7 * 2) as f32);
            data.recycle(batch);
        }
        assert_eq!(data.next().unwrap_err().to_string(), want);
        for _ in 0..3 {
            let again = data.next().unwrap_err().to_string();
            assert_eq!(again, "numbers: no more is read after an error");
        }
    }
}

#[test]
fn what_is_wrong_from_the_start_is_said_at_once() {
    let cpu = CpuDevice::new();
    let source =
        Numbers { at: 0, mishap: |_| Err(Error::Invalid("unreadable".into())), ..Numbers::new(7) };
    let error = prefetcher(&cpu, source, 3, 2).unwrap_err().to_string();
    assert_eq!(error, "numbers, record 0: unreadable");
    for (batch, depth, want) in
        [(0, 2, "`batch_size` is 0"), (3, 0, "`prefetch` is 0"), (3, 1025, "`prefetch` is 1025")]
    {
        let error = prefetcher(&cpu, Numbers::new(7), batch, depth).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let param = TransformationParameter { crop_size: Some(2), ..Default::default() };
    let with = DataTransformer::new(&param, Phase::Train, RngKey::new(1)).unwrap();
    let made = Prefetcher::<f32, _>::new(&cpu, Box::new(Numbers::new(7)), with, 1, 1);
    let error = made.unwrap_err().to_string();
    assert!(error.starts_with("numbers, record 0: ") && error.contains("crop_size"), "{error}");
}

#[test]
fn dropping_ends_the_thread_in_every_state() {
    let slow: Mishap = |_| {
        thread::sleep(Duration::from_millis(20));
        Ok(())
    };
    let start = Instant::now();
    for (at, mishap) in [(u64::MAX, slow), (5, slow), (5, |_| panic!("broken"))] {
        for taken in 0..3 {
            for pause in [0, 10] {
                let source = Numbers { at, mishap, ..Numbers::new(7) };
                let mut data = prefetcher(&CpuDevice::new(), source, 2, 2).unwrap();
                let kept: Vec<_> = (0..taken).map(|_| data.next()).collect();
                thread::sleep(Duration::from_millis(pause));
                let shared = Arc::downgrade(&data.shared);
                drop(data);
                assert_eq!(shared.strong_count(), 0, "the thread is gone");
                drop(kept);
            }
        }
    }
    assert!(start.elapsed() < LONG);
}

#[test]
fn waiting_is_measured() {
    let mishap: Mishap = |_| {
        thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    let source = Numbers { at: 1, mishap, ..Numbers::new(7) };
    let mut data = prefetcher(&CpuDevice::new(), source, 2, 2).unwrap();
    assert_eq!(data.waited(), Duration::ZERO);
    let start = Instant::now();
    for _ in 0..20 {
        let batch = data.next().unwrap();
        data.recycle(batch);
    }
    let waited = data.waited();
    assert!(waited > Duration::from_millis(50) && waited <= start.elapsed(), "{waited:?}");
}

/// A device with memory of its own, whose forks count their uploads apart.
#[derive(Clone, Debug, Default)]
struct Discrete {
    uploads: Arc<AtomicU64>,
    forked: Arc<AtomicU64>,
}

impl Memory for Discrete {
    type Buffer = Vec<u8>;
    fn name(&self) -> String {
        "discrete".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        self.uploads.fetch_add(1, SeqCst);
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
    fn fork(&self) -> Result<Self> {
        Ok(Self { uploads: self.forked.clone(), forked: Arc::default() })
    }
}
crate::families!(Discrete);

#[test]
fn batches_are_on_the_device_before_the_net_asks() {
    let device = Discrete::default();
    let mut data = prefetcher(&device, Numbers::new(5), 3, 2).unwrap();
    let top = Blob::<f32, _>::new(&device, &[3, 1, 1, 2]).unwrap();
    for j in 0..6 {
        let batch = data.next().unwrap();
        for blob in [&batch.data, &batch.label] {
            assert_eq!(blob.data_head().unwrap(), Head::Synced);
        }
        labels(&batch);
        // As a data layer does: the net computes on the batch's storage.
        top.swap_data(&batch.data).unwrap();
        data.recycle(batch);
        assert_eq!(top.data().unwrap().view().device().unwrap().bytes, 24);
        assert_eq!(top.data().unwrap().host().unwrap()[0], (3 * j % 5) as f32);
    }
    assert_eq!(device.uploads.load(SeqCst), 0);
    assert!(device.forked.load(SeqCst) >= 12);
}
