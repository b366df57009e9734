//! Guards that set the policies of a thread.

use super::{
    context::{Watch, with_context},
    diagnosis::waste::Waste,
    policy::Policy,
};
use std::mem;

/// A guard that keeps a [`Policy`] in force on the thread that set the policy.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory};
/// use cortado::ledger::{Policy, set_transfer_policy};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
/// memory.host_mut()?.fill(1);
/// let policy = set_transfer_policy(Policy::Deny);
/// assert!(memory.device().is_err());
/// drop(policy);
/// assert!(memory.device().is_ok());
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard restores the previous policy"]
#[derive(Debug)]
pub struct PolicyGuard {
    subject: Subject,
    previous_policy: Policy,
    _watch: Watch,
}

/// The events to which a policy applies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Transfers,
    Fallbacks,
    Waste(Waste),
}

/// Sets the calling thread's policy for copies between host and device until the returned guard is
/// dropped. If policies are nested, the innermost policy applies.
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, ledger::{self, Policy}};
///
/// let _policy = ledger::set_transfer_policy(Policy::Deny);
/// let mut memory = SyncedMemory::new(&CpuDevice::new(), 16);
/// memory.host_mut()?.fill(1);
/// assert!(memory.device().is_ok(), "the CPU never copies");
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn set_transfer_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Transfers, policy)
}

/// Like [`set_transfer_policy`], but sets the policy for fallbacks, that is, for kernels that run
/// on the host because the device does not override them.
pub fn set_fallback_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Fallbacks, policy)
}

impl PolicyGuard {
    pub(super) fn new(subject: Subject, policy: Policy) -> Self {
        let watch = Watch::new();
        Self { subject, previous_policy: replace_policy(subject, policy), _watch: watch }
    }
}

impl Drop for PolicyGuard {
    fn drop(&mut self) {
        replace_policy(self.subject, self.previous_policy);
    }
}

fn replace_policy(subject: Subject, policy: Policy) -> Policy {
    with_context(|context| {
        let current_policy = match subject {
            Subject::Transfers => &mut context.transfer_policy,
            Subject::Fallbacks => &mut context.fallback_policy,
            Subject::Waste(waste) => &mut context.waste_policies[waste.index()],
        };
        mem::replace(current_policy, policy)
    })
}
