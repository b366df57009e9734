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

            /// `y ← value`
            #[doc(alias = "caffe_set")]
            fn fill<T: Element>(value: T, y: overwrite T) { Ok(()) }

            /// `y ← op(x)`
            #[doc(alias = "caffe_powx")]
            #[doc(alias = "caffe_exp")]
            #[doc(alias = "caffe_cpu_scale")]
            fn unary<T: Element>(op: Unary<T::Acc>, x: src(unary_in_place) T, y: overwrite T) {
                check_len(op.name(), "y", x.unwrap_or(y), y)
            }

            /// `y ← a op b`, element by element.
            #[doc(alias = "caffe_add")]
            #[doc(alias = "caffe_mul")]
            fn binary<T: Element>(
                op: Binary<T::Acc>, a: src(binary_in_place) T, b: read T, y: overwrite T
            ) { op.check(a.unwrap_or(y), b, y) }

            /// `y[o,e,i] ← a[o,e,i] op b[e]`, where `b` has `axis.extent` elements.
            fn broadcast<T: Element>(
                op: Binary<T::Acc>,
                axis: &Axis,
                a: src(broadcast_in_place) T,
                b: read T,
                y: overwrite T
            ) { op.check_broadcast(axis, a, b, y) }

            /// `y[o,e,i] ← x[o,e,i] · scale[e] + shift[e]`, where `scale` and `shift` have
            /// `axis.extent` elements.
            fn affine<T: Element>(
                axis: &Axis, x: src(affine_in_place) T, scale: read T, shift: read T, y: overwrite T
            ) { axis.check_affine(x, scale, shift, y) }

            /// `y ← x`, with each element rounded once to the element type of `y`.
            fn convert<T: Element, U: Element>(x: read T, y: overwrite U) {
                check_len("convert", "y", x, y)
            }

            /// `y ← x`, where `x` holds integers, such as indices or counts, each of which is
            /// rounded once to the element type.
            fn convert_integers<N: Storable + Into<f64>, T: Element>(x: read N, y: overwrite T) {
                check_len("convert_integers", "y", x, y)
            }

            /// Computes one time step of an [`Lstm`]. Replaces the gate inputs in `gates` by the
            /// gate activations, and computes the new states `c` and `h` from the activations.
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
