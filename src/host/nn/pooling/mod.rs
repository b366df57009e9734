//! Two-dimensional pooling: maximum, average and stochastic.
//!
//! `planes` divides the planes into tasks and lists the input elements of a window. Each pooling
//! function checks the operands and chooses an algorithm by the shapes of planes and windows alone:
//!
//! - `max` and `average` copy each input plane to the layout of [`polyphase`](super::polyphase). In
//!   the polyphase layout, one tap reads contiguous elements for neighbouring windows, so a
//!   portable loop over the taps processes many windows at once. The backward pass of `average`
//!   adds gradients to a polyphase plane, and then copies the polyphase plane to the input
//!   gradient. The backward pass of `max` adds gradients to the elements whose indices the mask
//!   holds.
//! - `max` reads a plane without copying it if the windows are 2×2, do not overlap and lie inside
//!   the plane.
//! - `max` and `average` process one window at a time if a plane has few windows, or windows larger
//!   than the plane, as in global pooling.
//! - `stochastic` always processes one window at a time.

pub(crate) mod average;
pub(crate) mod max;
pub(crate) mod planes;
pub(crate) mod stochastic;
pub(crate) use average::{average_pool, average_pool_backward};
pub(crate) use max::{max_pool, max_pool_backward};
pub(crate) use stochastic::stochastic_pool;

#[cfg(test)]
mod tests;
