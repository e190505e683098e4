"""Shuffle: rows in a random order, wholly and out of core.

Each row goes to a bucket that is drawn at random; then each bucket is put into a random order by itself. That is a random
order of all rows (Rao, Sandelius), and no more than one bucket has to be in memory. The draws come from a generator of our
own, row by row in the source's order: a seed gives the same order from every engine, with any number of threads and however
the rows arrive in batches.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from veilmark.errors import OutputError

BUCKET_ROWS = 1 << 17
"""A bucket has about so many rows, or half of them."""
MOST_BUCKETS = 1 << 12
HELD_BYTES = 1 << 28
"""Rows of all buckets are held in memory up to so many bytes; then they go to a file."""
DRAWN_WORDS = 1 << 15


@dataclass(frozen=True)
class Shuffle:
    """A random order of so many rows. Without a seed it is drawn from the system's own randomness, and nobody can draw it
    again."""

    rows: int
    seed: int | None = None

    def batches(self, batches: Iterable[pa.RecordBatch], folder: Path | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in random order, a bucket at a time; a file in `folder` holds what does not fit into memory."""
        generator = np.random.Philox(self.seed)
        permuting = np.random.Generator(generator.jumped())
        with _Buckets(self._count(), generator, folder) as buckets:
            for batch in batches:
                buckets.add(batch)
            for rows in buckets.drain():
                yield rows.take(pa.array(permuting.permutation(rows.num_rows)))

    def _count(self) -> int:
        """A power of two, so that each bucket is drawn as often as any other."""
        wanted = -(-self.rows // BUCKET_ROWS)
        return min(1 << max(wanted - 1, 0).bit_length(), MOST_BUCKETS)


class _Buckets:
    """Rows by their buckets, in the order they came."""

    def __init__(self, count: int, generator: np.random.Philox, folder: Path | None) -> None:
        self._count = count
        self._generator = generator
        self._left = np.empty(0, np.uint16)
        self._held: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
        self._bytes = 0
        self._folder = folder
        self._file: int | None = None
        self._spilled: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self._schema: pa.Schema | None = None

    def __enter__(self) -> _Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def add(self, batch: pa.RecordBatch) -> None:
        """Draw a bucket for each row."""
        self._schema = batch.schema
        if self._count == 1:
            self._held[0].append(batch)
            return
        bucket = self._draw(batch.num_rows) & np.uint16(self._count - 1)
        rows = batch.take(pa.array(np.argsort(bucket, kind="stable")))
        sizes = np.bincount(bucket, minlength=self._count)
        ends = np.cumsum(sizes)
        for i in np.flatnonzero(sizes).tolist():
            self._held[i].append(rows.slice(int(ends[i] - sizes[i]), int(sizes[i])))
        self._bytes += rows.nbytes
        if self._bytes > HELD_BYTES:
            self._spill()

    def _draw(self, count: int) -> np.ndarray:
        """The next random numbers, whatever the counts before."""
        while len(self._left) < count:
            self._left = np.concatenate([self._left, self._generator.random_raw(DRAWN_WORDS).view(np.uint16)])
        drawn, self._left = self._left[:count], self._left[count:]
        return drawn

    def _spill(self) -> None:
        try:
            self._write_held()
        except OSError as error:
            raise OutputError(
                f"The rows cannot be shuffled, because the temporary folder cannot hold them: {error.strerror or error}. "
                "Free space there, or set TMPDIR to a folder with more."
            ) from None

    def _write_held(self) -> None:
        """Write what is held to a file that has no name, so that nothing is left of it whatever happens."""
        if self._file is None:
            self._file, name = tempfile.mkstemp(prefix="veilmark-", dir=self._folder)
            os.unlink(name)
        at = os.lseek(self._file, 0, os.SEEK_END)
        for bucket, batches in enumerate(self._held):
            for rows in _joined(batches):
                data = rows.serialize()
                _write_all(self._file, data)
                self._spilled[bucket].append((at, data.size))
                at += data.size
        self._held = [[] for _ in range(self._count)]
        self._bytes = 0

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Each bucket's rows, which are forgotten then."""
        for bucket in range(self._count):
            spilled = [self._read(*place) for place in self._spilled[bucket]]
            held, self._held[bucket] = self._held[bucket], []
            yield from _joined([*spilled, *held])

    def _read(self, at: int, size: int) -> pa.RecordBatch:
        assert self._file is not None
        return pa.ipc.read_record_batch(pa.py_buffer(os.pread(self._file, size, at)), self._schema)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches as one."""
    return [pa.concat_batches(batches)] if batches else []


def _write_all(file: int, data: pa.Buffer) -> None:
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(file, rest) :]
