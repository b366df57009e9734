//! The text of a diagnosis.

use super::recorder::{Diagnosis, Finding, TransferCause};
use std::{fmt, time::Duration};

/// Number of transfers in the table; the report sums up the others.
const MAX_ROWS: usize = 20;

/// Formats the findings, and a table of the transfers with the most bytes.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (findings, transfers) = (self.findings(), self.transfers());
        if findings.is_empty() {
            writeln!(f, "no needless transfers, writes or waits")?;
        }
        for (index, finding) in findings.iter().enumerate() {
            write!(f, "{}. {finding}", index + 1)?;
        }
        write_transfers(f, &transfers)
    }
}

impl fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.findings()).finish()
    }
}

/// Formats the kind of needless work, the savings, both places and the remedy, each on its own
/// line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waste, device, count, copies, bytes, time, .. } = self;
        write!(f, "{waste} on `{device}`")?;
        if let Some(memory) = &self.memory {
            write!(f, ", memory `{memory}`")?;
        }
        match count {
            1 => f.write_str(": once")?,
            _ => write!(f, ": {count} times")?,
        }
        match copies {
            0 if *bytes == 0 => {}
            0 => write!(f, "; saves writes of {bytes} bytes")?,
            _ => {
                let copies = counted(*copies, ["copy", "copies"]);
                write!(
                    f,
                    "; saves {copies} of {bytes} bytes in total, {} ms",
                    milliseconds(*time)
                )?;
            }
        }
        writeln!(f)?;
        let [role, other_role] = waste.roles();
        writeln!(f, "   {role:<30} {}", self.place)?;
        match &self.other {
            Some(other) => writeln!(f, "   {other_role:<30} {other}")?,
            None => writeln!(f, "   {other_role:<30} an access before the diagnosis")?,
        }
        writeln!(f, "   {:<30} {}", "remedy", waste.remedy())
    }
}

fn write_transfers(f: &mut fmt::Formatter<'_>, transfers: &[TransferCause]) -> fmt::Result {
    if transfers.is_empty() {
        return writeln!(f, "no copies between host and device");
    }
    writeln!(f, "\n{:<9}{:>9}{:>14}{:>11}  cause", "transfer", "count", "bytes", "ms")?;
    let (shown, others) = transfers.split_at(transfers.len().min(MAX_ROWS));
    let write_row = |f: &mut fmt::Formatter<'_>, kind: &str, count, bytes, time| {
        write!(f, "{kind:<9}{count:>9}{bytes:>14}{:>11}  ", milliseconds(time))
    };
    for row in shown {
        write_row(f, &row.kind.to_string(), row.count, row.bytes, row.time)?;
        if let Some(memory) = &row.memory {
            write!(f, "`{memory}` ")?;
        }
        write!(f, "read by {}; written by ", row.reader)?;
        match &row.writer {
            Some(writer) => writeln!(f, "{writer}")?,
            None => writeln!(f, "an access before the diagnosis")?,
        }
    }
    for (name, rows) in [("others", others), ("total", transfers)] {
        if !rows.is_empty() {
            let sum = |value: fn(&TransferCause) -> u64| rows.iter().map(value).sum();
            let (count, bytes): (u64, u64) = (sum(|row| row.count), sum(|row| row.bytes));
            write_row(f, name, count, bytes, rows.iter().map(|row| row.time).sum())?;
            writeln!(f, "{}", counted(rows.len() as u64, ["cause", "causes"]))?;
        }
    }
    Ok(())
}

/// Formats a count with the singular or the plural of a noun.
fn counted(count: u64, [one, several]: [&str; 2]) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Formats a duration in milliseconds with three decimals.
fn milliseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}
