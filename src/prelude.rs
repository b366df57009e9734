//! Prelude: the names that most programs need, imported by `use cortado::prelude::*`.
//!
//! ```
//! use cortado::prelude::*;
//!
//! /// Computes `A·Aᵀ` on any device.
//! fn gram<D: Device>(device: &D) -> Result<Vec<f32>> {
//!     let a = Blob::from_slice(device, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//!     matmul(&a, a.t())?.to_vec()
//! }
//!
//! assert_eq!(gram(&CpuDevice::new())?, [14.0, 32.0, 32.0, 77.0]);
//! # Ok::<(), cortado::Error>(())
//! ```

#[doc(no_inline)]
pub use crate::{
    blob::{Blob, Conv2d, PoolWindow, matmul, matmul_add, matmul_into},
    device::{AnyDevice, CpuDevice, Device, SimulatedDevice},
    element::{Element, bf16, f16},
    error::{Error, Result},
    filler::Filler,
    memory::Memory,
    op::{Binary, Reduce, Unary},
};
#[doc(no_inline)]
#[cfg(feature = "net")]
pub use crate::{net::Net, solver::Solver};
