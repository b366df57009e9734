//! What a solver tells, as log lines in the words of Caffe's, which its log parsers read.

use super::number::g;
use crate::solver::{Event, Score, Traced};
use log::{error, info};

/// Writes events to the log.
pub(super) struct Lines;

impl Lines {
    pub(super) fn show(&mut self, event: &Event<'_>) {
        match *event {
            Event::Started { net, policy, .. } => {
                info!("Solving {net}");
                info!("Learning Rate Policy: {policy}");
            }
            Event::Displayed {
                iteration,
                loss,
                rate,
                outputs,
                passed,
                seconds,
                waited,
                display,
            } => {
                let speed = passed as f64 / seconds.max(f64::MIN_POSITIVE);
                info!(
                    "Iteration {iteration} ({} iter/s, {}s/{display} iters), loss = {}",
                    g(speed),
                    g(seconds),
                    g(loss)
                );
                for (index, output) in outputs.iter().enumerate() {
                    info!("    Train net output #{index}: {}", score(output));
                }
                if let Some(waited) = waited {
                    let share = 100.0 * waited / seconds.max(f64::MIN_POSITIVE);
                    info!("    Waited for data: {waited:.3}s, {share:.1}% of the time");
                }
                info!("Iteration {iteration}, lr = {}", g(rate));
            }
            Event::Traced { layer, what, name, mean } => {
                let (pass, what, of) = match what {
                    Traced::Top => ("Forward", "top", "data"),
                    Traced::Param => ("Forward", "param", "data"),
                    Traced::BottomDiff => ("Backward", "bottom", "diff"),
                    Traced::ParamDiff => ("Backward", "param", "diff"),
                };
                info!("    [{pass}] Layer {layer}, {what} blob {name} {of}: {}", g(mean));
            }
            Event::Norms { l1, l2 } => {
                let ([data, diff], [l2_data, l2_diff]) = (l1.map(g), l2.map(g));
                error!(
                    "    [Backward] All net params (data, diff): L1 norm = ({data}, {diff}); \
                     L2 norm = ({l2_data}, {l2_diff})"
                );
            }
            Event::Clipped { norm, limit, scale, .. } => {
                info!(
                    "Gradient clipping: scaling down gradients (L2 norm {} > {}) by scale factor {}",
                    g(norm),
                    g(limit),
                    g(scale)
                );
            }
            Event::Testing { iteration, net } => {
                info!("Iteration {iteration}, Testing net (#{net})");
            }
            Event::Tested { outputs, loss, .. } => {
                if let Some(loss) = loss {
                    info!("Test loss: {}", g(loss));
                }
                for (index, output) in outputs.iter().enumerate() {
                    info!("    Test net output #{index}: {}", score(output));
                }
            }
            Event::Interrupted { .. } => info!("Test interrupted."),
            Event::Snapshot { model, state, .. } => {
                info!("Snapshotting to binary proto file {}", model.display());
                info!("Snapshotting solver state to binary proto file {}", state.display());
            }
            Event::Finished { iteration, loss, early } => {
                if let Some(loss) = loss {
                    info!("Iteration {iteration}, loss = {}", g(loss));
                }
                info!("Optimization {}.", if early { "stopped early" } else { "Done" });
            }
            Event::Iterated { .. } => {}
        }
    }
}

/// `loss = 0.25 (* 1 = 0.25 loss)`
pub(super) fn score(score: &Score) -> String {
    let Score { name, value, loss_weight } = score;
    let weight = f64::from(*loss_weight);
    match weight {
        0.0 => format!("{name} = {}", g(*value)),
        _ => format!("{name} = {} (* {} = {} loss)", g(*value), g(weight), g(weight * value)),
    }
}
