//! Gates and states of long short-term memory, in one pass over a step.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{math::SimdMath, simd::vectorized, threads::Workers},
    op::{Lstm, Unary},
};
use num_traits::One;

/// Gates of one task: the functions are the limit, not memory.
const GRAIN: usize = 1 << 13;

/// One step forward: `gates` are activated in place, `c` and `h` follow, as [`Lstm`] says.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn lstm<T: Element>(
    workers: &Workers,
    op: &Lstm,
    c_prev: &[T],
    cont: &[T],
    gates: &mut [T],
    c: &mut [T],
    h: &mut [T],
) -> Result<()> {
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("h", h.len())];
    op.check("lstm", ("gates", gates.len()), &states)?;
    check_len("lstm", "cont", op.streams(), cont.len())?;
    let width = op.outputs().max(1);
    let streams = c_prev.chunks_exact(width).zip(cont).zip(gates.chunks_exact_mut(4 * width));
    let states = c.chunks_exact_mut(width).zip(h.chunks_exact_mut(width));
    let mut streams: Vec<_> = streams.zip(states).collect();
    workers.for_each_chunk(&mut streams, GRAIN.div_ceil(4 * width), |_, streams| {
        for (((c_prev, cont), gates), (c, h)) in streams {
            forward(c_prev, cont.to_acc(), gates, c, h);
        }
    });
    Ok(())
}

/// One step back: `dh` and `dc` come in as the gradients of `h` and `c`; `dc` becomes that of
/// `c_prev`, and `gates`, which [`lstm`] left as `c` is, become those of what they were made of.
///
/// The gradient passes through f as through a sigmoid, which is right where `cont` is 0 or 1.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn lstm_backward<T: Element>(
    workers: &Workers,
    op: &Lstm,
    c_prev: &[T],
    c: &[T],
    dh: &[T],
    dc: &mut [T],
    gates: &mut [T],
) -> Result<()> {
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("dh", dh.len()), ("dc", dc.len())];
    op.check("lstm_backward", ("gates", gates.len()), &states)?;
    let width = op.outputs().max(1);
    let states = c_prev.chunks_exact(width).zip(c.chunks_exact(width)).zip(dh.chunks_exact(width));
    let gradients = dc.chunks_exact_mut(width).zip(gates.chunks_exact_mut(4 * width));
    let mut streams: Vec<_> = states.zip(gradients).collect();
    workers.for_each_chunk(&mut streams, GRAIN.div_ceil(4 * width), |_, streams| {
        for (((c_prev, c), dh), (dc, gates)) in streams {
            backward(c_prev, c, dh, dc, gates);
        }
    });
    Ok(())
}

/// One stream forward.
fn forward<T: Element>(c_prev: &[T], cont: T::Acc, gates: &mut [T], c: &mut [T], h: &mut [T]) {
    let (sigmoid, tanh) = (Unary::<T::Acc>::Sigmoid, Unary::<T::Acc>::Tanh);
    let [i, f, o, g] = four(gates);
    vectorized(
        #[inline(always)]
        || {
            for j in 0..c.len().min(c_prev.len()).min(h.len()) {
                let input = sigmoid.eval_with::<SimdMath>(i[j].to_acc());
                let forget = cont * sigmoid.eval_with::<SimdMath>(f[j].to_acc());
                let output = sigmoid.eval_with::<SimdMath>(o[j].to_acc());
                let candidate = tanh.eval_with::<SimdMath>(g[j].to_acc());
                let cell = forget * c_prev[j].to_acc() + input * candidate;
                (i[j], f[j]) = (T::from_acc(input), T::from_acc(forget));
                (o[j], g[j]) = (T::from_acc(output), T::from_acc(candidate));
                (c[j], h[j]) =
                    (T::from_acc(cell), T::from_acc(output * tanh.eval_with::<SimdMath>(cell)));
            }
        },
    );
}

