//! Decoding of one instruction of a kernel.

use super::{Decoder, Flow, Product};
use crate::{
    arithmetic::Precision,
    instructions::{self, Form},
    kernel::Instruction,
    text,
    warp::Class,
};

impl<'a> Decoder<'a> {
    pub(super) fn instruction(&mut self, text: &'a str) -> Result<(), String> {
        if let Some(rest) = text.strip_prefix('@') {
            let (predicate, rest) =
                rest.split_once(char::is_whitespace).ok_or_else(|| self.error("malformed"))?;
            let (name, negated) = match predicate.strip_prefix('!') {
                Some(name) => (name, true),
                None => (predicate, false),
            };
            let label =
                rest.trim().strip_prefix("bra").and_then(|rest| rest.split_whitespace().last());
            let Some(label) = label else {
                return Err(self.error("unknown predicated instruction"));
            };
            let condition = Some((self.register_of(Class::Predicate, name)?, negated));
            let label = self.label(label);
            self.push_flow(Flow::Branch { label, condition });
            return Ok(());
        }
        let (opcode, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let operands = text::operands(rest);
        match (opcode, operands.as_slice()) {
            ("bra" | "bra.uni", [label]) => {
                let label = self.label(label);
                self.push_flow(Flow::Branch { label, condition: None });
                return Ok(());
            }
            ("ret", []) => {
                match self.scope().end {
                    Some(label) => self.push_flow(Flow::Branch { label, condition: None }),
                    None => self.push_flow(Flow::Exit),
                }
                return Ok(());
            }
            ("bar.sync", ["0"]) => {
                self.push_flow(Flow::Barrier);
                return Ok(());
            }
            _ => {}
        }
        let instruction = self
            .vector_move(opcode, &operands)
            .or_else(|| self.access(opcode, &operands))
            .or_else(|| self.warp_instruction(opcode, &operands));
        if let Some(instruction) = instruction {
            let instruction = instruction?;
            for slot in instruction.list.iter().chain([&instruction.to]) {
                self.forget_products(*slot);
            }
            self.push(instruction);
            return Ok(());
        }
        let Some(Form { execute, to, sources }) = instructions::form(opcode) else {
            return Err(self.error("unknown instruction"));
        };
        if operands.len() != sources.len() + 1 {
            return Err(self.error("wrong number of operands"));
        }
        let to = self.register_of(to, operands[0])?;
        let mut slots = Vec::new();
        for (class, operand) in sources.iter().zip(&operands[1..]) {
            slots.push(self.source(*class, operand)?);
        }
        let slot = |i| slots.get(i).copied().unwrap_or(0);
        let (a, b, c) = (slot(0), slot(1), slot(2));
        let list = slots.iter().skip(3).copied().collect();
        let mut instruction = Instruction { to, a, b, c, list, ..Instruction::new(execute) };
        if self.precision == Precision::Least {
            instruction = self.fuse(opcode, instruction);
        }
        self.push(instruction);
        Ok(())
    }

    /// Forgets the products that have the register `slot` as their result or as a factor.
    fn forget_products(&mut self, slot: u32) {
        self.products.retain(|product| product.to != slot && !product.factors.contains(&slot));
    }

    /// Replaces an addition that has a product as operand by an `fma`. Records each product for the
    /// additions that follow.
    fn fuse(&mut self, opcode: &str, instruction: Instruction) -> Instruction {
        let class = if opcode.ends_with("64") { Class::Double } else { Class::Word };
        let Instruction { to, a, b, .. } = instruction;
        let product = |slot| {
            let mut products = self.products.iter();
            products.find(|product| (product.class, product.to) == (class, slot))
        };
        let mut result = instruction;
        for (is_first, slot, other) in [(true, a, b), (false, b, a)] {
            if let (Some(form), Some(product)) =
                (instructions::fused(opcode, is_first), product(slot))
            {
                let [a, b] = product.factors;
                result = Instruction { to, a, b, c: other, ..Instruction::new(form.execute) };
                break;
            }
        }
        self.forget_products(to);
        if matches!(opcode, "mul.f32" | "mul.f64") && ![a, b].contains(&to) {
            self.products.push(Product { class, to, factors: [a, b] });
        }
        result
    }

    /// Decodes `mov` between a register and a vector of registers of half its width.
    fn vector_move(
        &mut self,
        opcode: &str,
        operands: &[&str],
    ) -> Option<Result<Instruction, String>> {
        let &[to, from] = operands else { return None };
        let class = match opcode {
            "mov.b32" => Class::Word,
            "mov.b64" => Class::Double,
            _ => return None,
        };
        let mut decode = || {
            let (is_pack, vector) = match (to.starts_with('{'), from.starts_with('{')) {
                (false, true) => (true, from),
                (true, false) => (false, to),
                _ => return Err(self.error("unknown instruction")),
            };
            let list = self.elements(Class::Word, vector, is_pack)?;
            if list.len() != 2 {
                return Err(self.error("expected two elements"));
            }
            let mut instruction = Instruction::new(instructions::vector_move(class, is_pack));
            match is_pack {
                true => instruction.to = self.register_of(class, to)?,
                false => instruction.a = self.register_of(class, from)?,
            }
            Ok(Instruction { list: list.into(), ..instruction })
        };
        (to.starts_with('{') || from.starts_with('{')).then(&mut decode)
    }

    /// Decodes loads, stores and atomics.
    fn access(&mut self, opcode: &str, operands: &[&str]) -> Option<Result<Instruction, String>> {
        let mut parts = opcode.split('.');
        let (kind, space) = (parts.next()?, parts.next()?);
        if !matches!(kind, "ld" | "st" | "atom") {
            return None;
        }
        Some(self.access_to(opcode, kind, space, parts.collect(), operands))
    }

    fn access_to(
        &mut self,
        opcode: &str,
        kind: &str,
        space: &str,
        parts: Vec<&str>,
        operands: &[&str],
    ) -> Result<Instruction, String> {
        let unknown = |decoder: &Self| decoder.error("unknown instruction");
        if opcode == "atom.global.max.u64" {
            let &[to, address, from] = operands else { return Err(unknown(self)) };
            let (a, offset) = self.address(Class::Double, address)?;
            let (to, b) = (self.register_of(Class::Double, to)?, self.source(Class::Double, from)?);
            let atomic = Instruction::new(instructions::atomic_max);
            return Ok(Instruction { to, a, b, offset, ..atomic });
        }
        let (count, element) = match parts.as_slice() {
            ["v2", element] => (2, *element),
            ["v4", element] => (4, *element),
            [element] => (1, *element),
            _ => return Err(unknown(self)),
        };
        let (narrowest, bytes) = match element {
            "u8" | "s8" => (Class::Word, 1),
            "u16" => (Class::Word, 2),
            "u32" | "s32" | "f32" => (Class::Word, 4),
            "u64" | "f64" => (Class::Double, 8),
            _ => return Err(unknown(self)),
        };
        let &[first, second] = operands else { return Err(unknown(self)) };
        let (address, values) = if kind == "ld" { (second, first) } else { (first, second) };
        // A register may be wider than the element.
        let class = match self.register(values) {
            Ok((class, _)) => class,
            Err(_) => narrowest,
        };
        let list = self.elements(class, values, kind == "st")?;
        if list.len() != count {
            return Err(self.error(format!("expected {count} elements")));
        }
        let is_call = self.scopes.len() > 1 || kind == "st" || address.contains("retval");
        if space == "param" && is_call {
            return self.call_parameter(class, kind, address, list[0]);
        }
        let execute =
            instructions::access(kind, space, element, class).ok_or_else(|| unknown(self))?;
        let is_variable = !address.starts_with("[%");
        // The address of a parameter is a register of 64 bits, as `mov.b64` yields it.
        let address_class = if space == "shared" { Class::Word } else { Class::Double };
        let (a, offset) = self.address(address_class, address)?;
        if space == "shared" {
            self.shared_granule = self.shared_granule.min(bytes);
        }
        let execute = if space == "param" && is_variable {
            instructions::constant_parameter(element, class).ok_or_else(|| unknown(self))?
        } else {
            execute
        };
        Ok(Instruction { a, offset, list: list.into(), ..Instruction::new(execute) })
    }

    /// Decodes an access to a parameter or result of a called function, which is a register.
    fn call_parameter(
        &mut self,
        class: Class,
        kind: &str,
        address: &str,
        value: u32,
    ) -> Result<Instruction, String> {
        let name = address.trim_matches(['[', ']']);
        let name = name.strip_suffix("+0").unwrap_or(name);
        let parameter = self.register_of(class, name)?;
        let (to, a) = if kind == "ld" { (value, parameter) } else { (parameter, value) };
        Ok(Instruction { to, a, ..Instruction::new(instructions::register_move(class)) })
    }

    /// Decodes instructions in which the lanes of a warp take part together.
    fn warp_instruction(
        &mut self,
        opcode: &str,
        operands: &[&str],
    ) -> Option<Result<Instruction, String>> {
        let mut decode = || {
            use Class::{Predicate, Word};
            let unknown = |decoder: &Self| decoder.error("wrong number of operands");
            if opcode == "shfl.sync.bfly.b32" {
                let &[to, from, lane, clamp, mask] = operands else { return Err(unknown(self)) };
                let Some((to, in_range)) = to.split_once('|') else { return Err(unknown(self)) };
                let list = [
                    self.register_of(Predicate, in_range)?,
                    self.source(Word, clamp)?,
                    self.source(Word, mask)?,
                ];
                return Ok(Instruction {
                    to: self.register_of(Word, to)?,
                    a: self.source(Word, from)?,
                    b: self.source(Word, lane)?,
                    list: list.into(),
                    ..Instruction::new(instructions::shuffle_butterfly)
                });
            }
            if opcode == "vote.sync.ballot.b32" {
                let &[to, from, mask] = operands else { return Err(unknown(self)) };
                return Ok(Instruction {
                    to: self.register_of(Word, to)?,
                    a: self.source(Predicate, from)?,
                    b: self.source(Word, mask)?,
                    ..Instruction::new(instructions::ballot)
                });
            }
            if let Some(execute) = instructions::load_matrix(opcode) {
                let &[to, address] = operands else { return Err(unknown(self)) };
                let (a, offset) = self.address(Word, address)?;
                let list = self.elements(Word, to, false)?;
                if list.len() != 4 {
                    return Err(unknown(self));
                }
                return Ok(Instruction {
                    a,
                    offset,
                    list: list.into(),
                    ..Instruction::new(execute)
                });
            }
            let (execute, sizes) = instructions::matrix_multiply(opcode).expect("checked below");
            if operands.len() != 4 {
                return Err(unknown(self));
            }
            let mut list = Vec::new();
            for (i, operand) in operands.iter().enumerate() {
                let elements = self.elements(Word, operand, i > 0)?;
                if elements.len() != sizes[i] {
                    return Err(self.error("wrong number of elements"));
                }
                list.extend(elements);
            }
            Ok(Instruction { list: list.into(), ..Instruction::new(execute) })
        };
        let is_known = matches!(opcode, "shfl.sync.bfly.b32" | "vote.sync.ballot.b32")
            || instructions::load_matrix(opcode).is_some()
            || instructions::matrix_multiply(opcode).is_some();
        is_known.then(&mut decode)
    }
}
