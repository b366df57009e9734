//! JSON Lines log of a training run.

use super::outputs::by_name;
use cortado::{
    error::{Error, Result},
    solver::{Event, Score},
};
use serde_json::{Map, Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Instant,
};

/// Writer of the JSON Lines log, with one JSON object per solver event.
pub(super) struct JsonLines {
    file: Box<dyn Write + Send>,
    path: PathBuf,
    start: Instant,
}

impl JsonLines {
    /// Creates the log file, or opens an existing one for appending if `append` is true. The path
    /// `-` stands for standard output.
    pub(super) fn open(path: &Path, append: bool) -> Result<Self> {
        let file: Box<dyn Write + Send> = if path.as_os_str() == "-" {
            Box::new(io::stdout())
        } else {
            let result = if append { open_at_end(path) } else { File::create(path) };
            Box::new(result.map_err(|error| Error::io(path, error))?)
        };
        Ok(Self { file, path: path.to_owned(), start: Instant::now() })
    }

    pub(super) fn record(&mut self, event: &Event<'_>) -> Result<()> {
        let Some(mut object) = object(event) else { return Ok(()) };
        object["seconds"] = self.start.elapsed().as_secs_f64().into();
        let line = format!("{object}\n");
        self.file.write_all(line.as_bytes()).map_err(|error| Error::io(&self.path, error))
    }
}

/// Opens a file for appending, and appends a newline if the file's last line lacks one.
fn open_at_end(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

fn object(event: &Event<'_>) -> Option<Value> {
    let object = match *event {
        Event::Started { net, policy, iteration, end } => json!({
            "event": "start", "net": net, "policy": policy, "iteration": iteration, "end": end,
        }),
        Event::Displayed {
            iteration,
            loss,
            rate,
            outputs: scores,
            passed,
            seconds,
            waited,
            waited_for_processes,
            exchanged,
            ..
        } => json!({
            "event": "display",
            "iteration": iteration,
            "loss": loss,
            "rate": rate,
            "outputs": outputs(scores),
            "iterations_per_second": passed as f64 / seconds.max(f64::MIN_POSITIVE),
            "waited": waited,
            "waited_for_processes": waited_for_processes,
            "exchanged": exchanged,
        }),
        Event::Diverged { iteration, loss, first, shard } => json!({
            "event": "diverged",
            "iteration": iteration,
            "loss": loss.map(|loss| loss.to_string()),
            "shard": first.map(|_| shard),
            "layer": first.map(|(layer, ..)| layer),
            "blob": first.map(|(_, _, name)| name),
        }),
        Event::Tested { iteration, net, outputs: scores, loss } => json!({
            "event": "test",
            "iteration": iteration,
            "net": net,
            "outputs": outputs(scores),
            "loss": loss,
        }),
        Event::Snapshot { iteration, model, state } => json!({
            "event": "snapshot",
            "iteration": iteration,
            "model": model.to_string_lossy(),
            "state": state.to_string_lossy(),
        }),
        Event::Finished { iteration, loss, early } => json!({
            "event": "end", "iteration": iteration, "loss": loss, "early": early,
        }),
        _ => return None,
    };
    Some(object)
}

fn outputs(scores: &[Score]) -> Value {
    let value = |values: &[f64]| match values {
        [one] => Value::from(*one),
        many => Value::from(many),
    };
    let members = by_name(scores).into_iter();
    let members = members.map(|(name, values, _)| (name.to_owned(), value(&values)));
    Value::Object(members.collect::<Map<_, _>>())
}
