//! Tests of the layer AnnotatedData, and of the training of a small SSD on drawn rectangles.

use cortado::{
    CpuDevice, Net, Result, Solver,
    data::LmdbWriter,
    proto::{
        self, AnnotatedDatum, Annotation, AnnotationGroup, Datum, Message, NormalizedBBox, Phase,
    },
};
use std::path::Path;

/// A linear congruential generator, with the multiplier of Knuth's MMIX.
struct Random(u64);

impl Random {
    /// Returns a number in 0 to `max`.
    fn up_to(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % (max + 1)
    }
}

/// A box in pixels: label, left, top, right, bottom, and whether the object is difficult.
type Drawn = (i32, [usize; 4], bool);

fn annotated(size: usize, pixels: Vec<u8>, boxes: &[Drawn]) -> AnnotatedDatum {
    let extent = Some(size as i32);
    let channels = Some((pixels.len() / (size * size)) as i32);
    let datum =
        Datum { channels, height: extent, width: extent, data: Some(pixels), ..Default::default() };
    let groups = boxes.iter().enumerate().map(|(i, (label, edges, difficult))| {
        let [xmin, ymin, xmax, ymax] = edges.map(|edge| Some(edge as f32 / size as f32));
        let difficult = Some(*difficult);
        let bbox = Some(NormalizedBBox { xmin, ymin, xmax, ymax, difficult, ..Default::default() });
        let annotation = vec![Annotation { instance_id: Some(i as i32), bbox }];
        AnnotationGroup { group_label: Some(*label), annotation }
    });
    AnnotatedDatum { datum: Some(datum), r#type: Some(0), annotation_group: groups.collect() }
}

fn write(path: &Path, records: &[AnnotatedDatum]) {
    let mut writer = LmdbWriter::create(path, false).unwrap();
    for (i, record) in records.iter().enumerate() {
        writer.put(format!("{i:05}").as_bytes(), &record.encode_to_vec()).unwrap();
    }
    writer.finish().unwrap();
}

fn net(path: &Path, batch_size: usize, fields: &str) -> Result<Net<f32>> {
    let text = format!(
        "layer {{ name: 'data' type: 'AnnotatedData' top: 'data' top: 'label' data_param {{ source: \
         '{}' batch_size: {batch_size} }} {fields} }}",
        path.display()
    );
    Net::builder(&CpuDevice::new())
        .phase(Phase::Train)
        .seed(7)
        .build(&proto::parse_text(text, "net")?)
}

fn values(net: &Net<f32>, blob: &str) -> Vec<f32> {
    net.blob(blob).unwrap().to_vec().unwrap()
}

/// Returns an image whose pixel at column `x` and row `y` is `16·y + x`.
fn ramp(size: usize) -> Vec<u8> {
    (0..size * size).map(|i| (i / size * 16 + i % size) as u8).collect()
}

#[test]
fn batches_hold_the_images_and_the_boxes_of_their_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    let boxes: [Drawn; 2] = [(3, [0, 2, 4, 8], false), (1, [4, 4, 8, 6], true)];
    write(&path, &[annotated(8, ramp(8), &boxes), annotated(8, ramp(8), &[])]);
    let mut net = net(&path, 1, "transform_param { mean_value: 1 scale: 0.5 }").unwrap();
    for _ in 0..2 {
        net.forward().unwrap();
        let want: Vec<f32> = ramp(8).iter().map(|&x| (f32::from(x) - 1.0) / 2.0).collect();
        assert_eq!(values(&net, "data"), want);
        assert_eq!(net.blob("label").unwrap().shape().to_vec(), [1, 1, 2, 8]);
        let rows =
            [[0.0, 3.0, 0.0, 0.0, 0.25, 0.5, 1.0, 0.0], [0.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.75, 1.0]];
        assert_eq!(values(&net, "label"), rows.as_flattened());
        net.forward().unwrap();
        assert_eq!(net.blob("label").unwrap().shape().to_vec(), [1, 1, 1, 8]);
        assert_eq!(values(&net, "label"), [-1.0; 8]);
    }
    // A net that restores the state of another net continues with the same record.
    net.forward().unwrap();
    let state = net.run_state().unwrap();
    let mut resumed = self::net(&path, 1, "").unwrap();
    resumed.set_run_state(&state).unwrap();
    resumed.forward().unwrap();
    assert_eq!(values(&resumed, "label"), [-1.0; 8]);
}

