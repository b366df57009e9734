//! Benchmark cases of elementwise functions and softmax.

use crate::{
    Peers,
    case::{Case, LENGTHS, Run, Work, copy, vector},
    operand::Operand,
};
use cortado::{
    host::Workers,
    kernel::slices,
    op::{Axis, Binary, Unary},
};
use std::{ffi::c_int, hint::black_box};

/// Type of MKL's `vms*` functions of one operand, with parameters n, a, y and mode.
type VmlUnary = unsafe extern "C" fn(c_int, *const f32, *mut f32, i64);
/// Type of MKL's `vms*` functions of two operands, with parameters n, a, b, y and mode.
type VmlBinary = unsafe extern "C" fn(c_int, *const f32, *const f32, *mut f32, i64);
/// Type of MKL's `vmsPowx`, with parameters n, a, power, y and mode.
type VmlPowx = unsafe extern "C" fn(c_int, *const f32, f32, *mut f32, i64);

/// MKL's most accurate mode, `VML_HA`, whose errors are below 1 ulp.
const HIGH_ACCURACY: i64 = 2;

pub(crate) fn add(list: &mut Vec<Case>) {
    for n in LENGTHS {
        unary(list, n);
        binary(list, n);
        softmax(list, n);
    }
}

fn unary(list: &mut Vec<Case>, n: usize) {
    let work = Work::Bytes((2 * n * size_of::<f32>()) as u64);
    let functions = [
        ("exp", Unary::Exp, [-10.0, 10.0], Some("vmsExp")),
        ("ln", Unary::Ln, [0.01, 10.0], Some("vmsLn")),
        ("tanh", Unary::Tanh, [-4.0, 4.0], Some("vmsTanh")),
        ("sqrt", Unary::Sqrt, [0.0, 10.0], Some("vmsSqrt")),
        ("sqr", Unary::Sqr, [-4.0, 4.0], Some("vmsSqr")),
        ("abs", Unary::Abs, [-4.0, 4.0], Some("vmsAbs")),
        ("sigmoid", Unary::Sigmoid, [-4.0, 4.0], None),
        ("softplus", Unary::Softplus, [-4.0, 4.0], None),
        ("relu", Unary::Relu { slope: 0.0 }, [-4.0, 4.0], None),
        ("pow_0.75", Unary::Pow(0.75), [0.01, 10.0], None),
    ];
    for (name, op, range, symbol) in functions {
        list.push(Case::new("map", format!("{name}/{n}"), work, move |peers, workers| {
            let operands = (vector::<f32>(n, range), Operand::<f32>::zeros(n));
            let ((x, y), workers) = (operands.clone(), workers.clone());
            let mut runs = vec![Run::new("cortado", move || {
                slices::unary::<f32>(&workers, op, &x.get(), &mut y.get_mut())
                    .expect("equal lengths");
            })];
            if symbol.is_none() {
                runs.push(copy::<f32>(n));
            }
            for library in &peers.libraries {
                let (x, y) = operands.clone();
                // SAFETY: the function types match MKL's C interface.
                let (function, powx) = unsafe {
                    let function = symbol.and_then(|name| library.symbol::<VmlUnary>(name));
                    (function, library.symbol::<VmlPowx>("vmsPowx"))
                };
                let n = n as c_int;
                if let Some(function) = function {
                    runs.push(Run::new(library.name, move || {
                        // SAFETY: the operands x and y hold `n` elements each.
                        unsafe { function(n, x.as_ptr(), y.as_mut_ptr(), HIGH_ACCURACY) };
                    }));
                } else if let (Some(powx), Unary::Pow(p)) = (powx, op) {
                    runs.push(Run::new(library.name, move || {
                        // SAFETY: the operands x and y hold `n` elements each.
                        unsafe { powx(n, x.as_ptr(), p, y.as_mut_ptr(), HIGH_ACCURACY) };
                    }));
                }
            }
            runs
        }));
    }
}

fn binary(list: &mut Vec<Case>, n: usize) {
    let work = Work::Bytes((3 * n * size_of::<f32>()) as u64);
    let range = [0.5, 4.0];
    for (name, op, symbol) in [
        ("add", Binary::Add, "vmsAdd"),
        ("mul", Binary::Mul, "vmsMul"),
        ("div", Binary::Div, "vmsDiv"),
    ] {
        list.push(Case::new("map", format!("{name}/{n}"), work, move |peers: &Peers, workers| {
            let (a, b) = (vector::<f32>(n, range), vector::<f32>(n, range));
            let operands = (a, b, Operand::<f32>::zeros(n));
            let ((a, b, y), workers) = (operands.clone(), workers.clone());
            let mut runs = vec![Run::new("cortado", move || {
                slices::binary::<f32>(&workers, op, &a.get(), &b.get(), &mut y.get_mut())
                    .expect("equal lengths");
            })];
            for library in &peers.libraries {
                // SAFETY: the function type matches MKL's C interface.
                if let Some(function) = unsafe { library.symbol::<VmlBinary>(symbol) } {
                    let (a, b, y) = operands.clone();
                    runs.push(Run::new(library.name, move || {
                        let (a, b, y) = (a.as_ptr(), b.as_ptr(), y.as_mut_ptr());
                        // SAFETY: the operands `a`, `b` and `y` hold `n` elements each.
                        unsafe { function(n as c_int, a, b, y, HIGH_ACCURACY) };
                    }));
                }
            }
            runs
        }));
    }
}

/// Adds cases of softmax over rows of 1000 classes. In the MKL run of softmax, MKL computes only
/// the exponential, and plain loops compute the maximum, the sum and the quotients.
fn softmax(list: &mut Vec<Case>, n: usize) {
    let work = Work::Bytes((2 * n * size_of::<f32>()) as u64);
    let extent = n.min(1000);
    let rows = n / extent;
    list.push(Case::new("softmax", n.to_string(), work, move |peers, workers: &Workers| {
        let n = rows * extent;
        let axis = Axis::new(rows, extent, 1).expect("extents are positive");
        let operands = (vector::<f32>(n, [-4.0, 4.0]), Operand::<f32>::zeros(n));
        let ((x, y), workers) = (operands.clone(), workers.clone());
        let mut runs = vec![Run::new("cortado", move || {
            slices::softmax::<f32>(&workers, &axis, &x.get(), &mut y.get_mut())
                .expect("equal lengths");
        })];
        for library in &peers.libraries {
            // SAFETY: the function type matches MKL's C interface.
            if let Some(exp) = unsafe { library.symbol::<VmlUnary>("vmsExp") } {
                let (x, y) = operands.clone();
                runs.push(Run::new(library.name, move || {
                    let (x, mut y) = (x.get(), y.get_mut());
                    for (x, y) in x.chunks(extent).zip(y.chunks_mut(extent)) {
                        let max = x.iter().fold(f32::MIN, |max, &x| if x > max { x } else { max });
                        y.iter_mut().zip(x).for_each(|(y, x)| *y = x - max);
                        // SAFETY: the row holds `y.len()` elements, and MKL's `vmsExp` may run in
                        // place.
                        unsafe { exp(y.len() as c_int, y.as_ptr(), y.as_mut_ptr(), HIGH_ACCURACY) };
                        let sum: f32 = y.iter().sum();
                        y.iter_mut().for_each(|y| *y /= sum);
                    }
                    black_box(&y);
                }));
            }
        }
        runs
    }));
}
