"""t-closeness in every copy, by the copy's own values.

A copy lacks classes and records and holds decoys, so that its values as a whole are a little different, and classes are a
little farther from them. Copies are looked at before they are written; where one would be too far, the release is planned
with a smaller t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from veilmark.errors import OptionError
from veilmark.mark.linking import Ground
from veilmark.mark.plan import Marks
from veilmark.mark.plant import stays
from veilmark.messages import param
from veilmark.privacy.models import TOLERANCE, PrivacyModel, TCloseness, class_distance
from veilmark.study.opening import resolve_quasi
from veilmark.tables.classes import ClassTable, Histogram, Tally
from veilmark.tables.domain import Domain, as_text
from veilmark.veil.planning import follow_distances

STEP = 0.02
"""t is made smaller by at least this share of it."""


class TooFarError(Exception):
    """A copy would be farther than t from its own values: by so much, for each attribute."""

    def __init__(self, beyond: dict[str, float]) -> None:
        super().__init__(str(beyond))
        self.beyond = beyond


def check_close(ground: Ground, marks: Marks, models: Sequence[PrivacyModel]) -> None:
    """Raise `TooFarError` where a copy would not keep t."""
    asked = [m for m in follow_distances(ground.study, ground.classes, models) if isinstance(m, TCloseness)]
    beyond = {m.attribute: _farthest(ground, marks, m) - m.t for m in asked}
    beyond = {attribute: by for attribute, by in beyond.items() if by > TOLERANCE}
    if beyond:
        raise TooFarError(beyond)


def tightened(models: Sequence[PrivacyModel], far: TooFarError) -> list[PrivacyModel]:
    """The models with a smaller t, by as much as copies would be beyond it; refused where nothing is left of it."""
    found: list[PrivacyModel] = []
    for model in models:
        if isinstance(model, TCloseness) and model.attribute in far.beyond:
            t = model.t - max(far.beyond[model.attribute], STEP * model.t)
            if t < TOLERANCE:
                raise OptionError(
                    f"The copies cannot meet t for '{model.attribute}': they lack some classes and have decoys, "
                    f"so they differ too much from the release. Raise {param('t')}, or ask for fewer covers or "
                    "decoys."
                )
            model = replace(model, t=t)
        found.append(model)
    return found


def _farthest(ground: Ground, marks: Marks, model: TCloseness) -> float:
    """The largest distance of a class of any copy to all of that copy's values."""
    cells = _Cells.of(ground, model.attribute)
    return max(
        float(class_distance(cells.copy(ground, marks, i), model.attribute, model.how).max(initial=0.0))
        for i in range(len(marks.decoys))
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """How many of the source's records of each class of the release have each value of an attribute."""

    attribute: str
    domain: Domain
    owner: np.ndarray
    value: np.ndarray
    records: np.ndarray

    @classmethod
    def of(cls, ground: Ground, attribute: str) -> _Cells:
        classes, labels = ground.classes, ground.plan.recoding.class_labels
        if not ground.plan.recoding.local:
            node = [ground.plan.recoding.levels[c] for c in ground.study.quasi]
            classes = classes.roll_up(resolve_quasi(ground.study, classes), node)
            pairs = zip(classes.domains, classes.codes, strict=True)
            labels = tuple(domain.text.take(pa.array(codes)) for domain, codes in pairs)
        assert labels is not None
        place = ground.linked.find(pa.table(dict(zip(classes.columns, labels, strict=True))))
        histogram = classes.histograms[attribute]
        return cls(attribute, histogram.domain, place[histogram.owner], histogram.value, histogram.records)

    def copy(self, ground: Ground, marks: Marks, recipient: int) -> ClassTable:
        """The classes of a copy; the last are decoys, each with the values of the class that it is taken from."""
        linked = ground.linked
        kept = np.flatnonzero(stays(marks, recipient))
        patterns = np.empty(0, dtype=np.int64) if marks.patterns is None else marks.patterns[recipient]
        parts = [self._placed(kept, 0)]
        parts += [self._placed(patterns[[j]], len(kept) + j) for j in range(len(patterns))]
        owner, value, records = (np.concatenate(of) for of in zip(*parts, strict=True))
        if marks.rows is not None:
            gone = marks.rows.withheld(recipient)
            texts = as_text(ground.rows().others.column(self.attribute).take(pa.array(gone)).combine_chunks())
            owner = np.append(owner, np.searchsorted(kept, ground.rows().owner[gone]))
            value = np.append(value, self.domain.codes_of(texts))
            records = np.append(records, np.full(len(gone), -1))
        size, count = len(self.domain), len(kept) + len(patterns)
        cell, nth = np.unique(owner * size + value, return_inverse=True)
        left = np.bincount(nth, weights=records, minlength=len(cell)).astype(np.int64)
        cell, left = cell[left > 0], left[left > 0]
        histogram = Histogram(self.domain, cell // size, (cell % size).astype(np.int32), Tally(left))
        total = np.bincount(cell // size, weights=left, minlength=count).astype(np.int64)
        columns = tuple(Domain(labels, labels) for labels in linked.labels)
        codes = linked.codes[:, np.append(kept, marks.decoys[recipient])]
        return ClassTable(linked.columns, columns, codes, Tally(total), {self.attribute: histogram})

    def _placed(self, classes: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cells of some classes, which are numbered from `first` on."""
        chosen = np.isin(self.owner, classes)
        return (
            first + np.searchsorted(classes, self.owner[chosen]),
            self.value[chosen].astype(np.int64),
            self.records[chosen],
        )
