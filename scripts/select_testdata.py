#!/usr/bin/env python3
"""Copies a selection of the large set of test data to tests/testdata.

    scripts/select_testdata.py ROOT [OUTPUT]

ROOT is the folder with the large set, like CORTADO_TESTDATA. Files keep their paths. Index tables
keep only the rows of selected cases. Two large files become smaller files with other names: the
weights of LeNet, rounded to bf16, and the first 300 of MNIST's test images. The script does not
change README.md and LICENSE-caffe in OUTPUT.
"""

import gzip
import re
import shutil
import struct
import sys
from pathlib import Path

LIMIT = 2 << 20  # largest size of the whole selection in bytes, including folders
FOLDER = 4096  # bytes that `du -b` counts for a folder

# Layer cases, at least one for each layer type, flag and kind of net.
LAYERS = """
    absval_1d accuracy_per_class accuracy_topk argmax_axis_topk batch_reindex_repeat bias_2d
    bias_two_bottoms_last bn_test_scale bn_train_2d bn_train_twice bnll_extreme bnll_inplace
    clip_one_sided concat_axis0 contrastive conv_3d_dilation conv_dilation_stride_pad conv_group
    crop_axis0 deconv_dilation deconv_stride_pad dropout_test dropout_train_default dummy_many
    eltwise_coeff eltwise_max_ties elu_alpha embed euclidean exp_shift_scale filter flatten_axis
    hinge_l2 im2col_dilation infogain_axis infogain_source input_only ip_transpose log_shift_scale
    lrn_across_k lrn_within lstm_carry lstm_unit multinomial_weight mvn_across parameter_alone
    pool_ave_pad pool_max_hw pool_max_mask_global power_frac prelu_2d reduction_mean_axis_coeff
    relu_slope reshape_copy_infer rnn_static scale_bias_axis sigmoid_extreme sigmoidce_valid
    silence slice_points softmax_spatial softmaxloss_ignore softmaxloss_spatial split spp_max_odd
    swish_beta tanh_extreme threshold_value tile_axis
    reshape_batch_ip reshape_bn_lrn reshape_concat_slice reshape_conv_pool
    net_frozen net_inplace_chain net_loss_consumed_explicit net_lstm_seq net_propagate_down
    net_shared_ip net_two_losses
""".split()

# Solver cases, at least one for each solver type and learning rate policy.
SOLVERS = """
    adadelta_step_clip adagrad_delta_l1_mults adam_multistep_l2_clip_mults adam_shared
    nesterov_itersize_clip rmsprop_exp_l2_delta sgd_average_loss sgd_inline_net sgd_poly
    sgd_sigmoid sgd_test_net
""".split()

# Net cases without an upgrade. The selection also has every net and solver with an upgrade.
NETS = """
    auto_top_two bvlc_mnist_lenet empty_net exclude_not_met level_2 lstm_params need_branch
    need_propagate_down outputs_sorted params_frozen phase_test phase_train shared_across_types
    shared_lr split_inplace_before split_loss_weight_two split_second_top stage_2
    stage_phase_level
""".split()

# Blobs of 1 MiB or more, which the selection leaves out.
LARGE_BLOBS = {"big_1MiB"}

# Caffe's own prototxt files. Some are pairs of the versions before and after an upgrade. The
# selection also has all prototxt files that were written for the large set.
CAFFE_PROTOTXT = """
    11a4c16__examples__hdf5_classification__train_val.prototxt
    e6c80da__examples__hdf5_classification__train_val.prototxt
    11a4c16__examples__hdf5_classification__train_val2.prototxt
    e6c80da__examples__hdf5_classification__train_val2.prototxt
    2e33058__examples__cifar10__cifar10_full_test.prototxt
    1b30e0a__examples__cifar10__cifar10_full_test.prototxt
    2e33058__examples__lenet__lenet.prototxt
    1b30e0a__examples__lenet__lenet.prototxt
    2e33058__examples__lenet__lenet_train.prototxt
    1b30e0a__examples__lenet__lenet_train.prototxt
    11a4c16__examples__siamese__mnist_siamese.prototxt
    2e33058__examples__lenet__lenet_solver.prototxt
    ca3e042__data__lenet.prototxt
    examples__mnist__lenet_adadelta_solver.prototxt
    examples__mnist__lenet_multistep_solver.prototxt
    examples__mnist__lenet_solver.prototxt
    examples__mnist__lenet_train_test.prototxt
""".split()

