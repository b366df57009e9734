//! Plot of the losses and scores of a training run.

use super::{chart, curves::Curves, outputs::by_name};
use cortado::{
    atomic_fs,
    error::{Error, Result},
    solver::{Event, Score},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Curves of a training run, and the image file that shows the curves. The image file also stores
/// the points, so that a resumed run can continue the curves.
pub(super) struct Plot {
    path: PathBuf,
    title: String,
    /// Curves of the objective and of the net outputs with a loss weight.
    losses: Curves,
    /// Curves of net outputs without a loss weight, such as accuracies.
    scores: Curves,
    /// Whether to plot the train net's objective at display events only, instead of at each
    /// iteration.
    only_at_displays: bool,
}

/// SVG tags that enclose the curves' points, which the plot stores as JSON.
const DATA_TAGS: [&str; 2] = ["<metadata>", "</metadata>"];

impl Plot {
    pub(super) fn open(path: &Path, resume: bool, only_at_displays: bool) -> Result<Self> {
        let mut plot = Self {
            path: path.to_owned(),
            title: String::new(),
            losses: Curves::default(),
            scores: Curves::default(),
            only_at_displays,
        };
        if resume {
            plot.read()?;
        }
        plot.draw()?; // report an unwritable path before training starts
        Ok(plot)
    }

    /// Reads the curves stored in an existing plot.
    fn read(&mut self) -> Result<()> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(|error| Error::io(&self.path, error))?,
        };
        let data = text.split(DATA_TAGS[0]).nth(1).and_then(|rest| rest.split(DATA_TAGS[1]).next());
        let data: Value = data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
        let curves = [&data["losses"], &data["scores"]].map(Curves::from_json);
        let [Some(losses), Some(scores)] = curves else {
            let reason = "contains no curves to continue; pass another file to --plot";
            return Err(Error::InvalidData(reason.into()).context(self.path.display().to_string()));
        };
        (self.losses, self.scores) = (losses, scores);
        Ok(())
    }

    pub(super) fn record(&mut self, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Started { net, iteration, .. } => {
                net.clone_into(&mut self.title);
                self.losses.truncate(iteration);
                self.scores.truncate(iteration);
            }
            Event::Iterated { iteration, smoothed, .. } if !self.only_at_displays => {
                self.losses.add("train loss", iteration, smoothed);
            }
            Event::Displayed { iteration, loss, outputs, .. } => {
                self.losses.add("train loss", iteration, loss);
                let score_outputs =
                    by_name(outputs).into_iter().filter(|(.., weight)| *weight == 0.0);
                for (name, values, _) in score_outputs {
                    self.scores.add(&format!("train {name}"), iteration, mean(&values));
                }
            }
            Event::Tested { iteration, net, outputs, .. } => {
                self.add_test(iteration, net, outputs);
                self.draw()?;
            }
            Event::Snapshot { .. } => self.draw()?,
            Event::Finished { iteration, loss, .. } => {
                if let Some(loss) = loss {
                    self.losses.add("train loss", iteration, loss);
                }
                self.draw()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_test(&mut self, iteration: usize, net: usize, outputs: &[Score]) {
        let test = if net == 0 { "test".into() } else { format!("test #{net}") };
        for (name, values, weight) in by_name(outputs) {
            let curves = if weight == 0.0 { &mut self.scores } else { &mut self.losses };
            curves.add(&format!("{test} {name}"), iteration, mean(&values));
        }
    }

    fn draw(&self) -> Result<()> {
        let data = json!({ "losses": self.losses.to_json(), "scores": self.scores.to_json() });
        // In JSON, `<` and `&` occur only inside strings, where `\u` escapes can replace them.
        let data = data.to_string().replace('<', r"\u003c").replace('&', r"\u0026");
        let data = format!("{}{data}{}\n", DATA_TAGS[0], DATA_TAGS[1]);
        let panels = [("loss", &self.losses), ("score", &self.scores)];
        let plot = chart::draw(&self.title, &panels, &data)?;
        atomic_fs::write_atomically(&self.path, plot.as_bytes())
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
