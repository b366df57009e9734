"""Writes the expected results of layers of Caffe's forks, computed by OpenCV.

OpenCV below version 5 reads Caffe's models and has several layers of forks. The script runs each net
`NAME.prototxt` of this folder and writes the inputs and the output to `NAME.npz`:

    pip install 'opencv-python-headless<5' numpy
    python tests/opencv/layers/generate.py
"""

import pathlib
import re

import cv2
import numpy as np

FOLDER = pathlib.Path(__file__).parent
REGIONS = np.array(
    [[0, 0, 0, 12, 9], [1, 3.4, 2.6, 8.5, 11], [0, -4, 5, 30, 40], [1, 6, 6, 6, 6], [0, 9, 8, 2, 1]],
    np.float32,
)


def values(name, shape, random):
    """Returns the values of an input."""
    if name == "rois":
        return REGIONS.reshape(shape)
    if name == "info":
        return np.array([[60, 90, 1]], np.float32)
    if name == "scores":
        return random.uniform(0, 1, shape).astype(np.float32)
    if name == "deltas":
        return random.normal(0, 0.2, shape).astype(np.float32)
    return random.normal(0, 4, shape).astype(np.float32)


def main():
    for path in sorted(FOLDER.glob("*.prototxt")):
        text = path.read_text()
        inputs = re.findall(r'type: "Input" top: "(\w+)" input_param { shape {([^}]*)}', text)
        random = np.random.default_rng(7)
        net = cv2.dnn.readNetFromCaffe(str(path))
        arrays = {}
        for name, shape in inputs:
            shape = [int(extent) for extent in re.findall(r"dim: (\d+)", shape)]
            arrays[name] = values(name, shape, random)
            net.setInput(arrays[name], name)
        arrays["output"] = net.forward("y")
        np.savez(path.with_suffix(".npz"), **arrays)
        print(path.stem, arrays["output"].shape)


main()
