//! Report on a file's contents, as a table or as JSON.

use super::{
    super::{escape::escape_control, format_g::format_g, table::align_columns},
    array::Array,
    file_kind::FileKind,
};
use cortado::proto::LayerParameter;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Report on the contents of one file.
pub(super) struct FileReport {
    pub(super) file: String,
    kind: FileKind,
    pub(super) fields: Vec<(String, Value)>,
    /// Layers of the net; `None` if files of this kind have no layers.
    pub(super) layers: Option<Vec<LayerReport>>,
    /// Arrays in the file; `None` if files of this kind have no arrays.
    pub(super) arrays: Option<Vec<Array>>,
}

/// Report on one layer of a net.
pub(super) struct LayerReport {
    name: String,
    kind: String,
    bottoms: Vec<String>,
    tops: Vec<String>,
}

impl LayerReport {
    pub(super) fn new(layer: &LayerParameter) -> Self {
        Self {
            name: layer.name().to_owned(),
            kind: layer.r#type().to_owned(),
            bottoms: layer.bottom.clone(),
            tops: layer.top.clone(),
        }
    }
}

impl FileReport {
    pub(super) fn new(file: &str, kind: FileKind) -> Self {
        Self { file: file.to_owned(), kind, fields: Vec::new(), layers: None, arrays: None }
    }

    /// Formats the report as one indented JSON object.
    pub(super) fn json(&self) -> String {
        let mut object = Map::new();
        object.insert("file".into(), json!(self.file));
        object.insert("kind".into(), json!(self.kind.name()));
        if !self.fields.is_empty() {
            object.insert("fields".into(), Value::Object(self.grouped_fields()));
        }
        if let Some(layers) = &self.layers {
            let layers: Vec<_> = layers.iter().map(LayerReport::json).collect();
            object.insert("layers".into(), json!(layers));
        }
        if let Some(arrays) = &self.arrays {
            let rows: Vec<_> = arrays.iter().map(Array::json).collect();
            object.insert("arrays".into(), json!(rows));
            let (elements, bytes) = total_elements_and_bytes(arrays);
            let total = json!({ "arrays": arrays.len(), "elements": elements, "bytes": bytes });
            object.insert("total".into(), total);
        }
        format!("{:#}\n", Value::Object(object))
    }

    /// Returns the message's fields as a JSON object, in which a repeated field is a list.
    fn grouped_fields(&self) -> Map<String, Value> {
        let mut fields = Map::<String, Value>::new();
        for (name, value) in &self.fields {
            match fields.get_mut(name) {
                Some(Value::Array(list)) => list.push(value.clone()),
                Some(first) => *first = json!([first.take(), value]),
                None => {
                    fields.insert(name.clone(), value.clone());
                }
            }
        }
        fields
    }

    /// Formats the report as text with tables.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{}: {}\n", self.file, self.kind.name());
        for (name, value) in &self.fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // `writeln!` to a `String` never fails.
            let _ = writeln!(text, "{name}: {}", escape_control(&value));
        }
        if let Some(layers) = &self.layers {
            let mut rows = vec![["layer", "type", "bottoms", "tops"].map(str::to_owned).to_vec()];
            rows.extend(layers.iter().map(LayerReport::row));
            text.push('\n');
            text.push_str(&align_columns(&rows, 4));
        }
        if let Some(arrays) = &self.arrays {
            let header =
                ["array", "type", "shape", "elements", "bytes", "min", "max", "mean", "std"];
            let mut rows = vec![header.map(str::to_owned).to_vec()];
            rows[0].extend(["NaN", "inf"].map(str::to_owned));
            rows.extend(arrays.iter().map(Array::row));
            let (elements, bytes) = total_elements_and_bytes(arrays);
            let empty = String::new;
            rows.push(vec![
                "total".into(),
                empty(),
                empty(),
                elements.to_string(),
                bytes.to_string(),
            ]);
            text.push('\n');
            text.push_str(&align_columns(&rows, 3));
        }
        text
    }
}

impl LayerReport {
    fn json(&self) -> Value {
        let Self { name, kind, bottoms, tops } = self;
        json!({ "name": name, "type": kind, "bottoms": bottoms, "tops": tops })
    }

    fn row(&self) -> Vec<String> {
        let names = |names: &[String]| escape_control(&names.join(" "));
        vec![
            escape_control(&self.name),
            escape_control(&self.kind),
            names(&self.bottoms),
            names(&self.tops),
        ]
    }
}

impl Array {
    fn json(&self) -> Value {
        let statistics = self.statistics.as_ref();
        json!({
            "name": self.name,
            "type": self.dtype.name(),
            "shape": self.shape[..],
            "elements": self.elements(),
            "bytes": self.bytes(),
            "min": statistics.map(|s| s.min),
            "max": statistics.map(|s| s.max),
            "mean": statistics.map(|s| s.mean),
            "std": statistics.map(|s| s.std),
            "nan": self.nans,
            "inf": self.infinities,
        })
    }

    fn row(&self) -> Vec<String> {
        let extents: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        let mut row =
            vec![escape_control(&self.name), self.dtype.name().to_owned(), extents.join("×")];
        row.extend([self.elements(), self.bytes()].map(|size| size.to_string()));
        row.extend(match &self.statistics {
            Some(s) => [s.min, s.max, s.mean, s.std].map(format_g),
            None => ["–"; 4].map(str::to_owned),
        });
        row.extend([self.nans, self.infinities].map(|count| count.to_string()));
        row
    }
}

/// Returns the total number of elements and the total number of bytes of the arrays.
fn total_elements_and_bytes(arrays: &[Array]) -> (usize, usize) {
    // The sums of elements and bytes do not overflow, because all arrays are in memory at once.
    (arrays.iter().map(Array::elements).sum(), arrays.iter().map(Array::bytes).sum())
}
