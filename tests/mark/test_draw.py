"""Keyed draws for classes: they follow from the labels, look random, and stay whatever else there is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.mark.draw import ClassDraw

KEY = bytes(range(32))
COLUMNS = ("zip", "sex")
ZIPS, SEXES = pa.array([f"331{i:02d}" for i in range(100)]), pa.array(["F", "M", None])


def drawn(codes, key=KEY, labels=(ZIPS, SEXES)):
    return ClassDraw.of(key, COLUMNS, labels, np.array(codes))


def test_numbers_never_change():
    """Written down once: a later version must give the same marks to the same classes."""
    assert drawn([[0, 1], [0, 2]]).numbers("bits ada").tolist() == [7673536950384725804, 11254977232859330567]


@settings(max_examples=examples(30))
@given(st.sets(st.tuples(st.integers(0, 99), st.integers(0, 2)), min_size=2, max_size=40), st.randoms())
def test_a_class_keeps_its_number_whatever_others_there_are(classes, random):
    """Other classes, another order of classes, other numbers for the same labels."""
    every = sorted(classes)
    some = random.sample(every, len(every) // 2)
    of_all = dict(zip(every, drawn(np.array(every).T).numbers("x").tolist(), strict=True))
    turned = pa.array(ZIPS.to_pylist()[::-1])
    codes = np.array([(99 - zip_, sex) for zip_, sex in some]).T
    own = drawn(codes, labels=(turned, SEXES)).numbers("x").tolist() if some else []
    assert own == [of_all[one] for one in some]


def test_numbers_look_random_and_differ_by_key_and_purpose():
    codes = np.stack([np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100)])
    one = drawn(codes)
    bits = np.unpackbits(one.numbers("x").view(np.uint8)).reshape(300, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(300)
    assert len(set(one.numbers("x").tolist())) == 300
    assert (one.numbers("x") != one.numbers("y")).all()
    assert (one.numbers("x") != drawn(codes, bytes(32)).numbers("x")).all()
    assert sorted(one.order("x").tolist()) == list(range(300))
    assert (one.take(np.array([5, 7])).numbers("x") == one.numbers("x")[[5, 7]]).all()


def test_columns_do_not_stand_for_each_other():
    """(a, b) is another class than (b, a), and a missing label another than any text."""
    labels = (pa.array(["a", "b", None, "None"]),) * 2
    found = drawn([[0, 1, 2, 3], [1, 0, 2, 3]], labels=labels).numbers("x")
    assert len(set(found.tolist())) == 4
