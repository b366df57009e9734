#!/usr/bin/env python3
"""Measures what the model in scaling.py needs, and prints rows of its tables.

Usage: measure.py layers COMMAND BUSY NET BATCH...
       measure.py steps LINK "LAUNCHER" COMMAND PROCESSES NET BATCH...

`layers` prints rows of layers.tsv: times of the layers of NET on one thread, while BUSY processes
(1 or 2) do the same. `steps` prints rows of steps.tsv: times of training steps of PROCESSES
processes with one thread each. COMMAND is the program `cortado` with the feature `mpi`, LAUNCHER is
`mpiexec` with its arguments, and LINK names the connection of the processes. NET is `lenet`,
`alexnet` or `googlenet`; BATCH is a number of images per process.

Example: measure.py steps memory "mpiexec --oversubscribe" target/release/cortado 2 lenet 32 64
"""

import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
# The definition, the extents of an image, and the numbers of passes and of steps to measure.
NETS = {
    "lenet": ("mnist/lenet.prototxt", "1, 28, 28", 100, 400),
    "alexnet": ("imagenet/alexnet.prototxt", "3, 227, 227", 3, 7),
    "googlenet": ("imagenet/googlenet.prototxt", "3, 224, 224", 3, 5),
}
SOLVER = """net: "%s" base_lr: 1e-9 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
random_seed: 1 display: 1 max_iter: %d snapshot_after_train: false"""


def write_net(net, batch, folder):
    """Writes the definition of `net` with constant data instead of its data layers. Returns the
    path."""
    path, image, *_ = NETS[net]
    text = (EXAMPLES / path).read_text()
    data = f"""layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{ shape {{ dim: [{batch}, {image}] }} shape {{ dim: {batch} }}
    data_filler {{ value: 0.1 }} data_filler {{ value: 0 }} }} }}
"""
    # The data layers precede the layer conv1.
    first = re.search(r'layer \{\s+name: "conv1"', text).start()
    definition = folder / f"{net}-{batch}.prototxt"
    definition.write_text(data + text[first:])
    return definition


def layer_rows(command, busy, net, batch):
    """Yields a row for each layer with parameters: the layer's name, its number of parameters, and
    the milliseconds of the forward and the backward pass of the layer and the layers after it, up
    to the next layer with parameters."""
    with tempfile.TemporaryDirectory() as folder:
        definition = write_net(net, batch, Path(folder))
        arguments = [command, "time", "--threads", "1", "--model", definition]
        arguments += ["--iterations", str(NETS[net][2])]
        run = [
            subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(busy)
        ]
        outputs = [process.communicate() for process in run]
    if any(process.returncode for process in run):
        sys.exit(outputs[0][1])
    header, *lines = outputs[0][0].split("\n\n")[0].split("\n")
    # The columns with numbers are right-aligned.
    ends = [match.end() for match in re.finditer(r"\S+( ms)?", header)]
    columns = dict(zip(header.replace(" ms", "_ms").split(), ends))

    def number(line, name):
        cell = line[: columns[name]].rsplit("  ", 1)[-1].strip()
        return float(cell) if re.fullmatch(r"[\d.]+", cell) else 0.0

    rows = []
    for line in lines:
        times = [number(line, "forward_ms"), number(line, "backward_ms")]
        if parameters := number(line, "parameters"):
            rows.append([line.split()[0], int(parameters), 0.0, 0.0])
        if rows:
            rows[-1][2] += times[0]
            rows[-1][3] += times[1]
    for name, parameters, forward, backward in rows:
        yield f"{net}\t{busy}\t{batch}\t{name}\t{parameters}\t{forward:.3f}\t{backward:.3f}"


def step_row(link, launcher, command, processes, net, batch):
    """Trains `net`, and returns a row with the median milliseconds of a step."""
    steps = NETS[net][3]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "solver").write_text(SOLVER % (write_net(net, batch, folder), steps + 2))
        arguments = ["train", "--threads", "1", "--solver", folder / "solver"]
        arguments += ["--log-json", folder / "log"]
        launch = [*shlex.split(launcher), "-n", str(processes)] if processes > 1 else []
        subprocess.run([*launch, command, *arguments], check=True, stderr=subprocess.DEVNULL)
        events = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    displays = [event for event in events if event["event"] == "display"][1:]
    seconds = statistics.median(
        after["seconds"] - before["seconds"] for before, after in zip(displays, displays[1:])
    )
    return f"{link}\t{net}\t{processes}\t{batch}\t{1e3 * seconds:.3f}"


def main():
    match sys.argv[1:]:
        case ["layers", command, busy, net, *batches]:
            for batch in batches:
                print(*layer_rows(command, int(busy), net, batch), sep="\n", flush=True)
        case ["steps", link, launcher, command, processes, net, *batches]:
            for batch in batches:
                print(step_row(link, launcher, command, int(processes), net, batch), flush=True)
        case _:
            sys.exit(__doc__)


main()
