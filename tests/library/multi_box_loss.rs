//! Tests of the layer MultiBoxLoss against the definition of the SSD fork in `f64`.
//! `gradients.rs` checks the gradients.

use cortado::{CpuDevice, Net, Result, proto};

const IMAGES: usize = 3;
const PRIORS: usize = 30;

/// The parameters of a layer. The default values are those of the text format.
#[derive(Clone)]
struct Case {
    classes: usize,
    shares_location: bool,
    is_l2: bool,
    is_logistic: bool,
    is_bipartite: bool,
    overlap_threshold: f64,
    matches_priors: bool,
    uses_difficult: bool,
    mining: &'static str,
    ratio: f64,
    negative_overlap: f64,
    sample_size: usize,
    code: &'static str,
    has_scaled_offsets: bool,
    is_agnostic: bool,
    ignores_crossing: bool,
    is_inside: bool,
    /// The threshold of the suppression before the mining, and whether the suppression compares
    /// prior boxes.
    suppression: Option<(f64, bool)>,
    weight: f64,
    normalization: &'static str,
}

const CASE: Case = Case {
    classes: 4,
    shares_location: true,
    is_l2: false,
    is_logistic: false,
    is_bipartite: false,
    overlap_threshold: 0.5,
    matches_priors: true,
    uses_difficult: true,
    mining: "MAX_NEGATIVE",
    ratio: 3.0,
    negative_overlap: 0.5,
    sample_size: 64,
    code: "CORNER",
    has_scaled_offsets: false,
    is_agnostic: false,
    ignores_crossing: false,
    is_inside: false,
    suppression: None,
    weight: 1.0,
    normalization: "VALID",
};

impl Case {
    fn text(&self) -> String {
        let suppression = self.suppression.map_or(String::new(), |(threshold, compares_priors)| {
            format!(
                "nms_param {{ nms_threshold: {threshold} }} use_prior_for_nms: {compares_priors}"
            )
        });
        format!(
            "loss_param {{ normalization: {} }} multibox_loss_param {{ loc_loss_type: {} \
             conf_loss_type: {} loc_weight: {} num_classes: {} share_location: {} match_type: {} \
             overlap_threshold: {} use_prior_for_matching: {} use_difficult_gt: {} \
             neg_pos_ratio: {} neg_overlap: {} code_type: {} encode_variance_in_target: {} \
             map_object_to_agnostic: {} ignore_cross_boundary_bbox: {} bp_inside: {} \
             mining_type: {} sample_size: {} {suppression} }}",
            self.normalization,
            if self.is_l2 { "L2" } else { "SMOOTH_L1" },
            if self.is_logistic { "LOGISTIC" } else { "SOFTMAX" },
            self.weight,
            self.classes,
            self.shares_location,
            if self.is_bipartite { "BIPARTITE" } else { "PER_PREDICTION" },
            self.overlap_threshold,
            self.matches_priors,
            self.uses_difficult,
            self.ratio,
            self.negative_overlap,
            self.code,
            self.has_scaled_offsets,
            self.is_agnostic,
            self.ignores_crossing,
            self.is_inside,
            self.mining,
            self.sample_size,
        )
    }

    fn locations(&self) -> usize {
        if self.shares_location { 1 } else { self.classes }
    }
}

type Edges = [f64; 4];

struct Object {
    label: usize,
    edges: Edges,
}

fn area(edges: Edges) -> f64 {
    (edges[2] - edges[0]).max(0.0) * (edges[3] - edges[1]).max(0.0)
}

fn overlap(a: Edges, b: Edges) -> f64 {
    let common = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    if common > 0.0 { common / (area(a) + area(b) - common) } else { 0.0 }
}

