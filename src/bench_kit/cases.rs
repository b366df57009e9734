//! Work that is worth timing on any device.

use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::Result,
    filler::Filler,
    op::{
        self, Axis, Binary, Convolution, Gemm, Gemv, Pool2d, PoolRounding, Reduce, Regularization,
        RngKey, SolverUpdate, Transpose, Unary, UpdateRule, Window,
    },
};

/// How much one run does, whatever the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes that have to be read and written: each operand once.
    pub bytes: u64,
    /// Floating-point operations; 0 where moving is all.
    pub flops: u64,
}

/// How far the sizes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeRange {
    /// One small size of each: to see that everything runs.
    Smoke,
    /// From what fits a register file to what fills caches.
    Full,
    /// One size of each, with `f32` operands of 256 MiB: what is as fast as memory is. All of them
    /// take some 12 GiB.
    Large,
}

type Run<T, D> = Box<dyn Fn(&D, &[Blob<T, D>]) -> Result<()>>;

/// A kernel at one size, with operands of its own.
pub struct Case<T: Element, D: Device> {
    device: D,
    kernel: &'static str,
    size: usize,
    work: Work,
    /// Inputs, then the output.
    blobs: Vec<Blob<T, D>>,
    run: Run<T, D>,
}

impl<T: Element, D: Device> Case<T, D> {
    /// The kernel's name.
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// The size: elements of a vector, rows of a square matrix, images of a batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `kernel/element/size`, unique within the kit.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.kernel, T::DTYPE.name(), self.size)
    }

    /// What one run does.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Runs once; the device is idle on return.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn run(&self) -> Result<()> {
        self.enqueue()?;
        self.device.synchronize()
    }

    /// Queues one run, of which several in a row hide what it costs to queue them.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn enqueue(&self) -> Result<()> {
        (self.run)(&self.device, &self.blobs)
    }

    /// Runs once on operands that come from the host, and takes the result there.
    ///
    /// # Errors
    /// Those of the kernel and of the copies.
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

/// Every kernel worth timing, over sizes, with random operands.
///
/// # Errors
/// Those of the device's memory.
pub fn cases<T: Element, D: Device>(device: &D, extent: SizeRange) -> Result<Vec<Case<T, D>>> {
    let (lengths, edges, batches): (Vec<usize>, Vec<usize>, Vec<usize>) = match extent {
        SizeRange::Smoke => (vec![1 << 10], vec![16], vec![1]),
        SizeRange::Full => (
            (8..=22).step_by(2).map(|power| 1 << power).collect(),
            (4..=10).map(|power| 1 << power).collect(),
            (0..=6).step_by(2).map(|power| 1 << power).collect(),
        ),
        SizeRange::Large => (vec![1 << 26], vec![1 << 13], vec![1 << 13]),
    };
    let mut list = CaseList { device, cases: Vec::new() };
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

struct CaseList<'d, T: Element, D: Device> {
    device: &'d D,
    cases: Vec<Case<T, D>>,
}

impl<T: Element, D: Device> CaseList<'_, T, D> {
    /// Adds a case whose operands have these lengths, the output's last. `touched` counts the
    /// elements read and written, `flops` the operations.
    fn add(
        &mut self,
        (kernel, size): (&'static str, usize),
        lengths: &[usize],
        (touched, flops): (usize, u64),
        run: impl Fn(&D, &[Blob<T, D>]) -> Result<()> + 'static,
    ) -> Result<()> {
        let random = |(at, &len): (usize, &usize)| {
            let blob = Blob::new(self.device, &[len])?;
            let key = RngKey::new(0).child(at as u64);
            Filler::Uniform { min: 0.25, max: 1.0 }.fill(&blob, key)?;
            Ok(blob)
        };
        let blobs = lengths.iter().enumerate().map(random).collect::<Result<_>>()?;
        let work = Work { bytes: (touched * size_of::<T>()) as u64, flops };
        let (device, run) = (self.device.clone(), Box::new(run));
        self.cases.push(Case { device, kernel, size, work, blobs, run });
        Ok(())
    }
}

