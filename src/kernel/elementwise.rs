//! Elementwise kernels.

use crate::{
    element::{Element, Storable},
    op::{Axis, Binary, Lstm, Unary},
};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Elementwise kernels, which apply a function to each element independently.
            ///
            /// Each element of the result depends only on the elements of the inputs at the same
            /// position. The [module page](crate::kernel) lists the rules that all kernels share.
            ///
            /// ```
            /// use cortado::{Src, kernel::Elementwise, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let x = Blob::from_slice(&device, &[3], &[1.0f32, 2.0, 3.0])?;
            /// let y = Blob::full(&device, &[3], 10.0)?;
            /// let (x, mut y) = (x.data()?, y.data_mut()?);
            /// device.binary(Binary::Sub, Src::InPlace, x.view(), y.view_mut())?;
            /// assert_eq!(y.host_mut()?, [9.0, 8.0, 7.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Elementwise {}

            /// `y ← value`, bit for bit, even if `value` is −0 or NaN.
            ///
            /// Lengths: `y` may have any length.
            #[doc(alias = "caffe_set")]
            fn fill<T: Element>(value: T, y: overwrite T) { Ok(()) }

            /// `y ← op(x)`
            ///
            /// A comparison with NaN is false, so a function that is defined by cases takes its
            /// last case: [`Sign`](Unary::Sign) and [`Threshold`](Unary::Threshold) of NaN are 0.
            /// [`SignBit`](Unary::SignBit) depends only on the sign bit, and a power with the
            /// exponent 0 is 1 for every `x`. All functions except `Sign`, `Threshold`, `SignBit`
            /// and powers with the exponent 0 return NaN for NaN. `Abs` and `Neg` change only the
            /// sign bit, even of a zero.
            ///
            /// `Abs`, `Neg`, `Sqr`, `Sign`, `SignBit`, `AddScalar`, `Scale`, `Threshold`, `Relu`
            /// and `Clip` are correctly rounded. Functions that are not correctly rounded may have
            /// the errors that the conformance kit's oracle allows: from 2.5 units in the last
            /// place for a quotient to 16 for `pow`.
            ///
            /// Lengths: `y` has as many elements as `x`.
            #[doc(alias = "caffe_powx")]
            #[doc(alias = "caffe_exp")]
            #[doc(alias = "caffe_cpu_scale")]
            fn unary<T: Element>(op: Unary<T::Acc>, x: src(unary_in_place) T, y: overwrite T) {
                check_len(op.kernel_name(), "y", x.unwrap_or(y), y)
            }

            /// `y ← a op b`, element by element; `a` and `b` may be the same view.
            ///
            /// A comparison with NaN is false, so a function that is defined by cases takes its
            /// last case. [`Max`](Binary::Max) and [`Min`](Binary::Min) are `b` if an operand is
            /// NaN, [`Greater`](Binary::Greater) and [`ClipGrad`](Binary::ClipGrad) are 0, and
            /// [`ReluGrad`](Binary::ReluGrad) is `slope · a` if `b` is NaN. A function that is not
            /// defined by cases is NaN if an operand is NaN. A case that does not use an operand,
            /// such as `b = 0` in [`DivOrZero`](Binary::DivOrZero), ignores a NaN in that operand.
            ///
            /// `Add`, `Sub`, `Mul` and functions that only select an operand are correctly rounded.
            ///
            /// Lengths: `a`, `b` and `y` have the same number of elements.
            #[doc(alias = "caffe_add")]
            #[doc(alias = "caffe_mul")]
            fn binary<T: Element>(
                op: Binary<T::Acc>, a: src(binary_in_place) T, b: read T, y: overwrite T
            ) { op.check(a.unwrap_or(y), b, y) }

            /// `y[o,e,i] ← a[o,e,i] op b[e]`, where `b` has `axis.extent` elements. Each element
            /// follows the rules of [`binary`](Self::binary).
            ///
            /// Lengths: `a` and `y` have `axis.count()` elements, and `b` has `axis.extent`.
            fn broadcast<T: Element>(
                op: Binary<T::Acc>,
                axis: &Axis,
                a: src(broadcast_in_place) T,
                b: read T,
                y: overwrite T
            ) { op.check_broadcast(axis, a, b, y) }

            /// `y[o,e,i] ← x[o,e,i] · scale[e] + shift[e]`, where `scale` and `shift` have
            /// `axis.extent` elements. The product may be rounded before the addition or not (FMA).
            ///
            /// Lengths: `x` and `y` have `axis.count()` elements, and `scale` and `shift` have
            /// `axis.extent`.
            fn affine<T: Element>(
                axis: &Axis, x: src(affine_in_place) T, scale: read T, shift: read T, y: overwrite T
            ) { axis.check_affine(x, scale, shift, y) }

            /// `y ← x`; each element is rounded once to the element type of `y`, to nearest, ties
            /// to even. NaN stays NaN, and a number beyond the range of the type becomes infinite.
            ///
            /// Lengths: `y` has as many elements as `x`.
            fn convert<T: Element, U: Element>(x: read T, y: overwrite U) {
                check_len("convert", "y", x, y)
            }

            /// `y ← x`, where `x` holds integers, such as indices or counts. Each integer is
            /// rounded once to the element type of `y`, to nearest, ties to even.
            ///
            /// Lengths: `y` has as many elements as `x`.
            fn convert_integers<N: Storable + Into<f64>, T: Element>(x: read N, y: overwrite T) {
                check_len("convert_integers", "y", x, y)
            }

            /// Computes one time step of an [`Lstm`]. Replaces the gate inputs in `gates` by the
            /// gate activations, and computes the new states `c` and `h` from the activations. If
            /// `cont` is 0, the step computes `0 · c_prev`, so a NaN in `c_prev` still reaches `c`.
            ///
            /// Lengths: `c_prev`, `c` and `h` have `op.state()` elements, `cont` has
            /// `op.streams()`, and `gates` has `op.gates()`.
            fn lstm<T: Element>(
                op: &Lstm,
                c_prev: read T,
                cont: read T,
                gates: update T,
                c: overwrite T,
                h: overwrite T
            ) {
                op.check("lstm", ("gates", gates), &[("c_prev", c_prev), ("c", c), ("h", h)])?;
                check_len("lstm", "cont", op.streams(), cont)
            }

            /// Computes the gradient of one time step of an [`Lstm`]. Replaces the gate activations
            /// in `gates` by the gradients of the gate inputs. Replaces the gradient of the cell
            /// state `c` in `dc` by the gradient of the previous cell state `c_prev`.
            ///
            /// Lengths: `c_prev`, `c`, `dh` and `dc` have `op.state()` elements, and `gates` has
            /// `op.gates()`.
            fn lstm_backward<T: Element>(
                op: &Lstm, c_prev: read T, c: read T, dh: read T, dc: update T, gates: update T
            ) {
                let states = [("c_prev", c_prev), ("c", c), ("dh", dh), ("dc", dc)];
                op.check("lstm_backward", ("gates", gates), &states)
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;