/// The matching of the fork, which searches for the largest overlap again and again. Returns the
/// index of the matched object, −1 or −2, and the overlap of each box.
fn matches(case: &Case, boxes: &[Edges], objects: &[(usize, Edges)]) -> (Vec<i32>, Vec<f64>) {
    let (mut found, mut overlaps) = (vec![-1; boxes.len()], vec![0.0; boxes.len()]);
    if objects.is_empty() {
        return (found, overlaps);
    }
    for (i, edges) in boxes.iter().enumerate() {
        if case.ignores_crossing && edges.iter().any(|edge| *edge < 0.0 || *edge > 1.0) {
            found[i] = -2;
        } else {
            overlaps[i] = objects.iter().map(|(_, o)| overlap(*edges, *o)).fold(0.0, f64::max);
        }
    }
    let mut rest: Vec<(usize, Edges)> = objects.to_vec();
    while !rest.is_empty() {
        let (mut best, mut largest) = (None, 1e-6);
        for i in (0..boxes.len()).filter(|&i| found[i] == -1) {
            for (j, (_, edges)) in rest.iter().enumerate() {
                if overlap(boxes[i], *edges) > largest {
                    (best, largest) = (Some((i, j)), overlap(boxes[i], *edges));
                }
            }
        }
        let Some((i, j)) = best else { break };
        found[i] = rest.remove(j).0 as i32;
        overlaps[i] = largest;
    }
    if !case.is_bipartite {
        for i in (0..boxes.len()).filter(|&i| found[i] == -1).collect::<Vec<_>>() {
            let mut largest = 1e-6;
            for &(object, edges) in objects {
                let overlap = overlap(boxes[i], edges);
                if overlap >= case.overlap_threshold && overlap > largest {
                    (found[i], largest) = (object as i32, overlap);
                }
            }
        }
    }
    (found, overlaps)
}

fn center_and_size(edges: Edges) -> Edges {
    let [left, top, right, bottom] = edges;
    [(left + right) / 2.0, (top + bottom) / 2.0, right - left, bottom - top]
}

