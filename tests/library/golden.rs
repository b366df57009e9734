//! Golden cases: inputs, the results that Caffe computed from them, and the tolerances for
//! comparisons with these results.

use crate::support::table;
use cortado::proto::{self, BlobProto, BlobProtoVector};
use std::{collections::HashMap, fs, path::Path};

/// Reads the kind, name and values of each blob of a golden case.
pub(crate) fn golden(case: &Path) -> Vec<(String, String, BlobProto)> {
    let blobs: BlobProtoVector = proto::read_binary(case.join("golden.binaryproto")).unwrap();
    let index = fs::read_to_string(case.join("index.tsv")).unwrap();
    assert_eq!(index.lines().count(), blobs.blobs.len(), "{}", case.display());
    let names = index.lines().map(|line| line.split_once('\t').unwrap());
    names.zip(blobs.blobs).map(|((kind, name), blob)| (kind.into(), name.into(), blob)).collect()
}

/// Absolute and relative tolerances for blobs, keyed by golden case, kind and name of the blob.
pub(crate) struct Tolerances(HashMap<(String, String, String), (f64, f64)>);

impl Tolerances {
    pub(crate) fn read(set: &Path) -> Self {
        let rows = table(&set.join("tolerances.tsv")).into_iter().map(|row| {
            let number = |column: usize| row[column].parse::<f64>().unwrap();
            let bounds = (number(5), number(6));
            ((row[0].clone(), row[1].clone(), row[2].clone()), bounds)
        });
        Self(rows.collect())
    }

    /// Returns an error message about the first element of `got` that differs from `want` by more
    /// than the tolerance.
    pub(crate) fn compare(
        &self,
        (case, kind, name): (&str, &str, &str),
        got: &[f64],
        want: &[f32],
    ) -> Result<(), String> {
        let key = (case.to_owned(), kind.to_owned(), name.to_owned());
        let (atol, rtol) = self.0.get(&key).ok_or(format!("no tolerance for {key:?}"))?;
        if got.len() != want.len() {
            return Err(format!("{kind} {name}: {} values; Caffe has {}", got.len(), want.len()));
        }
        for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
            let want = f64::from(want);
            let is_within_tolerance = got == want
                || (got.is_nan() && want.is_nan())
                || (got - want).abs() <= atol + rtol * want.abs();
            if !is_within_tolerance {
                return Err(format!("{kind} {name}[{i}]: {got}; Caffe has {want} (± {atol})"));
            }
        }
        Ok(())
    }
}
