//! Progress line of a training run at a terminal.

use super::format_g::format_g;
use cortado::solver::{Event, Score};
use std::{
    io::Write,
    time::{Duration, Instant},
};

/// Terminal escape sequence that moves the cursor to the start of the line and clears the line.
pub(super) const CLEAR_LINE: &str = "\r\x1b[K";

/// Minimum time between two redraws of the progress line.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Width of the progress bar in characters.
const BAR_WIDTH: usize = 20;
/// Minimum share of the time spent waiting for data that the progress line shows.
const MIN_SHOWN_WAIT: f64 = 0.01;

/// Display of training progress, which redraws a progress line and prints a line for each test and
/// snapshot.
pub(super) struct Progress {
    max_iter: usize,
    /// Moving average of the iterations per second.
    speed: Option<f64>,
    /// Time, iteration number and total wait for data at the last redraw of the progress line.
    last_draw: Option<(Instant, usize, Duration)>,
}

impl Progress {
    pub(super) fn new(max_iter: i32) -> Self {
        Self { max_iter: usize::try_from(max_iter).unwrap_or(0), speed: None, last_draw: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match *event {
            Event::Started { net, .. } => print_line(&format!("training {net}")),
            Event::Iterated { iteration, smoothed, rate, waited, .. } => {
                self.draw(iteration, smoothed, rate, waited.unwrap_or_default());
            }
            Event::Tested { iteration, net, outputs, .. } => {
                let scores: Vec<_> = outputs.iter().map(format_score).collect();
                print_line(&format!(
                    "iteration {iteration}, test net #{net}: {}",
                    scores.join(", ")
                ));
                self.last_draw = None; // exclude the time of the test from the speed
            }
            Event::Snapshot { model, .. } => print_line(&format!("wrote {}", model.display())),
            Event::Finished { iteration, early, .. } => {
                let outcome = if early { "stopped" } else { "done" };
                print_line(&format!("{outcome} after {iteration} iterations"));
            }
            Event::Testing { iteration, net } => {
                redraw_line(&format!("iteration {iteration}, testing net #{net}"));
            }
            _ => {}
        }
    }

    fn draw(&mut self, iteration: usize, loss: f64, rate: f64, waited: Duration) {
        let now = Instant::now();
        let mut waiting = String::new();
        if let Some((last_time, last_iteration, last_waited)) = self.last_draw {
            let elapsed = now - last_time;
            if elapsed < REDRAW_INTERVAL {
                return;
            }
            let share = waited.saturating_sub(last_waited).as_secs_f64() / elapsed.as_secs_f64();
            if share >= MIN_SHOWN_WAIT {
                waiting = format!("  waiting for data {:.0}%", 100.0 * share);
            }
            let speed = (iteration - last_iteration) as f64 / elapsed.as_secs_f64();
            self.speed = Some(self.speed.map_or(speed, |old| 0.8 * old + 0.2 * speed));
        }
        self.last_draw = Some((now, iteration, waited));
        let text = progress_text(iteration, self.max_iter, self.speed, loss, rate);
        redraw_line(&format!("{text}{waiting}"));
    }
}

/// Formats the text of the progress line: bar, iteration, loss, learning rate, speed and time left.
fn progress_text(
    iteration: usize,
    max_iter: usize,
    speed: Option<f64>,
    loss: f64,
    rate: f64,
) -> String {
    let filled = (BAR_WIDTH * iteration / max_iter.max(1)).min(BAR_WIDTH);
    let bar = ["█".repeat(filled), "░".repeat(BAR_WIDTH - filled)].concat();
    let (loss, rate) = (format_g(loss), format_g(rate));
    let speed = match speed {
        Some(speed) if speed > 0.0 => {
            let seconds_left = max_iter.saturating_sub(iteration) as f64 / speed;
            format!("  {speed:.1} it/s  {} left", format_duration(seconds_left))
        }
        _ => String::new(),
    };
    format!("{bar} {iteration}/{max_iter}  loss {loss}  rate {rate}{speed}")
}

/// Clears the progress line when training ends, so that later output starts on an empty line.
impl Drop for Progress {
    fn drop(&mut self) {
        redraw_line("");
    }
}

/// Replaces the progress line by `text`. Line wrapping is disabled while `text` is printed, so a
/// narrow terminal truncates the text.
pub(super) fn redraw_line(text: &str) {
    let mut err = std::io::stderr();
    let _ = write!(err, "{CLEAR_LINE}\x1b[?7l{text}\x1b[?7h");
    let _ = err.flush();
}

/// Clears the progress line and prints `text` as a permanent line in its place.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{CLEAR_LINE}{text}");
}

fn format_score(score: &Score) -> String {
    format!("{} {}", score.name, format_g(score.value))
}

/// Formats a duration in seconds as `1:02:03` or `2:03`.
fn format_duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{format_duration, progress_text};

    #[test]
    fn progress_text_shows_bar_speed_and_time_left() {
        let without_speed = progress_text(0, 8, None, 2.3, 0.01);
        assert_eq!(without_speed, "░░░░░░░░░░░░░░░░░░░░ 0/8  loss 2.3  rate 0.01");
        let with_speed = progress_text(40, 100, Some(0.5), 0.25, 1e-5);
        let want = "████████░░░░░░░░░░░░ 40/100  loss 0.25  rate 1e-05  0.5 it/s  2:00 left";
        assert_eq!(with_speed, want);
        assert!(progress_text(9, 8, None, 0.0, 0.0).starts_with(&"█".repeat(20)));
    }

    #[test]
    fn format_duration_rounds_to_whole_seconds() {
        assert_eq!([0.0, 59.6, 3723.0].map(format_duration), ["0:00", "1:00", "1:02:03"]);
    }
}