fn decode(case: &Case, prior: Edges, variance: Edges, offsets: Edges) -> Edges {
    let scaled: Edges = std::array::from_fn(|i| {
        if case.has_scaled_offsets { offsets[i] } else { offsets[i] * variance[i] }
    });
    let [x, y, width, height] = center_and_size(prior);
    match case.code {
        "CORNER" => std::array::from_fn(|i| prior[i] + scaled[i]),
        "CORNER_SIZE" => std::array::from_fn(|i| prior[i] + scaled[i] * [width, height][i % 2]),
        _ => {
            let (x, y) = (x + scaled[0] * width, y + scaled[1] * height);
            let (width, height) = (scaled[2].exp() * width, scaled[3].exp() * height);
            [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
        }
    }
}

/// Returns the offsets of `edges`, divided by the variances.
fn encode(case: &Case, prior: Edges, variance: Edges, edges: Edges) -> Edges {
    let [x, y, width, height] = center_and_size(prior);
    let offsets: Edges = match case.code {
        "CORNER" => std::array::from_fn(|i| edges[i] - prior[i]),
        "CORNER_SIZE" => std::array::from_fn(|i| (edges[i] - prior[i]) / [width, height][i % 2]),
        _ => {
            let [x2, y2, width2, height2] = center_and_size(edges);
            [(x2 - x) / width, (y2 - y) / height, (width2 / width).ln(), (height2 / height).ln()]
        }
    };
    std::array::from_fn(|i| offsets[i] / variance[i])
}

fn scores_loss(case: &Case, scores: &[f64], targets: &[usize]) -> f64 {
    if case.is_logistic {
        let loss = |(class, x): (usize, &f64)| {
            let p = 1.0 / (1.0 + (-x).exp());
            -(if targets.contains(&class) { p } else { 1.0 - p }).ln()
        };
        return scores.iter().enumerate().map(loss).sum();
    }
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    -(scores[*targets.last().unwrap()].exp() / sum).ln()
}

/// The values of the bottoms.
struct Values {
    offsets: Vec<f32>,
    scores: Vec<f32>,
    priors: Vec<f32>,
    labels: Vec<f32>,
}

fn quadruple(values: &[f32], i: usize) -> Edges {
    std::array::from_fn(|k| values[4 * i + k].into())
}

/// Returns the loss according to the definition.
fn reference(case: &Case, values: &Values) -> f64 {
    let prior = |i: usize| quadruple(&values.priors, i);
    let variance = |i: usize| quadruple(&values.priors, PRIORS + i);
    let (mut total, mut match_count) = (0.0, 0);
    for image in 0..IMAGES {
        let rows = values.labels.chunks(8).filter(|row| row[0] == image as f32);
        let rows = rows.filter(|row| case.uses_difficult || row[7] == 0.0);
        let object =
            |row: &[f32]| Object { label: row[1] as usize, edges: quadruple(&row[3..], 0) };
        let objects: Vec<Object> = rows.map(object).collect();
        let label = |object: i32| {
            if case.is_agnostic { 1 } else { objects[object as usize].label }
        };
        let offsets = |i: usize, location: usize| {
            let index = (image * PRIORS + i) * case.locations() + location;
            quadruple(&values.offsets, index)
        };
        let scores = |i: usize| -> Vec<f64> {
            let start = (image * PRIORS + i) * case.classes;
            values.scores[start..start + case.classes].iter().map(|&x| x.into()).collect()
        };
        let predicted = |location: usize| -> Vec<Edges> {
            (0..PRIORS).map(|i| decode(case, prior(i), variance(i), offsets(i, location))).collect()
        };
        let offset_loss = |i: usize, location: usize, object: i32| -> f64 {
            let target = encode(case, prior(i), variance(i), objects[object as usize].edges);
            let compared = if case.matches_priors { prior(i) } else { predicted(location)[i] };
            let term = |k: usize| {
                if case.is_inside && !(0.0..=1.0).contains(&compared[k]) {
                    return 0.0;
                }
                let scale = if case.has_scaled_offsets { variance(i)[k] } else { 1.0 };
                let d: f64 = offsets(i, location)[k] / scale - target[k];
                if case.is_l2 || d.abs() < 1.0 { d * d / 2.0 } else { d.abs() - 0.5 }
            };
            (0..4).map(term).sum()
        };
        let mut targets: Vec<Vec<usize>> = vec![Vec::new(); PRIORS];
        let mut negatives = Vec::new();
        for location in 0..case.locations() {
            if objects.is_empty() || (!case.shares_location && location == 0) {
                continue;
            }
            let is_candidate = |i: &usize| case.shares_location || objects[*i].label == location;
            let all: Vec<_> = objects.iter().map(|object| object.edges).enumerate().collect();
            let (mut found, overlaps) = if case.matches_priors {
                let boxes: Vec<Edges> = (0..PRIORS).map(prior).collect();
                matches(case, &boxes, &all)
            } else {
                let some: Vec<_> = all.iter().copied().filter(|(i, _)| is_candidate(i)).collect();
                matches(case, &predicted(location), &some)
            };
            if !case.shares_location {
                for found in &mut found {
                    if *found < 0 || !is_candidate(&(*found as usize)) {
                        *found = -1;
                    }
                }
            }
            if case.mining != "NONE" {
                let losses: Vec<f64> = (0..PRIORS)
                    .map(|i| {
                        let target = if found[i] >= 0 { label(found[i]) } else { 0 };
                        let mut loss = scores_loss(case, &scores(i), &[target]);
                        if case.mining == "HARD_EXAMPLE" && found[i] >= 0 {
                            loss += offset_loss(i, location, found[i]);
                        }
                        loss
                    })
                    .collect();
                let mut eligible: Vec<usize> = (0..PRIORS)
                    .filter(|&i| {
                        let is_negative = found[i] == -1 && overlaps[i] < case.negative_overlap;
                        case.mining == "HARD_EXAMPLE" || is_negative
                    })
                    .collect();
                let matched = found.iter().filter(|&&object| object >= 0).count();
                let count = match case.mining {
                    "HARD_EXAMPLE" => case.sample_size,
                    _ => (matched as f64 * case.ratio) as usize,
                };
                eligible.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]));
                if let Some((threshold, compares_priors)) = case.suppression {
                    let boxes: Vec<Edges> = match compares_priors {
                        true => (0..PRIORS).map(prior).collect(),
                        false => predicted(location),
                    };
                    let mut kept: Vec<usize> = Vec::new();
                    for i in eligible {
                        let is_apart = |&k: &usize| overlap(boxes[i], boxes[k]) <= threshold;
                        if area(boxes[i]) >= 1e-5 && kept.iter().all(is_apart) {
                            kept.push(i);
                        }
                    }
                    eligible = kept;
                }
                eligible.truncate(count);
                for (i, found) in found.iter_mut().enumerate() {
                    if eligible.contains(&i) && *found == -1 {
                        negatives.push(i);
                    } else if case.mining == "HARD_EXAMPLE" && !eligible.contains(&i) {
                        *found = -1;
                    }
                }
            }
            for (i, &object) in found.iter().enumerate().filter(|(_, object)| **object >= 0) {
                targets[i].push(label(object));
                total += case.weight * offset_loss(i, location, object);
                match_count += 1;
            }
        }
        for (i, targets) in targets.iter().enumerate() {
            let is_matched = !targets.is_empty();
            let background: &[usize] =
                if case.mining == "NONE" && case.is_logistic { &[] } else { &[0] };
            if is_matched || case.mining == "NONE" || negatives.contains(&i) {
                let targets = if is_matched { targets } else { background };
                total += scores_loss(case, &scores(i), targets);
            }
        }
    }
    let divisor = match case.normalization {
        "VALID" => match_count,
        "FULL" => IMAGES * PRIORS,
        "BATCH_SIZE" => IMAGES,
        _ => 1,
    };
    total / divisor.max(1) as f64
}