#[test]
fn mirrored_images_have_mirrored_boxes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    write(&path, &[annotated(8, ramp(8), &[(3, [1, 2, 4, 8], false)])]);
    let mut net = net(&path, 20, "transform_param { mirror: true }").unwrap();
    net.forward().unwrap();
    let (data, label) = (values(&net, "data"), values(&net, "label"));
    let mut mirrored = 0;
    for (image, row) in data.chunks(64).zip(label.chunks(8)) {
        let is_mirrored = image[0] == 7.0;
        let x = if is_mirrored { [0.5, 0.875] } else { [0.125, 0.5] };
        assert_eq!(row[3..7], [x[0], 0.25, x[1], 1.0]);
        assert_eq!(image[0], if is_mirrored { 7.0 } else { 0.0 });
        mirrored += usize::from(is_mirrored);
    }
    assert!((4..=16).contains(&mirrored), "{mirrored}");
}

#[test]
fn crops_satisfy_their_constraint_and_move_the_boxes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    // Pixels inside the box are 255, and the others are 0, so that a crop shows where the box is.
    let inside = |i: usize| (16..48).contains(&(i % 64)) && (24..40).contains(&(i / 64));
    let pixels = (0..64 * 64).map(|i| if inside(i) { 255 } else { 0 }).collect();
    write(&path, &[annotated(64, pixels, &[(1, [16, 24, 48, 40], false)])]);
    let sampler = "annotated_data_param { batch_sampler { max_sample: 1 max_trials: 200
        sampler { min_scale: 0.3 max_scale: 0.9 min_aspect_ratio: 0.5 max_aspect_ratio: 2 }
        sample_constraint { min_object_coverage: 0.5 min_jaccard_overlap: 0.1 } } }";
    let resize = "transform_param { resize_param { height: 128 width: 128 interp_mode: LINEAR } }";
    let mut net = net(&path, 40, &format!("{sampler} {resize}")).unwrap();
    net.forward().unwrap();
    assert_eq!(net.blob("data").unwrap().shape().to_vec(), [40, 1, 128, 128]);
    let (data, label) = (values(&net, "data"), values(&net, "label"));
    assert_eq!(label.len(), 40 * 8);
    let mut areas = Vec::new();
    for (item, (image, row)) in data.chunks(128 * 128).zip(label.chunks(8)).enumerate() {
        assert_eq!(row[..3], [item as f32, 1.0, 0.0]);
        let bright = |i: &usize| image[*i] > 127.5;
        let columns: Vec<_> = (0..128 * 128).filter(bright).map(|i| i % 128).collect();
        let rows: Vec<_> = (0..128 * 128).filter(bright).map(|i| i / 128).collect();
        let range = |v: &[usize]| [*v.iter().min().unwrap(), *v.iter().max().unwrap() + 1];
        let ([left, right], [top, bottom]) = (range(&columns), range(&rows));
        // Crops are cut at whole pixels, and the resizing enlarges each pixel up to 7-fold.
        for (edge, pixel) in row[3..7].iter().zip([left, top, right, bottom]) {
            let error = (edge * 128.0 - pixel as f32).abs();
            assert!(error <= 8.0, "{item}: {row:?}, found {left} {top} {right} {bottom}");
        }
        areas.push((row[5] - row[3]) * (row[6] - row[4]));
    }
    // If a crop covers at least half of a box, and their overlap is at least a tenth, the box
    // covers at least 0.09 of the crop.
    assert!(areas.iter().all(|area| *area > 0.09), "{areas:?}");
    let distinct: std::collections::BTreeSet<_> =
        label.chunks(8).map(|row| row[3].to_bits()).collect();
    assert!(distinct.len() > 20, "{}", distinct.len());
}

