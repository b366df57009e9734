"""Times copies, and training steps of LeNet, AlexNet and GoogLeNet, in PyTorch on a GPU or CPU.

Prints tables in Markdown. The nets are those of examples/mnist and examples/imagenet. The optional
argument is a file with the output of `benches/gpu` on the same GPU. If it is given, the table also
contains cortado's times from that file.

With `--cpu THREADS`, the nets run on `THREADS` threads of the CPU, and the script does not time
copies. With `--cortado BINARY`, the script also times the command `BINARY train` on each net, after
PyTorch, with the same constant data. With `--cpu`, the script also prints the unit of time in
docs/performance.md: the time of an `sgemm` of 512³ on one thread in the OpenBLAS of NumPy.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

ARGUMENTS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
ARGUMENTS.add_argument("gpu_output", nargs="?", help="output of `benches/gpu`")
ARGUMENTS.add_argument("--cpu", type=int, metavar="THREADS", help="number of threads on the CPU")
ARGUMENTS.add_argument("--cortado", metavar="BINARY", help="command to compare with on the CPU")
OPTIONS = ARGUMENTS.parse_args()
DEVICE = torch.device("cpu" if OPTIONS.cpu else "cuda")


def conv(inputs, outputs, kernel, **options):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **options), nn.ReLU(inplace=True))


def pool(kernel, stride, **options):
    return nn.MaxPool2d(kernel, stride, ceil_mode=True, **options)


def norm():
    return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1)


def dense(inputs, outputs, dropped):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.Dropout(dropped))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), pool(2, 2), nn.Conv2d(20, 50, 5), pool(2, 2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(inplace=True), nn.Linear(500, 10),
    )


def alexnet():
    return nn.Sequential(
        conv(3, 96, 11, stride=4), norm(), pool(3, 2),
        conv(96, 256, 5, padding=2, groups=2), norm(), pool(3, 2),
        conv(256, 384, 3, padding=1),
        conv(384, 384, 3, padding=1, groups=2),
        conv(384, 256, 3, padding=1, groups=2), pool(3, 2), nn.Flatten(),
        dense(9216, 4096, 0.5), dense(4096, 4096, 0.5), nn.Linear(4096, 1000),
    )


class Inception(nn.Module):
    def __init__(self, inputs, one, three_reduced, three, five_reduced, five, pooled):
        super().__init__()
        self.branches = nn.ModuleList([
            conv(inputs, one, 1),
            nn.Sequential(conv(inputs, three_reduced, 1), conv(three_reduced, three, 3, padding=1)),
            nn.Sequential(conv(inputs, five_reduced, 1), conv(five_reduced, five, 5, padding=2)),
            nn.Sequential(pool(3, 1, padding=1), conv(inputs, pooled, 1)),
        ])

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def classifier(inputs):
    return nn.Sequential(
        nn.AvgPool2d(5, 3), conv(inputs, 128, 1), nn.Flatten(),
        dense(2048, 1024, 0.7), nn.Linear(1024, 1000),
    )


class GoogLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(
            conv(3, 64, 7, stride=2, padding=3), pool(3, 2), norm(),
            conv(64, 64, 1), conv(64, 192, 3, padding=1), norm(), pool(3, 2),
            Inception(192, 64, 96, 128, 16, 32, 32),
            Inception(256, 128, 128, 192, 32, 96, 64), pool(3, 2),
            Inception(480, 192, 96, 208, 16, 48, 64),
        )
        self.second = nn.Sequential(
            Inception(512, 160, 112, 224, 24, 64, 64),
            Inception(512, 128, 128, 256, 24, 64, 64),
            Inception(512, 112, 144, 288, 32, 64, 64),
        )
        self.third = nn.Sequential(
            Inception(528, 256, 160, 320, 32, 128, 128), pool(3, 2),
            Inception(832, 256, 160, 320, 32, 128, 128),
            Inception(832, 384, 192, 384, 48, 128, 128),
            nn.AvgPool2d(7), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000),
        )
        self.auxiliary = nn.ModuleList([classifier(512), classifier(528)])

    def loss(self, x, labels):
        first = self.first(x)
        second = self.second(first)
        losses = [F.cross_entropy(net(y), labels) for net, y in zip(self.auxiliary, (first, second))]
        return F.cross_entropy(self.third(second), labels) + 0.3 * sum(losses)


def loss_of(net, x, labels):
    return net.loss(x, labels) if hasattr(net, "loss") else F.cross_entropy(net(x), labels)


# For each net: the constructor, the number of parameters, the shape of a batch, and the definition
# in the folder `examples`.
NETS = {
    "LeNet": (lenet, 431_080, (64, 1, 28, 28), "mnist/lenet"),
    "AlexNet": (alexnet, 60_965_224, (10, 3, 227, 227), "imagenet/alexnet"),
    "GoogLeNet": (GoogLeNet, 13_378_280, (10, 3, 224, 224), "imagenet/googlenet"),
}


def milliseconds(work, repeats):
    """Returns the median time of one `work()`, over five samples of `repeats` calls each."""
    for _ in range(repeats):
        work()
    synchronize = torch.cuda.synchronize if DEVICE.type == "cuda" else torch.cpu.synchronize
    samples = []
    for _ in range(5):
        synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        synchronize()
        samples.append((time.perf_counter() - start) / repeats * 1e3)
    return statistics.median(samples)


def step_of(build, params, shape):
    """Returns a training step that, like the solver, ends with the loss on the host."""
    net = build().to(DEVICE).train()
    count = sum(param.numel() for param in net.parameters())
    assert count == params, f"net has {count} parameters, expected {params}"
    solver = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)
    x = torch.full(shape, 0.5, device=DEVICE)
    labels = torch.full(shape[:1], 7, device=DEVICE)

    def step():
        solver.zero_grad(set_to_none=True)
        loss = loss_of(net, x, labels)
        loss.backward()
        solver.step()
        return loss.item()

    return step


def cortado_times(path):
    """Returns each net's milliseconds per step, from the table of training steps in `path`."""
    rows = [line.strip("| \n").split(" | ") for line in open(path) if line.startswith("| ")]
    return {row[0]: float(row[3]) for row in rows if row[0] in NETS and len(row) == 5}


