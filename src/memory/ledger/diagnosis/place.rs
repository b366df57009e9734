//! Places in a program: the kernel call or memory access, and the layer that ran it.

use crate::memory::{
    ledger::kernel_call::{DIRECT_ACCESS, KernelCall},
    trace::span::Pass,
};
use std::{fmt, sync::Arc};

/// The place in a program that read or wrote a memory, or waited.
///
/// ```
/// use cortado::{ledger, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let ((), diagnosis) = ledger::diagnose(|| {
///     let x = Blob::from_slice(&device, &[2], &[1.0f32, 2.0])?;
///     x.scale_data(2.0)
/// })?;
/// let place = &diagnosis.transfers()[0].reader;
/// assert_eq!((place.call.name, place.call.site.file()), ("scal", file!()));
/// assert!(place.to_string().starts_with("scal of f32 at "));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The kernel call, or the source location of an access or wait outside kernels. For such an
    /// access, the name and the element type are empty.
    pub call: KernelCall,
    /// Whether the kernel ran on the host because the device does not override the kernel.
    pub is_fallback: bool,
    /// The layer whose pass ran the kernel, if any.
    pub layer: Option<LayerPass>,
}

/// A pass of a layer of a net.
///
/// ```
/// use cortado::{ledger::LayerPass, trace::Pass};
///
/// let pass = LayerPass { name: "conv1".into(), pass: Pass::Forward };
/// assert_eq!(pass.to_string(), "layer `conv1`, forward");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerPass {
    /// Name of the layer.
    pub name: Arc<str>,
    /// Direction of the pass.
    pub pass: Pass,
}

impl Place {
    /// Returns whether the place is a kernel that ran on the device.
    pub(super) fn is_native_kernel(&self) -> bool {
        !self.is_direct_access() && !self.is_fallback
    }

    /// Returns whether the place is outside kernels.
    pub(super) fn is_direct_access(&self) -> bool {
        self.call.name == DIRECT_ACCESS
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_direct_access() {
            true => write!(f, "{}", self.call.site)?,
            false => write!(f, "{}", self.call)?,
        }
        if self.is_fallback {
            f.write_str(", on the host")?;
        }
        self.layer.as_ref().map_or(Ok(()), |layer| write!(f, ", {layer}"))
    }
}

impl fmt::Display for LayerPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer `{}`, {}", self.name, self.pass)
    }
}
