//! Grouping of the scores in a solver event by net output.

use cortado::solver::Score;

/// Returns the name, the values of all elements, and the loss weight of each net output.
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
