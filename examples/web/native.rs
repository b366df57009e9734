//! Recognizes digits natively, for comparison with the web page.
//!
//! The argument is the path of the caffemodel with the weights, by default `lenet.caffemodel`. Each
//! line of the standard input holds the 784 pixels of one image, integers from 0 to 255. For each
//! image, the program prints a line with the ten probabilities.

#[path = "src/recognizer.rs"]
mod recognizer;

use cortado::{Error, Result};
use recognizer::{PIXELS, Recognizer};
use std::{env, fs, io};

fn main() -> Result<()> {
    let weights = env::args().nth(1).unwrap_or("lenet.caffemodel".into());
    let bytes = fs::read(&weights).map_err(|error| Error::io(&weights, error))?;
    let mut recognizer = Recognizer::new(&bytes)?;
    for (number, line) in (1..).zip(io::stdin().lines()) {
        let line = line.map_err(|error| Error::io("standard input", error))?;
        let invalid = |reason| Error::InvalidData(format!("standard input:{number}: {reason}"));
        let pixel = |text: &str| {
            text.parse::<f32>().map_err(|_| invalid(format!("expected a number, found `{text}`")))
        };
        let values = line.split_whitespace().map(pixel).collect::<Result<Vec<_>>>()?;
        let pixels: [f32; PIXELS] = values.try_into().map_err(|values: Vec<f32>| {
            invalid(format!("expected {PIXELS} pixels, found {}", values.len()))
        })?;
        let probabilities = recognizer.probabilities(&pixels.map(|pixel| pixel / 256.0))?;
        println!("{}", probabilities.map(|probability| probability.to_string()).join(" "));
    }
    Ok(())
}
