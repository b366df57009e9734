//! Unit tests of the rewriting of arguments.

use super::rewrite;
use clap::CommandFactory;

/// Returns the rewritten arguments of a command line, and the flags that the subcommand does not
/// use.
fn rewritten(line: &str) -> Result<(String, Vec<String>), String> {
    let args = line.split(' ').map(Into::into);
    let rewritten = rewrite(&crate::Command::command(), args)?;
    let words: Vec<_> = rewritten.args.iter().map(|word| word.to_str().unwrap()).collect();
    Ok((words.join(" "), rewritten.unused_flags))
}

#[test]
fn flags_and_subcommands_in_caffes_spelling_are_rewritten_for_clap() {
    let cases = [
        ("c train -solver=a_b.prototxt", "c train --solver=a_b.prototxt"),
        ("c train --solver a_b.prototxt", "c train --solver=a_b.prototxt"),
        ("c train -sigint_effect none", "c train --sigint-effect=none"),
        ("c --quiet device_query -gpu 0", "c device-query --quiet --gpu=0"),
        ("c -solver a train -weights=", "c train --solver=a"),
        ("c -h", "c -h"),
        ("c -helpshort", "c --help"),
        ("c help device_query", "c help device-query"),
        ("c help upgrade_net_proto_text", "c help upgrade-net"),
        ("c time -level -1", "c time --level=-1"),
        ("c draw a-b_c - -o x_y", "c draw a-b_c - -o=x_y"),
        ("c inspect -- -a_b --", "c inspect -- -a_b --"),
        ("c train --solver --weights w", "c train --solver --weights=w"),
        ("c train -solver s -- -a", "c train --solver=s -- -a"),
        ("c train -sovler s", "c train --sovler s"),
    ];
    for (line, want) in cases {
        assert_eq!(rewritten(line), Ok((want.to_owned(), vec![])), "{line}");
    }
}

#[test]
fn booleans_have_gflags_spellings_and_the_last_one_wins() {
    for on in ["-shuffle", "--shuffle=true", "-shuffle=Yes", "-noshuffle -shuffle=1"] {
        let want = "c convert-imageset --shuffle a b";
        assert_eq!(rewritten(&format!("c convert_imageset {on} a b")).unwrap().0, want);
    }
    for off in ["-noshuffle", "--noshuffle", "-shuffle=F", "-shuffle -noshuffle"] {
        let want = "c convert-imageset a b";
        assert_eq!(rewritten(&format!("c convert_imageset {off} a b")).unwrap().0, want);
    }
    let cases = [
        ("-alsologtostderr", "--alsologtostderr=true"),
        ("-noalsologtostderr", "--alsologtostderr=false"),
        ("--alsologtostderr=0", "--alsologtostderr=false"),
        ("-shuffle=maybe", "--shuffle=maybe"),
        ("-noshuffle=1", "--noshuffle=1"),
    ];
    for (flag, want) in cases {
        assert_eq!(rewritten(&format!("c train {flag}")).unwrap().0, format!("c train {want}"));
    }
}

#[test]
fn v_takes_a_level_only_from_an_integer() {
    for (line, want) in [
        ("c -v train", "c train -v"),
        ("c -v 1 train", "c train --v=1"),
        ("c train -v=2", "c train --v=2"),
        ("c train -v", "c train -v"),
    ] {
        assert_eq!(rewritten(line).unwrap().0, want);
    }
}

#[test]
fn a_program_or_subcommand_with_the_name_of_a_tool_selects_the_subcommand() {
    let cases = [
        ("build/tools/caffe train", "build/tools/caffe train"),
        ("caffe.bin test", "caffe.bin test"),
        ("/x/convert_imageset.bin -gray a", "cortado convert-imageset --gray a"),
        ("upgrade_net_proto_text a b", "cortado upgrade-net --text a b"),
        ("upgrade_net_proto_binary train b", "cortado upgrade-net --binary train b"),
        ("cortado convert_mnist_data a b c", "cortado convert-mnist a b c"),
        ("cortado upgrade-net-proto-binary a", "cortado upgrade-net --binary a"),
    ];
    for (line, want) in cases {
        assert_eq!(rewritten(line).unwrap().0, want);
    }
}

#[test]
fn flags_of_caffe_that_a_subcommand_does_not_use_are_reported() {
    let (args, unused) = rewritten("caffe train -iterations 5 -phase=TEST -solver s").unwrap();
    assert_eq!(args, "caffe train --solver=s");
    assert_eq!(unused, ["--iterations", "--phase"]);
    // Only flags of `caffe` are removed, and only from the subcommands of `caffe`.
    assert_eq!(rewritten("caffe train -shuffle").unwrap().0, "caffe train --shuffle");
    assert_eq!(rewritten("caffe draw -solver s").unwrap().0, "caffe draw --solver=s");
}

#[test]
fn an_unsupported_flag_is_an_error_with_a_remedy() {
    let error = rewritten("caffe train -log_link=x").unwrap_err();
    assert_eq!(error, "--log_link: not supported; --log_dir also creates links to the log files");
}

/// `rewrite` needs the arities of the flags before it knows the subcommand.
#[test]
fn a_flag_has_the_same_arity_in_all_subcommands() {
    let command = crate::Command::command();
    let arities = super::arities(&command);
    for subcommand in command.get_subcommands() {
        let subcommand_arities = super::arities(subcommand);
        for (name, arity) in subcommand_arities {
            assert!(arities[&name] == arity, "{}: --{name}", subcommand.get_name());
        }
    }
}
