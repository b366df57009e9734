"""Creates the images in this folder. Requires opencv-python-headless, pillow and numpy from PyPI.

`expected.tsv` lists the pixels that OpenCV reads from each image. Its columns are the file, how it is
read or resized, the number of channels, height, width, and the bytes in row-major BGR order.
"""

import os
import struct

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
