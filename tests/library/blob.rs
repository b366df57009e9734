//! Tests of blobs: shapes, shared storage, arithmetic, and `shape_equals`, whose results must equal
//! Caffe's.

use crate::support::{table, testdata};
use cortado::{
    Blob, CpuDevice, Device, Element, Error, Shape, bf16, f16,
    proto::{self, BlobProto, BlobShape},
};

fn cpu() -> CpuDevice {
    CpuDevice::with_threads(1).unwrap()
}

fn blob(shape: &[usize], values: impl IntoIterator<Item = i32>) -> Blob<f32, CpuDevice> {
    let values = values.into_iter().map(|value| value as f32).collect();
    Blob::from_vec(&cpu(), shape, values).unwrap()
}

fn data<T: Element, D: Device>(blob: &Blob<T, D>) -> Vec<f64> {
    blob.data().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
}

fn diff<T: Element, D: Device>(blob: &Blob<T, D>) -> Vec<f64> {
    blob.diff().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
}

#[test]
fn shape_methods_check_axes_and_offsets() {
    let shape = Shape::new(&[2, 3, 4, 5]).unwrap();
    assert_eq!(shape.count(), 120);
    assert_eq!(shape.count_range(1, 3).unwrap(), 12);
    assert_eq!(shape.count_range(4, 4).unwrap(), 1);
    assert_eq!(shape.canonical_axis(-1).unwrap(), 3);
    assert_eq!(shape.offset(&[1, 2, 3, 4]).unwrap(), 119);
    assert_eq!(shape.offset(&[1]).unwrap(), 60);
    assert_eq!(shape.to_string(), "[2, 3, 4, 5]");
    assert_eq!(Shape::new(&[]).unwrap().count(), 1);
    assert_eq!(Shape::new(&[3, 0]).unwrap().count(), 0);

    assert!(matches!(shape.count_range(3, 2), Err(Error::Range { .. })));
    assert!(matches!(shape.count_range(0, 5), Err(Error::Range { .. })));
    assert!(matches!(shape.canonical_axis(4), Err(Error::Axis { axis: 4, axes: 4 })));
    assert!(matches!(shape.canonical_axis(-5), Err(Error::Axis { .. })));
    assert!(matches!(shape.offset(&[2]), Err(Error::Shape(_))));
    assert!(matches!(shape.offset(&[0; 5]), Err(Error::Shape(_))));
    for empty in [&[0][..], &[2, 0], &[0, 2]] {
        assert!(matches!(Shape::new(empty).unwrap().offset(&[]), Err(Error::Shape(_))));
        assert!(Blob::<f32, _>::new(&CpuDevice::new(), empty).unwrap().data_at(&[]).is_err());
    }
    for huge in [&[usize::MAX, 2][..], &[1 << 40, 1 << 40, 0], &[1; 33], &[usize::MAX / 8]] {
        assert!(matches!(Shape::new(huge), Err(Error::ShapeOverflow { .. })), "{huge:?}");
        assert!(Blob::<f32, _>::new(&cpu(), huge).is_err());
    }
}

#[test]
fn legacy_extents_of_axes_that_a_blob_lacks_are_one() {
    let blob = blob(&[2, 3], 0..6);
    let extents = [blob.num(), blob.channels(), blob.height(), blob.width()].map(Result::unwrap);
    assert_eq!(extents, [2, 3, 1, 1]);
    let blob_of_five_axes = Blob::<f32, _>::new(&cpu(), &[1; 5]).unwrap();
    assert!(matches!(blob_of_five_axes.num(), Err(Error::Shape(_))));
    assert!(matches!(blob.shape().legacy(4), Err(Error::Axis { .. })));
}

#[test]
fn blob_indices_out_of_range_are_errors() {
    let blob = blob(&[2, 3], 0..6);
    assert_eq!(blob.data_at(&[1, 1]).unwrap(), 4.0);
    assert_eq!(blob.diff_at(&[1, 1]).unwrap(), 0.0);
    assert!(blob.data_at(&[0, 3]).is_err() && blob.diff_at(&[0, 0, 0]).is_err());
    let wrong_count = Blob::from_vec(&cpu(), &[2, 2], vec![0.0f32; 3]);
    assert!(matches!(wrong_count, Err(Error::Length { want: 4, got: 3, .. })));
}

