//! Locks, atomics, once cells and threads of the standard library, or of loom in loom tests.
//!
//! The locks ignore poisoning: if a thread panics while it holds a lock, later users of the lock
//! get the value that the thread left. After a panic of a thread that holds a lock, the standard
//! library's locks would return a `PoisonError`.
//!
//! With `--cfg loom`, loom's types replace those of the standard library, so that loom can explore
//! every interleaving of threads. loom's types work only inside a loom model.

#[cfg(loom)]
use loom as implementation;
#[cfg(not(loom))]
use std as implementation;

#[cfg(loom)]
pub(crate) use self::explored_cell::OnceLock;
pub(crate) use implementation::{
    sync::{
        MutexGuard, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread, thread_local,
};
#[cfg(not(loom))]
pub(crate) use std::sync::OnceLock;

use implementation::sync;
use std::sync::{PoisonError, TryLockError, TryLockResult};
#[cfg(feature = "net")]
use std::time::Instant;

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader-writer lock, held by many readers or by one writer.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the lock for reading; returns `None` if a writer holds the lock.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        unless_locked(self.0.try_read())
    }

    /// Acquires the lock for writing; returns `None` if a reader or a writer holds the lock.
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        unless_locked(self.0.try_write())
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unless_locked<G>(result: TryLockResult<G>) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A condition variable. All threads that wait on a condition variable must use the same mutex. A
/// thread must hold this mutex while it changes the condition for which other threads wait.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    condvar: sync::Condvar,
    /// Number of threads that wait on the condition variable.
    ///
    /// The standard library makes a system call for every notification, which takes about 250 ns.
    /// If the counter `waiting` is 0, a notification skips the system call. A thread increments
    /// `waiting` while it holds the mutex, before it waits, so a thread that later locks the mutex
    /// to change the condition sees the incremented counter.
    waiting: AtomicUsize,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Unlocks the mutex of `guard`, waits for a notification, and locks the mutex again. A wait
    /// may also end without a notification (spurious wakeup).
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Relaxed);
        let guard = self.condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Relaxed);
        guard
    }

    /// Like [`wait`](Self::wait), but waits at most until `deadline`. Returns the lock guard, and
    /// whether the deadline has passed. Under loom, which does not model time, the deadline never
    /// passes.
    #[cfg(feature = "net")]
    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, bool) {
        self.waiting.fetch_add(1, Relaxed);
        let timeout = deadline.saturating_duration_since(Instant::now());
        let wait_result = self.condvar.wait_timeout(guard, timeout);
        let (guard, result) = wait_result.unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Relaxed);
        (guard, result.timed_out())
    }

    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.condvar.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}

#[cfg(loom)]
mod explored_cell {
    use loom::sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    };

    /// The standard library's `OnceLock`, with an atomic flag through which loom sees when the cell
    /// is initialized.
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
            let result = self.cell.set(value);
            self.is_filled.store(true, Release);
            result
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn panic_with<G>(lock: impl FnOnce() -> G) {
        let panic_while_locked = AssertUnwindSafe(|| {
            let _guard = lock();
            panic!("a panic while the lock is held");
        });
        catch_unwind(panic_while_locked).unwrap_err();
    }

    #[test]
    fn a_panic_while_a_lock_is_held_leaves_the_lock_usable() {
        let mut mutex = Mutex::new(1);
        panic_with(|| mutex.lock());
        assert_eq!(*mutex.lock(), 1);
        assert_eq!(*mutex.get_mut(), 1);
        assert_eq!(mutex.into_inner(), 1);
        let mut lock = RwLock::new(2);
        panic_with(|| lock.write());
        assert_eq!(*lock.read(), 2);
        assert_eq!(*lock.write(), 2);
        assert_eq!(lock.try_read().as_deref(), Some(&2));
        assert_eq!(lock.try_write().as_deref(), Some(&2));
        assert_eq!(*lock.get_mut(), 2);
    }

    #[test]
    fn a_panic_while_the_lock_is_held_leaves_a_condition_variable_usable() {
        let (mutex, changed) = (Mutex::new(false), Condvar::new());
        panic_with(|| mutex.lock());
        thread::scope(|scope| {
            scope.spawn(|| {
                *mutex.lock() = true;
                changed.notify_one();
            });
            let mut guard = mutex.lock();
            while !*guard {
                guard = changed.wait(guard);
            }
        });
    }

    #[test]
    fn a_try_lock_returns_none_while_a_conflicting_guard_exists() {
        let lock = RwLock::new(());
        let reader = lock.read();
        assert!(lock.try_read().is_some() && lock.try_write().is_none());
        drop(reader);
        let _writer = lock.try_write().unwrap();
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
    }

    #[cfg(feature = "net")]
    #[test]
    fn a_wait_until_a_deadline_ends_at_the_deadline() {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        let soon = std::time::Duration::from_millis(5);
        for deadline in [Instant::now(), Instant::now() + soon] {
            let mut guard = mutex.lock();
            let mut timed_out = false;
            while !timed_out {
                (guard, timed_out) = changed.wait_until(guard, deadline);
            }
            assert!(Instant::now() >= deadline);
        }
    }
}
