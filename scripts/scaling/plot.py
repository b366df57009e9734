"""Draws panels of curves over the number of processes as an SVG image.

The plots of `cortado train --plot` have a linear axis of iterations, so this module draws its own.
"""

import math

WIDTH, HEIGHT, GAP, LEFT, TOP = 240, 190, 64, 64, 56
COLOURS = ["#b3261e", "#1f5fbf", "#2f6f4f", "#8a5a00"]
GRID, TEXT = "#e4e7eb", "#52606d"


def plot(title, processes, rows):
    """Returns an SVG image. `rows` is a list of rows of panels. A panel is a title, the highest
    value of its logarithmic or linear y-axis, and the curves by name: a value for each element of
    `processes`, or `None`. A negative highest value stands for a linear axis."""
    width = LEFT + len(rows[0]) * (WIDTH + GAP)
    height = TOP + len(rows) * (HEIGHT + GAP) + 16
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="ui-monospace, monospace" font-size="11">',
        f"<title>{title}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    names = list(rows[0][0][2])
    for index, name in enumerate(names):
        x = LEFT + index * 130
        colour = COLOURS[index]
        body.append(f'<path d="M{x} 18h20" stroke="{colour}" stroke-width="2"/>')
        body.append(f'<text x="{x + 26}" y="22" fill="{colour}">{name}</text>')
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            left, top = LEFT + j * (WIDTH + GAP), TOP + i * (HEIGHT + GAP)
            body += draw(left, top, processes, *panel)
    return "\n".join([*body, "</svg>", ""])


def draw(left, top, processes, title, highest, curves):
    """Yields the elements of a panel, whose lower left corner stands for one process."""
    last = math.log2(processes[-1])
    bottom = top + HEIGHT

    def x(count):
        return left + WIDTH * math.log2(count) / last

    def y(value):
        if highest < 0:
            return bottom - HEIGHT * value / -highest
        return bottom - HEIGHT * max(0.0, math.log2(value)) / math.log2(highest)

    yield f'<text x="{left}" y="{top - 10}">{title}</text>'
    powers = [4**n for n in range(0, round(last / 2) + 1)]
    steps = [-highest * n / 4 for n in range(5)] if highest < 0 else powers
    for value in steps:
        at = f"{y(value):.1f}"
        yield f'<path d="M{left} {at}h{WIDTH}" stroke="{GRID}"/>'
        yield f'<text x="{left - 6}" y="{at}" dy="4" text-anchor="end" fill="{TEXT}">{value:g}</text>'
    for value in powers:
        at = f"{x(value):.1f}"
        yield f'<path d="M{at} {bottom}v4" stroke="{TEXT}"/>'
        yield f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="{TEXT}">{value}</text>'
    yield f'<path d="M{left} {top}v{HEIGHT}h{WIDTH}" fill="none" stroke="{TEXT}"/>'
    yield f'<text x="{left + WIDTH}" y="{bottom + 32}" text-anchor="end" fill="{TEXT}">processes</text>'
    for colour, values in zip(COLOURS, curves.values()):
        points = [
            f"{x(count):.1f},{y(value):.1f}"
            for count, value in zip(processes, values)
            if value is not None
        ]
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
