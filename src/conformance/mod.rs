//! Checks that any device must pass, for authors of backends.
//!
//! A test file of three lines tries every kernel, on every element type, and the coherence of the
//! memory, on a device of another crate:
//!
//! ```
//! use cortado::CpuDevice;
//! cortado::conformance!(cpu, CpuDevice::new());
//! # fn main() {}
//! ```
//!
//! Each check becomes a `#[test]`. [`Kit::run`] runs them all and reports, and its
//! [`Coverage`] says which kernels the device computes itself and which it leaves to the host.
//! Authors of layers have `GradientCheck`.
//!
//! Decisions:
//! - Results are compared with oracles: plain loops in `f64`, written from the formulas in
//!   [`op`](crate::op), which share no code with the host kernels.
//! - Operands of small integers have exact sums, so their results are compared bit by bit; of real
//!   numbers, within what the roundings of the terms can add up to. There are no other tolerances.
//! - Operands lie whole or as parts of memories between guards, current on the host, the device or
//!   both. What a kernel overwrites holds NaN before.
//! - Cases are drawn from a seed. Of a random case that fails a smallest is looked for.

mod runner;
mod check;
mod compare;
mod coverage;
mod failure;
#[cfg(feature = "net")]
mod gradient_check;
mod kernels;
mod kit;
mod memory;
#[cfg(feature = "net")]
mod nets;
mod operand;
mod oracle;
mod report;
#[cfg(feature = "net")]
mod finite_difference;
mod values;

pub use coverage::Coverage;
pub use failure::Failure;
#[cfg(feature = "net")]
pub use gradient_check::GradientCheck;
pub use kit::Kit;
pub use report::{CheckResult, Outcome, Report};

use crate::device::Device;
use check::Check;

/// The names of all checks, in the order in which they run: those of the tests that
/// [`conformance!`](crate::conformance!) makes.
pub const NAMES: &[&str] = crate::conformance!(@names);

/// All checks, in the order of [`NAMES`].
fn checks<D: Device>() -> Vec<Check<D>> {
    let mut checks = memory::checks();
    checks.extend(kernels::checks());
    #[cfg(feature = "net")]
    checks.extend(nets::checks());
    checks
}

/// Runs one check, as a test does.
///
/// # Panics
/// With the failure's words if there is one.
#[doc(hidden)]
#[track_caller]
pub fn assert_check<D: Device>(device: &D, name: &str) {
    if let Err(failure) = Kit::new().check(device, name) {
        panic!("{failure}");
    }
}

/// Makes a module of tests, one for each check, that try a device: `conformance!(cpu,
/// CpuDevice::new());`. The device is made anew for each test.
#[macro_export]
macro_rules! conformance {
    (@list $($then:tt)*) => {
        $crate::conformance_with_nets! {
            $($then)*
            raw_copies coherence sharing queues out_of_memory alive_after_errors
            copy scal axpy axpby dot dot_strided asum sumsq amax gemv gemm gemm_batched
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
            uniform gaussian dropout bernoulli integer
            im2col col2im convolve convolve_with_activation convolve_backward_input
            convolve_backward_filters
            max_pool max_pool_backward average_pool average_pool_backward stochastic_pool
            softmax softmax_backward lrn_across lrn_within lrn_across_backward lrn_within_backward
            moments standardize standardize_backward
            softmax_loss softmax_loss_backward accuracy accuracy_by_class
            class_loss class_loss_backward elementwise_loss elementwise_loss_backward
            copy_2d gather scatter_add permute tile tile_backward to_indices descend_sgd
            descend_nesterov descend_adagrad descend_rmsprop descend_adadelta descend_adam
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
    ($module:ident, $device:expr $(,)?) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $crate::conformance!(@list @tests ($device));
        }
    };
}

/// Adds the checks of nets to a list, if there are nets.
#[cfg(feature = "net")]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_with_nets {
    ($($list:tt)*) => { $crate::conformance! { $($list)* gradients lenet } };
}

/// Without nets, the list as it is.
#[cfg(not(feature = "net"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_with_nets {
    ($($list:tt)*) => { $crate::conformance! { $($list)* } };
}
