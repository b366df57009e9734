//! The launches whose counters the table contains: each kernel call has a fixed size.

use cortado::{
    Blob, Element, Memory, Result, SyncedMemory, View, ViewMut,
    device::CudaDevice,
    element::{DType, bf16, f16},
    kernel::traits::*,
    op::{
        Axis, Binary, Convolution, Copy2d, EpsilonPlacement, Gemm, Gemv, LossNormalization, Lrn,
        LrnRegion, Lstm, Permute, Pool2d, PoolRounding, Reduce, Regularization, RngKey,
        RowIndexing, SoftmaxLoss, SolverUpdate, SpatialAxis, Standardize, TopK, Transpose, Unary,
        UpdateRule, Window,
    },
    shape::Shape,
};
use std::{fs::File, io::Write};

/// Number of multiprocessors of an A100, which determines tile shapes and grids.
pub(crate) const MULTIPROCESSORS: usize = 108;

/// Number of elements of vectors.
const N: usize = 1 << 20;

type Blobs<T> = [Blob<T, CudaDevice>];

/// Runs kernel calls, and writes the name of each call to the log of the PTX machine.
struct Calls<'a> {
    device: &'a CudaDevice,
    log: &'a File,
}

impl Calls<'_> {
    /// Makes one call on operands with the given lengths and positive elements. The call may launch
    /// several kernels.
    fn call<T: Element>(
        &mut self,
        name: &str,
        lengths: &[usize],
        run: impl FnOnce(&CudaDevice, &Blobs<T>) -> Result<()>,
    ) -> Result<()> {
        let operand = |&len: &usize| {
            Blob::from_fn(self.device, &[len], |i| T::from_f64(0.25 + (i * 7 % 64) as f64 / 128.0))
        };
        let blobs = lengths.iter().map(operand).collect::<Result<Vec<_>>>()?;
        writeln!(self.log, "{name} {}", T::DTYPE.name()).unwrap();
        run(self.device, &blobs)?;
        self.device.synchronize()
    }
}

/// A function that makes a part of the kernel calls, on two devices. The second device rounds the
/// `f32` operands of matrix products to TF32.
type Part = fn(&CudaDevice, &CudaDevice, &File) -> Result<()>;

/// All kernel calls, divided into parts that take about the same time.
pub(crate) const PARTS: [Part; 2] = [
    |device, _, log| {
        let calls = &mut Calls { device, log };
        products::<f32>(calls, "")?;
        products::<f64>(calls, "")
    },
    |device, tf32, log| {
        products::<f32>(&mut Calls { device: tf32, log }, "TF32 ")?;
        let calls = &mut Calls { device, log };
        products::<f16>(calls, "")?;
        products::<bf16>(calls, "")?;
        others::<f32>(calls)?;
        others::<bf16>(calls)
    },
];

fn products<T: Element>(calls: &mut Calls<'_>, prefix: &str) -> Result<()> {
    gemm::<T>(calls, prefix)?;
    if prefix.is_empty() {
        gemv::<T>(calls)?;
    }
    convolutions::<T>(calls, prefix)
}

fn others<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    vectors::<T>(calls)?;
    rows::<T>(calls)?;
    images::<T>(calls)?;
    indexing::<T>(calls)
}

fn gemm<T: Element>(calls: &mut Calls<'_>, prefix: &str) -> Result<()> {
    use Transpose::{No, Yes};
    // 108 tiles of 128 × 128 elements, and 16 tiles of 64 × 64. With short sums, the memory would
    // limit the products on tensor cores.
    let is_on_tensor_cores = size_of::<T>() == 2 || prefix == "TF32 ";
    let k = if is_on_tensor_cores { 512 } else { 128 };
    for (m, n, k) in [(1536, 1152, k), (256, 256, 512)] {
        for (a, b, name) in [(No, No, "A·B"), (No, Yes, "A·Bᵀ"), (Yes, No, "Aᵀ·B")] {
            let op = Gemm::<T>::new(m, n, k).transpose(a, b);
            let name = format!("{prefix}gemm {name} {m}×{n}×{k}");
            calls.call(&name, &[m * k, k * n, m * n], |d, b| {
                let (x, y) = (b[0].data()?, b[1].data()?);
                d.gemm(&op, x.view(), y.view(), b[2].data_mut()?.view_mut())
            })?;
        }
    }
    Ok(())
}

