//! HTML of the report: document, sections, tables and figures.

use crate::drawing::{COLORS, escape_xml};
use std::fmt::Write;

/// Colors that replace [`COLORS`] on a dark background, in the same order.
const DARK_COLORS: [&str; 6] = ["#7FB2FF", "#FF8A80", "#7FD1A5", "#F0B454", "#B9A1F5", "#AAB6C3"];

const STYLE: &str = ":root{color-scheme:light dark;--text:#16202a;--back:#fff;--soft:#52606d;\
--line:#dde1e6}@media(prefers-color-scheme:dark){:root{--text:#e6ebf0;--back:#14181d;--soft:#aab6c3;\
--line:#333c46}}*{box-sizing:border-box}body{margin:0 auto;max-width:1360px;padding:16px;\
font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back)}h1{font-size:1.6rem}\
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}p{max-width:70ch}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:24px}\
figure{margin:0;min-width:0}figcaption{font-weight:600}svg{width:100%;height:auto}\
svg text{font-family:system-ui,sans-serif}.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
th,td{padding:2px 10px 2px 0;border-bottom:1px solid var(--line);text-align:left;\
vertical-align:top}td:first-child{overflow-wrap:anywhere}th{color:var(--soft)}summary{cursor:pointer;color:var(--soft)}\
@media(max-width:600px){th,td{padding-right:6px;font-size:.78rem}}";

/// Returns the whole page with the given content, which is HTML.
pub(super) fn document(content: &str) -> String {
    let mut dark = String::new();
    for (light, color) in COLORS.iter().zip(DARK_COLORS) {
        // `write!` to a `String` never fails.
        let _ = write!(
            dark,
            "svg [fill=\"{light}\"]{{fill:{color}}}svg [stroke=\"{light}\"]{{stroke:{color}}}"
        );
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>cortado: report of the benchmarks</title><style>{STYLE}\
         @media(prefers-color-scheme:dark){{{dark}svg [stroke=\"#DDE1E6\"]{{stroke:#333c46}}}}\
         </style></head>\n<body><h1>cortado: report of the benchmarks</h1>\n{content}</body></html>\n"
    )
}

/// Returns a section with a title, an introduction and its content, which is HTML; without content,
/// the section says that no results are stored.
pub(super) fn section(title: &str, introduction: &str, content: &str) -> String {
    let content = if content.is_empty() { "<p>No results are stored.</p>" } else { content };
    let (title, introduction) = (escape_xml(title), escape_xml(introduction));
    format!("<section><h2>{title}</h2>\n<p>{introduction}</p>\n{content}</section>\n")
}

/// Returns a row of a table.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Returns a table of texts; empty if there are no rows.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| {
        texts.map(|text| format!("<{tag}>{}</{tag}>", escape_xml(text))).collect::<String>()
    };
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    html += &cells("th", &mut header.iter().copied());
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let _ = writeln!(html, "<tr>{}</tr>", cells("td", &mut row.iter().map(|cell| &**cell)));
    }
    html + "</tbody></table></div>\n"
}

/// Returns an element that shows `content` after a click on `title`.
pub(super) fn details(title: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escape_xml(title))
}

/// Returns a chart with its caption and its table.
pub(super) fn figure(caption: &str, svg: &str, table: &str) -> String {
    let details = details("table", table);
    format!("<figure><figcaption>{}</figcaption>\n{svg}{details}</figure>\n", escape_xml(caption))
}
