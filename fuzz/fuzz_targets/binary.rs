//! Binary messages: what is read and written is read again as the same message, with the same
//! unknown fields; where prost alone reads the bytes, it reads the same.
#![no_main]

use cortado::{
    Blob, CpuDevice,
    proto::{
        self, BlobProto, BlobProtoVector, Datum, Message, Name, NetParameter, SolverParameter,
        SolverState, Unknown,
    },
};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DEVICE: LazyLock<CpuDevice> = LazyLock::new(|| CpuDevice::with_threads(1).unwrap());

fuzz_target!(|bytes: &[u8]| {
    survives::<NetParameter>(bytes);
    survives::<SolverParameter>(bytes);
    survives::<SolverState>(bytes);
    survives::<BlobProtoVector>(bytes);
    survives::<Datum>(bytes);
    if let Some(message) = survives::<BlobProto>(bytes) {
        fills_a_blob(&message);
    }
});

fn survives<M: Message + Name + Default>(bytes: &[u8]) -> Option<M> {
    let (message, unknown) = Unknown::parse::<M>(bytes, "bytes").ok()?;
    let encoded = message.encode_to_vec();
    assert_eq!(proto::parse_binary::<M>(bytes, "bytes").unwrap().encode_to_vec(), encoded);
    if let Ok(other) = M::decode(bytes) {
        assert_eq!(other.encode_to_vec(), encoded);
    }
    // Of a message with nothing in it no known field is left, and so it may not be read.
    if !encoded.is_empty() {
        let written = unknown.encode(&message).unwrap();
        let (again, still) = Unknown::parse::<M>(&written, "written").unwrap();
        assert_eq!(again.encode_to_vec(), encoded);
        assert_eq!(still, unknown);
    }
    Some(message)
}

/// A message that fills a blob is what becomes of that blob.
fn fills_a_blob(message: &BlobProto) {
    let mut blob = Blob::<f64, _>::new(&*DEVICE, &[]).unwrap();
    if blob.from_proto(message, true).is_ok() {
        let written = blob.to_proto(true).unwrap();
        let mut again = Blob::<f64, _>::new(&*DEVICE, &[]).unwrap();
        again.from_proto(&written, true).unwrap();
        assert_eq!(again.to_proto(true).unwrap().encode_to_vec(), written.encode_to_vec());
    }
}
