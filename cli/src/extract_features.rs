//! The command `cortado extract-features`, which stores blobs of a trained net in databases.

use super::{
    copy_args::CopyArgs,
    database_writer::{Backend, DatabaseArgs, DatabaseWriter},
    device_args::DeviceArgs,
    net_state_args::NetStateArgs,
};
use clap::{Args, ValueEnum};
use cortado::{
    blob::Blob,
    device::AnyDevice,
    error::{Error, Result},
    net::Net,
    proto::{Datum, Phase, read_net},
};
use std::{path::PathBuf, slice};

/// Store blobs that a trained net computes, as Caffe's extract_features does
///
/// The command writes a separate database for each blob. The key of a record is its index as ten
/// digits.
#[derive(Args)]
#[command(after_help = "Example: cortado extract-features lenet_iter_10000.caffemodel \
    examples/mnist/lenet.prototxt ip1,prob ip1_lmdb,prob_lmdb 10")]
pub(super) struct ExtractFeatures {
    /// Trained weights in a .safetensors, .npz, .h5 or .caffemodel file, matched by layer name
    weights: PathBuf,
    /// Net definition in text format, built for the TEST phase
    #[arg(value_name = "NET.prototxt")]
    model: PathBuf,
    /// Names of the blobs to store
    #[arg(value_name = "BLOB,..", value_parser = name_list)]
    blobs: NameList,
    /// Folders of the new databases, one per blob
    #[arg(value_name = "DB,..", value_parser = name_list)]
    databases: NameList,
    /// Number of batches to run
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    batches: u32,
    /// Format of the databases (alternative to --backend)
    #[arg(value_enum, conflicts_with = "backend")]
    db_type: Option<Backend>,
    /// Run on the CPU or on a GPU (alternative to --device and --gpu)
    #[arg(value_enum, ignore_case = true, value_name = "CPU|GPU")]
    #[arg(conflicts_with_all = ["device", "gpu"])]
    mode: Option<Mode>,
    /// Number of the GPU; default: 0
    #[arg(value_parser = device_id)]
    device_id: Option<u32>,
    #[command(flatten)]
    database_args: DatabaseArgs,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Kind of device, with Caffe's names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Cpu,
    Gpu,
}

/// Names in a comma-separated command-line argument.
#[derive(Clone)]
struct NameList(Vec<String>);

fn name_list(text: &str) -> Result<NameList, String> {
    Ok(NameList(text.split(',').map(str::to_owned).collect()))
}

/// Parses the number of a GPU, such as `1` or, as in the help of Caffe's program, `DEVICE_ID=1`.
fn device_id(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("DEVICE_ID=").unwrap_or(text);
    number.parse().map_err(|_| "expected the number of a GPU".into())
}

impl ExtractFeatures {
    pub(super) fn run(self) -> Result<()> {
        let (blobs, databases) = (self.blobs.0.len(), self.databases.0.len());
        if blobs != databases {
            let reason =
                format!("{blobs} blobs, but {databases} databases; pass one database per blob");
            return Err(Error::InvalidData(reason));
        }
        // LMDB is the only format, so the argument cannot differ from the default of --backend.
        let Backend::Lmdb = self.db_type.unwrap_or(Backend::Lmdb);
        let device = match self.mode {
            Some(Mode::Gpu) => self.device.clone().on_gpu(self.device_id.unwrap_or(0)).open()?,
            Some(Mode::Cpu) | None => self.device.open()?,
        };
        self.run_on(&device)
    }

    fn run_on(self, device: &AnyDevice) -> Result<()> {
        let mut definition = read_net(&self.model)?;
        self.net_state.apply(definition.state.get_or_insert_default());
        let with_path = |error: Error| error.context(self.model.display().to_string());
        let builder = Net::<f32>::builder(device).phase(Phase::Test);
        let mut net = builder.build_from(&definition, &self.model)?;
        self.copy.copy(&mut net, slice::from_ref(&self.weights))?;
        if let Some(unknown_name) = self.blobs.0.iter().find(|name| net.blob(name).is_none()) {
            let reason = format!("unknown blob `{unknown_name}`");
            return Err(with_path(Error::InvalidData(reason)));
        }
        let create =
            |path: &String| Ok((DatabaseWriter::new(path.as_ref(), self.database_args, None)?, 0));
        let mut databases: Vec<_> = self.databases.0.iter().map(create).collect::<Result<_>>()?;
        for _ in 0..self.batches {
            net.forward()?;
            for (name, (writer, next)) in self.blobs.0.iter().zip(&mut databases) {
                if let Some(blob) = net.blob(name) {
                    store(blob, writer, next).map_err(|e| e.context(format!("blob `{name}`")))?;
                }
            }
        }
        databases.into_iter().try_for_each(|(writer, _)| writer.finish())
    }
}

/// Appends one record per item of the blob's batch to the database; `next` is the index of the next
/// record.
fn store(blob: &Blob<f32>, writer: &mut DatabaseWriter, next: &mut u64) -> Result<()> {
    let [channels, height, width] =
        [blob.channels()?, blob.height()?, blob.width()?].map(|extent| Some(extent as i32));
    let data = blob.data()?;
    let item_len = blob.count() / blob.num()?.max(1);
    for values in data.host()?.chunks_exact(item_len.max(1)) {
        let float_data = values.to_vec();
        let datum = Datum { channels, height, width, float_data, ..Default::default() };
        writer.put(&format!("{next:010}"), &datum)?;
        *next += 1;
    }
    Ok(())
}
