//! Compares the results of GEMMs, sums and convolutions on CUDA with those of the CPU. The operands
//! are integers, so sums are exact in any order. The matrix sizes cover every tile shape of the
//! CUDA kernels, and sums that are split among thread blocks.

use super::{gpu, gpu_with, is_child, simulated_gpu};
use cortado::{
    Blob, CpuDevice, Device, Element, Memory, Result, SyncedMemory, View, ViewMut,
    conformance::Kit,
    device::CudaDevice,
    element::{DType, bf16, f16},
    kernel::Blas,
    op::{Axis, Convolution, Gemm, Gemv, Reduce, SpatialAxis, Transpose, Window},
};

/// Kernel call that reads the operands `a` and `b`, and updates or overwrites `c`.
#[derive(Debug)]
enum Kernel<T: Element> {
    Gemm(Gemm<T>),
    Gemv(Gemv<T>),
    Sum(Axis),
    DotToAxis(Axis),
    Convolve(Convolution),
    ConvolveBackwardInput(Convolution),
    ConvolveBackwardFilters(Convolution),
}

impl<T: Element> Kernel<T> {
    fn lengths(&self) -> [usize; 3] {
        let conv = |op: &Convolution| [op.input_len(), op.filter_len(), op.output_len()];
        match self {
            Self::Gemm(op) => op.spans().unwrap().into(),
            Self::Gemv(op) => {
                let (x, y) = op.lengths();
                [op.m * op.lda, x, y]
            }
            Self::Sum(axis) => [axis.count(), 0, axis.reduced_count()],
            Self::DotToAxis(axis) => [axis.count(), axis.count(), axis.extent],
            Self::Convolve(op) => conv(op),
            Self::ConvolveBackwardInput(op) => {
                let [x, filters, y] = conv(op);
                [filters, y, x]
            }
            Self::ConvolveBackwardFilters(op) => {
                let [x, filters, y] = conv(op);
                [x, y, filters]
            }
        }
    }

    fn run<D: Device>(
        &self,
        device: &D,
        a: View<'_, T, D>,
        b: View<'_, T, D>,
        c: ViewMut<'_, T, D>,
    ) -> Result<()> {
        match self {
            Self::Gemm(op) => device.gemm(op, a, b, c),
            Self::Gemv(op) => device.gemv(op, a, b, c),
            Self::Sum(axis) => device.reduce(Reduce::Sum, axis, a, c),
            Self::DotToAxis(axis) => device.dot_to_axis(axis, T::acc(2.0), a, b, c),
            Self::Convolve(op) => device.convolve(op, a, b, None, c),
            Self::ConvolveBackwardInput(op) => device.convolve_backward_input(op, a, b, c),
            Self::ConvolveBackwardFilters(op) => device.convolve_backward_filters(op, a, b, c),
        }
    }

    /// Runs the kernel on a device and returns the output `c`.
    fn result<D: Device>(&self, device: &D) -> Vec<f64> {
        let lengths = self.lengths();
        let [a, b, mut c] = [0, 1, 2].map(|i| operand::<T, D>(device, lengths[i], i));
        let (a, b) = (View::new(&a, lengths[0]).unwrap(), View::new(&b, lengths[1]).unwrap());
        self.run(device, a, b, ViewMut::new(&mut c, lengths[2]).unwrap()).unwrap();
        let c = View::<T, D>::new(&c, lengths[2]).unwrap();
        c.host().unwrap().iter().map(|c| c.to_f64()).collect()
    }

    fn check(&self) {
        let expected = self.result(&CpuDevice::new());
        // Rounding to TF32 does not change the operands, which are integers with few bits.
        let tf32 = T::DTYPE == DType::F32;
        // On a GPU with many multiprocessors, fewer matrix products use large tiles, and sums are
        // split into more parts.
        let large_gpu = |tf32| gpu_with(0, |builder| builder.multiprocessors(132).tf32(tf32));
        let tf32_gpus = [gpu_with(0, |builder| builder.tf32(tf32)), large_gpu(tf32)];
        let tf32_gpus = tf32_gpus.into_iter().filter(|_| tf32);
        for gpu in [gpu(0), large_gpu(false)].into_iter().chain(tf32_gpus).flatten() {
            let found = self.result(&gpu);
            let mut pairs = found.iter().zip(&expected).enumerate();
            let difference = pairs.find(|(_, (found, expected))| found != expected);
            assert_eq!(difference, None, "{self:?} of {}", T::DTYPE.name());
        }
    }
}

