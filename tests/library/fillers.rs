//! Compares fillers with Caffe's fillers, and checks that filled values do not depend on the number
//! of threads.

use crate::support::{table, testdata};
use cortado::{
    Blob, CpuDevice, Device, Element, Filler, f16,
    op::RngKey,
    proto::{self, BlobProtoVector, FillerParameter},
};

fn fill<T: Element, D: Device>(
    device: &D,
    filler: &Filler,
    shape: &[usize],
    seed: u64,
) -> Result<Vec<T>, cortado::Error> {
    let blob = Blob::<T, D>::new(device, shape)?;
    filler.fill(&blob, RngKey::new(seed))?;
    Ok(blob.data()?.host()?.to_vec())
}

fn parse(text: &str) -> Result<Filler, cortado::Error> {
    let param: FillerParameter = proto::parse_text(text.replace('\'', "\""), "filler")?;
    Filler::from_proto(&param)
}

/// Statistics of the values that a filler generates: mean, standard deviation, minimum, maximum and
/// fraction of zeros.
struct Stats {
    mean: f64,
    std: f64,
    min: f64,
    max: f64,
    zeros: f64,
}

fn stats(values: &[f64]) -> Stats {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    Stats {
        mean,
        std: variance.sqrt(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        zeros: values.iter().filter(|value| **value == 0.0).count() as f64 / n,
    }
}

#[test]
fn fillers_have_the_statistics_of_caffes_fillers() {
    let Some(folder) = testdata("golden/fillers", "the comparison with Caffe's fillers") else {
        return;
    };
    let cpu = CpuDevice::with_threads(1).unwrap();
    let (mut exact, mut random, mut rejected) = (0, 0, 0);
    for row in table(&folder.join("fillers.tsv")) {
        let name = &row[0];
        let text = if row[1] == "-" { "" } else { &row[1] };
        let shape: Vec<usize> = match row[2].as_str() {
            "-" => Vec::new(),
            shape => shape.split(',').map(|extent| extent.parse().unwrap()).collect(),
        };
        let fill_with =
            |seed| parse(text).and_then(|filler| fill::<f32, _>(&cpu, &filler, &shape, seed));
        if row[3] == "refuse" {
            assert!(fill_with(1).is_err(), "{name}");
            rejected += 1;
            continue;
        }
        let first = fill_with(1).unwrap_or_else(|error| panic!("{name}: {error}"));
        if row[4] == "exact" {
            let path = folder.join("exact").join(format!("{name}.binaryproto"));
            let want: BlobProtoVector = proto::read_binary(path).unwrap();
            assert_eq!(first, want.blobs[0].data, "{name}");
            exact += 1;
            continue;
        }
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        let draws = number(5) as u64;
        let mut values: Vec<f64> = Vec::new();
        for seed in 0..draws.min(5_000 / first.len() as u64 + 1) {
            values.extend(fill_with(seed).unwrap().into_iter().map(f64::from));
        }
        let (actual, n) = (stats(&values), values.len() as f64);
        // The mean and the standard deviation may each differ from Caffe's by at most six standard
        // errors of the mean. For dense fillers, the standard error of the standard deviation is
        // smaller than that of the mean.
        let (mean, std) = (number(8), number(9));
        let error = 6.0 * std / n.sqrt();
        assert!((actual.mean - mean).abs() <= error, "{name}: mean {} {mean}", actual.mean);
        assert!((actual.std - std).abs() <= error, "{name}: std {} {std}", actual.std);
        let spread = number(7) - number(6);
        assert!(actual.min >= number(6) - 0.2 * spread, "{name}: minimum {}", actual.min);
        assert!(actual.max <= number(7) + 0.2 * spread, "{name}: maximum {}", actual.max);
        let zeros = number(11);
        let bound = 6.0 * (zeros * (1.0 - zeros) / n).sqrt() + 1e-4;
        assert!((actual.zeros - zeros).abs() <= bound, "{name}: zeros {} {zeros}", actual.zeros);
        random += 1;
    }
    assert!(
        exact >= 15 && random >= 60 && rejected >= 8,
        "compared {exact} exact, {random} random and {rejected} rejected fillers"
    );
}

#[test]
fn rows_of_the_positive_unitball_filler_sum_to_one() {
    let values =
        fill::<f64, _>(&CpuDevice::new(), &Filler::PositiveUnitball, &[5, 3, 7], 1).unwrap();
    for row in values.chunks(21) {
        assert!(row.iter().all(|value| (0.0..1.0).contains(value)));
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn filled_values_are_bit_identical_for_any_number_of_threads() {
    let filler = parse("type: 'gaussian' std: 0.1 sparse: 3").unwrap();
    let fill_on = |threads| {
        let cpu = CpuDevice::with_threads(threads).unwrap();
        fill::<f32, _>(&cpu, &filler, &[100, 1001], 9).unwrap()
    };
    let want = fill_on(1);
    assert!(want == fill_on(2) && want == fill_on(3));
    assert!(want != fill::<f32, _>(&CpuDevice::new(), &filler, &[100, 1001], 10).unwrap());
    let half_values = fill::<f16, _>(&CpuDevice::new(), &filler, &[100, 1001], 9).unwrap();
    let is_close = |(a, b): (&f32, &f16)| (f64::from(*a) - b.to_f64()).abs() <= 1e-3;
    assert!(want.iter().zip(&half_values).all(is_close));
}

#[test]
fn invalid_fillers_and_empty_blobs_are_rejected() {
    for (text, part) in [
        ("type: 'normal'", "`normal`"),
        ("type: 'gaussian' std: 0", "positive `std`"),
        ("type: 'gaussian' sparse: -2", "`sparse` -2"),
        ("type: 'uniform' min: 1 max: 0", "`min` ≤ `max`"),
        ("type: 'xavier' sparse: 1", "sparse"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.starts_with("filler: ") && message.contains(part), "{message}");
    }
    // The limits of a parsed filler also apply to a `Filler` that a program constructs.
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let gaussian = |mean, std| Filler::Gaussian { mean, std, sparse: None };
    let uniform = |min, max| Filler::Uniform { min, max };
    for (filler, part) in [
        (gaussian(0.0, 0.0), "positive `std`, not 0"),
        (gaussian(0.0, -1.0), "positive `std`, not -1"),
        (gaussian(0.0, nan), "positive `std`, not NaN"),
        (gaussian(0.0, infinite), "positive `std`, not inf"),
        (gaussian(nan, 1.0), "finite `mean`, not NaN"),
        (uniform(1.0, 0.0), "`min` ≤ `max`, not 1 and 0"),
        (uniform(nan, 0.0), "`min` ≤ `max`, not NaN and 0"),
        (uniform(-f64::MAX, f64::MAX), "finite `max` − `min`"),
    ] {
        let message = fill::<f32, _>(&CpuDevice::new(), &filler, &[2, 3], 1).unwrap_err();
        let message = message.to_string();
        assert!(message.starts_with("filler: ") && message.contains(part), "{message}");
    }
    assert_eq!(fill::<f32, _>(&CpuDevice::new(), &uniform(2.0, 2.0), &[2], 1).unwrap(), [2.0, 2.0]);
    let result = fill::<f32, _>(&CpuDevice::new(), &Filler::default(), &[0, 3], 1);
    assert!(result.unwrap_err().to_string().contains("no elements"));
}
