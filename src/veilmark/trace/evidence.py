"""Evidence: what the ledger knows of a release's marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilmark.mark.code import Code
from veilmark.mark.rowmarks import MarkedRows
from veilmark.trace.sealed import SealedPool


@dataclass(frozen=True, eq=False)
class Marked:
    """What the ledger's secret says of a release.

    `above[column]` has the release's labels and, level by level, what each becomes further up. Classes are columns of label
    numbers: `class_codes` the released ones, of which `covers` are in some copies only (`holds[i, j]`: recipient i has cover
    j), `pool_codes` those that decoys were drawn from; `drawn[i, j]` says whether recipient i got class j of the pool.
    `decoys` are the persons by recipient. `sizes` are the records of each released class. `sealed` tells which classes of
    the pool claims are about; early ledgers lack it. Releases with the same `cover_key` have the same covers; early ledgers
    do not say it, and had one for all.
    """

    release: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    above: Mapping[str, Sequence[Sequence[str | None]]]
    class_codes: np.ndarray
    covers: np.ndarray
    holds: np.ndarray
    code: Code | None
    pool_codes: np.ndarray
    drawn: np.ndarray
    decoys: Mapping[str, Sequence[Mapping[str, Any]]]
    sizes: np.ndarray
    rows: MarkedRows | None = None
    sealed: SealedPool | None = None
    cover_key: str | None = None

    @classmethod
    def of(cls, release: str, secret: Mapping[str, Any]) -> Marked:
        """From what `release` put into the ledger."""
        names, columns = tuple(secret["holds"]), tuple(secret["columns"])
        bits = [[c == "1" for c in secret["holds"][name]] for name in names]
        code = secret["code"]
        pool = np.array(secret["pool"], dtype=np.int64).reshape(len(columns), -1)
        drawn = np.zeros((len(names), pool.shape[1]), dtype=bool)
        for row, name in zip(drawn, names, strict=True):
            row[secret["drawn"][name]] = True
        return cls(
            release,
            names,
            columns,
            tuple(secret["identity"]),
            secret["above"],
            np.array(secret["classes"], dtype=np.int64).reshape(len(columns), -1),
            np.array(secret["covers"], dtype=np.int64),
            np.array(bits, dtype=bool).reshape(len(names), len(secret["covers"])),
            None if code is None else Code(code["kind"], code["coalition"], np.array(code["p"])),
            pool,
            drawn,
            secret["decoys"],
            np.array(secret["sizes"], dtype=np.int64),
            MarkedRows.of(secret["rows"], names) if secret.get("rows") else None,
            SealedPool.read(secret, pool),
            secret.get("cover_key"),
        )

    @property
    def coded(self) -> bool:
        """Whether copies differ in real classes or records."""
        return len(self.covers) > 0 or self.rows is not None

    @property
    def held_by_chance(self) -> np.ndarray:
        """The probability with which a recipient, any, was given each cover."""
        return np.full(len(self.covers), 1 / len(self.names)) if self.code is None else self.code.p

    @property
    def expected(self) -> np.ndarray:
        """The records that each released class has in a copy, on average: the same whoever leaked."""
        records = self.sizes.astype(float)
        records[self.covers] *= self.held_by_chance
        return records

    @property
    def classes(self) -> list[list[str | None]]:
        """The labels of the released classes, class by class."""
        return self.texts(self.class_codes)

    def texts(self, codes: np.ndarray) -> list[list[str | None]]:
        """The labels of some classes, class by class."""
        rows = (
            [self.above[column][0][c] for c in code] for column, code in zip(self.columns, codes.tolist(), strict=True)
        )
        return [list(row) for row in zip(*rows, strict=True)]


def identity_key(column: str, quasi: Sequence[str]) -> str:
    """What a decoy's own value of an identity column is called, where the published one has that name."""
    return f"{column} of the person" if column in quasi else column
