//! Two-dimensional pooling: maximum, average and stochastic.
//!
//! `planes` divides the planes into tasks and lists the input elements of a window. Each pooling
//! method checks the operands and chooses a path by the geometry alone:
//!
//! - `max` and `average` copy each input plane to the layout of [`polyphase`](super::polyphase). In
//!   the polyphase layout, one tap of neighbouring windows is contiguous, so a portable loop over
//!   the taps computes many windows at once. The backward pass of `average` adds to the polyphase
//!   plane and copies the plane back. The backward pass of `max` adds to the elements that the mask
//!   names.
//! - `max` reads a plane in place if the windows are 2×2, do not overlap and lie inside the plane.
//! - `max` and `average` compute one window at a time if a plane has few windows, or windows larger
//!   than the plane, as in global pooling.
//! - `stochastic` always computes one window at a time.

pub(crate) mod average;
pub(crate) mod max;
pub(crate) mod planes;
pub(crate) mod stochastic;
pub(crate) use average::{average_pool, average_pool_backward};
pub(crate) use max::{max_pool, max_pool_backward};
pub(crate) use stochastic::stochastic_pool;

#[cfg(test)]
mod tests;
