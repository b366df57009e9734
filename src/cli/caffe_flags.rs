//! Arguments in Caffe's spelling.

use std::ffi::OsString;

/// `-sigint_effect` means `--sigint-effect` and `device_query` means `device-query`, as in Caffe's
/// scripts; `-h` stays, and so do values and all that follows `--`.
pub(super) fn normalize_args(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut args, mut verb, mut ended) = (args.into_iter(), false, false);
    let program = args.next();
    let rest = args.map(|arg| {
        ended |= arg == "--";
        match arg.to_str() {
            Some(text) if !ended && text.starts_with('-') => flag(text).into(),
            Some(text) if !ended && !std::mem::replace(&mut verb, true) => hyphens(text).into(),
            _ => arg,
        }
    });
    program.into_iter().chain(rest).collect()
}

fn flag(text: &str) -> String {
    let dashes = match text.as_bytes() {
        [b'-', first, _, ..] if first.is_ascii_alphabetic() => "-",
        _ => "",
    };
    match text.split_once('=') {
        Some((name, value)) => format!("{dashes}{}={value}", hyphens(name)),
        None => format!("{dashes}{}", hyphens(text)),
    }
}

fn hyphens(text: &str) -> String {
    text.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::normalize_args;

    #[test]
    fn one_dash_or_two_underscores_or_hyphens() {
        let cases = [
            ("train -solver=a_b.prototxt", "train --solver=a_b.prototxt"),
            ("train --solver a_b.prototxt", "train --solver a_b.prototxt"),
            ("train -sigint_effect none", "train --sigint-effect none"),
            ("--quiet device_query -gpu 0", "--quiet device-query --gpu 0"),
            ("-h", "-h"),
            ("time -level -1", "time --level -1"),
            ("draw a-b_c - -o x_y", "draw a-b_c - -o x_y"),
            ("inspect -- -a_b", "inspect -- -a_b"),
        ];
        for (args, want) in cases {
            let args = format!("c_1 {args}");
            let words = normalize_args(args.split(' ').map(Into::into));
            let read: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(read.join(" "), format!("c_1 {want}"));
        }
    }
}
