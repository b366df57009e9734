//! Mutation tests of the conformance kit: each mutant device has one bug, which a check must find.
//!
//! A mutant wraps the simulated device and adds one bug. The kernels of a mutant run on the host,
//! except `scal`, `axpy`, and kernels with a bug that only a native kernel can have.

mod axes;
mod blas;
mod bug;
mod device;
mod elementwise;
mod images;
mod indexing;
mod losses;
mod sizes;

use bug::{BUGS, Bug};
use cortado::conformance::Kit;
use device::Mutant;
use std::time::Duration;

// A mutant without a bug must pass every check, so that a failed check of another mutant is due to
// the mutant's bug.
cortado::conformance!(without_bug, Mutant::new(Bug::None));

#[test]
fn the_readme_states_the_number_of_mutants() {
    let count = format!("[{} test devices with one deliberate bug]", BUGS.len());
    assert!(include_str!("../../README.md").contains(&count), "README.md: write {count}");
}

#[test]
fn every_mutant_fails_the_check_for_its_bug() {
    let mut missed_bugs = Vec::new();
    for &(bug, check) in BUGS {
        // Two mutants hang. On the simulated device, no case of a check takes nearly as long as the
        // timeout of 5 s.
        let hangs = matches!(bug, Bug::OrderDeadlocks | Bug::DotLocksTwice);
        let kit = if hangs { Kit::new().timeout(Duration::from_secs(5)) } else { Kit::new() };
        match kit.check(&Mutant::new(bug), check) {
            Err(failure) if hangs && !failure.message.starts_with("hangs: ") => {
                missed_bugs.push(format!("{bug:?} does not hang: {failure}"));
            }
            Err(failure) if failure.check == check => {
                let element = failure.element.map_or("", |element| element.name());
                let reason = failure.message.lines().next().unwrap_or_default();
                println!("{:<28} {check:<26} {element:<5} {reason}", format!("{bug:?}"));
            }
            Err(failure) => missed_bugs.push(format!("{bug:?}: {failure}")),
            Ok(()) => missed_bugs.push(format!("{bug:?} passes {check}")),
        }
    }
    assert!(
        missed_bugs.is_empty(),
        "checks missed {} of {} bugs:\n{}",
        missed_bugs.len(),
        BUGS.len(),
        missed_bugs.join("\n")
    );
}
