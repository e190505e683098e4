"""What an engine must do. The rows stay with the engine; what leaves it is coded, counted or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pyarrow as pa

from veilmark.engines.files import CsvFormat
from veilmark.engines.shuffle import Shuffle
from veilmark.engines.sql import Dialect
from veilmark.tables.cells import Cells
from veilmark.tables.domain import Domain

if TYPE_CHECKING:
    from veilmark.tables.pseudonyms import Pseudonyms
    from veilmark.tables.recoding import Recoding


class Engine(Protocol):
    """Opens tables; at the end of a `with`, it drops everything, the temporary files too."""

    def __enter__(self) -> Self:
        """The engine itself."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any, /) -> None:
        """Drop everything, and say in plain words what went wrong in what it is built on."""

    @property
    def dialect(self) -> Dialect:
        """How it spells SQL."""

    def open(self, source: Any, csv: CsvFormat | None = None, joined: bool = False) -> Table:
        """A path or glob of files, a frame, or what the study's source names; `joined` says that statements will join it
        with the study's source."""

    def holding(self, table: pa.Table) -> AbstractContextManager[str]:
        """A table of our own that statements can name, which is gone afterwards; joins with it leave the other table's
        rows where they are."""

    def scratch(self, suffix: str) -> Path:
        """A new file's path in the engine's own folder."""


@dataclass(frozen=True, eq=False)
class Visits:
    """Rows, or the distinct ones with how often each occurs (`counts`), in the order of the source: two independent hashes
    of each one's person, and some columns of them."""

    hashes: np.ndarray
    checks: np.ndarray
    counts: np.ndarray | None
    columns: Iterator[pa.RecordBatch]


class Table(Protocol):
    """A table that an engine has opened."""

    @property
    def engine(self) -> Engine:
        """The engine that opened it."""

    name: str
    """What statements call it."""

    label: str
    """What messages call it: a file name, or `the frame`."""

    columns: dict[str, str]
    """Column names in their order, each with its kind: text, number, float, date, other or nested."""

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""

    def group_persons(
        self, quasi: Sequence[str], sensitive: Sequence[str], person: str
    ) -> list[tuple[Cells, pa.Table]]:
        """The same over `quasi`, then over `quasi` and each sensitive attribute, with the persons of each cell.

        Persons who have several combinations of `quasi` are left out of the cells; a table of the distinct (columns,
        person) of these goes with each.
        """

    def count(self) -> int:
        """How many records there are."""

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""

    def domain(self, column: str) -> Domain:
        """The distinct values of a column."""

    def declare_missing(self, codes: Mapping[str, Sequence[str]]) -> None:
        """From now on, these values of some columns are missing."""

    def spooled(self, columns: Sequence[str]) -> Table:
        """Some columns as a table that is quick to read again and again."""

    def visits(self, columns: Sequence[str], person: str, part: tuple[int, int] = (0, 1)) -> Visits:
        """The rows with their persons; of several parts, the rows of the persons in one."""

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows in their order, in this order."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""

    def query(self, statement: str) -> pa.Table:
        """Run a statement on the table (its SQL name is `name`)."""

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""

    def write_recoded(
        self,
        recoding: Recoding,
        columns: Sequence[str],
        path: Path,
        pseudonyms: Pseudonyms | None = None,
        order: Shuffle | None = None,
    ) -> None:
        """Write the columns with the recoding applied, in one streaming pass; without an order, rows stay in theirs."""
