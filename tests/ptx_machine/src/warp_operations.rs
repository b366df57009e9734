//! Instructions that exchange values between the lanes of a warp.

use crate::{
    block::Block,
    kernel::Instruction,
    warp::{LANES, Value, Warp},
};

/// Records a fault unless every lane names the lanes that run the instruction, as `shfl.sync` and
/// `vote.sync` demand. A mask that names a lane which has already ended is a fault, too.
fn check_members(warp: &mut Warp, mask: u32, text: &str) {
    let masks = u32::read(warp, mask);
    if warp.faulty != 0 {
        return;
    }
    for (lane, mask) in masks.into_iter().enumerate() {
        if warp.is_active(lane) && mask != warp.active {
            let active = warp.active;
            let problem =
                format!("{text}: the mask is {mask:08x}, but the lanes {active:08x} take part");
            return warp.fail(lane, problem);
        }
    }
}

/// `shfl.sync.bfly.b32`: each lane reads the value of the lane whose number differs in the bits of
/// the second operand.
pub(crate) fn shuffle_butterfly(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    let [in_range, clamp, mask] = instruction.list[..] else { unreachable!() };
    check_members(warp, mask, "shfl.sync");
    let values = u32::read(warp, instruction.a);
    let (bits, clamps) = (u32::read(warp, instruction.b), u32::read(warp, clamp));
    if warp.faulty != 0 {
        return;
    }
    let (mut results, mut valid) = (values, 0);
    for lane in 0..LANES {
        let (bit, clamp) = (bits[lane] & 0x1f, clamps[lane] & 0x1f);
        let segment = clamps[lane] >> 8 & 0x1f;
        let max_lane = lane as u32 & segment | clamp & !segment;
        let source = lane as u32 ^ bit;
        if source > max_lane {
            continue;
        }
        valid |= 1 << lane;
        results[lane] = values[source as usize];
        if warp.is_active(lane) && !warp.is_active(source as usize) {
            return warp.fail(lane, format!("shfl.sync: lane {source} does not take part"));
        }
    }
    u32::write(warp, instruction.to, &results);
    warp.set_predicate(in_range, valid);
}

/// `vote.sync.ballot.b32`: each lane reads the mask of the lanes whose predicate is true.
pub(crate) fn ballot(warp: &mut Warp, _: &mut Block<'_>, instruction: &Instruction) {
    check_members(warp, instruction.b, "vote.sync");
    let votes = warp.predicate(instruction.a) & warp.active;
    u32::write(warp, instruction.to, &[votes; LANES]);
}
