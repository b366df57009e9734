#!/usr/bin/env python3
"""Writes images, and the pixels that OpenCV reads from them.

Usage: images.py FOLDER

For each image NAME, the files NAME.stored, NAME.bgr and NAME.gray hold the pixels that OpenCV reads
in the three modes: a line with the number of channels, the height and the width, and the bytes in
row-major BGR order. A mode without 8 bits per channel has no file. If the program jpegtran of
libjpeg-turbo is installed, the script also writes JPEG files with arithmetic coding.
"""

import io
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

FOLDER = Path(sys.argv[1])
MODES = {"stored": cv2.IMREAD_UNCHANGED, "bgr": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE}
SAMPLINGS = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
             cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
             cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
rng = np.random.default_rng(1)


def pixels(height, width, channels):
    """Returns random pixels: smooth, flat with noise, or noise."""
    kind = rng.integers(3)
    if kind == 0:
        small = rng.integers(0, 256, (4, 4, channels), dtype=np.uint8)
        image = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    elif kind == 1:
        image = rng.integers(0, 256, channels) + rng.integers(-20, 21, (height, width, channels))
        image = np.clip(image, 0, 255).astype(np.uint8)
    else:
        image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    return image.reshape(height, width, channels)


def size():
    """Returns a height and a width; half of the images are tiny."""
    return (int(extent) for extent in rng.integers(1, 12 if rng.integers(2) else 80, 2))


def save(name, data, modes=tuple(MODES)):
    (FOLDER / name).write_bytes(data)
    for mode in modes:
        flag = MODES[mode]
        # Caffe reads files without regard to the EXIF orientation.
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flag | (
            0 if mode == "stored" else cv2.IMREAD_IGNORE_ORIENTATION))
        assert image is not None, f"{name}: OpenCV cannot read this file"
        if image.dtype == np.uint8:
            image = image if image.ndim == 3 else image[..., None]
            header = f"{image.shape[2]} {image.shape[0]} {image.shape[1]}\n".encode()
            (FOLDER / f"{name}.{mode}").write_bytes(header + image.tobytes())


def pillow(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def jpeg(index):
    height, width = size()
    quality = int(rng.choice([1, 20, 50, 75, 90, 95, 100]))
    flags = [cv2.IMWRITE_JPEG_QUALITY, quality,
             cv2.IMWRITE_JPEG_SAMPLING_FACTOR, int(rng.choice(SAMPLINGS)),
             cv2.IMWRITE_JPEG_PROGRESSIVE, int(rng.integers(2)),
             cv2.IMWRITE_JPEG_OPTIMIZE, int(rng.integers(2)),
             cv2.IMWRITE_JPEG_RST_INTERVAL, int(rng.integers(3))]
    data = cv2.imencode(".jpg", pixels(height, width, 3 if index % 4 else 1), flags)[1].tobytes()
    save(f"jpeg_{index}.jpg", data)
    if shutil.which("jpegtran"):
        command = ["jpegtran", "-arithmetic"]
        command += ["-progressive"] if rng.integers(2) else []
        command += ["-restart", f"{rng.integers(1, 5)}B"] if rng.integers(2) else []
        result = subprocess.run(command, input=data, capture_output=True, check=True)
        save(f"arithmetic_{index}.jpg", result.stdout)


def jpeg_pillow(index):
    """Writes files with red, green and blue, and with cyan, magenta, yellow and black."""
    height, width = size()
    options = {"format": "JPEG", "quality": int(rng.choice([20, 75, 95])),
               "progressive": bool(rng.integers(2))}
    if index % 3 == 0:
        data = pillow(Image.fromarray(pixels(height, width, 3)), keep_rgb=True, **options)
        save(f"rgb_{index}.jpg", data)
        return
    data = pillow(Image.fromarray(pixels(height, width, 4), "CMYK"), **options)
    adobe = data.index(b"Adobe")
    if index % 3 == 1:
        save(f"cmyk_{index}.jpg", data)
    else:
        # The same components, but declared as YCCK.
        save(f"ycck_{index}.jpg", data[:adobe + 11] + b"\2" + data[adobe + 12:])


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(index):
    """Writes a file with random values of any color type and bit depth."""
    color_type, depths = [(0, [1, 2, 4, 8, 16]), (2, [8, 16]), (3, [1, 2, 4, 8]), (4, [8, 16]),
                          (6, [8, 16])][index % 5]
    depth = int(rng.choice(depths))
    height, width = size()
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color_type]
    values = rng.integers(0, 1 << depth, (height, width, samples))
    if rng.integers(2):
        # Some pixels are gray.
        values[::2] = values[::2, :, :1]
    interlaced = int(rng.integers(2))
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
              (1, 0, 2, 1)] if interlaced else [(0, 0, 1, 1)]
    data = b""
    for y, x, dy, dx in passes:
        part = values[y::dy, x::dx]
        for row in part if part.size else []:
            bits = (row.reshape(-1, 1) >> np.arange(depth - 1, -1, -1)) & 1
            data += b"\0" + np.packbits(bits.astype(np.uint8).ravel()).tobytes()
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, interlaced)
    chunks = [chunk(b"IHDR", header)]
    if rng.integers(2):
        gamma = int(rng.choice([45455, 100000, 60000, 98000, 180000, 22000]))
        chunks.append(chunk(b"gAMA", struct.pack(">I", gamma)))
    if rng.integers(4) == 0:
        chunks.append(chunk(b"sRGB", bytes([rng.integers(4)])))
    if color_type in (2, 6) and depth == 16 and rng.integers(3) == 0:
        chunks.append(chunk(b"sBIT", bytes([10, 9, 8, 16][:samples])))
    if color_type == 3:
        palette = rng.integers(0, 256, (1 << depth, 3), dtype=np.uint8)
        chunks.append(chunk(b"PLTE", palette.tobytes()))
    if color_type in (0, 2, 3) and rng.integers(3) == 0:
        transparent = {0: values[0, 0].astype(">u2").tobytes(), 3: bytes([0, 128]),
                       2: values[0, 0].astype(">u2").tobytes()}[color_type]
        chunks.append(chunk(b"tRNS", transparent))
    kind = {0: "gray", 2: "rgb", 3: "palette", 4: "grayalpha", 6: "rgba"}[color_type]
    kind += "16" if depth == 16 else ""
    end = [chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b"")]
    save(f"png-{kind}_{index}.png", b"\x89PNG\r\n\x1a\n" + b"".join(chunks + end))


