#!/usr/bin/env python3
"""Measures the programs of this folder: their lines, names, build times, sizes and speed.

measure.py lines              lines without blank lines and comments, and names from concepts.txt
measure.py build [PROGRAM …]  build times and sizes; an empty target folder is built in each round
measure.py speed [PROGRAM …]  milliseconds per unit of work on one thread

--rounds N   repetitions, of which the median is printed (default 3)
--core N     core on which the programs of `speed` run (default 0)
--native     `speed` builds for this processor's instructions, with burn's feature `x86-v4`

CARGO_TARGET_DIR replaces the target folder.
"""
import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
FRAMEWORKS = ("cortado", "candle", "burn")
PROGRAMS = ("logistic_regression", "classify", "custom_layer")
BY_HAND = ("logistic_regression_by_hand", "custom_layer_by_hand")


def source(framework, program):
    """Returns the path of the program, or None."""
    path = ROOT / framework / "src/bin" / f"{program}.rs"
    return path if path.exists() else None


def count_lines(path):
    """Counts the lines that are not blank, not a comment, and not the call of the timer."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return sum(bool(line) and not line.startswith("//") and "shared::time" not in line
               for line in lines)


def lines(_):
    for line in (ROOT / "concepts.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        (framework, program), names = line.split(": ", 1)[0].split(), line.split(": ", 1)[1]
        path = source(framework, program)
        words = set(re.findall(r"\w+", path.read_text()))
        own, _, others = names.partition(" + ")
        own, others = own.split(), others.split()[1:]
        missing = [name for name in own + others if name not in words]
        assert not missing and len(set(own)) == len(own), f"{path}: {missing}"
        print(f"{framework:8} {program:28} {count_lines(path):4} lines {len(own):4} names"
              f"{f' + {len(others)}' if others else ''}")


def cargo(framework, target, *options, environment=()):
    """Runs `cargo build`, and returns the wall time and the processor time in seconds."""
    command = ["cargo", "build", "--quiet", "--release", "--offline", "--locked", *options]
    variables = {**os.environ, "CARGO_TARGET_DIR": str(target), **dict(environment)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=ROOT / framework, env=variables, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(options):
    results = {}
    for turn in range(options.rounds):
        for program in options.programs or PROGRAMS:
            for framework in FRAMEWORKS:
                path, target = source(framework, program), TARGET / "build"
                if not path:
                    continue
                only = ("--features", program, "--bin", program)
                shutil.rmtree(target, ignore_errors=True)
                load = os.getloadavg()[0]
                first = cargo(framework, target, *only)
                size = (target / "release" / program).stat().st_size
                text = path.read_text()
                try:
                    path.write_text(text + f"// edit {turn}\n")
                    again = cargo(framework, target, *only)
                finally:
                    path.write_text(text)
                results.setdefault((framework, program), []).append((*first, *again, size))
                print(f"  {framework:8} {program:28} {first[0]:6.1f} s wall {first[1]:6.1f} s cpu, "
                      f"again {again[0]:5.1f} s wall {again[1]:5.1f} s cpu, load before {load:.1f}",
                      flush=True)
    for (framework, program), rows in results.items():
        wall, cpu, again_wall, again_cpu, size = (statistics.median(row) for row in zip(*rows))
        print(f"{framework:8} {program:28} build {wall:6.1f} s wall {cpu:6.1f} s cpu, "
              f"rebuild {again_wall:5.1f} s wall {again_cpu:5.1f} s cpu, {size / 1e6:6.2f} MB")


def speed(options):
    suffix, environment = ("-native", {"RUSTFLAGS": "-C target-cpu=native"}) if options.native \
        else ("", {})
    for framework in FRAMEWORKS:
        features = ["--features", "burn/x86-v4"] if options.native and framework == "burn" else []
        cargo(framework, TARGET / f"{framework}{suffix}", "--all-features", "--bins", *features,
              environment=environment)
    programs = options.programs or PROGRAMS + BY_HAND
    cases = [(program, points) for program in programs
             for points in ((200, 100_000) if program.startswith("logistic") else (200,))]
    for program, points in cases:
        times = {framework: [] for framework in FRAMEWORKS if source(framework, program)}
        # A gradient by hand is cortado's only way, so cortado's program stands for both.
        if program in BY_HAND:
            times = {"cortado": [], **times}
        for turn in range(options.rounds):
            order = list(times)[turn % len(times):] + list(times)[:turn % len(times)]
            for framework in order:
                name = program.removesuffix("_by_hand") if framework == "cortado" else program
                binary = TARGET / f"{framework}{suffix}" / "release" / name
                variables = {**os.environ, "ROUNDS": "15", "POINTS": str(points),
                             "RAYON_NUM_THREADS": "1"}
                output = subprocess.run(
                    [binary], env=variables, check=True, stdout=subprocess.PIPE, text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, {options.core})).stdout
                value = re.search(r"([\d.]+) ms per (\w+)", output)
                times[framework].append(float(value[1]))
        for framework, rounds in times.items():
            ratios = [mine / base for mine, base in zip(rounds, times["cortado"])]
            case = f"{program}, {points} points" if program.startswith("logistic") else program
            print(f"{framework:8} {case:43} {statistics.median(rounds):10.5f} ms per {value[2]}, "
                  f"{statistics.median(ratios):6.2f} of cortado, least {min(rounds):10.5f}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("lines", "build", "speed"))
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--native", action="store_true")
    options = parser.parse_args()
    {"lines": lines, "build": build, "speed": speed}[options.what](options)


main()
