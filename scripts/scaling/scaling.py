#!/usr/bin/env python3
"""Models the time of a data-parallel training step, as docs/scaling.md explains.

Usage: scaling.py check|update

`update` writes the tables of docs/scaling.md and the plot docs/images/scaling.svg from the
measurements in layers.tsv, exchanges.tsv and steps.tsv. `check` fails if the tables or the plot
differ from those that `update` would write, or if an example in a comment of this file is wrong.

Times are in seconds, sizes in bytes, rates in bytes per second.
"""

import csv
import doctest
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from plot import plot

HERE = Path(__file__).parent
DOC = HERE.parents[1] / "docs/scaling.md"
PLOT = HERE.parents[1] / "docs/images/scaling.svg"

# Bytes of gradients that processes exchange and add before the next bytes.
PIECE = 1 << 20
# Short exchanges at each distance after a step, in which processes request to stop.
SHORT_EXCHANGES = 1
# Cores of the machine on which the steps were measured.
CORES = 2
NETS = {"lenet": "LeNet", "alexnet": "AlexNet", "googlenet": "GoogLeNet"}
# Images per process in weak scaling: the batch sizes that were measured.
WEAK_BATCH = {"lenet": 64, "alexnet": 32, "googlenet": 32}
# Images of all processes in strong scaling.
STRONG_BATCH = 1024
# Images of an iteration in Caffe's own definitions of solvers.
CAFFE_BATCH = {"lenet": 64, "alexnet": 256, "googlenet": 32}
# Speeds of a process, as multiples of the measured core, and the speed for the tables by number of
# processes and for the plot.
SPEEDS = [1, 10, 100]
SERVER = 10


@dataclass(frozen=True)
class Link:
    """The connection of a process to the others. `addition` is the rate of the addition of received
    gradients. `uses_cores` says whether the cores that compute also copy the messages, so that an
    exchange cannot take place at the same time as the backward pass."""

    latency: float
    bandwidth: float
    addition: float
    uses_cores: bool = False

    def sum_time(self, size, processes):
        """Returns the time to add `size` bytes over all processes, by recursive halving and
        doubling (Thakur, Rabenseifner and Gropp, 2005).

        Four processes, 8 MB, 1 ms, 1 GB/s, 2 GB/s: 4 exchanges, 12 MB sent, 6 MB added.

        >>> round(Link(1e-3, 1e9, 2e9).sum_time(8e6, 4), 6)
        0.019
        >>> Link(1e-3, 1e9, 2e9).sum_time(8e6, 1)
        0.0
        """
        exchanges = 2 * (processes.bit_length() - 1)
        part = (processes - 1) / processes * size
        return exchanges * self.latency + 2 * part / self.bandwidth + part / self.addition


# Nominal rates and assumed latencies. The rate of additions is measured.
NETWORKS = {10: 20e-6, 25: 10e-6, 100: 2e-6}


@dataclass(frozen=True)
class Layer:
    """The times of a layer with parameters and of the layers up to the next one with parameters, and
    the bytes of its gradients."""

    forward: float
    backward: float
    size: float


def step_time(layers, update, link, processes, piece=PIECE):
    """Returns the time of a training step, and the time of exchanges that the backward pass hides.

    A gradient leaves when the backward pass of its layer is complete. Gradients smaller than a piece
    wait for those of the next layers. The exchanges take place one after another.

    Two layers of 1 MB, of which the last is the first in the backward pass. An exchange of 1 MB
    between two processes takes 1 ms. The first exchange ends at 1 + 3 + 1 ms, and the second at
    1 + 3 + 2 + 1 ms; the update takes 0.5 ms.

    >>> link = Link(0, 1e9, float("inf"))
    >>> layers = [Layer(0.5e-3, 2e-3, 1e6), Layer(0.5e-3, 3e-3, 1e6)]
    >>> time, hidden = step_time(layers, 0.5e-3, link, 2, 1e6)
    >>> round(time, 6), round(hidden, 6)
    (0.0075, 0.001)

    With backward passes of 0.1 ms, the exchanges follow one another: 1 + 0.1 + 1 + 1 + 0.5 ms.

    >>> layers = [Layer(0.5e-3, 0.1e-3, 1e6), Layer(0.5e-3, 0.1e-3, 1e6)]
    >>> round(step_time(layers, 0.5e-3, link, 2, 1e6)[0], 6)
    0.0036
    """
    now = sum(layer.forward for layer in layers)
    exchanged = total = waiting = 0.0
    for index, layer in reversed(list(enumerate(layers))):
        now += layer.backward
        waiting += layer.size
        if processes > 1 and waiting and (waiting >= piece or index == 0):
            pieces = max(1, round(waiting / piece))
            seconds = pieces * link.sum_time(waiting / pieces, processes)
            total += seconds
            exchanged = max(exchanged, now) + seconds
            waiting = 0.0
    end = now + total if link.uses_cores else max(now, exchanged)
    short = SHORT_EXCHANGES * (processes.bit_length() - 1) * link.latency
    return end + update + short, total - (end - now)


