//! Tests of the schedules of kernels on 2 to 64 simulated threads: balance of the work, barriers,
//! cache lines that several threads write, and results that threads of another socket read.

use crate::{
    host::{
        CACHE_LINE, Workers, affine, convolve, convolve_backward_filters, convolve_backward_input,
        fill, gemm, gemv, lrn, max_pool, max_pool_backward, moments, softmax, solver_update,
        testing::{fractions, nan},
        threads::simulation::{Schedule, Work, crossing, simulate},
        unary_in_place,
    },
    op::{
        Axis, Convolution, Gemm, Gemv, Lrn, LrnRegion, Pool2d, PoolRounding, Regularization,
        SolverUpdate, SpatialAxis, Transpose, Unary, UpdateRule, Window,
    },
};

const PERFORMANCE: &str = include_str!("../../docs/performance.md");

/// Elements that start at a cache-line boundary, like the elements of a blob.
struct Operand {
    memory: Vec<f32>,
    len: usize,
}

impl Operand {
    fn new(len: usize) -> Self {
        Self { memory: vec![0.0; len + CACHE_LINE], len }
    }
    fn get(&mut self) -> &mut [f32] {
        let start = self.memory.as_ptr().align_offset(CACHE_LINE);
        &mut self.memory[start..][..self.len]
    }
}

/// A kernel call with operands of a practical shape.
struct Case {
    name: &'static str,
    measure: Work,
    run: Box<dyn Fn(&Workers)>,
}

impl Case {
    fn new(name: &'static str, measure: Work, run: impl Fn(&Workers) + 'static) -> Self {
        Self { name, measure, run: Box::new(run) }
    }
    fn on(&self, threads: usize) -> Schedule {
        simulate(threads, self.measure, &self.run)
    }
}

/// Returns a convolution of square images with square kernels.
fn convolution(
    [batch, channels, outputs, groups]: [usize; 4],
    [input, kernel, stride, pad]: [usize; 4],
) -> Convolution {
    let axis = SpatialAxis { input, kernel, stride, pad, dilation: 1 };
    let window = Window::new(channels, &[axis, axis]).unwrap();
    Convolution::new(batch, outputs, groups, window).unwrap()
}

/// Returns the lengths of the images, the filters and the outputs of a convolution.
fn lens(op: &Convolution) -> [usize; 3] {
    let (window, filter_len) = (op.window(), op.window().column_rows() / op.groups());
    let image_len = window.image_len();
    let output_len = op.outputs() * window.positions();
    [op.batch() * image_len, op.outputs() * filter_len, op.batch() * output_len]
}

fn forward(name: &'static str, op: Convolution) -> Case {
    Case::new(name, Work::GemmFlops, move |workers| {
        let [x, filters, y] = lens(&op);
        let (x, filters, mut y) = (vec![0.0f32; x], vec![0.0; filters], Operand::new(y));
        convolve(workers, &op, &x, &filters, None, y.get()).unwrap();
    })
}

fn backward_input(name: &'static str, op: Convolution) -> Case {
    Case::new(name, Work::GemmFlops, move |workers| {
        let [dx, filters, dy] = lens(&op);
        let (mut dx, filters, dy) = (Operand::new(dx), vec![0.0f32; filters], vec![0.0; dy]);
        convolve_backward_input(workers, &op, &filters, &dy, dx.get()).unwrap();
    })
}

fn backward_filters(name: &'static str, op: Convolution) -> Case {
    Case::new(name, Work::GemmFlops, move |workers| {
        let [x, filters, dy] = lens(&op);
        let (x, mut dfilters, dy) = (vec![0.0f32; x], Operand::new(filters), vec![0.0; dy]);
        convolve_backward_filters(workers, &op, &x, &dy, dfilters.get()).unwrap();
    })
}

fn product(name: &'static str, m: usize, n: usize, k: usize) -> Case {
    Case::new(name, Work::GemmFlops, move |workers| {
        let (a, b, mut c) = (vec![0.0f32; m * k], vec![0.0; k * n], Operand::new(m * n));
        gemm(workers, &Gemm::new(m, n, k), &a, &b, c.get()).unwrap();
    })
}

