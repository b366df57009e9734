//! Header of a `.npy` file, which is the text of a Python dictionary.
//!
//! Source: NumPy's documentation of `numpy.lib.format`, for versions 1.0 to 3.0 of the `.npy`
//! format.

use crate::{
    element::DType,
    error::{Error, Result},
    shape::Shape,
};

/// The parsed header of a `.npy` file.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) big_endian: bool,
    /// Whether the array is in Fortran order (the first axis innermost) instead of C order.
    pub(super) fortran_order: bool,
    pub(super) shape: Shape,
}

impl Header {
    /// Parses a `.npy` header, a Python dictionary with the keys `descr` (such as `'<f4'`),
    /// `fortran_order` and `shape` (such as `(2, 3)`) in any order.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut text = Cursor(text);
        let (mut descr, mut order, mut shape) = (None, None, None);
        text.expect("{")?;
        while !text.eat("}") {
            let key = text.string()?;
            text.expect(":")?;
            let is_new = match key {
                "descr" => descr.replace(element_type(&mut text)?).is_none(),
                "fortran_order" => order.replace(text.boolean()?).is_none(),
                "shape" => shape.replace(text.tuple()?).is_none(),
                _ => return Err(invalid(format!("unknown key `{key}` in the header"))),
            };
            if !is_new {
                return Err(invalid(format!("key `{key}` occurs twice in the header")));
            }
            if !text.eat(",") {
                text.expect("}")?;
                break;
            }
        }
        text.expect_end()?;
        let missing_error = |key| move || invalid(format!("the header has no key `{key}`"));
        let (dtype, big_endian) = descr.ok_or_else(missing_error("descr"))?;
        let fortran_order = order.ok_or_else(missing_error("fortran_order"))?;
        let shape = Shape::new(&shape.ok_or_else(missing_error("shape"))?)?;
        Ok(Self { dtype, big_endian, fortran_order, shape })
    }
}

/// Returns the `.npy` header that NumPy writes for little-endian values in C order, without the
/// padding at the end. Returns `None` for an element type that NumPy does not have.
pub(super) fn text(dtype: DType, shape: &[usize]) -> Option<String> {
    let descr = match dtype {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::Bf16 => return None,
    };
    let extents: Vec<_> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", extents.join(", "));
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    if let Some(first) = extents.first() {
        // Like NumPy, pad the header as if the first extent had 21 digits, so that a program that
        // appends rows can overwrite this extent in place.
        text.extend(std::iter::repeat_n(' ', 21usize.saturating_sub(first.len())));
    }
    Some(text)
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidData(reason.into())
}

/// Parses the element type in a `.npy` header. Returns the element type, and whether the elements
/// are big-endian.
fn element_type(text: &mut Cursor<'_>) -> Result<(DType, bool)> {
    if text.eat("[") {
        let reason =
            "the elements are records; only plain float16, float32 and float64 are supported";
        return Err(invalid(reason));
    }
    let descr = text.string()?;
    let dtype = match descr.get(1..) {
        Some("f2") => Some(DType::F16),
        Some("f4") => Some(DType::F32),
        Some("f8") => Some(DType::F64),
        _ => None,
    };
    match (dtype, descr.as_bytes().first()) {
        (Some(dtype), Some(b'<')) => Ok((dtype, false)),
        (Some(dtype), Some(b'>')) => Ok((dtype, true)),
        _ => {
            let reason = "only float16, float32 and float64 (f2, f4, f8) are supported";
            Err(invalid(format!("the elements are `{}`; {reason}", descr.escape_debug())))
        }
    }
}

/// Parser for the text of a Python dictionary. Field 0 is the text that remains to be parsed. The
/// parser skips spaces before each token.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_ascii_start();
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}`"))) }
    }

    fn expect_end(&mut self) -> Result<()> {
        self.0 = self.0.trim_ascii_start();
        if self.0.is_empty() { Ok(()) } else { Err(self.unexpected("its end")) }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found: String = self.0.chars().take(16).collect();
        invalid(format!("found `{}` in the header, expected {expected}", found.escape_debug()))
    }

    /// Parses a Python string literal. Escape sequences are not supported, because no key or
    /// element type of a `.npy` header contains an escape sequence.
    fn string(&mut self) -> Result<&'a str> {
        for quote in ["'", "\""] {
            if self.eat(quote) {
                let unclosed_error = self.unexpected("a terminated string");
                let (string, rest) = self.0.split_once(quote).ok_or(unclosed_error)?;
                self.0 = rest;
                return Ok(string);
            }
        }
        Err(self.unexpected("a string"))
    }

    fn boolean(&mut self) -> Result<bool> {
        let is_true = self.eat("True");
        if is_true || self.eat("False") {
            Ok(is_true)
        } else {
            Err(self.unexpected("True or False"))
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.eat(")") {
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let extent = self.0[..end].parse().map_err(|_| self.unexpected("an extent"))?;
            extents.push(extent);
            self.0 = &self.0[end..];
            self.eat("L"); // Python 2 appends L to long integers
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }
}
