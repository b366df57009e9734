//! Drawings as SVG images: charts, whose axes and curves the crate `plotters` draws, and documents.
//!
//! The plots and drawings of the command `cortado` and the report of
//! [`bench_kit`](crate::bench_kit) use this module.

mod chart;
mod document;
mod scale;

pub use chart::{AxisScale, COLORS, Chart, Mark, Series};
#[cfg(test)] // used by bench_kit
pub(crate) use document::SVG_NAMESPACE;
pub use document::{MARGIN, escape_xml, svg_document};
pub use scale::format_number;
