//! Records with boxes around objects, from Caffe's `AnnotatedDatum` messages.

use super::{annotated_box::AnnotatedBox, image::Color, record::Record};
use crate::{
    error::{Error, Result},
    proto::{AnnotatedDatum, Message, Name},
};

impl Record {
    /// Fills this record from a serialized `AnnotatedDatum` message, like
    /// [`read_datum`](Self::read_datum), and stores the boxes of the message.
    ///
    /// ```
    /// use cortado::{data::{Color, Record}, proto::{self, AnnotatedDatum, Message}};
    ///
    /// let text = r#"datum { channels: 1 height: 1 width: 2 data: "ab" } type: BBOX
    ///     annotation_group { group_label: 3 annotation { bbox { xmax: 0.5 ymax: 1 } } }"#;
    /// let datum: AnnotatedDatum = proto::parse_text(text, "datum")?;
    /// let mut record = Record::default();
    /// record.read_annotated_datum(&datum.encode_to_vec(), Color::AsStored)?;
    /// assert_eq!((record.count(), record.boxes()[0].label), (2, 3));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for bytes that are not an `AnnotatedDatum`, for an annotation
    /// without a box and for an edge that is not finite; the error names the group and the
    /// annotation. Returns any error from `Record::try_from` and [`Image::decode`](super::Image::decode).
    pub fn read_annotated_datum(&mut self, message: &[u8], color: Color) -> Result<()> {
        let annotated = AnnotatedDatum::decode(message).map_err(|error| {
            Error::InvalidData(format!("not a {}: {error}", AnnotatedDatum::full_name()))
        })?;
        let Some(datum) = annotated.datum else {
            return Err(Error::InvalidData(format!(
                "{}: the field datum is missing; for records without boxes, use a Data layer",
                AnnotatedDatum::full_name()
            )));
        };
        self.read_datum_message(datum, color)?;
        for (g, group) in annotated.annotation_group.iter().enumerate() {
            for (a, annotation) in group.annotation.iter().enumerate() {
                let invalid = |reason: String| {
                    Err(Error::InvalidData(format!(
                        "annotation_group {g}, annotation {a}: {reason}"
                    )))
                };
                let Some(bbox) = &annotation.bbox else {
                    return invalid("the field bbox is missing".into());
                };
                let edges = [bbox.xmin(), bbox.ymin(), bbox.xmax(), bbox.ymax()];
                if edges.iter().any(|edge| !edge.is_finite()) {
                    return invalid(format!("the edges must be finite, found {edges:?}"));
                }
                self.boxes.push(AnnotatedBox {
                    label: group.group_label(),
                    instance: annotation.instance_id(),
                    edges,
                    is_difficult: bbox.difficult(),
                });
            }
        }
        Ok(())
    }
}
