//! Fuzz target for binary messages. A message that is written and read again must keep its fields
//! and unknown fields. The reader and prost must read the same message from any input that both
//! accept.
#![no_main]

use cortado::{
    Blob, CpuDevice,
    data::{Color, Record},
    proto::{
        self, AnnotatedDatum, BlobProto, BlobProtoVector, CaffeMessage, Datum, Message,
        NetParameter, SolverParameter, SolverState, UnknownFields,
    },
};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DEVICE: LazyLock<CpuDevice> = LazyLock::new(|| CpuDevice::with_threads(1).unwrap());

fuzz_target!(|bytes: &[u8]| {
    check_round_trip::<NetParameter>(bytes);
    check_round_trip::<SolverParameter>(bytes);
    check_round_trip::<SolverState>(bytes);
    check_round_trip::<BlobProtoVector>(bytes);
    check_round_trip::<Datum>(bytes);
    check_round_trip::<AnnotatedDatum>(bytes);
    let _ = Record::default().read_annotated_datum(bytes, Color::AsStored);
    if let Some(message) = check_round_trip::<BlobProto>(bytes) {
        check_blob(&message);
    }
});

fn check_round_trip<M: CaffeMessage>(bytes: &[u8]) -> Option<M> {
    let (message, unknown) = UnknownFields::parse::<M>(bytes, "bytes").ok()?;
    let encoded = message.encode_to_vec();
    assert_eq!(proto::parse_binary::<M>(bytes, "bytes").unwrap().encode_to_vec(), encoded);
    if let Ok(other) = M::decode(bytes) {
        assert_eq!(other.encode_to_vec(), encoded);
    }
    // The reader may reject a file without any known field, so the test does not read an empty
    // message again.
    if !encoded.is_empty() {
        let written = unknown.encode(&message).unwrap();
        let (again, unknown_again) = UnknownFields::parse::<M>(&written, "written").unwrap();
        assert_eq!(again.encode_to_vec(), encoded);
        assert_eq!(unknown_again, unknown);
    }
    Some(message)
}

/// Checks that a blob filled from a message equals one that was written and read again.
fn check_blob(message: &BlobProto) {
    let mut blob = Blob::<f64, _>::new(&*DEVICE, &[]).unwrap();
    if blob.from_proto(message, true).is_ok() {
        let written = blob.to_proto(true).unwrap();
        let mut again = Blob::<f64, _>::new(&*DEVICE, &[]).unwrap();
        again.from_proto(&written, true).unwrap();
        assert_eq!(again.to_proto(true).unwrap().encode_to_vec(), written.encode_to_vec());
    }
}
