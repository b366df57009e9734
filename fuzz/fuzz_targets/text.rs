//! Fuzz target for the text format. A message that is printed and parsed again must stay equal.
#![no_main]

use cortado::proto::{self, CaffeMessage, NetParameter, SolverParameter};
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;

fuzz_target!(|text: &[u8]| {
    check_round_trip::<NetParameter>(text);
    check_round_trip::<SolverParameter>(text);
});

fn check_round_trip<M: CaffeMessage + Debug>(text: &[u8]) {
    let Ok(message) = proto::parse_text::<M>(text, "text") else { return };
    let printed = proto::to_text(&message).unwrap();
    let again = proto::parse_text::<M>(&printed, "printed").unwrap();
    // The test compares `Debug` output, because the text format does not keep the sign of a NaN.
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
    assert_eq!(proto::to_text(&again).unwrap(), printed);
}
