//! Tests of the layer DetectionEvaluate, and of a solver's tests of detection nets.

use cortado::{
    AnyDevice, Blob, CpuDevice, Element, LayerRegistry, Net, Result, Solver,
    communicator::ThreadCommunicator,
    layer::{Arity, Layer},
    proto::{self, SolverParameter},
    solver::Score,
};
use std::thread;

fn net(param: &str, detections: usize, objects: usize) -> Result<Net<f32>> {
    let text = format!(
        "layer {{ type: 'Input' top: 'boxes' input_param {{ shape {{ dim: [1, 1, {detections}, 7] }} }} }}
         layer {{ type: 'Input' top: 'label' input_param {{ shape {{ dim: [1, 1, {objects}, 8] }} }} }}
         layer {{ name: 'y' type: 'DetectionEvaluate' bottom: 'boxes' bottom: 'label' top: 'y'
           detection_evaluate_param {{ {param} }} }}"
    );
    Net::builder(&CpuDevice::new()).build(&proto::parse_text(text, "net")?)
}

/// Runs the net on one batch, and returns the rows of the top.
fn rows(net: &mut Net<f32>, boxes: &[[f32; 7]], objects: &[[f32; 8]]) -> Result<Vec<[f32; 5]>> {
    net.blob("boxes").unwrap().copy_from_slice(boxes.as_flattened())?;
    net.blob("label").unwrap().copy_from_slice(objects.as_flattened())?;
    net.forward()?;
    Ok(net.blob("y").unwrap().to_vec()?.as_chunks().0.to_vec())
}

const A: [f32; 4] = [0.125, 0.125, 0.375, 0.375];
/// Overlaps `A` by 3/4.
const NEAR_A: [f32; 4] = [0.125, 0.125, 0.375, 0.3125];
/// Overlaps `A` by 1/3.
const HALF_OF_A: [f32; 4] = [0.25, 0.125, 0.5, 0.375];
const B: [f32; 4] = [0.5, 0.5, 1.0, 1.0];

fn detected(image: usize, label: usize, score: f32, [l, t, r, b]: [f32; 4]) -> [f32; 7] {
    [image as f32, label as f32, score, l, t, r, b]
}

fn object(image: usize, label: usize, [l, t, r, b]: [f32; 4], difficult: bool) -> [f32; 8] {
    [image as f32, label as f32, 0.0, l, t, r, b, if difficult { 1.0 } else { 0.0 }]
}

const MISSING: [f32; 7] = [1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0];

#[test]
fn each_object_has_one_true_positive() {
    let boxes = [
        detected(0, 1, 0.5, A),
        detected(0, 1, 0.75, NEAR_A),
        detected(0, 1, 0.25, HALF_OF_A),
        detected(0, 3, 0.5, A),
        MISSING,
        detected(2, 1, 0.5, B),
        detected(2, 2, 0.125, B),
    ];
    let objects = [object(0, 1, A, false), object(0, 1, B, true), object(2, 2, B, true), [-1.0; 8]];
    let mut all = net("num_classes: 4", boxes.len(), objects.len()).unwrap();
    let found = rows(&mut all, &boxes, &objects).unwrap();
    let want = [
        [-1.0, 1.0, 2.0, -1.0, -1.0],
        [-1.0, 2.0, 1.0, -1.0, -1.0],
        [-1.0, 3.0, 0.0, -1.0, -1.0],
        // The box with the highest score is the true positive, although another box is closer.
        [0.0, 1.0, 0.75, 1.0, 0.0],
        [0.0, 1.0, 0.5, 0.0, 1.0],
        [0.0, 1.0, 0.25, 0.0, 1.0],
        [0.0, 3.0, 0.5, 0.0, 1.0],
        [2.0, 1.0, 0.5, 0.0, 1.0],
        [2.0, 2.0, 0.125, 1.0, 0.0],
    ];
    assert_eq!(found, want);
    let param = "num_classes: 4 evaluate_difficult_gt: false overlap_threshold: 0.8";
    let mut easy = net(param, boxes.len(), objects.len()).unwrap();
    let found = rows(&mut easy, &boxes, &objects).unwrap();
    let want = [
        [-1.0, 1.0, 1.0, -1.0, -1.0],
        [-1.0, 2.0, 0.0, -1.0, -1.0],
        [-1.0, 3.0, 0.0, -1.0, -1.0],
        [0.0, 1.0, 0.75, 0.0, 1.0],
        [0.0, 1.0, 0.5, 1.0, 0.0],
        [0.0, 1.0, 0.25, 0.0, 1.0],
        [0.0, 3.0, 0.5, 0.0, 1.0],
        [2.0, 1.0, 0.5, 0.0, 1.0],
        // The box of the difficult object is neither a true nor a false positive.
        [2.0, 2.0, 0.125, 0.0, 0.0],
    ];
    assert_eq!(found, want);
}

