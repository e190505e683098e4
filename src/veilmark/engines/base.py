"""What an engine must do. The rows stay with the engine; what leaves it is coded, counted or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from veilmark.cells import Cells

if TYPE_CHECKING:
    from veilmark.veil.pseudonyms import Pseudonyms
    from veilmark.veil.recoding import Recoding


class Table(Protocol):
    """A table that an engine has opened."""

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

    def missing(self, column: str) -> int:
        """How many records lack a value of the column."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""

    def query(self, statement: str) -> pa.Table:
        """Run a statement on the table (its SQL name is `name`)."""

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""

    def write_recoded(
        self, recoding: Recoding, columns: Sequence[str], path: Path, pseudonyms: Pseudonyms | None = None
    ) -> None:
        """Write the columns with the recoding applied, in one streaming pass."""
