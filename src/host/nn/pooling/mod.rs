//! Pooling.

pub(crate) mod average;
pub(crate) mod max;
pub(crate) mod planes;
pub(crate) mod stochastic;
pub use average::{average_pool, average_pool_backward};
pub use max::{max_pool, max_pool_backward};
pub use stochastic::stochastic_pool;

#[cfg(test)]
mod tests;
