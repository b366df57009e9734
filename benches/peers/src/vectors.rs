//! Benchmark cases of BLAS level 1, reductions of rows, and conversions between element types.

use crate::{
    case::{Case, LENGTHS, Run, RunFactory, Work, copy, vector},
    operand::Operand,
};
use cortado::{
    Element, bf16, f16,
    host::Workers,
    kernel::slices,
    op::{Axis, Reduce},
};
use std::{ffi::c_int, hint::black_box, slice};

/// Type of `cblas_scopy`, with parameters n, x, incx, y and incy.
type CblasCopy = unsafe extern "C" fn(c_int, *const f32, c_int, *mut f32, c_int);
/// Type of `cblas_sscal`, with parameters n, α, x and incx.
type CblasScal = unsafe extern "C" fn(c_int, f32, *mut f32, c_int);
/// Type of `cblas_saxpy`, with parameters n, α, x, incx, y and incy.
type CblasAxpy = unsafe extern "C" fn(c_int, f32, *const f32, c_int, *mut f32, c_int);
/// Type of `cblas_saxpby`, with parameters n, α, x, incx, β, y and incy.
type CblasAxpby = unsafe extern "C" fn(c_int, f32, *const f32, c_int, f32, *mut f32, c_int);
/// Type of `cblas_sdot`, with parameters n, x, incx, y and incy.
type CblasDot = unsafe extern "C" fn(c_int, *const f32, c_int, *const f32, c_int) -> f32;
/// Type of `cblas_sasum` and `cblas_snrm2`, with parameters n, x and incx.
type CblasSum = unsafe extern "C" fn(c_int, *const f32, c_int) -> f32;

const RANGE: [f64; 2] = [-1.0, 1.0];
const ALPHA: f32 = 1e-3;
const BETA: f32 = 0.999;

pub(crate) fn add(list: &mut Vec<Case>) {
    for n in LENGTHS {
        level1(list, n);
        rows(list, n);
        conversion::<f16>(list, "f16", n);
        conversion::<bf16>(list, "bf16", n);
    }
}

/// Creates a run that calls a function of cortado with operands x and y. The run creates slices
/// from raw pointers, because the guards of a `RefCell` would take measurable time for short
/// operands.
macro_rules! cortado_run {
    ($operands:ident, $workers:ident, $n:ident, |$w:ident, $x:ident, $y:ident| $call:expr) => {{
        let ((x, y), workers) = ($operands.clone(), $workers.clone());
        Run::new("cortado", move || {
            // SAFETY: the operands x and y hold `$n` elements each, and no other run accesses the
            // operands at the same time.
            let ($w, $x, $y) = unsafe {
                let x = slice::from_raw_parts(x.as_ptr(), $n);
                (&workers, x, slice::from_raw_parts_mut(y.as_mut_ptr(), $n))
            };
            black_box($call.expect("equal lengths"));
        })
    }};
}

/// Adds a run for each library that has the function `$name`, with operands x and y.
macro_rules! add_library_runs {
    ($runs:ident, $peers:ident, $operands:ident, $n:ident, $name:literal: $ty:ty, |$f:ident, $len:ident, $x:ident, $y:ident| $call:expr) => {
        for library in &$peers.libraries {
            // SAFETY: the function type matches the CBLAS interface.
            if let Some($f) = unsafe { library.symbol::<$ty>($name) } {
                let (x, y) = $operands.clone();
                $runs.push(Run::new(library.name, move || {
                    let ($len, $x, $y) = ($n as c_int, x.as_ptr(), y.as_mut_ptr());
                    // SAFETY: the operands x and y hold `$n` elements each.
                    black_box(unsafe { $call });
                }));
            }
        }
    };
}