/// Returns the left, top, right and bottom edges of the bright pixels of an image.
fn bright_edges(image: &[f32], width: usize) -> [f64; 4] {
    let bright = |i: &usize| image[*i] > 127.5;
    let columns: Vec<_> = (0..image.len()).filter(bright).map(|i| i % width).collect();
    let rows: Vec<_> = (0..image.len()).filter(bright).map(|i| i / width).collect();
    let range = |v: &[usize]| [*v.iter().min().unwrap(), *v.iter().max().unwrap() + 1];
    let ([left, right], [top, bottom]) = (range(&columns), range(&rows));
    [left, top, right, bottom].map(|edge| edge as f64)
}

/// Returns a record of 8 columns and 16 rows, whose pixels in columns 2 to 5 and rows 4 to 11 are
/// 255, with a box around them.
fn tall() -> AnnotatedDatum {
    let inside = |i: usize| (2..6).contains(&(i % 8)) && (4..12).contains(&(i / 8));
    let pixels = (0..8 * 16).map(|i| if inside(i) { 255 } else { 0 }).collect();
    let mut record = annotated(16, pixels, &[(1, [4, 4, 12, 12], false)]);
    let datum = record.datum.as_mut().unwrap();
    (datum.channels, datum.width) = (Some(1), Some(8));
    record
}

#[test]
fn expanded_images_contain_the_image_at_the_moved_box() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    write(&path, &[tall()]);
    let fields = "transform_param { expand_param { prob: 0.5 max_expand_ratio: 4 } mean_value: 50 \
                  emit_constraint { emit_type: CENTER } }";
    let (mut net, mut ratios) = (net(&path, 1, fields).unwrap(), Vec::new());
    for _ in 0..400 {
        net.forward().unwrap();
        let [.., height, width] = net.blob("data").unwrap().shape()[..] else { unreachable!() };
        let (data, label) = (values(&net, "data"), values(&net, "label"));
        let edges = bright_edges(&data, width);
        for (i, (edge, pixel)) in label[3..7].iter().zip(edges).enumerate() {
            let want = pixel / [width, height][i % 2] as f64;
            assert!((f64::from(*edge) - want).abs() < 1e-6, "{label:?}, want {edges:?}");
        }
        // The image has 32 bright and 96 dark pixels. Outside the image, all values are 0.
        assert_eq!(data.iter().filter(|x| **x == -50.0).count(), 96);
        assert_eq!(data.iter().filter(|x| **x == 0.0).count(), height * width - 8 * 16);
        // The height and the width are the integer parts of 16 and 8 times the same ratio.
        assert_eq!(height / 2, width);
        ratios.push(height as f64 / 16.0);
    }
    let whole = ratios.iter().filter(|ratio| **ratio == 1.0).count();
    // Ratios below 17/16 also keep the size, so that the expected number is 204. The limits are
    // four standard deviations of 400 draws from this number.
    assert!((164..=244).contains(&whole), "{whole}");
    let mean = ratios.iter().filter(|ratio| **ratio > 1.0).sum::<f64>() / (400 - whole) as f64;
    // The mean of the ratios from 17/16 to 4 is 2.53, and truncation lowers it by 1/32. Four
    // standard errors are 4·0.85/√200 = 0.24.
    assert!((2.2..2.8).contains(&mean), "{mean}");
    assert!(ratios.iter().all(|ratio| *ratio < 4.0));
}

