//! Log lines of solver events, in the wording that parsers of Caffe's logs expect.

use super::format_g::format_g;
use cortado::solver::{Event, Score, TracedBlob};
use log::{error, info};

/// Target of the log lines of a solver's events.
pub(super) const TARGET: &str = "solver";

/// Logger that writes the events of a solver in Caffe's wording.
pub(super) struct CaffeLog;

impl CaffeLog {
    pub(super) fn show(&mut self, event: &Event<'_>) {
        match *event {
            Event::Started { net, policy, .. } => {
                info!(target: TARGET, "Solving {net}");
                info!(target: TARGET, "Learning Rate Policy: {policy}");
            }
            Event::Displayed {
                iteration,
                loss,
                rate,
                outputs,
                passed,
                seconds,
                waited,
                waited_for_processes,
                exchanged,
                display,
            } => {
                let speed = passed as f64 / seconds.max(f64::MIN_POSITIVE);
                info!(target: TARGET, "Iteration {iteration} ({} iter/s, {}s/{display} iters), loss = {}",
                    format_g(speed),
                    format_g(seconds),
                    format_g(loss)
                );
                for (index, output) in outputs.iter().enumerate() {
                    info!(target: TARGET, "    Train net output #{index}: {}", score(output));
                }
                let waits = [("data", waited), ("other processes", waited_for_processes)];
                for (awaited, wait) in waits {
                    let Some(wait) = wait else { continue };
                    let share = 100.0 * wait / seconds.max(f64::MIN_POSITIVE);
                    info!(target: TARGET, "    Waited for {awaited}: {wait:.3}s, {share:.1}% of the time");
                }
                if let (Some(exchanged), Some(wait)) = (exchanged, waited_for_processes) {
                    let hidden = 100.0 * (1.0 - wait / exchanged.max(f64::MIN_POSITIVE)).max(0.0);
                    info!(target: TARGET, "    Exchanged with other processes: {exchanged:.3}s, {hidden:.1}% of it hidden by computation");
                }
                info!(target: TARGET, "Iteration {iteration}, lr = {}", format_g(rate));
            }
            Event::Traced { layer, what, name, mean } => {
                let (pass, kind, part) = match what {
                    TracedBlob::Top => ("Forward", "top", "data"),
                    TracedBlob::Param => ("Forward", "param", "data"),
                    TracedBlob::BottomDiff => ("Backward", "bottom", "diff"),
                    TracedBlob::ParamDiff => ("Backward", "param", "diff"),
                };
                info!(target: TARGET, "    [{pass}] Layer {layer}, {kind} blob {name} {part}: {}", format_g(mean));
            }
            Event::Norms { l1, l2 } => {
                let ([data, diff], [l2_data, l2_diff]) = (l1.map(format_g), l2.map(format_g));
                error!(target: TARGET, "    [Backward] All net params (data, diff): L1 norm = ({data}, {diff}); \
                     L2 norm = ({l2_data}, {l2_diff})"
                );
            }
            Event::Clipped { norm, limit, scale, .. } => {
                info!(target: TARGET, "Gradient clipping: scaling down gradients (L2 norm {} > {}) by scale factor {}",
                    format_g(norm),
                    format_g(limit),
                    format_g(scale)
                );
            }
            Event::Testing { iteration, net } => {
                info!(target: TARGET, "Iteration {iteration}, Testing net (#{net})");
            }
            Event::Tested { outputs, loss, .. } => {
                if let Some(loss) = loss {
                    info!(target: TARGET, "Test loss: {}", format_g(loss));
                }
                for (index, output) in outputs.iter().enumerate() {
                    info!(target: TARGET, "    Test net output #{index}: {}", score(output));
                }
            }
            Event::Interrupted { .. } => info!(target: TARGET, "Test interrupted."),
            Event::Snapshot { model, state, .. } => {
                info!(target: TARGET, "Snapshotting to binary proto file {}", model.display());
                info!(target: TARGET, "Snapshotting solver state to binary proto file {}", state.display());
            }
            Event::Finished { iteration, loss, early } => {
                if let Some(loss) = loss {
                    info!(target: TARGET, "Iteration {iteration}, loss = {}", format_g(loss));
                }
                info!(target: TARGET, "Optimization {}.", if early { "stopped early" } else { "Done" });
            }
            _ => {}
        }
    }
}

/// Formats a net output as in Caffe's log, such as `loss = 0.25 (* 1 = 0.25 loss)`.
pub(super) fn score(score: &Score) -> String {
    let Score { name, value, loss_weight } = score;
    let weight = f64::from(*loss_weight);
    match weight {
        0.0 => format!("{name} = {}", format_g(*value)),
        _ => format!(
            "{name} = {} (* {} = {} loss)",
            format_g(*value),
            format_g(weight),
            format_g(weight * value)
        ),
    }
}