/// A linear congruential generator of numbers in [0, 1), with the multiplier of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn edges(&mut self, size: f32) -> [f32; 4] {
        let [x, y] = [self.next(), self.next()];
        let [width, height] = [size + 0.4 * self.next(), size + 0.4 * self.next()];
        [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
    }
}

fn values(case: &Case, seed: u64) -> Values {
    let mut random = Random(seed);
    let mut labels = Vec::new();
    // Image 1 has no objects.
    for (image, count) in [(0, 3), (2, 4)] {
        for object in 0..count {
            let most = if case.is_agnostic { 7 } else { case.classes - 1 };
            let label = 1.0 + (random.next() * most as f32).floor();
            labels.extend([image as f32, label, object as f32]);
            labels.extend(random.edges(0.2));
            labels.push(if object == 1 { 1.0 } else { 0.0 });
        }
    }
    labels.extend([-1.0; 8]);
    let mut priors: Vec<f32> = (0..PRIORS).flat_map(|_| random.edges(0.1)).collect();
    priors.extend((0..PRIORS).flat_map(|_| [0.1, 0.15, 0.2, 0.25]));
    let mut list = |count: usize, scale: f32| -> Vec<f32> {
        (0..count).map(|_| scale * (random.next() - 0.5)).collect()
    };
    let scale = if case.has_scaled_offsets { 0.3 } else { 3.0 };
    Values {
        offsets: list(IMAGES * PRIORS * case.locations() * 4, scale),
        scores: list(IMAGES * PRIORS * case.classes, 6.0),
        priors,
        labels,
    }
}

