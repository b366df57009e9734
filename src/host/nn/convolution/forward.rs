//! Forward convolution, which an implicit GEMM computes as `y = filters · columns + bias`.

use crate::{
    element::{Element, is_same},
    error::Result,
    host::{
        blas::gemm::{GemmB, gemm_adding_bias},
        cache::scratch::with_scratch,
        nn::convolution::{
            implicit_gemm::{ImageGroup, ImplicitColumns},
            schedule::{activate, try_for_each_task},
            winograd::Winograd,
        },
        simd::accumulator::{accumulator_len, overwrite_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, Transpose, Unary},
};
use num_traits::Float;

/// `y ← activation(filters · columns + bias)` for all images, where `columns` is the im2col matrix.
pub(crate) fn by_gemm<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T::Acc],
    bias: Option<&[T::Acc]>,
    activation: Option<Unary<T::Acc>>,
    y: &mut [T],
) -> Result<()> {
    if const { is_same::<T::Acc, f32>() }
        && let Some(winograd) = Winograd::if_faster(op)
    {
        return winograd.convolve(workers, x, filters, bias, activation, y);
    }
    let columns = ImplicitColumns::for_outputs(op)?;
    let (image_len, output_len) = (op.window().image_len(), op.outputs() * op.window().positions());
    let task_len = columns.max_images * output_len;
    let tasks = op.batch().div_ceil(columns.max_images);
    let gemm_flops = op.flops() / (tasks * op.groups()).max(1) as u64;
    try_for_each_task(workers, op, gemm_flops, y, task_len, |gemm_workers, task, y| {
        let images = y.len() / output_len;
        let x = &x[task * columns.max_images * image_len..][..images * image_len];
        with_scratch(accumulator_len::<T>(x.len()), |x_scratch| {
            with_scratch(accumulator_len::<T>(y.len()), |y_scratch| {
                let x = widened(x, x_scratch);
                let mut result = Ok(());
                overwrite_widened(y, y_scratch, |y| {
                    result = (0..op.groups()).try_for_each(|group| {
                        let images = columns.image_group(group, images);
                        multiply(gemm_workers, &columns, &images, x, filters, bias, y)
                    });
                });
                result
            })
        })?;
        activate(gemm_workers, activation, y)
    })
}

/// `y ← filters · columns + bias`, where `columns` is the im2col matrix of `images`.
fn multiply<A: Element<Acc = A> + Float>(
    workers: &Workers,
    columns: &ImplicitColumns,
    images: &ImageGroup,
    x: &[A],
    filters: &[A],
    bias: Option<&[A]>,
    y: &mut [A],
) -> Result<()> {
    let (m, k, n) = (columns.outputs, columns.rows(), images.columns);
    let filters = &filters[images.group * m * k..][..m * k];
    let op = Gemm::<A>::new(m, n, k);
    let bias = bias.map(|bias| &bias[images.group * m..][..m]);
    let gemm = |y: &mut [A]| match columns.image_as_columns(images, x) {
        Some(x) => gemm_adding_bias(workers, &op, filters, &GemmB::Matrix(x), bias, y),
        None => columns.with_columns(workers, images, Transpose::No, 0..k, x, |columns| {
            gemm_adding_bias(workers, &op, filters, columns, bias, y)
        }),
    };
    if let Some(output) = columns.output_mut(images, y) {
        return gemm(output);
    }
    with_scratch(m * n, |outputs: &mut [A]| {
        gemm(outputs)?;
        columns.scatter_outputs(images, outputs, y);
        Ok(())
    })
}
