//! Devices with one bug each, and the check of the kit that finds it.
//!
//! A mutant is the mirror device behind a layer that goes wrong in one way. Its kernels are the
//! defaults on the host side, except where a bug needs the device's own.

mod axes;
mod blas;
mod bug;
mod device;
mod elementwise;
mod images;
mod losses;
mod moves;

use bug::{BUGS, Bug};
use cortado::conformance::Kit;
use device::Mutant;

// Without a bug it is a device like any other: what the kit finds, it finds because of the bug.
cortado::conformance!(unbroken, Mutant::new(Bug::None));

#[test]
fn every_bug_is_found_by_the_check_that_should_find_it() {
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
