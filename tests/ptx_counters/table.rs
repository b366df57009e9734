//! Tables of counters in files with tab-separated values, and the differences between two tables.

use std::collections::BTreeMap;

/// Column names, in the order of the file. The first columns are the key of a row.
pub(crate) struct Table {
    keys: usize,
    columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// One row: the key, and the values by column.
pub(crate) struct Row {
    pub(crate) key: Vec<String>,
    pub(crate) values: BTreeMap<String, String>,
}

impl Row {
    /// Returns a count, or 0 if the column is missing.
    pub(crate) fn count(&self, column: &str) -> f64 {
        self.values.get(column).and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.values.get(column).map_or("", String::as_str)
    }
}

/// Columns with costs: a smaller value is better. The other columns describe the launch.
const COSTS: &[&str] = &[
    "instructions",
    "loads_sectors",
    "stores_sectors",
    "read_sectors",
    "written_sectors",
    "shared_loads_wavefronts",
    "shared_loads_conflicts",
    "shared_stores_wavefronts",
    "shared_stores_conflicts",
    "atomics",
    "registers",
    "shared",
    "spills",
];
/// Columns with gains: a greater value is better.
const GAINS: &[&str] = &["resident_blocks", "resident_warps"];

/// A difference between two tables, with a line of text for the reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Worse(String),
    Better(String),
    Other(String),
}

impl Table {
    /// Returns a table without rows.
    pub(crate) fn new(keys: &[&str], values: &[String]) -> Self {
        let columns = keys.iter().map(|key| (*key).to_owned()).chain(values.iter().cloned());
        Self { keys: keys.len(), columns: columns.collect(), rows: Vec::new() }
    }

    /// Parses a file, in which the first `keys` columns are the key.
    pub(crate) fn parse(text: &str, keys: usize) -> Self {
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
        let columns: Vec<String> = lines.next().map(Iterator::collect).unwrap_or_default();
        let rows = lines.map(|mut fields| {
            let key = fields.by_ref().take(keys).collect();
            Row { key, values: columns.iter().skip(keys).cloned().zip(fields).collect() }
        });
        Self { keys, rows: rows.collect(), columns }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = self.columns.join("\t") + "\n";
        for row in &self.rows {
            let values = self.columns[self.keys..].iter().map(|column| row.text(column).to_owned());
            let fields: Vec<String> = row.key.iter().cloned().chain(values).collect();
            text += &(fields.join("\t") + "\n");
        }
        text
    }

    /// Returns the differences of a new table from this one.
    pub(crate) fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        let by_key = |table: &'_ Self| -> BTreeMap<Vec<String>, usize> {
            table.rows.iter().enumerate().map(|(i, row)| (row.key.clone(), i)).collect()
        };
        let (old_rows, new_rows) = (by_key(self), by_key(new));
        for row in self.rows.iter().filter(|row| !new_rows.contains_key(&row.key)) {
            differences.push(Difference::Other(format!("{}: missing", row.key.join(", "))));
        }
        for row in &new.rows {
            let name = row.key.join(", ");
            let Some(old) = old_rows.get(&row.key).map(|i| &self.rows[*i]) else {
                differences.push(Difference::Other(format!("{name}: new")));
                continue;
            };
            for column in &new.columns[new.keys..] {
                let (before, after) = (old.text(column), row.text(column));
                if before != after {
                    differences.push(difference(&name, column, before, after));
                }
            }
        }
        differences
    }
}

fn difference(name: &str, column: &str, before: &str, after: &str) -> Difference {
    let numbers = (before.parse::<f64>(), after.parse::<f64>());
    let (Ok(old), Ok(new)) = numbers else {
        return Difference::Other(format!("{name}: {column}: {before} → {after}"));
    };
    let change = match old {
        0.0 => String::new(),
        _ => format!(" ({:+.1} %)", (new / old - 1.0) * 100.0),
    };
    let line = format!("{name}: {column}: {before} → {after}{change}");
    let (is_cost, is_gain) = (COSTS.contains(&column), GAINS.contains(&column));
    match () {
        () if is_cost && new > old || is_gain && new < old => Difference::Worse(line),
        () if is_cost || is_gain => Difference::Better(line),
        () => Difference::Other(line),
    }
}

#[test]
fn differences_state_which_counters_are_worse() {
    let table = |text: &str| Table::parse(text, 1);
    let columns = "kernel\tregisters\tresident_blocks\tmma\n";
    let old = table(&format!("{columns}a\t40\t6\t8\nb\t32\t8\t0\nc\t1\t1\t1\n"));
    let new = table(&format!("{columns}a\t50\t5\t8\nb\t30\t8\t4\nd\t1\t1\t1\n"));
    let found = old.differences(&new);
    let expected = [
        Difference::Other("c: missing".to_owned()),
        Difference::Worse("a: registers: 40 → 50 (+25.0 %)".to_owned()),
        Difference::Worse("a: resident_blocks: 6 → 5 (-16.7 %)".to_owned()),
        Difference::Better("b: registers: 32 → 30 (-6.2 %)".to_owned()),
        Difference::Other("b: mma: 0 → 4".to_owned()),
        Difference::Other("d: new".to_owned()),
    ];
    assert_eq!(found, expected);
    assert_eq!(old.differences(&table(&old.to_text())), []);
}