/// Returns the overlap of two boxes with edges in pixels.
fn overlap_in_pixels(a: [f64; 4], b: [f64; 4]) -> f64 {
    let side = |i: usize| a[i + 2].min(b[i + 2]) - a[i].max(b[i]) + 1.0;
    let area = |e: [f64; 4]| (e[2] - e[0] + 1.0) * (e[3] - e[1] + 1.0);
    let common = side(0) * side(1);
    common / (area(a) + area(b) - common)
}

#[test]
fn boxes_are_compared_in_pixels_of_the_original_images() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sizes.txt");
    std::fs::write(&file, "first 8 8\n\nsecond 80 160\nthird 40 20\n").unwrap();
    let sizes = [[8.0, 8.0], [160.0, 80.0], [20.0, 40.0]];
    // The pixels of a fraction of the resized image along an axis, before the clip to the image.
    let padded = |size: [f64; 2]| {
        // An image of 300 × 300 pixels with borders.
        let covered = [size[0], size[1]].map(|side| side / size[0].max(size[1]));
        move |i: usize, x: f64| (x - (1.0 - covered[i]) / 2.0) / covered[i] * size[i]
    };
    let resizes = [
        ("", 0),
        ("resize_param { height: 300 width: 300 }", 0),
        ("resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 300 width: 300 }", 1),
        (
            "resize_param { resize_mode: FIT_SMALL_SIZE height: 300 width: 300 height_scale: 30
                width_scale: 60 }",
            2,
        ),
    ];
    let mut results = Vec::new();
    for (resize, kind) in resizes {
        let pixels = |image: usize, edges: [f32; 4]| -> [f64; 4] {
            let size: [f64; 2] = sizes[image];
            std::array::from_fn(|k| {
                let (i, x) = (k % 2, f64::from(edges[k]));
                let pixel = match kind {
                    0 => x * size[i],
                    1 => padded(size)(i, x),
                    _ => x * [60.0, 30.0][i],
                };
                pixel.clamp(0.0, size[i])
            })
        };
        for threshold in [0.35, 0.5, 0.78] {
            let param = format!(
                "num_classes: 2 overlap_threshold: {threshold} name_size_file: '{}' {resize}",
                file.display()
            );
            let mut net = net(&param, 2, 2).unwrap();
            // Batches of two images take the sizes 0 and 1, then 2 and 0, then 1 and 2.
            for image in [0, 2, 1] {
                let boxes = [detected(0, 1, 0.5, HALF_OF_A), detected(1, 1, 0.5, NEAR_A)];
                let objects = [object(0, 1, A, false), object(1, 1, A, false)];
                let rows = rows(&mut net, &boxes, &objects).unwrap();
                for (row, (edges, image)) in
                    rows[1..].iter().zip([(HALF_OF_A, image), (NEAR_A, (image + 1) % 3)])
                {
                    let overlap = overlap_in_pixels(pixels(image, edges), pixels(image, A));
                    let want = if overlap >= threshold { [1.0, 0.0] } else { [0.0, 1.0] };
                    assert_eq!(row[3..], want, "{resize} {threshold} {image}: {overlap}");
                    results.push(want[0]);
                }
            }
        }
    }
    let true_positives: f32 = results.iter().sum();
    assert!((18.0..=54.0).contains(&true_positives), "{results:?}");
}

#[test]
fn images_without_detected_boxes_have_a_line_of_the_size_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sizes.txt");
    std::fs::write(&file, "small 2 2\nlarge 80 80\nlarge 80 80\n").unwrap();
    let param = format!("num_classes: 2 name_size_file: '{}'", file.display());
    let mut net = net(&param, 1, 1).unwrap();
    // With a pixel more on each side, the boxes overlap by more than one half only in the small
    // image.
    let mut is_true = |row: [f32; 7]| {
        let rows = rows(&mut net, &[row], &[object(0, 1, A, false)]).unwrap();
        rows.get(1).map(|row| row[3])
    };
    let mut missing = MISSING;
    missing[0] = 0.0;
    assert_eq!(is_true(detected(0, 1, 0.5, HALF_OF_A)), Some(1.0));
    assert_eq!(is_true(missing), None);
    assert_eq!(is_true(detected(0, 1, 0.5, HALF_OF_A)), Some(0.0));
    assert_eq!(is_true(detected(0, 1, 0.5, HALF_OF_A)), Some(1.0));
}

