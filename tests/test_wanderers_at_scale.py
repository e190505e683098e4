"""Persons who wander between very many classes: pairs of class and person outgrow 32 bits."""

from __future__ import annotations

import numpy as np

from veilmark.tables.classes import Tally


def test_counts_of_wanderers_do_not_wrap_around():
    classes, persons = 70_000, 70_000
    who = np.repeat(np.arange(persons), 2)
    group = (who + np.tile([0, 1], persons)) % classes
    tally = Tally(np.full(classes, 2), np.zeros(classes, dtype=np.int64), group, who)
    assert tally.persons.tolist() == [2] * classes
    half = tally.merge((np.arange(classes) // 2).astype(np.int32), classes // 2)
    assert half.persons.tolist() == [3] * (classes // 2)
