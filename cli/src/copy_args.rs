//! The flag `--allow-no-match`, which allows weights files that share no layer with the net.

use clap::Args;
use cortado::{
    error::Result,
    net::{CopyOptions, Net},
};
use std::path::PathBuf;

/// Command-line flag for copying trained weights to a net.
#[derive(Args, Default)]
pub(super) struct CopyArgs {
    /// Allow weights that have no layer in common with the net; by default, such weights are an
    /// error
    #[arg(long)]
    allow_no_match: bool,
}

impl CopyArgs {
    /// Copies the weights in `files` to `net`, one file after the other.
    pub(super) fn copy(&self, net: &mut Net<f32>, files: &[PathBuf]) -> Result<()> {
        let options = CopyOptions { allow_no_match: self.allow_no_match };
        for file in files {
            let copied_layers = net.copy_trained_from_file_with(file, options)?;
            if copied_layers.is_empty() && net.learnable_params().len() > 0 {
                let file = file.display();
                log::warn!(
                    "{file}: no layer name in common with the net, so no weights are copied"
                );
            }
        }
        Ok(())
    }
}