#[test]
fn invalid_parameters_and_boxes_of_detection_evaluate_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sizes.txt");
    std::fs::write(&file, "a 1 2\nb 0 2\n").unwrap();
    let empty = folder.path().join("empty.txt");
    std::fs::write(&empty, "\n").unwrap();
    let full = folder.path().join("full.txt");
    std::fs::write(&full, "a 1 2").unwrap();
    let cases = [
        (String::new(), "num_classes is required"),
        ("num_classes: 2 overlap_threshold: 0".into(), "overlap_threshold must be positive"),
        ("num_classes: 2 overlap_threshold: nan".into(), "found NaN"),
        (format!("num_classes: 2 name_size_file: '{}'", file.display()), "sizes.txt:2: expected"),
        (format!("num_classes: 2 name_size_file: '{}'", empty.display()), "lists no images"),
        (
            format!("num_classes: 2 name_size_file: '{}' resize_param {{}}", full.display()),
            "resize_param: height and width must be positive",
        ),
        ("num_classes: 2 name_size_file: 'gone.txt'".into(), "gone.txt"),
    ];
    for (param, want) in cases {
        let error = net(&param, 1, 1).err().unwrap_or_else(|| panic!("{param}")).to_string();
        assert!(error.contains("layer `y`") && error.contains(want), "{error}");
    }
    let good = (detected(0, 1, 0.5, A), object(0, 1, A, false));
    let cases = [
        (detected(0, 2, 0.5, A), good.1, "row 0 of the detected boxes: expected a label below"),
        (detected(0, 0, 0.5, A), good.1, "the label 0 is that of the background"),
        ([-1.0; 7], good.1, "row 0 of the detected boxes: the image must be a whole number"),
        (good.0, object(0, 2, A, false), "row 0 of the labelled boxes: the label 2 is too large"),
    ];
    for (boxes, objects, want) in cases {
        let mut net = net("num_classes: 2", 1, 1).unwrap();
        let error = rows(&mut net, &[boxes], &[objects]).unwrap_err().to_string();
        assert!(error.contains("layer `y`") && error.contains(want), "{error}");
    }
}

/// A layer that returns the rows of one batch after the other.
struct Rows(usize);

/// Class 1 has 3 objects, class 2 has 4 objects, class 3 has none, and class 4 has one object.
const BATCHES: [&[[f32; 5]]; 3] = [
    &[
        [-1.0, 1.0, 2.0, -1.0, -1.0],
        [-1.0, 2.0, 4.0, -1.0, -1.0],
        [-1.0, 3.0, 0.0, -1.0, -1.0],
        [-1.0, 4.0, 0.0, -1.0, -1.0],
        [0.0, 1.0, 0.9, 1.0, 0.0],
        [0.0, 1.0, 0.7, 1.0, 0.0],
        [1.0, 2.0, 0.3, 0.0, 1.0],
    ],
    &[
        [-1.0, 1.0, 1.0, -1.0, -1.0],
        [-1.0, 2.0, 0.0, -1.0, -1.0],
        [-1.0, 3.0, 0.0, -1.0, -1.0],
        [-1.0, 4.0, 1.0, -1.0, -1.0],
        [0.0, 1.0, 0.8, 0.0, 1.0],
        [0.0, 1.0, 0.5, 0.0, 1.0],
        [0.0, 1.0, 0.6, 1.0, 0.0],
        // A box of a difficult object.
        [0.0, 2.0, 0.95, 0.0, 0.0],
        [1.0, 2.0, 0.9, 1.0, 0.0],
    ],
    &[
        [-1.0, 1.0, 0.0, -1.0, -1.0],
        [-1.0, 2.0, 0.0, -1.0, -1.0],
        [-1.0, 3.0, 0.0, -1.0, -1.0],
        [-1.0, 4.0, 0.0, -1.0, -1.0],
        [0.0, 3.0, 0.5, 0.0, 1.0],
    ],
];

