//! Benchmark cases of GEMM, batched GEMM and GEMV.

use crate::{
    case::{Case, Run, Work, vector},
    library::{Library, Peers},
    operand::Operand,
};
use cortado::{
    Element, bf16, f16,
    host::Workers,
    kernel::slices,
    op::{Gemm, GemmBatch, Gemv, Transpose},
};
use gemm::Parallelism;
use std::ffi::c_int;

/// `[m, n, k]` of each GEMM: square matrices, then the convolution layers of LeNet and
/// AlexNet, then fully connected layers.
const SHAPES: [[usize; 3]; 17] = [
    [64, 64, 64],
    [128, 128, 128],
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [20, 576, 25],
    [50, 64, 500],
    [64, 500, 800],
    [64, 10, 500],
    [96, 3025, 363],
    [128, 729, 1200],
    [384, 169, 2304],
    [10, 4096, 9216],
    [1, 4096, 4096],
    [64, 784, 576],
    [4096, 1, 4096],
];

/// `[m, n, k]` of each GEMM with transposed operands: two square matrices, followed by GEMMs of
/// backward passes.
const TRANSPOSED: [[usize; 3]; 6] = [
    [256, 256, 256],
    [1024, 1024, 1024],
    [500, 800, 64],
    [800, 64, 500],
    [20, 25, 576],
    [363, 3025, 96],
];

/// Row and column counts of the matrices in the GEMV cases.
const MATRICES: [[usize; 2]; 4] = [[64, 64], [256, 256], [1024, 1024], [4096, 4096]];

/// Type of `cblas_?gemm`, with parameters order, transposes, m, n, k, α, `A`, `B`, β and `C`. `A` and
/// `B` have elements of type `S`; α, β and `C` have the type `C`.
type CblasGemm<S, C = S> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    C,
    *const S,
    c_int,
    *const S,
    c_int,
    C,
    *mut C,
    c_int,
);

/// Type of `cblas_?gemv`, with parameters order, transpose, m, n, α, `A`, x, β and y.
type CblasGemv<S> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    S,
    *const S,
    c_int,
    *const S,
    c_int,
    S,
    *mut S,
    c_int,
);

const ROW_MAJOR: c_int = 101;

/// Converts a transpose mode to the value of `CBLAS_TRANSPOSE`.
fn cblas(trans: Transpose) -> c_int {
    if trans == Transpose::No { 111 } else { 112 }
}

/// Type of `matrixmultiply::?gemm`, with parameters m, k, n, α, `A`, `B`, β and `C`, where two
/// strides follow each matrix.
type MatrixmultiplyGemm<S> = unsafe fn(
    usize,
    usize,
    usize,
    S,
    *const S,
    isize,
    isize,
    *const S,
    isize,
    isize,
    S,
    *mut S,
    isize,
    isize,
);