fn level1(list: &mut Vec<Case>, n: usize) {
    let mut add_case = |name: &str, vectors: usize, runs: RunFactory| {
        let work = Work::Bytes((vectors * n * size_of::<f32>()) as u64);
        list.push(Case::new("level1", format!("{name}/{n}"), work, runs));
    };
    let operand_pair = move || (vector::<f32>(n, RANGE), vector::<f32>(n, RANGE));
    add_case(
        "copy",
        2,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs =
                vec![cortado_run!(operands, workers, n, |w, x, y| slices::copy(w, x, y))];
            add_library_runs!(runs, peers, operands, n, "cblas_scopy": CblasCopy, |f, n, x, y| f(n, x, 1, y, 1));
            runs
        }),
    );
    // The factor of `scal` is −1, because repeated scaling by a factor of smaller magnitude would
    // give subnormal numbers, with which arithmetic takes ten times as long.
    add_case(
        "scal",
        2,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs =
                vec![cortado_run!(operands, workers, n, |w, _x, y| slices::scal::<f32>(
                    w, -1.0, y
                ))];
            add_library_runs!(runs, peers, operands, n, "cblas_sscal": CblasScal, |f, n, _x, y| f(n, -1.0, y, 1));
            runs
        }),
    );
    add_case(
        "axpy",
        3,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs = vec![cortado_run!(operands, workers, n, |w, x, y| slices::axpy::<f32>(
                w, ALPHA, x, y
            ))];
            add_library_runs!(runs, peers, operands, n, "cblas_saxpy": CblasAxpy, |f, n, x, y| f(n, ALPHA, x, 1, y, 1));
            runs
        }),
    );
    add_case(
        "axpby",
        3,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs = vec![cortado_run!(operands, workers, n, |w, x, y| {
                slices::axpby::<f32>(w, ALPHA, x, BETA, y)
            })];
            add_library_runs!(runs, peers, operands, n, "cblas_saxpby": CblasAxpby, |f, n, x, y| f(
                n, ALPHA, x, 1, BETA, y, 1
            ));
            runs
        }),
    );
    add_case(
        "dot",
        2,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs =
                vec![cortado_run!(operands, workers, n, |w, x, y| slices::dot::<f32>(w, x, y))];
            add_library_runs!(runs, peers, operands, n, "cblas_sdot": CblasDot, |f, n, x, y| f(n, x, 1, y, 1));
            runs
        }),
    );
    add_case(
        "asum",
        1,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs =
                vec![cortado_run!(operands, workers, n, |w, x, _y| slices::asum::<f32>(w, x))];
            add_library_runs!(runs, peers, operands, n, "cblas_sasum": CblasSum, |f, n, x, _y| f(n, x, 1));
            runs
        }),
    );
    // The BLAS function `nrm2` returns the square root of the result of cortado's kernel `sumsq`.
    add_case(
        "nrm2",
        1,
        Box::new(move |peers: &crate::Peers, workers| {
            let operands = operand_pair();
            let mut runs = vec![cortado_run!(operands, workers, n, |w, x, _y| {
                slices::sumsq::<f32>(w, x).map(f32::sqrt)
            })];
            add_library_runs!(runs, peers, operands, n, "cblas_snrm2": CblasSum, |f, n, x, _y| f(n, x, 1));
            runs
        }),
    );
}

/// Adds cases that reduce rows of 256 elements. BLAS libraries have no function that reduces rows,
/// so their runs call `asum` for each row.
fn rows(list: &mut Vec<Case>, n: usize) {
    let (extent, work) = (256, Work::Bytes((n * size_of::<f32>()) as u64));
    for op in [Reduce::Sum, Reduce::Max] {
        list.push(Case::new(
            "reduce",
            format!("{}/{n}", op.name()),
            work,
            move |peers, workers| {
                let axis = Axis::new(n / extent, extent, 1).expect("extents are positive");
                let operands = (vector::<f32>(n, RANGE), Operand::<f32>::zeros(n / extent));
                let ((x, y), workers) = (operands.clone(), workers.clone());
                let mut runs = vec![Run::new("cortado", move || {
                    slices::reduce::<f32>(&workers, op, &axis, &x.get(), &mut y.get_mut())
                        .expect("operands of matching lengths");
                })];
                if op == Reduce::Sum {
                    for library in &peers.libraries {
                        // SAFETY: the function type matches the CBLAS interface.
                        if let Some(sum) = unsafe { library.symbol::<CblasSum>("cblas_sasum") } {
                            let (x, y) = operands.clone();
                            runs.push(Run::new(library.name, move || {
                                for (x, y) in x.get().chunks(extent).zip(&mut *y.get_mut()) {
                                    // SAFETY: each row of x holds `extent` elements.
                                    *y = unsafe { sum(extent as c_int, x.as_ptr(), 1) };
                                }
                                black_box(&y);
                            }));
                        }
                    }
                }
                runs
            },
        ));
    }
}

/// Adds cases that convert 16-bit elements to `f32` and back, compared with a copy of the same
/// number of bytes.
fn conversion<T: Element>(list: &mut Vec<Case>, name: &'static str, n: usize) {
    let work = Work::Bytes((n * (size_of::<T>() + size_of::<f32>())) as u64);
    list.push(Case::new("convert", format!("{name}_to_f32/{n}"), work, move |_, workers| {
        let (x, y) = (vector::<T>(n, RANGE), Operand::<f32>::zeros(n));
        vec![convert_run(workers, x, y), copy::<f32>(n * 3 / 4)]
    }));
    list.push(Case::new("convert", format!("f32_to_{name}/{n}"), work, move |_, workers| {
        let (x, y) = (vector::<f32>(n, RANGE), Operand::<T>::zeros(n));
        vec![convert_run(workers, x, y), copy::<f32>(n * 3 / 4)]
    }));
}

fn convert_run<X: Element, Y: Element>(workers: &Workers, x: Operand<X>, y: Operand<Y>) -> Run {
    let workers = workers.clone();
    Run::new("cortado", move || {
        slices::convert(&workers, &x.get(), &mut y.get_mut()).expect("equal lengths");
    })
}
