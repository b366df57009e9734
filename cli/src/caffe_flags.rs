//! Rewriting of command-line arguments from the spelling of gflags, which Caffe uses, to that of
//! clap.
//!
//! gflags reads flags anywhere on the command line, even before the subcommand. A flag starts with
//! one dash or two, and its name contains underscores. A boolean flag is `-shuffle`, `-noshuffle`
//! or `-shuffle=false`. If a flag is repeated, the last value applies.

use super::caffe_tools::{self, Tool};
use clap::{Arg, ArgAction, Command};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    iter::{self, Peekable},
};

/// Arguments in clap's spelling.
pub(super) struct ClapArgs {
    pub(super) args: Vec<OsString>,
    /// Flags of the command `caffe`, in Caffe's spelling, that the subcommand does not use; `args`
    /// omits these flags.
    pub(super) unused_flags: Vec<String>,
}

/// Number and kind of the values that a flag takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arity {
    /// No value: the flag is present or absent.
    Switch,
    /// `true` or `false`, after an equals sign; without a value, `true`.
    Bool,
    /// One value, after an equals sign or as the next argument.
    Value,
}

/// Subcommands of the command `caffe`. Each subcommand accepts all flags of `caffe`, even those
/// that it does not use.
const CAFFE_SUBCOMMANDS: [&str; 4] = ["train", "test", "time", "device-query"];

/// Flags of the command `caffe`.
const CAFFE_FLAGS: [&str; 11] = [
    "gpu",
    "iterations",
    "level",
    "model",
    "phase",
    "sighup-effect",
    "sigint-effect",
    "snapshot",
    "solver",
    "stage",
    "weights",
];

/// Flags whose default value in Caffe is the empty string. Passing an empty value, which is also
/// the default, to one of these flags has no effect.
const FLAGS_EMPTY_BY_DEFAULT: [&str; 9] =
    ["encode-type", "gpu", "log-dir", "model", "phase", "snapshot", "solver", "stage", "weights"];

/// Flags of glog that are accepted without effect. `docs/from-caffe.md` says why each flag has no
/// effect.
const FLAGS_WITHOUT_EFFECT: [(&str, Arity); 8] = [
    ("colorlogtostderr", Arity::Switch),
    ("drop-log-memory", Arity::Switch),
    ("logbuflevel", Arity::Value),
    ("logbufsecs", Arity::Value),
    ("max-log-size", Arity::Value),
    ("stop-logging-if-full-disk", Arity::Switch),
    ("symbolize-stacktrace", Arity::Switch),
    ("vmodule", Arity::Value),
];

/// Flags of glog and gflags that are refused, each with the reason and, in most cases, a remedy.
const UNSUPPORTED_FLAGS: [(&str, &str); 15] = [
    ("alsologtoemail", "cortado sends no e-mail; write log files with --log_dir"),
    ("flagfile", "not supported; pass the flags on the command line"),
    ("fromenv", "not supported; pass the flags on the command line"),
    ("helpmatch", "not supported; use --help"),
    ("helpon", "not supported; use --help"),
    ("helpxml", "not supported; use --help"),
    ("log-backtrace-at", "not supported; set RUST_BACKTRACE=1 for a backtrace of a panic"),
    ("log-link", "not supported; --log_dir also creates links to the log files"),
    ("logemaillevel", "cortado sends no e-mail; write log files with --log_dir"),
    ("logfile-mode", "not supported; set the umask"),
    ("logmailer", "cortado sends no e-mail; write log files with --log_dir"),
    ("tab-completion-columns", "cortado completes no command lines"),
    ("tab-completion-word", "cortado completes no command lines"),
    ("tryfromenv", "not supported; pass the flags on the command line"),
    ("undefok", "not supported; remove the flags that cortado does not know"),
];

/// Help flags of gflags, each of which has the effect of `--help`.
const HELP_FLAGS: [&str; 3] = ["helpfull", "helpshort", "helppackage"];

/// Parses a boolean as gflags does.
pub(super) fn parse_bool(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "n" | "no" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}

/// Argument before `--`: `Flag` holds the name of a flag, in clap's spelling and without dashes,
/// and the flag's value; `Word` holds any other argument.
enum Item {
    Flag(String, Option<OsString>),
    Word(OsString),
}