/// Element type that BLAS libraries support (`f32` or `f64`).
trait Real: Element<Acc = Self> {
    const LETTER: char;
    const GROUPS: [&'static str; 3];
    const MATRIXMULTIPLY: MatrixmultiplyGemm<Self>;
}

impl Real for f32 {
    const LETTER: char = 's';
    const GROUPS: [&'static str; 3] = ["sgemm", "sgemv", "sgemm_batched"];
    const MATRIXMULTIPLY: MatrixmultiplyGemm<Self> = matrixmultiply::sgemm;
}

impl Real for f64 {
    const LETTER: char = 'd';
    const GROUPS: [&'static str; 3] = ["dgemm", "dgemv", "dgemm_batched"];
    const MATRIXMULTIPLY: MatrixmultiplyGemm<Self> = matrixmultiply::dgemm;
}

pub(crate) fn add(list: &mut Vec<Case>) {
    gemm::<f32>(list);
    gemm::<f64>(list);
    half_precision_gemm(list);
    batched_gemm::<f32>(list);
    gemv::<f32>(list);
    gemv::<f64>(list);
}

fn name(trans_a: Transpose, trans_b: Transpose, [m, n, k]: [usize; 3]) -> String {
    let letter = |trans| if trans == Transpose::No { 'n' } else { 't' };
    format!("{}{}_{m}x{n}x{k}", letter(trans_a), letter(trans_b))
}

/// The operands `A`, `B` and `C` of a GEMM.
type Operands<T> = (Operand<T>, Operand<T>, Operand<T>);

fn operands<T: Element>(op: &Gemm<T>) -> Operands<T> {
    let range = [-1.0, 1.0];
    (vector(op.m * op.k, range), vector(op.k * op.n, range), Operand::zeros(op.m * op.n))
}

fn cortado_gemm<T: Element>(workers: &Workers, op: Gemm<T>, (a, b, c): Operands<T>) -> Run {
    let workers = workers.clone();
    Run::new("cortado", move || {
        slices::gemm(&workers, &op, &a.get(), &b.get(), &mut c.get_mut())
            .expect("operands of matching lengths");
    })
}

/// Returns a run of a BLAS library's GEMM, or `None` if the library lacks the function.
fn cblas_gemm<T: Real>(library: &Library, op: Gemm<T>, (a, b, c): Operands<T>) -> Option<Run> {
    let name = format!("cblas_{}gemm", T::LETTER);
    // SAFETY: the function type matches the CBLAS interface.
    let gemm = unsafe { library.symbol::<CblasGemm<T>>(&name) }?;
    let [m, n, k, lda, ldb, ldc] =
        [op.m, op.n, op.k, op.lda, op.ldb, op.ldc].map(|extent| extent as c_int);
    let (trans_a, trans_b) = (cblas(op.trans_a), cblas(op.trans_b));
    Some(Run::new(library.name, move || {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (one, zero) = (op.alpha, op.beta);
        // SAFETY: the operands have the extents that `op` describes.
        unsafe { gemm(ROW_MAJOR, trans_a, trans_b, m, n, k, one, a, lda, b, ldb, zero, c, ldc) };
    }))
}

fn strides(trans: Transpose, ld: usize) -> (isize, isize) {
    if trans == Transpose::No { (ld as isize, 1) } else { (1, ld as isize) }
}

fn gemm_crate<T: Element + 'static>(
    workers: &Workers,
    op: Gemm<T>,
    [one, zero]: [T; 2],
    (a, b, c): Operands<T>,
) -> Run {
    let threads = match workers.count() {
        1 => Parallelism::None,
        count => Parallelism::Rayon(count),
    };
    let ((rsa, csa), (rsb, csb)) = (strides(op.trans_a, op.lda), strides(op.trans_b, op.ldb));
    Run::new("gemm", move || {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (m, n, k, rsc) = (op.m, op.n, op.k, op.ldc as isize);
        // SAFETY: the operands have the extents that `op` describes.
        unsafe {
            gemm::gemm(
                m, n, k, c, 1, rsc, false, a, csa, rsa, b, csb, rsb, zero, one, false, false,
                false, threads,
            );
        }
    })
}

/// Returns a run of the GEMM of the crate `matrixmultiply`, with default features and on one
/// thread.
fn matrixmultiply_gemm<T: Real>(op: Gemm<T>, (a, b, c): Operands<T>) -> Run {
    let ((rsa, csa), (rsb, csb)) = (strides(op.trans_a, op.lda), strides(op.trans_b, op.ldb));
    Run::new("matrixmultiply", move || {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (m, n, k, rsc) = (op.m, op.n, op.k, op.ldc as isize);
        // SAFETY: the operands have the extents that `op` describes.
        unsafe {
            T::MATRIXMULTIPLY(m, k, n, op.alpha, a, rsa, csa, b, rsb, csb, op.beta, c, rsc, 1)
        };
    })
}

fn gemm<T: Real>(list: &mut Vec<Case>) {
    use Transpose::{No, Yes};
    let untransposed_cases = SHAPES.into_iter().map(|shape| (No, No, shape));
    let transpose_modes = [(No, Yes), (Yes, No), (Yes, Yes)];
    let transposed_cases =
        transpose_modes.into_iter().flat_map(|(a, b)| TRANSPOSED.map(|shape| (a, b, shape)));
    for (trans_a, trans_b, shape) in untransposed_cases.chain(transposed_cases) {
        let op = Gemm::<T>::new(shape[0], shape[1], shape[2]).transpose(trans_a, trans_b);
        let runs = move |peers: &Peers, workers: &Workers| {
            let operands = operands(&op);
            let mut runs = vec![cortado_gemm(workers, op, operands.clone())];
            let libraries = peers.libraries.iter();
            runs.extend(libraries.filter_map(|library| cblas_gemm(library, op, operands.clone())));
            runs.push(gemm_crate(workers, op, [op.alpha, op.beta], operands.clone()));
            if workers.count() == 1 {
                runs.push(matrixmultiply_gemm(op, operands));
            }
            runs
        };
        let work = Work::Flops(op.flops());
        list.push(Case::new(T::GROUPS[0], name(trans_a, trans_b, shape), work, runs));
    }
}

/// Returns a run of MKL's `bf16` GEMM without transposes, whose results are `f32`.
fn cblas_bf16_gemm(library: &Library, op: Gemm<bf16>) -> Option<Run> {
    // SAFETY: the function type matches MKL's interface, in which an `MKL_BF16` is 16 bits.
    let gemm = unsafe { library.symbol::<CblasGemm<bf16, f32>>("cblas_gemm_bf16bf16f32") }?;
    let ((a, b, _), c) = (operands(&op), Operand::zeros(op.m * op.n));
    Some(Run::new(library.name, move || {
        let (a, b, mut c) = (a.get(), b.get(), c.get_mut());
        let ([m, n, k], [lda, ldb]) = ([op.m, op.n, op.k].map(|x| x as c_int), [op.lda, op.ldb]);
        let (a, lda, b, ldb) = (a.as_ptr(), lda as c_int, b.as_ptr(), ldb as c_int);
        // SAFETY: the operands have the lengths that `op` requires.
        unsafe {
            gemm(
                ROW_MAJOR,
                cblas(Transpose::No),
                cblas(Transpose::No),
                m,
                n,
                k,
                op.alpha,
                a,
                lda,
                b,
                ldb,
                op.beta,
                c.as_mut_ptr(),
                n,
            );
        }
    }))
}

/// `[m, n, k]` of each GEMM with 16-bit elements.
const HALF_PRECISION_SHAPES: [[usize; 3]; 9] = [
    [32, 32, 32],
    [64, 64, 64],
    [128, 128, 128],
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [20, 576, 25],
    [64, 500, 800],
    [64, 10, 500],
];

/// Adds cases of GEMM with 16-bit elements, compared with cortado's `f32` GEMM.
fn half_precision_gemm(list: &mut Vec<Case>) {
    for shape @ [m, n, k] in HALF_PRECISION_SHAPES {
        let work = Work::Flops(2 * (m * n * k) as u64);
        let name = name(Transpose::No, Transpose::No, shape);
        let f32_run = move |workers: &Workers| {
            let op = Gemm::<f32>::new(m, n, k);
            let run = cortado_gemm(workers, op, operands(&op));
            Run { library: "cortado_f32", ..run }
        };
        list.push(Case::new("hgemm", name.clone(), work, move |_, workers| {
            let op = Gemm::<f16>::new(m, n, k);
            let operands = operands(&op);
            let gemm_run = gemm_crate(workers, op, [f16::ONE, f16::ZERO], operands.clone());
            vec![cortado_gemm(workers, op, operands), f32_run(workers), gemm_run]
        }));
        list.push(Case::new("bgemm", name, work, move |peers, workers| {
            let op = Gemm::<bf16>::new(m, n, k);
            let mut runs = vec![cortado_gemm(workers, op, operands(&op)), f32_run(workers)];
            let libraries = peers.libraries.iter();
            runs.extend(libraries.filter_map(|library| cblas_bf16_gemm(library, op)));
            runs
        }));
    }
}

/// Adds cases of batched GEMM with small matrices. Libraries other than cortado compute each GEMM
/// of the batch with a separate call.
fn batched_gemm<T: Real>(list: &mut Vec<Case>) {
    for (count, [m, n, k]) in [(64, [16, 16, 16]), (64, [20, 64, 25]), (16, [50, 64, 500])] {
        let op = Gemm::<T>::new(m, n, k);
        let batch = GemmBatch { count, stride_a: m * k, stride_b: k * n, stride_c: m * n };
        let range = [-1.0, 1.0];
        let runs = move |peers: &Peers, workers: &Workers| {
            let (a, b) = (vector::<T>(count * m * k, range), vector::<T>(count * k * n, range));
            let operands = (a, b, Operand::zeros(count * m * n));
            let ((a, b, c), workers) = (operands.clone(), workers.clone());
            let mut runs = vec![Run::new("cortado", move || {
                let (a, b, mut c) = (a.get(), b.get(), c.get_mut());
                slices::gemm_batched(&workers, &op, &batch, &a, &b, &mut c)
                    .expect("operands of matching lengths");
            })];
            for library in &peers.libraries {
                let name = format!("cblas_{}gemm", T::LETTER);
                // SAFETY: the function type matches the CBLAS interface.
                let Some(gemm) = (unsafe { library.symbol::<CblasGemm<T>>(&name) }) else {
                    continue;
                };
                let (a, b, c) = operands.clone();
                runs.push(Run::new(library.name, move || {
                    let (a, b, mut c) = (a.get(), b.get(), c.get_mut());
                    let no = cblas(Transpose::No);
                    let [m, n, k] = [m, n, k].map(|extent| extent as c_int);
                    for i in 0..count {
                        let (a, b) = (&a[i * batch.stride_a..], &b[i * batch.stride_b..]);
                        let c = c[i * batch.stride_c..].as_mut_ptr();
                        let (a, b, one, zero) = (a.as_ptr(), b.as_ptr(), op.alpha, op.beta);
                        // SAFETY: the operands have the extents that `op` describes.
                        unsafe { gemm(ROW_MAJOR, no, no, m, n, k, one, a, k, b, n, zero, c, n) };
                    }
                }));
            }
            runs
        };
        let work = Work::Flops(count as u64 * op.flops());
        list.push(Case::new(T::GROUPS[2], format!("{count}_of_{m}x{n}x{k}"), work, runs));
    }
}

fn gemv<T: Real>(list: &mut Vec<Case>) {
    for ([m, n], trans) in
        MATRICES.into_iter().flat_map(|shape| [(shape, Transpose::No), (shape, Transpose::Yes)])
    {
        let op = Gemv::<T>::new(trans, m, n);
        let runs = move |peers: &Peers, workers: &Workers| {
            let ((inputs, outputs), range) = (op.lengths(), [-1.0, 1.0]);
            let (a, x) = (vector::<T>(m * n, range), vector::<T>(inputs, range));
            let operands = (a, x, Operand::zeros(outputs));
            let ((a, x, y), workers) = (operands.clone(), workers.clone());
            let mut runs = vec![Run::new("cortado", move || {
                slices::gemv(&workers, &op, &a.get(), &x.get(), &mut y.get_mut())
                    .expect("operands of matching lengths");
            })];
            for library in &peers.libraries {
                let name = format!("cblas_{}gemv", T::LETTER);
                // SAFETY: the function type matches the CBLAS interface.
                let Some(gemv) = (unsafe { library.symbol::<CblasGemv<T>>(&name) }) else {
                    continue;
                };
                let (a, x, y) = operands.clone();
                runs.push(Run::new(library.name, move || {
                    let [m, n] = [m, n].map(|extent| extent as c_int);
                    let (a, x, y) = (a.as_ptr(), x.as_ptr(), y.as_mut_ptr());
                    let (one, zero, trans) = (op.alpha, op.beta, cblas(trans));
                    // SAFETY: the operands have the extents that `op` describes.
                    unsafe { gemv(ROW_MAJOR, trans, m, n, one, a, n, x, 1, zero, y, 1) };
                }));
            }
            runs
        };
        let letter = if trans == Transpose::No { 'n' } else { 't' };
        let work = Work::Bytes((m * n * size_of::<T>()) as u64);
        list.push(Case::new(T::GROUPS[1], format!("{letter}_{m}x{n}"), work, runs));
    }
}
