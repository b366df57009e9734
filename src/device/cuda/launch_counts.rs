//! Counts of a queue's launches.

/// Counts of the launches of a queue, as [`CudaDevice::launch_counts`](super::CudaDevice) returns
/// them.
///
/// ```no_run
/// use cortado::{device::CudaDevice, prelude::*};
///
/// let gpu = CudaDevice::builder().graphs(true).open(0)?;
/// let x = Blob::from_slice(&gpu, &[2], &[1.0f32, 2.0])?;
/// for _ in 0..2 {
///     (0..5).try_for_each(|_| x.scale_data(2.0))?;
///     gpu.synchronize()?;
/// }
/// let counts = gpu.launch_counts();
/// assert_eq!((counts.kernels, counts.graphs, counts.graph_kernels), (5, 1, 5));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchCounts {
    /// Number of kernels that were launched one by one.
    pub kernels: u64,
    /// Number of graphs that were launched.
    pub graphs: u64,
    /// Number of kernels that were launched by graphs.
    pub graph_kernels: u64,
    /// Number of kernels in graphs whose arguments had changed since the previous launch of the
    /// graph. Each of these kernels takes an additional call of the driver.
    pub updated_kernels: u64,
}
