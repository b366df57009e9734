//! Fillers: initial values of parameters.

use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    host::{self, Workers},
    op::RngKey,
    proto::{FillerParameter, filler_parameter::VarianceNorm},
    shape::Shape,
};

/// A distribution or pattern of initial values, like Caffe's `FillerParameter`.
///
/// Random fillers derive their values from an [`RngKey`]. The same `RngKey` gives bit-identical
/// values on every device and for any number of threads.
///
/// The first extent of a weight is the number of outputs, and the second extent is the number of
/// inputs. For a weight of `count` elements, *fan-in* is `count / extent[0]` and *fan-out* is
/// `count / extent[1]`. If a weight has fewer than two axes, the missing extents count as 1.
///
/// ```
/// use cortado::{op::RngKey, prelude::*, proto::filler_parameter::VarianceNorm};
///
/// let weights = Blob::<f32, _>::zeros(&CpuDevice::new(), &[10, 300])?;
/// Filler::Xavier { norm: VarianceNorm::FanIn }.fill(&weights, RngKey::new(1))?;
/// let bound = (3.0f32 / 300.0).sqrt();
/// assert!(weights.to_vec()?.iter().all(|weight| weight.abs() <= bound));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Filler {
    /// The same value for all elements.
    Constant {
        /// Value of every element.
        value: f64,
    },
    /// Uniformly distributed values: `U[min, max)`. If `min = max`, all values are `min`.
    Uniform {
        /// Lower bound, inclusive.
        min: f64,
        /// Upper bound, exclusive, which must be at least `min`. The difference `max − min` must be
        /// finite.
        max: f64,
    },
    /// Normally distributed values: `N(mean, std²)`.
    Gaussian {
        /// Mean of the distribution, which must be finite.
        mean: f64,
        /// Standard deviation, which must be positive and finite.
        std: f64,
        /// If `sparse` is set, each value is kept with probability `sparse / outputs`, and
        /// otherwise set to zero. About `sparse` nonzero values per input remain. `sparse` must not
        /// exceed the number of outputs.
        sparse: Option<u32>,
    },
    /// `U[0, 1)`, scaled so that the values of each output sum to 1.
    PositiveUnitball,
    /// Uniformly distributed values: `U[−a, a)` with `a = √(3/n)`, where `norm` selects `n` from
    /// fan-in, fan-out and the average of both (Glorot, Bengio 2010).
    Xavier {
        /// Selects the divisor `n` of the variance: fan-in, fan-out or the average of both.
        norm: VarianceNorm,
    },
    /// Normally distributed values: `N(0, 2/n)`, where `norm` selects `n` from fan-in, fan-out and
    /// the average of both (He, Zhang, Ren, Sun 2015).
    Msra {
        /// Selects `n`: fan-in, fan-out or the average of both.
        norm: VarianceNorm,
    },
    /// The weights of bilinear interpolation, for a deconvolution that upsamples. The shape must
    /// have four axes, and the last two axes (the kernel) must have equal extents.
    Bilinear,
}

impl Default for Filler {
    /// Returns the constant filler with value 0.
    fn default() -> Self {
        Self::Constant { value: 0.0 }
    }
}

