"""Creates LevelDB databases with PyPI's package plyvel, which contains LevelDB itself.

    python make.py             the small databases in this folder
    python make.py FOLDER      large databases in FOLDER

Each database NAME has a file NAME.records with the records that plyvel reads: the length of the key
and of the value as two little-endian 32-bit integers, the key and the value.
"""

import os
import random
import shutil
import struct
import sys

import plyvel

HERE = os.path.dirname(os.path.abspath(__file__))


class Database:
    """A database that is written in several sessions."""

    def __init__(self, folder, name, **options):
        self.path = os.path.join(folder, name)
        self.options = options
        shutil.rmtree(self.path, ignore_errors=True)

    def session(self, write, compact=False):
        """Opens the database, writes and closes it.

        LevelDB turns the write-ahead log of the last session into a table of level 0, and
        compaction moves the tables to a higher level.
        """
        database = plyvel.DB(self.path, create_if_missing=True, **self.options)
        write(database)
        if compact:
            database.compact_range(start=b"\0", stop=b"\xff")
        database.close()

    def finish(self, old_names=False):
        """Writes the expected records, and removes the files that a reader does not need."""
        copy = self.path + ".copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.path, copy)  # opening a database changes it
        with plyvel.DB(copy, **self.options) as database, open(self.path + ".records", "wb") as file:
            for key, value in database:
                file.write(struct.pack("<II", len(key), len(value)) + key + value)
        shutil.rmtree(copy)
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            if name.startswith("LO"):  # LOCK, LOG, LOG.old
                os.remove(path)
            elif old_names and name.endswith(".ldb"):
                os.rename(path, path[:-4] + ".sst")


def small(folder, name, old_names=False, **options):
    """Writes a table of level 1, three tables of level 0 and a write-ahead log, which overwrite and delete records of
    each other."""
    database = Database(folder, name, block_size=1024, **options)
    key = lambda i: b"%08d_image.jpg" % i
    value = lambda i, session: b"%d:%d " % (session, i) * (i % 7)

    def write(session, puts, deletes):
        def changes(database):
            with database.write_batch() as batch:
                for i in puts:
                    batch.put(key(i), value(i, session))
            for i in deletes:
                database.delete(key(i))
        return changes

    database.session(write(1, range(0, 96), []))
    database.session(write(2, range(0, 96, 5), range(3, 96, 17)), compact=True)
    database.session(write(3, range(40, 120, 3), range(1, 96, 19)))
    database.session(write(4, range(20, 60, 7), range(2, 96, 23)))
    database.session(write(5, range(60, 130, 9), [5, 96, 97, 500]))
    database.session(write(6, [0, 3, 131, 133], [10, 60, 133]))
    database.finish(old_names)


def large(folder, name, seed, **options):
    """Writes random records, with values longer than the blocks of the write-ahead log, through
    several tables of each level."""
    database = Database(folder, name, **options)
    generator = random.Random(seed)
    keys = [b"%08d" % i for i in range(20000)]

    def value():
        if generator.random() < 0.002:
            return generator.randbytes(generator.randrange(200000))
        return generator.choice([generator.randbytes, bytes])(generator.randrange(1000))

    def write(count):
        def changes(database):
            for _ in range(count):
                with database.write_batch() as batch:
                    for _ in range(generator.randrange(40)):
                        key = generator.choice(keys)
                        if generator.random() < 0.3:
                            batch.delete(key)
                        else:
                            batch.put(key, value())
        return changes

    for session in range(4):
        database.session(write(500), compact=session == 1)
    database.finish()


def datums(folder, name):
    """Writes Datum messages of 1 x 1 x 2 bytes: three in a table and two in the write-ahead log."""
    datum = lambda i: bytes([8, 1, 16, 1, 24, 2, 34, 2, 10 * i, 10 * i + 1, 40, i])
    database = Database(folder, name)
    for records in (range(3), range(3, 5)):
        database.session(lambda database: [database.put(b"%08d" % i, datum(i)) for i in records])
    database.finish(old_names=True)
    os.remove(database.path + ".records")


if len(sys.argv) > 1:
    for compression in (None, "snappy"):
        options = {"compression": compression, "write_buffer_size": 1 << 20}
        large(sys.argv[1], f"large_{compression}", 1, **options)
        large(sys.argv[1], f"filtered_{compression}", 2, bloom_filter_bits=10, **options)
    one_log = Database(sys.argv[1], "one_log", write_buffer_size=1 << 28)
    one_log.session(lambda database: [database.put(b"%d" % i, b"v" * i * 37) for i in range(1000)])
    for database in (one_log, Database(sys.argv[1], "empty")):
        database.session(lambda database: None)
        database.finish()
else:
    small(HERE, "plain", old_names=True, compression=None)
    small(HERE, "snappy", compression="snappy")
    datums(HERE, "datums")
