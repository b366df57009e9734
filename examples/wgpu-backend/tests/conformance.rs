//! Runs cortado's conformance kit on the wgpu device. All tests share one device, so that pipelines
//! are compiled once. Each test has a separate stream, because some tests cause errors that the
//! next wait for the stream returns.

use cortado::{Memory, conformance::Kit};
use cortado_wgpu::WgpuDevice;
use std::sync::OnceLock;

fn stream() -> WgpuDevice {
    static DEVICE: OnceLock<WgpuDevice> = OnceLock::new();
    DEVICE.get_or_init(|| WgpuDevice::new().unwrap()).fork_queue().unwrap()
}

cortado::conformance!(wgpu, stream());

#[test]
fn readme_of_cortado_shows_the_native_kernels() {
    let readme = include_str!("../../../README.md");
    let report = Kit::new().cases(0).run(&stream());
    let coverage = report.coverage().to_string();
    for row in coverage.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let (kernel, cells) = row[2..].split_once(" |").unwrap();
        let cells = ["f32", "f64", "f16", "bf16"].into_iter().zip(cells.split('|'));
        let native_types: Vec<_> =
            cells.filter(|(_, cell)| *cell == " native ").map(|(element, _)| element).collect();
        let native_types = match native_types.len() {
            0 => "–".into(),
            4 => "all".into(),
            _ => native_types.join(" "),
        };
        let row = format!("| {kernel} | all | all | all | {native_types} |\n");
        assert!(readme.contains(&row), "README.md: row missing: {row}");
    }
}
