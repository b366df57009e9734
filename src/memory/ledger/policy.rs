//! Policies for transfers and fallbacks.

use crate::error::{Error, Result};

/// The reaction to a transfer or fallback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The event proceeds; open ledgers record it.
    #[default]
    Allow,
    /// The event proceeds, and is logged as a warning.
    Warn,
    /// The transfer or fallback does not happen, and its caller gets [`Error::Denied`].
    Deny,
}

impl Policy {
    /// Applies this policy to an event, which `describe` names in messages.
    pub(super) fn apply(self, describe: impl FnOnce() -> String) -> Result<()> {
        match self {
            Self::Allow => {}
            Self::Warn => log::warn!("{}", describe()),
            Self::Deny => return Err(Error::Denied { what: describe() }),
        }
        Ok(())
    }
}
