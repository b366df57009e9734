#![doc = include_str!("../docs/write-a-backend.md")]

#[doc = include_str!("../docs/contract.md")]
pub mod contract {}
