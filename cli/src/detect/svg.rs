//! Drawings of detected objects as SVG documents that contain the image.

use crate::escape::escape_control;
use cortado::{
    data::Image,
    detector::Detection,
    drawing::{MARGIN, escape_xml, svg_document},
    error::Result,
};
use std::path::Path;

/// Colors of the boxes; all objects of one class have the same color.
const COLORS: [&str; 6] = ["#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080"];

/// Distance of the image from the upper edge of the document, in pixels. The title is above the
/// image.
const TOP: f64 = 2.0 * MARGIN;

/// Returns an SVG document with an image, and a box with the class and score of each object.
pub(super) fn drawing(image: &Image, path: &Path, detections: &[Detection]) -> Result<String> {
    let [_, height, width] = image.shape();
    let pixels = base64(&image.encode_png()?);
    let mut body = format!(
        "<g transform=\"translate({MARGIN} {TOP})\">\n\
         <image width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{pixels}\"/>\n"
    );
    for detection in detections.iter().filter(|d| d.edges.iter().all(|edge| edge.is_finite())) {
        let [left, top, right, bottom] = detection.edges;
        let (width, height) = ((right - left).max(0.0), (bottom - top).max(0.0));
        let color = COLORS[detection.class % COLORS.len()];
        let name = escape_xml(&escape_control(&detection.class_name()));
        // The text is inside the box, so that the text is visible even if the box touches the upper
        // edge of the image.
        body += &format!(
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{name} {:.2}</text>\n",
            left.max(0.0) + 4.0,
            top.max(0.0) + 14.0,
            detection.score,
        );
    }
    body += "</g>\n";
    let (width, height) = (width as f64 + 2.0 * MARGIN, height as f64 + TOP + MARGIN);
    let title = escape_control(&path.display().to_string());
    Ok(svg_document(width, height, &title, &body))
}

/// Encodes bytes in base64 (RFC 4648) with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for i in 0..4 {
            let digit = char::from(DIGITS[((bits >> (18 - 6 * i)) & 63) as usize]);
            text.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_agrees_with_the_test_vectors_of_the_rfc() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xe0]), "/+A=");
    }
}