# The name of this file differs from another file's only by case, which some file systems ignore.
AMBIGUOUS_PROTOTXT = {"bool_False.prototxt"}

DIGITS = 300


def main():
    if len(sys.argv) not in [2, 3]:
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    repository = Path(__file__).resolve().parents[1]
    output = Path(sys.argv[2]) if len(sys.argv) == 3 else repository / "tests/testdata"
    for folder in ["data", "golden"]:
        shutil.rmtree(output / folder, ignore_errors=True)
    selection = Selection(root, output)
    layers(selection)
    solvers(selection)
    valid_nets(selection)
    selection.copy("golden/nets/refused")
    selection.copy("golden/fillers")
    blobs(selection)
    prototxt(selection)
    lenet(selection)
    digits(selection)
    check(output)


class Selection:
    """A source and a destination folder."""

    def __init__(self, root, output):
        self.root, self.output = root, output

    def write(self, path, content):
        file = self.output / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def copy(self, path):
        """Copies a file, or all files of a folder."""
        source = self.root / path
        if source.is_dir():
            for child in sorted(source.iterdir()):
                self.copy(f"{path}/{child.name}")
        else:
            self.write(path, source.read_bytes())

    def rows(self, path):
        lines = (self.root / path).read_text().splitlines()[1:]
        return [line.split("\t") for line in lines]

    def filter(self, path, keeps):
        """Copies the header of a table, and each row for whose first column `keeps` is true."""
        header, *rows = (self.root / path).read_bytes().splitlines(keepends=True)
        kept = [row for row in rows if keeps(row.split(b"\t")[0].decode())]
        self.write(path, b"".join([header, *kept]))

    def cases(self, folder, names):
        """Copies cases, and the rows of these cases in the tables of the folder."""
        known = {row[0] for row in self.rows(f"{folder}/cases.tsv")}
        expect_none("unknown cases", set(names) - known)
        for table in ["cases.tsv", "tolerances.tsv"]:
            if (self.root / folder / table).exists():
                self.filter(f"{folder}/{table}", set(names).__contains__)
        for name in names:
            self.copy(f"{folder}/{name}")


def layers(selection):
    rows = selection.rows("golden/layers/cases.tsv")
    selected = [row for row in rows if row[0] in LAYERS]
    for column, what in [(2, "layer types"), (6, "flags")]:
        all_items, items = (
            {item for row in part for item in row[column].split(",")} for part in (rows, selected)
        )
        expect_none(f"{what} without a case", all_items - items)
    selection.cases("golden/layers", LAYERS)


def solvers(selection):
    folder = "golden/solvers"

    def kinds(names):
        files = [selection.root / folder / name / "solver.prototxt" for name in names]
        pattern = re.compile(r"^type: *'\w+'|lr_policy: *'\w+'", re.MULTILINE)
        return {kind for file in files for kind in pattern.findall(file.read_text())}

    every = kinds(row[0] for row in selection.rows(f"{folder}/cases.tsv"))
    expect_none("solver types or policies without a case", every - kinds(SOLVERS))
    selection.cases(folder, SOLVERS)


def valid_nets(selection):
    folder = "golden/nets/valid"
    upgraded = {path.parent.name for path in selection.root.glob(f"{folder}/*/upgraded.prototxt")}
    selection.cases(folder, sorted(upgraded | set(NETS)))


