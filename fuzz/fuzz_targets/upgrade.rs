//! Fuzz target for upgrades of Caffe's older formats. An upgraded message must have no old fields,
//! and a second upgrade must not change it.
#![no_main]

use cortado::proto::{
    self, CaffeMessage, Message, NetParameter, SolverParameter,
    upgrade::{self, Upgraded},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for net in read::<NetParameter>(bytes) {
        if let Ok(Upgraded { message, .. }) = upgrade::net(net) {
            assert!(message.layers.is_empty() && message.input.is_empty());
            check_idempotent(upgrade::net, &message);
        }
    }
    for solver in read::<SolverParameter>(bytes) {
        if let Ok(Upgraded { message, .. }) = upgrade::solver(solver) {
            assert_eq!(message.solver_type, None);
            check_idempotent(upgrade::solver, &message);
        }
    }
});

/// Parses the bytes as a text file and as a binary file.
fn read<M: CaffeMessage>(bytes: &[u8]) -> impl Iterator<Item = M> {
    [proto::parse_text(bytes, "text"), proto::parse_binary(bytes, "bytes")].into_iter().flatten()
}

/// Checks that a second upgrade does not change the message.
fn check_idempotent<M: Message + Clone>(
    upgrade: impl FnOnce(M) -> cortado::Result<Upgraded<M>>,
    message: &M,
) {
    let again = upgrade(message.clone()).unwrap();
    assert_eq!(again.changes, []);
    assert_eq!(again.message.encode_to_vec(), message.encode_to_vec());
}
