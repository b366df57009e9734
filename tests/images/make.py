"""Creates the images in this folder. Requires opencv-python-headless, pillow and numpy from PyPI, and
the program jpegtran of libjpeg-turbo.

`expected.tsv` lists the pixels that OpenCV reads from each image. Its columns are the file, how it is
read or resized, the number of channels, height, width, and the bytes in row-major BGR order.
"""

import os
import struct
import subprocess
import zlib

import cv2
import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
HEIGHT, WIDTH = 9, 11

rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
red, green, blue = rows * 25 + 10, columns * 20 + 5, (rows + columns) * 13 % 251
color = np.stack([red, green, blue], axis=-1).astype(np.uint8)
alpha = (255 - rows * columns * 2).astype(np.uint8)


def save(name, pixels, mode, **options):
    Image.fromarray(pixels, mode).save(os.path.join(HERE, name), **options)


save("color.png", color, "RGB")
save("gray.png", color[..., 1].copy(), "L")
save("alpha.png", np.dstack([color, alpha]), "RGBA")
save("gray_alpha.png", np.dstack([color[..., 0], alpha]), "LA")
Image.fromarray(color, "RGB").quantize(16).save(os.path.join(HERE, "palette.png"))
cv2.imwrite(os.path.join(HERE, "sixteen.png"), color.astype(np.uint16) * 257)
save("color.jpg", color, "RGB", quality=90, subsampling=0)
save("gray.jpg", color[..., 1].copy(), "L", quality=90)


def save_bytes(name, *parts):
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(b"".join(parts))


def encode_jpeg(pixels, sampling, *flags):
    flags = [cv2.IMWRITE_JPEG_QUALITY, 60, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling, *flags]
    return cv2.imencode(".jpg", pixels[..., ::-1], flags)[1].tobytes()


noise = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
for name, sampling in {"420": 0x221111, "422": 0x211111, "440": 0x121111, "411": 0x411111}.items():
    save_bytes(f"chroma{name}.jpg", encode_jpeg(color, sampling))
save_bytes("tiny.jpg", encode_jpeg(noise[:3, :3, :3], 0x221111))
flags = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_RST_INTERVAL, 1]
save_bytes("progressive.jpg", encode_jpeg(color, 0x221111, *flags))
save("rgb.jpg", noise[..., :3].copy(), "RGB", quality=90, keep_rgb=True)
save("cmyk.jpg", noise, "CMYK", quality=50)
with open(os.path.join(HERE, "cmyk.jpg"), "rb") as file:
    cmyk = file.read()
transform = cmyk.index(b"Adobe") + 11
save_bytes("ycck.jpg", cmyk[:transform], b"\2", cmyk[transform + 1:])
for name, options in {"arithmetic": ["-restart", "1B"], "arithmetic_progressive": ["-progressive"]}.items():
    command = ["jpegtran", "-arithmetic", *options]
    data = encode_jpeg(color, 0x221111)
    save_bytes(f"{name}.jpg", subprocess.run(command, input=data, capture_output=True).stdout)


