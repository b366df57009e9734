//! The ledger: records of transfers and host fallbacks, and policies that log or deny them.
//!
//! - A [`Ledger`] is a value that the caller opens on a thread. The process has no global ledger.
//! - A policy applies to the thread that set it, until the guard of the policy is dropped.
//! - A transfer is attributed to the running kernel and the call site of the kernel. Outside of
//!   kernels, a transfer is attributed to the code that accessed the memory.
//! - [`diagnose`] finds the cause of each transfer, and needless transfers, writes and waits. A
//!   policy can deny them.
//! - The ledger context of a thread also contains the open [traces](super::trace), which record
//!   what a program does, and when.
//! - While no ledger or trace is open and no policy is set in the process, the overhead per kernel or
//!   transfer is one relaxed atomic load.

pub(super) mod kernel_call;
mod policy;
mod record;
pub(super) mod diagnosis;
pub(super) mod context;
mod policy_guard;
mod kernel_scope;
pub(super) mod memory_notes;
mod open_diagnoses;
#[cfg(feature = "net")]
mod layer_scope;
pub(super) mod open_traces;
mod described_kernel;
mod any_call;
mod events;

pub(crate) use any_call::AnyCall;
pub use context::{ContextGuard, LedgerContext, LedgerGuard};
pub(crate) use described_kernel::describe_kernel;
pub use diagnosis::{
    place::{LayerPass, Place},
    recorder::{Diagnosis, DiagnosisOptions, Finding, TransferCause},
    waste::Waste,
};
pub use events::{record_fallback, record_transfer};
pub use kernel_call::KernelCall;
pub use kernel_scope::{KernelScope, enter_kernel};
#[cfg(feature = "net")]
pub(crate) use layer_scope::{LayerScope, enter_layer};
pub(crate) use memory_notes::diagnose_wait;
pub use open_diagnoses::{DiagnosisGuard, WastePolicyGuard, diagnose, set_waste_policy};
pub use policy::Policy;
pub use policy_guard::{PolicyGuard, set_fallback_policy, set_transfer_policy};
pub use record::{Entry, EventKind, Ledger, Total};
