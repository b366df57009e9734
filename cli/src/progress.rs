//! Progress line of a training run at a terminal.

use super::{escape::escape_control, format_g::format_g, terminal};
use cortado::solver::{Event, Score};
use std::{
    io::Write,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

/// Terminal escape sequence that moves the cursor to the start of the line and clears the line.
pub(super) const CLEAR_LINE: &str = "\r\x1b[K";

/// Minimum time between two redraws of the progress line.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Smallest and largest width of the progress bar, in characters.
const BAR_WIDTH: RangeInclusive<usize> = 6..=20;
/// Smallest wait that the progress line shows, as a share of the elapsed time.
const MIN_SHOWN_WAIT: f64 = 0.01;

/// Display of training progress, which redraws a progress line and prints a line for each test and
/// snapshot.
pub(super) struct Progress {
    max_iter: usize,
    /// Moving average of the iterations per second.
    speed: Option<f64>,
    /// Time, iteration number and total waits at the last redraw of the progress line.
    last_draw: Option<(Instant, usize, Waits)>,
}

/// Total time that a run has waited for data, and for other processes.
type Waits = [Duration; 2];

/// What a run waits for, in the order of [`Waits`].
const AWAITED: [&str; 2] = ["data", "other processes"];

impl Progress {
    pub(super) fn new(max_iter: i32) -> Self {
        Self { max_iter: usize::try_from(max_iter).unwrap_or(0), speed: None, last_draw: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match *event {
            Event::Started { net, .. } => print_line(&format!("training {net}")),
            Event::Iterated { iteration, smoothed, rate, waited, waited_for_processes, .. } => {
                let waits = [waited, waited_for_processes].map(Option::unwrap_or_default);
                self.draw(iteration, smoothed, rate, waits);
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

    fn draw(&mut self, iteration: usize, loss: f64, rate: f64, waits: Waits) {
        let now = Instant::now();
        let mut wait_texts = Vec::new();
        if let Some((last_time, last_iteration, last_waits)) = self.last_draw {
            let elapsed = now - last_time;
            if elapsed < REDRAW_INTERVAL {
                return;
            }
            for ((wait, last_wait), awaited) in waits.into_iter().zip(last_waits).zip(AWAITED) {
                let share = wait.saturating_sub(last_wait).as_secs_f64() / elapsed.as_secs_f64();
                if share >= MIN_SHOWN_WAIT {
                    wait_texts.push(format!("waiting for {awaited} {:.0}%", 100.0 * share));
                }
            }
            let speed = (iteration - last_iteration) as f64 / elapsed.as_secs_f64();
            self.speed = Some(self.speed.map_or(speed, |old| 0.8 * old + 0.2 * speed));
        }
        self.last_draw = Some((now, iteration, waits));
        let mut parts = progress_parts(iteration, self.max_iter, self.speed, loss, rate);
        parts.extend(wait_texts.into_iter().map(|text| (Priority::Wait, text)));
        let done = iteration as f64 / self.max_iter.max(1) as f64;
        redraw_line(&progress_line(done, parts, terminal::line_width()));
    }
}

/// Importance of a part of the progress line, in ascending order. On a narrow terminal, the
/// progress line contains only its more important parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Rate,
    Wait,
    Speed,
    TimeLeft,
    Loss,
    Iteration,
}

/// Part of the progress line, with its priority.
type Part = (Priority, String);

/// Returns the parts of the progress line: iteration, loss, learning rate, speed and time left.
fn progress_parts(
    iteration: usize,
    max_iter: usize,
    speed: Option<f64>,
    loss: f64,
    rate: f64,
) -> Vec<Part> {
    let mut parts = vec![
        (Priority::Iteration, format!("{iteration}/{max_iter}")),
        (Priority::Loss, format!("loss {}", format_g(loss))),
        (Priority::Rate, format!("rate {}", format_g(rate))),
    ];
    if let Some(speed) = speed.filter(|speed| *speed > 0.0) {
        let seconds_left = max_iter.saturating_sub(iteration) as f64 / speed;
        parts.push((Priority::Speed, format!("{speed:.1} it/s")));
        parts.push((Priority::TimeLeft, format!("{} left", format_duration(seconds_left))));
    }
    parts
}

/// Returns a line with a progress bar, filled up to the fraction `done`, and the parts that are not
/// empty. The line has at most `width` characters: the bar is shortened or omitted, then the least
/// important parts are omitted, and the last part is truncated. In a narrow terminal, the line
/// omits the learning rate before it omits the bar.
fn progress_line(done: f64, mut parts: Vec<Part>, width: usize) -> String {
    parts.retain(|(_, text)| !text.is_empty());
    loop {
        let texts: Vec<_> = parts.iter().map(|(_, text)| text.as_str()).collect();
        let line = texts.join("  ");
        let length = line.chars().count();
        let bar = width.saturating_sub(length + 1).min(*BAR_WIDTH.end());
        if bar >= *BAR_WIDTH.start() {
            let filled_width = ((done * bar as f64) as usize).min(bar);
            return format!(
                "{}{} {line}",
                "█".repeat(filled_width),
                "░".repeat(bar - filled_width)
            );
        }
        let least_priority = parts.iter().map(|(priority, _)| *priority).min();
        if parts.len() <= 1 || (length <= width && least_priority != Some(Priority::Rate)) {
            return line.chars().take(width).collect();
        }
        parts.retain(|(priority, _)| Some(*priority) != least_priority);
    }
}

/// Clears the progress line when training ends, so that later output starts on an empty line.
impl Drop for Progress {
    fn drop(&mut self) {
        redraw_line("");
    }
}

/// Replaces the progress line with `text`, truncated to the terminal's width.
pub(super) fn redraw_line(text: &str) {
    let text: String = text.chars().take(terminal::line_width()).collect();
    let mut err = std::io::stderr();
    let _ = write!(err, "{CLEAR_LINE}{text}");
    let _ = err.flush();
}

/// Clears the progress line and prints `text` as a permanent line in its place.
pub(super) fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{CLEAR_LINE}{}", escape_control(text));
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
    use super::{format_duration, progress_line, progress_parts};

    #[test]
    fn the_progress_line_shows_bar_speed_and_time_left() {
        let without_speed = progress_line(0.0, progress_parts(0, 8, None, 2.3, 0.01), 79);
        assert_eq!(without_speed, "░░░░░░░░░░░░░░░░░░░░ 0/8  loss 2.3  rate 0.01");
        let with_speed = progress_parts(40, 100, Some(0.5), 0.25, 1e-5);
        let want = "████████░░░░░░░░░░░░ 40/100  loss 0.25  rate 1e-05  0.5 it/s  2:00 left";
        assert_eq!(progress_line(0.4, with_speed, 79), want);
        let end = progress_line(9.0 / 8.0, progress_parts(9, 8, None, 0.0, 0.0), 79);
        assert!(end.starts_with(&"█".repeat(20)));
    }

    #[test]
    fn a_narrow_terminal_shows_the_most_important_parts() {
        let parts = progress_parts(40, 100, Some(0.5), 0.25, 1e-5);
        let cases = [
            (57, "██░░░░ 40/100  loss 0.25  rate 1e-05  0.5 it/s  2:00 left"),
            (55, "██████░░░░░░░░░░ 40/100  loss 0.25  0.5 it/s  2:00 left"),
            (44, "40/100  loss 0.25  0.5 it/s  2:00 left"),
            (37, "███░░░░░ 40/100  loss 0.25  2:00 left"),
            (30, "40/100  loss 0.25  2:00 left"),
            (20, "40/100  loss 0.25"),
            (8, "40/100"),
            (4, "40/1"),
            (0, ""),
        ];
        for (width, want) in cases {
            assert_eq!(progress_line(0.4, parts.clone(), width), want, "{width}");
        }
    }

    #[test]
    fn format_duration_rounds_to_whole_seconds() {
        assert_eq!([0.0, 59.6, 3723.0].map(format_duration), ["0:00", "1:00", "1:02:03"]);
    }
}
