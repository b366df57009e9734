"""Creates the tensor files in this folder. Requires numpy and safetensors from PyPI."""

import struct

import numpy as np
from safetensors.numpy import save_file

# Every type represents these values exactly. The shape is 2 x 3, so that C order and Fortran order
# differ.
grid = np.array([[1, -2, 3.5], [0.25, 0, -480]])

for name, dtype in [("f2", "<f2"), ("f4", "<f4"), ("f8", "<f8"), ("f4_big", ">f4")]:
    np.save(f"{name}.npy", grid.astype(dtype))
np.save("f8_fortran.npy", np.asfortranarray(grid))
np.save("three_axes_fortran.npy", np.asfortranarray(np.arange(24, dtype="f4").reshape(2, 3, 4)))
np.save("scalar.npy", np.array(1.5, "f4"))
np.save("line.npy", np.array([1.5, -2], "f4"))
np.save("empty.npy", np.zeros((0, 3), "f4"))
with open("version_2.npy", "wb") as file:
    np.lib.format.write_array(file, grid.astype("f4"), version=(2, 0))

# Files that the reader of tensors must reject.
np.save("integers.npy", np.arange(3))
np.save("complex.npy", np.ones(2, "c8"))
np.save("records.npy", np.zeros(2, [("a", "f4"), ("b", "f4")]))

np.savez("stored.npz", grid=grid.astype("f4"), half=grid.astype("f2"))
np.savez_compressed("packed.npz", grid=grid.astype("f4"), zeros=np.zeros((20, 50), "f8"))
np.savez("integers.npz", fine=grid.astype("f4"), counts=np.arange(3))

# The file has the tensors of a fully connected layer `ip` with 2 outputs and 3 inputs, a tensor of
# a layer that the net lacks, and a tensor whose name is not of the form layer.index.
save_file(
    {
        "ip.0": grid.astype("f4"),
        "ip.1": np.array([0.5, -0.5], "f8"),
        "other.0": np.ones(2, "f2"),
        "remark": np.ones(1, "f4"),
    },
    "weights.safetensors",
    metadata={"made by": "numpy"},
)
save_file({"ip.0": np.arange(6).reshape(2, 3)}, "integers.safetensors")

# numpy has no bfloat16, so the script writes the bytes of 1, -2 and 3.5 itself.
values = b"".join(struct.pack("<f", value)[2:] for value in [1, -2, 3.5])
header = b'{"b":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]}}'
with open("bf16.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + values)
