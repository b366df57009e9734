"""Creates the images in this folder. Requires opencv-python-headless, pillow and numpy from PyPI.

`expected.tsv` lists the pixels that OpenCV reads from each image. Its columns are the file, how it is
read or resized, the number of channels, height, width, and the bytes in row-major BGR order.
"""

import os

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

READ_MODES = {"stored": cv2.IMREAD_UNCHANGED, "bgr": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE}
lines = []


def expect(name, mode, image):
    image = image if image.ndim == 3 else image[..., None]
    height, width, channels = image.shape
    lines.append(f"{name}\t{mode}\t{channels}\t{height}\t{width}\t{image.tobytes().hex()}\n")


for name in sorted(os.listdir(HERE)):
    if name.endswith((".png", ".jpg")):
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