/// GEMMs, and convolutions of AlexNet and GoogLeNet with a batch of 10.
fn gemm_cases() -> Vec<Case> {
    let conv1 = convolution([10, 3, 96, 1], [227, 11, 4, 0]);
    let inception_4a = convolution([10, 480, 192, 1], [14, 1, 1, 0]);
    let inception_5b = convolution([10, 192, 384, 1], [7, 3, 1, 1]);
    vec![
        product("GEMM, 1000×1000×1000", 1000, 1000, 1000),
        product("GEMM, AlexNet's fc6: 10×4096×9216", 10, 4096, 9216),
        forward("convolution, AlexNet's conv1", conv1.clone()),
        forward("convolution, GoogLeNet's 4a 1×1", inception_4a.clone()),
        forward("convolution, GoogLeNet's 5b 3×3", inception_5b.clone()),
        backward_input("gradient of images, GoogLeNet's 4a 1×1", inception_4a.clone()),
        backward_filters("gradient of filters, AlexNet's conv1", conv1),
        backward_filters("gradient of filters, GoogLeNet's 4a 1×1", inception_4a),
        backward_filters("gradient of filters, GoogLeNet's 5b 3×3", inception_5b),
    ]
}

/// Number of elements in the output of AlexNet's conv1 with a batch of 10.
const CONV1_LEN: usize = 10 * 96 * 55 * 55;

/// Elementwise functions, whose tasks may have any length.
fn map_cases() -> Vec<Case> {
    vec![
        Case::new("ReLU, AlexNet's conv1", Work::BytesWritten, |workers| {
            let mut y = Operand::new(CONV1_LEN);
            unary_in_place(workers, Unary::Relu { slope: 0.0 }, y.get()).unwrap();
        }),
        Case::new("fill, AlexNet's conv1", Work::BytesWritten, |workers| {
            fill(workers, 1.0, Operand::new(CONV1_LEN).get()).unwrap();
        }),
        Case::new("scale and bias by channel, AlexNet's conv1", Work::BytesWritten, |workers| {
            let (x, mut y) = (vec![0.0f32; CONV1_LEN], Operand::new(CONV1_LEN));
            let axis = Axis::new(10, 96, 55 * 55).unwrap();
            affine(workers, &axis, &x, &[1.0; 96], &[0.0; 96], y.get()).unwrap();
        }),
    ]
}

