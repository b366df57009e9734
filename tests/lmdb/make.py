"""Creates the databases in this folder. Requires the PyPI package lmdb, which contains LMDB itself."""

import os

import lmdb

HERE = os.path.dirname(os.path.abspath(__file__))


def database(name, fill, **options):
    path = os.path.join(HERE, f"{name}.mdb")
    for stale in (path, path + "-lock"):
        if os.path.exists(stale):
            os.remove(stale)
    with lmdb.open(path, subdir=False, map_size=1 << 20, sync=False, **options) as env:
        fill(env)
    os.remove(path + "-lock")
    with open(path, "rb+") as file:
        used = max(int.from_bytes(file_page(file, page, 136), "little") for page in (0, 1)) + 1
        file.truncate(used * 4096)


def file_page(file, page, offset):
    file.seek(page * 4096 + offset)
    return file.read(8)


LENGTHS = [0, 3, 40, 7, 1, 1547, 2, 5, 1548, 0, 3, 4080, 1, 4081, 2, 8300]


def tree(env):
    """Writes a B+ tree of three levels, with pages that LMDB freed and reused.

    The values have lengths near those from which LMDB needs one or more overflow pages.
    """
    key = lambda i: b"%03d" % i + b"k" * 480
    with env.begin(write=True) as txn:
        for i in range(48):
            txn.put(key(i * 37 % 48), b"old" * i)
    with env.begin(write=True) as txn:
        for i in range(32):
            txn.put(key(i), bytes([i]) * LENGTHS[i % 16])
    with env.begin(write=True) as txn:
        for i in range(32, 48):
            txn.delete(key(i))


def databases(env):
    inner = env.open_db(b"inner")
    with env.begin(write=True) as txn:
        txn.put(b"a", b"1", db=inner)


database("tree", tree)
database("empty", lambda env: None)
database("databases", databases, max_dbs=1)
