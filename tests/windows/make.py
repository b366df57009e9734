"""Creates the files in this folder from `../images/color.png`.

Requires opencv-python-headless and numpy from PyPI.

`windows.txt` lists windows of images in R-CNN's format. `expected.tsv` lists the crop of each
foreground window, resized by OpenCV as in Caffe's layer WindowData. Its columns are label, crop_size,
context_pad, crop_mode, whether the crop is mirrored, and the values, channel by channel. A value
outside the image is written as `-`.
"""

import os

import cv2
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = "../images/color.png"
IMAGE = cv2.imread(os.path.join(HERE, PATH))
HEIGHT, WIDTH = IMAGE.shape[:2]
# Each window consists of label, overlap, x1, y1, x2 and y2.
FOREGROUND = [(1, 1.0, 2, 1, 7, 6), (2, 0.5, 0, 0, 10, 8), (3, 0.75, 7, 4, 10, 8), (4, 0.9, 0, 3, 1, 7)]
BACKGROUND = [(5, 0.2, 3, 3, 6, 5), (6, 0.4, 1, 1, 2, 2)]
F = np.float32


def nearest(x):
    """Rounds to the nearest integer, with ties away from zero, like `round` in C."""
    return int(np.floor(abs(x) + F(0.5)) * np.sign(x))


def crop_axis(first, last, half, extent, crop, pad):
    """Returns the first and last pixel, their number after resizing, and the padding on both sides."""
    centre = F(first) + F(last - first + 1) / F(2)
    half_side = half * (F(crop) / F(crop - 2 * pad))
    low, high = nearest(centre - half_side), nearest(centre + half_side)
    ratio = F(crop) / F(high - low + 1)
    before, after = max(0, -low), max(0, high - extent + 1)
    low, high = low + before, high - after
    size = nearest(F(high - low + 1) * ratio)
    return low, high, size, nearest(F(before) * ratio), nearest(F(after) * ratio)


def crop_values(x1, y1, x2, y2, crop, pad, mode, mirrored):
    rows, columns = (y1, y2, crop, 0, 0), (x1, x2, crop, 0, 0)
    if pad > 0 or mode == "square":
        half_height, half_width = F(y2 - y1 + 1) / F(2), F(x2 - x1 + 1) / F(2)
        if mode == "square":
            half_height = half_width = max(half_height, half_width)
        rows = crop_axis(y1, y2, half_height, HEIGHT, crop, pad)
        columns = crop_axis(x1, x2, half_width, WIDTH, crop, pad)
    top, left = rows[3], columns[4] if mirrored else columns[3]
    height, width = min(rows[2], crop - top), min(columns[2], crop - left)
    crop_pixels = IMAGE[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1]
    crop_pixels = cv2.resize(crop_pixels, (width, height))
    if mirrored:
        crop_pixels = cv2.flip(crop_pixels, 1)
    result = np.full((crop, crop, 3), -1)
    result[top : top + height, left : left + width] = crop_pixels
    return result.transpose(2, 0, 1).reshape(-1)


with open(os.path.join(HERE, "windows.txt"), "w") as file:
    file.write(f"# 0\n{PATH}\n3\n{HEIGHT}\n{WIDTH}\n{len(FOREGROUND)}\n")
    file.writelines(" ".join(map(str, window)) + "\n" for window in FOREGROUND)
    file.write(f"# 1\n{PATH}\n3\n{HEIGHT}\n{WIDTH}\n{len(BACKGROUND)}\n")
    file.writelines(" ".join(map(str, window)) + "\n" for window in BACKGROUND)
with open(os.path.join(HERE, "expected.tsv"), "w") as file:
    file.write("label\tcrop\tpad\tmode\tmirrored\tvalues\n")
    for crop, pad, mode in [(8, 0, "warp"), (8, 0, "square"), (10, 2, "warp"), (9, 3, "square")]:
        for label, _, *corners in FOREGROUND:
            for mirrored in [False, True]:
                values = crop_values(*corners, crop, pad, mode, mirrored)
                values = ",".join("-" if value < 0 else str(value) for value in values)
                row = [label, crop, pad, mode, "yes" if mirrored else "no", values]
                file.write("\t".join(map(str, row)) + "\n")
