//! Neural nets: graphs of layers that are connected by named blobs.

mod backward_pruning;
mod build_log;
mod builder;
mod definition_check;
mod filter;
mod forward_backward;
mod graph;
mod memory_reuse;
mod run_state;
mod split;
#[cfg(feature = "tensor-io")]
mod tensor_io;
mod weights;

pub use builder::NetBuilder;
pub use filter::{filter_net, state_meets_rule};
pub use graph::{Net, Param};
pub use memory_reuse::MemoryUse;
pub use split::insert_splits;
pub use weights::CopyOptions;
