use super::*;
use crate::proto::schema::FieldType;
use crate::proto::{BlobProto, Datum, NetParameter, Phase, SolverParameter};
use prost::Message;

fn parse(text: impl AsRef<[u8]>) -> Result<NetParameter> {
    parse_text(text, "net.prototxt")
}

fn parse_error(text: impl AsRef<[u8]>) -> String {
    parse(text).unwrap_err().to_string()
}

/// Parses a string literal of the text format and returns the value's bytes.
fn parse_bytes(literal: &[u8]) -> Result<Vec<u8>> {
    let text = [&b"data: \""[..], literal, b"\""].concat();
    parse_text::<Datum>(text, "datum").map(|datum| datum.data().to_vec())
}

#[test]
fn parse_errors_state_the_position_and_the_problem() {
    let cases = [
        ("name: 12", "1:7: expected a string, found `12`"),
        ("name \"n\"", "1:6: expected `:`, found the string \"n\""),
        (
            "name: \"n\"\n\nlayer {\n  tipe: \"x\" }",
            "4:3: `LayerParameter` has no field `tipe` (did you mean `type`?)",
        ),
        (
            "layer {\n name: \"fork\" pooling_param {\n  nothing_near: 1 } }",
            "3:3: layer `fork`: `PoolingParameter` has no field `nothing_near`; remove the field if \
             the results do not depend on it",
        ),
        (
            "layer { multi_stage_meanfield_param {} name: \"fork\" }",
            "1:9: layer `fork`: `LayerParameter` has no field `multi_stage_meanfield_param`; if a layer \
             type that cortado lacks needs this field, register the type with \
             `LayerRegistry::with`, and write the settings to `python_param { param_str: … }`",
        ),
        (
            "name: \"a\"\nname: \"b\"",
            "2:1: second value of `name`, which is not repeated; remove one of the values",
        ),
        ("layer {\n", "2:1: expected a field name, found the end of the text"),
        ("layer { >", "1:9: expected a field name, found `>`"),
        ("layer: 3", "1:8: expected `{`, found `3`"),
        ("layer { phase: BOTH }", "1:16: `Phase` has no value BOTH; known values: TRAIN, TEST"),
        ("layer { phase: -1 }", "1:16: `Phase` has no value -1; known values: TRAIN, TEST"),
        ("force_backward: 2", "1:17: 2 is out of range: at most 1"),
        ("input_dim: 2147483648", "1:12: 2147483648 is out of range: at most 2147483647"),
        ("input_dim: [1, 2", "1:17: expected `,` or `]`, found the end of the text"),
        ("input_dim: 0x", "1:12: `0x` without hexadecimal digits"),
        ("input_dim: 08", "1:12: 08 starts with 0 but is not octal"),
        ("input_dim: 5name: \"n\"", "1:13: missing space after the number 5"),
        ("layer { loss_weight: 010 }", "1:22: expected a decimal number, found `010`"),
        ("layer { loss_weight: 1e }", "1:22: no digits in the exponent of 1e"),
        ("layer { clip_param { min: 0 } }", "1:29: `ClipParameter` lacks the required field `max`"),
        ("name: \"a\nb\"", "1:7: unterminated string: a string cannot span lines"),
        ("name: \"a", "1:7: unterminated string"),
        ("name: \"a\\", "1:9: unterminated string"),
        ("name: \"\\q\"", "1:8: unknown escape sequence"),
        ("name: \"\\xg\"", "1:8: `\\x` without hexadecimal digits"),
        ("name: \"\\X41\"", "1:8: unknown escape sequence"),
        ("name: \"\\u12\"", "1:8: `\\u` without 4 hex digits of a valid character"),
        ("name: \"\\377\"", "1:7: string is not UTF-8"),
        ("name: \"äöü\" é", "1:13: byte 0xc3 outside a string"),
        ("\t# ä\n\tlayer \0", "2:8: byte 0x00 outside a string"),
    ];
    for (text, want) in cases {
        assert_eq!(parse_error(text), format!("net.prototxt:{want}"), "{text}");
    }
}