#[test]
fn all_random_changes_of_ssd_training_files_work_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    let color = |i: usize| [40 + i / 8 % 100, 60, 200][i % 3] as u8;
    let boxes: [Drawn; 2] = [(3, [2, 4, 20, 30], false), (7, [16, 1, 40, 20], false)];
    write(&path, &[annotated(40, (0..3 * 40 * 40).map(color).collect(), &boxes)]);
    let mut fields = "transform_param { mirror: true mean_value: [104, 117, 123]
        resize_param { prob: 1 resize_mode: WARP height: 30 width: 30
          interp_mode: [LINEAR, AREA, NEAREST, CUBIC, LANCZOS4] }
        emit_constraint { emit_type: CENTER }
        distort_param { brightness_prob: 0.5 brightness_delta: 32 contrast_prob: 0.5
          contrast_lower: 0.5 contrast_upper: 1.5 hue_prob: 0.5 hue_delta: 18 saturation_prob: 0.5
          saturation_lower: 0.5 saturation_upper: 1.5 random_order_prob: 0 }
        expand_param { prob: 0.5 max_expand_ratio: 4 } }
      annotated_data_param { batch_sampler { max_sample: 1 max_trials: 1 }"
        .to_owned();
    for overlap in ["min_jaccard_overlap: 0.1", "min_jaccard_overlap: 0.7"] {
        fields += &format!(
            " batch_sampler {{ max_sample: 1 max_trials: 50 sampler {{ min_scale: 0.3 max_scale: 1 \
             min_aspect_ratio: 0.5 max_aspect_ratio: 2 }} sample_constraint {{ {overlap} }} }}"
        );
    }
    fields += " }";
    let batches = || {
        let mut net = net(&path, 8, &fields).unwrap();
        let batch = |_| {
            net.forward().unwrap();
            assert_eq!(net.blob("data").unwrap().shape().to_vec(), [8, 3, 30, 30]);
            (values(&net, "data"), values(&net, "label"))
        };
        (0..6).map(batch).collect::<Vec<_>>()
    };
    let first = batches();
    let mut edges = std::collections::BTreeSet::new();
    for (data, label) in &first {
        for (i, x) in data.iter().enumerate() {
            let mean = [104.0, 117.0, 123.0][i / 900 % 3];
            assert!((0.0..=255.0).contains(&(x + mean)), "{x}");
        }
        for row in label.chunks(8) {
            assert!(row[1] == 3.0 || row[1] == 7.0);
            assert!(0.0 <= row[3] && row[3] < row[5] && row[5] <= 1.0, "{row:?}");
            assert!(0.0 <= row[4] && row[4] < row[6] && row[6] <= 1.0, "{row:?}");
            edges.insert(row[3].to_bits());
        }
    }
    assert!(edges.len() > 20, "{}", edges.len());
    // The results depend only on the seed.
    assert_eq!(batches(), first);
}

#[test]
fn resize_modes_move_the_boxes_with_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    write(&path, &[tall()]);
    let cases = [
        ("WARP height: 32 width: 32", [32, 32]),
        // To cover 20 rows and 24 columns, the image of 16 rows and 8 columns is enlarged to 48
        // rows and 24 columns.
        ("FIT_SMALL_SIZE height: 20 width: 24", [48, 24]),
        ("FIT_SMALL_SIZE height: 64 width: 24", [64, 32]),
        // The image occupies the middle 16 of the 48 columns.
        ("FIT_LARGE_SIZE_AND_PAD height: 32 width: 48", [32, 48]),
        ("FIT_LARGE_SIZE_AND_PAD height: 64 width: 16", [64, 16]),
        ("FIT_LARGE_SIZE_AND_PAD height: 32 width: 48 pad_mode: REPEAT_NEAREST", [32, 48]),
    ];
    for (fields, [height, width]) in cases {
        let fields = format!(
            "transform_param {{ resize_param {{ interp_mode: NEAREST resize_mode: {fields} }} }}"
        );
        let mut net = net(&path, 1, &fields).unwrap();
        net.forward().unwrap();
        assert_eq!(net.blob("data").unwrap().shape().to_vec(), [1, 1, height, width], "{fields}");
        let edges = bright_edges(&values(&net, "data"), width);
        for (i, (edge, pixel)) in values(&net, "label")[3..7].iter().zip(edges).enumerate() {
            let want = pixel / [width, height][i % 2] as f64;
            assert!((f64::from(*edge) - want).abs() < 1e-6, "{fields}: {edge}, want {want}");
        }
    }
    // The edges are in units of 10 columns and 20 rows of the resized image, which has 24 columns
    // and 48 rows.
    let fields = "transform_param { resize_param { resize_mode: FIT_SMALL_SIZE height: 20 width: 24 \
                  height_scale: 20 width_scale: 10 } }";
    let mut net = net(&path, 1, fields).unwrap();
    net.forward().unwrap();
    assert_eq!(values(&net, "label")[3..7], [0.6, 0.6, 1.8, 1.8]);
}

