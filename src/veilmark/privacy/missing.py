"""Limits that hold only because a missing sensitive value counts as a value.

A class of one diagnosis and some records without any has two values by the letter of l-diversity, and gives the one away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veilmark.privacy.models import DistinctL, EntropyL, PrivacyModel, RecursiveL, TCloseness
from veilmark.tables.cells import total
from veilmark.tables.classes import ClassTable, Histogram, Tally

ABOUT = (DistinctL, EntropyL, RecursiveL, TCloseness)
"""The models that are looked at; they count records."""

MissingCounted = dict[str, dict[str, int]]
"""By sensitive attribute and model, how many classes meet it only because a missing value counts as a value."""


def missing_counted(classes: ClassTable, models: Sequence[PrivacyModel]) -> MissingCounted:
    """The classes that meet a model, and would not if records without a value were left out of its counts."""
    found: MissingCounted = {}
    for model in models:
        if not isinstance(model, ABOUT) or not _lacks_some(classes.histograms[model.attribute]):
            continue
        known, kept = without_missing(classes, model.attribute)
        only = int((model.failing(known) & ~model.failing(classes)[kept]).sum())
        if only:
            of = found.setdefault(model.attribute, {})
            of[model.name] = max(only, of.get(model.name, 0))
    return found


def without_missing(classes: ClassTable, attribute: str) -> tuple[ClassTable, np.ndarray]:
    """The classes without the records that lack a value of the attribute, and which of them have others (a mask)."""
    histogram = classes.histograms[attribute]
    stay = histogram.value != histogram.domain.missing
    owner, records = histogram.owner[stay], histogram.records[stay]
    sizes = total(owner, records, len(classes))
    kept = sizes > 0
    position = np.cumsum(kept) - 1
    own = Histogram(histogram.domain, position[owner], histogram.value[stay], Tally(records))
    tally = Tally(sizes[kept])
    return replace(
        classes, codes=classes.codes[:, kept], tally=tally, histograms={attribute: own}, population=None
    ), kept


def _lacks_some(histogram: Histogram) -> bool:
    missing = histogram.domain.missing
    return missing is not None and bool(histogram.overall[missing])
