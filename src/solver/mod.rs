//! Solvers, which train nets.
//!
//! A [`Solver`] owns a train net, test nets that share the train net's weights, and the history
//! blobs of a solver [`Method`]. A solver prints nothing: it reports [`Event`]s to observers.
//!
//! ```
//! use cortado::{CpuDevice, Solver, proto, solver::Event};
//!
//! let text = r#"
//!     type: "Adam" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 max_iter: 20
//!     test_iter: 2 test_interval: 10 snapshot_after_train: false random_seed: 1
//!     net_param {
//!       layer { name: "data" type: "Data" top: "data" top: "label"
//!         data_param { source: "digits:train?count=64&seed=1" batch_size: 16 }
//!         transform_param { scale: 0.00390625 } }
//!       layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
//!         inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
//!       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
//!     }"#;
//! let mut solver = Solver::<f32>::new(proto::parse_text(text, "text")?, &CpuDevice::new())?;
//! solver.add_observer(|event| {
//!     if let Event::Tested { iteration, outputs, .. } = event {
//!         println!("after {iteration} updates: {} {}", outputs[0].name, outputs[0].value);
//!     }
//! });
//! solver.step(5)?; // five updates, with the tests and snapshots that are due
//! let before = solver.net_mut().forward()?;
//! solver.solve()?; // the remaining updates
//! assert!(solver.net_mut().forward()? < before);
//! # Ok::<(), cortado::Error>(())
//! ```

mod agreement;
mod average_precision;
mod builder;
mod debug_info;
mod divergence;
mod event;
mod gradient_reduction;
mod lr_policy;
mod method;
mod nets;
mod on_nan;
mod param_state;
mod processes;
mod registry;
mod score;
mod shard_range;
mod shards;
mod smoothed_loss;
mod snapshot;
mod test;
mod train;
mod training_run;
mod update;

pub use builder::{SolverBuilder, read_definition};
pub use event::{Action, Event, TracedBlob};
pub use lr_policy::LrPolicy;
pub use method::{LearnableParam, Method, UpdateParams};
pub use on_nan::OnNan;
pub use registry::MethodRegistry;
pub use score::{Score, mean_scores};
pub use training_run::Solver;
