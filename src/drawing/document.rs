//! SVG documents: size, background and title.

/// Returns an SVG document of `width` × `height` pixels, with the title above the content `body`,
/// which is SVG text.
///
/// ```
/// use cortado::drawing::svg_document;
///
/// let svg = svg_document(100.0, 50.0, "a < b", "<circle r=\"3\"/>\n");
/// assert!(svg.contains("<title>a &lt; b</title>"));
/// ```
pub fn svg_document(width: f64, height: f64, title: &str, body: &str) -> String {
    let title = escape_xml(title);
    format!(
        r##"<svg xmlns="{SVG_NAMESPACE}" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="ui-monospace, monospace" font-size="12">
<title>{title}</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{MARGIN}" y="{MARGIN}" font-weight="bold">{title}</text>
{body}</svg>
"##
    )
}

/// XML namespace of SVG.
pub(crate) const SVG_NAMESPACE: &str = concat!("http:/", "/www.w3.org/2000/svg");

/// Margin around the content of an SVG image, in pixels.
pub const MARGIN: f64 = 24.0;

/// Escapes the characters `&`, `<`, `>` and `"` for XML and HTML, and control characters, which XML
/// does not allow.
///
/// ```
/// assert_eq!(cortado::drawing::escape_xml("a<b\u{1b}"), "a&lt;b\\u{1b}");
/// ```
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}
