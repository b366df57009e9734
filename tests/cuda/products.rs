//! Products and sums that are large enough for every shape of tiles, and to be split: of whole
//! numbers, whose sums are exact in any order, beside the CPU's.

use super::{gpu, gpu_with};
use cortado::{
    CpuDevice, Device, Element, Result, SyncedMemory, View, ViewMut,
    element::{DType, bf16, f16},
    op::{Axis, Convolution, Gemm, Gemv, Reduce, SpatialAxis, Transpose, Window},
};

/// A kernel of any device: of two operands onto a third.
trait Kernel<T: Element> {
    fn lengths(&self) -> [usize; 3];
    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        b: View<'_, T, D>,
        c: ViewMut<'_, T, D>,
    ) -> Result<()>;
}

/// Small whole numbers, for each operand others.
fn operand<T: Element, D: Device>(device: &D, len: usize, which: usize) -> SyncedMemory<D> {
    let mut memory = SyncedMemory::new(device, len * size_of::<T>());
    let mut view = ViewMut::<T, D>::new(&mut memory, len).unwrap();
    for (i, x) in view.host_mut().unwrap().iter_mut().enumerate() {
        *x = T::from_f64(((i * 7 + which * 5 + i / 11) % 5) as f64 - 2.0);
    }
    memory
}

/// What a kernel leaves in its third operand.
fn result<T: Element, D: Device>(kernel: &impl Kernel<T>, device: &D) -> Vec<f64> {
    let [len_a, len_b, len_c] = kernel.lengths();
    let (a, b) = (operand::<T, D>(device, len_a, 0), operand::<T, D>(device, len_b, 1));
    let mut c = operand::<T, D>(device, len_c, 2);
    let (a, b) = (View::new(&a, len_a).unwrap(), View::new(&b, len_b).unwrap());
    kernel.run(device, a, b, ViewMut::new(&mut c, len_c).unwrap()).unwrap();
    let c = View::<T, D>::new(&c, len_c).unwrap();
    c.host().unwrap().iter().map(|c| c.to_f64()).collect()
}

fn same<T: Element>(kernel: &impl Kernel<T>, what: &str) {
    let want = result(kernel, &CpuDevice::new());
    // Rounding the operands changes nothing: they are of few bits.
    let rounding = (T::DTYPE == DType::F32).then(|| gpu_with(0, |builder| builder.tf32(true)));
    for gpu in [gpu(0), rounding.flatten()].into_iter().flatten() {
        expect_same::<T>(&result(kernel, &gpu), &want, what);
    }
}

fn expect_same<T: Element>(got: &[f64], want: &[f64], what: &str) {
    let differs = got.iter().zip(want).position(|(got, want)| got != want);
    assert_eq!(
        differs,
        None,
        "{what} of {}: {:?}",
        T::DTYPE.name(),
        differs.map(|i| (got[i], want[i]))
    );
}

/// Checks every element type.
macro_rules! of_each_type {
    ($check:ident) => {{
        $check::<f32>();
        $check::<f64>();
        $check::<f16>();
        $check::<bf16>();
    }};
}

impl<T: Element> Kernel<T> for Gemm<T> {
    fn lengths(&self) -> [usize; 3] {
        self.spans().unwrap().into()
    }
    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        b: View<'_, T, D>,
        c: ViewMut<'_, T, D>,
    ) -> Result<()> {
        device.gemm(self, a, b, c)
    }
}

fn gemm<T: Element>() {
    use Transpose::{No, Yes};
    let extents = [(130, 140, 40), (128, 256, 64), (200, 72, 700), (20, 300, 65), (66, 65, 1030)];
    for (m, n, k) in extents {
        for (a, b) in [(No, Yes), (Yes, No)] {
            let op = Gemm::<T>::with_transpose(a, b, m, n, k);
            same(&op, &format!("{op:?}"));
        }
        for (a, b) in [(No, No), (Yes, Yes)] {
            let op = Gemm::<T>::with_transpose(a, b, m, n, k);
            let wider = op.leading_dims(op.lda + 3, op.ldb + 1, n + 5);
            let wider = wider.alpha(T::acc(2.0)).beta(T::acc(-1.0));
            same(&wider, &format!("{wider:?}"));
        }
    }
}