fn gemv<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    for (trans, name) in [(Transpose::No, "A·x"), (Transpose::Yes, "Aᵀ·x")] {
        let op = Gemv::<T>::new(trans, 1024, 1024);
        calls.call(&format!("gemv {name} 1024×1024"), &[1 << 20, 1024, 1024], |d, b| {
            let (a, x) = (b[0].data()?, b[1].data()?);
            d.gemv(&op, a.view(), x.view(), b[2].data_mut()?.view_mut())
        })?;
    }
    Ok(())
}

fn convolutions<T: Element>(calls: &mut Calls<'_>, prefix: &str) -> Result<()> {
    let axis = |input, kernel, stride, pad| SpatialAxis { input, kernel, stride, pad, dilation: 1 };
    // GoogLeNet's 3 × 3 convolutions of 28 × 28, and LeNet's second convolution.
    let shapes = [
        ("18 images, 16→128 planes of 28×28, 3×3", 18, 16, 128, axis(28, 3, 1, 1)),
        ("64 images, 20→50 planes of 12×12, 5×5", 64, 20, 50, axis(12, 5, 1, 0)),
    ];
    // Convolutions in f64 have only one tile shape, so the smaller convolution is enough for f64.
    let first = if T::DTYPE == DType::F64 { 1 } else { 0 };
    for (name, batch, channels, outputs, axis) in shapes.into_iter().skip(first) {
        let window = Window::new(channels, &[axis, axis])?;
        let op = Convolution::new(batch, outputs, 1, window)?;
        let (x, w, y) = (op.input_len(), op.filter_len(), op.output_len());
        calls.call(&format!("{prefix}convolve {name}"), &[x, w, outputs, y], |d, b| {
            let (x, w, bias) = (b[0].data()?, b[1].data()?, b[2].data()?);
            let mut y = b[3].data_mut()?;
            d.convolve::<T>(&op, x.view(), w.view(), Some(bias.view()), y.view_mut())
        })?;
        calls.call(&format!("{prefix}convolve_backward_input {name}"), &[w, y, x], |d, b| {
            let (w, dy) = (b[0].data()?, b[1].data()?);
            d.convolve_backward_input::<T>(&op, w.view(), dy.view(), b[2].data_mut()?.view_mut())
        })?;
        calls.call(&format!("{prefix}convolve_backward_filters {name}"), &[x, y, w], |d, b| {
            let (x, dy) = (b[0].data()?, b[1].data()?);
            d.convolve_backward_filters::<T>(&op, x.view(), dy.view(), b[2].data_mut()?.view_mut())
        })?;
    }
    let axis = axis(227, 11, 4, 0);
    let op = Convolution::new(2, 96, 1, Window::new(3, &[axis, axis])?)?;
    let lengths = [op.input_len(), op.filter_len(), op.output_len()];
    let name = format!("{prefix}convolve 2 images, 3→96 planes of 227×227, 11×11, stride 4");
    calls.call(&name, &lengths, |d, b| {
        let (x, w) = (b[0].data()?, b[1].data()?);
        d.convolve::<T>(&op, x.view(), w.view(), None, b[2].data_mut()?.view_mut())
    })
}