/// Kernels on vectors of `n`.
fn vectors<T: Element, D: Device>(list: &mut CaseList<'_, T, D>, n: usize) -> Result<()> {
    let count = n as u64;
    let alpha = T::acc(1e-3);
    list.add(("copy", n), &[n, n], (2 * n, 0), |d, b| {
        d.copy(b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    list.add(("fill", n), &[n], (n, 0), |d, b| d.fill(T::default(), b[0].data_mut()?.view_mut()))?;
    list.add(("axpy", n), &[n, n], (3 * n, 2 * count), move |d, b| {
        d.axpy(alpha, b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    list.add(("dot", n), &[n, n], (2 * n, 2 * count), |d, b| {
        d.dot(b[0].data()?.view(), b[1].data()?.view()).map(drop)
    })?;
    list.add(("asum", n), &[n], (n, count), |d, b| d.asum(b[0].data()?.view()).map(drop))?;
    let maps = [("unary exp", Unary::Exp), ("unary relu", Unary::Relu { slope: T::acc(0.0) })];
    for (name, op) in maps {
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
    solver_step(list, n, ("sgd", 7), UpdateRule::Sgd { momentum })?;
    solver_step(list, n, ("adam", 14), UpdateRule::Adam { beta1: momentum, beta2, delta })
}

/// A solver's step on `n` weights, of so many operations each.
fn solver_step<T: Element, D: Device>(
    list: &mut CaseList<'_, T, D>,
    n: usize,
    (name, flops): (&'static str, u64),
    rule: UpdateRule<T>,
) -> Result<()> {
    let (rate, scale, decay) = (T::acc(1e-6), T::acc(1.0), T::acc(5e-4));
    let op = SolverUpdate::<T> { rate, scale, decay, regularization: Regularization::L2, rule };
    let kept = rule.history_count();
    let history: [Blob<T::Acc, D>; 2] =
        [Blob::new(list.device, &[n])?, Blob::new(list.device, &[n])?];
    let touched = 3 * n + 2 * kept * n * size_of::<T::Acc>() / size_of::<T>();
    list.add((name, n), &[n, n], (touched, flops * n as u64), move |d, b| {
        let (mut h, mut k) = (history[0].data_mut()?, history[1].data_mut()?);
        let history = &mut [h.view_mut(), k.view_mut()][..kept];
        d.solver_update(&op, b[0].data()?.view(), b[1].data_mut()?.view_mut(), None, history)
    })
}

/// Kernels on `n` elements in rows of 64.
fn rows<T: Element, D: Device>(list: &mut CaseList<'_, T, D>, n: usize) -> Result<()> {
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
    let labels = Blob::<T, D>::new(list.device, &[rows])?;
    list.add(("softmax_loss", n), &[n, 1], (2 * rows, rows as u64), move |d, b| {
        let (p, labels) = (b[0].data()?, labels.data()?);
        d.softmax_loss(&op, p.view(), labels.view(), b[1].data_mut()?.view_mut())
    })
}

/// Products of square matrices of `n` rows.
fn matrices<T: Element, D: Device>(list: &mut CaseList<'_, T, D>, n: usize) -> Result<()> {
    let square = n * n;
    let op = Gemm::<T>::new(n, n, n);
    list.add(("gemm", n), &[square; 3], (3 * square, op.flops()), move |d, b| {
        let (x, y) = (b[0].data()?, b[1].data()?);
        d.gemm(&op, x.view(), y.view(), b[2].data_mut()?.view_mut())
    })?;
    let op = Gemv::<T>::new(Transpose::No, n, n);
    list.add(("gemv", n), &[square, n, n], (square + 2 * n, 2 * square as u64), move |d, b| {
        let (a, x) = (b[0].data()?, b[1].data()?);
        d.gemv(&op, a.view(), x.view(), b[2].data_mut()?.view_mut())
    })
}

/// A 5×5 convolution of 20 into 50 planes of 12×12, its columns, and pooling, on `n` images:
/// LeNet's second layer.
fn images<T: Element, D: Device>(list: &mut CaseList<'_, T, D>, n: usize) -> Result<()> {
    let side = op::SpatialAxis::new(12, 5);
    let window = Window::new(20, &[side, side])?;
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
    let mask = Blob::<i32, D>::new(list.device, &[y])?;
    list.add(("max_pool", n), &[x, y], (x + 2 * y, 0), move |d, b| {
        let (mut y, mut mask) = (b[1].data_mut()?, mask.data_mut()?);
        d.max_pool(&op, b[0].data()?.view(), y.view_mut(), mask.view_mut())
    })
}
