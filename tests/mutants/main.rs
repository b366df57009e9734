//! Mutation tests of the conformance kit: devices with one bug each, and the check that finds it.
//!
//! A mutant wraps the simulated device and adds one bug. The kernels of a mutant are the defaults,
//! which run on the host, except where a bug needs a native kernel.

mod axes;
mod blas;
mod bug;
mod device;
mod elementwise;
mod images;
mod indexing;
mod losses;

use bug::{BUGS, Bug};
use cortado::conformance::Kit;
use device::Mutant;

// The wrapper without a bug passes every check, so the failures below are due to the bugs.
cortado::conformance!(without_bug, Mutant::new(Bug::None));

#[test]
fn every_bug_fails_its_check() {
    let kit = Kit::new();
    let mut missed = Vec::new();
    for &(bug, check) in BUGS {
        match kit.check(&Mutant::new(bug), check) {
            Err(failure) if failure.check == check => {
                let element = failure.element.map_or("", |element| element.name());
                let why = failure.message.lines().next().unwrap_or_default();
                println!("{:<28} {check:<26} {element:<5} {why}", format!("{bug:?}"));
            }
            Err(failure) => missed.push(format!("{bug:?}: {failure}")),
            Ok(()) => missed.push(format!("{bug:?} passes {check}")),
        }
    }
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), BUGS.len(), missed.join("\n"));
}
