//! Readers of every kind of file that `cortado inspect` supports.

use super::{
    array::Array,
    database::{report_leveldb, report_lmdb},
    file_kind::FileKind,
    report::{FileReport, LayerReport},
};
use cortado::{
    blob::Blob,
    device::CpuDevice,
    element::Element,
    error::{Error, Result},
    proto::{self, BlobProto, NetParameter, RunState, SolverState},
    tensor_io::{self, Tensor},
};
use serde_json::Value;
use std::path::Path;

/// Reads a file of any supported kind and returns a report on its content.
pub(super) fn report(path: &Path) -> Result<FileReport> {
    let file = path.display().to_string();
    let kind = FileKind::of(path)?;
    let mut report = FileReport::new(&file, kind);
    match kind {
        FileKind::Net => report_net(&mut report, &proto::read_net(path)?, false)?,
        FileKind::TrainedNet => report_net(&mut report, &proto::read_trained_net(path)?, true)?,
        FileKind::Solver => {
            report.fields = fields(&proto::to_text(&proto::read_solver(path)?)?);
        }
        FileKind::SolverState => report_state(&mut report, &proto::read_solver_state(path)?)?,
        FileKind::Blob => {
            let blob: BlobProto = proto::read_binary(path)?;
            report.arrays = Some(data_and_diff("", &blob).map_err(|error| error.context(file))?);
        }
        FileKind::Npy => {
            report.arrays = Some(vec![Array::new("data", &tensor_io::read_npy(path)?)])
        }
        FileKind::Npz => report.arrays = Some(arrays(&tensor_io::read_npz(path)?)),
        FileKind::Lmdb => report_lmdb(&mut report, path)?,
        FileKind::LevelDb => report_leveldb(&mut report, path)?,
        FileKind::Safetensors => report.arrays = Some(arrays(&tensor_io::read_safetensors(path)?)),
    }
    Ok(report)
}

fn arrays(tensors: &[(String, Tensor)]) -> Vec<Array> {
    tensors.iter().map(|(name, tensor)| Array::new(name, tensor)).collect()
}

fn report_net(report: &mut FileReport, net: &NetParameter, is_trained: bool) -> Result<()> {
    report.fields.push(("name".into(), net.name().into()));
    report.layers = Some(net.layer.iter().map(LayerReport::new).collect());
    let mut arrays = Vec::new();
    for layer in &net.layer {
        for (index, blob) in layer.blobs.iter().enumerate() {
            let name = format!("{}.{index}", layer.name());
            arrays.extend(data_and_diff(&name, blob).map_err(|error| {
                error.context(format!("{}: layer `{}`", report.file, layer.name()))
            })?);
        }
    }
    report.arrays = (is_trained || !arrays.is_empty()).then_some(arrays);
    Ok(())
}

fn report_state(report: &mut FileReport, state: &SolverState) -> Result<()> {
    report.fields = vec![
        ("iter".into(), state.iter().into()),
        ("learned_net".into(), state.learned_net().into()),
        ("current_step".into(), state.current_step().into()),
    ];
    let mut arrays = Vec::new();
    for (index, blob) in state.history.iter().enumerate() {
        let name = format!("history.{index}");
        let with_name = |error: Error| error.context(format!("{}: `{name}`", report.file));
        arrays.extend(data_and_diff(&name, blob).map_err(with_name)?);
    }
    if let Some(run) = &state.run {
        report_run(report, &mut arrays, run)?;
    }
    report.arrays = Some(arrays);
    Ok(())
}

/// Adds the random seed of a training run and the states of the layers to a report.
fn report_run(report: &mut FileReport, arrays: &mut Vec<Array>, run: &RunState) -> Result<()> {
    report.fields.extend(run.random_seed.map(|seed| ("random_seed".into(), seed.into())));
    for (index, net) in run.net.iter().enumerate() {
        let net_name = match index {
            0 => "train net".to_owned(),
            _ => format!("test net #{}", index - 1),
        };
        for layer in &net.layer {
            let name = format!("position of {} ({net_name})", layer.name());
            report.fields.extend(layer.position.map(|position| (name, position.into())));
            for (index, blob) in layer.blobs.iter().enumerate() {
                let name = format!("{}.{index} ({net_name})", layer.name());
                let with_name = |error: Error| error.context(format!("{}: `{name}`", report.file));
                arrays.extend(data_and_diff(&name, blob).map_err(with_name)?);
            }
        }
    }
    Ok(())
}

/// Returns the data of a blob and, if the blob has one, the diff. An empty `BlobProto`, which
/// represents a parameter shared with another layer, has no data.
fn data_and_diff(name: &str, blob: &BlobProto) -> Result<Vec<Array>> {
    if *blob == BlobProto::default() {
        return Ok(Vec::new());
    }
    let tensors = match blob.double_data.is_empty() {
        true => tensors::<f32>(blob)?,
        false => tensors::<f64>(blob)?,
    };
    let full_name = |part: &str| match name {
        "" => part.to_owned(),
        _ if part == "data" => name.to_owned(),
        _ => format!("{name} {part}"),
    };
    let names = ["data", "diff"].map(full_name);
    Ok(names.into_iter().zip(&tensors).map(|(name, tensor)| Array::new(name, tensor)).collect())
}

/// Converts a `BlobProto` to tensors through a `Blob`, which validates the message.
fn tensors<T: Element>(proto: &BlobProto) -> Result<Vec<Tensor>> {
    let mut blob = Blob::<T, _>::new(&CpuDevice::new(), &[])?;
    blob.from_proto(proto, true)?;
    let mut tensors = vec![blob.to_tensor()?];
    if !proto.diff.is_empty() || !proto.double_diff.is_empty() {
        let diff = Tensor::from_values(blob.shape(), blob.diff()?.host()?)?;
        tensors.push(diff);
    }
    Ok(tensors)
}

/// Splits a message in protobuf's text format into pairs of field name and value. If a field holds
/// a nested message, its value is the message's text.
fn fields(text: &str) -> Vec<(String, Value)> {
    let mut fields: Vec<(String, Value)> = Vec::new();
    let mut open_block: Option<(String, String)> = None;
    for line in text.lines() {
        if let Some((_, block)) = open_block.as_mut().filter(|_| line != "}") {
            block.push_str(line.trim_start());
            block.push(' ');
        } else if let Some((name, block)) = open_block.take() {
            fields.push((name, format!("{{ {block}}}").into()));
        } else if let Some(name) = line.strip_suffix(" {") {
            open_block = Some((name.to_owned(), String::new()));
        } else if let Some((name, value)) = line.split_once(": ") {
            fields.push((name.to_owned(), scalar(value)));
        }
    }
    fields
}

/// Converts a scalar in protobuf's text format to JSON: a number, a boolean or a string without
/// escapes. Any other scalar, such as the name of an enum value, becomes a JSON string.
fn scalar(text: &str) -> Value {
    let content = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match content {
        Some(string) if !string.contains('\\') => string.into(),
        Some(_) => text.into(),
        None => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}