#[test]
fn products_of_matrices() {
    of_each_type!(gemm);
}

impl<T: Element> Kernel<T> for Gemv<T> {
    fn lengths(&self) -> [usize; 3] {
        let (x, y) = self.lengths();
        [self.m * self.lda, x, y]
    }
    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        x: View<'_, T, D>,
        y: ViewMut<'_, T, D>,
    ) -> Result<()> {
        device.gemv(self, a, x, y)
    }
}

fn gemv<T: Element>() {
    for (m, n) in [(3, 9001), (9000, 3), (70, 2048), (300, 600)] {
        for trans in [Transpose::No, Transpose::Yes] {
            let op = Gemv::<T>::new(trans, m, n);
            same(&op, &format!("{op:?}"));
            let wider = op.leading_dim(n + 8).alpha(T::acc(2.0)).beta(T::acc(3.0));
            same(&wider, &format!("{wider:?}"));
        }
    }
}

#[test]
fn products_with_vectors() {
    of_each_type!(gemv);
}

/// Sums along, and onto, an axis.
struct Sums {
    axis: Axis,
    onto: bool,
}

impl<T: Element> Kernel<T> for Sums {
    fn lengths(&self) -> [usize; 3] {
        let len = if self.onto { self.axis.extent } else { self.axis.reduced_count() };
        [self.axis.count(), self.axis.count(), len]
    }
    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        b: View<'_, T, D>,
        c: ViewMut<'_, T, D>,
    ) -> Result<()> {
        match self.onto {
            true => device.dot_to_axis(&self.axis, T::acc(2.0), a, b, c),
            false => device.reduce(Reduce::Sum, &self.axis, a, c),
        }
    }
}

fn sums<T: Element>() {
    let axes =
        [(2, 20_011, 1), (3, 2000, 7), (1, 1500, 40), (3000, 5, 1), (40, 3, 700), (900, 4, 9)];
    for (outer, extent, inner) in axes {
        let axis = Axis::new(outer, extent, inner).unwrap();
        for onto in [false, true] {
            same::<T>(&Sums { axis, onto }, &format!("{axis:?}, onto: {onto}"));
        }
    }
}

#[test]
fn sums_that_are_split() {
    of_each_type!(sums);
}

/// A convolution, or one of its gradients.
struct Pass<'a> {
    op: &'a Convolution,
    which: usize,
}

impl<T: Element> Kernel<T> for Pass<'_> {
    fn lengths(&self) -> [usize; 3] {
        let (x, w, y) = (self.op.input_len(), self.op.filter_len(), self.op.output_len());
        [[x, w, y], [w, y, x], [x, y, w]][self.which]
    }
    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        b: View<'_, T, D>,
        c: ViewMut<'_, T, D>,
    ) -> Result<()> {
        match self.which {
            0 => device.convolve(self.op, a, b, None, c),
            1 => device.convolve_backward_input(self.op, a, b, c),
            _ => device.convolve_backward_filters(self.op, a, b, c),
        }
    }
}

fn convolutions<T: Element>() {
    for (channels, outputs, groups, stride) in
        [(36, 130, 1, 1), (70, 70, 2, 1), (36, 33, 1, 2), (8, 16, 8, 2)]
    {
        let axis = |input| SpatialAxis { input, kernel: 3, stride, pad: 1, dilation: 1 };
        let window = Window::new(channels, &[axis(15), axis(16)]).unwrap();
        let op = Convolution::new(3, outputs, groups, window).unwrap();
        for which in 0..3 {
            same::<T>(&Pass { op: &op, which }, &format!("pass {which} of {op:?}"));
        }
    }
}

#[test]
fn convolutions_of_many_planes() {
    of_each_type!(convolutions);
}
