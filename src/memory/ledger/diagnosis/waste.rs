//! The kinds of needless work that a diagnosis finds.

use std::fmt;

/// A kind of needless work that a [`Diagnosis`](super::recorder::Diagnosis) finds.
///
/// ```
/// use cortado::ledger::Waste;
///
/// assert_eq!(Waste::RoundTrip.to_string(), "round trip");
/// assert!(Waste::RoundTrip.remedy().contains("host_mut"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Waste {
    /// A memory was copied to one side and then back, and the bytes are equal: the write in between
    /// changed nothing. Found only if the diagnosis compares contents.
    RoundTrip,
    /// The transfer copied the same bytes as an earlier transfer in the same direction: either of
    /// the same memory, or at the same places of another memory, which the program has dropped
    /// since. Found only if the diagnosis compares contents.
    SentAgain,
    /// A write replaced data that nothing had read: a value that an earlier write stored, or a copy
    /// that a prefetch requested.
    OverwrittenUnread,
    /// A kernel that fell back to the host downloaded its operands, and a native kernel uploaded
    /// the result: two copies that a native version of the kernel would save.
    Fallback,
    /// A memory was copied to a side, and then all of it was overwritten on that side: part by
    /// part, or by an access outside kernels that stored one constant. The diagnosis finds the
    /// latter only if it compares contents.
    FetchedOverwritten,
    /// A call of [`AnyDevice::synchronize`](crate::AnyDevice) waited for a queue that had no work
    /// since the last wait for it. Found only for devices that have queues, such as GPUs and the
    /// simulated device.
    NeedlessWait,
}

impl Waste {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 6] = [
        Self::RoundTrip,
        Self::SentAgain,
        Self::OverwrittenUnread,
        Self::Fallback,
        Self::FetchedOverwritten,
        Self::NeedlessWait,
    ];

    /// Returns the change of the program that usually removes needless work of this kind.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::RoundTrip => {
                "read with `host` or `device` instead of `host_mut` or `device_mut` where nothing \
                 changes"
            }
            Self::SentAgain => "keep the memory, and write it only when its values change",
            Self::OverwrittenUnread => "remove the earlier write or prefetch",
            Self::Fallback => "override the kernel on the device",
            Self::FetchedOverwritten => {
                "use `host_write_only`, `host_overwrite` or `device_write_only` on the whole memory"
            }
            Self::NeedlessWait => "remove the wait",
        }
    }

    /// Returns the position of this kind in [`ALL`](Self::ALL).
    pub(in crate::memory::ledger) fn index(self) -> usize {
        self as usize
    }

    /// Returns the roles of the two places of a finding of this kind.
    pub(super) fn roles(self) -> [&'static str; 2] {
        match self {
            Self::RoundTrip => ["read by", "written without a change by"],
            Self::SentAgain => ["read by", "written with the same bytes by"],
            Self::OverwrittenUnread => ["overwritten by", "stored by"],
            Self::Fallback => ["fallback", "result used by"],
            Self::FetchedOverwritten => ["fetched by", "overwritten by"],
            Self::NeedlessWait => ["wait at", "after the wait at"],
        }
    }
}

impl fmt::Display for Waste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundTrip => "round trip",
            Self::SentAgain => "same bytes sent again",
            Self::OverwrittenUnread => "overwritten before it was read",
            Self::Fallback => "fallback between device kernels",
            Self::FetchedOverwritten => "fetched although overwritten",
            Self::NeedlessWait => "needless wait",
        })
    }
}
