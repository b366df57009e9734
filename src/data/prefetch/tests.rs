use super::*;
use crate::{
    blob::Blob,
    data::{
        DigitsSource, Record, Source,
        testing::{Fault, Numbers, TIMEOUT, record_warnings, reshape, slow, wait_until, warnings},
    },
    device::{AnyDevice, CpuDevice, Device, SimulatedDevice, simulated},
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

fn transformer(param: &TransformationParameter) -> DataTransformer {
    DataTransformer::new(param, Phase::Train, RngKey::new(3)).unwrap()
}

/// Returns transformation parameters for random cropping and mirroring.
fn random_crop(size: u32) -> TransformationParameter {
    TransformationParameter { crop_size: Some(size), mirror: Some(true), ..Default::default() }
}

fn options(size: usize, depth: usize) -> PrefetchOptions {
    PrefetchOptions { size, depth, threads: 2 }
}

fn cpu() -> AnyDevice {
    AnyDevice::new(&CpuDevice::new())
}

fn prefetcher(
    device: &impl Device,
    source: Numbers,
    batch: usize,
    depth: usize,
) -> Result<Prefetcher<f32>> {
    let reader = DataReader::new(Box::new(source), 0, batch.max(1))?;
    let transformer = transformer(&TransformationParameter::default());
    Prefetcher::new(&AnyDevice::new(device), reader, transformer, options(batch, depth))
}

/// Checks the data of a batch and returns the labels of the batch.
fn labels(batch: &Batch<f32>) -> Vec<f32> {
    let (data, label) = (batch.data.data().unwrap(), batch.label.data().unwrap());
    let (data, label) = (data.host().unwrap(), label.host().unwrap());
    for (data, label) in data.chunks(2).zip(label) {
        assert_eq!(data, [label / 2.0, label / 2.0 + 0.5]);
    }
    label.to_vec()
}

#[test]
fn batches_contain_the_records_in_order_and_repeat() {
    for depth in [1, 2, 4] {
        let mut data = prefetcher(&CpuDevice::new(), Numbers::new(5), 3, depth).unwrap();
        assert_eq!((data.shape(), data.source()), ([3, 1, 1, 2], "numbers"));
        for j in 0..20 {
            let batch = data.next().unwrap();
            assert!(batch.has_shape([3, 1, 1, 2]));
            let want: Vec<_> = (3 * j..3 * j + 3).map(|i| (i % 5 * 2) as f32).collect();
            assert_eq!(labels(&batch), want);
            data.recycle(batch);
        }
    }
}

/// Returns the images and labels of the first four batches of digits, cropped and mirrored at
/// random.
fn digits(threads: usize, depth: usize, run: usize) -> Vec<(Vec<f32>, Vec<f32>)> {
    let source = Box::new("train?count=50".parse::<DigitsSource>().unwrap());
    let reader = DataReader::new(source, 0, run).unwrap();
    let (transformer, options) =
        (transformer(&random_crop(24)), PrefetchOptions { size: 300, depth, threads });
    let mut data = Prefetcher::<f32>::new(&cpu(), reader, transformer, options).unwrap();
    let batches = (0..4).map(|_| {
        let batch = data.next().unwrap();
        let values = |blob: &Blob<f32, _>| blob.data().unwrap().host().unwrap().to_vec();
        let contents = (values(&batch.data), values(&batch.label));
        data.recycle(batch);
        contents
    });
    batches.collect()
}

/// Compares the batches of several thread counts with each other, and with the transformer's result
/// for each record.
#[test]
fn batches_are_bit_identical_for_any_number_of_threads() {
    let want = digits(1, 1, 1);
    for (threads, depth, run) in [(1, 3, 300), (2, 2, 300), (8, 3, 300), (8, 1, 299), (0, 2, 64)] {
        assert!(digits(threads, depth, run) == want, "{threads} threads, {run} records per run");
    }
    assert_ne!(
        want[0].0[..576],
        want[0].0[50 * 576..51 * 576],
        "a repeated record must get a different crop"
    );

    let (transformer, mut record) = (transformer(&random_crop(24)), Record::default());
    let mut source = "train?count=50".parse::<DigitsSource>().unwrap();
    for (j, (images, labels)) in want.iter().enumerate() {
        for (i, image) in images.chunks(576).enumerate() {
            source.read(&mut record).unwrap();
            let mut y = [0.0_f32; 576];
            transformer.transform((300 * j + i) as u64, &record, &mut y).unwrap();
            assert!(image == y && labels[i] == record.label() as f32, "record {i} of batch {j}");
        }
    }
}

#[test]
fn two_nets_that_share_a_source_get_the_same_images_as_one_net_in_turn() {
    let param = TransformationParameter { crop_size: Some(9), ..Default::default() };
    let images = |count: usize, size: usize| -> Vec<Vec<Vec<f32>>> {
        let source = Box::new("train?count=10".parse::<DigitsSource>().unwrap());
        let readers = DataReader::shared(source, 4, 3, count).unwrap();
        let nets = readers.into_iter().map(|reader| {
            let (transformer, options) = (transformer(&param), options(size, 2));
            Prefetcher::<f32>::new(&cpu(), reader, transformer, options).unwrap()
        });
        let mut nets: Vec<_> = nets.collect();
        let mut images = vec![Vec::new(); count];
        for _ in 0..12 / size / count {
            for (net, images) in nets.iter_mut().zip(&mut images) {
                let batch = net.next().unwrap();
                images.extend(batch.data.data().unwrap().host().unwrap().chunks(81).map(Vec::from));
                net.recycle(batch);
            }
        }
        images
    };
    let (one, two) = (images(1, 4), images(2, 2));
    let merged_batches: Vec<_> = two[0].iter().zip(&two[1]).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(merged_batches, one[0].iter().collect::<Vec<_>>());
}

#[test]
fn a_batch_that_is_not_recycled_is_replaced_by_a_new_batch() {
    let mut data = prefetcher(&CpuDevice::new(), Numbers::new(100), 2, 2).unwrap();
    let mut batches: Vec<_> = (0..10).map(|_| data.next().unwrap()).collect();
    for (j, batch) in batches.iter().enumerate() {
        assert_eq!(labels(batch), [4.0 * j as f32, 4.0 * j as f32 + 2.0]);
    }
    batches[0].data.reshape(&[1]).unwrap(); // not recycled
    batches.drain(..).for_each(|batch| data.recycle(batch));
    assert!(data.shared.batches.free.len() + data.shared.batches.full.len() <= 2);
    assert_eq!(labels(&data.next().unwrap()), [40.0, 42.0]);
}

#[test]
fn next_returns_the_batches_before_an_error_and_then_the_error() {
    let faults: [(Fault, _); 3] = [
        (|_| Err(Error::InvalidData("unreadable".into())), "numbers, record 5: unreadable"),
        (|_| panic!("broken {}", 7), "numbers, record 5: panicked: broken 7"),
        (reshape, "numbers, record 5: expected shape 1 x 1 x 2, found 1 x 2 x 2"),
    ];
    for (fault, want) in faults {
        // Record 12 of the reader is record 12 mod 7 = 5 of the source.
        let source = Numbers::failing(7, 12, fault);
        let alive = source.watch();
        let mut data = prefetcher(&CpuDevice::new(), source, 3, 2).unwrap();
        for j in 0..4 {
            let batch = data.next().unwrap();
            assert_eq!(labels(&batch)[0], (3 * j % 7 * 2) as f32);
            data.recycle(batch);
        }
        assert_eq!(data.next().unwrap_err().to_string(), want);
        for _ in 0..3 {
            let next_error = data.next().unwrap_err().to_string();
            assert_eq!(next_error, "numbers: no records are available after an earlier error");
        }
        drop(data);
        assert_eq!(
            alive.strong_count(),
            0,
            "drop must join the reader thread and the prefetching thread"
        );
    }
}

#[test]
fn an_error_of_a_batch_names_the_first_of_several_failing_records() {
    for _ in 0..20 {
        let reader = DataReader::new(Box::new(Numbers::failing(900, 77, reshape)), 0, 300).unwrap();
        let transformer = transformer(&TransformationParameter::default());
        let mut filler = BatchFiller::new(reader, transformer, cpu(), 300, 8).unwrap();
        filler.set_workers(1, Workers::new(8).unwrap());
        let batch = Batch::<f32>::new(&cpu(), filler.shape()).unwrap();
        let error = filler.fill(&batch).unwrap_err().to_string();
        assert!(error.starts_with("numbers, record 77: expected shape"), "{error}");
    }
}

#[test]
fn prefetcher_new_with_invalid_options_or_a_failing_first_record_returns_an_error() {
    let cpu = cpu();
    let source = Numbers::failing(7, 0, |_| Err(Error::InvalidData("unreadable".into())));
    let error = prefetcher(&cpu, source, 3, 2).unwrap_err().to_string();
    assert_eq!(error, "numbers, record 0: unreadable");
    for (batch, depth, want) in [
        (0, 2, "`batch_size` is 0"),
        (3, 0, "`prefetch` must be in 1 to 1024, found 0"),
        (3, 1025, "`prefetch` must be in 1 to 1024, found 1025"),
    ] {
        let error = prefetcher(&cpu, Numbers::new(7), batch, depth).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let param = TransformationParameter { crop_size: Some(2), ..Default::default() };
    let reader = DataReader::new(Box::new(Numbers::new(7)), 0, 1).unwrap();
    let prefetcher = Prefetcher::<f32>::new(&cpu, reader, transformer(&param), options(1, 1));
    let error = prefetcher.unwrap_err().to_string();
    assert!(error.starts_with("numbers, record 0: ") && error.contains("crop_size"), "{error}");
}

#[test]
fn dropping_a_prefetcher_ends_its_threads_in_every_state() {
    let panicking: Fault = |_| panic!("broken");
    let start = Instant::now();
    for (at, fault) in [(u64::MAX, slow as Fault), (5, slow), (5, panicking), (5, reshape)] {
        for held in 0..3 {
            for pause in [0, 10] {
                let source = Numbers::failing(7, at, fault);
                let alive = source.watch();
                let mut data = prefetcher(&CpuDevice::new(), source, 2, 2).unwrap();
                let batches: Vec<_> = (0..held).map(|_| data.next()).collect();
                thread::sleep(Duration::from_millis(pause));
                let shared = Arc::downgrade(&data.shared);
                drop(data);
                let references = (shared.strong_count(), alive.strong_count());
                assert_eq!(
                    references,
                    (0, 0),
                    "drop must join the reader thread and the prefetching thread"
                );
                drop(batches);
            }
        }
    }
    assert!(start.elapsed() < TIMEOUT);
}

#[test]
fn wait_time_includes_waits_for_a_slow_source() {
    let mut data = prefetcher(&CpuDevice::new(), Numbers::failing(7, 2, slow), 2, 2).unwrap();
    assert_eq!(data.wait_time(), Duration::ZERO);
    let start = Instant::now();
    for _ in 0..8 {
        let batch = data.next().unwrap();
        data.recycle(batch);
    }
    let wait_time = data.wait_time();
    assert!(
        wait_time > Duration::from_millis(200) && wait_time <= start.elapsed(),
        "{wait_time:?}"
    );
}

/// The simulated device delays queued work as long as possible, so the test fails if the
/// prefetching thread overwrites a batch before a kernel has read the batch. The test also fails if
/// `next` returns a batch before the upload of the batch is complete.
#[test]
fn a_batch_is_overwritten_only_after_the_device_has_read_it() {
    let device = SimulatedDevice::with_threads(1).unwrap();
    for depth in [1, 3] {
        let mut data = prefetcher(&device, Numbers::new(1000), 3, depth).unwrap();
        let top: Blob<f32> = Blob::new(&AnyDevice::new(&device), &[3, 1, 1, 2]).unwrap();
        let copies: Vec<_> =
            (0..40).map(|_| Blob::<f32>::new(top.device(), &[3, 1, 1, 2]).unwrap()).collect();
        for copy in &copies {
            let batch = data.next().unwrap();
            top.swap_data(&batch.data).unwrap();
            data.recycle(batch);
            let (x, mut y) = (top.data().unwrap(), copy.data_mut().unwrap());
            top.device().copy(x.view(), y.view_mut()).unwrap();
        }
        for (j, copy) in copies.iter().enumerate() {
            let first = 3.0 * j as f32;
            let want = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5].map(|x| first + x);
            assert_eq!(copy.data().unwrap().host().unwrap(), want);
        }
    }
}

#[test]
fn prefetcher_next_returns_the_error_of_a_failed_upload() {
    for fault in [simulated::Fault::Copy, simulated::Fault::InFlight] {
        let device = SimulatedDevice::with_threads(1).unwrap();
        device.inject_fault(fault, 5); // a batch needs two uploads: data and labels
        let mut data = prefetcher(&device, Numbers::new(10), 3, 4).unwrap();
        for j in 0..2 {
            let batch = data.next().unwrap();
            assert_eq!(labels(&batch)[0], 6.0 * j as f32);
        }
        let error = data.next().unwrap_err().to_string();
        assert!(error.starts_with("numbers, uploading a batch: "), "{error}");
        assert!(error.contains("injected fault"), "{error}");
    }
}

#[test]
fn errors_of_unconsumed_batches_are_logged_on_drop() {
    record_warnings();
    let [device, other] = [(); 2].map(|()| SimulatedDevice::with_threads(1).unwrap());
    device.inject_fault(simulated::Fault::Copy, 5); // a batch needs two uploads: data and labels
    let torn_page: Fault = |_| Err(Error::InvalidData("a torn page of a batch".into()));
    let mut both = [
        prefetcher(&device, Numbers::new(10), 3, 4).unwrap(),
        prefetcher(&other, Numbers::failing(10, 5, torn_page), 3, 4).unwrap(),
    ];
    let threads_ended = || both.iter().all(|data| data.shared.batches.is_closed());
    wait_until(threads_ended, "the threads must end after an error");
    both.iter_mut().for_each(|data| drop(data.next().unwrap()));
    let texts = ["numbers, uploading a batch: ", "a torn page of a batch"];
    assert_eq!(texts.map(|text| warnings(text).len()), [0, 0], "only drop may log these errors");
    drop(both);
    let [fault, torn_page] = texts.map(warnings);
    assert!(matches!(&fault[..], [fault] if fault.contains("injected fault")), "{fault:?}");
    let want =
        "numbers, record 5: a torn page of a batch (while prefetching data that was not used)";
    assert_eq!(torn_page, [want]);
}

/// A device whose memory is separate from the host's. The device counts uploads on forked queues
/// separately.
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
fn batches_are_uploaded_before_the_net_uses_them() {
    let device = Discrete::default();
    let mut data = prefetcher(&device, Numbers::new(5), 3, 2).unwrap();
    let top: Blob<f32> = Blob::new(&AnyDevice::new(&device), &[3, 1, 1, 2]).unwrap();
    for j in 0..6 {
        let batch = data.next().unwrap();
        for blob in [&batch.data, &batch.label] {
            assert_eq!(blob.data_head().unwrap(), Head::Synced);
        }
        labels(&batch);
        // Swap the storage of the top and the batch, as a data layer does: the net computes on the
        // storage of the batch.
        top.swap_data(&batch.data).unwrap();
        data.recycle(batch);
        assert_eq!(top.data().unwrap().view().device().unwrap().bytes, 24);
        assert_eq!(top.data().unwrap().host().unwrap()[0], (3 * j % 5) as f32);
    }
    assert_eq!(device.uploads.load(SeqCst), 0);
    assert!(device.forked.load(SeqCst) >= 12);
}
