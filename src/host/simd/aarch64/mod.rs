//! NEON implementation of the SIMD vector trait.
//!
//! Every AArch64 processor has NEON with fused multiply-add and 32 registers of 128 bits.

mod vector;
