use super::*;
use crate::{
    data::{
        DigitsSource, Record, Source,
        testing::{Mishap, Numbers, heard, listen, slow},
    },
    device::{CpuDevice, SimulatedDevice, simulated::Fault},
    host::Workers,
    kernel::Blas,
    memory::{Head, Memory},
    op::RngKey,
    proto::{Phase, TransformationParameter},
};
use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
};

const LONG: Duration = Duration::from_secs(20);

fn transformer(param: &TransformationParameter) -> DataTransformer {
    DataTransformer::new(param, Phase::Train, RngKey::new(3)).unwrap()
}

fn batches(size: usize, depth: usize) -> PrefetchOptions {
    PrefetchOptions { size, depth, threads: 2 }
}

fn prefetcher<D: Device>(
    device: &D,
    source: Numbers,
    batch: usize,
    depth: usize,
) -> Result<Prefetcher<f32, D>> {
    let reader = DataReader::new(Box::new(source), 0, batch.max(1))?;
    let with = transformer(&TransformationParameter::default());
    Prefetcher::new(device, reader, with, batches(batch, depth))
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

/// Images of the first batches of digits, and their labels, mirrored and cropped at random.
fn digits(threads: usize, depth: usize, run: usize) -> Vec<(Vec<f32>, Vec<f32>)> {
    let param =
        TransformationParameter { crop_size: Some(24), mirror: Some(true), ..Default::default() };
    let source = Box::new("train?count=50".parse::<DigitsSource>().unwrap());
    let reader = DataReader::new(source, 0, run).unwrap();
    let how = PrefetchOptions { size: 300, depth, threads };
    let mut data =
        Prefetcher::<f32, _>::new(&CpuDevice::new(), reader, transformer(&param), how).unwrap();
    let batches = (0..4).map(|_| {
        let batch = data.next().unwrap();
        let values = |blob: &Blob<f32, _>| blob.data().unwrap().host().unwrap().to_vec();
        let taken = (values(&batch.data), values(&batch.label));
        data.recycle(batch);
        taken
    });
    batches.collect()
}

/// Bit for bit, and as the transformer says one by one.
#[test]
fn random_choices_are_the_same_on_any_number_of_threads() {
    let want = digits(1, 1, 1);
    for (threads, depth, run) in [(1, 3, 300), (2, 2, 300), (8, 3, 300), (8, 1, 299), (0, 2, 64)] {
        assert!(digits(threads, depth, run) == want, "{threads} threads, runs of {run}");
    }
    assert_ne!(want[0].0[..576], want[0].0[50 * 576..51 * 576], "the first, and its second time");

    let param =
        TransformationParameter { crop_size: Some(24), mirror: Some(true), ..Default::default() };
    let (with, mut record) = (transformer(&param), Record::default());
    let mut source = "train?count=50".parse::<DigitsSource>().unwrap();
    for (j, (images, labels)) in want.iter().enumerate() {
        for (i, image) in images.chunks(576).enumerate() {
            source.read(&mut record).unwrap();
            let mut alone = [0.0_f32; 576];
            with.transform((300 * j + i) as u64, &record, &mut alone).unwrap();
            assert!(image == alone && labels[i] == record.label() as f32, "record {i} of {j}");
        }
    }
}

/// Two nets that share a reader get together what one gets alone.
#[test]
fn shared_readers_choose_as_one() {
    let param = TransformationParameter { crop_size: Some(9), ..Default::default() };
    let images = |count: usize, size: usize| -> Vec<Vec<Vec<f32>>> {
        let source = Box::new("train?count=10".parse::<DigitsSource>().unwrap());
        let readers = DataReader::shared(source, 4, 3, count).unwrap();
        let nets = readers.into_iter().map(|reader| {
            let with = transformer(&param);
            Prefetcher::<f32, _>::new(&CpuDevice::new(), reader, with, batches(size, 2)).unwrap()
        });
        let mut nets: Vec<_> = nets.collect();
        let mut taken = vec![Vec::new(); count];
        for _ in 0..12 / size / count {
            for (net, taken) in nets.iter_mut().zip(&mut taken) {
                let batch = net.next().unwrap();
                taken.extend(batch.data.data().unwrap().host().unwrap().chunks(81).map(Vec::from));
                net.recycle(batch);
            }
        }
        taken
    };
    let (one, two) = (images(1, 4), images(2, 2));
    let merged: Vec<_> = two[0].iter().zip(&two[1]).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(merged, one[0].iter().collect::<Vec<_>>());
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
        (|_| Err(Error::InvalidData("unreadable".into())), "numbers, record 5: unreadable"),
        (|_| panic!("broken {}", 7), "numbers, record 5: panicked: broken 7"),
        (
            |record| record.floats_mut([1, 2, 2]).map(|_| ()),
            "numbers, record 5: 1 x 2 x 2 after records of 1 x 1 x 2",
        ),
    ];
    for (mishap, want) in mishaps {
        // The second time round.
        let source = Numbers::failing(7, 12, mishap);
        let gone = source.watch();
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
        drop(data);
        assert_eq!(gone.strong_count(), 0, "the threads are gone");
    }
}

