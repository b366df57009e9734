//! Decoding of a kernel's text to instructions in basic blocks.

mod instruction;

use crate::{
    arithmetic::Precision,
    counters::Kind,
    flow,
    kernel::{Instruction, Kernel, SPECIAL, Variable},
    shared::offset_after,
    text::{self, Call, Declaration, Function, Module, Statement, error_at},
    warp::Class,
};
use std::collections::HashMap;

/// An instruction that ends a basic block, or a place where one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Label(usize),
    Branch { label: usize, condition: Option<(u32, bool)> },
    Barrier,
    Exit,
}

/// One element of the decoded text.
pub(crate) enum Item {
    Instruction(Instruction),
    Flow { flow: Flow, line: u32 },
}

/// Names that are visible in the body of one function.
#[derive(Default)]
struct Scope {
    /// The registers of the function; for a called function, also its parameters.
    registers: HashMap<String, (Class, u32)>,
    labels: HashMap<String, usize>,
    /// Label at the end of a called function.
    end: Option<usize>,
}

/// State of the decoding of one kernel.
struct Decoder<'a> {
    module: &'a Module,
    items: Vec<Item>,
    scopes: Vec<Scope>,
    label_count: usize,
    words: u32,
    doubles: u32,
    predicates: u32,
    word_constants: HashMap<u32, u32>,
    double_constants: HashMap<u64, u32>,
    predicate_constants: HashMap<bool, u32>,
    parameters: HashMap<String, Variable>,
    /// Variables that are declared in the kernel.
    declared: HashMap<String, Declaration>,
    /// Variables that the kernel uses.
    shared: HashMap<String, Variable>,
    shared_end: usize,
    shared_granule: usize,
    precision: Precision,
    /// Registers that hold a product of the current basic block, with the factors. Empty unless the
    /// machine fuses products and sums.
    products: Vec<Product>,
    line: u32,
    statement: &'a str,
}

/// A product in a register, whose factors are still in their registers.
struct Product {
    class: Class,
    to: u32,
    factors: [u32; 2],
}

/// Decodes the kernel `name` of a module.
pub(crate) fn decode(module: &Module, name: &str, precision: Precision) -> Result<Kernel, String> {
    let function = module.kernels.get(name).ok_or_else(|| format!("{name}: no such kernel"))?;
    let mut decoder = Decoder {
        module,
        items: Vec::new(),
        scopes: vec![Scope::default()],
        label_count: 0,
        words: SPECIAL.len() as u32,
        doubles: 0,
        predicates: 0,
        word_constants: HashMap::new(),
        double_constants: HashMap::new(),
        predicate_constants: HashMap::new(),
        parameters: HashMap::new(),
        declared: HashMap::new(),
        shared: HashMap::new(),
        shared_end: 0,
        shared_granule: 16,
        precision,
        products: Vec::new(),
        line: function.line,
        statement: name,
    };
    for (number, register) in SPECIAL.iter().enumerate() {
        let register = ((*register).to_owned(), (Class::Word, number as u32));
        decoder.scopes[0].registers.extend([register]);
    }
    let (header, body, body_line) = decoder.split(function)?;
    let max_threads = decoder.kernel_header(header)?;
    decoder.body(body, body_line)?;
    let (code, blocks) = flow::basic_blocks(decoder.items, decoder.label_count)
        .map_err(|problem| format!("{}: kernel `{name}`: {problem}", module.file))?;
    let sorted = |variables: &HashMap<String, Variable>| {
        let mut variables: Vec<_> = variables.values().copied().collect();
        variables.sort_by_key(|variable| variable.offset);
        variables
    };
    let invert = |(value, slot): (u32, u32)| (slot, value);
    Ok(Kernel {
        name: name.to_owned(),
        precision,
        file: module.file.clone(),
        code,
        blocks,
        parameters: sorted(&decoder.parameters),
        shared: sorted(&decoder.shared),
        shared_granule: decoder.shared_granule,
        max_threads,
        word_constants: decoder.word_constants.into_iter().map(invert).collect(),
        double_constants: decoder.double_constants.into_iter().map(|(x, i)| (i, x)).collect(),
        predicate_constants: decoder.predicate_constants.into_iter().map(|(x, i)| (i, x)).collect(),
        words: decoder.words as usize,
        doubles: decoder.doubles as usize,
        predicates: decoder.predicates as usize,
        module_text: module.text.clone(),
    })
}

/// Parses `.param .u64 name,` or `.param .align 8 .b8 name[40]` to a name, size and alignment.
fn parameter(line: &str) -> Option<(&str, usize, usize)> {
    let rest = line.strip_prefix(".param ")?.trim_end_matches(',');
    if let Some(rest) = rest.strip_prefix(".align ") {
        let (alignment, rest) = rest.split_once(" .b8 ")?;
        let (name, bytes) = rest.split_once('[')?;
        return Some((name, bytes.strip_suffix(']')?.parse().ok()?, alignment.parse().ok()?));
    }
    let (kind, name) = rest.split_once(' ')?;
    let bits: usize = kind.get(2..)?.parse().ok()?;
    Some((name, bits / 8, bits / 8))
}

