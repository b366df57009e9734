//! Policies that allow, log or deny transfers and fallbacks.

use crate::error::{Error, Result};

/// A policy for transfers or fallbacks: allow, log a warning, or deny.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, ledger::{self, Policy}};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
/// memory.host_mut()?.fill(1);
/// let _policy = ledger::set_transfer_policy(Policy::Deny);
/// let error = memory.device().map(drop).unwrap_err().to_string();
/// assert!(error.starts_with("denied: upload of 4 bytes on `simulated` at "));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The transfer or fallback proceeds; open ledgers record the event.
    #[default]
    Allow,
    /// The transfer or fallback proceeds, and is logged as a warning.
    Warn,
    /// The transfer or fallback does not happen, and the caller gets [`Error::Denied`].
    Deny,
}

impl Policy {
    /// Applies this policy to a transfer or fallback. The closure `describe` returns a description
    /// of the event for the warning or the error.
    pub(super) fn apply(self, describe: impl FnOnce() -> String) -> Result<()> {
        match self {
            Self::Allow => {}
            Self::Warn => log::warn!("{}", describe()),
            Self::Deny => return Err(Error::Denied { what: describe() }),
        }
        Ok(())
    }
}
