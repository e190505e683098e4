"""What an engine must do. The rows stay with the engine; what leaves it is coded, counted or written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from veilmark.cells import Cells


class Table(Protocol):
    """A table that an engine has opened."""

    label: str
    """What messages call it: a file name, or `the frame`."""

    columns: dict[str, str]
    """Column names in their order, each `text`, `number`, `date` or `other`."""

    def group(self, columns: Sequence[str]) -> Cells:
        """The distinct combinations of the columns, coded and counted."""

    def group_persons(self, columns: Sequence[str], quasi: Sequence[str], person: str) -> Cells:
        """The same, with `settled`: distinct persons in each cell, those left out who have several `quasi`."""

    def wanderers(self, columns: Sequence[str], quasi: Sequence[str], person: str) -> pa.Table:
        """The distinct (columns, `person`) of those who have several `quasi`."""

    def sample(self, rows: int) -> pa.Table:
        """The first rows as Arrow."""

    def count(self) -> int:
        """How many records there are."""