class Measurements:
    """The tables of measurements, and the constants that are fitted to them."""

    def __init__(self):
        self.layers = defaultdict(dict)
        for row in read("layers.tsv"):
            times = [1e-3 * float(row[key]) for key in ["forward_ms", "backward_ms"]]
            layer = Layer(*times, 4.0 * int(row["parameters"]))
            of_batch = self.layers[row["net"], int(row["busy_cores"])]
            of_batch.setdefault(int(row["batch"]), []).append(layer)
        self.steps = read("steps.tsv")
        for row in self.steps:
            row["processes"], row["batch"] = int(row["processes"]), int(row["batch"])
            row["seconds"] = 1e-3 * float(row["step_ms"])
        self.links = self.measured_links()
        # Seconds of the solver update of each net, from the steps of one process.
        self.update = {net: self.measured_update(net) for net in NETS}

    def measured_update(self, net):
        return statistics.median(
            row["seconds"] - time_of(self.net(net, row["batch"]))
            for row in self.steps
            if row["processes"] == 1 and row["net"] == net
        )

    def measured_links(self):
        """Returns the links between processes of one machine: the latency is the time of the
        shortest exchange, and the rates are those of messages as long as a piece."""
        links = {}
        for name in dict.fromkeys(row["link"] for row in read("exchanges.tsv")):
            rows = {int(row["values"]): row for row in read("exchanges.tsv") if row["link"] == name}
            seconds = {n: 1e-6 * float(row["exchange_us"]) for n, row in rows.items()}
            sums = {n: 1e-6 * float(row["sum_us"]) for n, row in rows.items()}
            short, long = min(rows), 431_080
            bandwidth = 4 * long / (seconds[long] - seconds[short])
            # A sum over two processes exchanges all values, and adds half of them.
            added = sums[long] - sums[short] - 4 * long / bandwidth
            addition = 2 * long / added if added > 0 else float("inf")
            links[name] = Link(seconds[short], bandwidth, addition, name == "memory")
        return links

    def net(self, net, batch, busy_cores=1):
        """Returns the layers of `net` for `batch` images, with times interpolated linearly between
        the measured batch sizes, or extrapolated from the nearest two."""
        measured = self.layers[net, busy_cores]
        low, high = nearest(sorted(measured), batch)
        weight = (batch - low) / (high - low)

        def mix(a, b):
            return max(0.0, a + weight * (b - a))

        return [
            Layer(mix(a.forward, b.forward), mix(a.backward, b.backward), a.size)
            for a, b in zip(measured[low], measured[high])
        ]

    def network(self, gbits):
        return Link(NETWORKS[gbits], gbits * 1e9 / 8, self.links["memory"].addition)


def read(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def nearest(sizes, batch):
    """Returns the two neighbours in `sizes` between which `batch` lies, or the nearest two.

    >>> nearest([1, 8, 32], 16), nearest([1, 8, 32], 256), nearest([2, 8], 1)
    ((8, 32), (8, 32), (2, 8))
    """
    upper = next((i for i, size in enumerate(sizes) if size >= batch), len(sizes) - 1)
    upper = max(upper, 1)
    return sizes[upper - 1], sizes[upper]


def time_of(layers):
    return sum(layer.forward + layer.backward for layer in layers)


def measured_step(data, row):
    """Returns the model of a step that was measured, and the time of exchanges that the backward pass
    hides. The processes divide the cores of the machine."""
    processes = row["processes"]
    layers = data.net(row["net"], row["batch"], min(processes, CORES))
    load = max(1.0, processes / CORES)
    layers = [Layer(load * layer.forward, load * layer.backward, layer.size) for layer in layers]
    update = load * data.update[row["net"]]
    link = data.links[row["link"]]
    if link.uses_cores:
        link = Link(load * link.latency, link.bandwidth / load, link.addition / load, True)
    return step_time(layers, update, link, processes)


def predicted_step(data, net, batch, processes, gbits, speed):
    """Returns the model of a step of `processes` processes, which each compute `speed` times as fast
    as the measured core."""
    layers = [
        Layer(layer.forward / speed, layer.backward / speed, layer.size)
        for layer in data.net(net, batch)
    ]
    update = data.update[net] / speed
    return step_time(layers, update, data.network(gbits), processes)[0]


PROCESSES = [4, 16, 64, 256, 1024]


def table(header, rows, left=1):
    """Returns the lines of a table in Markdown, with `left` columns of text before those of numbers."""
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in [header, rule, *rows]]


def constants(data):
    rows = []
    for name, link in data.links.items():
        rows.append([f"latency of an exchange, {name}", f"{1e6 * link.latency:.1f} µs"])
        rows.append([f"bandwidth in each direction, {name}", f"{1e-9 * link.bandwidth:.2f} GB/s"])
    rows.append(["addition of gradients", f"{1e-9 * data.links['memory'].addition:.1f} GB/s"])
    for net, name in NETS.items():
        rows.append([f"solver update of {name}", f"{1e3 * data.update[net]:.2f} ms"])
    return table(["constant", "value"], rows)