/// Rewrites the arguments of a process for clap. The first argument is the name of the program. The
/// result starts with the program and the subcommand. If the name of the program is that of one of
/// Caffe's tools, such as `convert_imageset`, the name determines the subcommand. Arguments after
/// `--` stay as they are.
///
/// # Errors
/// Fails if a flag of gflags or glog is not supported. The error message starts with the
/// unsupported flag.
pub(super) fn rewrite(
    command: &Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<ClapArgs, String> {
    let arities = arities(command);
    let mut args = args.into_iter().peekable();
    let program = args.next();
    let mut items = Vec::new();
    while let Some(arg) = args.next_if(|arg| arg != "--") {
        match split_flag(&arg) {
            Some((name, value)) => add_flag(&mut items, &arities, name, value, &mut args)?,
            None => items.push(Item::Word(arg)),
        }
    }

    let tool = program.as_ref().and_then(|program| caffe_tools::by_program(program));
    let (program, words) = match tool {
        // In usage messages, clap prints the name of the program in front of the subcommand.
        Some(tool) => (Some("cortado".into()), tool_words(tool)),
        None => (program, subcommand_words(&mut items)),
    };
    let subcommand = words.first().and_then(|subcommand| subcommand.to_str()).unwrap_or_default();
    let unused_flags = if CAFFE_SUBCOMMANDS.contains(&subcommand) {
        take_unused_flags(&mut items, command, subcommand)
    } else {
        Vec::new()
    };
    let words = program.into_iter().chain(words);
    let items = items.into_iter().map(Item::into_arg);
    Ok(ClapArgs { args: words.chain(items).chain(args).collect(), unused_flags })
}

/// Returns the arities of all flags of the command and of its subcommands, by name without dashes.
fn arities(command: &Command) -> BTreeMap<String, Arity> {
    let switches = ["help", "version"].map(|name| (name.to_owned(), Arity::Switch));
    let ignored_flags = FLAGS_WITHOUT_EFFECT.map(|(name, arity)| (name.to_owned(), arity));
    let mut arities: BTreeMap<_, _> = switches.into_iter().chain(ignored_flags).collect();
    let subcommands = command.get_subcommands();
    for arg in iter::once(command).chain(subcommands).flat_map(Command::get_arguments) {
        let arity = match arg.get_action() {
            ArgAction::Set | ArgAction::Append => match arg.get_num_args() {
                Some(count) if count.min_values() == 0 => Arity::Bool,
                _ => Arity::Value,
            },
            _ => Arity::Switch,
        };
        arities.extend(names(arg).into_iter().map(|name| (name, arity)));
    }
    arities
}

/// Returns all names of a flag, without dashes, and nothing for a positional argument.
fn names(arg: &Arg) -> Vec<String> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    let long_names = arg.get_long().into_iter().chain(aliases).map(str::to_owned);
    long_names.chain(arg.get_short().map(String::from)).collect()
}

/// Splits a flag such as `-resize_width=8` into `resize-width` and `8`. Returns `None` for
/// arguments that are not flags, such as negative numbers and `-`.
fn split_flag(arg: &OsString) -> Option<(String, Option<OsString>)> {
    let text = arg.to_str()?;
    let text = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (text, None),
    };
    Some((underscores_to_hyphens(name), value))
}

/// Appends a flag to `items`. If the flag needs a value and has none, takes the value from `rest`,
/// the arguments that follow the flag.
fn add_flag(
    items: &mut Vec<Item>,
    arities: &BTreeMap<String, Arity>,
    mut name: String,
    mut value: Option<OsString>,
    rest: &mut Peekable<impl Iterator<Item = OsString>>,
) -> Result<(), String> {
    if let Some((_, problem)) = UNSUPPORTED_FLAGS.iter().find(|(other, _)| *other == name) {
        return Err(format!("--{}: {problem}", name.replace('-', "_")));
    }
    if HELP_FLAGS.contains(&&*name) {
        name = "help".into();
    }
    if name == "v" && value.is_none() {
        // `v` with a level is glog's flag; `v` without a level is cortado's flag `--verbose`.
        value = rest.next_if(is_integer);
        items.push(Item::Flag(name, value));
        return Ok(());
    }
    if let Some(flag) = negated_flag(&name, arities)
        && value.is_none()
    {
        (name, value) = (flag, Some("false".into()));
    }
    let arity = arities.get(&name).copied();
    if arity == Some(Arity::Value) && value.is_none() {
        value = rest.next_if(|next| split_flag(next).is_none() && next != "--");
    }
    if FLAGS_WITHOUT_EFFECT.iter().any(|(other, _)| *other == name) {
        return Ok(());
    }
    let bool_value = value.as_ref().and_then(|value| parse_bool(value.to_str()?).ok());
    let is_empty = value.as_ref().is_some_and(|value| value.is_empty());
    let removes_flag = match arity {
        Some(Arity::Switch) => bool_value == Some(false),
        Some(Arity::Value) => is_empty && FLAGS_EMPTY_BY_DEFAULT.contains(&&*name),
        _ => false,
    };
    if removes_flag {
        items.retain(|item| !matches!(item, Item::Flag(other, _) if *other == name));
        return Ok(());
    }
    value = match (arity, bool_value) {
        (Some(Arity::Switch), Some(true)) => None,
        (Some(Arity::Bool), Some(on)) => Some(on.to_string().into()),
        (Some(Arity::Bool), None) if value.is_none() => Some("true".into()),
        _ => value,
    };
    items.push(Item::Flag(name, value));
    Ok(())
}

