//! A box around an object, and the areas of boxes.

/// A box around an object in a record.
///
/// ```
/// use cortado::data::AnnotatedBox;
///
/// let cat = AnnotatedBox { label: 8, edges: [0.25, 0.5, 0.75, 1.0], ..Default::default() };
/// assert!(!cat.is_difficult);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnnotatedBox {
    /// The label of the object.
    pub label: i32,
    /// The number of the object among the objects of its label in the record.
    pub instance: i32,
    /// The left, top, right and bottom edges, as fractions of the image's width and height.
    pub edges: [f32; 4],
    /// Whether the object is marked as difficult to recognize.
    pub is_difficult: bool,
}

/// Returns the area of a box, or 0 if the box has a negative width or height.
pub(super) fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left).max(0.0) * (bottom - top).max(0.0)
}

/// Returns the area of the intersection of two boxes.
pub(super) fn intersection(a: [f32; 4], b: [f32; 4]) -> f32 {
    area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])])
}

/// Returns the fraction of the box `a` that the box `b` covers.
pub(super) fn coverage(a: [f32; 4], b: [f32; 4]) -> f32 {
    match intersection(a, b) {
        0.0 => 0.0,
        common => common / area(a),
    }
}