fn net(case: &Case, layer: &str, rows: usize) -> Result<Net<f32>> {
    let mut text = String::new();
    for (name, shape) in [
        ("loc", vec![IMAGES, PRIORS * case.locations() * 4]),
        ("conf", vec![IMAGES, PRIORS * case.classes]),
        ("priors", vec![1, 2, PRIORS * 4]),
        ("label", vec![1, 1, rows, 8]),
    ] {
        text += &format!(
            "layer {{ name: '{name}' type: 'Input' top: '{name}' \
             input_param {{ shape {{ dim: {shape:?} }} }} }}\n"
        );
    }
    text += &format!(
        "layer {{ name: 'loss' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'priors' \
         bottom: 'label' top: 'loss' {layer} }}"
    );
    Net::builder(&CpuDevice::new()).build(&proto::parse_text(text, "net")?)
}

fn loss(case: &Case, values: &Values, more: &str) -> Result<f64> {
    let mut net = net(case, &format!("{} {more}", case.text()), values.labels.len() / 8)?;
    for (name, values) in [
        ("loc", &values.offsets),
        ("conf", &values.scores),
        ("priors", &values.priors),
        ("label", &values.labels),
    ] {
        net.blob(name).unwrap().copy_from_slice(values)?;
    }
    net.forward()
}

#[test]
fn losses_of_all_parameters_are_those_of_the_definition() {
    let per_class = Case { shares_location: false, mining: "NONE", ..CASE };
    let hard = Case { mining: "HARD_EXAMPLE", sample_size: 9, ..CASE };
    let cases = [
        CASE,
        Case { code: "CENTER_SIZE", ..CASE },
        Case { code: "CORNER_SIZE", is_l2: true, ..CASE },
        Case { code: "CENTER_SIZE", has_scaled_offsets: true, ..CASE },
        Case { has_scaled_offsets: true, normalization: "FULL", ..CASE },
        Case { is_logistic: true, weight: 0.75, ..CASE },
        Case { is_bipartite: true, normalization: "BATCH_SIZE", ..CASE },
        Case { overlap_threshold: 0.3, negative_overlap: 0.2, ..CASE },
        Case { matches_priors: false, code: "CENTER_SIZE", overlap_threshold: 0.3, ..CASE },
        Case { uses_difficult: false, normalization: "NONE", ..CASE },
        Case { ratio: 0.7, ..CASE },
        Case { classes: 2, is_agnostic: true, ..CASE },
        Case { ignores_crossing: true, overlap_threshold: 0.2, ..CASE },
        Case { is_inside: true, is_bipartite: true, ..CASE },
        Case { is_inside: true, matches_priors: false, code: "CENTER_SIZE", ..CASE },
        Case { suppression: Some((0.2, true)), ..CASE },
        Case { suppression: Some((0.2, false)), ratio: 9.0, ..CASE },
        Case { mining: "NONE", ..CASE },
        Case { mining: "NONE", is_logistic: true, ignores_crossing: true, ..CASE },
        hard.clone(),
        Case { is_l2: true, sample_size: 3, is_logistic: true, ..hard.clone() },
        Case { suppression: Some((0.15, false)), code: "CENTER_SIZE", ..hard.clone() },
        Case { ignores_crossing: true, ..hard },
        per_class.clone(),
        Case { is_logistic: true, code: "CENTER_SIZE", ..per_class.clone() },
        Case { matches_priors: false, overlap_threshold: 0.2, ..per_class.clone() },
        Case { matches_priors: false, is_logistic: true, overlap_threshold: 0.2, ..per_class },
    ];
    let mut losses = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        for seed in 0..4 {
            let values = values(case, 1 + 5 * i as u64 + seed);
            let (found, want) = (loss(case, &values, "").unwrap(), reference(case, &values));
            // The layer computes overlaps and targets in `f32`, and the net returns an `f32`.
            let error = (found - want).abs() / want.abs();
            assert!(error < 1e-5, "case {i}, seed {seed}: {found}, expected {want}");
            losses.push(want);
        }
    }
    assert!(losses.iter().all(|loss| *loss > 0.1), "{losses:?}");
}