impl Filler {
    /// Returns the filler that `param` describes.
    ///
    /// ```
    /// use cortado::{Filler, proto::FillerParameter};
    ///
    /// let param = FillerParameter { value: Some(0.5), ..FillerParameter::default() };
    /// assert_eq!(Filler::from_proto(&param)?, Filler::Constant { value: 0.5 });
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an unknown type, `sparse` with a type other than gaussian, a
    /// standard deviation that is not positive and finite, a mean that is not finite, `min > max`,
    /// or bounds whose difference is not finite.
    #[doc(alias = "GetFiller")]
    pub fn from_proto(param: &FillerParameter) -> Result<Self> {
        let invalid_error = |reason: String| Err(Error::invalid_input("filler", reason));
        let (min, max) = (f64::from(param.min()), f64::from(param.max()));
        let (mean, std) = (f64::from(param.mean()), f64::from(param.std()));
        let norm = param.variance_norm();
        let filler = match param.r#type() {
            "constant" => Self::Constant { value: param.value().into() },
            "uniform" => Self::Uniform { min, max },
            "gaussian" => {
                let sparse = match param.sparse() {
                    -1 => None,
                    sparse => Some(u32::try_from(sparse).map_err(|_| {
                        Error::invalid_input("filler", format!("`sparse` {sparse} is negative"))
                    })?),
                };
                let filler = Self::Gaussian { mean, std, sparse };
                return filler.check().map(|()| filler);
            }
            "positive_unitball" => Self::PositiveUnitball,
            "xavier" => Self::Xavier { norm },
            "msra" => Self::Msra { norm },
            "bilinear" => Self::Bilinear,
            other => {
                let known =
                    "constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear";
                return invalid_error(format!("unknown type `{other}`; known types: {known}"));
            }
        };
        match param.sparse() {
            -1 => filler.check().map(|()| filler),
            _ => invalid_error(format!("`sparse` needs type gaussian, not `{}`", param.r#type())),
        }
    }

    /// Fails unless the values of the filler's fields are in their ranges.
    fn check(&self) -> Result<()> {
        let invalid = |reason: String| Err(Error::invalid_input("filler", reason));
        match *self {
            Self::Uniform { min, max } if min > max || min.is_nan() || max.is_nan() => {
                invalid(format!("uniform needs `min` ≤ `max`, not {min} and {max}"))
            }
            Self::Uniform { min, max } if !(max - min).is_finite() => {
                invalid(format!("uniform needs a finite `max` − `min`, not {max} − {min}"))
            }
            Self::Gaussian { std, .. } if std <= 0.0 || !std.is_finite() => {
                invalid(format!("gaussian needs a positive `std`, not {std}"))
            }
            Self::Gaussian { mean, .. } if !mean.is_finite() => {
                invalid(format!("gaussian needs a finite `mean`, not {mean}"))
            }
            _ => Ok(()),
        }
    }

    /// Fills the data of `blob`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a blob without elements, a field of the filler that is out of its
    /// range, or a shape that the filler does not accept; [`Error::Borrowed`] if the data is
    /// borrowed; any error that the device returns.
    #[doc(alias = "Fill")]
    pub fn fill<T: Element, D: Device>(&self, blob: &Blob<T, D>, key: RngKey) -> Result<()> {
        self.check()?;
        let (device, shape) = (blob.device(), blob.shape());
        if shape.count() == 0 {
            return Err(Error::invalid_input("filler", format!("shape {shape} has no elements")));
        }
        let mut data = blob.data_mut()?;
        match *self {
            Self::Constant { value } => device.fill(T::from_f64(value), data.view_mut()),
            Self::Uniform { min, max } => device.uniform(key, min, max, data.view_mut()),
            Self::Xavier { norm } => {
                let bound = (3.0 / fan(shape, norm)).sqrt();
                device.uniform(key, -bound, bound, data.view_mut())
            }
            Self::Msra { norm } => {
                let std = (2.0 / fan(shape, norm)).sqrt();
                device.gaussian(key, 0.0, std, data.view_mut())
            }
            Self::Gaussian { mean, std, sparse } => {
                device.gaussian(key, mean, std, data.view_mut())?;
                match sparse {
                    Some(values_per_input) => {
                        sparsify(values_per_input, shape, key.child(1), data.host_mut()?)
                    }
                    None => Ok(()),
                }
            }
            Self::PositiveUnitball => {
                device.uniform(key, 0.0, 1.0, data.view_mut())?;
                normalize_rows(data.host_mut()?, shape.first().copied().unwrap_or(1))
            }
            Self::Bilinear => bilinear(data.host_write_only()?, shape),
        }
    }
}

/// Returns fan-in, fan-out or the average of both, as `norm` selects, for [`Filler::Xavier`] and
/// [`Filler::Msra`].
fn fan(shape: &Shape, norm: VarianceNorm) -> f64 {
    let count = shape.count() as f64;
    let fan = |axis: usize| shape.get(axis).map_or(count, |&extent| count / extent as f64);
    match norm {
        VarianceNorm::FanIn => fan(0),
        VarianceNorm::FanOut => fan(1),
        VarianceNorm::Average => (fan(0) + fan(1)) / 2.0,
    }
}

/// Keeps each value with probability `values_per_input / outputs` and sets all other values to 0.
fn sparsify<T: Element>(
    values_per_input: u32,
    shape: &Shape,
    key: RngKey,
    data: &mut [T],
) -> Result<()> {
    let no_axis_error =
        || Error::invalid_input("filler", "`sparse` requires a shape with at least one axis");
    let outputs = *shape.first().ok_or_else(no_axis_error)?;
    let p = f64::from(values_per_input) / outputs as f64;
    if p > 1.0 {
        let reason =
            format!("`sparse` {values_per_input} exceeds the {outputs} outputs of shape {shape}");
        return Err(Error::invalid_input("filler", reason));
    }
    let mut mask = vec![0; data.len()];
    host::bernoulli(&Workers::sequential(), key, p, &mut mask)?;
    let dropped_values = data.iter_mut().zip(mask).filter(|(_, keep)| *keep == 0);
    dropped_values.for_each(|(value, _)| *value = T::default());
    Ok(())
}

/// Scales each of the `rows` rows so that the values of the row sum to 1.
fn normalize_rows<T: Element>(data: &mut [T], rows: usize) -> Result<()> {
    for row in data.chunks_mut((data.len() / rows).max(1)) {
        let sum: f64 = row.iter().map(|value| value.to_f64()).sum();
        row.iter_mut().for_each(|value| *value = T::from_f64(value.to_f64() / sum));
    }
    Ok(())
}

fn bilinear<T: Element>(data: &mut [T], shape: &Shape) -> Result<()> {
    let (height, width) = match shape[..] {
        [_, _, height, width] if height == width => (height, width),
        _ => {
            let reason = format!("bilinear needs 4 axes and a square kernel, not shape {shape}");
            return Err(Error::invalid_input("filler", reason));
        }
    };
    // Single precision and Caffe's order of operations give results bit-identical to Caffe's.
    let factor = width.div_ceil(2) as f32;
    let center = (width as f32 - 1.0) / (2.0 * factor);
    let weight = |x: usize| 1.0 - (x as f32 / factor - center).abs();
    for (i, value) in data.iter_mut().enumerate() {
        *value = T::from_f64(f64::from(weight(i % width) * weight(i / width % height)));
    }
    Ok(())
}
