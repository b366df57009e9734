//! Results: the filters times the columns of the images.

use crate::host::simd::accumulator::accumulator_len;
use crate::{
    element::Element,
    error::Result,
    host::{
        blas::gemm::{GemmB, gemm_packed},
        cache::scratch::with_scratch,
        nn::convolution::{
            activate,
            implicit_gemm::{ImageGroup, ImplicitColumns},
            levels,
        },
        simd::accumulator::{overwrite_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, Transpose, Unary},
};
use num_traits::Float;

/// `y ← filters·columns + bias` for all images, and a function of it if there is one.
pub(crate) fn by_slabs<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T::Acc],
    bias: Option<&[T::Acc]>,
    function: Option<Unary<T::Acc>>,
    y: &mut [T],
) -> Result<()> {
    let slabs = ImplicitColumns::for_outputs(op)?;
    let (image, result) = (op.window().image_len(), op.outputs() * op.window().positions());
    let (outer, inner) = levels(workers, op, slabs.tasks());
    outer.try_for_each_chunk(y, slabs.images() * result, |task, y| {
        let images = y.len() / result;
        let x = &x[task * slabs.images() * image..][..images * image];
        with_scratch(accumulator_len::<T>(x.len()), |room_x| {
            with_scratch(accumulator_len::<T>(y.len()), |room_y| {
                let x = widened(x, room_x);
                let mut done = Ok(());
                overwrite_widened(y, room_y, |y| {
                    done = (0..op.groups()).try_for_each(|group| {
                        multiply(inner, &slabs, &slabs.slab(group, images), x, filters, bias, y)
                    });
                });
                done
            })
        })?;
        activate(inner, function, y)
    })
}

/// `y ← filters·columns + bias` for one slab.
fn multiply<A: Element<Acc = A> + Float>(
    workers: &Workers,
    slabs: &ImplicitColumns,
    slab: &ImageGroup,
    x: &[A],
    filters: &[A],
    bias: Option<&[A]>,
    y: &mut [A],
) -> Result<()> {
    let (m, k, n) = (slabs.outputs(), slabs.rows(), slab.columns());
    let filters = &filters[slab.group() * m * k..][..m * k];
    let op = Gemm::<A>::new(m, n, k);
    let bias = bias.map(|bias| &bias[slab.group() * m..][..m]);
    let product = |y: &mut [A]| match slabs.identity(slab, x) {
        Some(x) => gemm_packed(workers, &op, filters, &GemmB::Matrix(x), bias, y),
        None => slabs.with_columns(workers, slab, Transpose::No, 0..k, x, |columns| {
            gemm_packed(workers, &op, filters, &GemmB::Indirect(columns), bias, y)
        }),
    };
    if let Some(plane) = slabs.result_mut(slab, y) {
        return product(plane);
    }
    with_scratch(m * n, |side: &mut [A]| {
        product(side)?;
        slabs.scatter_results(slab, side, y);
        Ok(())
    })
}