#[test]
fn reshaping_a_blob_keeps_storage_that_is_large_enough() {
    let mut blob = blob(&[2, 3], 0..6);
    let address =
        |blob: &Blob<f32, CpuDevice>| blob.data().unwrap().host().unwrap().as_ptr() as usize;
    let old_address = address(&blob);
    blob.reshape(&[2, 2]).unwrap();
    assert_eq!((data(&blob), address(&blob)), (vec![0.0, 1.0, 2.0, 3.0], old_address));
    blob.reshape(&[6]).unwrap();
    assert_eq!((data(&blob), address(&blob)), ((0..6).map(f64::from).collect(), old_address));
    blob.reshape(&[7]).unwrap();
    assert_eq!(data(&blob), [0.0; 7]);
    assert!(blob.reshape(&[usize::MAX, 3]).is_err());
    assert_eq!(blob.shape()[..], [7], "an invalid shape must not change the blob");
}

/// In Caffe, a blob that grows beyond the storage that it shares writes past the end of this
/// storage.
#[test]
fn growing_a_shared_blob_does_not_change_its_aliases() {
    let (mut a, b) = (blob(&[2], 10..12), blob(&[2], 20..22));
    a.share_data(&b).unwrap();
    assert!(a.shares_data_with(&b) && !a.shares_diff_with(&b));
    a.data_mut().unwrap().host_mut().unwrap()[0] = 5.0;
    assert_eq!(data(&b), [5.0, 21.0]);
    a.reshape(&[4]).unwrap();
    assert!(!a.shares_data_with(&b));
    a.data_mut().unwrap().host_mut().unwrap().fill(9.0);
    assert_eq!((data(&a), data(&b)), (vec![9.0; 4], vec![5.0, 21.0]));
    assert!(matches!(a.share_data(&b), Err(Error::Length { want: 4, got: 2, .. })));
    assert!(matches!(a.share_diff(&b), Err(Error::Length { .. })));
}

#[test]
fn writing_a_smaller_alias_changes_only_the_elements_of_the_alias() {
    let (mut a, b) = (blob(&[4], 0..4), blob(&[2, 2], 4..8));
    a.share_data(&b).unwrap();
    a.reshape(&[3]).unwrap();
    a.data_mut().unwrap().host_write_only().unwrap().fill(1.0);
    assert_eq!(data(&b), [1.0, 1.0, 1.0, 7.0]);
}

#[test]
fn access_to_a_locked_blob_returns_a_borrowed_error() {
    let mut a = blob(&[2], 0..2);
    let alias = a.share();
    let read_guard = a.data().unwrap();
    assert!(alias.data().is_ok());
    assert!(matches!(alias.data_mut(), Err(Error::Borrowed { what: "data" })));
    assert!(matches!(alias.update(), Err(Error::Borrowed { .. })));
    assert!(alias.diff_mut().is_ok());
    drop(read_guard);
    let write_guard = alias.diff_mut().unwrap();
    assert!(matches!(a.diff(), Err(Error::Borrowed { what: "diff" })));
    assert!(matches!(a.reshape(&[3]), Err(Error::Borrowed { .. })));
    assert_eq!(a.shape()[..], [2]);
    drop(write_guard);
    a.reshape(&[3]).unwrap();
}

#[test]
fn swapped_data_is_visible_through_aliases() {
    let (a, b) = (blob(&[2], 0..2), blob(&[2], 5..7));
    let alias = a.share();
    a.swap_data(&b).unwrap();
    assert_eq!((data(&alias), data(&b)), (vec![5.0, 6.0], vec![0.0, 1.0]));
    a.swap_data(&alias).unwrap();
    assert!(matches!(a.swap_data(&blob(&[3], 0..3)), Err(Error::Length { .. })));
    let mut shrunk_blob = blob(&[4], 0..4);
    shrunk_blob.reshape(&[2]).unwrap();
    assert!(
        a.swap_data(&shrunk_blob).is_err(),
        "blobs with storage of different sizes must not swap their data"
    );
}

