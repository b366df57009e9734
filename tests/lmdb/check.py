"""Checks that LMDB reads and changes a database that cortado wrote. Requires lmdb from PyPI.

    python check.py DB [PREFIX-of-IDX-files]

The script changes only a copy of the database. If a prefix is given, it compares all records with
the IDX files.
"""

import gzip
import os
import shutil
import sys
import tempfile

import lmdb


def read_idx(path, header):
    with gzip.open(path) as file:
        return file.read()[header:]


source, *prefix = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "db")
    shutil.copytree(source, path)
    with lmdb.open(path, readonly=True) as env, env.begin() as txn:
        records = [(bytes(key), bytes(value)) for key, value in txn.cursor()]
        stat, info = txn.stat(), env.info()
        assert stat["entries"] == len(records)
        assert all(txn.get(key) == value for key, value in records)
        assert [key for key, _ in txn.cursor().iterprev(values=True)] == [key for key, _ in records][::-1]
    print(len(records), "records;", stat, info)
    if prefix:
        images = read_idx(prefix[0] + "-images-idx3-ubyte.gz", 16)
        labels = read_idx(prefix[0] + "-labels-idx1-ubyte.gz", 8)
        datum_head = bytes([8, 1, 16, 28, 24, 28, 34, 144, 6])
        assert len(labels) == len(records)
        for i, (key, value) in enumerate(records):
            assert key == b"%08d" % i
            assert value == datum_head + images[i * 784 : i * 784 + 784] + bytes([40, labels[i]])
        print("records match the IDX files")
    with lmdb.open(path, map_size=4 * info["map_size"] + (1 << 20)) as env:
        with env.begin(write=True) as txn:
            for key, value in records:
                txn.put(b"between" + key, value)
                txn.put(key, value[::-1])
        with env.begin(write=True) as txn:
            for key, _ in records[::2]:
                assert txn.delete(key)
        with env.begin() as txn:
            expected = {b"between" + key: value for key, value in records}
            expected |= {key: value[::-1] for key, value in records[1::2]}
            assert {bytes(key): bytes(value) for key, value in txn.cursor()} == expected
    print("changed as expected")
