//! A progress line for a person at a terminal.

use super::format_g::format_g;
use crate::solver::{Event, Score};
use std::{
    io::Write,
    time::{Duration, Instant},
};

/// Makes room for a line where the progress line may be.
pub(super) const CLEAR: &str = "\r\x1b[K";

/// How long a line stays before it is drawn anew.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Characters of the bar.
const BAR: usize = 20;
/// Share of the time from which waiting for data is worth a word.
const MIN_SHOWN_WAIT: f64 = 0.01;

/// Draws where training stands, and writes a line for each test and snapshot.
pub(super) struct Progress {
    end: usize,
    /// Smoothed iterations per second.
    speed: Option<f64>,
    /// When the line was drawn, at which iteration, and how long the net had waited for data.
    drawn: Option<(Instant, usize, Duration)>,
}

impl Progress {
    pub(super) fn new(end: i32) -> Self {
        Self { end: usize::try_from(end).unwrap_or(0), speed: None, drawn: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match *event {
            Event::Started { net, .. } => line(&format!("training {net}")),
            Event::Iterated { iteration, smoothed, rate, waited, .. } => {
                self.draw(iteration, smoothed, rate, waited.unwrap_or_default());
            }
            Event::Tested { iteration, net, outputs, .. } => {
                let scores: Vec<_> = outputs.iter().map(brief).collect();
                line(&format!("iteration {iteration}, test net #{net}: {}", scores.join(", ")));
                self.drawn = None; // the time of a test does not count
            }
            Event::Snapshot { model, .. } => line(&format!("wrote {}", model.display())),
            Event::Finished { iteration, early, .. } => {
                let how = if early { "stopped" } else { "done" };
                line(&format!("{how} after {iteration} iterations"));
            }
            Event::Testing { iteration, net } => {
                redraw_line(&format!("iteration {iteration}, testing net #{net}"));
            }
            Event::Displayed { .. }
            | Event::Traced { .. }
            | Event::Norms { .. }
            | Event::Clipped { .. }
            | Event::Interrupted { .. } => {}
        }
    }

    fn draw(&mut self, iteration: usize, loss: f64, rate: f64, waited: Duration) {
        let now = Instant::now();
        let mut waiting = String::new();
        if let Some((since, from, before)) = self.drawn {
            let elapsed = now - since;
            if elapsed < REDRAW_INTERVAL {
                return;
            }
            let share = waited.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64();
            if share >= MIN_SHOWN_WAIT {
                waiting = format!("  waiting for data {:.0}%", 100.0 * share);
            }
            let speed = (iteration - from) as f64 / elapsed.as_secs_f64();
            self.speed = Some(self.speed.map_or(speed, |old| 0.8 * old + 0.2 * speed));
        }
        self.drawn = Some((now, iteration, waited));
        let text = text(iteration, self.end, self.speed, loss, rate);
        redraw_line(&format!("{text}{waiting}"));
    }
}

/// What the progress line says.
fn text(iteration: usize, end: usize, speed: Option<f64>, loss: f64, rate: f64) -> String {
    let done = (BAR * iteration / end.max(1)).min(BAR);
    let bar = ["█".repeat(done), "░".repeat(BAR - done)].concat();
    let (loss, rate) = (format_g(loss), format_g(rate));
    let speed = match speed {
        Some(speed) if speed > 0.0 => {
            let left = end.saturating_sub(iteration) as f64 / speed;
            format!("  {speed:.1} it/s  {} left", clock(left))
        }
        _ => String::new(),
    };
    format!("{bar} {iteration}/{end}  loss {loss}  rate {rate}{speed}")
}

/// What comes next on the terminal, such as an error, has a line of its own.
impl Drop for Progress {
    fn drop(&mut self) {
        redraw_line("");
    }
}

/// Draws over the progress line; what a narrow terminal has no room for is cut off, not wrapped.
pub(super) fn redraw_line(text: &str) {
    let mut err = std::io::stderr();
    let _ = write!(err, "{CLEAR}\x1b[?7l{text}\x1b[?7h");
    let _ = err.flush();
}

/// Writes a line where the progress line was.
fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{CLEAR}{text}");
}

fn brief(score: &Score) -> String {
    format!("{} {}", score.name, format_g(score.value))
}

/// Seconds as `1:02:03` or `2:03`.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{clock, text};

    #[test]
    fn lines_of_progress() {
        let bare = text(0, 8, None, 2.3, 0.01);
        assert_eq!(bare, "░░░░░░░░░░░░░░░░░░░░ 0/8  loss 2.3  rate 0.01");
        let told = text(40, 100, Some(0.5), 0.25, 1e-5);
        let want = "████████░░░░░░░░░░░░ 40/100  loss 0.25  rate 1e-05  0.5 it/s  2:00 left";
        assert_eq!(told, want);
        assert!(text(9, 8, None, 0.0, 0.0).starts_with(&"█".repeat(20)));
    }

    #[test]
    fn clocks() {
        assert_eq!([0.0, 59.6, 3723.0].map(clock), ["0:00", "1:00", "1:02:03"]);
    }
}