/// Returns the name of the boolean flag that `name` negates, such as `shuffle` for `noshuffle`.
fn negated_flag(name: &str, arities: &BTreeMap<String, Arity>) -> Option<String> {
    let flag = name.strip_prefix("no").filter(|_| !arities.contains_key(name))?;
    let is_boolean = *arities.get(flag)? != Arity::Value;
    is_boolean.then(|| flag.to_owned())
}

fn is_integer(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|text| text.parse::<i32>().is_ok())
}

/// Returns the subcommand and the flags that replace one of Caffe's tools.
fn tool_words(tool: &Tool) -> Vec<OsString> {
    iter::once(&tool.subcommand).chain(tool.flags).map(OsString::from).collect()
}

/// Removes the subcommand from `items` and returns it in clap's spelling. If the subcommand is
/// `help`, also removes and returns the subcommand for which the user requests help.
fn subcommand_words(items: &mut Vec<Item>) -> Vec<OsString> {
    let mut take_word = || {
        let is_word = |item: &Item| matches!(item, Item::Word(word) if !is_dashed(word));
        let index = items.iter().position(is_word)?;
        Some(items.remove(index).into_arg())
    };
    let Some(subcommand) = take_word() else { return Vec::new() };
    let words = clap_subcommand(subcommand);
    if words[0] == "help" {
        // `help` accepts no flags of the subcommand.
        let subcommand = take_word().map(|subcommand| clap_subcommand(subcommand).swap_remove(0));
        return words.into_iter().chain(subcommand).collect();
    }
    words
}

/// Converts a subcommand to clap's spelling. Replaces the name of one of Caffe's tools with a
/// subcommand and flags.
fn clap_subcommand(subcommand: OsString) -> Vec<OsString> {
    match subcommand.to_str() {
        Some(name) => match caffe_tools::by_name(name) {
            Some(tool) => tool_words(tool),
            None => vec![underscores_to_hyphens(name).into()],
        },
        None => vec![subcommand],
    }
}

fn is_dashed(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Removes the flags of `caffe` that the subcommand does not define, and returns their names.
fn take_unused_flags(items: &mut Vec<Item>, command: &Command, subcommand: &str) -> Vec<String> {
    let subcommand = command.find_subcommand(subcommand);
    let defined_names: Vec<_> =
        subcommand.into_iter().flat_map(Command::get_arguments).flat_map(names).collect();
    let is_unused = |item: &mut Item| match item {
        Item::Flag(name, _) => CAFFE_FLAGS.contains(&&**name) && !defined_names.contains(name),
        Item::Word(_) => false,
    };
    let unused = items.extract_if(.., is_unused).map(|item| match item {
        Item::Flag(name, _) => format!("--{}", name.replace('-', "_")),
        Item::Word(word) => word.to_string_lossy().into_owned(),
    });
    unused.collect()
}

impl Item {
    fn into_arg(self) -> OsString {
        let (name, value) = match self {
            Self::Flag(name, value) => (name, value),
            Self::Word(word) => return word,
        };
        // A flag with a one-letter name has one dash, except for glog's `--v=LEVEL`.
        let is_short = name.len() == 1 && !(name == "v" && value.is_some());
        let dashes = if is_short { "-" } else { "--" };
        let mut arg = OsString::from(format!("{dashes}{name}"));
        if let Some(value) = value {
            arg.push("=");
            arg.push(value);
        }
        arg
    }
}

fn underscores_to_hyphens(text: &str) -> String {
    text.replace('_', "-")
}

#[cfg(test)]
mod tests;
