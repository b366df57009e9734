//! Tests of the recorded times at which the GPU executes kernels and transfers.

use super::{gpu, values};
use cortado::{
    AnyDevice, Device, Memory,
    memory::{DeviceSpan, DeviceWork},
    op::Unary,
};
use std::time::{Duration, Instant};

/// Uploads a blob, squares and scales the blob in place, and downloads the blob.
fn run_kernels<D: Device>(device: &D) {
    let x = values(device, 1000);
    device.unary(Unary::Sqr, cortado::Src::InPlace, x.data_mut().unwrap().view_mut()).unwrap();
    device.scal(2.0, x.data_mut().unwrap().view_mut()).unwrap();
    x.data().unwrap().host().unwrap();
}

/// Checks that `spans` are those of [`run_kernels`], and that no two spans overlap.
fn check_spans(spans: &[DeviceSpan]) {
    let describe = |span: &DeviceSpan| match span.work {
        DeviceWork::Kernel { call, function } => {
            assert!(call.site.file().ends_with("cuda/spans.rs"), "{call}");
            format!("{} {} {function}", call.name, call.element)
        }
        work => work.to_string(),
    };
    let expected = [
        "upload of 4000 bytes",
        "unary_sqr f32 sqr_f32",
        "scal f32 scal_f32",
        "download of 4000 bytes",
    ];
    assert_eq!(spans.iter().map(describe).collect::<Vec<_>>(), expected);
    // The driver returns times as `f32`.
    let rounding = Duration::from_micros(1);
    for pair in spans.windows(2) {
        assert!(pair[0].start + pair[0].duration <= pair[1].start + rounding, "{spans:#?}");
    }
}

#[test]
fn a_recording_contains_the_spans_of_kernels_and_transfers_in_order() {
    let device = AnyDevice::new(&or_skip!(gpu(0)));
    run_kernels(&device);
    let start = Instant::now();
    assert!(device.record_spans(true).unwrap());
    run_kernels(&device);
    let first = device.take_spans().unwrap();
    check_spans(&first);
    run_kernels(&device);
    let second = device.take_spans().unwrap();
    check_spans(&second);
    let [first, last] = [&first[3], &second[3]];
    let end = last.start + last.duration;
    assert!(first.start < second[0].start && end < start.elapsed(), "{first:?}, {last:?}");
    assert!(last.duration > Duration::ZERO);
    assert_eq!(device.take_spans().unwrap(), []);
    device.record_spans(false).unwrap();
    run_kernels(&device);
    assert_eq!(device.take_spans().unwrap(), []);
}

#[test]
fn a_forked_queue_records_separately() {
    let device = AnyDevice::new(&or_skip!(gpu(0)));
    device.record_spans(true).unwrap();
    let queue = device.fork_queue().unwrap();
    run_kernels(&queue);
    assert_eq!([&device, &queue].map(|queue| queue.take_spans().unwrap().len()), [0, 0]);
    queue.record_spans(true).unwrap();
    run_kernels(&queue);
    assert_eq!([&device, &queue].map(|queue| queue.take_spans().unwrap().len()), [0, 4]);
}
