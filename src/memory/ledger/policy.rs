//! What a thread lets happen.

use super::{Watch, with};
use crate::error::{Error, Result};
use std::marker::PhantomData;

/// What is done about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing: it is recorded where a ledger is open.
    #[default]
    Allow,
    /// It is logged as a warning.
    Warn,
    /// It does not happen: whoever caused it gets [`Error::Denied`].
    Deny,
}

impl Policy {
    pub(super) fn rule(self, event: impl FnOnce() -> String) -> Result<()> {
        match self {
            Self::Allow => Ok(()),
            Self::Warn => {
                log::warn!("{}", event());
                Ok(())
            }
            Self::Deny => Err(Error::Denied { what: event() }),
        }
    }
}

/// Keeps a [`Policy`] in force on the thread that set it.
#[must_use = "the policy ends when this is dropped"]
#[derive(Debug)]
pub struct PolicyGuard {
    of: Subject,
    before: Policy,
    _watch: Watch,
    thread: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug)]
enum Subject {
    Transfers,
    Fallbacks,
}

/// Sets what this thread does about copies between host and device, until the guard is dropped.
/// The innermost ruling counts.
///
/// ```
/// use cortado::{CpuDevice, SyncedMemory, ledger::{self, Policy}};
///
/// let _ruling = ledger::transfers(Policy::Deny);
/// let mut memory = SyncedMemory::new(&CpuDevice::new(), 16);
/// memory.host_mut()?.fill(1);
/// assert!(memory.device().is_ok(), "on the CPU nothing is ever copied");
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn set_transfer_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Transfers, policy)
}

/// As [`transfers`], of kernels that a device leaves to the host.
pub fn set_fallback_policy(policy: Policy) -> PolicyGuard {
    PolicyGuard::new(Subject::Fallbacks, policy)
}

impl PolicyGuard {
    fn new(of: Subject, policy: Policy) -> Self {
        let watch = Watch::new();
        Self { of, before: set(of, policy), _watch: watch, thread: PhantomData }
    }
}

impl Drop for PolicyGuard {
    fn drop(&mut self) {
        set(self.of, self.before);
    }
}

/// Sets a policy; returns the one before.
fn set(of: Subject, policy: Policy) -> Policy {
    with(|here| {
        let place = match of {
            Subject::Transfers => &mut here.transfers,
            Subject::Fallbacks => &mut here.fallbacks,
        };
        std::mem::replace(place, policy)
    })
}
