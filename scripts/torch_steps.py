"""Copies, and steps of training of LeNet, AlexNet and GoogLeNet, by PyTorch on the same GPU.

Prints tables in Markdown. The nets are those of examples/mnist and examples/imagenet; a file with
the table of `benches/gpu` has the times that they are set against.
"""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = torch.device("cuda")


def conv(inputs, outputs, kernel, **how):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **how), nn.ReLU(inplace=True))


def pool(kernel, stride, **how):
    return nn.MaxPool2d(kernel, stride, ceil_mode=True, **how)


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
        self.aside = nn.ModuleList([classifier(512), classifier(528)])

    def loss(self, x, labels):
        first = self.first(x)
        second = self.second(first)
        aside = [F.cross_entropy(net(y), labels) for net, y in zip(self.aside, (first, second))]
        return F.cross_entropy(self.third(second), labels) + 0.3 * sum(aside)


def loss_of(net, x, labels):
    return net.loss(x, labels) if hasattr(net, "loss") else F.cross_entropy(net(x), labels)


# As the examples define them: parameters, and a batch of images.
NETS = {
    "LeNet": (lenet, 431_080, (64, 1, 28, 28)),
    "AlexNet": (alexnet, 60_965_224, (10, 3, 227, 227)),
    "GoogLeNet": (GoogLeNet, 13_378_280, (10, 3, 224, 224)),
}


def milliseconds(work, repeats):
    """Median time of `work`, of five samples of so many repeats."""
    for _ in range(repeats):
        work()
    samples = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        torch.cuda.synchronize()
        samples.append((time.perf_counter() - start) / repeats * 1e3)
    return statistics.median(samples)


def step_of(build, params, shape):
    """A step of training, with the loss on the host at the end of it, as the solver has it."""
    net = build().to(DEVICE).train()
    count = sum(param.numel() for param in net.parameters())
    assert count == params, f"{count} parameters, not {params}"
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


def ours(path):
    """The milliseconds of each net in the table of steps."""
    rows = [line.strip("| \n").split(" | ") for line in open(path) if line.startswith("| ")]
    return {row[0]: float(row[3]) for row in rows if row[0] in NETS and len(row) == 5}


def copies():
    count = 1 << 28
    on_gpu, other = [torch.zeros(count, dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    pinned = torch.zeros(count, dtype=torch.uint8, pin_memory=True)
    pageable = torch.zeros(count, dtype=torch.uint8)
    kinds = [
        ("up, pageable", on_gpu, pageable, 1), ("up, pinned", on_gpu, pinned, 1),
        ("down, pageable", pageable, on_gpu, 1), ("down, pinned", pinned, on_gpu, 1),
        ("on the GPU, read and written", other, on_gpu, 2),
    ]
    print("GB/s of copies of 2²⁸ bytes by CUDA's runtime:\n\n| copy | GB/s |\n|---|--:|")
    for name, to, source, passes in kinds:
        ms = milliseconds(lambda: to.copy_(source, non_blocking=True), 5)
        print(f"| {name} | {passes * count / ms / 1e6:.2f} |")


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, without TF32.\n")
    copies()
    known = ours(sys.argv[1]) if len(sys.argv) > 1 else {}
    print("\n| net | batch | PyTorch, ms a step | cortado, ms | PyTorch / cortado |")
    print("|---|--:|--:|--:|--:|")
    for name, (build, params, shape) in NETS.items():
        ms = milliseconds(step_of(build, params, shape), 20)
        own = known.get(name)
        beside = f"{own:.3f} | {ms / own:.2f}" if own else "|"
        print(f"| {name} | {shape[0]} | {ms:.3f} | {beside} |")


if __name__ == "__main__":
    main()