#[test]
fn boxes_remain_in_a_crop_only_under_the_emit_constraint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    // Box `i` has the label `i + 1`.
    let edges = [[0, 0, 64, 64], [20, 0, 44, 64], [0, 24, 30, 40], [60, 60, 64, 64]];
    let boxes: Vec<Drawn> =
        edges.iter().enumerate().map(|(i, edges)| (i as i32 + 1, *edges, false)).collect();
    write(&path, &[annotated(64, vec![0; 64 * 64], &boxes)]);
    // The phase TEST crops the center: columns and rows 16 to 48.
    let labels = |constraint: &str| {
        let fields = format!("phase: TEST transform_param {{ crop_size: 32 {constraint} }}");
        let text = format!(
            "layer {{ type: 'AnnotatedData' top: 'data' top: 'label' data_param {{ \
             source: '{}' batch_size: 1 }} {fields} }}",
            path.display()
        );
        let builder = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Test);
        let mut net = builder.build(&proto::parse_text(text, "net").unwrap()).unwrap();
        net.forward().unwrap();
        let rows = values(&net, "label");
        let clipped = |row: &[f32]| {
            let edges = edges[row[1] as usize - 1];
            let want = edges.map(|edge| (edge.clamp(16, 48) - 16) as f32 / 32.0);
            assert_eq!(row[3..7], want);
        };
        rows.chunks(8).for_each(clipped);
        rows.chunks(8).map(|row| row[1]).collect::<Vec<_>>()
    };
    assert_eq!(labels(""), [1.0, 2.0, 3.0]);
    // The center of box 3 is at column 15.
    assert_eq!(labels("emit_constraint { emit_type: CENTER }"), [1.0, 2.0]);
    // The crop covers 1/4, 1/2 and 14/30 of the boxes.
    let covered = "emit_constraint { emit_type: MIN_OVERLAP emit_overlap:";
    assert_eq!(labels(&format!("{covered} 0.3 }}")), [2.0, 3.0]);
    assert_eq!(labels(&format!("{covered} 0.48 }}")), [2.0]);
}

