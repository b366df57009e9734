//! Fields of Caffe's forks, and values of fields, that the parser ignores, because a net does not
//! need them to compute its outputs.

/// Fields of one message type that forks of Caffe added, and that the parser ignores.
struct IgnoredFields {
    message: &'static str,
    names: &'static [&'static str],
    /// What cortado does instead of what the fields request; part of the warning.
    reason: &'static str,
}

const PRECISION: &str = "cortado computes in the element type of the net";
const IMPLEMENTATION: &str = "cortado chooses the implementation of each layer";
const READING: &str = "cortado reads the records one after the other, in the order of the source";

/// The fields that the parser ignores. No field in this table changes the outputs of a trained net
/// other than by rounding. The fields of NVIDIA's fork of Caffe precede those of Intel's.
const IGNORED: [IgnoredFields; 8] = [
    IgnoredFields {
        message: "NetParameter",
        names: &[
            "default_forward_type",
            "default_backward_type",
            "default_forward_math",
            "default_backward_math",
            "global_grad_scale",
            "global_grad_scale_adaptive",
        ],
        reason: PRECISION,
    },
    IgnoredFields {
        message: "NetParameter",
        names: &[
            "default_conv_algos_override",
            "default_cudnn_math_override",
            "reduce_buckets",
            "eltwise_mem_sharing",
            "engine",
            "compile_net_state",
            "multinode",
        ],
        reason: IMPLEMENTATION,
    },
    IgnoredFields {
        message: "LayerParameter",
        names: &["forward_type", "backward_type", "forward_math", "backward_math"],
        reason: PRECISION,
    },
    IgnoredFields {
        message: "LayerParameter",
        names: &["cudnn_math_override", "engine"],
        reason: IMPLEMENTATION,
    },
    IgnoredFields {
        message: "DataParameter",
        names: &["threads", "parser_threads", "cache", "precache", "shuffle"],
        reason: READING,
    },
    IgnoredFields {
        message: "ImageDataParameter",
        names: &["threads", "cache", "precache"],
        reason: READING,
    },
    IgnoredFields {
        message: "NetParameter",
        names: &["bn_stats_batch_size"],
        reason: "cortado computes the statistics of BatchNorm over the whole batch",
    },
    IgnoredFields {
        message: "LayerParameter",
        names: &["quantization_param"],
        reason: "cortado does not compute in 8-bit integers",
    },
];

/// Returns why the parser ignores the field `name` of a message of type `message`; `None` if the
/// parser does not ignore the field.
pub(super) fn reason_to_ignore(message: &str, name: &str) -> Option<&'static str> {
    let mut fields = IGNORED.iter().filter(|fields| fields.message == message);
    fields.find(|fields| fields.names.contains(&name)).map(|fields| fields.reason)
}

/// Enum values that select libraries of Intel's fork, each with its enum type. The parser reads
/// these values as 0.
const IGNORED_VALUES: [(&str, &str); 2] = [("Engine", "MKL2017"), ("Engine", "MKLDNN")];

/// Returns the entry of [`IGNORED_VALUES`] for the value `value` of the enum `kind`, and why the
/// parser ignores this value; `None` if the parser does not ignore the value.
pub(super) fn ignored_value(
    kind: &str,
    value: &str,
) -> Option<((&'static str, &'static str), &'static str)> {
    let entry = IGNORED_VALUES.into_iter().find(|&entry| entry == (kind, value))?;
    Some((entry, IMPLEMENTATION))
}
