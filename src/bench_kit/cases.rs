//! Benchmark cases for any device: each case is one kernel at one size.

use crate::{
    blob::Blob,
    device::{AnyDevice, Device},
    element::Element,
    error::Result,
    filler::Filler,
    kernel::traits::*,
    op::{
        self, Axis, Binary, Convolution, Gemm, Gemv, Pool2d, PoolRounding, Reduce, Regularization,
        RngKey, SolverUpdate, Transpose, Unary, UpdateRule, Window,
    },
};

/// Work of one run of a benchmark case, in bytes and floating-point operations; the work is the
/// same on every device.
///
/// ```
/// use cortado::{CpuDevice, bench_kit::{SizeRange, cases}};
///
/// let cases = cases::<f32>(&CpuDevice::new(), SizeRange::Smoke)?;
/// let copy = cases.iter().find(|case| case.kernel() == "copy").unwrap();
/// assert_eq!(copy.work().bytes, 2 * 4 * copy.size() as u64); // reads and writes each element
/// assert_eq!(copy.work().flops, 0);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Number of bytes that a run reads and writes; an operand that the run reads and writes counts
    /// twice.
    pub bytes: u64,
    /// Number of floating-point operations of a run, which is 0 for kernels that only move data.
    pub flops: u64,
}

/// Selection of the problem sizes for which [`cases`] creates benchmark cases.
///
/// ```
/// use cortado::{CpuDevice, bench_kit::{SizeRange, cases}};
///
/// let cases = cases::<f32>(&CpuDevice::new(), SizeRange::Smoke)?;
/// let sizes = cases.iter().filter(|case| case.kernel() == "gemm").map(|case| case.size());
/// assert_eq!(sizes.collect::<Vec<_>>(), [16]); // `Full` has sizes from 16 to 1024
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeRange {
    /// One small size per kernel, for a smoke test. One size per kernel is too few to compute
    /// break-even sizes.
    Smoke,
    /// Several sizes per kernel: vectors of 2⁸ to 2²² elements, square matrices of 16 to 1024 rows,
    /// and batches of 1 to 64 images.
    Full,
    /// One size per kernel, so large that memory bandwidth limits the speed of memory-bound
    /// kernels. With `f32`, each vector of 2²⁶ elements and each square matrix takes 256 MiB of
    /// memory, and the operands of all cases take about 12 GiB.
    Large,
}

/// Runs a kernel. Returns the result of a kernel that has no output operand.
type Run<T> = Box<dyn Fn(&AnyDevice, &[Blob<T>]) -> Result<Option<f64>>>;

/// Benchmark case: a kernel with operands of one size.
///
/// ```
/// use cortado::{CpuDevice, bench_kit::{SizeRange, cases}};
/// use std::time::Instant;
///
/// for case in cases::<f64>(&CpuDevice::new(), SizeRange::Smoke)?.iter().take(3) {
///     let start = Instant::now();
///     case.run()?;
///     println!("{}: {:?}", case.name(), start.elapsed());
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Case<T: Element> {
    device: AnyDevice,
    kernel: &'static str,
    size: usize,
    work: Work,
    /// Operands that [`run_with_transfers`](Self::run_with_transfers) transfers: the inputs,
    /// followed by the output, if any.
    blobs: Vec<Blob<T>>,
    run: Run<T>,
}

