//! The Python layer, which a Rust layer of the registry replaces.

use super::prelude::*;

/// The settings of a Python layer: the fields of `python_param`.
///
/// cortado runs no Python code. Instead,
/// [`LayerRegistry::with_python`](crate::LayerRegistry::with_python) registers a Rust layer for the
/// name of a Python module and the name of a class in this module. A layer of any other type that a
/// program registers can also have the field `python_param`.
///
/// ```
/// use cortado::{LayerRegistry, layer::{NeuronLayer, PythonParam, Sigmoid}};
/// use cortado::{prelude::*, proto::parse_text};
///
/// let registry = LayerRegistry::standard().with_python("mylayers", "Gate", |param, cx| {
///     assert_eq!(PythonParam::of(param).number("rate")?, Some(0.5));
///     NeuronLayer::<Sigmoid, f32>::new(param, cx)
/// });
/// let text = r#"layer { type: "Input" top: "x" input_param { shape { dim: 1 } } }
///     layer { type: "Python" bottom: "x" top: "y"
///       python_param { module: "mylayers" layer: "Gate" param_str: "{'rate': 0.5}" } }"#;
/// let net = parse_text(text, "net")?;
/// let mut net = Net::builder(&CpuDevice::new()).registry(registry).build(&net)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.5]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonParam {
    /// The name of the Python module.
    pub module: String,
    /// The name of the class in the module.
    pub layer: String,
    /// Parameters in a format that the class defines, usually a dictionary in the syntax of YAML or
    /// Python.
    pub param_str: String,
}

impl PythonParam {
    /// Returns the fields of `python_param` in the definition of a layer.
    pub fn of(param: &LayerParameter) -> Self {
        let python = param.python_param.clone().unwrap_or_default();
        let [module, layer, param_str] = [python.module(), python.layer(), python.param_str()];
        Self { module: module.into(), layer: layer.into(), param_str: param_str.into() }
    }

    /// Returns the entries of `param_str`, which must be a dictionary in the syntax of YAML or
    /// Python whose values are numbers, strings, or lists of these. The returned values have no
    /// quotation marks.
    ///
    /// ```
    /// use cortado::layer::PythonParam;
    ///
    /// let param_str = "'feat_stride': 16\nscales: [4, 8]".to_owned();
    /// let param = PythonParam { param_str, ..PythonParam::default() };
    /// assert_eq!(param.number("feat_stride")?, Some(16.0));
    /// assert_eq!(param.numbers("scales")?, Some(vec![4.0, 8.0]));
    /// assert_eq!(param.number("ratio")?, None);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if an entry of `param_str` has no `:`.
    pub fn entries(&self) -> Result<Vec<(String, Vec<String>)>> {
        let text = self.param_str.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let (mut entries, mut depth, mut start) = (Vec::new(), 0_usize, 0);
        for (i, character) in text.char_indices().chain([(text.len(), ',')]) {
            match character {
                '[' | '(' => depth += 1,
                ']' | ')' => depth = depth.saturating_sub(1),
                ',' | '\n' if depth == 0 || i == text.len() => {
                    let entry = text[start..i].trim();
                    start = (i + 1).min(text.len());
                    if !entry.is_empty() {
                        entries.push(self.entry(entry)?);
                    }
                }
                _ => {}
            }
        }
        Ok(entries)
    }

    fn entry(&self, entry: &str) -> Result<(String, Vec<String>)> {
        let Some((key, value)) = entry.split_once(':') else {
            return invalid(format!(
                "python_param: param_str: expected `key: value`, found `{entry}`"
            ));
        };
        let value = value.trim();
        let value = value.strip_prefix("!!python/tuple").unwrap_or(value).trim();
        let value = value.trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
        let unquoted = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
        let values = value.split(',').map(unquoted).filter(|value| !value.is_empty());
        Ok((unquoted(key), values.collect()))
    }

    /// Returns the numbers that the entry `key` of `param_str` holds; `None` if `param_str` has no
    /// such entry.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if a value of the entry is not a number, or any error from
    /// [`entries`](Self::entries).
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>> {
        let entries = self.entries()?;
        let Some((_, values)) = entries.into_iter().find(|(found, _)| found == key) else {
            return Ok(None);
        };
        let number = |value: &String| {
            value.parse().map_err(|_| {
                let reason = format!("expected a number, found `{value}`");
                Error::InvalidData(format!("python_param: param_str: {key}: {reason}"))
            })
        };
        values.iter().map(number).collect::<Result<_>>().map(Some)
    }

    /// Returns the number that the entry `key` of `param_str` holds; `None` if `param_str` has no
    /// such entry.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the value of the entry is not exactly one number, or any
    /// error from [`entries`](Self::entries).
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.numbers(key)?.as_deref() {
            None => Ok(None),
            Some([number]) => Ok(Some(*number)),
            Some(numbers) => invalid(format!(
                "python_param: param_str: {key}: expected one number, found {}",
                numbers.len()
            )),
        }
    }
}
