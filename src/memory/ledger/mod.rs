//! The ledger: records of transfers and host fallbacks, and policies that log or deny them.
//!
//! - A [`Ledger`] is a value that the caller opens on a thread. The process has no global ledger.
//! - A policy applies to the thread that set it, until the guard of the policy is dropped.
//! - A transfer is attributed to the running kernel and the call site of the kernel. Outside of
//!   kernels, a transfer is attributed to the code that accessed the memory.
//! - The ledger context of a thread also contains the open [traces](super::trace), which record
//!   what a program does, and when.
//! - While no ledger or trace is open and no policy is set in the process, the overhead per kernel or
//!   transfer is one relaxed atomic load.

pub(super) mod kernel_call;
mod policy;
mod record;
pub(super) mod context;
pub(super) mod open_traces;
mod any_call;
mod events;

pub(crate) use any_call::AnyCall;
pub use context::{
    ContextGuard, KernelScope, LedgerContext, LedgerGuard, PolicyGuard, enter_kernel,
    set_fallback_policy, set_transfer_policy,
};
pub use events::{record_fallback, record_transfer};
pub use kernel_call::KernelCall;
pub use policy::Policy;
pub use record::{Entry, EventKind, Ledger, Total};