/// Of several that fail, on any threads, it is the first.
#[test]
fn the_first_record_that_cannot_be_transformed_is_named() {
    let changing: Mishap = |record| record.floats_mut([1, 2, 2]).map(|_| ());
    for _ in 0..20 {
        let reader =
            DataReader::new(Box::new(Numbers::failing(900, 77, changing)), 0, 300).unwrap();
        let with = transformer(&TransformationParameter::default());
        let mut filler = BatchFiller::new(reader, with, CpuDevice::new(), 300, 8).unwrap();
        filler.share_out(1, Workers::new(8).unwrap());
        let batch = Batch::<f32, _>::new(&CpuDevice::new(), filler.shape()).unwrap();
        let error = filler.fill(&batch).unwrap_err().to_string();
        assert!(error.starts_with("numbers, record 77: 1 x 2 x 2 after"), "{error}");
    }
}

#[test]
fn what_is_wrong_from_the_start_is_said_at_once() {
    let cpu = CpuDevice::new();
    let source = Numbers::failing(7, 0, |_| Err(Error::InvalidData("unreadable".into())));
    let error = prefetcher(&cpu, source, 3, 2).unwrap_err().to_string();
    assert_eq!(error, "numbers, record 0: unreadable");
    for (batch, depth, want) in
        [(0, 2, "`batch_size` is 0"), (3, 0, "`prefetch` is 0"), (3, 1025, "`prefetch` is 1025")]
    {
        let error = prefetcher(&cpu, Numbers::new(7), batch, depth).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let param = TransformationParameter { crop_size: Some(2), ..Default::default() };
    let reader = DataReader::new(Box::new(Numbers::new(7)), 0, 1).unwrap();
    let made = Prefetcher::<f32, _>::new(&cpu, reader, transformer(&param), batches(1, 1));
    let error = made.unwrap_err().to_string();
    assert!(error.starts_with("numbers, record 0: ") && error.contains("crop_size"), "{error}");
}

#[test]
fn dropping_ends_the_threads_in_every_state() {
    let panicking: Mishap = |_| panic!("broken");
    let changing: Mishap = |record| record.floats_mut([1, 2, 2]).map(|_| ());
    let start = Instant::now();
    for (at, mishap) in [(u64::MAX, slow as Mishap), (5, slow), (5, panicking), (5, changing)] {
        for taken in 0..3 {
            for pause in [0, 10] {
                let source = Numbers::failing(7, at, mishap);
                let gone = source.watch();
                let mut data = prefetcher(&CpuDevice::new(), source, 2, 2).unwrap();
                let kept: Vec<_> = (0..taken).map(|_| data.next()).collect();
                thread::sleep(Duration::from_millis(pause));
                let shared = Arc::downgrade(&data.shared);
                drop(data);
                let left = (shared.strong_count(), gone.strong_count());
                assert_eq!(left, (0, 0), "the threads are gone");
                drop(kept);
            }
        }
    }
    assert!(start.elapsed() < LONG);
}

#[test]
fn waiting_is_measured() {
    let mut data = prefetcher(&CpuDevice::new(), Numbers::failing(7, 2, slow), 2, 2).unwrap();
    assert_eq!(data.wait_time(), Duration::ZERO);
    let start = Instant::now();
    for _ in 0..8 {
        let batch = data.next().unwrap();
        data.recycle(batch);
    }
    let waited = data.wait_time();
    assert!(waited > Duration::from_millis(200) && waited <= start.elapsed(), "{waited:?}");
}

/// The mirror runs what is queued when something waits for it, and forks lag behind as far as
/// they may. So a batch that went round before a kernel had read it, or came before its upload
/// was done, would show.
#[test]
fn a_batch_goes_round_when_the_device_is_done_with_it() {
    let device = SimulatedDevice::with_threads(1).unwrap();
    for depth in [1, 3] {
        let mut data = prefetcher(&device, Numbers::new(1000), 3, depth).unwrap();
        let top = Blob::<f32, _>::new(&device, &[3, 1, 1, 2]).unwrap();
        let seen: Vec<_> =
            (0..40).map(|_| Blob::<f32, _>::new(&device, &[3, 1, 1, 2]).unwrap()).collect();
        for seen in &seen {
            let batch = data.next().unwrap();
            top.swap_data(&batch.data).unwrap();
            data.recycle(batch);
            let (x, mut y) = (top.data().unwrap(), seen.data_mut().unwrap());
            device.copy(x.view(), y.view_mut()).unwrap();
        }
        for (j, seen) in seen.iter().enumerate() {
            let first = 3.0 * j as f32;
            let want = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5].map(|x| first + x);
            assert_eq!(seen.data().unwrap().host().unwrap(), want);
        }
    }
}

