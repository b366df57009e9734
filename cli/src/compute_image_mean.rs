//! The command `cortado compute-image-mean`, which computes the mean image of a database.

use super::{database_writer::SourceBackend, output::print, suffix::check_binaryproto};
use clap::Args;
use cortado::{
    data::{Record, RecordValues, SourceRegistry},
    error::{Error, Result},
    proto::{self, BlobProto},
};
use std::{fmt::Write, path::PathBuf};

/// Compute the mean image of a database, for the mean_file of a data layer
///
/// The command also prints the mean of each channel. All records of the database must have the same
/// shape.
#[derive(Args)]
#[command(
    after_help = "Example: cortado compute-image-mean examples/imagenet/ilsvrc12_train_lmdb \
    data/ilsvrc12/imagenet_mean.binaryproto"
)]
pub(super) struct ComputeImageMean {
    /// Database or other source whose records are averaged
    #[arg(value_name = "DB")]
    source: String,
    /// File to which the mean image is written
    #[arg(value_name = "OUT.binaryproto")]
    output: Option<PathBuf>,
    /// Format of the database; the command detects the format even without this flag
    #[arg(long, value_enum, default_value_t = SourceBackend::Lmdb)]
    backend: SourceBackend,
}

impl ComputeImageMean {
    pub(super) fn run(self) -> Result<()> {
        let Self { source: name, output, backend: _ } = self;
        output.as_deref().map_or(Ok(()), check_binaryproto)?;
        let mut source = SourceRegistry::default().open(&name)?;
        let (mut record, mut shape, mut sums) = (Record::default(), [0; 3], Vec::new());
        let mut count = 0;
        // A LevelDB source knows the number of its records only after it has read all of them, so
        // the loop calls `records` before each record.
        while source.records() != Some(count) {
            let index = count;
            let with_record = |error: Error| error.context(format!("{name}, record {index}"));
            source.read(&mut record).map_err(with_record)?;
            if index == 0 {
                shape = record.shape();
                sums = vec![0.0; record.count()];
            }
            if record.shape() != shape {
                let ([c, h, w], [channels, height, width]) = (record.shape(), shape);
                let reason =
                    format!("shape {c} x {h} x {w}, expected {channels} x {height} x {width}");
                return Err(with_record(Error::Shape(reason)));
            }
            match record.values() {
                RecordValues::Bytes(x) => add(&mut sums, x.iter().copied()),
                RecordValues::Floats(x) => add(&mut sums, x.iter().copied()),
            }
            count += 1;
        }
        sums.iter_mut().for_each(|sum| *sum /= count as f64);
        if let Some(output) = &output {
            let [channels, height, width] = shape.map(|extent| Some(extent as i32));
            let data = sums.iter().map(|mean| *mean as f32).collect();
            let mean =
                BlobProto { num: Some(1), channels, height, width, data, ..Default::default() };
            proto::write_binary(output, &mean)?;
        }
        let mut text = format!("{count} records\n");
        for (channel, means) in sums.chunks_exact((shape[1] * shape[2]).max(1)).enumerate() {
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            // `writeln!` to a `String` never fails.
            let _ = writeln!(
                text,
                "mean_value channel [{channel}]: {}",
                super::format_g::format_g(mean)
            );
        }
        print(&text)
    }
}

fn add(sums: &mut [f64], values: impl Iterator<Item = impl Into<f64>>) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.into());
}