impl<'a> Decoder<'a> {
    fn error(&self, problem: impl AsRef<str>) -> String {
        error_at(&self.module.file, self.line, problem.as_ref(), self.statement)
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a function is open")
    }

    /// Splits a function into its header and its body, with the line of the body.
    fn split(&self, function: &Function) -> Result<(&'a str, &'a str, u32), String> {
        let text = &self.module.text[function.text.clone()];
        let (header, body) =
            text.split_once("\n{").ok_or_else(|| self.error("function without a body"))?;
        let body = body.trim_end().strip_suffix('}').unwrap_or(body);
        let line = function.line + header.matches('\n').count() as u32 + 1;
        Ok((header, body, line))
    }

    /// Reads a kernel's parameters, and returns the kernel's maximum number of threads per block.
    fn kernel_header(&mut self, header: &str) -> Result<u32, String> {
        let (mut end, mut max_threads) = (0, 1024);
        for line in header.lines().skip(1).map(str::trim) {
            if let Some((name, bytes, alignment)) = parameter(line) {
                let offset = usize::next_multiple_of(end, alignment);
                self.parameters.insert(name.to_owned(), Variable { offset, bytes });
                end = offset + bytes;
            } else if let Some(sizes) = line.strip_prefix(".maxntid ") {
                let sizes = sizes.split(',').map(|size| size.trim().parse::<u32>());
                max_threads =
                    sizes.product::<Result<u32, _>>().map_err(|e| self.error(e.to_string()))?;
            } else if !(line == ")" || line.is_empty() || line.starts_with(".minnctapersm ")) {
                return Err(self.error(format!("unknown directive `{line}`")));
            }
        }
        Ok(max_threads)
    }

    fn body(&mut self, body: &'a str, first_line: u32) -> Result<(), String> {
        for (line, statement) in text::statements(&self.module.file, body, first_line)? {
            self.line = line;
            match statement {
                Statement::Directive(directive) => {
                    self.statement = directive;
                    self.directive(directive)?;
                }
                Statement::Label(name) => {
                    let label = self.label(name);
                    self.push_flow(Flow::Label(label));
                }
                Statement::Instruction(instruction) => {
                    self.statement = instruction;
                    self.instruction(instruction)?;
                }
                Statement::Call(call) => self.call(&call)?,
                // A register of an inner scope replaces a register of the same name. The names of
                // inner scopes stay visible, because nvcc does not use them outside.
                Statement::OpenScope | Statement::CloseScope => {}
            }
        }
        Ok(())
    }

    fn push_flow(&mut self, flow: Flow) {
        self.products.clear();
        self.items.push(Item::Flow { flow, line: self.line });
    }

    fn new_label(&mut self) -> usize {
        self.label_count += 1;
        self.label_count - 1
    }

    fn label(&mut self, name: &str) -> usize {
        if let Some(label) = self.scope().labels.get(name) {
            return *label;
        }
        let label = self.new_label();
        self.scope().labels.insert(name.to_owned(), label);
        label
    }

    fn new_slot(&mut self, class: Class) -> u32 {
        let count = match class {
            Class::Word => &mut self.words,
            Class::Double => &mut self.doubles,
            Class::Predicate => &mut self.predicates,
        };
        *count += 1;
        *count - 1
    }

    fn directive(&mut self, directive: &'a str) -> Result<(), String> {
        if let Some((name, declaration)) = text::shared_declaration(&format!("{directive};")) {
            self.declared.insert(name.to_owned(), declaration);
            return Ok(());
        }
        if directive.starts_with(".pragma \"nounroll\"") {
            return Ok(());
        }
        let mut words = directive.split_whitespace();
        let (kind, class, name) = (words.next(), words.next(), words.next());
        let (Some(kind @ (".reg" | ".param")), Some(class), Some(name), None) =
            (kind, class, name, words.next())
        else {
            return Err(self.error("unknown directive"));
        };
        let class = match class {
            ".pred" => Class::Predicate,
            ".b16" | ".b32" | ".f32" => Class::Word,
            ".b64" | ".f64" => Class::Double,
            _ => return Err(self.error("unknown type")),
        };
        let name = name.trim_end_matches(',');
        // A parameter of a call is a register, too.
        if let (".reg", Some((prefix, count))) = (kind, name.split_once('<')) {
            let count = count.trim_end_matches('>').parse::<usize>();
            for number in 0..count.map_err(|error| self.error(error.to_string()))? {
                let slot = self.new_slot(class);
                self.scope().registers.insert(format!("{prefix}{number}"), (class, slot));
            }
        } else {
            let slot = self.new_slot(class);
            self.scope().registers.insert(name.to_owned(), (class, slot));
        }
        Ok(())
    }

