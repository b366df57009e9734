//! The backend against cortado's own checks: one device, whose pipelines are compiled once, and for
//! each test a stream of its own, since some of them make the device complain.

use cortado::{Memory, conformance::Kit};
use cortado_wgpu::WgpuDevice;
use std::sync::OnceLock;

fn stream() -> WgpuDevice {
    static DEVICE: OnceLock<WgpuDevice> = OnceLock::new();
    DEVICE.get_or_init(|| WgpuDevice::new().unwrap()).fork().unwrap()
}

cortado::conformance!(wgpu, stream());

#[test]
fn cortados_readme_shows_the_coverage() {
    let readme = include_str!("../../../README.md");
    let report = Kit::new().cases(0).run(&stream());
    for row in report.coverage().to_string().lines().skip(2) {
        let (kernel, cells) = row[2..].split_once(" |").unwrap();
        let cells = ["f32", "f64", "f16", "bf16"].into_iter().zip(cells.split('|'));
        let own: Vec<_> =
            cells.filter(|(_, cell)| *cell == " native ").map(|(element, _)| element).collect();
        let own = match own.len() {
            0 => "–".into(),
            4 => "all".into(),
            _ => own.join(" "),
        };
        let shown = format!("| {kernel} | all | all | all | {own} |\n");
        assert!(readme.contains(&shown), "not shown: {shown}");
    }
}
