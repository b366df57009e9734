"""Writes the expected results of changes of images, computed by OpenCV.

The unit tests of `src/data/image` read the file `image_changes.txt`. Each line has a name, the
number of channels, the height, the width, and the pixels in the order of OpenCV as hexadecimal
digits. OpenCV 4 truncates colors in the vector code of the conversion from HSV, but rounds in its
scalar code, as older versions do everywhere. The script therefore converts from HSV in columns of
one pixel, for which OpenCV uses the scalar code. Intel's library IPP, with which the packages of
OpenCV for x86 resize some images, rounds in another way than OpenCV's own code, so the script
disables IPP:

    pip install 'opencv-python-headless<5' numpy
    python tests/opencv/image_changes.py
"""

import pathlib

import cv2
import numpy as np

MODES = {
    "area": cv2.INTER_AREA,
    "nearest": cv2.INTER_NEAREST,
    "cubic": cv2.INTER_CUBIC,
    "lanczos4": cv2.INTER_LANCZOS4,
}
# Height and width, before and after: larger, smaller, mixed, and by integer factors.
SIZES = [((9, 12), (20, 25)), ((20, 17), (9, 7)), ((8, 10), (12, 5)), ((12, 9), (4, 3)), ((8, 10), (4, 5))]


def image(channels, height, width):
    """Returns the image that the unit tests compute, too."""
    values, state = [], 7
    for _ in range(channels * height * width):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 24)
    return np.array(values, np.uint8).reshape(height, width, channels)


def of_hsv(colors):
    """Converts HSV to BGR by OpenCV's scalar code."""
    column = np.ascontiguousarray(colors.reshape(-1, 1, 3))
    return cv2.cvtColor(column, cv2.COLOR_HSV2BGR).reshape(colors.shape)


def scaled(values, factor, offset):
    """Returns `factor * values + offset`, rounded and saturated."""
    return cv2.addWeighted(values, factor, values, 0, offset)


def main():
    cv2.ipp.setUseIPP(False)
    results = {}
    for channels in [1, 3]:
        for (rows, columns), (height, width) in SIZES:
            x = image(channels, rows, columns)
            for name, mode in MODES.items():
                key = f"{name}-{channels}-{rows}-{columns}-{height}-{width}"
                results[key] = cv2.resize(x, (width, height), interpolation=mode)
    x = image(3, 11, 13)
    hsv = cv2.cvtColor(x, cv2.COLOR_BGR2HSV)
    results["hsv"] = hsv
    results["bgr"] = of_hsv(x)
    for factor in [0.5, 1.0, 1.37]:
        changed = hsv.copy()
        changed[..., 1] = scaled(hsv[..., 1], factor, 0)
        results[f"saturation-{factor}"] = of_hsv(changed)
        results[f"contrast-{factor}"] = scaled(x, factor, 0)
    for offset in [-17.25, 17.75]:
        changed = hsv.copy()
        changed[..., 0] = scaled(hsv[..., 0], 1, offset)
        results[f"hue-{offset}"] = of_hsv(changed)
        results[f"brightness-{offset}"] = scaled(x, 1, offset)
    gray = cv2.cvtColor(x, cv2.COLOR_BGR2GRAY)
    results["decolorize"] = cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)
    for channels in [1, 3]:
        x = image(channels, 11, 13) // 2 + 30
        results[f"gauss_blur-{channels}"] = cv2.GaussianBlur(x, (7, 7), 1.5)
        element = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3), (1, 1))
        results[f"erode-{channels}"] = cv2.erode(x, element)
        if channels == 1:
            results["hist_eq-1"] = cv2.equalizeHist(x)
        else:
            planes = list(cv2.split(cv2.cvtColor(x, cv2.COLOR_BGR2YCrCb)))
            planes[0] = cv2.equalizeHist(planes[0])
            results["hist_eq-3"] = cv2.cvtColor(cv2.merge(planes), cv2.COLOR_YCrCb2BGR)
        for name, border in [("reflect", cv2.BORDER_REFLECT101), ("repeat", cv2.BORDER_REPLICATE)]:
            results[f"{name}-{channels}"] = cv2.copyMakeBorder(x, 4, 3, 5, 2, border)
        fill = (9, 8, 7)
        results[f"constant-{channels}"] = cv2.copyMakeBorder(
            x, 4, 3, 5, 2, cv2.BORDER_CONSTANT, value=fill
        )
    lines = []
    for name, y in results.items():
        height, width = y.shape[:2]
        lines.append(f"{name} {y.size // (height * width)} {height} {width} {y.tobytes().hex()}\n")
    pathlib.Path(__file__).with_suffix(".txt").write_text("".join(lines))


main()