    /// Decodes a call by decoding the called function in its place.
    fn call(&mut self, call: &Call<'a>) -> Result<(), String> {
        self.statement = call.function;
        let (module, line) = (self.module, self.line);
        let function = module.functions.get(call.function);
        let function = function.ok_or_else(|| self.error("unknown function"))?;
        if self.scopes.len() > 4 {
            return Err(self.error("calls are nested too deeply"));
        }
        let (header, body, body_line) = self.split(function)?;
        let mut arguments = Vec::new();
        for name in [call.result].iter().chain(&call.arguments) {
            arguments.push(self.register(name)?);
        }
        // The header names the result first, then the parameters.
        let mut names = Vec::new();
        for part in header.split([',', '(', ')', '\n']) {
            if let Some((name, ..)) = parameter(part.trim()) {
                names.push(name.to_owned());
            }
        }
        if names.len() != arguments.len() {
            return Err(self.error("wrong number of arguments"));
        }
        let end = self.new_label();
        let mut scope = Scope { end: Some(end), ..Scope::default() };
        scope.registers.extend(names.into_iter().zip(arguments));
        self.scopes.push(scope);
        self.body(body, body_line)?;
        self.scopes.pop();
        self.line = line;
        self.push_flow(Flow::Label(end));
        Ok(())
    }

    fn register(&mut self, name: &str) -> Result<(Class, u32), String> {
        let error = || self.error(format!("unknown register `{name}`"));
        let scope = self.scopes.last().expect("a function is open");
        scope.registers.get(name).copied().ok_or_else(error)
    }

    /// Returns the register `name`, which must belong to the register class `class`.
    fn register_of(&mut self, class: Class, name: &str) -> Result<u32, String> {
        let (found, slot) = self.register(name)?;
        if found == class {
            return Ok(slot);
        }
        Err(self.error(format!("register `{name}`: found class {found:?}, expected {class:?}")))
    }

    fn constant_slot(&mut self, value: u32) -> u32 {
        if let Some(slot) = self.word_constants.get(&value) {
            return *slot;
        }
        let slot = self.new_slot(Class::Word);
        self.word_constants.insert(value, slot);
        slot
    }

    fn double(&mut self, value: u64) -> u32 {
        if let Some(slot) = self.double_constants.get(&value) {
            return *slot;
        }
        let slot = self.new_slot(Class::Double);
        self.double_constants.insert(value, slot);
        slot
    }

    fn constant_predicate(&mut self, value: bool) -> u32 {
        if let Some(slot) = self.predicate_constants.get(&value) {
            return *slot;
        }
        let slot = self.new_slot(Class::Predicate);
        self.predicate_constants.insert(value, slot);
        slot
    }

    /// Returns the register that holds a source operand: a register, a number, or the address of
    /// a variable.
    fn source(&mut self, class: Class, text: &str) -> Result<u32, String> {
        if text.starts_with('%') {
            return self.register_of(class, text);
        }
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let value = if let Some(digits) = text.strip_prefix("0f") {
            hexadecimal(digits).filter(|_| class == Class::Word)
        } else if let Some(digits) = text.strip_prefix("0d") {
            hexadecimal(digits).filter(|_| class == Class::Double)
        } else if let Ok(value) = text.parse::<i128>() {
            match class {
                Class::Word => (-1 << 31..1 << 32).contains(&value).then_some(value as u32 as u64),
                _ => (-1 << 63..1 << 64).contains(&value).then_some(value as u64),
            }
        } else {
            self.address_of(text).map(|address| address as u64)
        };
        let value = value.ok_or_else(|| self.error(format!("unknown operand `{text}`")))?;
        Ok(match class {
            Class::Word => self.constant_slot(value as u32),
            Class::Double => self.double(value),
            Class::Predicate => self.constant_predicate(value != 0),
        })
    }

    /// Returns the address of a variable in shared memory or a parameter.
    fn address_of(&mut self, name: &str) -> Option<usize> {
        if let Some(parameter) = self.parameters.get(name) {
            return Some(parameter.offset);
        }
        if let Some(variable) = self.shared.get(name) {
            return Some(variable.offset);
        }
        let declaration = self.declared.get(name).or_else(|| self.module.shared.get(name))?;
        let offset = offset_after(self.shared_end, declaration.alignment);
        self.shared_end = offset + declaration.bytes;
        self.shared.insert(name.to_owned(), Variable { offset, bytes: declaration.bytes });
        Some(offset)
    }

    /// Parses `[base+offset]`, where the base is a register of `class` or the name of a variable.
    fn address(&mut self, class: Class, text: &str) -> Result<(u32, i64), String> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| self.error(format!("malformed address `{text}`")))?;
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        let offset =
            offset.parse().map_err(|_| self.error(format!("malformed address `{text}`")))?;
        Ok((self.source(class, base)?, offset))
    }

    /// Parses the elements of `{a, b}`, or a single operand.
    fn elements(&mut self, class: Class, text: &str, is_source: bool) -> Result<Vec<u32>, String> {
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let elements = text::operands(inner.unwrap_or(text));
        let element = |name: &&str| match is_source {
            true => self.source(class, name),
            false => self.register_of(class, name),
        };
        elements.iter().map(element).collect()
    }

    fn push(&mut self, mut instruction: Instruction) {
        instruction.line = self.line;
        instruction.kind = Kind::of(self.statement);
        self.items.push(Item::Instruction(instruction));
    }
}
