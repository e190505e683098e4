"""The recipients' copies, written by Spark. The driver has the decoys, and the rows of the few classes they borrow from.

The rows are recoded once, each with the number of its class, and kept on the executors' disks. A copy is these rows less the
classes that its recipient does not get, and the decoys, in the order of a keyed hash of each row's place in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilmark.engines.spark_order import ROW, in_keyed_order
from veilmark.engines.spark_table import SparkTable
from veilmark.errors import DataError
from veilmark.mark.code import derive
from veilmark.mark.plan import Marks
from veilmark.mark.plant import Rows, donors, lenders, rows_of, stays
from veilmark.output import written_batches

if TYPE_CHECKING:
    from veilmark.tables.recoding import Recoding

CLASS = "__veilmark_class"


@dataclass(frozen=True, eq=False)
class SparkCopies:
    """`rows` has the published columns, the place and the class of every row of the source; `lent` those of the classes that
    decoys borrow from."""

    source: SparkTable
    rows: Any
    columns: tuple[str, ...]
    marks: Marks
    key: bytes
    lent: Rows

    @classmethod
    @contextmanager
    def made(
        cls, source: SparkTable, recoding: Recoding, columns: Sequence[str], marks: Marks, key: bytes
    ) -> Iterator[SparkCopies]:
        """Have Spark recode the rows; they are dropped at the end."""
        engine = source.engine
        with ExitStack() as stack:
            recoded = source.recoded(stack, recoding, columns)
            rows = stack.enter_context(engine.kept(_with_classes(stack, source, recoded, marks)))
            found = engine.doing(rows.count, source.label, "Recoding")
            if found != int(_counts(marks).sum()):
                raise DataError(f"'{source.label}' changed while it was being read. Try again.")
            source.check_unchanged()
            yield cls(source, rows, tuple(columns), marks, key, _lent(source, rows, columns, marks, key))

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy: one CSV or Parquet file or, of a large table, a folder of Parquet files."""
        engine, name = self.source.engine, self.marks.marking.recipients[recipient]
        stay = stays(self.marks, recipient)
        records = int(self.marks.linked.published[stay].sum() + self.marks.sizes[recipient].sum())
        with ExitStack() as stack:
            gone = stack.enter_context(engine.holding(pa.table({CLASS: np.flatnonzero(~stay)})))
            kept = self.rows.join(engine.spark.table(gone), CLASS, "left_anti").drop(CLASS)
            everything = kept.unionByName(self._decoys(recipient, kept))
            ordered = in_keyed_order(engine, stack, everything, derive(self.key, f"rows {name}"), records)
            self.source.write_frame(ordered, path, _merge)

    def _decoys(self, recipient: int, like: Any) -> Any:
        """A recipient's decoys as a frame with the columns and types of another."""
        marks = self.marks
        borrowed = donors(self.lent, marks, recipient, self.key, _counts(marks))
        decoys = np.repeat(marks.decoys[recipient], marks.sizes[recipient])
        table = rows_of(self.lent, marks, decoys, borrowed)
        name = self.source.engine.dialect.name
        types = {field.name: field.dataType.simpleString() for field in like.schema.fields}
        chosen = [f"CAST({name(c)} AS {types[c]}) AS {name(c)}" for c in self.columns]
        place = f"named_struct('file', -1L, 'number', {ROW}) AS {ROW}"
        numbered = table.append_column(ROW, pa.array(np.arange(len(table))))
        return self.source.engine.frame_of(numbered).selectExpr(*chosen, place)


def _counts(marks: Marks) -> np.ndarray:
    """How many of the source's rows each class has."""
    return marks.linked.published + marks.linked.suppressed


def _with_classes(stack: ExitStack, source: SparkTable, recoded: Any, marks: Marks) -> Any:
    """Recoded rows with the number of the class that their labels are those of."""
    engine, linked = source.engine, marks.linked
    there = np.flatnonzero(_counts(marks))
    labels = {
        f"l{i}": of.take(pa.array(codes[there]))
        for i, (of, codes) in enumerate(zip(linked.labels, linked.codes, strict=True))
    }
    classes = stack.enter_context(engine.holding(pa.table({**labels, CLASS: there})))
    name = engine.dialect.name
    same = " AND ".join(engine.dialect.same(f"r.{name(c)}", f"l.l{i}", "text") for i, c in enumerate(linked.columns))
    rows = engine.view(recoded)
    return engine.spark.sql(f"SELECT r.*, l.{CLASS} FROM {rows} AS r JOIN {classes} AS l ON {same}")


def _lent(source: SparkTable, rows: Any, columns: Sequence[str], marks: Marks, key: bytes) -> Rows:
    """The rows of the classes that decoys borrow from, on the driver."""
    engine, counts = source.engine, _counts(marks)
    everybody = range(len(marks.marking.recipients))
    wanted = np.unique(np.concatenate([lenders(counts, marks, i, key)[0] for i in everybody]).astype(np.int64))
    others = [c for c in columns if c not in marks.linked.columns]
    with engine.holding(pa.table({CLASS: wanted})) as name:
        chosen = rows.join(engine.spark.table(name), CLASS).select(*map(engine.dialect.name, others), CLASS)
        found = engine.collect(chosen, source.label)
    owner = found.column(CLASS).to_numpy()
    return Rows(tuple(columns), found.drop_columns(CLASS).combine_chunks(), owner)


def _merge(parts: Sequence[Path], path: Path) -> None:
    """Spark's files as one, a batch at a time, written as copies are on other engines."""
    schema = pq.read_schema(parts[0]).remove_metadata()
    batches = (b.replace_schema_metadata(None) for part in parts for b in pq.ParquetFile(part).iter_batches())
    with written_batches(batches, path, schema):
        pass
