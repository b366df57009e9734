//! Recognition of handwritten digits by LeNet.

use cortado::{
    prelude::*,
    proto::{self, NetParameter},
};

/// Definition of LeNet with one image as the input and the probabilities of the digits as the
/// output.
const DEFINITION: &str = include_str!("../../digits/deploy.prototxt");
/// Number of pixels of an image, 28 × 28.
pub(crate) const PIXELS: usize = 28 * 28;
/// Number of digits.
pub(crate) const DIGITS: usize = 10;

/// LeNet with trained weights.
pub(crate) struct Recognizer(Net<f32>);

impl Recognizer {
    /// Builds LeNet with the weights of a caffemodel, whose bytes are `weights`.
    ///
    /// # Errors
    /// Returns an error if `weights` is not a caffemodel of LeNet.
    pub(crate) fn new(weights: &[u8]) -> Result<Self> {
        let definition: NetParameter = proto::parse_text(DEFINITION, "deploy.prototxt")?;
        let mut net = Net::builder(&CpuDevice::new()).build(&definition)?;
        net.copy_trained_from(&proto::parse_binary(weights, "weights")?)?;
        Ok(Self(net))
    }

    /// Returns the probability of each digit from 0 to 9. `pixels` are the rows of an image from
    /// top to bottom, with values from 0 (background) to 1 (ink).
    ///
    /// # Errors
    /// Returns an error if the forward pass of the net fails.
    pub(crate) fn probabilities(&mut self, pixels: &[f32; PIXELS]) -> Result<[f32; DIGITS]> {
        self.blob("data")?.copy_from_slice(pixels)?;
        self.0.forward()?;
        let probabilities = self.blob("prob")?.to_vec()?;
        probabilities.try_into().map_err(|found: Vec<f32>| {
            let count = found.len();
            Error::InvalidData(format!("blob `prob`: expected {DIGITS} values, found {count}"))
        })
    }
    fn blob(&self, name: &str) -> Result<&Blob<f32>> {
        let missing = || Error::InvalidData(format!("the net has no blob `{name}`"));
        self.0.blob(name).ok_or_else(missing)
    }
}