/// One stream back.
fn backward<T: Element>(c_prev: &[T], c: &[T], dh: &[T], dc: &mut [T], gates: &mut [T]) {
    let (one, tanh) = (T::Acc::one(), Unary::<T::Acc>::Tanh);
    let [i, f, o, g] = four(gates);
    vectorized(
        #[inline(always)]
        || {
            for j in 0..dc.len().min(c_prev.len()).min(c.len()).min(dh.len()) {
                let [input, forget, output, candidate] =
                    [&i[j], &f[j], &o[j], &g[j]].map(|gate| gate.to_acc());
                let (through, dh) = (tanh.eval_with::<SimdMath>(c[j].to_acc()), dh[j].to_acc());
                let dcell = dc[j].to_acc() + dh * output * (one - through * through);
                i[j] = T::from_acc(dcell * candidate * input * (one - input));
                f[j] = T::from_acc(dcell * c_prev[j].to_acc() * forget * (one - forget));
                o[j] = T::from_acc(dh * through * output * (one - output));
                g[j] = T::from_acc(dcell * input * (one - candidate * candidate));
                dc[j] = T::from_acc(dcell * forget);
            }
        },
    );
}

/// A row of gates: input, forget, output, candidate.
#[inline(always)]
fn four<T>(gates: &mut [T]) -> [&mut [T]; 4] {
    let width = gates.len() / 4;
    let (first, second) = gates.split_at_mut(2 * width);
    let ((i, f), (o, g)) = (first.split_at_mut(width), second.split_at_mut(width));
    [i, f, o, g]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{for_each_element, fractions, integers, operand, threads, wide};

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// Cells and hidden states by the definition, in `f64`.
    fn states(width: usize, c_prev: &[f64], cont: &[f64], gates: &[f64]) -> [Vec<f64>; 2] {
        let cell = |at: usize| {
            let gate = |k: usize| gates[at / width * 4 * width + k * width + at % width];
            let kept = cont[at / width] * sigmoid(gate(1)) * c_prev[at];
            let c = kept + sigmoid(gate(0)) * gate(3).tanh();
            (c, sigmoid(gate(2)) * c.tanh())
        };
        let (c, h) = (0..c_prev.len()).map(cell).unzip();
        [c, h]
    }

    fn near<T: Element>(got: &[T], want: &[f64]) {
        let ulp = if T::DTYPE.size() == 2 { 2f64.powi(-7) } else { 2f64.powi(-20) };
        for (got, want) in got.iter().zip(want) {
            assert!((got.to_f64() - want).abs() <= ulp * want.abs().max(0.25), "{got} for {want}");
        }
    }

    const SHAPES: [(usize, usize); 5] = [(1, 1), (3, 5), (0, 4), (4, 0), (70, 67)];

    fn forward_follows_the_definition<T: Element>() {
        for (streams, width) in SHAPES {
            let op = Lstm::new(streams, width).unwrap();
            let c_prev = fractions::<T>(1, op.state());
            let cont: Vec<T> = (0..streams).map(|i| T::from_f64((i % 2) as f64)).collect();
            let given = fractions::<T>(2, op.gates());
            let want = states(width, &wide(&c_prev), &wide(&cont), &wide(&given));
            let runs = threads().map(|workers| {
                let (mut gates, mut c, mut h) = (given.clone(), c_prev.clone(), c_prev.clone());
                c.fill(T::from_f64(f64::NAN));
                h.fill(T::from_f64(f64::NAN));
                lstm(&workers, &op, &c_prev, &cont, &mut gates, &mut c, &mut h).unwrap();
                near(&c, &want[0]);
                near(&h, &want[1]);
                (gates, c, h)
            });
            assert!(runs[0] == runs[1] && runs[0] == runs[2]);
        }
    }

    fn any_number_of_threads_backward<T: Element>() {
        let op = Lstm::new(70, 67).unwrap();
        let state = |tag| fractions::<T>(tag, op.state());
        let (c_prev, c, dh) = (state(1), state(2), state(3));
        let runs = threads().map(|workers| {
            let (mut dc, mut gates) = (state(4), fractions::<T>(5, op.gates()));
            lstm_backward(&workers, &op, &c_prev, &c, &dh, &mut dc, &mut gates).unwrap();
            (dc, gates)
        });
        assert!(runs[0] == runs[1] && runs[0] == runs[2]);
    }

    for_each_element!(forward_follows_the_definition, any_number_of_threads_backward);

    /// Central differences of `Σ dc·c + dh·h` by every gate and every cell.
    #[test]
    fn backward_is_the_gradient() {
        let (workers, op) = (Workers::sequential(), Lstm::new(3, 5).unwrap());
        let (c_prev, given) = (fractions::<f64>(1, 15), integers::<f64>(2, 60));
        let (dc, dh) = (fractions::<f64>(3, 15), fractions::<f64>(4, 15));
        let cont = [1.0, 0.0, 1.0];
        let objective = |c_prev: &[f64], gates: &[f64]| {
            let [c, h] = states(5, c_prev, &cont, gates);
            (0..15).map(|at| dc[at] * c[at] + dh[at] * h[at]).sum::<f64>()
        };
        let (mut gates, mut c, mut h) = (given.clone(), vec![0.0; 15], vec![0.0; 15]);
        lstm(&workers, &op, &c_prev, &cont, &mut gates, &mut c, &mut h).unwrap();
        let mut dc_prev = dc.clone();
        lstm_backward(&workers, &op, &c_prev, &c, &dh, &mut dc_prev, &mut gates).unwrap();
        let slope = |values: &[f64], at: usize, of: &dyn Fn(&[f64]) -> f64| {
            let [mut less, mut more] = [values.to_vec(), values.to_vec()];
            (less[at], more[at]) = (less[at] - 1e-5, more[at] + 1e-5);
            (of(&more) - of(&less)) / 2e-5
        };
        for (at, got) in gates.iter().enumerate() {
            let want = slope(&given, at, &|gates| objective(&c_prev, gates));
            assert!((got - want).abs() < 1e-8, "gate {at}: {got} for {want}");
        }
        for (at, got) in dc_prev.iter().enumerate() {
            let want = slope(&c_prev, at, &|c_prev| objective(c_prev, &given));
            assert!((got - want).abs() < 1e-8, "cell {at}: {got} for {want}");
        }
    }

    #[test]
    fn lengths_are_checked() {
        let (w, op) = (&Workers::sequential(), &Lstm::new(2, 3).unwrap());
        let (s, g) = (&mut [0.0f32; 6][..], &mut [0.0f32; 24][..]);
        let (s2, short) = (&mut [0.0f32; 6][..], &mut [0.0f32; 5][..]);
        let (cont, s3) = (&[0.0; 2][..], &[0.0; 6][..]);
        assert_eq!(operand(lstm(w, op, short, cont, g, s, s2)), ("lstm", "c_prev"));
        assert_eq!(operand(lstm(w, op, s3, s3, g, s, s2)), ("lstm", "cont"));
        assert_eq!(operand(lstm(w, op, s3, cont, short, s, s2)), ("lstm", "gates"));
        assert_eq!(operand(lstm(w, op, s3, cont, g, short, s2)), ("lstm", "c"));
        assert_eq!(operand(lstm(w, op, s3, cont, g, s, short)), ("lstm", "h"));
        let name = "lstm_backward";
        assert_eq!(operand(lstm_backward(w, op, short, s3, s3, s, g)), (name, "c_prev"));
        assert_eq!(operand(lstm_backward(w, op, s3, short, s3, s, g)), (name, "c"));
        assert_eq!(operand(lstm_backward(w, op, s3, s3, short, s, g)), (name, "dh"));
        assert_eq!(operand(lstm_backward(w, op, s3, s3, s3, short, g)), (name, "dc"));
        assert_eq!(operand(lstm_backward(w, op, s3, s3, s3, s, short)), (name, "gates"));
    }
}
