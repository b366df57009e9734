"""Creates the HDF5 files in this folder. Requires h5py and numpy from PyPI.

Groups, datasets, types and dataspaces are those that Caffe's Net::ToHDF5 and
SGDSolver::SnapshotSolverStateToHDF5 create by H5LTmake_dataset_float, _int and _string.
"""

import h5py
import numpy as np


def ramp(*shape, start=0, dtype="<f4"):
    return (np.arange(start, start + np.prod(shape, dtype=int)) / 8).astype(dtype).reshape(shape)


def string(group, name, text):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(text) + 1)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create(group.id, name.encode(), kind, space)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(text.encode(), f"S{len(text) + 1}"), kind)


def net(name, dtype="<f4", diffs=False, **changes):
    """Writes a trained net in which layer `b` shares its blob 0 with layer `a`."""
    layers = {
        "x": {},
        "conv": {"0": ramp(2, 3, 3, 3, dtype=dtype), "1": ramp(2, start=-2, dtype=dtype)},
        "relu": {},
        "a": {"0": ramp(8, 8, start=-32, dtype=dtype), "1": ramp(8, start=100, dtype=dtype)},
        "b": {"1": ramp(8, start=200, dtype=dtype)},
    }
    layers.update(changes)
    with h5py.File(name, "w") as file:
        data = file.create_group("data")
        for layer, blobs in layers.items():
            group = data.create_group(layer)
            for index, values in blobs.items():
                group.create_dataset(index, data=values)
        if diffs:
            diff = file.create_group("diff")
            for layer, blobs in layers.items():
                group = diff.create_group(layer)
                for index, values in blobs.items():
                    group.create_dataset(index, data=-values)
            diff["b"].create_dataset("0", data=-layers["a"]["0"])


def state(name, history, **integers):
    with h5py.File(name, "w") as file:
        for key, value in integers.items():
            file.create_dataset(key, data=np.array([value], "<i4"))
        string(file, "learned_net", "float.caffemodel.h5")
        group = file.create_group("history")
        for index, values in enumerate(history):
            group.create_dataset(str(index), data=values)


shapes = [(2, 3, 3, 3), (2,), (8, 8), (8,), (8,)]
history = [ramp(*shape, start=index) for index, shape in enumerate(shapes)]

net("float.caffemodel.h5")
net("double.caffemodel.h5", dtype="<f8")
net("big_endian.caffemodel.h5", dtype=">f4")
net("half.caffemodel.h5", dtype="<f2")
net("diffs.caffemodel.h5", diffs=True)
state("float.solverstate.h5", history, iter=7, current_step=2)

# Files that the HDF5 reader must reject.
a = {"0": ramp(8, 8), "1": ramp(8)}
net("shape.caffemodel.h5", a={**a, "1": ramp(4, 2)})
net("missing.caffemodel.h5", a={"0": a["0"]})
net("surplus.caffemodel.h5", a={**a, "2": ramp(1)})
net("named.caffemodel.h5", a={**a, "bias": ramp(8)})
net("text.caffemodel.h5", a={**a, "1": np.bytes_("a")})
state("no_step.solverstate.h5", history, iter=7)
state("short.solverstate.h5", history[:-1], iter=7, current_step=2)


def rows():
    """Writes datasets like those of many h5py users: chunked and compressed doubles, and integers."""
    with h5py.File("rows.h5", "w") as file:
        file.create_dataset(
            "x", data=ramp(7, 2, 3, dtype="<f8"), chunks=(2, 2, 2), compression="gzip", shuffle=True
        )
        file["label"] = np.arange(7, dtype="<i8") * 1000
        file["byte"] = np.arange(7, dtype="u1").reshape(7, 1)


rows()


def chunk_indices():
    """Writes a dataset for each kind of chunk index of HDF5 1.10 and later."""
    x = ramp(7, 2, 3)
    with h5py.File("chunk_indices.h5", "w", libver=("v110", "v110")) as file:
        file.create_dataset("single", data=x, chunks=x.shape, compression="gzip")
        file.create_dataset("fixed", data=x, chunks=(2, 2, 2), compression="gzip")
        file.create_dataset("extensible", data=x, chunks=(2, 2, 2), maxshape=(None, 2, 3))
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((2, 2, 2))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple(x.shape)
        implicit = h5py.h5d.create(file.id, b"implicit", h5py.h5t.IEEE_F32LE, space, early)
        implicit.write(h5py.h5s.ALL, h5py.h5s.ALL, x)
        file.create_dataset("half", data=x.astype(">f2"), chunks=(2, 2, 2))
    # Chunk indices that the HDF5 reader must reject.
    with h5py.File("several_unlimited.h5", "w", libver=("v110", "v110")) as file:
        file.create_dataset("x", data=ramp(2, 3), chunks=(1, 3), maxshape=(None, None))
    with h5py.File("version_5.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=ramp(2, 3), chunks=(1, 3), compression="gzip")


chunk_indices()