#[test]
fn a_copy_that_fails_is_told() {
    for fault in [Fault::Copy, Fault::InFlight] {
        let device = SimulatedDevice::with_threads(1).unwrap();
        device.inject_fault(fault, 5); // a batch takes two
        let mut data = prefetcher(&device, Numbers::new(10), 3, 4).unwrap();
        for j in 0..2 {
            let batch = data.next().unwrap();
            assert_eq!(labels(&batch)[0], 6.0 * j as f32);
        }
        let error = data.next().unwrap_err().to_string();
        assert!(error.starts_with("numbers, taking a batch to the device: "), "{error}");
        assert!(error.contains("injected fault"), "{error}");
    }
}

#[test]
fn what_befalls_batches_that_nobody_takes_is_told_to_the_log() {
    listen();
    let [device, other] = [(); 2].map(|()| SimulatedDevice::with_threads(1).unwrap());
    device.inject_fault(Fault::Copy, 5); // a batch takes two
    let torn: Mishap = |_| Err(Error::InvalidData("a torn page of a batch".into()));
    let mut both = [
        prefetcher(&device, Numbers::new(10), 3, 4).unwrap(),
        prefetcher(&other, Numbers::failing(10, 5, torn), 3, 4).unwrap(),
    ];
    let start = Instant::now();
    while both.iter().any(|data| !data.shared.batches.is_closed()) {
        assert!(start.elapsed() < LONG, "the threads go on");
        thread::yield_now();
    }
    both.iter_mut().for_each(|data| drop(data.next().unwrap()));
    let words = ["numbers, taking a batch to the device: ", "a torn page of a batch"];
    assert_eq!(words.map(|words| heard(words).len()), [0, 0], "the batches before are good");
    drop(both);
    let [fault, torn] = words.map(heard);
    assert!(matches!(&fault[..], [fault] if fault.contains("injected fault")), "{fault:?}");
    let want = "numbers, record 5: a torn page of a batch (read ahead, and not used)";
    assert_eq!(torn, [want]);
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
    fn fork_queue(&self) -> Result<Self> {
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
