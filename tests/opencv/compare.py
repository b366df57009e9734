#!/usr/bin/env python3
"""Compares Caffe nets with OpenCV.

Usage: compare.py FOLDER

For each NAME.prototxt in FOLDER, NAME.caffemodel holds the weights, and NAME.npz holds arrays called
"input X" and "output Y": the values of the net's inputs, and cortado's outputs. The script runs the
net with OpenCV, and fails if an output differs by more than 1e-4 of the output's largest value, or
if a detected box differs by more than 1e-3.
"""

import sys
from pathlib import Path

import cv2
import numpy as np

TOLERANCE = 1e-4
BOX_TOLERANCE = 1e-3


def detections(rows):
    """Returns the rows of detected boxes, ordered by image, label and descending score.

    Without any box, cortado returns rows with the label -1, as Caffe does. OpenCV orders the rows of
    an image by score only, and fills unused rows with zeros.
    """
    rows = rows.reshape(-1, 7)
    rows = rows[(rows[:, 1] >= 0) & (rows[:, 2] > 0)]
    return rows[np.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))]


def compare(path):
    """Runs a net. Returns the largest difference of its outputs, relative to its tolerance."""
    net = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
    values = np.load(path.with_suffix(".npz"))
    for key in values.files:
        role, name = key.split(" ", 1)
        if role == "input":
            net.setInput(values[key], name)
    [output] = [key for key in values.files if key.startswith("output ")]
    got, want = net.forward(output.removeprefix("output ")), values[output]
    if "detection" in output or path.stem.startswith("detection"):
        got, want = detections(got), detections(want)
        assert got.shape == want.shape, f"{len(want)} boxes, OpenCV finds {len(got)}"
        difference = np.abs(got - want).max(initial=0.0) / BOX_TOLERANCE
        # Edges in pixels are as large as the image.
        difference /= max(1.0, np.abs(want[:, 3:]).max(initial=0.0))
    else:
        assert got.shape == want.shape, f"shape {want.shape}, OpenCV returns {got.shape}"
        scale = np.abs(want).max(initial=0.0) or 1.0
        difference = np.abs(got - want).max(initial=0.0) / scale / TOLERANCE
    # The comparison is false for NaN.
    assert difference <= 1, f"differs by {difference} of the tolerance"
    return difference, len(want)


def main():
    folder = Path(sys.argv[1])
    paths = sorted(folder.glob("*.prototxt"))
    assert paths, f"{folder}: no nets"
    failures, worst, boxes = [], 0.0, 0
    for path in paths:
        try:
            difference, rows = compare(path)
            worst = max(worst, difference)
            boxes += rows if path.stem.startswith(("detection", "ssd")) else 0
        except Exception as error:  # every kind of failure is reported by name
            failures.append(f"{path.stem}: {type(error).__name__}: {error}")
    print("\n".join(failures))
    print(f"{len(paths) - len(failures)} of {len(paths)} nets agree with OpenCV {cv2.__version__}, "
          f"with {boxes} boxes; largest difference {worst:.3f} of the tolerance")
    sys.exit(bool(failures))


main()
