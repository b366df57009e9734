//! A solver's reaction to divergence.

/// The action of a solver if the objective or a weight is NaN or infinite.
///
/// In the following code, `text` is the definition from the example of [`Solver`](super::Solver),
/// with a learning rate of NaN. The first update makes the weight NaN.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text, solver::OnNan};
///
/// # let text = r#"base_lr: nan lr_policy: "fixed" snapshot_after_train: false
/// #     net_param {
/// #       layer { type: "DummyData" top: "x" top: "t"
/// #         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
/// #       layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
/// #         inner_product_param { num_output: 1 bias_term: false } }
/// #       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let mut solver = Solver::<f32>::new(parse_text(text, "solver")?, &CpuDevice::new())?;
/// let error = solver.step(10).unwrap_err();
/// assert!(error.to_string().contains("layer `ip`, parameter `0`"), "{error}");
/// assert_eq!(solver.iteration(), 1);
///
/// solver.set_on_nan(OnNan::Warn);
/// solver.step(10)?;
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnNan {
    /// Writes a snapshot whose name contains `_nan`, if the definition asks for snapshots, and
    /// returns [`Error::Diverged`](crate::Error::Diverged). Earlier snapshots remain unchanged.
    #[default]
    Stop,
    /// Logs a warning once, and continues.
    Warn,
    /// Continues without a check, as Caffe does.
    Ignore,
}
