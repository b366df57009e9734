//! Groups the outputs of a net.

use cortado::solver::Score;

/// Groups scores by output: its name, all its elements, and its loss weight.
pub(super) fn by_name(scores: &[Score]) -> Vec<(&str, Vec<f64>, f32)> {
    let mut outputs: Vec<(&str, Vec<f64>, f32)> = Vec::new();
    for Score { name, value, loss_weight } in scores {
        match outputs.last_mut() {
            Some((last, values, _)) if last == name => values.push(*value),
            _ => outputs.push((name, vec![*value], *loss_weight)),
        }
    }
    outputs
}