#[test]
fn escapes_are_read_as_in_c() {
    let cases: [(&[u8], &[u8]); 7] = [
        (br#"\a\b\f\n\r\t\v\\\?\'\""#, b"\x07\x08\x0c\n\r\t\x0b\\?'\""),
        (br"\0\12\1234\777", b"\0\nS4\xff"),
        (br"\x4\x41B\xfF", b"\x04AB\xff"),
        (br"\u00e4\U0001F600", "ä😀".as_bytes()),
        (br"\ud83d\ude00", "😀".as_bytes()),
        (br#"a" 'b' "c"#, b"abc"),
        (b"\xff", b"\xff"),
    ];
    for (literal, want) in cases {
        assert_eq!(parse_bytes(literal).unwrap(), want, "{}", literal.escape_ascii());
    }
    for literal in [&br"\ud83d"[..], br"\ude00", br"\ud83dx", br"\U00110000", br"\U0000004"] {
        assert!(parse_bytes(literal).is_err(), "{}", literal.escape_ascii());
    }
}

#[test]
fn bytes_are_printed_as_c_escapes_and_read_back() {
    let datum = Datum { data: Some((0..=255).collect()), ..Default::default() };
    let text = to_text(&datum).unwrap();
    assert!(text.starts_with(r#"data: "\000\001\002\003\004\005\006\007\010\t\n\013\014\r\016"#));
    assert!(text.ends_with("\\376\\377\"\n"));
    assert!(text.contains(r##" !\"#$%&\'()"##) && text.contains(r"[\\]^_`a") && text.is_ascii());
    assert_eq!(parse_text::<Datum>(text, "").unwrap(), datum);
}

#[test]
fn the_printed_layout_matches_googles_printer() {
    let text = "name: \"n\"
input_dim: 1
input_dim: -2
layer {
  name: \"a\"
  loss_weight: 0.5
  phase: TEST
  relu_param {
  }
}
";
    let net =
        parse("layer<name:'a' phase:1 loss_weight:.5f relu_param{}>input_dim:[1,-2];name:'n'");
    let net = net.unwrap();
    assert_eq!(net.layer[0].phase(), Phase::Test);
    assert_eq!(to_text(&net).unwrap(), text);
    assert_eq!(parse(text).unwrap(), net);
}

#[test]
fn numbers_are_read_back_bit_identical() {
    let values = [0.1, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::INFINITY, 1.0 / 3.0];
    let blob = BlobProto {
        data: values.to_vec(),
        double_data: vec![0.1, f64::MAX, 5e-324, -1.0 / 3.0],
        ..Default::default()
    };
    let read = parse_text::<BlobProto>(to_text(&blob).unwrap(), "").unwrap();
    assert_eq!(read.encode_to_vec(), blob.encode_to_vec());

    let solver = parse_text::<SolverParameter>(
        "random_seed: -9223372036854775808 max_iter: - 0x7F stepsize: 017 base_lr: 1e60",
        "",
    );
    let solver = solver.unwrap();
    assert_eq!((solver.random_seed(), solver.max_iter(), solver.stepsize()), (i64::MIN, -127, 15));
    assert_eq!(solver.base_lr(), f32::INFINITY);
}

#[test]
fn comments_may_contain_any_bytes() {
    assert_eq!(parse(b"# \xe9\x01 { \"\nname: 'n' #").unwrap().name(), "n");
}

#[test]
fn a_truncated_text_is_parsed_or_rejected() {
    let text = "layer { name: \"a\\n\" loss_weight: [1.5e3, -0x1] include < level: 1 > } # end";
    for end in 0..text.len() {
        let _ = parse(&text[..end]);
    }
    let text = "layer { name: \"a\" } name: \"n\"";
    let valid_lengths: Vec<_> =
        (0..text.len()).filter(|&end| parse(&text[..end]).is_ok()).collect();
    assert_eq!(valid_lengths, [0, 19, 20]);
}

/// The nesting depth of message types bounds the recursion depth of the parser.
#[test]
fn no_message_type_contains_itself() {
    fn depth(message: &Schema, left: usize) -> usize {
        assert!(left > 0, "{} nests deeper than expected", message.name);
        let inner = message.fields().iter().map(|field| match field.kind {
            FieldType::Message(inner) => depth(inner, left - 1),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }
    // The deepest nesting is a solver, its net, a V1 layer, a V0 layer, a blob and a shape.
    assert_eq!(depth(SolverParameter::default().schema(), 10), 6);
}

#[test]
fn unknown_fields_are_skipped_on_request() {
    let text = r#"name: "n"  odd: -1.5e3, layer { # of a fork
  type: "Fork" fork_param { a: [1, { b < > }] s: "}" '{' n: -inf; [x.y/z]: 3 } next: A;
  other: 'x' "y" z: [] clip_param { min: 1 extra: { } max: 2 } fork < >; name: "l"
} deep "#;
    let deep_text = format!("{text}{}{}", "{ a ".repeat(100_000), "}".repeat(100_000));
    let read = |text: &str| parse_text_lossy::<NetParameter>(text, "net.prototxt");
    let want = "name: 'n' layer { type: 'Fork' name: 'l' clip_param { min: 1 max: 2 } }";
    assert_eq!(read(&deep_text).unwrap(), parse(want).unwrap());
    let errors = [
        ("odd", "1:4: expected `:`, found the end of the text"),
        ("odd: }", "1:6: expected a value, found `}`"),
        ("odd: - ", "1:8: expected a value, found the end of the text"),
        ("layer { odd { > } }", "1:15: expected a value, found `>`"),
        ("odd [1]", "1:5: expected `:`, found `[`"),
        ("odd: ,", "1:6: expected a value, found `,`"),
        ("odd { a: 1", "1:11: expected a value, found the end of the text"),
        ("layer { pool: 1 name: 3 }", "1:23: expected a string, found `3`"),
    ];
    for (text, want) in errors {
        let error = read(text).unwrap_err().to_string();
        assert_eq!(error, format!("net.prototxt:{want}"), "{text}");
    }
}

#[test]
fn fields_that_no_net_needs_are_ignored_with_one_warning_each() {
    let text = r#"default_forward_type: FLOAT16  default_conv_algos_override: "1,2,3"
        layer { name: "a" forward_type: FLOAT  quantization_param { bw_layer_in: 8 } }
        layer { name: "b" forward_type: FLOAT  data_param { cache: true batch_size: 2 } }"#;
    let want = "layer { name: 'a' } layer { name: 'b' data_param { batch_size: 2 } }";
    assert_eq!(parse(text).unwrap(), parse(want).unwrap());
    let schema = NetParameter::default().schema();
    let (_, warnings) = parser::parse(schema, text.as_bytes(), UnknownFieldPolicy::Reject).unwrap();
    let offsets: Vec<_> = warnings.iter().map(|warning| warning.offset).collect();
    let positions = ["default_f", "default_c", "forward_type: FLOAT  q", "quant", "cache"];
    assert_eq!(offsets, positions.map(|field| text.find(field).unwrap()));
    assert_eq!(
        warnings[0].message,
        "`default_forward_type` of `NetParameter` is ignored: cortado computes in the element type of \
         the net"
    );
    // The parser warns once about each ignored value of an enum, and not about a value that Caffe
    // has.
    let text =
        "layer { name: 'a' relu_param { engine: MKL2017 } pooling_param { engine: MKL2017 } }
        layer { name: 'b' lrn_param { engine: MKLDNN } relu_param { engine: CUDNN } }";
    let (_, warnings) = parser::parse(schema, text.as_bytes(), UnknownFieldPolicy::Reject).unwrap();
    let messages: Vec<_> = warnings.iter().map(|warning| &warning.message[..]).collect();
    assert_eq!(
        messages,
        ["MKL2017", "MKLDNN"].map(|value| format!(
            "the value {value} of `Engine` is ignored: cortado chooses the implementation of each \
             layer"
        ))
    );
    let want =
        "layer { name: 'a' relu_param { engine: DEFAULT } pooling_param { engine: DEFAULT } }
        layer { name: 'b' lrn_param { engine: DEFAULT } relu_param { engine: CUDNN } }";
    assert_eq!(parse(text).unwrap(), parse(want).unwrap());
    let error = parse_error("layer { lrn_param { engine: ODD } }");
    assert!(
        error.ends_with("`Engine` has no value ODD; known values: DEFAULT, CAFFE, CUDNN"),
        "{error}"
    );
    // The parser ignores these names only in certain message types.
    let error = parse_error("layer { pooling_param { forward_type: FLOAT } }");
    assert!(error.contains("`PoolingParameter` has no field `forward_type`"), "{error}");
    let error = parse_error("layers { name: 'v' type: VIDEO_DATA }");
    assert!(
        error.contains("layer `v`: `LayerType` has no value VIDEO_DATA; to use a layer"),
        "{error}"
    );
}