#[test]
fn a_loss_without_propagate_down_is_not_counted() {
    let values = values(&CASE, 3);
    let both = loss(&CASE, &values, "").unwrap();
    let parts = ["true", "false"].map(|offsets| {
        let scores = if offsets == "true" { "false" } else { "true" };
        let more = format!("propagate_down: [{offsets}, {scores}, false, false]");
        loss(&CASE, &values, &more).unwrap()
    });
    assert!(parts.iter().all(|part| *part > 0.1 && *part < both), "{parts:?} of {both}");
    assert!((parts[0] + parts[1] - both).abs() < 1e-5 * both, "{parts:?} of {both}");
}

#[test]
fn batches_without_objects_have_no_loss_of_mined_scores() {
    let mut values = values(&CASE, 3);
    values.labels = vec![-1.0; 8];
    assert_eq!(loss(&CASE, &values, "").unwrap(), 0.0);
    let all = Case { mining: "NONE", ..CASE };
    let want = reference(&all, &values);
    assert!((loss(&all, &values, "").unwrap() - want).abs() < 1e-5 * want && want > 100.0);
}

#[test]
fn invalid_parameters_and_labels_of_multi_box_loss_are_refused() {
    let cases = [
        ("", "num_classes is required"),
        ("num_classes: 4 background_label_id: 4", "background_label_id must be less than"),
        ("num_classes: 4 overlap_threshold: nan", "overlap_threshold must be 0 or more, found NaN"),
        ("num_classes: 4 neg_pos_ratio: -1", "neg_pos_ratio must be 0 or more, found -1"),
        ("num_classes: 4 loc_weight: inf", "loc_weight must be 0 or more, found inf"),
        ("num_classes: 4 do_neg_mining: false", "do_neg_mining: false contradicts mining_type"),
        ("num_classes: 4 share_location: false", "share_location: false needs mining_type: NONE"),
        ("num_classes: 4 map_object_to_agnostic: true", "needs num_classes: 2"),
        ("num_classes: 4 mining_type: HARD_EXAMPLE sample_size: 0", "sample_size must be positive"),
        ("num_classes: 4 nms_param { eta: 2 }", "eta must be in (0, 1], found 2"),
        ("num_classes: 5", "bottom 1 (scores): expected 3 × 30·5 values"),
    ];
    for (param, want) in cases {
        let error = net(&CASE, &format!("multibox_loss_param {{ {param} }}"), 1).err();
        let error = error.unwrap_or_else(|| panic!("{param}")).to_string();
        assert!(error.contains("layer `loss`") && error.contains(want), "{error}");
    }
    let center = Case { code: "CENTER_SIZE", ..CASE };
    let cases = [
        (
            [0.5, 1.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0],
            "row 0 of the labelled boxes: the image must be",
        ),
        ([f32::NAN, 1.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0], "a whole number, found NaN"),
        ([3.0, 1.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0], "in image 3, but the batch has only 3 images"),
        ([0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0], "the label 0 is that of the background"),
        ([0.0, 4.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0], "the label 4 is too large"),
        ([0.0, -1.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.0], "the label must be a whole number, found -1"),
    ];
    for (row, want) in cases {
        let values = Values { labels: row.to_vec(), ..values(&center, 1) };
        let error = loss(&center, &values, "").unwrap_err().to_string();
        assert!(error.contains("layer `loss`") && error.contains(want), "{error}");
    }
    // The variances and the size of a prior box must be positive.
    let decoded = Case { matches_priors: false, ..center.clone() };
    let mut no_variance = values(&center, 1);
    no_variance.labels = [&[0.0, 1.0, 0.0][..], &no_variance.priors[..4], &[0.0]].concat();
    no_variance.priors[4 * PRIORS] = 0.0;
    let mut no_width = values(&center, 1);
    no_width.priors[2] = no_width.priors[0];
    for (case, values, want) in [
        (&center, no_variance, "a variance must be positive, found 0"),
        (&decoded, no_width, "its width or height is not positive"),
    ] {
        let error = loss(case, &values, "").unwrap_err().to_string();
        assert!(error.contains("image 0: prior box 0") && error.contains(want), "{error}");
    }
}
