//! x86-64.

#[cfg(target_os = "linux")]
pub(crate) mod amx;
#[cfg(target_os = "linux")]
pub(crate) mod amx_pack;
pub(crate) mod level1;
