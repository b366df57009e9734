//! Conversion of command-line arguments from Caffe's spelling to clap's.

use std::ffi::OsString;

/// Rewrites the flags and the verb on the command line from Caffe's spelling to clap's, such as
/// `-sigint_effect` to `--sigint-effect` and `device_query` to `device-query`. Leaves `-h`, the
/// values of flags, and all arguments after `--` unchanged.
pub(super) fn normalize_args(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut args, mut seen_verb, mut ended) = (args.into_iter(), false, false);
    let program = args.next();
    let rest = args.map(|arg| {
        ended |= arg == "--";
        match arg.to_str() {
            Some(text) if !ended && text.starts_with('-') => clap_flag(text).into(),
            Some(text) if !ended && !std::mem::replace(&mut seen_verb, true) => {
                underscores_to_hyphens(text).into()
            }
            _ => arg,
        }
    });
    program.into_iter().chain(rest).collect()
}

fn clap_flag(text: &str) -> String {
    let dashes = match text.as_bytes() {
        [b'-', first, _, ..] if first.is_ascii_alphabetic() => "-",
        _ => "",
    };
    match text.split_once('=') {
        Some((name, value)) => format!("{dashes}{}={value}", underscores_to_hyphens(name)),
        None => format!("{dashes}{}", underscores_to_hyphens(text)),
    }
}

fn underscores_to_hyphens(text: &str) -> String {
    text.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::normalize_args;

    #[test]
    fn flags_and_verbs_in_caffes_spelling_are_rewritten_for_clap() {
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