fn vectors<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    let alpha = T::acc(0.5);
    calls.call("fill 2²⁰", &[N], |d, b| d.fill(T::default(), b[0].data_mut()?.view_mut()))?;
    calls.call("axpy 2²⁰", &[N, N], |d, b| {
        d.axpy::<T>(alpha, b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })?;
    calls.call("dot 2²⁰", &[N, N], |d, b| {
        d.dot::<T>(b[0].data()?.view(), b[1].data()?.view()).map(drop)
    })?;
    calls.call("amax 2²⁰", &[N], |d, b| d.amax::<T>(b[0].data()?.view()).map(drop))?;
    let functions = [
        ("relu", Unary::Relu { slope: T::acc(0.0) }),
        ("exp", Unary::Exp),
        ("sigmoid", Unary::Sigmoid),
        ("tanh", Unary::Tanh),
    ];
    for (name, op) in functions {
        calls.call(&format!("unary {name} 2²⁰"), &[N, N], |d, b| {
            d.unary::<T>(op, b[0].data()?.view().into(), b[1].data_mut()?.view_mut())
        })?;
    }
    calls.call("binary mul 2²⁰", &[N; 3], |d, b| {
        let (x, y) = (b[0].data()?, b[1].data()?);
        d.binary::<T>(Binary::Mul, x.view().into(), y.view(), b[2].data_mut()?.view_mut())
    })?;
    calls.call("convert to f16 2²⁰", &[N], |d, b| {
        let y = Blob::<f16, _>::new(d, &[N])?;
        d.convert::<T, f16>(b[0].data()?.view(), y.data_mut()?.view_mut())
    })?;
    let key = RngKey::new(1);
    calls.call("gaussian 2²⁰", &[N], |d, b| {
        d.gaussian::<T>(key, 0.0, 1.0, b[0].data_mut()?.view_mut())
    })?;
    calls.call("dropout 2²⁰", &[N, N], |d, b| {
        d.dropout::<T>(key, 0.5, b[0].data()?.view().into(), b[1].data_mut()?.view_mut())
    })?;
    let (momentum, beta2, delta) = (T::acc(0.9), T::acc(0.999), T::acc(1e-8));
    let rules = [
        ("sgd", UpdateRule::Sgd { momentum }),
        ("adam", UpdateRule::Adam { beta1: momentum, beta2, delta }),
    ];
    for (name, rule) in rules {
        let (rate, scale, decay) = (T::acc(1e-3), T::acc(1.0), T::acc(5e-4));
        let op = SolverUpdate::<T> { rate, scale, decay, regularization: Regularization::L2, rule };
        calls.call(&format!("solver_update {name} 2²⁰"), &[N, N], |d, b| {
            let zeros = || Blob::<T::Acc, _>::from_fn(d, &[N], |_| T::acc(0.0));
            let (h, k) = (zeros()?, zeros()?);
            let (mut h, mut k) = (h.data_mut()?, k.data_mut()?);
            let history = &mut [h.view_mut(), k.view_mut()][..rule.history_count()];
            let (dw, mut w) = (b[0].data()?, b[1].data_mut()?);
            d.solver_update(&op, dw.view(), w.view_mut(), None, history)
        })?;
    }
    Ok(())
}