#[test]
fn invalid_fields_and_records_of_annotated_data_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lmdb");
    write(&path, &[annotated(8, ramp(8), &[(3, [0, 2, 4, 8], false)])]);
    let transform = |fields: &str| format!("transform_param {{ {fields} }}");
    let resize = |fields: &str| transform(&format!("resize_param {{ {fields} }}"));
    let sampler = |fields: &str| {
        format!("annotated_data_param {{ batch_sampler {{}} batch_sampler {{ {fields} }} }}")
    };
    let cases = [
        (transform("distort_param { hue_prob: 1 hue_delta: -1 }"), "`hue_delta` must not be"),
        (
            transform("expand_param { max_expand_ratio: 0.5 }"),
            "`expand_param`: `max_expand_ratio` must be at least 1, found 0.5",
        ),
        (transform("expand_param { max_expand_ratio: 1e12 prob: 1 }"), "the size limit is"),
        (transform("expand_param { max_expand_ratio: 2 } mean_file: 'a'"), "use `mean_value`"),
        (transform("noise_param { jpeg: 9 }"), "`noise_param`: `jpeg` is not supported"),
        (resize("height: 3"), "`resize_param`: `height` and `width` must be positive"),
        (sampler("sampler { min_scale: 0 }"), "batch_sampler 1: expected 0 < min_scale"),
        (sampler("sampler { min_aspect_ratio: 2 }"), "batch_sampler 1: expected 0 < min_aspect"),
        (sampler("max_trials: 100000"), "max_trials of all samplers exceeds 100000"),
    ];
    for (fields, want) in cases {
        let error = net(&path, 1, &fields).err().unwrap_or_else(|| panic!("{fields}")).to_string();
        assert!(error.contains("layer `data`") && error.contains(want), "{error}");
    }
    let error = net(&path, 0, "").err().unwrap().to_string();
    assert!(error.contains("batch_size is required"), "{error}");
    let error = net(Path::new("digits:train"), 1, "").err().unwrap().to_string();
    assert!(error.contains("only databases can contain the AnnotatedDatum messages"), "{error}");

    let good = annotated(8, ramp(8), &[(3, [0, 2, 4, 8], false)]);
    let mut no_box = good.clone();
    no_box.annotation_group[0].annotation[0].bbox = None;
    let mut infinite = good.clone();
    let bbox = infinite.annotation_group[0].annotation[0].bbox.as_mut().unwrap();
    bbox.xmax = Some(f32::INFINITY);
    let no_datum = AnnotatedDatum { datum: None, ..good.clone() };
    let cases = [
        (no_box, "annotation_group 0, annotation 0: the field bbox is missing"),
        (infinite, "annotation_group 0, annotation 0: the edges must be finite"),
        (no_datum, "the field datum is missing"),
        (annotated(4, ramp(4), &[]), "expected an image of [1, 8, 8] as the first"),
    ];
    for (i, (record, want)) in cases.into_iter().enumerate() {
        let path = folder.path().join(format!("bad{i}"));
        write(&path, &[good.clone(), record]);
        let mut net = net(&path, 2, "").and_then(|mut net| net.forward().map(|_| net));
        let error = net.as_mut().err().unwrap().to_string();
        assert!(error.contains("00001") || error.contains("record 1"), "{error}");
        assert!(error.contains(want), "{error}");
    }
}

/// Draws a bright rectangle of class 1 or a dark rectangle of class 2 on a gray background.
fn drawing(random: &mut Random) -> AnnotatedDatum {
    const SIZE: usize = 32;
    let label = 1 + random.up_to(1);
    let [width, height] = [8 + random.up_to(6), 8 + random.up_to(6)];
    let (left, top) = (random.up_to(SIZE - width), random.up_to(SIZE - height));
    let mut pixels: Vec<u8> = (0..SIZE * SIZE).map(|_| 118 + random.up_to(20) as u8).collect();
    for y in top..top + height {
        let value = if label == 1 { 230 } else { 25 };
        pixels[y * SIZE + left..y * SIZE + left + width].fill(value);
    }
    let drawn = (label as i32, [left, top, left + width, top + height], false);
    annotated(SIZE, pixels, &[drawn])
}

