"""Copies of a table with some rows left out and others added, written by Spark.

The rows are recoded once, each with the number of its class, and kept on the executors' disks. A copy is these rows without
some classes, with the added rows, in the order of a keyed hash of each row's place in the source.
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
from veilmark.output import written_batches

if TYPE_CHECKING:
    from veilmark.tables.recoding import Recoding

CLASS = "__veilmark_class"


@dataclass(frozen=True, eq=False)
class HeldClasses:
    """`rows` has the published columns, the place and the class of every row of the source."""

    source: SparkTable
    rows: Any
    columns: tuple[str, ...]

    @classmethod
    @contextmanager
    def made(
        cls, source: SparkTable, recoding: Recoding, columns: Sequence[str], classes: pa.Table, records: int
    ) -> Iterator[HeldClasses]:
        """Have Spark recode the rows; they are dropped at the end. `classes` has the labels of each class and, last, its
        number; `records` is how many rows there must be."""
        engine = source.engine
        with ExitStack() as stack:
            recoded = source.recoded(stack, recoding, columns)
            rows = stack.enter_context(engine.kept(_with_classes(stack, source, recoded, classes)))
            found = engine.doing(rows.count, source.label, "Recoding")
            if found != records:
                raise DataError(f"'{source.label}' changed while it was being read. Try again.")
            source.check_unchanged()
            yield cls(source, rows, tuple(columns))

    def rows_in(self, classes: np.ndarray, columns: Sequence[str]) -> tuple[pa.Table, np.ndarray]:
        """The rows of some classes, on the driver: some of their columns, and the class of each."""
        engine = self.source.engine
        with engine.holding(pa.table({CLASS: classes})) as name:
            chosen = self.rows.join(engine.spark.table(name), CLASS).select(*map(engine.dialect.name, columns), CLASS)
            found = engine.collect(chosen, self.source.label)
        return found.drop_columns(CLASS).combine_chunks(), found.column(CLASS).to_numpy()

    def write(self, path: Path, without: np.ndarray, added: pa.Table, key: bytes, records: int) -> None:
        """Write the rows without some classes, and the added ones, `records` in all, in the order of a key: one CSV or
        Parquet file or, of a large table, a folder of Parquet files."""
        engine = self.source.engine
        with ExitStack() as stack:
            gone = stack.enter_context(engine.holding(pa.table({CLASS: without})))
            kept = self.rows.join(engine.spark.table(gone), CLASS, "left_anti").drop(CLASS)
            everything = kept.unionByName(self._framed(added, kept))
            self.source.write_frame(in_keyed_order(engine, stack, everything, key, records), path, _merge)

    def _framed(self, table: pa.Table, like: Any) -> Any:
        """Rows as a frame with the columns and types of another."""
        name = self.source.engine.dialect.name
        types = {field.name: field.dataType.simpleString() for field in like.schema.fields}
        chosen = [f"CAST({name(c)} AS {types[c]}) AS {name(c)}" for c in self.columns]
        place = f"named_struct('file', -1L, 'number', {ROW}) AS {ROW}"
        numbered = table.append_column(ROW, pa.array(np.arange(len(table))))
        return self.source.engine.frame_of(numbered).selectExpr(*chosen, place)


def _with_classes(stack: ExitStack, source: SparkTable, recoded: Any, classes: pa.Table) -> Any:
    """Recoded rows with the number of the class that their labels are those of."""
    engine, columns = source.engine, classes.column_names[:-1]
    held = stack.enter_context(engine.holding(classes.rename_columns([*(f"l{i}" for i in range(len(columns))), CLASS])))
    name = engine.dialect.name
    same = " AND ".join(engine.dialect.same(f"r.{name(c)}", f"l.l{i}", "text") for i, c in enumerate(columns))
    rows = engine.view(recoded)
    return engine.spark.sql(f"SELECT r.*, l.{CLASS} FROM {rows} AS r JOIN {held} AS l ON {same}")


def _merge(parts: Sequence[Path], path: Path) -> None:
    """Spark's files as one, a batch at a time, written as copies are on other engines."""
    schema = pq.read_schema(parts[0]).remove_metadata()
    batches = (b.replace_schema_metadata(None) for part in parts for b in pq.ParquetFile(part).iter_batches())
    with written_batches(batches, path, schema):
        pass
