//! Curves of losses and scores over the iterations of a training run.

use serde_json::{Value, json};

/// Curves of one panel of the plot, in the order in which their first points were added.
#[derive(Default)]
pub(super) struct Curves(pub(super) Vec<Curve>);

/// Curve of a value over iterations, whose points are pairs of iteration and value.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// Largest number of points per curve. More points would not be visible, because a panel is only
/// 680 pixels wide.
const MAX_POINTS: usize = 2048;

impl Curves {
    /// Adds a point to the curve `name`. Ignores a value that is not finite.
    pub(super) fn add(&mut self, name: &str, iteration: usize, value: f64) {
        if !value.is_finite() {
            return;
        }
        let position = self.0.iter().position(|curve| curve.name == name);
        let index = position.unwrap_or(self.0.len());
        if position.is_none() {
            self.0.push(Curve { name: name.to_owned(), points: Vec::new() });
        }
        let points = &mut self.0[index].points;
        points.push([iteration as f64, value]);
        if points.len() > MAX_POINTS {
            *points = downsample(points);
        }
    }

    /// Removes all points of all curves at `iteration` or later.
    pub(super) fn truncate(&mut self, iteration: usize) {
        for curve in &mut self.0 {
            curve.points.retain(|point| point[0] < iteration as f64);
        }
        self.0.retain(|curve| !curve.points.is_empty());
    }

    pub(super) fn to_json(&self) -> Value {
        let curve = |Curve { name, points }: &Curve| json!({ "name": name, "points": points });
        self.0.iter().map(curve).collect()
    }

    pub(super) fn from_json(curves: &Value) -> Option<Self> {
        let curve = |curve: &Value| {
            let points = curve["points"].as_array()?.iter();
            let point = |point: &Value| Some([point[0].as_f64()?, point[1].as_f64()?]);
            let points = points.map(point).collect::<Option<_>>()?;
            Some(Curve { name: curve["name"].as_str()?.to_owned(), points })
        };
        Some(Self(curves.as_array()?.iter().map(curve).collect::<Option<_>>()?))
    }
}

/// Downsamples a curve: replaces the points in each of `MAX_POINTS / 2` equal ranges of iterations
/// by their mean.
fn downsample(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let [low, high] = [points.first(), points.last()].map(|end| end.map_or(0.0, |point| point[0]));
    let range =
        |point: &[f64; 2]| ((point[0] - low) / (high - low) * (MAX_POINTS / 2 - 1) as f64) as usize;
    points.chunk_by(|a, b| range(a) == range(b)).map(mean).collect()
}

fn mean(points: &[[f64; 2]]) -> [f64; 2] {
    let count = points.len() as f64;
    [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_are_downsampled_evenly() {
        let mut curves = Curves::default();
        (0..100_000).for_each(|i| curves.add("line", i, 3.0 * i as f64));
        curves.add("line", 100_000, f64::NAN);
        let [curve] = &curves.0[..] else { panic!("{}", curves.to_json()) };
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&curve.points.len()));
        assert!(curve.points.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        assert!(curve.points.iter().all(|[x, y]| (3.0 * x - y).abs() < 1e-6));
        curves.truncate(50_000);
        let last = curves.0[0].points.last().unwrap()[0];
        assert!((49_000.0..50_000.0).contains(&last), "{last}");
        let read = Curves::from_json(&curves.to_json()).unwrap();
        assert_eq!(read.0[0].points, curves.0[0].points);
        assert!(Curves::from_json(&json!([{ "name": "line" }])).is_none());
    }
}