/// Kernels whose tasks are whole planes, rows or channels, or have a minimum size.
fn plane_cases() -> Vec<Case> {
    let pool = || Pool2d::new(960, [55, 55], [3, 3], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    vec![
        Case::new("max pooling, AlexNet's pool1", Work::BytesWritten, move |workers| {
            let (x, len) = (vec![0.0f32; CONV1_LEN], pool().output_len());
            let (mut y, mut mask) = (Operand::new(len), vec![0; len]);
            max_pool(workers, &pool(), &x, y.get(), &mut mask).unwrap();
        }),
        Case::new("gradient of max pooling, AlexNet's pool1", Work::BytesWritten, move |workers| {
            let (dy, mask) = (vec![0.0f32; pool().output_len()], vec![0; pool().output_len()]);
            let mut dx = Operand::new(CONV1_LEN);
            max_pool_backward(workers, &pool(), &dy, &mask, dx.get()).unwrap();
        }),
        Case::new("LRN, AlexNet's norm1", Work::BytesWritten, |workers| {
            let region = LrnRegion::AcrossChannels;
            let (size, alpha, beta, k) = (5, 1e-4, 0.75, 1.0);
            let op = Lrn { region, batch: 10, channels: 96, plane: [27, 27], size, alpha, beta, k };
            let x = vec![0.0f32; 10 * 96 * 27 * 27];
            let (mut scale, mut y) = (Operand::new(x.len()), Operand::new(x.len()));
            lrn(workers, &op, &x, scale.get(), y.get()).unwrap();
        }),
        Case::new("softmax, 1000 rows of 1000 classes", Work::BytesWritten, |workers| {
            let (x, mut y) = (vec![0.0f32; 1_000_000], Operand::new(1_000_000));
            softmax(workers, &Axis::new(1000, 1000, 1).unwrap(), &x, y.get()).unwrap();
        }),
        Case::new("mean and variance of 96 channels", Work::BytesWritten, |workers| {
            let (x, mut mean, mut variance) = (vec![0.0f32; CONV1_LEN], [0.0; 96], [0.0; 96]);
            let axis = Axis::new(10, 96, 55 * 55).unwrap();
            moments(workers, &axis, &x, &mut mean, &mut variance).unwrap();
        }),
        Case::new("GEMV, 4096×1024", Work::BytesWritten, |workers| {
            let (a, x, mut y) = (vec![0.0f32; 4096 * 1024], vec![0.0; 1024], Operand::new(4096));
            let op = Gemv::new(Transpose::No, 4096, 1024);
            gemv(workers, &op, &a, &x, y.get()).unwrap();
        }),
        Case::new("solver update, 4,096,000 weights", Work::BytesWritten, |workers| {
            let (rate, scale, decay, rule) = (0.1, 1.0, 0.0, UpdateRule::Sgd { momentum: 0.9 });
            let op = SolverUpdate { rate, scale, decay, regularization: Regularization::L2, rule };
            let (dw, mut w, mut h) =
                (vec![0.0f32; 4_096_000], Operand::new(4_096_000), Operand::new(4_096_000));
            solver_update(workers, &op, &dw, w.get(), None, &mut [h.get()]).unwrap();
        }),
    ]
}

/// Returns the row of a case in the table of docs/performance.md.
fn row(case: &Case) -> String {
    let schedules = [2, 8, 64].map(|threads| case.on(threads));
    let imbalances = schedules.each_ref().map(|schedule| format!("{:.2}", schedule.imbalance()));
    let [.., last] = &schedules;
    let (shared, lines) = last.shared_lines(CACHE_LINE as u64);
    // A result of few cache lines consists of sums over many elements, which take far longer to
    // compute than to write.
    let shared = match lines {
        1000.. => format!("{:.1} %", 100.0 * shared as f64 / lines as f64),
        _ => "–".to_owned(),
    };
    let (tasks, barriers) = (last.tasks, last.barriers);
    format!("| {} | {} | {tasks} | {barriers} | {shared} |", case.name, imbalances.join(" | "))
}

#[test]
fn the_documentation_contains_the_simulated_schedules() {
    let cases = [gemm_cases(), map_cases(), plane_cases()];
    let rows: Vec<_> = cases.iter().flatten().map(row).collect();
    let missing: Vec<_> = rows.iter().filter(|row| !PERFORMANCE.contains(&row[..])).collect();
    assert!(
        missing.is_empty(),
        "docs/performance.md: rows of the table of schedules differ; expected:\n{}",
        rows.join("\n")
    );
}

/// A part of a GEMM has at least 16 rows and columns, or all rows or columns, and at least 1.5 MFLOP.
/// The work of 64 threads therefore differs if each thread has only a few MFLOP.
#[test]
fn gemms_and_convolutions_are_balanced_on_up_to_64_threads() {
    for case in gemm_cases() {
        for threads in [2, 4, 8, 16, 32, 64] {
            let schedule = case.on(threads);
            let (imbalance, barriers) = (schedule.imbalance(), schedule.barriers);
            let bound = match schedule.work / threads as u64 {
                ..8_000_000 => 2.2,
                _ if case.name.starts_with("gradient of filters") => 1.5,
                _ => 1.35,
            };
            assert!(imbalance <= bound, "{}, {threads} threads: {imbalance}", case.name);
            // Fewer than three waits per image: one wait for the padded copy of the image, and one
            // wait for the GEMM of each of one or two groups.
            assert!(barriers <= 26, "{}, {threads} threads: {barriers} waits", case.name);
        }
    }
}

#[test]
fn threads_of_elementwise_functions_share_no_cache_line_and_do_equal_work() {
    for case in map_cases() {
        for threads in [2, 8, 64] {
            let schedule = case.on(threads);
            let shared = |line| schedule.shared_lines(line as u64).0;
            assert_eq!(shared(CACHE_LINE), 0, "{}, {threads}", case.name);
            // The memory of a blob may start in the middle of a pair of cache lines.
            assert!(shared(2 * CACHE_LINE) < schedule.tasks, "{}, {threads}", case.name);
            assert_eq!(schedule.barriers, 1);
            // A task has more than half of the grain. The number of tasks is a multiple of the
            // number of threads, unless there are too few elements.
            let fewest = (CONV1_LEN >> 17).min(threads);
            assert!(schedule.tasks >= fewest, "{}: {} tasks", case.name, schedule.tasks);
            let bound = 1.02 * threads as f64 / fewest as f64;
            assert!(schedule.imbalance() <= bound, "{}, {threads}: {schedule:?}", case.name);
        }
    }
}

/// If each thread has at least one image, a convolution, its activation and the pooling after it
/// divide the images among the threads in the same way.
#[test]
fn consecutive_layers_read_only_results_of_their_own_socket() {
    const PLANES: usize = 64 * 16;
    let op = convolution([64, 2, 16, 1], [64, 3, 1, 1]);
    let pool = Pool2d::new(PLANES, [64, 64], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    for threads in [2, 8, 64] {
        let [x_len, filters_len, y_len] = lens(&op);
        let (x, filters, mut y) =
            (vec![0.0f32; x_len], vec![0.0; filters_len], Operand::new(y_len));
        let (mut pooled, mut mask) = (Operand::new(y_len / 4), vec![0; y_len / 4]);
        let measure = Work::BytesWritten;
        let convolved =
            simulate(threads, measure, |w| convolve(w, &op, &x, &filters, None, y.get()).unwrap());
        let activated = simulate(threads, measure, |w| {
            unary_in_place(w, Unary::Relu { slope: 0.0 }, y.get()).unwrap();
        });
        let convolved = convolved.writers(y.get());
        let activated = activated.writers(y.get());
        let pooled_by = simulate(threads, measure, |w| {
            max_pool(w, &pool, y.get(), pooled.get(), &mut mask).unwrap();
        });
        let pooled_by = pooled_by.writers(pooled.get());
        for sockets in [2, 4] {
            let shares = [(&convolved, &activated), (&activated, &pooled_by)]
                .map(|(writers, readers)| crossing(writers, readers, threads, sockets));
            assert_eq!(shares, [0.0; 2], "{threads} threads on {sockets} sockets");
        }
    }
}

#[test]
fn results_on_64_threads_are_bit_identical_to_those_on_one_thread() {
    let workers = Workers::new(if cfg!(target_family = "wasm") { 1 } else { 64 }).unwrap();
    let one = Workers::sequential();
    for [m, n, k] in [[203, 197, 150], [97, 1021, 60], [1025, 33, 129], [10, 3000, 100]] {
        let (a, b) = (fractions::<f32>(1, m * k), fractions::<f32>(2, k * n));
        for (trans_a, trans_b) in [(Transpose::No, Transpose::No), (Transpose::Yes, Transpose::Yes)]
        {
            let lda = if trans_a == Transpose::No { k } else { m };
            let ldb = if trans_b == Transpose::No { n } else { k };
            let op = Gemm::new(m, n, k).transpose(trans_a, trans_b).leading_dims(lda, ldb, n);
            let [c, c_64] = [&one, &workers].map(|workers| {
                let mut c = nan::<f32>(m * n);
                gemm(workers, &op, &a, &b, &mut c).unwrap();
                c
            });
            assert!(c == c_64, "{m}×{n}×{k}");
        }
    }
    // Fewer images than threads, with one or two groups; images with few positions, which share a
    // GEMM; and more images than threads.
    for op in [
        convolution([5, 16, 32, 2], [19, 3, 1, 1]),
        convolution([10, 24, 40, 1], [7, 3, 1, 1]),
        convolution([3, 12, 48, 1], [33, 5, 2, 0]),
        convolution([67, 4, 16, 1], [14, 3, 1, 1]),
    ] {
        let [x_len, filters_len, y_len] = lens(&op);
        let (x, filters) = (fractions::<f32>(1, x_len), fractions::<f32>(2, filters_len));
        let dy = fractions::<f32>(3, y_len);
        let [first, second] = [&one, &workers].map(|workers| {
            let (mut y, mut dx) = (nan::<f32>(y_len), nan::<f32>(x_len));
            let mut dfilters = vec![0.5f32; filters_len];
            convolve(workers, &op, &x, &filters, None, &mut y).unwrap();
            convolve_backward_input(workers, &op, &filters, &dy, &mut dx).unwrap();
            convolve_backward_filters(workers, &op, &x, &dy, &mut dfilters).unwrap();
            (y, dx, dfilters)
        });
        assert!(first == second, "{op:?}");
    }
}
