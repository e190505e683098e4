"""What is asked of a release to recipients, and what one recipient's copy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veilmark.mark.marking import CopyMarking
from veilmark.mark.plan import Marks
from veilmark.privacy.models import PrivacyModel
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola


@dataclass(frozen=True)
class Terms:
    """What the ledger notes of an agreement: its reference, a contact, and on what basis persons serve as decoys."""

    agreement: str | None = None
    contact: str | None = None
    consent: str | None = None

    def to_dict(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class ReleaseRequest:
    """All that `release` is asked for; `identity` are the columns that tell who somebody in the population is. Both are for
    decoys: without any, `population` may be None and `identity` empty."""

    population: Any
    identity: tuple[str, ...]
    marking: CopyMarking
    models: tuple[PrivacyModel, ...] = ()
    method: Ola | Mondrian = field(default_factory=Ola)
    seed: int | None = None
    form: str = "csv"
    terms: Mapping[str, Terms] = field(default_factory=dict)


@dataclass(frozen=True)
class Copy:
    """One recipient's copy."""

    name: str
    file: str
    records: int
    decoy_classes: int
    decoy_records: int
    withheld_classes: int
    withheld_records: int

    @classmethod
    def planned(cls, marks: Marks, recipient: int, file: str) -> Copy:
        published, withheld = marks.linked.published, marks.withheld(recipient)
        added = int(marks.sizes[recipient].sum())
        lost = int(published[withheld].sum()) + marks.rows_withheld(recipient)
        name, records = marks.marking.recipients[recipient], int(published.sum()) - lost + added
        return cls(name, file, records, len(marks.decoys[recipient]), added, len(withheld), lost)

    @property
    def classes_more(self) -> int:
        """How many classes it has more than the release without marks."""
        return self.decoy_classes - self.withheld_classes

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))
