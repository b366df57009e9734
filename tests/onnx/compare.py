#!/usr/bin/env python3
"""Compares ONNX models with ONNX Runtime.

Usage: compare.py FOLDER

For each NAME.onnx in FOLDER, NAME.npz holds arrays called "input X" and "output Y": the values of
the model's inputs, and cortado's outputs. The script checks each model with onnx.checker, runs it
with ONNX Runtime, and fails if an output differs by more than 1e-4 of the output's largest value.
"""

import os

# The models are small, so that one thread is faster than several.
os.environ["OMP_NUM_THREADS"] = "1"

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

TOLERANCE = 1e-4
# Models of Softmax along the batch axis, where each element depends on the whole batch.
ACROSS_BATCH = ["softmax_axis0_dynamic"]


def difference(name, got, want):
    """Returns the largest difference of an output, relative to the output's largest value."""
    assert got.dtype == want.dtype, f"{name}: {got.dtype}"
    assert got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}"
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    scale = np.abs(want[np.isfinite(want)]).max(initial=0.0) or 1.0
    with np.errstate(invalid="ignore"):
        relative = np.where(same, 0.0, np.abs(got - want) / scale)
    worst = relative.max(initial=0.0)
    # The comparison is false for NaN.
    assert worst <= TOLERANCE, f"{name} differs by {worst} of {scale}"
    return worst


def compare(path):
    """Checks and runs a model. Returns the largest difference of its outputs."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    for node in model.graph.node:
        assert all(a.name != "ceil_mode" for a in node.attribute), f"{node.name} has ceil_mode"
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    values = np.load(path.with_suffix(".npz"))
    inputs = {i.name: values[f"input {i.name}"] for i in session.get_inputs()}
    outputs = session.get_outputs()
    wanted = [values[f"output {output.name}"] for output in outputs]
    results = session.run(None, inputs)
    worst = max(map(difference, [o.name for o in outputs], results, wanted))
    if path.stem.endswith("_dynamic") and path.stem not in ACROSS_BATCH:
        # Run the model on two copies of the batch. Each copy must give the same values.
        batched = {i.name for i in session.get_inputs() if i.shape[:1] == ["batch"]}
        assert batched, "no input has a symbolic batch size"
        double = {n: np.concatenate([v, v]) if n in batched else v for n, v in inputs.items()}
        for output, got, want in zip(outputs, session.run(None, double), wanted, strict=True):
            if output.shape[:1] == ["batch"]:
                copies = np.concatenate([want, want])
                worst = max(worst, difference(f"{output.name} of two copies", got, copies))
    return worst


def main():
    folder = Path(sys.argv[1])
    paths = sorted(folder.glob("*.onnx"))
    assert paths, f"{folder}: no models"
    failures, worst = [], (0.0, "")
    for path in paths:
        try:
            worst = max(worst, (compare(path), path.stem))
        except Exception as error:  # every kind of failure is reported by name
            failures.append(f"{path.stem}: {type(error).__name__}: {str(error).splitlines()[0]}")
    print("\n".join(failures))
    print(f"{folder.name}: {len(paths) - len(failures)} of {len(paths)} models agree with "
          f"ONNX Runtime {ort.__version__}; largest difference {worst[0]:.1e} ({worst[1]})")
    sys.exit(bool(failures))


main()
