//! Conformance kit: checks that every device must pass, for authors of backends.
//!
//! A test file of two lines checks every kernel of a device on every element type, and the
//! coherence of the device's memory:
//!
//! ```
//! use cortado::CpuDevice;
//! cortado::conformance!(CpuDevice::new());
//! # fn main() {}
//! ```
//!
//! The macro `conformance!` turns each check into a `#[test]`. [`Kit::run`] runs all checks and
//! returns a [`Report`]. The [`Coverage`] of a report shows which kernels are native and which
//! kernels fall back to the host. `GradientCheck` checks the gradients of a custom layer, and
//! [`check_communicator`] checks a communicator.
//!
//! Design decisions of the conformance kit:
//! - The kit compares results with oracles: plain loops in `f64`, written from the formulas in
//!   [`op`](crate::op). Oracles share no code with the host kernels.
//! - Sums of small integers are exact, so the kit compares such sums bit by bit. A sum of real
//!   numbers may differ from the oracle by the rounding errors of the sum. The kit tolerates no
//!   differences from an oracle except rounding errors.
//! - An operand fills its memory, or lies between guard elements; it is valid on the host, the
//!   device or both. An output that the kernel overwrites holds NaN before the call.
//! - Fixed cases have operands with NaN, infinities and −0, inputs that are the same view, views
//!   far from the start of their memory, and more than 65,535 elements or rows, which exceed a
//!   16-bit index.
//! - The kit draws random cases from a seed, and shrinks a random case that fails.
//! - A native kernel must use operands on the device only in its ledger scope, so that ledgers
//!   attribute each transfer to a kernel.
//! - If a device implements [`Memory::inject_failure`], the kit checks the device's behaviour after
//!   failures. For any other device, the report and the tests say that the kit skipped the checks
//!   of failures.
//! - A check runs on its own thread. If a step of the check takes longer than [`Kit::timeout`], the
//!   check fails with the name of the step, so that a deadlock does not block the kit.

// Modules are in dependency order: each module imports only from modules higher in the list.
mod expected;
mod failure;
mod compare;
mod values;
mod operand;
mod watchdog;
mod runner;
mod check;
mod oracle;
mod memory;
mod kernels;
#[cfg(feature = "net")]
mod nets;
mod communicators;
mod coverage;
mod report;
mod kit;

pub use check::{CheckResult, Outcome};
pub use communicators::check_communicator;
pub use coverage::Coverage;
pub use failure::Failure;
pub use kit::Kit;
#[cfg(feature = "net")]
pub use nets::GradientCheck;
pub use report::Report;

use crate::{
    device::{AnyDevice, Device},
    memory::Memory,
};
use std::io::Write;

/// Names of all checks, in the order in which they run. The tests that
/// [`conformance!`](crate::conformance!) generates have the names of the checks.
pub const NAMES: &[&str] = crate::conformance!(@names);

/// Runs the check called `name` on a device. The tests that [`conformance!`](crate::conformance!)
/// generates call `assert_check`. If the kit skips the check or a part of it, prints the reason to
/// the standard error stream.
///
/// # Panics
/// Panics with the failure's message if the device fails the check.
#[doc(hidden)]
#[track_caller]
pub fn assert_check(device: &impl Device, name: &str) {
    let device = AnyDevice::new(device);
    match Kit::new().check_on(&device, name) {
        Err(failure) => panic!("{failure}"),
        Ok(None) => {}
        Ok(Some(reason)) => {
            // `cargo test` hides the output of `eprintln!` in a test that passes.
            let line = format!("skipped in `{name}` on `{}`: {reason}\n", device.name());
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Defines a module that contains one test per check of a device, for example
/// `conformance!(CpuDevice::new());`. Each generated test evaluates the device expression again.
///
/// The module is called `conformance_checks`, so a test is called `conformance_checks::gemm`. To
/// check several devices in one file, name each module: `conformance!(cpu, CpuDevice::new());`. A
/// module shadows a crate of the same name. If the module has the name of the device's crate, start
/// the path of the device with `::`, as in `conformance!(npu, ::npu::Device::new());`.
#[macro_export]
macro_rules! conformance {
    (@list $($then:tt)*) => {
        $crate::conformance_with_nets! {
            $($then)*
            raw_copies coherence sharing queues queue_order freed_in_flight reused_memory
            out_of_memory alive_after_errors injected_failures queue_failures failed_outputs
            spans
            copy scal axpy axpby dot dot_strided asum sumsq amax gemv gemm gemm_batched
            gemm_with_bias
            fill unary_abs unary_neg unary_exp unary_ln unary_sqr unary_sqrt unary_recip unary_tanh
            unary_sigmoid unary_softplus unary_sign unary_sign_bit unary_pow unary_add_scalar
            unary_scale unary_threshold unary_relu unary_elu unary_swish unary_clip
            unary_exp_affine unary_ln_affine unary_pow_affine
            binary_add binary_sub binary_mul binary_mul_scaled binary_mul_negative binary_div
            binary_div_or_zero binary_max binary_min binary_greater binary_greater_equal
            binary_prelu binary_prelu_slope binary_abs_grad binary_relu_grad binary_elu_grad
            binary_sigmoid_grad binary_tanh_grad binary_softplus_grad binary_swish_grad
            binary_clip_grad binary_ln_affine_grad binary_pow_affine_grad broadcast
            affine convert
            convert_integers lstm lstm_backward
            reduce_sum reduce_mean reduce_max reduce_min reduce_abs_sum reduce_sum_sq sum_to_axis
            dot_to_axis arg_max top_k
            uniform gaussian dropout bernoulli random_integers
            im2col col2im convolve convolve_with_activation convolve_backward_input
            convolve_backward_filters
            max_pool max_pool_backward average_pool average_pool_backward stochastic_pool
            softmax softmax_backward lrn_across lrn_within lrn_across_backward lrn_within_backward
            moments standardize standardize_backward
            softmax_loss softmax_loss_backward accuracy accuracy_by_class
            class_loss class_loss_backward elementwise_loss elementwise_loss_backward
            copy_2d gather scatter_add permute tile tile_backward to_indices
            solver_update_sgd solver_update_nesterov solver_update_adagrad solver_update_rmsprop
            solver_update_adadelta solver_update_adam
        }
    };
    (@names) => { $crate::conformance!(@list @strings) };
    (@strings $($name:ident)*) => { &[$(stringify!($name)),*] };
    (@tests ($device:expr) $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::conformance::assert_check(&$device, stringify!($name));
            }
        )*
    };
    ($device:expr $(,)?) => { $crate::conformance!(conformance_checks, $device); };
    ($module:ident, $device:expr $(,)?) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance!(@list @tests ($device));
        }
    };
}

/// Expands to `conformance!` with the checks of nets appended to a list of checks.
#[cfg(feature = "net")]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_with_nets {
    ($($list:tt)*) => { $crate::conformance! { $($list)* gradients lenet } };
}

/// Expands to `conformance!` with an unchanged list of checks, because the feature `net`, which the
/// checks of nets need, is disabled.
#[cfg(not(feature = "net"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_with_nets {
    ($($list:tt)*) => { $crate::conformance! { $($list)* } };
}