def save_png(name, pixels, *chunks):
    """Writes a PNG file with red, green and blue, and further chunks."""
    height, width = pixels.shape[:2]
    chunk = lambda kind, data: [struct.pack(">I", len(data)), kind, data,
                                struct.pack(">I", zlib.crc32(kind + data))]
    bits = 8 * pixels.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(pixels.dtype.newbyteorder(">")).tobytes() for row in pixels)
    chunks = [chunk(b"IHDR", header), *(chunk(*part) for part in chunks),
              chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    save_bytes(name, b"\x89PNG\r\n\x1a\n", *(piece for part in chunks for piece in part))


half_gray = np.where(columns[..., None] % 2, noise[..., :3], noise[..., :1])
gamma = lambda value: (b"gAMA", struct.pack(">I", value))
save_png("gamma.png", half_gray, gamma(60000))
save_png("srgb.png", half_gray, gamma(60000), (b"sRGB", b"\0"))
save_png("linear.png", half_gray, gamma(98000))
save_png("gamma16.png", half_gray * np.uint16(255) + np.uint16(7), gamma(45455))
save_png("significant.png", half_gray * np.uint16(255) + np.uint16(7), gamma(45455),
         (b"sBIT", b"\x09\x0a\x08"))
save_png("transparent.png", half_gray, (b"tRNS", half_gray[0, 0].astype(">u2").tobytes()))

def save_bmp(name, height, bits, rows, palette=b"", compression=0, masks=b""):
    """Writes a BMP file; each of `rows` is padded to a multiple of four bytes."""
    data = b"".join(row + bytes(-len(row) % 4) for row in rows)
    start = 54 + len(masks) + len(palette)
    header = struct.pack("<IHHI", start + len(data), 0, 0, start)
    fields = (40, WIDTH, height, 1, bits, compression, len(data), 0, 0, len(palette) // 4, 0)
    save_bytes(name, b"BM", header, struct.pack("<IiiHHIIiiII", *fields), masks, palette, data)


bgr = color[..., ::-1]
bgra = np.dstack([bgr, alpha])
indices = rows * columns % 16
bit = (rows + columns) % 3 % 2
packed = np.packbits(bit.astype(np.uint8), axis=1)
nibbles = np.pad(indices, ((0, 0), (0, 1))).reshape(HEIGHT, -1, 2) @ [16, 1]
words = (red // 8 << 11 | green // 4 << 5 | blue // 8).astype("<u2")
colors = b"".join(bytes([3 * i, 255 - 7 * i, 11 * i, 0]) for i in range(16))
grays = b"".join(bytes([9 * i] * 3 + [0]) for i in range(16))
mask = lambda *masks: struct.pack("<III", *masks)
save_bmp("bits24.bmp", HEIGHT, 24, [row.tobytes() for row in bgr[::-1]])
save_bmp("top_down.bmp", -HEIGHT, 24, [row.tobytes() for row in bgr])
save_bmp("bits32.bmp", HEIGHT, 32, [row.tobytes() for row in bgra])
save_bmp("alpha.bmp", HEIGHT, 32, [row.tobytes() for row in bgra], b"", 3, mask(0xFF0000, 0xFF00, 0xFF))
save_bmp("bits16.bmp", HEIGHT, 16, [row.tobytes() for row in words])
save_bmp("bits565.bmp", HEIGHT, 16, [row.tobytes() for row in words], b"", 3, mask(0xF800, 0x7E0, 0x1F))
save_bmp("bits8.bmp", HEIGHT, 8, [row.astype(np.uint8).tobytes() for row in indices], colors)
save_bmp("gray8.bmp", HEIGHT, 8, [row.astype(np.uint8).tobytes() for row in indices], grays)
save_bmp("bits4.bmp", HEIGHT, 4, [row.astype(np.uint8).tobytes() for row in nibbles], colors)
save_bmp("bits1.bmp", HEIGHT, 1, [row.tobytes() for row in packed], bytes([9, 8, 7, 0, 250, 251, 252, 0]))
# Rows of a run, literal indices, and the end of the row or of the image; then skipped pixels.
row8 = lambda i: bytes([4, i, 0, 5, i, i + 1, i + 2, i + 3, i + 4, 0, 2, 15 - i])
row4 = lambda i: bytes([5, 16 * i + 3, 0, 4, 0x12, 0x34, 2, 16 * i])
runs8 = b"".join(row8(i) for i in range(5)) + b"\0\2\3\1" + bytes([8, 7]) + row8(6) + b"\0\1"
runs4 = b"".join(row4(i) + b"\0\0" for i in range(8)) + b"\0\2\3\0" + bytes([8, 0x7A]) + b"\0\1"
save_bmp("runs8.bmp", HEIGHT, 8, [runs8], colors, 1)
save_bmp("runs4.bmp", -HEIGHT, 4, [runs4], colors, 2)
size = b"%d %d\n" % (WIDTH, HEIGHT)
text = lambda values: b" ".join(b"%d" % value for value in values.ravel()) + b"\n"
save_bytes("text.pbm", b"P1 # a comment\n", size, text(bit).replace(b" ", b""))
save_bytes("text.pgm", b"P2\n# a comment\n", size, b"100\n", text(green // 3))
save_bytes("text.ppm", b"P3\n", size, b"255\n", text(color))
save_bytes("binary.pbm", b"P4\n", size, packed.tobytes())
save_bytes("binary.pgm", b"P5\n", size, b"255\n", color[..., 1].tobytes())
save_bytes("small.pgm", b"P5\n", size, b"15\n", indices.astype(np.uint8).tobytes())
save_bytes("binary.ppm", b"P6\n", size, b"255\n", color.tobytes())
save_bytes("sixteen.pgm", b"P5\n", size, b"65535\n", (color[..., 1].astype(">u2") * 201).tobytes())

READ_MODES = {"stored": cv2.IMREAD_UNCHANGED, "bgr": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE}
lines = []


def expect(name, mode, image):
    image = image if image.ndim == 3 else image[..., None]
    height, width, channels = image.shape
    lines.append(f"{name}\t{mode}\t{channels}\t{height}\t{width}\t{image.tobytes().hex()}\n")


for name in sorted(os.listdir(HERE)):
    if name.endswith((".png", ".jpg", ".bmp", ".pbm", ".pgm", ".ppm")):
        for mode, flag in READ_MODES.items():
            image = cv2.imread(os.path.join(HERE, name), flag)
            if image.dtype == np.uint8:
                expect(name, mode, image)
for name, sizes in {"color.png": [(5, 7), (20, 31), (9, 4)], "gray.png": [(3, 3), (18, 22)]}.items():
    for height, width in sizes:
        image = cv2.imread(os.path.join(HERE, name), cv2.IMREAD_UNCHANGED)
        expect(name, f"resize {height} {width}", cv2.resize(image, (width, height)))
with open(os.path.join(HERE, "expected.tsv"), "w") as file:
    file.write("file\thow\tchannels\theight\twidth\tbytes\n")
    file.writelines(lines)
