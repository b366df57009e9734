//! Estimate of the fraction of an A100's peak that a launch reaches, from its counters. The document
//! `docs/gpu/counters.md` explains the formula.

use crate::table::Row;

/// Properties of an A100 with 40 GB ("NVIDIA A100 Tensor Core GPU Architecture"), per cycle of its
/// boost clock of 1.41 GHz.
const MULTIPROCESSORS: f64 = 108.0;
const SCHEDULERS: f64 = 4.0;
/// Cycles for which a warp instruction occupies a unit of a scheduler. The units have 16 lanes for
/// f32, 8 for f64 and 4 for special functions. A tensor core computes 256 FMAs of 16 bits or 128 of
/// TF32 per cycle; an `mma` of the kernels has 2048 or 1024.
pub(crate) const FLOAT_CYCLES: f64 = 2.0;
pub(crate) const DOUBLE_CYCLES: f64 = 4.0;
const SPECIAL_CYCLES: f64 = 8.0;
pub(crate) const MATRIX_CYCLES: f64 = 8.0;
const SECTOR: f64 = 32.0;
/// Bytes per cycle that the L2 cache and the memory deliver to all multiprocessors.
const L2_BYTES: f64 = 5120.0;
const MEMORY_BYTES: f64 = 1555.0 / 1.41;

/// Estimate for one launch.
pub(crate) struct Estimate {
    /// The resource that limits the launch.
    pub(crate) limit: &'static str,
    /// Fraction of the time in which the launch does the arithmetic or the memory accesses that it
    /// cannot avoid.
    pub(crate) fraction: f64,
}

/// Returns the number of machine instructions of all warps. PTX of the main loop counts as many
/// machine instructions as the main loop of the machine code has for the same arithmetic.
fn machine_instructions(launch: &Row, code: Option<&Row>) -> f64 {
    let (instructions, in_loop) = (launch.count("instructions"), launch.count("loop"));
    let per_main = launch.count("loop_text") / launch.count("loop_main_text");
    let scale = code.map_or(1.0, |code| code.count("loop") / code.count("loop_main") / per_main);
    // Without a main loop in the PTX or in the machine code, the quotient is not finite.
    let scale = if scale.is_finite() && scale > 0.0 { scale } else { 1.0 };
    instructions - in_loop + in_loop * scale
}

/// Returns the estimate for a launch. `code` is the row of the machine-code table for the launch's
/// kernel.
pub(crate) fn estimate(launch: &Row, code: Option<&Row>) -> Estimate {
    let blocks: f64 = launch.text("blocks").split('x').flat_map(str::parse::<f64>).product();
    // The multiprocessor with the most blocks determines the time.
    let share = (blocks / MULTIPROCESSORS).ceil() / blocks;
    let units = |count: f64, cycles: f64| count * cycles * share / SCHEDULERS;
    let unit = |kind: &str, cycles: f64| units(launch.count(kind), cycles);
    let wavefronts =
        launch.count("shared_loads_wavefronts") + launch.count("shared_stores_wavefronts");
    let requested = launch.count("loads_sectors") + launch.count("stores_sectors");
    let touched = launch.count("read_sectors") + launch.count("written_sectors");
    let arithmetic = [
        ("tensor cores", unit("mma", MATRIX_CYCLES)),
        ("f32", unit("float", FLOAT_CYCLES)),
        ("f64", unit("double", DOUBLE_CYCLES)),
        ("memory", touched * SECTOR / MEMORY_BYTES),
    ];
    let overhead = [
        ("issue slots", units(machine_instructions(launch, code), 1.0)),
        ("special functions", unit("special", SPECIAL_CYCLES)),
        ("shared memory", wavefronts * share),
        ("L2 cache", requested * SECTOR / L2_BYTES),
    ];
    let longest = |bounds: &[(&'static str, f64)]| {
        bounds.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).expect("four bounds")
    };
    let (useful, other) = (longest(&arithmetic), longest(&overhead));
    let (limit, cycles) = longest(&[other, useful]);
    Estimate { limit, fraction: useful.1 / cycles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    /// Returns the estimate for a launch of 108 blocks with these counters.
    fn of(counters: &[(&str, u64)], code: Option<&str>) -> (&'static str, f64) {
        let names: Vec<_> = counters.iter().map(|(name, _)| *name).collect();
        let values: Vec<_> = counters.iter().map(|(_, value)| value.to_string()).collect();
        let text =
            format!("kernel\tblocks\t{}\na\t108x1x1\t{}", names.join("\t"), values.join("\t"));
        let launch = Table::parse(&text, 1);
        let code =
            code.map(|values| Table::parse(&format!("kernel\tloop\tloop_main\na\t{values}"), 1));
        let Estimate { limit, fraction } =
            estimate(&launch.rows[0], code.as_ref().map(|code| &code.rows[0]));
        (limit, fraction)
    }

    #[test]
    fn issue_slots_limit_a_loop_with_few_tensor_core_operations() {
        // 32 `mma` of 8 cycles need 256 cycles; 512 instructions need 512 issue slots.
        let counters = [
            ("instructions", 108 * 512),
            ("mma", 108 * 32),
            ("loop", 108 * 512),
            ("loop_text", 512),
            ("loop_main_text", 32),
        ];
        assert_eq!(of(&counters, None), ("issue slots", 0.5));
        // The machine code has half as many instructions per `mma` as the PTX.
        assert_eq!(of(&counters, Some("128\t16")), ("tensor cores", 1.0));
    }

    #[test]
    fn memory_limits_a_launch_with_little_arithmetic() {
        let counters = [("instructions", 10), ("read_sectors", 1000), ("loads_sectors", 1000)];
        assert_eq!(of(&counters, None), ("memory", 1.0));
        // Each sector is requested ten times.
        let counters = [("instructions", 10), ("read_sectors", 1000), ("loads_sectors", 10_000)];
        let (limit, fraction) = of(&counters, None);
        assert_eq!((limit, (fraction * 100.0).round()), ("L2 cache", 46.0));
    }
}
