#!/usr/bin/env python3
"""Measures which public Caffe models cortado loads, runs and exports, for docs/models.md.

Usage: models.py check|update
       models.py measure FOLDER COMMAND PYTHON

models.tsv lists the models: family, name, repository on GitHub, commit, path of the net's
definition, and the results. `measure` runs COMMAND, the built example `check_model`, on each
definition in FOLDER/REPOSITORY/PATH, compares exported models with ONNX Runtime in PYTHON, an
interpreter with the packages in tests/onnx/requirements.txt, and writes the results to models.tsv.
A definition that FOLDER lacks is downloaded to FOLDER first. DenseImageData layers, whose data is
not public, read generated images. `update` writes the table of
docs/models.md from models.tsv. `check` fails if the table differs from the one that `update` would
write.
"""

import csv
import random
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOC = ROOT / "docs/models.md"
LIST = HERE / "models.tsv"
GITHUB = "https://github.com/{repository}/blob/{commit}/{path}"
RAW = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
START, END = "<!-- models.py: start -->\n", "<!-- models.py: end -->\n"
# The start of the part of an error message that the table leaves out.
REMEDIES = r"; (?:known|write the layer|registered|if a layer type|to use a layer type|remove|split) "
# Seconds for which one model may run.
TIMEOUT = 300


def read():
    """Returns the rows of models.tsv."""
    with LIST.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None))


def write(rows):
    with LIST.open("w", newline="") as file:
        options = {"delimiter": "\t", "lineterminator": "\n", "quoting": csv.QUOTE_NONE, "quotechar": None}
        writer = csv.DictWriter(file, list(rows[0]), **options)
        writer.writeheader()
        writer.writerows(rows)


def definition(folder, row):
    """Returns the path of a net's definition, which is downloaded if it is missing."""
    path = folder / row["repository"] / row["path"]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(urllib.request.urlopen(RAW.format(**row), timeout=60).read())
    return path


def with_images(path, folder):
    """Returns the path of a copy of a net's definition in `folder`, whose DenseImageData layers read
    images of random pixels, in the size of CamVid's images. Returns the path of the definition if the
    net has no DenseImageData layer."""
    text, count = re.subn(r'(dense_image_data_param\s*\{\s*source:\s*)"[^"]*"',
                          lambda match: f'{match[1]}"{folder}/images.txt"', path.read_text(errors="replace"))
    if count == 0:
        return path
    for name, kind, channels in [("image.ppm", "P6", 3), ("labels.pgm", "P5", 1)]:
        pixels = random.Random(1).randbytes(480 * 360 * channels)
        (folder / name).write_bytes(f"{kind} 480 360 255\n".encode() + pixels)
    (folder / "images.txt").write_text(f"{folder}/image.ppm {folder}/labels.pgm\n")
    copy = folder / path.name
    copy.write_text(text)
    return copy


def run(args):
    """Runs a program, and returns its exit status and its output."""
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return None, f"no result after {TIMEOUT} s"
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def measure(folder, command, python):
    """Fills the results of each row."""
    rows = read()
    for row in rows:
        with tempfile.TemporaryDirectory() as out:
            path = with_images(definition(folder, row), Path(out))
            status, output = run([command, path, out])
            fields = output.splitlines()[-1].split("\t") if status == 0 else ["no"] * 3 + [output]
            row.update(zip(["loads", "runs", "exports", "reason"], fields + [""]))
            if row["runs"] == row["exports"] == "yes":
                status, output = run([python, ROOT / "tests/onnx/compare.py", out])
                if status != 0:
                    row.update(exports="no", reason=output.splitlines()[0])
        # The message without the path of the folder, remedies and lists of all known names.
        reason = row["reason"].replace(f"{path}: ", "").replace(f"{path}:", "line ")
        row["reason"] = re.split(REMEDIES, reason)[0] or "-"
        print(*(row[field] for field in ("name", "loads", "runs", "exports", "reason")), sep="\t")
        write(rows)


def table():
    """Returns the table in Markdown, with a part for each family."""
    rows = read()
    count = {field: sum(row[field] == "yes" for row in rows) for field in ("loads", "runs", "exports")}
    text = "Of {} models, {loads} load, {runs} run and {exports} can be exported.\n".format(
        len(rows), **count)
    for family in dict.fromkeys(row["family"] for row in rows):
        text += f"\n### {family}\n\n| model | definition | loads | runs | exports | reason |\n"
        text += "|---|---|---|---|---|---|\n"
        for row in (row for row in rows if row["family"] == family):
            link = f"[{row['repository']}]({GITHUB.format(**row)})".replace(" ", "%20")
            reason = row["reason"].replace("|", "\\|")
            text += "| {name} | {} | {loads} | {runs} | {exports} | {} |\n".format(
                link, reason, **row)
    return text


def document():
    """Returns docs/models.md with the table."""
    before, rest = DOC.read_text().split(START)
    return before + START + "\n" + table() + "\n" + END + rest.split(END)[1]


def main():
    match sys.argv[1:]:
        case ["check"]:
            assert all(row["loads"] == row["runs"] == row["exports"] == "yes" or row["reason"] != "-"
                       for row in read()), "models.tsv: a model fails without a reason"
            if DOC.read_text() != document():
                sys.exit(f"{DOC} is outdated; run scripts/models/models.py update")
        case ["update"]:
            DOC.write_text(document())
        case ["measure", folder, command, python]:
            measure(Path(folder), command, python)
        case _:
            sys.exit(__doc__)


main()
