//! Locks, atomics and threads for memory coherence and for the queues between threads.
//!
//! With `--cfg loom`, loom's types replace those of parking_lot and the standard library, so that
//! loom can explore every interleaving of threads.

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::{
    OnceLock,
    atomic::{AtomicU8, Ordering::Relaxed},
};
#[cfg(all(not(loom), feature = "net"))]
pub(crate) use {
    parking_lot::{Condvar, MutexGuard},
    std::thread,
};

#[cfg(loom)]
pub(crate) use self::explored::{AtomicU8, Mutex, OnceLock, Relaxed};
#[cfg(all(loom, feature = "net"))]
pub(crate) use {self::waiting::Condvar, explored::MutexGuard, loom::thread};

#[cfg(loom)]
mod explored {
    use loom::sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    };
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering::Relaxed};
    use std::ops::{Deref, DerefMut};

    /// loom's mutex with parking_lot's interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    /// loom's mutex guard. `Condvar` takes the inner guard for a wait, and puts it back afterwards.
    pub(crate) struct MutexGuard<'a, T>(pub(super) Option<loom::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())))
        }
        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.0.as_ref().expect("the lock is held except during a wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("the lock is held except during a wait")
        }
    }

    /// The standard library's `OnceLock`, with an atomic flag that tells loom when the cell is
    /// filled.
    pub(crate) struct OnceLock<T> {
        cell: std::sync::OnceLock<T>,
        is_filled: AtomicBool,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { cell: std::sync::OnceLock::new(), is_filled: AtomicBool::new(false) }
        }
        pub(crate) fn get(&self) -> Option<&T> {
            if self.is_filled.load(Acquire) { self.cell.get() } else { None }
        }
        pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
            self.cell.get_mut()
        }
        pub(crate) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
            let value = self.cell.get_or_init(value);
            self.is_filled.store(true, Release);
            value
        }
        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            let set = self.cell.set(value);
            self.is_filled.store(true, Release);
            set
        }
        pub(crate) fn take(&mut self) -> Option<T> {
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

#[cfg(all(loom, feature = "net"))]
mod waiting {
    use super::explored::MutexGuard;
    use std::time::Instant;

    /// loom's condition variable with parking_lot's interface, whose waits never time out.
    pub(crate) struct Condvar(loom::sync::Condvar);

    pub(crate) struct WaitTimeoutResult;

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }
        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("the lock is held before a wait");
            guard.0 = Some(self.0.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
        pub(crate) fn wait_until<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _: Instant,
        ) -> WaitTimeoutResult {
            self.wait(guard);
            WaitTimeoutResult
        }
        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    impl WaitTimeoutResult {
        pub(crate) fn timed_out(&self) -> bool {
            false
        }
    }
}
