//! Text: what is read and printed is read again as the same message.
#![no_main]

use cortado::proto::{self, Message, Name, NetParameter, SolverParameter};
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;

fuzz_target!(|text: &[u8]| {
    survives::<NetParameter>(text);
    survives::<SolverParameter>(text);
});

fn survives<M: Message + Name + Default + Debug>(text: &[u8]) {
    let Ok(message) = proto::parse_text::<M>(text, "text") else { return };
    let printed = proto::to_text(&message).unwrap();
    let again = proto::parse_text::<M>(&printed, "printed").unwrap();
    // Told apart by what is shown of them: text keeps that a number is NaN, but not its sign.
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
    assert_eq!(proto::to_text(&again).unwrap(), printed);
}