fn rows<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    let axes = [
        ("1024 rows of 1000", Axis::new(1024, 1000, 1)?),
        ("32 planes of 21×4096", Axis::new(32, 21, 1024)?),
    ];
    for (name, axis) in axes {
        let (n, results) = (axis.count(), axis.reduced_count());
        calls.call(&format!("reduce_sum {name}"), &[n, results], |d, b| {
            d.reduce::<T>(Reduce::Sum, &axis, b[0].data()?.view(), b[1].data_mut()?.view_mut())
        })?;
        calls.call(&format!("sum_to_axis {name}"), &[n, axis.extent], |d, b| {
            let (x, mut y) = (b[0].data()?, b[1].data_mut()?);
            d.sum_to_axis::<T>(&axis, T::acc(0.0), x.view(), y.view_mut())
        })?;
        calls.call(&format!("softmax {name}"), &[n, n], |d, b| {
            d.softmax::<T>(&axis, b[0].data()?.view().into(), b[1].data_mut()?.view_mut())
        })?;
        calls.call(&format!("softmax_backward {name}"), &[n; 3], |d, b| {
            let (y, dy) = (b[0].data()?, b[1].data()?);
            d.softmax_backward::<T>(&axis, y.view(), dy.view().into(), b[2].data_mut()?.view_mut())
        })?;
        calls.call(&format!("broadcast add {name}"), &[n, axis.extent, n], |d, b| {
            let (x, y, mut z) = (b[0].data()?, b[1].data()?, b[2].data_mut()?);
            d.broadcast::<T>(Binary::Add, &axis, x.view().into(), y.view(), z.view_mut())
        })?;
        calls.call(&format!("moments {name}"), &[n, axis.extent, axis.extent], |d, b| {
            let (x, mut mean, mut variance) = (b[0].data()?, b[1].data_mut()?, b[2].data_mut()?);
            d.moments::<T>(&axis, x.view(), mean.view_mut(), variance.view_mut())
        })?;
        let op = Standardize {
            axis,
            epsilon: 1e-5,
            epsilon_placement: EpsilonPlacement::AddedToVariance,
        };
        let lengths = [n, axis.extent, axis.extent, n];
        calls.call(&format!("standardize {name}"), &lengths, |d, b| {
            let (x, mean, variance) = (b[0].data()?, b[1].data()?, b[2].data()?);
            let mut y = b[3].data_mut()?;
            let (mean, variance) = (mean.view(), variance.view());
            d.standardize::<T>(&op, x.view().into(), mean, variance, y.view_mut())
        })?;
        let op = SoftmaxLoss { axis, ignore: None, normalization: LossNormalization::Valid };
        calls.call(&format!("softmax_loss {name}"), &[n, 1], |d, b| {
            let label = Blob::<T, _>::from_fn(d, &[results], |_| T::default())?;
            let (p, label) = (b[0].data()?, label.data()?);
            d.softmax_loss::<T>(&op, p.view(), label.view(), b[1].data_mut()?.view_mut())
        })?;
    }
    let op = TopK { axis: axes[0].1, k: 5 };
    calls.call("top_k 5 of 1024 rows of 1000", &[1_024_000, 5120, 5120], |d, b| {
        let (x, mut values, mut places) = (b[0].data()?, b[1].data_mut()?, b[2].data_mut()?);
        d.top_k::<T>(&op, x.view(), values.view_mut(), places.view_mut())
    })
}