/// The definition of a small SSD with one feature map of 8 × 8 positions and one prior box at each
/// position.
const SSD: &str = r#"
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {
      num_output: 8 kernel_size: 5 pad: 2 stride: 2 weight_filler { type: "msra" } } }
    layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
    layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2" convolution_param {
      num_output: 16 kernel_size: 5 pad: 2 stride: 2 weight_filler { type: "msra" } } }
    layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
    layer { name: "conv3" type: "Convolution" bottom: "conv2" top: "conv3" convolution_param {
      num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
    layer { name: "relu3" type: "ReLU" bottom: "conv3" top: "conv3" }
    layer { name: "loc" type: "Convolution" bottom: "conv3" top: "loc" convolution_param {
      num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "loc_perm" type: "Permute" bottom: "loc" top: "loc_perm"
      permute_param { order: [0, 2, 3, 1] } }
    layer { name: "loc_flat" type: "Flatten" bottom: "loc_perm" top: "loc_flat" }
    layer { name: "conf" type: "Convolution" bottom: "conv3" top: "conf" convolution_param {
      num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "conf_perm" type: "Permute" bottom: "conf" top: "conf_perm"
      permute_param { order: [0, 2, 3, 1] } }
    layer { name: "conf_flat" type: "Flatten" bottom: "conf_perm" top: "conf_flat" }
    layer { name: "priors" type: "PriorBox" bottom: "conv3" bottom: "data" top: "priors"
      prior_box_param { min_size: 11 variance: [0.1, 0.1, 0.2, 0.2] } }
    layer { name: "loss" type: "MultiBoxLoss" bottom: "loc_flat" bottom: "conf_flat"
      bottom: "priors" bottom: "label" top: "loss" include { phase: TRAIN }
      propagate_down: [true, true, false, false]
      multibox_loss_param { num_classes: 3 code_type: CENTER_SIZE neg_overlap: 0.5 } }
    layer { name: "softmax_shape" type: "Reshape" bottom: "conf_flat" top: "scores"
      include { phase: TEST } reshape_param { shape { dim: [0, -1, 3] } } }
    layer { name: "softmax" type: "Softmax" bottom: "scores" top: "probabilities"
      include { phase: TEST } softmax_param { axis: 2 } }
    layer { name: "probabilities_flat" type: "Flatten" bottom: "probabilities" top: "flat"
      include { phase: TEST } }
    layer { name: "detection" type: "DetectionOutput" bottom: "loc_flat" bottom: "flat"
      bottom: "priors" top: "detection" include { phase: TEST } detection_output_param {
        num_classes: 3 code_type: CENTER_SIZE confidence_threshold: 0.01 keep_top_k: 20
        nms_param { nms_threshold: 0.45 top_k: 100 } } }
    layer { name: "evaluation" type: "DetectionEvaluate" bottom: "detection" bottom: "label"
      top: "mean_average_precision" include { phase: TEST }
      detection_evaluate_param { num_classes: 3 } }
"#;

#[test]
fn a_small_ssd_learns_to_detect_rectangles() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    let data = ["train", "test"].map(|name| {
        let path = folder.path().join(name);
        let count = if name == "train" { 192 } else { 64 };
        write(&path, &(0..count).map(|_| drawing(&mut random)).collect::<Vec<_>>());
        format!(
            "layer {{ name: 'data' type: 'AnnotatedData' top: 'data' top: 'label' include {{ phase: \
             {} }} data_param {{ source: '{}' batch_size: 16 }} transform_param {{ mean_value: 128 \
             scale: 0.0078125 {} }} }}\n",
            name.to_uppercase(),
            path.display(),
            if name == "train" { "mirror: true" } else { "" },
        )
    });
    let text = format!(
        "base_lr: 0.006 lr_policy: 'fixed' type: 'Adam' momentum: 0.9 max_iter: 100 random_seed: 3
         test_iter: 4 test_interval: 1000 test_initialization: false snapshot_after_train: false
         eval_type: 'detection' ap_version: '11point' net_param {{ {} {} {SSD} }}",
        data[0], data[1]
    );
    let definition = proto::parse_text(text, "solver").unwrap();
    let mut solver = Solver::<f32>::new(definition, &CpuDevice::new()).unwrap();
    let precision = |solver: &mut Solver<f32>| {
        let scores = solver.test(0).unwrap().unwrap();
        assert_eq!(scores.len(), 1);
        assert_eq!(scores[0].name, "mean_average_precision");
        scores[0].value
    };
    let untrained = precision(&mut solver);
    let first_loss = solver.net_mut().forward().unwrap();
    solver.step(100).unwrap();
    let last_loss = solver.net_mut().forward().unwrap();
    let trained = precision(&mut solver);
    assert!(last_loss < 0.3 * first_loss, "{first_loss} to {last_loss}");
    assert!(untrained < 0.3 && trained > 0.9, "{untrained} to {trained}");
}
