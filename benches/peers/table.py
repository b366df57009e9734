#!/usr/bin/env python3
"""Turns what `cargo bench` left into a table, and a plot of products under the roofline.

    cargo bench && ./table.py > peers.md

Rates are those of medians, and beside each peer stands how many times as fast cortado is. The plot
`peers.svg` shows single-precision products on one thread over their arithmetic intensity, and the
two limits: the best rate of anybody, and the bandwidth at which the longest vector is copied.
"""

import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

COLOURS = {"cortado": "#c0392b", "OpenBLAS": "#2471a3", "MKL": "#1e8449", "gemm": "#b9770e"}
WIDTH, HEIGHT, MARGIN = 720, 440, 60


def measured(folder):
    """{group: {case: {who: rate}}} in Gflop/s or GB/s, cases in the order of their names."""
    rates = defaultdict(lambda: defaultdict(dict))
    for file in sorted(folder.rglob("new/benchmark.json")):
        bench = json.loads(file.read_text())
        estimates = json.loads(file.with_name("estimates.json").read_text())
        seconds = estimates["median"]["point_estimate"] * 1e-9
        (amount,) = bench["throughput"].values()
        rates[bench["group_id"]][bench["value_str"]][bench["function_id"]] = amount / seconds * 1e-9
    return rates


def table(rates):
    """One table a group, and the geometric mean and the least of each column of ratios."""
    for group, cases in rates.items():
        peers = sorted({who for case in cases.values() for who in case} - {"cortado"})
        print(f"\n## {group} threads\n")
        print("| | cortado |", " | ".join(peers), "|")
        print("|---|---|" + "---|" * len(peers))
        ratios = defaultdict(list)
        for name, case in cases.items():
            cells = []
            for who in peers:
                if who in case:
                    ratio = case["cortado"] / case[who]
                    ratios[who].append(ratio)
                    cells.append(f"{case[who]:.1f} ({ratio:.2f})")
                else:
                    cells.append("")
            print(f"| {name} | {case['cortado']:.1f} |", " | ".join(cells), "|")
        means = (
            f"mean {math.exp(sum(map(math.log, ratios[who])) / len(ratios[who])):.2f},"
            f" least {min(ratios[who]):.2f}"
            for who in peers
        )
        print("| ratios | |", " | ".join(means), "|")


def plot(rates):
    """The products of `sgemm/1` under the roofline, as SVG."""
    points = []
    for name, case in rates.get("sgemm/1", {}).items():
        m, n, k = map(int, re.fullmatch(r".._(\d+)x(\d+)x(\d+)", name).groups())
        intensity = 2 * m * n * k / (4 * (m * k + k * n + m * n))
        points += [(intensity, rate, who, name) for who, rate in case.items() if who in COLOURS]
    copies = {int(name.split("/")[1]): case for name, case in rates.get("level1/1", {}).items()
              if name.startswith("copy/")}
    if not points or not copies:
        return None
    peak = max(rate for _, rate, _, _ in points)
    bandwidth = copies[max(copies)]["cortado"]
    low, high = 0.25, 512
    bottom, top = 1, 2 ** math.ceil(math.log2(peak) + 0.2)

    def at(x, y):
        along = math.log(x / low) / math.log(high / low)
        up = math.log(max(y, bottom) / bottom) / math.log(top / bottom)
        return (MARGIN + along * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN))

    knee = peak / bandwidth
    roof = [at(low, low * bandwidth), at(knee, peak), at(high, peak)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in roof)
    marks = [
        f'<circle cx="{at(x, y)[0]:.1f}" cy="{at(x, y)[1]:.1f}" r="4" fill="{COLOURS[who]}">'
        f"<title>{who}, {name}: {y:.1f} Gflop/s</title></circle>"
        for x, y, who, name in points
    ]
    keys = [
        f'<text x="{MARGIN + 8}" y="{MARGIN + 16 * i}" fill="{colour}">{who}</text>'
        for i, (who, colour) in enumerate(COLOURS.items())
    ]
    axes = [
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">flop per byte</text>',
        f'<text x="{MARGIN}" y="{MARGIN - 20}">Gflop/s, one thread; roof: {peak:.0f} Gflop/s and'
        f" {bandwidth:.1f} GB/s</text>",
    ]
    for power in range(-2, 10):
        x, y = at(2.0**power, bottom)
        axes.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{2.0**power:g}</text>')
    for power in range(0, int(math.log2(top)) + 1):
        x, y = at(low, 2.0**power)
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
    rates = measured(folder)
    if not rates:
        sys.exit(f"no results in {folder}: run `cargo bench` first, or name its criterion folder")
    table(rates)
    picture = plot(rates)
    if picture is None:
        print("no plot: neither sgemm nor copies on one thread were timed", file=sys.stderr)
    else:
        Path("peers.svg").write_text(picture)


if __name__ == "__main__":
    main()
