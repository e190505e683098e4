"""Anatomy: l different fingerprints in every bucket, everybody kept, nothing changed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import People, by_gid, people, rows_by_gid, some_people
from veilmark.errors import OptionError
from veilmark.veil.anatomy import Anatomy, deal, slice_persons


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(1, 5), st.integers(0, 99))
def test_buckets_have_l_persons_or_more_all_of_different_kinds(found: list[int], l: int, seed: int) -> None:  # noqa: E741
    kinds = np.unique(found, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    if max(Counter(found).values()) * l > len(found):
        with pytest.raises(OptionError, match="Lower l"):
            deal(kinds, l, rng)
        return
    bucket = deal(kinds, l, rng)
    for b in range(int(bucket.max()) + 1):
        own = kinds[bucket == b].tolist()
        assert len(own) >= l
        assert len(set(own)) == len(own)


@given(some_people(), st.integers(1, 4))
def test_everybody_is_kept_and_nothing_is_changed(who: People, l: int) -> None:  # noqa: E741
    try:
        release = slice_persons(who.persons, who.levels, Anatomy(l))
    except OptionError:
        return
    quasi = Counter(zip(*who.quasi.values(), strict=True))
    assert Counter(row for of in rows_by_gid(release).values() for row in of) == quasi
    sensitive = zip(*who.sensitive.values(), strict=True)
    expected = Counter(tuple(tuple(sorted(of, key=str)) for of in sets) for sets in sensitive)
    found = Counter(tuple(tuple(sorted(of, key=str)) for of in sets) for b in by_gid(release).values() for sets in b)
    assert found == expected
    assert all(len(set(of)) == len(of) >= l for of in by_gid(release).values())


def test_a_bucket_holds_its_own_persons_fingerprints() -> None:
    names = [str(i) for i in range(20)]
    who = people({"name": names}, {"disease": [["A", "B"], ["A"], ["C"], ["B"]] * 5, "pay": [[n] for n in names]})
    release = slice_persons(who.persons, who.levels, Anatomy(3))
    buckets = {gid: {pay[0] for _, pay in of} for gid, of in by_gid(release).items()}
    assert {gid: {name for (name,) in of} for gid, of in rows_by_gid(release).items()} == buckets
    facts = {"method": "anatomy", "link": "groups", "l": 3.0, "buckets": 6, "asked": {"l": 3}}
    assert release.facts == facts
    assert set(release.loss.values()) == {0.0}
    assert release.quasi["name"].to_pylist() != names
    other = slice_persons(who.persons, who.levels, Anatomy(3, seed=2))
    assert not other.quasi.equals(release.quasi)


def test_what_cannot_be() -> None:
    who = people({"age": ["1", "2", "3"]}, {"disease": [["A"], ["A"], ["B"]]})
    with pytest.raises(OptionError, match="2 of 3 persons have the same sensitive values"):
        slice_persons(who.persons, who.levels, Anatomy(2))
    with pytest.raises(OptionError, match="must be a whole number"):
        slice_persons(who.persons, who.levels, Anatomy(0))
    with pytest.raises(OptionError, match="The study has no sensitive attribute"):
        slice_persons(people({"age": ["1"]}, {}).persons, {}, Anatomy(1))
