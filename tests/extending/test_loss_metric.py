"""An example: a loss metric of one's own. The function belongs in `utility/loss.py`."""

from __future__ import annotations

import itertools
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from veilmark import Ola, OptionError, Study
from veilmark.utility import loss
from veilmark.veil import ola


def steep(attribute, level):
    """What a record loses, by label: level over height, squared, so that one high level costs more than two low ones."""
    labels = len(attribute.levels.labels[level])
    return np.full(labels, (level / max(attribute.levels.height, 1)) ** 2)


@pytest.fixture
def with_steep(monkeypatch):
    """What four edits of `utility/loss.py` do: `Metric`, `METRICS`, `ADDITIVE`, and `by_label` in `level_costs`."""
    known = loss.level_costs

    def level_costs(metric, attribute):
        if metric != "steep":
            return known(metric, attribute)
        costs = [steep(attribute, level) for level in range(attribute.levels.height + 1)]
        codes = attribute.levels.codes
        base = [float(np.dot(attribute.records, cost[of])) for cost, of in zip(costs, codes, strict=True)]
        return loss.LevelCosts(tuple(base), tuple(1 - cost for cost in costs))

    monkeypatch.setattr(loss, "level_costs", level_costs)
    monkeypatch.setattr(loss, "ADDITIVE", (*loss.ADDITIVE, "steep"))
    for module in (loss, ola):
        monkeypatch.setattr(module, "METRICS", (*ola.METRICS, "steep"))


@pytest.mark.usefixtures("with_steep")
def test_ola_finds_the_least_steep_loss():
    rng = np.random.default_rng(2)
    data = pa.table({"age": rng.integers(20, 60, 400), "height": rng.integers(150, 200, 400)})
    quasi = {"role": "quasi", "hierarchy": {"intervals": [5, 20]}}
    study = Study.of(data, {"age": quasi, "height": quasi})
    expected = {}
    for age, height in itertools.product(range(4), range(4)):
        with suppress(OptionError):  # too many records would be suppressed
            tried = study.anonymize(Ola(k=10, suppression=0.1, levels={"age": age, "height": height}))
            lost = ((age / 3) ** 2 + (height / 3) ** 2) / 2
            expected[age, height] = (tried.records * lost + tried.plan.suppressed) / len(data)
    found = study.anonymize(Ola(k=10, suppression=0.1, loss="steep"))
    assert len(expected) > 2
    assert found.plan.loss["steep"] == pytest.approx(min(expected.values()))
    assert expected[tuple(found.plan.recoding.levels.values())] == pytest.approx(min(expected.values()))
