//! Compares exported ONNX models with the inference engine tract.
//!
//! The argument is a folder that the test program `tests/onnx.rs` has written. For each `NAME.onnx`
//! in the folder, `NAME.npz` holds arrays called `input X` and `output Y`: the values of the model's
//! inputs, and cortado's outputs. The program fails if an output differs by more than 0.0001 of the
//! output's largest value.

use ndarray::ArrayD;
use ndarray_npy::NpzReader;
use std::{
    env,
    error::Error,
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitCode,
};
use tract_onnx::prelude::*;

/// The allowed difference of an output, relative to the output's largest value.
const TOLERANCE: f32 = 1e-4;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("expected a folder with models")?;
    let paths = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "onnx"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{folder}: no models").into());
    }
    let mut failures = 0;
    let mut worst = 0.0_f32;
    for path in &paths {
        match compare(path) {
            Ok(difference) if difference <= TOLERANCE => worst = worst.max(difference),
            Ok(difference) => {
                failures += 1;
                println!("{}: differs by {difference}", path.display());
            }
            Err(error) => {
                failures += 1;
                println!("{}: {error}", path.display());
            }
        }
    }
    let (agreeing, count) = (paths.len() - failures, paths.len());
    println!(
        "{folder}: {agreeing} of {count} models agree with tract; largest difference {worst:.1e}"
    );
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a model. Returns the largest difference of its outputs, relative to the largest value of
/// each output.
fn compare(path: &Path) -> Result<f32, Box<dyn Error>> {
    let mut arrays = NpzReader::new(File::open(path.with_extension("npz"))?)?;
    let mut array = |name: &str| -> Result<ArrayD<f32>, Box<dyn Error>> {
        Ok(arrays.by_name(&format!("{name}.npy"))?)
    };
    // A model with a dynamic batch size declares the shapes of its values with a symbol for that
    // size. tract does not substitute the batch size of the input for the symbol, so it must infer
    // the shapes itself.
    let is_dynamic = path.to_string_lossy().ends_with("_dynamic.onnx");
    let reader =
        tract_onnx::onnx().with_ignore_output_shapes(is_dynamic).with_ignore_value_info(is_dynamic);
    let mut model = reader.model_for_path(path)?;
    let mut inputs = tvec!();
    for (index, outlet) in model.input_outlets()?.to_vec().into_iter().enumerate() {
        let values = array(&format!("input {}", model.node(outlet.node).name))?;
        // The shape replaces the symbol of a dynamic batch.
        model.set_input_fact(index, f32::fact(values.shape()).into())?;
        let elements: Vec<f32> = values.iter().copied().collect();
        inputs.push(Tensor::from_shape(values.shape(), &elements)?.into_tvalue());
    }
    let names: Vec<String> = model
        .output_outlets()?
        .iter()
        .map(|&outlet| match model.outlet_label(outlet) {
            Some(label) => label.to_owned(),
            None => model.node(outlet.node).name.clone(),
        })
        .collect();
    let outputs = model.into_optimized()?.into_runnable()?.run(inputs)?;
    let mut worst = 0.0_f32;
    for (name, output) in names.iter().zip(outputs.iter()) {
        let want = array(&format!("output {name}"))?;
        if output.shape() != want.shape() {
            let (found, expected) = (output.shape(), want.shape());
            return Err(format!("{name}: expected shape {expected:?}, found {found:?}").into());
        }
        let scale = want.iter().fold(0.0_f32, |scale, value| scale.max(value.abs()));
        for (got, want) in output.view().as_slice::<f32>()?.iter().zip(&want) {
            // `f32::max` ignores NaN, so a NaN in only one of the outputs counts as infinite.
            let difference = match (got.is_nan(), want.is_nan()) {
                (false, false) => (got - want).abs() / scale.max(f32::MIN_POSITIVE),
                (true, true) => 0.0,
                _ => f32::INFINITY,
            };
            worst = worst.max(difference);
        }
    }
    Ok(worst)
}