/// Returns an operand whose elements are integers from −2 to 2.
fn operand<T: Element, D: Device>(device: &D, len: usize, number: usize) -> SyncedMemory<D> {
    let mut memory = SyncedMemory::new(device, len * size_of::<T>());
    let mut view = ViewMut::<T, D>::new(&mut memory, len).unwrap();
    for (i, x) in view.host_mut().unwrap().iter_mut().enumerate() {
        *x = T::from_f64(((i * 7 + number * 3 + i / 11) % 5) as f64 - 2.0);
    }
    memory
}

/// For every element type, checks the results of the kernel calls that the function `$kernels`
/// returns.
macro_rules! check_each_type {
    ($kernels:ident) => {{
        $kernels::<f32>().iter().for_each(Kernel::check);
        $kernels::<f64>().iter().for_each(Kernel::check);
        $kernels::<f16>().iter().for_each(Kernel::check);
        $kernels::<bf16>().iter().for_each(Kernel::check);
    }};
}

fn gemm_kernels<T: Element>() -> Vec<Kernel<T>> {
    use Transpose::{No, Yes};
    let extents = [(130, 140, 40), (128, 256, 64), (200, 72, 700), (20, 300, 65), (66, 65, 1030)];
    let mut kernels = Vec::new();
    for (m, n, k) in extents {
        for (a, b) in [(No, Yes), (Yes, No)] {
            kernels.push(Kernel::Gemm(Gemm::new(m, n, k).transpose(a, b)));
        }
        for (a, b) in [(No, No), (Yes, Yes)] {
            let op = Gemm::<T>::new(m, n, k).transpose(a, b);
            let op = op.leading_dims(op.lda + 3, op.ldb + 1, n + 5);
            kernels.push(Kernel::Gemm(op.alpha(T::acc(2.0)).beta(T::acc(-1.0))));
        }
    }
    kernels
}

#[test]
fn gemm_equals_the_cpu_for_every_tile_shape() {
    check_each_type!(gemm_kernels);
}

fn gemv_kernels<T: Element>() -> Vec<Kernel<T>> {
    let mut kernels = Vec::new();
    for (m, n) in [(3, 9001), (9000, 3), (70, 2048), (300, 600)] {
        for trans in [Transpose::No, Transpose::Yes] {
            let op = Gemv::<T>::new(trans, m, n);
            let padded_op = op.leading_dim(n + 8).alpha(T::acc(2.0)).beta(T::acc(3.0));
            kernels.extend([op, padded_op].map(Kernel::Gemv));
        }
    }
    kernels
}

#[test]
fn gemv_equals_the_cpu_for_split_sums() {
    check_each_type!(gemv_kernels);
}

fn sums<T: Element>() -> Vec<Kernel<T>> {
    let axes =
        [(2, 20_011, 1), (3, 2000, 7), (1, 1500, 40), (3000, 5, 1), (40, 3, 700), (900, 4, 9)];
    let axes = axes.map(|(outer, extent, inner)| Axis::new(outer, extent, inner).unwrap());
    axes.into_iter().flat_map(|axis| [Kernel::Sum(axis), Kernel::DotToAxis(axis)]).collect()
}

#[test]
fn reductions_equal_the_cpu_for_split_sums() {
    check_each_type!(sums);
}

