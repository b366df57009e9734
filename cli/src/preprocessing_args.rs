//! The flags for the conversion of an image to the values of a net's input.

use clap::Args;
use cortado::{
    classifier::{MeanPixel, Preprocessing},
    error::Result,
};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct PreprocessingArgs {
    /// Mean image in binary format; the mean of each channel is subtracted from the input
    #[arg(long, value_name = "FILE.binaryproto", conflicts_with = "mean_value")]
    pub(super) mean: Option<PathBuf>,
    /// Mean to subtract from pixel values (0 to 255): one value for all channels, or three for
    /// blue, green and red
    #[arg(long, value_name = "X,..", value_delimiter = ',', allow_negative_numbers = true, value_parser = finite)]
    pub(super) mean_value: Vec<f32>,
    /// Factor by which pixel values are multiplied after mean subtraction; 0.00390625 (1/256) for
    /// nets that expect pixels from 0 to 1
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = finite)]
    pub(super) scale: f32,
}

impl PreprocessingArgs {
    pub(super) fn preprocessing(self) -> Preprocessing {
        let mean = match self.mean {
            Some(path) => MeanPixel::Image(path),
            None if self.mean_value.is_empty() => MeanPixel::None,
            None => MeanPixel::Values(self.mean_value),
        };
        Preprocessing { mean, scale: self.scale }
    }
}

/// Parses a number that is neither NaN nor infinite.
pub(super) fn finite(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number: &f32| number.is_finite());
    number.ok_or_else(|| "expected a finite number".into())
}