DATA_LAYER = """layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{ shape {{ dim: {shape} }} shape {{ dim: {batch} }}
    data_filler {{ value: 0.5 }} data_filler {{ value: 7 }} }} }}
"""

SOLVER = """net: "{net}" base_lr: 0.0001 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed"
random_seed: 1 display: {repeats} max_iter: {iterations} snapshot_after_train: false
"""

# Pattern of a log line about an iteration in Caffe's format, with the time of day.
ITERATION = re.compile(r"I\d+ (\d+):(\d+):([\d.]+) .*Iteration (\d+)(?: \(|, loss)")


def cortado_milliseconds(shape, definition, repeats):
    """Returns the median time of a step of `cortado train`, over six samples of `repeats` steps."""
    text = pathlib.Path(__file__, "../../examples", definition + ".prototxt").resolve().read_text()
    layers = text[re.search(r'layer \{\s*name: "conv1', text).start() :]
    with tempfile.TemporaryDirectory() as folder:
        net, solver = pathlib.Path(folder, "net.prototxt"), pathlib.Path(folder, "solver.prototxt")
        net.write_text(DATA_LAYER.format(shape=list(shape), batch=shape[0]) + layers)
        iterations = 7 * repeats + 1
        solver.write_text(SOLVER.format(net=net, repeats=repeats, iterations=iterations))
        command = [OPTIONS.cortado, "train", "--solver", solver, "--threads", str(OPTIONS.cpu)]
        run = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"{OPTIONS.cortado} failed:\n{run.stderr}")
    lines = {}
    for hours, minutes, seconds, iteration in ITERATION.findall(run.stderr):
        lines[int(iteration)] = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
    # Omit the first `repeats` steps from the samples, because the first steps allocate memory.
    times = [lines[i * repeats] for i in range(1, 8)]
    return statistics.median((b - a) / repeats * 1e3 for a, b in zip(times, times[1:]))


def sgemm_unit():
    """Returns the median milliseconds of 60 products of 512x512 matrices on one thread."""
    code = """
import numpy, statistics, time
a = numpy.ones((512, 512), numpy.float32)
times = []
for _ in range(60):
    start = time.perf_counter()
    a @ a
    times.append(time.perf_counter() - start)
print(statistics.median(times) * 1e3)
"""
    # Omit OPENBLAS_CORETYPE, so that OpenBLAS chooses its kernels for this processor.
    environment = {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def copies():
    count = 1 << 28
    on_gpu, other = [torch.zeros(count, dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    pinned = torch.zeros(count, dtype=torch.uint8, pin_memory=True)
    pageable = torch.zeros(count, dtype=torch.uint8)
    kinds = [
        ("upload, pageable", on_gpu, pageable, 1), ("upload, pinned", on_gpu, pinned, 1),
        ("download, pageable", pageable, on_gpu, 1), ("download, pinned", pinned, on_gpu, 1),
        ("within the GPU, reads and writes", other, on_gpu, 2),
    ]
    print("Copies of 2²⁸ bytes by the CUDA runtime:\n\n| copy | GB/s |\n|---|--:|")
    for name, to, source, passes in kinds:
        ms = milliseconds(lambda: to.copy_(source, non_blocking=True), 5)
        print(f"| {name} | {passes * count / ms / 1e6:.2f} |")


def main():
    if DEVICE.type == "cpu":
        torch.set_num_threads(OPTIONS.cpu)
        print(f"PyTorch {torch.__version__}, threads on the CPU: {OPTIONS.cpu}.")
        print(f"OpenBLAS in NumPy, `sgemm` of 512³ on one thread: {sgemm_unit():.3f} ms.")
    else:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        cudnn = torch.backends.cudnn.version()
        print(f"PyTorch {torch.__version__}, cuDNN {cudnn}, without TF32.\n")
        copies()
    cortado = cortado_times(OPTIONS.gpu_output) if OPTIONS.gpu_output else {}
    print("\n| net | batch | PyTorch, ms/step | cortado, ms/step | PyTorch / cortado |")
    print("|---|--:|--:|--:|--:|")
    for name, (build, params, shape, definition) in NETS.items():
        # One step of a large net takes about a second on a CPU.
        repeats = 20 if DEVICE.type == "cuda" or name == "LeNet" else 3
        ms = milliseconds(step_of(build, params, shape), repeats)
        if OPTIONS.cpu and OPTIONS.cortado:
            steps = 100 if name == "LeNet" else 3
            cortado_ms = cortado_milliseconds(shape, definition, steps)
        else:
            cortado_ms = cortado.get(name)
        comparison = f"{cortado_ms:.3f} | {ms / cortado_ms:.2f}" if cortado_ms else "|"
        print(f"| {name} | {shape[0]} | {ms:.3f} | {comparison} |")


if __name__ == "__main__":
    main()
