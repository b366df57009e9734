//! The identity of a kernel call.

use std::{fmt, panic::Location};

/// Kernel name that stands for memory accesses outside any kernel.
pub(super) const DIRECT_ACCESS: &str = "";

/// A kernel call: name, element type and call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelCall {
    /// Name of the method in its kernel family, such as `gemm`.
    pub name: &'static str,
    /// Element type, such as `f32`.
    pub element: &'static str,
    /// Source location of the call.
    pub site: &'static Location<'static>,
}

impl KernelCall {
    /// Describes the kernel `name` for elements of type `element`. If the calling function is
    /// `#[track_caller]`, the call site is where that function is called.
    #[track_caller]
    pub fn new(name: &'static str, element: &'static str) -> Self {
        Self { name, element, site: Location::caller() }
    }
}

impl fmt::Display for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} at {}", self.name, self.element, self.site)
    }
}