impl<T: Element> Case<T> {
    /// Returns the name of the case's kernel.
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// Returns the problem size: the number of elements of a vector, of rows of a square matrix, or
    /// of images in a batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the name of the case, `kernel/element/size`, which is unique among all cases.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.kernel, T::DTYPE.name(), self.size)
    }

    /// Returns the numbers of bytes and of floating-point operations of one run of the kernel.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Runs the kernel once and waits until the device is idle.
    ///
    /// # Errors
    /// Returns an error if the kernel fails.
    pub fn run(&self) -> Result<()> {
        self.enqueue()?;
        self.device.synchronize()
    }

    /// Queues one run of the kernel, and may return before the kernel has finished. A caller that
    /// queues several runs in a row hides the overhead of launching the kernel.
    ///
    /// # Errors
    /// Returns an error if the kernel fails.
    pub fn enqueue(&self) -> Result<()> {
        (self.run)(&self.device, &self.blobs).map(drop)
    }

    /// Runs the kernel once and returns its result: the number that the kernel returns, or else the
    /// elements of the output. All devices compute the same results up to rounding, because the
    /// operands do not depend on the device.
    ///
    /// # Errors
    /// Returns an error if the kernel or the download fails.
    ///
    /// ```
    /// use cortado::{CpuDevice, bench_kit::{SizeRange, cases}};
    ///
    /// let cases = cases::<f32>(&CpuDevice::new(), SizeRange::Smoke)?;
    /// let relu = cases.iter().find(|case| case.kernel() == "unary relu").unwrap();
    /// let values = relu.values()?;
    /// assert!(values.len() == relu.size() && values.iter().all(|value| *value >= 0.25));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    pub fn values(&self) -> Result<Vec<f64>> {
        match ((self.run)(&self.device, &self.blobs)?, self.blobs.last()) {
            (Some(number), _) => Ok(vec![number]),
            (None, None) => Ok(Vec::new()),
            (None, Some(output)) => Ok(output.to_vec()?.into_iter().map(T::to_f64).collect()),
        }
    }

    /// Uploads the operands, runs the kernel once, and downloads the result.
    ///
    /// # Errors
    /// Returns an error if the kernel or a transfer fails.
    pub fn run_with_transfers(&self) -> Result<()> {
        for blob in &self.blobs {
            blob.data_mut()?.host_mut()?;
        }
        self.run()?;
        if let Some(output) = self.blobs.last() {
            output.data()?.host()?;
        }
        Ok(())
    }
}

/// Returns the benchmark cases for the given sizes, with random operands.
///
/// # Errors
/// Returns an error if the device cannot allocate or fill the operands.
pub fn cases<T: Element>(device: &impl Device, sizes: SizeRange) -> Result<Vec<Case<T>>> {
    cases_where(&AnyDevice::new(device), sizes, &|_| true)
}

/// Like [`cases`], but only for the kernels that `selects` accepts by name.
pub(super) fn cases_where<T: Element>(
    device: &AnyDevice,
    sizes: SizeRange,
    selects: &dyn Fn(&str) -> bool,
) -> Result<Vec<Case<T>>> {
    let (lengths, edges, batches): (Vec<usize>, Vec<usize>, Vec<usize>) = match sizes {
        SizeRange::Smoke => (vec![1 << 10], vec![16], vec![1]),
        SizeRange::Full => (
            (8..=22).step_by(2).map(|power| 1 << power).collect(),
            (4..=10).map(|power| 1 << power).collect(),
            (0..=6).step_by(2).map(|power| 1 << power).collect(),
        ),
        SizeRange::Large => (vec![1 << 26], vec![1 << 13], vec![1 << 13]),
    };
    let mut list = CaseList { device, selects, cases: Vec::new() };
    for n in lengths {
        vectors(&mut list, n)?;
        rows(&mut list, n)?;
    }
    for n in edges {
        matrices(&mut list, n)?;
    }
    for n in batches {
        images(&mut list, n)?;
    }
    list.cases.sort_by_key(|case| (case.kernel, case.size));
    Ok(list.cases)
}

struct CaseList<'d, T: Element> {
    device: &'d AnyDevice,
    /// Returns whether the cases of a kernel are added to the list.
    selects: &'d dyn Fn(&str) -> bool,
    cases: Vec<Case<T>>,
}

