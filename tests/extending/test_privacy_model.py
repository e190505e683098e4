"""An example: a privacy model of one's own. The class belongs in `privacy/models.py`."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from veilmark import Ola, Study
from veilmark.veil import verify


@dataclass(frozen=True)
class TopTwo:
    """The two most frequent values of the attribute have at most a `share` of each class.

    Merging: any two values have at most their parts' largest share, so that passing parts pass; but a part that fails
    can push the mixture over.
    """

    name: ClassVar[str] = "top_two"
    local: ClassVar[bool] = True
    monotone: ClassVar[bool] = False

    attribute: str
    share: float

    def __str__(self):
        return f"no two values of {self.attribute} over {self.share:g} of a class"

    def survives_merging(self, wander):
        return True

    def failing(self, classes):
        of = classes.histograms[self.attribute]
        order = np.lexsort((-of.records, of.owner))
        starts = np.searchsorted(of.owner, np.arange(len(classes)))
        first = np.arange(len(order)) - starts[of.owner] < 2
        both = np.bincount(of.owner[first], weights=of.records[order][first], minlength=len(classes))
        return both > self.share * classes.records

    def to_dict(self):
        return {"model": self.name, **asdict(self)}


# In `veil/verify.py`: how the written file is measured, in SQL, and what is said where it breaks the limit.
MEASURE = ("max", "list_sum(list_reverse_sort(list(n))[:2]) / size")
FAULT = (lambda worst, limit: worst > limit["share"], "two values of {attribute} that {0:.4f} of a class have")


@pytest.mark.parametrize("share", [0.7, 0.8])
def test_the_two_most_frequent_values_have_their_share_at_most(share, monkeypatch):
    monkeypatch.setitem(verify.MEASURES, "top_two", MEASURE)
    monkeypatch.setitem(verify.FAULTS, "top_two", FAULT)
    rng = np.random.default_rng(1)
    data = pa.table(
        {"age": rng.integers(20, 60, 600), "ill": rng.choice(list("abcde"), 600, p=[0.4, 0.3, 0.1, 0.1, 0.1])}
    )
    study = Study.of(data, {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "ill": "sensitive"})
    found = study.anonymize(Ola(suppression=0.5, models=(TopTwo("ill", share),)))
    ill = defaultdict(list)
    for row in found.table().to_pylist():
        ill[row["age"]].append(row["ill"])
    worst = max(sum(n for _, n in Counter(of).most_common(2)) / len(of) for of in ill.values())
    assert worst <= share
    assert found.verified.limits[0].worst == pytest.approx(worst)