impl<T: Element> Layer<T> for Rows {
    fn kind(&self) -> &'static str {
        "Rows"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, 1)
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape(&[1, 1, BATCHES[self.0 % 3].len(), 5])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let rows = BATCHES[self.0 % 3].as_flattened();
        let values: Vec<T> = rows.iter().map(|&x| T::from_f64(x.into())).collect();
        top[0].copy_from_slice(&values)?;
        self.0 += 1;
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        self.0 += passes as usize;
        Ok(true)
    }
}

fn definition(fields: &str, output: &str) -> SolverParameter {
    let text = format!(
        "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 3 test_interval: 1 {fields} net_param {{
           layer {{ name: 'data' type: 'DummyData' top: 'x'
             dummy_data_param {{ shape {{ dim: [1, 2] }} }} }}
           layer {{ name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'loss' loss_weight: 1
             include {{ phase: TRAIN }} inner_product_param {{ num_output: 1 }} }}
           layer {{ name: 'quiet' type: 'Silence' bottom: 'x' include {{ phase: TEST }} }}
           layer {{ name: 'rows' include {{ phase: TEST }} {output} }} }}"
    );
    proto::parse_text(text, "solver").unwrap()
}

fn solver(fields: &str, output: &str) -> Result<Solver<f32>> {
    let layers = LayerRegistry::standard().with("Rows", |_, _| Ok(Rows(0)));
    Solver::builder(&CpuDevice::new()).layers(layers).build(definition(fields, output))
}

const ROWS: &str = "type: 'Rows' top: 'eval'";

#[test]
fn a_solver_computes_the_mean_average_precision() {
    // Class 1 by descending score: true, false, true, true, false positive. The recalls are
    // therefore 1/3, 1/3, 2/3, 1, 1, and the precisions 1, 1/2, 2/3, 3/4, 3/5. Class 2: one true
    // and then one false positive, for 4 objects.
    let cases = [
        ("Integral", (1.0 + 2.0 / 3.0 + 3.0 / 4.0) / 3.0, 1.0 / 4.0),
        ("MaxIntegral", (1.0 + 3.0 / 4.0 + 3.0 / 4.0) / 3.0, 1.0 / 4.0),
        ("11point", (4.0 + 7.0 * 3.0 / 4.0) / 11.0, 3.0 / 11.0),
    ];
    for (version, first, second) in cases {
        let fields = format!("eval_type: 'detection' ap_version: '{version}'");
        let all = format!("{fields} show_per_class_result: true");
        let names = ["class1", "class2", "class3", "class4", "eval"];
        let want: [f64; 5] = [first, second, 0.0, 0.0, (first + second) / 4.0];
        let check = |scores: Vec<Score>, names: &[&str], want: &[f64]| {
            assert_eq!(scores.iter().map(|score| &score.name[..]).collect::<Vec<_>>(), names);
            for (score, want) in scores.iter().zip(want) {
                assert!((score.value - want).abs() < 1e-12, "{version}: {score:?}, {want}");
            }
        };
        let scores = solver(&fields, ROWS).unwrap().test(0).unwrap().unwrap();
        check(scores, &names[4..], &want[4..]);
        let scores = solver(&all, ROWS).unwrap().test(0).unwrap().unwrap();
        check(scores, &names, &want);
        // Two processes divide the three batches.
        let threads: Vec<_> = ThreadCommunicator::group(2)
            .into_iter()
            .map(|communicator| {
                let param = definition(&all, ROWS);
                thread::spawn(move || {
                    let layers = LayerRegistry::standard().with("Rows", |_, _| Ok(Rows(0)));
                    let builder = Solver::<f32>::builder(&CpuDevice::new()).layers(layers);
                    let mut solver = builder.communicator(communicator).build(param).unwrap();
                    solver.test(0).unwrap().unwrap()
                })
            })
            .collect();
        for thread in threads {
            check(thread.join().unwrap(), &names, &want);
        }
    }
}

#[test]
fn unknown_kinds_of_tests_and_outputs_of_other_layers_are_refused() {
    for (fields, want) in [
        ("eval_type: 'detections'", "expected classification or detection, found `detections`"),
        ("eval_type: 'detection' ap_version: '11'", "ap_version: expected 11point, MaxIntegral or"),
    ] {
        let error = solver(fields, ROWS).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
    }
    let output = "type: 'DummyData' top: 'label' dummy_data_param { shape { dim: 4 } }";
    let mut solver = solver("eval_type: 'detection'", output).unwrap();
    let error = solver.test(0).unwrap_err().to_string();
    assert!(error.contains("output `label`: a test with the eval_type `detection`"), "{error}");
}