impl<T: Element> CaseList<'_, T> {
    /// Adds a benchmark case whose operands have the given lengths; the last operand is the output,
    /// if any. `accesses` is the number of elements that the kernel reads and writes, and `flops`
    /// is the number of floating-point operations.
    fn add(
        &mut self,
        (kernel, size): (&'static str, usize),
        lengths: &[usize],
        (accesses, flops): (usize, u64),
        run: impl Fn(&AnyDevice, &[Blob<T>]) -> Result<()> + 'static,
    ) -> Result<()> {
        let run = move |device: &AnyDevice, blobs: &[Blob<T>]| run(device, blobs).map(|()| None);
        self.add_run((kernel, size), lengths, (accesses, flops), Box::new(run))
    }

    /// Like [`add`](Self::add), but for a kernel that returns a number and has no output operand.
    fn add_number(
        &mut self,
        name: (&'static str, usize),
        lengths: &[usize],
        work: (usize, u64),
        run: impl Fn(&AnyDevice, &[Blob<T>]) -> Result<T::Acc> + 'static,
    ) -> Result<()> {
        let run = move |device: &AnyDevice, blobs: &[Blob<T>]| {
            run(device, blobs).map(|number| Some(number.to_f64()))
        };
        self.add_run(name, lengths, work, Box::new(run))
    }

    fn add_run(
        &mut self,
        (kernel, size): (&'static str, usize),
        lengths: &[usize],
        (accesses, flops): (usize, u64),
        run: Run<T>,
    ) -> Result<()> {
        if !(self.selects)(kernel) {
            return Ok(());
        }
        let random_blob = |(i, &len): (usize, &usize)| {
            let blob = Blob::new(self.device, &[len])?;
            let key = RngKey::new(0).child(i as u64);
            Filler::Uniform { min: 0.25, max: 1.0 }.fill(&blob, key)?;
            Ok(blob)
        };
        let blobs = lengths.iter().enumerate().map(random_blob).collect::<Result<_>>()?;
        let work = Work { bytes: (accesses * size_of::<T>()) as u64, flops };
        let device = self.device.clone();
        self.cases.push(Case { device, kernel, size, work, blobs, run });
        Ok(())
    }
}

/// Adds cases of kernels on vectors of `n` elements.
fn vectors<T: Element>(list: &mut CaseList<'_, T>, n: usize) -> Result<()> {
    let count = n as u64;
    let alpha = T::acc(1e-3);
    list.add(("copy", n), &[n, n], (2 * n, 0), |d, b| {
        d.copy(b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    list.add(("fill", n), &[n], (n, 0), |d, b| d.fill(T::default(), b[0].data_mut()?.view_mut()))?;
    list.add(("axpy", n), &[n, n], (3 * n, 2 * count), move |d, b| {
        d.axpy(alpha, b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    list.add_number(("dot", n), &[n, n], (2 * n, 2 * count), |d, b| {
        d.dot(b[0].data()?.view(), b[1].data()?.view())
    })?;
    list.add_number(("asum", n), &[n], (n, count), |d, b| d.asum(b[0].data()?.view()))?;
    let functions = [("unary exp", Unary::Exp), ("unary relu", Unary::Relu { slope: T::acc(0.0) })];
    for (name, op) in functions {
        list.add((name, n), &[n, n], (2 * n, count), move |d, b| {
            d.unary(op, b[0].data()?.view().into(), b[1].data_mut()?.view_mut())
        })?;
    }
    list.add(("binary mul", n), &[n, n, n], (3 * n, count), |d, b| {
        let (x, y) = (b[0].data()?, b[1].data()?);
        d.binary(Binary::Mul, x.view().into(), y.view(), b[2].data_mut()?.view_mut())
    })?;
    list.add(("gaussian", n), &[n], (n, 0), |d, b| {
        d.gaussian(RngKey::new(1), 0.0, 1.0, b[0].data_mut()?.view_mut())
    })?;
    let (momentum, beta2, delta) = (T::acc(0.9), T::acc(0.999), T::acc(1e-8));
    update(list, n, ("sgd", 7), UpdateRule::Sgd { momentum })?;
    update(list, n, ("adam", 14), UpdateRule::Adam { beta1: momentum, beta2, delta })
}

/// Adds a case that updates `n` weights by a solver's update rule, with `flops` floating-point
/// operations per weight.
fn update<T: Element>(
    list: &mut CaseList<'_, T>,
    n: usize,
    (name, flops): (&'static str, u64),
    rule: UpdateRule<T>,
) -> Result<()> {
    let (rate, scale, decay) = (T::acc(1e-6), T::acc(1.0), T::acc(5e-4));
    let op = SolverUpdate::<T> { rate, scale, decay, regularization: Regularization::L2, rule };
    let history_count = rule.history_count();
    let history: [Blob<T::Acc>; 2] = [Blob::new(list.device, &[n])?, Blob::new(list.device, &[n])?];
    let accesses = 3 * n + 2 * history_count * n * size_of::<T::Acc>() / size_of::<T>();
    list.add((name, n), &[n, n], (accesses, flops * n as u64), move |d, b| {
        let (mut h, mut k) = (history[0].data_mut()?, history[1].data_mut()?);
        let history = &mut [h.view_mut(), k.view_mut()][..history_count];
        d.solver_update(&op, b[0].data()?.view(), b[1].data_mut()?.view_mut(), None, history)
    })
}

/// Adds cases of kernels that process a matrix row by row, such as softmax; the matrix has `n`
/// elements in rows of 64.
fn rows<T: Element>(list: &mut CaseList<'_, T>, n: usize) -> Result<()> {
    let (count, rows) = (n as u64, n.div_ceil(64));
    let axis = Axis::new(rows, n / rows, 1)?;
    list.add(("reduce sum", n), &[n, rows], (n + rows, count), move |d, b| {
        d.reduce(Reduce::Sum, &axis, b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    list.add(("softmax", n), &[n, n], (2 * n, 4 * count), move |d, b| {
        d.softmax(&axis, b[0].data()?.view().into(), b[1].data_mut()?.view_mut())
    })?;
    list.add(("broadcast add", n), &[n, n / rows, n], (2 * n, count), move |d, b| {
        let (x, bias) = (b[0].data()?, b[1].data()?);
        d.broadcast(Binary::Add, &axis, x.view().into(), bias.view(), b[2].data_mut()?.view_mut())
    })?;
    let op = op::SoftmaxLoss { axis, ignore: None, normalization: op::LossNormalization::Valid };
    let labels = Blob::<T>::new(list.device, &[rows])?;
    list.add(("softmax_loss", n), &[n, 1], (2 * rows, rows as u64), move |d, b| {
        let (p, labels) = (b[0].data()?, labels.data()?);
        d.softmax_loss(&op, p.view(), labels.view(), b[1].data_mut()?.view_mut())
    })
}

/// Adds cases of GEMM and GEMV with `n` × `n` matrices.
fn matrices<T: Element>(list: &mut CaseList<'_, T>, n: usize) -> Result<()> {
    let matrix_len = n * n;
    let op = Gemm::<T>::new(n, n, n);
    list.add(("gemm", n), &[matrix_len; 3], (3 * matrix_len, op.flops()), move |d, b| {
        let (x, y) = (b[0].data()?, b[1].data()?);
        d.gemm(&op, x.view(), y.view(), b[2].data_mut()?.view_mut())
    })?;
    let op = Gemv::<T>::new(Transpose::No, n, n);
    list.add(
        ("gemv", n),
        &[matrix_len, n, n],
        (matrix_len + 2 * n, 2 * matrix_len as u64),
        move |d, b| {
            let (a, x) = (b[0].data()?, b[1].data()?);
            d.gemv(&op, a.view(), x.view(), b[2].data_mut()?.view_mut())
        },
    )
}

/// Adds cases of three kernels on `n` images: LeNet's second convolution, its im2col, and the max
/// pooling after the convolution. The 5 × 5 convolution maps 20 planes of 12 × 12 to 50 planes.
fn images<T: Element>(list: &mut CaseList<'_, T>, n: usize) -> Result<()> {
    let axis = op::SpatialAxis::new(12, 5);
    let window = Window::new(20, &[axis, axis])?;
    let op = Convolution::new(n, 50, 1, window.clone())?;
    let (image, columns) = (window.image_len(), window.columns_len());
    list.add(("im2col", n), &[image * n, columns * n], ((image + columns) * n, 0), move |d, b| {
        let (x, mut y) = (b[0].data()?, b[1].data_mut()?);
        (0..n).try_for_each(|i| {
            let x = x.view().slice(i * image..(i + 1) * image)?;
            d.im2col(&window, x, y.view_mut().slice_mut(i * columns..(i + 1) * columns)?)
        })
    })?;
    let (x, w, y) = (op.input_len(), op.filter_len(), op.output_len());
    list.add(("convolve", n), &[x, w, 50, y], (x + w + y, op.flops()), move |d, b| {
        let (x, w, bias) = (b[0].data()?, b[1].data()?, b[2].data()?);
        d.convolve(&op, x.view(), w.view(), Some(bias.view()), b[3].data_mut()?.view_mut())
    })?;
    let op = Pool2d::new(n * 50, [8, 8], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil)?;
    let (x, y) = (op.input_len(), op.output_len());
    let mask = Blob::<i32>::new(list.device, &[y])?;
    list.add(("max_pool", n), &[x, y], (x + 2 * y, 0), move |d, b| {
        let (mut y, mut mask) = (b[1].data_mut()?, mask.data_mut()?);
        d.max_pool(&op, b[0].data()?.view(), y.view_mut(), mask.view_mut())
    })
}