def blobs(selection):
    """Copies cases and tables, but no outputs, because `outputs.tsv` has their hashes."""
    folder = "golden/blobproto"
    for row in selection.rows(f"{folder}/verdicts.tsv"):
        if row[0] not in LARGE_BLOBS:
            selection.copy(f"{folder}/cases/{row[0]}.bin")
    for table in ["verdicts.tsv", "outputs.tsv"]:
        selection.filter(f"{folder}/{table}", lambda name: name.split(".")[0] not in LARGE_BLOBS)
    selection.copy(f"{folder}/shape_equals.tsv")


def prototxt(selection):
    folder = "data/prototxt"
    rows = selection.rows(f"{folder}/expected.tsv")
    written = {row[0] for row in rows if "__" not in row[0]}
    names = written - AMBIGUOUS_PROTOTXT | set(CAFFE_PROTOTXT)
    expect_none("unknown files", names - {row[0] for row in rows})
    selection.filter(f"{folder}/expected.tsv", names.__contains__)
    for row in rows:
        if row[0] in names:
            for file in [row[0], *row[3:5]]:
                selection.copy(f"{folder}/{file}")


def lenet(selection):
    folder = "golden/lenet"
    selection.copy(f"{folder}/mnist_mean.binaryproto")
    log = (selection.root / folder / "caffe_train.log").read_bytes()
    selection.write(f"{folder}/caffe_train.log.gz", compressed(log))
    weights = (selection.root / folder / "lenet_iter_10000.caffemodel").read_bytes()
    name = "lenet_iter_10000_bf16.caffemodel.gz"
    selection.write(f"{folder}/{name}", compressed(round_weights(weights)))


def digits(selection):
    """Copies the first of MNIST's test images, with their labels."""
    for name, header, size in [("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)]:
        name = f"t10k-{name}-ubyte.gz"
        content = gzip.decompress((selection.root / "data/mnist" / name).read_bytes())
        first = content[:4] + struct.pack(">I", DIGITS) + content[8 : header + DIGITS * size]
        selection.write(f"data/mnist_first_{DIGITS}/{name}", compressed(first))


def compressed(content):
    return gzip.compress(content, 9, mtime=0)


def round_weights(model):
    """Rounds the weights in a caffemodel to bf16. All other bytes are unchanged."""
    model = bytearray(model)
    for layer in submessages(model, 0, len(model), 100):
        for blob in submessages(model, *layer, 7):
            for start, end in submessages(model, *blob, 5):  # values of the packed field `data`
                format = f"<{(end - start) // 4}I"
                bits = struct.unpack_from(format, model, start)
                struct.pack_into(format, model, start, *map(round_to_bf16, bits))
    return bytes(model)


def round_to_bf16(bits):
    """Rounds a finite float, given by its bits, to 8 significant bits, with ties to even."""
    return (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000


def submessages(message, start, end, number):
    """Yields the start and end of each field `number`, which must be length-delimited."""
    while start < end:
        tag, start = varint(message, start)
        wire_type = tag & 7
        if wire_type == 0:
            _, start = varint(message, start)
            continue
        length = {1: 8, 5: 4}.get(wire_type)
        if wire_type == 2:
            length, start = varint(message, start)
        if tag >> 3 == number:
            yield start, start + length
        start += length


def varint(message, at):
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 0x80:
            return value, at


def check(output):
    """Checks the total size, and that no two file names differ only by case."""
    paths = sorted(output.rglob("*"))
    by_name = {str(path.relative_to(output)).lower(): path for path in paths}
    expect_none("file names that differ only by case", set(paths) - set(by_name.values()))
    size = sum(FOLDER if path.is_dir() else path.stat().st_size for path in paths)
    files = [path for path in paths if path.is_file()]
    content = sum(file.stat().st_size for file in files)
    print(f"{len(files)} files, {content} bytes; {size} bytes with folders")
    if size > LIMIT:
        sys.exit(f"the selection exceeds {LIMIT} bytes")


def expect_none(what, items):
    if items:
        sys.exit(f"{what}: {', '.join(sorted(map(str, items)))}")


if __name__ == "__main__":
    main()