def runs(values, bits):
    """Encodes rows of palette indices: runs, literal indices and, for 8 bits, skipped pixels."""
    data, width, x = b"", values.shape[1], 0
    for number, row in enumerate(values):
        while x < width:
            rest, kind = width - x, rng.integers(3)
            if kind == 0 and rest >= 3:
                count = int(rng.integers(3, min(rest, 255) + 1))
                part = row[x:x + count]
                if bits == 4:
                    part = np.pad(part, (0, count % 2)).reshape(-1, 2) @ [16, 1]
                data += bytes([0, count]) + part.astype(np.uint8).tobytes()
                data += b"\0" * (len(part) % 2)
            elif kind == 1 and rng.integers(4) == 0 and bits == 8:
                count = int(rng.integers(0, min(rest - 1, 255) + 1))
                data += bytes([0, 2, count, int(rng.integers(2)) if number < len(values) - 2 else 0])
                if data[-1]:
                    x += count
                    break
            else:
                count = int(rng.integers(1, min(rest, 255) + 1))
                index = int(row[x])
                data += bytes([count, index if bits == 8 else index * 16 + int(row[-1])])
            x += count
        else:
            x = 0
            if rng.integers(3) == 0 or number + 1 < len(values):
                data += b"\0\0"
    return data + b"\0\1"


def bmp(index):
    bits, compression = [(1, 0), (4, 0), (8, 0), (16, 0), (24, 0), (32, 0), (16, 3), (32, 3), (8, 1),
                         (4, 2)][index % 10]
    height, width = size()
    header_len = 12 if compression == 0 and bits != 16 and rng.integers(4) == 0 else 40
    palette = masks = b""
    if bits <= 8:
        palette = rng.integers(0, 256, (1 << bits, 4), dtype=np.uint8)
        if rng.integers(2):
            palette[:, 1] = palette[:, 2] = palette[:, 0]
        palette = palette[:, :3 if header_len == 12 else 4].tobytes()
    if compression == 3:
        choices = {16: [(0x7C00, 0x3E0, 0x1F), (0xF800, 0x7E0, 0x1F)],
                   32: [(0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000)]}[bits]
        masks = struct.pack("<III", *choices[rng.integers(2)])
    if compression in (1, 2):
        data = runs(rng.integers(0, 1 << bits, (height, width)), bits)
    else:
        data = rng.integers(0, 256, (height, (width * bits + 31) // 32 * 4), dtype=np.uint8).tobytes()
    top_down = header_len == 40 and rng.integers(3) == 0
    start = 14 + header_len + len(masks) + len(palette)
    header = b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start)
    if header_len == 12:
        header += struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        header += struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, bits,
                              compression, len(data), 0, 0, 0, 0)
    kind = {0: "plain", 1: "runs", 2: "runs", 3: "masks"}[compression]
    # Of a file with a header of 12 bytes, OpenCV reads colors only if it is asked for colors.
    modes = ["bgr", "gray"] if header_len == 12 else MODES
    save(f"bmp-{kind}{bits}-{header_len}_{index}.bmp", header + masks + palette + data, modes)


for number in range(200):
    jpeg(number)
for number in range(60):
    jpeg_pillow(number)
for number in range(300):
    png(number)
for number in range(300):
    bmp(number)