fn images<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    // GoogLeNet's first pooling, with fewer planes.
    let op = Pool2d::new(256, [56, 56], [3, 3], [2, 2], [0, 0], PoolRounding::Ceil)?;
    let (x, y) = (op.input_len(), op.output_len());
    let name = "256 planes of 56×56, 3×3, stride 2";
    calls.call(&format!("max_pool, max_pool_backward {name}"), &[x, y, x], |d, b| {
        let mask = Blob::<i32, _>::from_vec(d, &[y], vec![0; y])?;
        let (mut y, mut dx) = (b[1].data_mut()?, b[2].data_mut()?);
        let x = b[0].data()?;
        d.max_pool::<T>(&op, x.view(), y.view_mut(), mask.data_mut()?.view_mut())?;
        d.max_pool_backward::<T>(&op, y.view(), mask.data()?.view(), dx.view_mut())
    })?;
    calls.call(&format!("average_pool, average_pool_backward {name}"), &[x, y, x], |d, b| {
        let (x, mut y, mut dx) = (b[0].data()?, b[1].data_mut()?, b[2].data_mut()?);
        d.average_pool::<T>(&op, x.view(), y.view_mut())?;
        d.average_pool_backward::<T>(&op, y.view(), dx.view_mut())
    })?;
    let regions = [
        ("across channels", LrnRegion::AcrossChannels),
        ("within channels", LrnRegion::WithinChannel),
    ];
    for (name, region) in regions {
        let (plane, size, alpha, beta, k) = ([27, 27], 5, 1e-4, 0.75, 1.0);
        let op = Lrn { region, batch: 4, channels: 96, plane, size, alpha, beta, k };
        let name = format!("lrn, lrn_backward {name}, 4 images of 96 planes of 27×27");
        calls.call(&name, &[op.count(); 5], |d, b| {
            let (x, mut scale, mut y) = (b[0].data()?, b[1].data_mut()?, b[2].data_mut()?);
            d.lrn::<T>(&op, x.view(), scale.view_mut(), y.view_mut())?;
            let (dy, mut dx) = (b[3].data()?, b[4].data_mut()?);
            d.lrn_backward::<T>(&op, x.view(), y.view(), scale.view(), dy.view(), dx.view_mut())
        })?;
    }
    let axis = SpatialAxis { pad: 1, ..SpatialAxis::new(28, 3) };
    let window = Window::new(64, &[axis, axis])?;
    let lengths = [window.image_len(), window.columns_len()];
    calls.call("im2col, col2im 64 planes of 28×28, 3×3", &lengths, |d, b| {
        let (mut x, mut columns) = (b[0].data_mut()?, b[1].data_mut()?);
        d.im2col::<T>(&window, x.view(), columns.view_mut())?;
        d.col2im::<T>(&window, columns.view(), x.view_mut())
    })?;
    let op = Lstm::new(64, 256)?;
    let lengths = [op.state(), 64, op.gates(), op.state(), op.state()];
    calls.call("lstm 64 streams of 256", &lengths, |d, b| {
        let (c_prev, cont, mut gates) = (b[0].data()?, b[1].data()?, b[2].data_mut()?);
        let (mut c, mut h) = (b[3].data_mut()?, b[4].data_mut()?);
        let (c_prev, cont) = (c_prev.view(), cont.view());
        d.lstm::<T>(&op, c_prev, cont, gates.view_mut(), c.view_mut(), h.view_mut())
    })
}

fn indexing<T: Element>(calls: &mut Calls<'_>) -> Result<()> {
    let indices =
        |d: &CudaDevice, count: usize, table: usize| -> Result<SyncedMemory<CudaDevice>> {
            let mut indices = SyncedMemory::new(d, 4 * count);
            let mut view = ViewMut::<u32, _>::new(&mut indices, count)?;
            let values = view.host_mut()?.iter_mut().enumerate();
            values.for_each(|(i, index)| *index = (i * 7919 % table) as u32);
            Ok(indices)
        };
    let op = RowIndexing { table: 2048, width: 256, count: 1024 };
    let lengths = [op.table * op.width, op.count * op.width];
    calls.call("gather 1024 rows of 256", &lengths, |d, b| {
        let (table, indices) = (b[0].data()?, indices(d, op.count, op.table)?);
        let indices = View::new(&indices, op.count)?;
        d.gather::<T>(&op, table.view(), indices, b[1].data_mut()?.view_mut())
    })?;
    calls.call("scatter_add 1024 rows of 256", &lengths, |d, b| {
        let (mut table, indices) = (b[0].data_mut()?, indices(d, op.count, op.table)?);
        let indices = View::new(&indices, op.count)?;
        d.scatter_add::<T>(&op, b[1].data()?.view(), indices, table.view_mut())
    })?;
    let orders = [
        ("transpose of 1024×1024", Shape::new(&[1024, 1024])?, vec![1, 0]),
        ("16×64×32×32 to channels last", Shape::new(&[16, 64, 32, 32])?, vec![0, 2, 3, 1]),
    ];
    for (name, shape, order) in orders {
        let op = Permute::new(shape, &order)?;
        calls.call(&format!("permute {name}"), &[N, N], |d, b| {
            d.permute::<T>(&op, b[0].data()?.view(), b[1].data_mut()?.view_mut())
        })?;
    }
    let op = Copy2d { rows: 1024, columns: 500, ldx: 512, ldy: 500 };
    calls.call("copy_2d 1024×500", &[1024 * 512, 1024 * 500], |d, b| {
        d.copy_2d::<T>(&op, b[0].data()?.view(), b[1].data_mut()?.view_mut())
    })
}
