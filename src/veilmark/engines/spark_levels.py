"""Rows in Spark with their labels at every level of the hierarchies: how many classes a node has, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa

from veilmark.engines.spark_order import ROW
from veilmark.engines.spark_table import SparkTable


class LeveledTable:
    """A table's rows with the numbers of their labels: column i at level n is called `q{i}_{n}`. `maps` has, for each
    column, the values and the numbers (`g0`, `g1`, …) of each."""

    def __init__(self, table: SparkTable, maps: Mapping[str, pa.Table]) -> None:
        self._table = table
        engine, dialect, kinds = table.engine, table.engine.dialect, table.columns
        chosen, joins = [], ""
        with ExitStack() as stack:
            for i, (column, given) in enumerate(maps.items()):
                held = stack.enter_context(engine.holding(given))
                own = dialect.clean_of("s", column, kinds[column])
                joins += f" JOIN {held} AS m{i} ON {dialect.same(own, f'm{i}.value', kinds[column])}"
                chosen += [f"CAST(m{i}.{g} AS STRING) AS q{i}_{n}" for n, g in enumerate(given.column_names[1:])]
            self._others = [c for c in table.columns if c not in maps]
            chosen += [f"s.{dialect.name(c)}" for c in [*self._others, ROW]]
            self._frame = engine.spark.sql(f"SELECT {', '.join(chosen)} FROM {table.ordered} AS s{joins}")
        self._view = engine.view(self._frame)

    def estimate(self, nodes: Sequence[Sequence[int]], sensitive: Sequence[str]) -> list[int]:
        """About how many combinations there are at each of some nodes, with the sensitive attributes' values."""
        more = [self._table.engine.dialect.name(c) for c in sensitive]
        lists = [", ".join([*(f"q{i}_{n}" for i, n in enumerate(node)), *more]) for node in nodes]
        return self._table.estimate(lists, self._view)

    def at(self, columns: Sequence[str], node: Sequence[int]) -> SparkTable:
        """The table with the columns as the numbers of their labels at a node."""
        name = self._table.engine.dialect.name
        chosen = [f"q{i}_{n} AS {name(c)}" for i, (c, n) in enumerate(zip(columns, node, strict=True))]
        frame = self._frame.selectExpr(*chosen, *map(name, self._others), ROW)
        return SparkTable(self._table.engine, frame, self._table.label, bounded=False)