def fit(data):
    rows, errors = [], []
    for row in data.steps:
        model, _ = measured_step(data, row)
        error = model / row["seconds"] - 1
        if row["processes"] > 1:
            errors.append(abs(error))
        cells = [NETS[row["net"]], row["link"], row["processes"], row["batch"]]
        cells += [f"{1e3 * row['seconds']:.1f}", f"{1e3 * model:.1f}", f"{100 * error:+.0f} %"]
        rows.append(cells)
    median, largest = statistics.median(errors), max(errors)
    header = ["net", "link", "processes", "images per process", "measured ms", "model ms", "error"]
    text = f"Two and four processes: the median of the absolute errors is {100 * median:.0f} %, and "
    text += f"the largest is {100 * largest:.0f} %."
    return [*table(header, rows, 2), "", text]


def weak_efficiency(data, net, processes, gbits, speed):
    batch = WEAK_BATCH[net]
    one = predicted_step(data, net, batch, 1, gbits, speed)
    return one / predicted_step(data, net, batch, processes, gbits, speed)


def strong_speedup(data, net, processes, gbits, speed, batch=STRONG_BATCH):
    """Returns how many times as fast as one process the processes compute a step of `batch` images
    in all; `None` if a process would have less than one image."""
    if batch < processes:
        return None
    one = predicted_step(data, net, batch, 1, gbits, speed)
    return one / predicted_step(data, net, batch // processes, processes, gbits, speed)


def weak(data):
    rows = [
        [f"{NETS[net]}, {WEAK_BATCH[net]} images", f"{gbits} Gbit/s"]
        + [f"{100 * weak_efficiency(data, net, p, gbits, SERVER):.0f} %" for p in PROCESSES]
        for net in NETS
        for gbits in NETWORKS
    ]
    return table(["net and batch", "network", *PROCESSES], rows, 2)


def strong(data):
    rows = [
        [NETS[net], f"{gbits} Gbit/s"]
        + [f"{strong_speedup(data, net, p, gbits, SERVER):.1f}" for p in PROCESSES]
        for net in NETS
        for gbits in NETWORKS
    ]
    return table(["net", "network", *PROCESSES], rows, 2)


def speeds(data):
    rows = [
        [f"{NETS[net]}, {WEAK_BATCH[net]} images", speed]
        + [f"{100 * weak_efficiency(data, net, 1024, gbits, speed):.0f} %" for gbits in NETWORKS]
        for net in NETS
        for speed in SPEEDS
    ]
    return table(["net and batch", "speed of a process", *(f"{n} Gbit/s" for n in NETWORKS)], rows)


def last_that_pays(data, net, gbits, speed, batch):
    """Returns the number of processes after the last doubling that makes a step of `batch` images in
    all at least 1.5 times as fast."""
    processes, speedup = 1, 1.0
    while next_speedup := strong_speedup(data, net, 2 * processes, gbits, speed, batch):
        if next_speedup < 1.5 * speedup:
            break
        processes, speedup = 2 * processes, next_speedup
    return processes


def limits(data):
    rows = [
        [NETS[net], batch, speed]
        + [last_that_pays(data, net, gbits, speed, batch) for gbits in NETWORKS]
        for net in NETS
        for batch in [CAFFE_BATCH[net], STRONG_BATCH]
        for speed in SPEEDS
    ]
    networks = [f"{gbits} Gbit/s" for gbits in NETWORKS]
    return table(["net", "images of all processes", "speed of a process", *networks], rows)


def image(data):
    counts = [2**n for n in range(11)]

    def panels(title, highest, value):
        return [
            (
                f"{NETS[net]}: {title}",
                highest,
                {f"{g} Gbit/s": [value(data, net, p, g, SERVER) for p in counts] for g in NETWORKS}
                | {"ideal": [100.0 if highest < 0 else p for p in counts]},
            )
            for net in NETS
        ]

    def percent(*arguments):
        return 100 * weak_efficiency(*arguments)

    rows = [
        panels("efficiency, %", -100.0, percent),
        panels("speedup", counts[-1], strong_speedup),
    ]
    return plot("Weak scaling (above) and strong scaling (below)", counts, rows)


def document(data, text):
    """Returns the text of the chapter with its tables replaced."""
    for function in [constants, fit, weak, strong, speeds, limits]:
        name = function.__name__
        start, end = f"<!-- scaling.py: {name} -->", "<!-- end of table -->"
        before, found, rest = text.partition(start)
        if not found or end not in rest:
            sys.exit(f"{DOC}: expected a line `{start}`, and a line `{end}` after it")
        after = rest.partition(end)[2]
        text = before + "\n".join([start, "", *function(data), "", end]) + after
    return text


def main():
    if sys.argv[1:] not in (["check"], ["update"]):
        sys.exit(__doc__)
    if doctest.testmod().failed:
        sys.exit(1)
    data = Measurements()
    outputs = {DOC: document(data, DOC.read_text()), PLOT: image(data)}
    for path, text in outputs.items():
        if sys.argv[1] == "update":
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path}: differs from the model; run scripts/scaling/scaling.py update")


main()