fn check_arithmetic<T: Element>() {
    let blob = |values: &[f64]| {
        let values = values.iter().map(|&value| T::from_f64(value)).collect();
        Blob::from_vec(&cpu(), &[4], values).unwrap()
    };
    let a = blob(&[1.0, -2.0, 3.0, -4.0]);
    let diffs = [0.5, 1.0, -1.0, 2.0].map(T::from_f64);
    a.diff_mut().unwrap().host_mut().unwrap().copy_from_slice(&diffs);
    assert_eq!(a.asum_data().unwrap().to_f64(), 10.0);
    assert_eq!(a.sumsq_data().unwrap().to_f64(), 30.0);
    assert_eq!(a.asum_diff().unwrap().to_f64(), 4.5);
    assert_eq!(a.sumsq_diff().unwrap().to_f64(), 6.25);
    a.update().unwrap();
    assert_eq!(data(&a), [0.5, -3.0, 4.0, -6.0]);
    a.scale_data(T::acc(2.0)).unwrap();
    a.scale_diff(T::acc(-1.0)).unwrap();
    assert_eq!((data(&a), diff(&a)), (vec![1.0, -6.0, 8.0, -12.0], vec![-0.5, -1.0, 1.0, -2.0]));

    let mut b = Blob::<T, _>::new(&cpu(), &[2]).unwrap();
    assert!(matches!(b.copy_from(&a, true, false), Err(Error::Shape(_))));
    b.copy_from(&a, true, true).unwrap();
    assert_eq!((data(&b), diff(&b)), (data(&a), diff(&a)));
    b.copy_from(&a.share(), false, false).unwrap();

    let message = a.to_proto(true).unwrap();
    let mut c = Blob::<T, _>::new(&cpu(), &[]).unwrap();
    c.from_proto(&message, true).unwrap();
    assert_eq!((c.shape(), data(&c), diff(&c)), (a.shape(), data(&a), diff(&a)));
    assert_eq!(message.double_data.is_empty(), T::DTYPE != cortado::DType::F64);
}

#[test]
fn blob_arithmetic_and_messages_are_exact_in_every_element_type() {
    check_arithmetic::<f32>();
    check_arithmetic::<f64>();
    check_arithmetic::<f16>();
    check_arithmetic::<bf16>();
}

#[test]
fn blob_messages_of_wrong_shapes_are_errors() {
    let message = |dim: &[i64], values: usize| BlobProto {
        shape: Some(BlobShape { dim: dim.to_vec() }),
        data: vec![1.0; values],
        ..Default::default()
    };
    let mut blob = blob(&[2], 0..2);
    for (bad, reshape) in [
        (message(&[2], 3), true),
        (message(&[-2], 2), true),
        (message(&[3], 3), false),
        (message(&[i64::MAX, 4], 2), true),
        (BlobProto { diff: vec![0.0; 3], ..message(&[2], 2) }, true),
        (BlobProto { double_data: vec![0.0], ..message(&[2], 2) }, true),
    ] {
        assert!(blob.from_proto(&bad, reshape).is_err(), "{bad:?}");
        assert_eq!((blob.shape()[..].to_vec(), data(&blob)), (vec![2], vec![0.0, 1.0]));
    }
    // As in Caffe, a `BlobProto` without elements can be read only into a blob that already has
    // elements.
    let mut empty_blob = Blob::<f32, _>::new(&cpu(), &[0]).unwrap();
    assert!(empty_blob.from_proto(&message(&[0, 3], 0), true).is_err());
    blob.from_proto(&message(&[0, 3], 0), true).unwrap();
    assert_eq!(blob.shape()[..], [0, 3]);
    let scalar = self::blob(&[], [7]).to_proto(false).unwrap();
    assert_eq!((scalar.shape, scalar.data), (None, vec![7.0]));
}

#[test]
fn blob_shape_comparisons_agree_with_caffe() {
    let Some(folder) = testdata("golden/blobproto", "the comparison of shape equality with Caffe")
    else {
        return;
    };
    let mut checked_count = 0;
    for row in table(&folder.join("shape_equals.tsv")) {
        let extents = |text: &str| match text {
            "-" => Vec::new(),
            text => text.split(',').map(|extent| extent.parse().unwrap()).collect::<Vec<usize>>(),
        };
        let bytes: Vec<u8> = match row[1].as_str() {
            "-" => Vec::new(),
            hex => (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect(),
        };
        let message: BlobProto = proto::parse_binary(&bytes, "row").unwrap();
        let blob = Blob::<f32, _>::new(&cpu(), &extents(&row[0])).unwrap();
        let expected = matches!(row[3].as_str(), "1" | "true" | "yes");
        assert_eq!(blob.shape_equals(&message), expected, "{row:?}");
        checked_count += 1;
    }
    assert!(checked_count > 10, "only {checked_count} comparisons in the table");
}