fn convolutions<T: Element>() -> Vec<Kernel<T>> {
    let extents = [(36, 130, 1, 1), (70, 70, 2, 1), (36, 33, 1, 2), (8, 16, 8, 2), (20, 24, 1, 1)];
    let op = |(channels, outputs, groups, stride)| {
        let axis = |input| SpatialAxis { input, kernel: 3, stride, pad: 1, dilation: 1 };
        let window = Window::new(channels, &[axis(15), axis(16)]).unwrap();
        Convolution::new(3, outputs, groups, window).unwrap()
    };
    let passes: [fn(Convolution) -> Kernel<T>; 3] =
        [Kernel::Convolve, Kernel::ConvolveBackwardInput, Kernel::ConvolveBackwardFilters];
    extents.into_iter().flat_map(|extents| passes.map(|pass| pass(op(extents)))).collect()
}

#[test]
fn convolutions_of_many_planes_equal_the_cpu() {
    check_each_type!(convolutions);
}

/// Opens a GPU on which GEMM and convolution use large tiles for matrices of any size. By default,
/// the kernels use large tiles only for matrices larger than those of the conformance kit.
fn gpu_with_large_tiles(ordinal: u32) -> Option<CudaDevice> {
    gpu_with(ordinal, |builder| builder.large_tiles(true))
}

#[test]
fn large_tiles_pass_the_gemm_checks_of_the_conformance_kit() {
    let device = or_skip!(gpu_with_large_tiles(0));
    for check in ["gemm", "gemm_batched"] {
        Kit::new().cases(16).check(&device, check).unwrap();
    }
}

#[test]
fn large_tiles_pass_the_convolution_checks_of_the_conformance_kit() {
    let device = or_skip!(gpu_with_large_tiles(0));
    for check in ["convolve", "convolve_backward_input", "convolve_backward_filters"] {
        Kit::new().cases(16).check(&device, check).unwrap();
    }
}

/// On GPU 2 of the test driver, the kernel that adds up partial sums fails.
#[test]
fn sums_are_split_only_with_fewer_tiles_than_multiprocessors() {
    let name = "products::sums_are_split_only_with_fewer_tiles_than_multiprocessors";
    or_skip!(simulated_gpu(0));
    if is_child(name, "CUDA_ON_CPU_FAILING", "add_parts_f32") {
        // Each device computes four tiles of 64 × 64 elements.
        let multiply = |multiprocessors: usize| {
            let device = gpu_with(2, |builder| builder.multiprocessors(multiprocessors)).unwrap();
            let a = Blob::<f32, _>::new(&device, &[128, 1024]).unwrap();
            let c = Blob::<f32, _>::new(&device, &[128, 128]).unwrap();
            let op = Gemm::new(128, 128, 1024).transpose(Transpose::No, Transpose::Yes);
            let (a, mut c) = (a.data().unwrap(), c.data_mut().unwrap());
            device.gemm(&op, a.view(), a.view(), c.view_mut()).unwrap();
            device.synchronize()
        };
        multiply(2).unwrap();
        multiply(3).unwrap();
        multiply(4).unwrap();
        let message = multiply(5).unwrap_err().to_string();
        assert!(message.contains("add_parts_f32"), "{message}");
    }
}

/// The environment variable `CUDA_ON_CPU_FAILING` names the kernel that fails on GPU 2 of the test
/// driver.
#[test]
fn small_products_use_large_tiles_on_request() {
    let name = "products::small_products_use_large_tiles_on_request";
    or_skip!(simulated_gpu(0));
    if is_child(name, "CUDA_ON_CPU_FAILING", "gemm_large_f32") {
        let multiply = |device: &CudaDevice| {
            let [a, c] = [(); 2].map(|()| Blob::<f32, _>::new(device, &[4, 4]).unwrap());
            let (a, mut c) = (a.data().unwrap(), c.data_mut().unwrap());
            device.gemm(&Gemm::new(4, 4, 4), a.view(), a.view(), c.view_mut()).unwrap();
            device.synchronize()
        };
        multiply(&gpu(2).unwrap()).unwrap();
        let message = multiply(&gpu_with_large_tiles(2).unwrap()).unwrap_err().to_string();
        assert!(message.contains("gemm_large_f32"), "{message}");
    }
}
