//! Basic blocks of a kernel, and their immediate post-dominators.

use crate::{
    decode::{Flow, Item},
    kernel::{BasicBlock, ENDED, End, Instruction},
};

/// Splits decoded items into instructions and basic blocks.
pub(crate) fn basic_blocks(
    items: Vec<Item>,
    label_count: usize,
) -> Result<(Vec<Instruction>, Vec<BasicBlock>), String> {
    let mut code = Vec::new();
    let mut blocks: Vec<BasicBlock> = Vec::new();
    // Basic block of each label. Until all blocks are known, a jump at the end of a block refers to
    // a label instead of a block.
    let mut targets = vec![None; label_count];
    let mut start = 0;
    let mut last_line = 0;
    let mut push = |blocks: &mut Vec<BasicBlock>, end, line, code: &[Instruction]| {
        blocks.push(BasicBlock {
            instructions: start..code.len(),
            end,
            line,
            reconvergence: ENDED,
        });
        start = code.len();
    };
    // Whether the text before the current item has ended a basic block.
    let mut ended = true;
    for item in items {
        match item {
            Item::Instruction(instruction) => {
                last_line = instruction.line;
                code.push(instruction);
                ended = false;
            }
            Item::Flow { flow: Flow::Label(label), line } => {
                if !ended {
                    let next = blocks.len() + 1;
                    push(&mut blocks, End::Goto(next), line, &code);
                }
                ended = true;
                targets[label] = Some(blocks.len());
            }
            Item::Flow { flow: Flow::Branch { label, condition }, line } => {
                let next = blocks.len() + 1;
                let end = match condition {
                    // `usize::MAX − label` marks a label that is still to be resolved.
                    None => End::Goto(usize::MAX - label),
                    Some((predicate, negated)) => {
                        End::Branch { predicate, negated, taken: usize::MAX - label, next }
                    }
                };
                push(&mut blocks, end, line, &code);
                ended = true;
            }
            Item::Flow { flow: Flow::Barrier, line } => {
                let next = blocks.len() + 1;
                push(&mut blocks, End::Barrier(next), line, &code);
                ended = true;
            }
            Item::Flow { flow: Flow::Exit, line } => {
                push(&mut blocks, End::Exit, line, &code);
                ended = true;
            }
        }
    }
    if !ended {
        push(&mut blocks, End::Exit, last_line, &code);
    }
    let count = blocks.len();
    let resolve = |target: &mut usize| {
        if usize::MAX - *target < label_count {
            *target = targets[usize::MAX - *target].ok_or("a branch to an undefined label")?;
        }
        if *target < count { Ok(()) } else { Err("the code runs past its end") }
    };
    for block in &mut blocks {
        match &mut block.end {
            End::Goto(next) | End::Barrier(next) => resolve(next)?,
            End::Branch { taken, next, .. } => {
                resolve(taken)?;
                resolve(next)?;
            }
            End::Exit => {}
        }
    }
    let dominators = post_dominators(&blocks);
    for (block, dominator) in blocks.iter_mut().zip(dominators) {
        block.reconvergence = dominator;
    }
    Ok((code, blocks))
}

fn successors(block: &BasicBlock) -> impl Iterator<Item = usize> {
    let (first, second) = match block.end {
        End::Goto(next) | End::Barrier(next) => (next, None),
        End::Branch { taken, next, .. } => (taken, Some(next)),
        End::Exit => (ENDED, None),
    };
    [first].into_iter().chain(second)
}

/// Returns the immediate post-dominator of each basic block, by the algorithm of Cooper, Harvey and
/// Kennedy ("A Simple, Fast Dominance Algorithm", 2001) on the reversed graph.
fn post_dominators(blocks: &[BasicBlock]) -> Vec<usize> {
    let count = blocks.len();
    // The number `count` stands for the exit of the control-flow graph, where all threads end.
    let node = |block: usize| if block == ENDED { count } else { block };
    let mut predecessors = vec![Vec::new(); count + 1];
    for (number, block) in blocks.iter().enumerate() {
        for next in successors(block) {
            predecessors[node(next)].push(number);
        }
    }
    // Postorder of a depth-first search from the end, against the direction of the branches.
    let (mut order, mut number_of) = (Vec::new(), vec![usize::MAX; count + 1]);
    let (mut visited, mut path) = (vec![false; count + 1], vec![(count, 0)]);
    visited[count] = true;
    while let Some((block, tried)) = path.last_mut() {
        if let Some(&before) = predecessors[*block].get(*tried) {
            *tried += 1;
            if !visited[before] {
                visited[before] = true;
                path.push((before, 0));
            }
        } else {
            number_of[*block] = order.len();
            order.push(*block);
            path.pop();
        }
    }
    let mut dominator = vec![usize::MAX; count + 1];
    dominator[count] = count;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().skip(1) {
            let mut found = usize::MAX;
            for next in successors(&blocks[block]).map(node) {
                if dominator[next] == usize::MAX {
                    continue;
                }
                if found == usize::MAX {
                    found = next;
                    continue;
                }
                let mut other = next;
                while found != other {
                    while number_of[found] < number_of[other] {
                        found = dominator[found];
                    }
                    while number_of[other] < number_of[found] {
                        other = dominator[other];
                    }
                }
            }
            if dominator[block] != found {
                dominator[block] = found;
                changed = true;
            }
        }
    }
    dominator.truncate(count);
    dominator.iter().map(|&block| if block == count { ENDED } else { block }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(end: End) -> BasicBlock {
        BasicBlock { instructions: 0..0, end, line: 0, reconvergence: ENDED }
    }

    fn branch(taken: usize, next: usize) -> BasicBlock {
        block(End::Branch { predicate: 0, negated: false, taken, next })
    }

    #[test]
    fn branches_meet_behind_an_alternative() {
        let blocks = [branch(2, 1), block(End::Goto(3)), block(End::Goto(3)), block(End::Exit)];
        assert_eq!(post_dominators(&blocks), [3, 3, 3, ENDED]);
    }

    #[test]
    fn lanes_that_leave_a_loop_meet_behind_it() {
        let blocks = [block(End::Goto(1)), branch(3, 2), branch(1, 3), block(End::Exit)];
        assert_eq!(post_dominators(&blocks), [1, 3, 3, ENDED]);
    }

    #[test]
    fn a_branch_to_two_exits_has_no_meeting_point() {
        let blocks = [branch(2, 1), block(End::Exit), block(End::Exit)];
        assert_eq!(post_dominators(&blocks), [ENDED, ENDED, ENDED]);
    }
}
