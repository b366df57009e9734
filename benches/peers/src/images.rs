//! Benchmark cases of im2col, col2im, LRN and pooling, compared with a copy of the same number of
//! bytes.

use crate::case::{Case, Run, Work, copy, vector};
use cortado::{
    kernel::slices,
    op::{Lrn, LrnRegion, Pool2d, PoolRounding, SpatialAxis, Window},
};

const RANGE: [f64; 2] = [-1.0, 1.0];

pub(crate) fn add(list: &mut Vec<Case>) {
    let layers = [
        ("lenet_conv2", 20, 12, 5, 1, 0),
        ("alexnet_conv1", 3, 227, 11, 4, 0),
        ("alexnet_conv2", 48, 27, 5, 1, 2),
        ("googlenet_3x3", 128, 28, 3, 1, 1),
    ];
    for (name, channels, side, kernel, stride, pad) in layers {
        let axis = SpatialAxis { stride, pad, ..SpatialAxis::new(side, kernel) };
        let window = Window::new(channels, &[axis; 2]).expect("the kernel fits the image");
        let (image, columns) = (window.image_len(), window.columns_len());
        let work = Work::Bytes(((image + columns) * size_of::<f32>()) as u64);
        list.push(Case::new("im2col", name.into(), work, {
            let window = window.clone();
            move |_, workers| {
                let (x, mut y) = (vector::<f32>(image, RANGE), vec![0.0; columns]);
                let (workers, window) = (workers.clone(), window.clone());
                let run = Run::new("cortado", move || {
                    slices::im2col(&workers, &window, &x.get(), &mut y)
                        .expect("operands of matching lengths");
                });
                vec![run, copy::<f32>((image + columns) / 2)]
            }
        }));
        list.push(Case::new("col2im", name.into(), work, move |_, workers| {
            let (x, mut y) = (vector::<f32>(columns, RANGE), vec![0.0; image]);
            let (workers, window) = (workers.clone(), window.clone());
            let run = Run::new("cortado", move || {
                slices::col2im(&workers, &window, &x.get(), &mut y)
                    .expect("operands of matching lengths");
            });
            vec![run, copy::<f32>((image + columns) / 2)]
        }));
    }
    pools(list);
    for (name, channels, side) in [("alexnet_norm1", 96, 55), ("googlenet_norm2", 192, 56)] {
        let op = Lrn {
            region: LrnRegion::AcrossChannels,
            batch: 10,
            channels,
            plane: [side, side],
            size: 5,
            alpha: 1e-4,
            beta: 0.75,
            k: 1.0,
        };
        let n = op.count();
        let work = Work::Bytes((3 * n * size_of::<f32>()) as u64);
        list.push(Case::new("lrn", name.into(), work, move |_, workers| {
            let (x, workers) = (vector::<f32>(n, RANGE), workers.clone());
            let (mut scale, mut y) = (vec![0.0; n], vec![0.0; n]);
            let run = Run::new("cortado", move || {
                slices::lrn(&workers, &op, &x.get(), &mut scale, &mut y).expect("equal lengths");
            });
            vec![run, copy::<f32>(3 * n / 2)]
        }));
    }
}

fn pools(list: &mut Vec<Case>) {
    for (name, planes, side, kernel, stride, pad) in [
        ("lenet_pool1", 64 * 20, 24, 2, 2, 0),
        ("alexnet_pool1", 10 * 96, 55, 3, 2, 0),
        ("googlenet_3x3", 10 * 192, 28, 3, 1, 1),
        ("googlenet_7x7", 10 * 1024, 7, 7, 1, 0),
    ] {
        let (kernel, stride, pad) = ([kernel; 2], [stride; 2], [pad; 2]);
        let op = Pool2d::new(planes, [side; 2], kernel, stride, pad, PoolRounding::Ceil)
            .expect("the kernel fits the plane");
        let (input, output) = (op.input_len(), op.output_len());
        let work = |elements: usize| Work::Bytes((elements * size_of::<f32>()) as u64);
        list.push(Case::new("pool", format!("max/{name}"), work(input + 2 * output), {
            move |_, workers| {
                let (x, workers) = (vector::<f32>(input, RANGE), workers.clone());
                let (mut y, mut mask) = (vec![0.0; output], vec![0; output]);
                let run = Run::new("cortado", move || {
                    slices::max_pool(&workers, &op, &x.get(), &mut y, &mut mask)
                        .expect("operands of matching lengths");
                });
                vec![run, copy::<f32>((input + 2 * output) / 2)]
            }
        }));
        list.push(Case::new("pool", format!("max_backward/{name}"), work(input + 2 * output), {
            move |_, workers| {
                let (x, workers) = (vector::<f32>(input, RANGE), workers.clone());
                let (mut y, mut mask) = (vec![0.0; output], vec![0; output]);
                slices::max_pool(&workers, &op, &x.get(), &mut y, &mut mask)
                    .expect("operands of matching lengths");
                let mut dx = vec![0.0; input];
                let run = Run::new("cortado", move || {
                    slices::max_pool_backward(&workers, &op, &y, &mask, &mut dx)
                        .expect("operands of matching lengths");
                });
                vec![run, copy::<f32>((input + 2 * output) / 2)]
            }
        }));
        list.push(Case::new("pool", format!("average/{name}"), work(input + output), {
            move |_, workers| {
                let (x, workers) = (vector::<f32>(input, RANGE), workers.clone());
                let mut y = vec![0.0; output];
                let run = Run::new("cortado", move || {
                    slices::average_pool(&workers, &op, &x.get(), &mut y)
                        .expect("operands of matching lengths");
                });
                vec![run, copy::<f32>((input + output) / 2)]
            }
        }));
    }
}
