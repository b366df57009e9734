#!/usr/bin/env python3
"""Prints tables of the results of `cargo bench`, and plots GEMM under the roofline.

    cargo bench && ./table.py > peers.md

Rates are computed from median times. The number in parentheses is cortado's rate divided by that of
the other library. The plot `peers.svg` shows single-precision GEMM on one thread over its
arithmetic intensity, under two limits: the highest rate of any library, and cortado's bandwidth
when it copies the longest vector.
"""

import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

COLOURS = {"cortado": "#c0392b", "OpenBLAS": "#2471a3", "MKL": "#1e8449", "gemm": "#b9770e"}
WIDTH, HEIGHT, MARGIN = 720, 440, 60


def read_rates(folder):
    """Returns {group: {case: {library: rate}}}, in GFLOP/s or GB/s, with cases sorted by name."""
    rates = defaultdict(lambda: defaultdict(dict))
    for file in sorted(folder.rglob("new/benchmark.json")):
        bench = json.loads(file.read_text())
        estimates = json.loads(file.with_name("estimates.json").read_text())
        seconds = estimates["median"]["point_estimate"] * 1e-9
        (amount,) = bench["throughput"].values()
        rates[bench["group_id"]][bench["value_str"]][bench["function_id"]] = amount / seconds * 1e-9
    return rates


def table(rates):
    """Prints one table per group, with the geometric mean and the minimum of the ratios."""
    for group, cases in rates.items():
        kernel, _, threads = group.rpartition("/")
        peers = sorted({library for case in cases.values() for library in case} - {"cortado"})
        print(f"\n## {kernel}, {threads} thread{'' if threads == '1' else 's'}\n")
        print("| | cortado |", " | ".join(peers), "|")
        print("|---|---|" + "---|" * len(peers))
        ratios = defaultdict(list)
        for name, case in cases.items():
            cells = []
            for library in peers:
                if library in case:
                    ratio = case["cortado"] / case[library]
                    ratios[library].append(ratio)
                    cells.append(f"{case[library]:.1f} ({ratio:.2f})")
                else:
                    cells.append("")
            print(f"| {name} | {case['cortado']:.1f} |", " | ".join(cells), "|")
        means = (
            f"mean {math.exp(sum(map(math.log, ratios[library])) / len(ratios[library])):.2f},"
            f" least {min(ratios[library]):.2f}"
            for library in peers
        )
        print("| ratios | |", " | ".join(means), "|")


def plot(rates):
    """Returns an SVG of the GEMM rates of `sgemm/1` under the roofline; None without results."""
    points = []
    for name, case in rates.get("sgemm/1", {}).items():
        m, n, k = map(int, re.fullmatch(r".._(\d+)x(\d+)x(\d+)", name).groups())
        intensity = 2 * m * n * k / (4 * (m * k + k * n + m * n))
        points += [(intensity, rate, library, name) for library, rate in case.items()
                   if library in COLOURS]
    copies = {int(name.split("/")[1]): case for name, case in rates.get("level1/1", {}).items()
              if name.startswith("copy/")}
    if not points or not copies:
        return None
    peak = max(rate for _, rate, _, _ in points)
    bandwidth = copies[max(copies)]["cortado"]
    low, high = 0.25, 512
    bottom, top = 1, 2 ** math.ceil(math.log2(peak) + 0.2)

    def to_pixels(x, y):
        along = math.log(x / low) / math.log(high / low)
        up = math.log(max(y, bottom) / bottom) / math.log(top / bottom)
        return (MARGIN + along * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN))

    knee = peak / bandwidth
    roof = [to_pixels(low, low * bandwidth), to_pixels(knee, peak), to_pixels(high, peak)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in roof)
    marks = [
        f'<circle cx="{to_pixels(x, y)[0]:.1f}" cy="{to_pixels(x, y)[1]:.1f}" r="4"'
        f' fill="{COLOURS[library]}">'
        f"<title>{library}, {name}: {y:.1f} GFLOP/s</title></circle>"
        for x, y, library, name in points
    ]
    keys = [
        f'<text x="{MARGIN + 8}" y="{MARGIN + 16 * i}" fill="{colour}">{library}</text>'
        for i, (library, colour) in enumerate(COLOURS.items())
    ]
    axes = [
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">FLOP per byte</text>',
        f'<text x="{MARGIN}" y="{MARGIN - 20}">GFLOP/s, one thread; roof: {peak:.0f} GFLOP/s and'
        f" {bandwidth:.1f} GB/s</text>",
    ]
    for power in range(-2, 10):
        x, y = to_pixels(2.0**power, bottom)
        axes.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{2.0**power:g}</text>')
    for power in range(0, int(math.log2(top)) + 1):
        x, y = to_pixels(low, 2.0**power)
        axes.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{2**power}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<polyline points="{path}" fill="none" stroke="#555"/>',
        *axes, *keys, *marks, "</svg>", "",
    ])


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("target/criterion")
    rates = read_rates(folder)
    if not rates:
        sys.exit(f"{folder}: no results; run `cargo bench` first, or pass its criterion folder")
    table(rates)
    picture = plot(rates)
    if picture is None:
        print("no plot: results of sgemm or copy on one thread are missing", file=sys.stderr)
    else:
        Path("peers.svg").write_text(picture)


if __name__ == "__main__":
    main()
