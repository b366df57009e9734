//! SVG documents of the command's plots and drawings: size, background and title.

use super::escape::escape_control;

/// Returns an SVG document of `width` × `height` pixels, with the title above the content `body`.
pub(super) fn svg_document(width: f64, height: f64, title: &str, body: &str) -> String {
    let title = escape_xml(title);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="ui-monospace, monospace" font-size="12">
<title>{title}</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{MARGIN}" y="{MARGIN}" font-weight="bold">{title}</text>
{body}</svg>
"##
    )
}

/// Margin around the content of an SVG image, in pixels.
pub(super) const MARGIN: f64 = 24.0;

/// Escapes the characters `&`, `<`, `>` and `"` for XML, and control characters, which XML does not
/// allow.
pub(super) fn escape_xml(text: &str) -> String {
    let text = escape_control(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
