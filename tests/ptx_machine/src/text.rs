//! PTX text: the kernels of a file, and the statements of a kernel.

use std::{collections::HashMap, ops::Range, sync::Arc};

/// A declared variable in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) alignment: usize,
    pub(crate) bytes: usize,
}

/// Text of a function or kernel.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) text: Range<usize>,
    /// Line of the file at which the text starts.
    pub(crate) line: u32,
}

/// A PTX file, split into functions, which are decoded only when they are needed.
pub struct Module {
    pub(crate) file: String,
    pub(crate) text: Arc<str>,
    pub(crate) kernels: HashMap<String, Function>,
    pub(crate) functions: HashMap<String, Function>,
    /// Variables in shared memory outside functions.
    pub(crate) shared: HashMap<String, Declaration>,
}

/// Returns an error message that names the file and the line, and quotes the text of the line.
pub(crate) fn error_at(file: &str, line: u32, problem: &str, text: &str) -> String {
    format!("{file}:{line}: {problem}: `{}`", text.trim())
}

/// Removes the comment of a line.
fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code).trim()
}

impl Module {
    /// Splits the text of the file `file` into functions.
    pub fn new(file: &str, text: &str) -> Result<Self, String> {
        let mut module = Self {
            file: file.to_owned(),
            text: text.into(),
            kernels: HashMap::new(),
            functions: HashMap::new(),
            shared: HashMap::new(),
        };
        let mut offset = 0;
        // The function whose text the loop reads, and the number of open braces.
        let mut open: Option<(String, bool, Function, usize)> = None;
        let mut in_debug_section = false;
        for (number, full_line) in (1u32..).zip(text.split_inclusive('\n')) {
            let line_start = offset;
            offset += full_line.len();
            let line = without_comment(full_line);
            if let Some((_, _, function, depth)) = &mut open {
                for byte in line.bytes() {
                    match byte {
                        b'{' => *depth += 1,
                        b'}' => *depth -= 1,
                        _ => continue,
                    }
                    function.text.end = offset;
                }
                let is_declaration = function.text.end == 0 && line == ";";
                if *depth == 0 && (function.text.end != 0 || is_declaration) {
                    let (name, is_kernel, function, _) = open.take().unwrap();
                    let table = if is_kernel { &mut module.kernels } else { &mut module.functions };
                    if !is_declaration {
                        table.insert(name, function);
                    }
                }
                continue;
            }
            if in_debug_section {
                in_debug_section = line != "}";
                continue;
            }
            let function = Function { text: line_start..0, line: number };
            if line.starts_with(".section") {
                in_debug_section = true;
            } else if let Some(rest) = line.strip_prefix(".visible .entry ") {
                let name = rest.trim_end_matches('(').to_owned();
                open = Some((name, true, function, 0));
            } else if line.starts_with(".func ") {
                let (_, rest) = line.split_once(')').unwrap_or(("", line));
                open = Some((rest.trim().trim_end_matches('(').to_owned(), false, function, 0));
            } else if line.starts_with(".shared ") {
                let (name, declaration) = shared_declaration(line)
                    .ok_or_else(|| error_at(file, number, "unknown declaration", line))?;
                module.shared.insert(name.to_owned(), declaration);
            } else if !(line.is_empty()
                || line.starts_with(".version ")
                || line.starts_with(".target ")
                || line.starts_with(".address_size 64")
                || line.starts_with(".file"))
            {
                return Err(error_at(file, number, "unknown directive", line));
            }
        }
        match open {
            Some((name, ..)) => Err(format!("{file}: {name}: unexpected end of file")),
            None => Ok(module),
        }
    }

    /// Returns the names of the kernels.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }
}

/// Returns whether a line is a `.loc`, which names the line of the CUDA source of the instructions
/// that follow. PTX contains `.loc` lines if nvcc was called with `-lineinfo`.
pub(crate) fn is_location(line: &str) -> bool {
    line.split_whitespace().next() == Some(".loc")
}

/// Parses `.shared .align 4 .b8 name[128];`.
pub(crate) fn shared_declaration(line: &str) -> Option<(&str, Declaration)> {
    let rest = line.strip_prefix(".shared .align ")?.strip_suffix("];")?;
    let (alignment, rest) = rest.split_once(" .b8 ")?;
    let (name, bytes) = rest.split_once('[')?;
    let declaration =
        Declaration { alignment: alignment.parse().ok()?, bytes: bytes.parse().ok()? };
    Some((name, declaration))
}

/// One statement in the body of a function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Statement<'a> {
    /// `.reg .b32 %r<7>;` and other directives, without the semicolon.
    Directive(&'a str),
    Label(&'a str),
    /// The text of an instruction on one line, without the semicolon.
    Instruction(&'a str),
    Call(Call<'a>),
    OpenScope,
    CloseScope,
}

/// `call.uni (result), function, (arguments);`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub(crate) result: &'a str,
    pub(crate) function: &'a str,
    pub(crate) arguments: Vec<&'a str>,
}

/// Splits the body of a function into statements with their line numbers. `body` starts after the
/// opening brace.
pub(crate) fn statements<'a>(
    file: &str,
    body: &'a str,
    first_line: u32,
) -> Result<Vec<(u32, Statement<'a>)>, String> {
    let mut statements = Vec::new();
    let mut lines = (first_line..).zip(body.lines());
    while let Some((number, full_line)) = lines.next() {
        let line = without_comment(full_line);
        let statement = match line {
            "" => continue,
            _ if is_location(line) => continue,
            "{" => Statement::OpenScope,
            "}" => Statement::CloseScope,
            _ if line.starts_with("call.uni ") => {
                let mut parts = vec![line];
                while !parts.last().is_some_and(|part| part.ends_with(';')) {
                    let Some((_, part)) = lines.next() else { break };
                    parts.push(without_comment(part));
                }
                let names = parts.iter().flat_map(|part| part.split([' ', ',', '(', ')', ';']));
                let mut names = names.filter(|name| !name.is_empty()).skip(1);
                let (Some(result), Some(function)) = (names.next(), names.next()) else {
                    return Err(error_at(file, number, "malformed call", line));
                };
                Statement::Call(Call { result, function, arguments: names.collect() })
            }
            _ => {
                // nvcc writes the inline assembly of conversions in a scope on one line.
                let inline = line.strip_prefix('{').and_then(|line| line.strip_suffix('}'));
                let line = inline.unwrap_or(line).trim();
                if let Some(label) = line.strip_suffix(':') {
                    Statement::Label(label)
                } else {
                    let code = line.strip_suffix(';').ok_or_else(|| {
                        error_at(file, number, "statement without a semicolon", line)
                    })?;
                    if code.contains(';') {
                        return Err(error_at(file, number, "several statements", line));
                    }
                    match code.starts_with('.') {
                        true => Statement::Directive(code.trim()),
                        false => Statement::Instruction(code.trim()),
                    }
                }
            }
        };
        statements.push((number, statement));
    }
    Ok(statements)
}

/// Splits operands at the commas outside braces and brackets.
pub(crate) fn operands(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}
