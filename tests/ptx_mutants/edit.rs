//! Edits of one line of PTX, which introduce a bug.

/// A change of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// Removes the line.
    Delete,
    /// Replaces a part of the line.
    Replace(&'static str, &'static str),
    /// Replaces the operand with an index, counted from 0.
    Operand(usize, &'static str),
    /// Swaps two operands.
    SwapOperands(usize, usize),
    /// Swaps two elements of the vector operand with an index: the operand's index comes first.
    SwapElements(usize, usize, usize),
    /// Adds a number to the offset of the address in the line.
    Offset(i64),
    /// Inserts an instruction before the line.
    Insert(&'static str),
}

/// Splits an instruction into the text before its operands and the operands. Commas within braces
/// do not separate operands.
fn split(line: &str) -> Option<(String, Vec<String>)> {
    let code = line.trim_end().strip_suffix(';')?;
    let start = code.len() - code.trim_start().len();
    let opcode = code[start..].find(char::is_whitespace)? + start;
    let (mut operands, mut depth) = (vec![String::new()], 0);
    for character in code[opcode..].chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(String::new());
                continue;
            }
            _ => {}
        }
        operands.last_mut()?.push(character);
    }
    let operands = operands.iter().map(|operand| operand.trim().to_owned()).collect();
    Some((format!("{} ", &code[..opcode]), operands))
}

impl Edit {
    /// Returns the changed line, or `None` if the line does not have the form that the edit needs.
    fn apply(self, line: &str) -> Option<String> {
        let join = |(opcode, operands): (String, Vec<String>)| {
            format!("{opcode}{};\n", operands.join(", "))
        };
        let changed = match self {
            Self::Delete => String::from("\n"),
            Self::Replace(from, to) => line.replacen(from, to, 1),
            Self::Operand(number, text) => {
                let (opcode, mut operands) = split(line)?;
                *operands.get_mut(number)? = text.to_owned();
                join((opcode, operands))
            }
            Self::SwapOperands(first, second) => {
                let (opcode, mut operands) = split(line)?;
                if first.max(second) >= operands.len() {
                    return None;
                }
                operands.swap(first, second);
                join((opcode, operands))
            }
            Self::SwapElements(number, first, second) => {
                let (opcode, mut operands) = split(line)?;
                let operand = operands.get_mut(number)?;
                let inner = operand.strip_prefix('{')?.strip_suffix('}')?;
                let mut elements: Vec<_> = inner.split(',').map(str::trim).collect();
                if first.max(second) >= elements.len() {
                    return None;
                }
                elements.swap(first, second);
                *operand = format!("{{{}}}", elements.join(", "));
                join((opcode, operands))
            }
            Self::Offset(change) => {
                let (start, end) = (line.find('[')?, line.find(']')?);
                let (base, offset) =
                    line[start + 1..end].split_once('+').unwrap_or((&line[start + 1..end], "0"));
                let offset = offset.parse::<i64>().ok()? + change;
                format!("{}[{base}+{offset}]{}", &line[..start], &line[end + 1..])
            }
            Self::Insert(instruction) => format!("\t{instruction}\n{line}"),
        };
        (changed != line).then_some(changed)
    }
}

/// Applies `edit` to one line of a kernel. Of the lines that contain `pattern`, `occurrence` is the
/// index of the line to edit. Returns `None` if the kernel has no such line, or if the edit leaves
/// the line unchanged.
pub(crate) fn edit(
    text: &str,
    kernel: &str,
    pattern: &str,
    occurrence: usize,
    edit: Edit,
) -> Option<String> {
    let start = text.find(&format!(".entry {kernel}("))?;
    let end = start + text[start..].find("\n}\n")?;
    let mut offset = start;
    let mut lines = text[start..end].split_inclusive('\n').filter_map(|line| {
        let position = offset;
        offset += line.len();
        line.contains(pattern).then_some((position, line))
    });
    let (position, line) = lines.nth(occurrence)?;
    let changed = edit.apply(line)?;
    Some(format!("{}{changed}{}", &text[..position], &text[position + line.len()..]))
}
