//! Bugs of the mutants, each with the check of the conformance kit that must find the bug.

mod arrays;
mod memory;
mod nets;

use arrays::arrays_bugs;
use memory::memory_bugs;
use nets::nets_bugs;

/// Defines the enum [`Bug`] and the list [`BUGS`] from pairs of a bug and a check.
macro_rules! define_bugs {
    ([$($(#[$doc:meta])* $bug:ident => $check:ident,)*]) => {
        /// Bug that a mutant device adds to the simulated device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            /// No bug: the mutant must pass all checks.
            None,
            $($(#[$doc])* $bug,)*
        }

        /// List of all bugs, each with the name of the check that must find the bug.
        pub(crate) const BUGS: &[(Bug, &str)] = &[$((Bug::$bug, stringify!($check)),)*];
    };
}

memory_bugs! { [] arrays_bugs nets_bugs define_bugs }
