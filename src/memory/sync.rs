//! The locks and cells that coherence is made of; in builds with `--cfg loom`, stand-ins that let
//! loom try every interleaving.

#[cfg(not(loom))]
pub(super) use {
    parking_lot::Mutex,
    std::sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

#[cfg(loom)]
pub(super) use self::explored::{AtomicU8, Mutex, OnceLock, Relaxed};

#[cfg(loom)]
mod explored {
    pub(in crate::memory) use loom::sync::atomic::{AtomicU8, Ordering::Relaxed};
    use loom::sync::{
        MutexGuard,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    };

    /// loom's mutex with parking_lot's interface.
    pub(in crate::memory) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in crate::memory) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }
        pub(in crate::memory) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
        pub(in crate::memory) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    /// The standard cell, whose being filled is published through an atomic that loom sees.
    pub(in crate::memory) struct OnceLock<T> {
        cell: std::sync::OnceLock<T>,
        is_filled: AtomicBool,
    }

    impl<T> OnceLock<T> {
        pub(in crate::memory) fn new() -> Self {
            Self { cell: std::sync::OnceLock::new(), is_filled: AtomicBool::new(false) }
        }
        pub(in crate::memory) fn get(&self) -> Option<&T> {
            if self.is_filled.load(Acquire) { self.cell.get() } else { None }
        }
        pub(in crate::memory) fn get_mut(&mut self) -> Option<&mut T> {
            self.cell.get_mut()
        }
        pub(in crate::memory) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
            let value = self.cell.get_or_init(value);
            self.is_filled.store(true, Release);
            value
        }
        pub(in crate::memory) fn set(&self, value: T) -> Result<(), T> {
            let set = self.cell.set(value);
            self.is_filled.store(true, Release);
            set
        }
        pub(in crate::memory) fn take(&mut self) -> Option<T> {
            self.is_filled = AtomicBool::new(false);
            self.cell.take()
        }
    }

    impl<T> From<T> for OnceLock<T> {
        fn from(value: T) -> Self {
            Self { cell: std::sync::OnceLock::from(value), is_filled: AtomicBool::new(true) }
        }
    }
}
