//! Scale of an axis: linear or logarithmic, with round tick marks.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Scale of an axis, which maps values to fractions of the axis's length.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// Returns a scale from the smallest to the largest of the finite `values`. A logarithmic scale
    /// ignores values that are not positive.
    pub(super) fn of(values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        let values = values.filter(|v| v.is_finite() && (!logarithmic || *v > 0.0));
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(bounds, |(low, high), v| (low.min(v), high.max(v)));
        match low < high {
            true => Self { low, high, logarithmic },
            // If all values are equal, a linear axis covers one unit, and a logarithmic axis about
            // one decade around the value.
            false if low.is_finite() && logarithmic => {
                Self { low: low / 3.0, high: low * 3.0, logarithmic }
            }
            false if low.is_finite() => Self { low, high: low + 1.0, logarithmic },
            false => Self { low: 0.1, high: 1.0, logarithmic },
        }
    }

    /// Returns whether `values` need a logarithmic scale: all of them are positive, and they span
    /// more than a factor of 50.
    pub(super) fn needs_logarithm(values: impl Iterator<Item = f64>) -> bool {
        let scale = Self::of(values, false);
        scale.low > 0.0 && scale.high > 50.0 * scale.low
    }

    fn position(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }

    /// Returns the values of the tick marks, which are round numbers within the axis's range.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let mantissas: &[f64] =
                if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let tick =
                |power: i32| mantissas.iter().map(move |mantissa| mantissa * 10f64.powi(power));
            let is_in_range = |tick: &f64| (self.low..=self.high).contains(tick);
            return decades.flat_map(tick).filter(is_in_range).collect();
        }
        let min_step = (self.high - self.low) / 6.0;
        if min_step == 0.0 {
            return vec![self.low]; // the axis is too short for several ticks
        }
        let power = 10f64.powi(min_step.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|mantissa| mantissa * power);
        let step = step.into_iter().find(|step| *step >= min_step).unwrap_or(min_step);
        let multiples = (self.low / step).ceil() as i64..=(self.high / step).floor() as i64;
        multiples.map(|multiple| multiple as f64 * step).collect()
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1) - f64::from(limit.0);
        limit.0.saturating_add((length * self.position(*value)).round() as i32)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        format_number(*value)
    }
}

/// Formats a number for a tick mark with at most three significant digits, and with the suffix `k`,
/// `M` or `G` from 10,000.
///
/// ```
/// use cortado::drawing::format_number;
///
/// let texts = [0.0, 0.05, 12.0, 1000.0, 65_536.0, 4e6].map(format_number);
/// assert_eq!(texts, ["0", "0.05", "12", "1000", "65.5k", "4M"]);
/// ```
pub fn format_number(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    if scaled == 0.0 {
        return "0".into();
    }
    let magnitude = scaled.abs().log10().floor();
    if magnitude < -4.0 {
        return format!("{scaled:.0e}");
    }
    let decimals = (2.0 - magnitude).max(0.0) as usize;
    let text = format!("{scaled:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_ticks_are_round_and_within_the_range_of_the_axis() {
        let axis = |low: f64, high: f64| Scale::of([low, high].into_iter(), false);
        assert_eq!(axis(0.0, 10_000.0).ticks(), [0.0, 2e3, 4e3, 6e3, 8e3, 1e4]);
        assert_eq!(axis(-1.0, 1.0).ticks(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(axis(7.0, 7.0).ticks().len(), 6);
        assert!(!Scale::of(std::iter::empty(), true).ticks().is_empty());
        assert_eq!(axis(0.0, 5e-324).ticks(), [0.0]);
        let decades = Scale { low: 0.004, high: 3.0, logarithmic: true };
        assert_eq!(decades.ticks().len(), 3); // ticks at 0.01, 0.1 and 1
        assert_eq!((decades.position(0.004), decades.position(3.0)), (0.0, 1.0));
    }
}
