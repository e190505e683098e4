"""Slicing: buckets of k, each column by itself, nothing changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import People, by_gid, people, rows_by_gid, some_people
from veilmark.errors import OptionError
from veilmark.veil.slicing import Slicing, slice_persons


@given(some_people(), st.integers(1, 6))
def test_buckets_of_k_and_every_value_kept(who: People, k: int) -> None:
    if len(who) < k:
        return
    release = slice_persons(who.persons, who.levels, Slicing(k))
    buckets = rows_by_gid(release)
    assert min(map(len, buckets.values())) >= k
    assert Counter(row for of in buckets.values() for row in of) == Counter(zip(*who.quasi.values(), strict=True))
    assert sorted(name for group in release.groups for name in group) == sorted(who.sensitive)
    for i, group in enumerate(release.groups):
        column = by_gid(release, i)
        assert {gid: len(of) for gid, of in column.items()} == {gid: len(of) for gid, of in buckets.items()}
        rows = zip(*(who.sensitive[name] for name in group), strict=True)
        assert Counter(map(plain, (sets for b in column.values() for sets in b))) == Counter(map(plain, rows))


def plain(sets: Sequence[Sequence[str | None]]) -> tuple[tuple[str | None, ...], ...]:
    return tuple(tuple(sorted(of, key=str)) for of in sets)


def test_a_bucket_holds_its_own_persons_values_and_columns_have_orders_of_their_own() -> None:
    names = [str(i) for i in range(40)]
    pay = [["low"], ["high"]] * 20
    who = people({"number": names}, {"a": [[n] for n in names], "b": [[n] for n in names], "c": pay})
    release = slice_persons(who.persons, who.levels, Slicing(5, groups=(("a", "c"), ("b",))))
    assert [table.column_names for table in release.sensitive] == [["gid", "a", "c"], ["gid", "b"]]
    own = {gid: {name for (name,) in of} for gid, of in rows_by_gid(release).items()}
    for table in (0, 1):
        assert {gid: {sets[0][0] for sets in of} for gid, of in by_gid(release, table).items()} == own
    together = zip(*(release.sensitive[0][name].to_pylist() for name in ("a", "c")), strict=True)
    assert all(pay[int(a)] == [c] for a, c in together)
    orders = [release.quasi["number"], release.sensitive[0]["a"], release.sensitive[1]["b"]]
    assert len({tuple(order.to_pylist()) for order in orders} | {tuple(names)}) == 4
    assert release.quasi.column_names == ["number", "gid_1", "gid_2"]
    assert release.quasi["gid_1"].equals(release.quasi["gid_2"])
    asked = {"k": 5}
    assert release.facts == {"method": "slicing", "link": "groups", "k": 1, "bucket": 5, "buckets": 8, "asked": asked}


def test_what_cannot_be() -> None:
    who = people({"age": ["1", "2", "3"]}, {"disease": [["A"], ["A"], ["B"]], "pay": [["1"]] * 3})
    for method, message in (
        (Slicing(4), "3 persons are too few for k = 4"),
        (Slicing(0), "k must be a whole number"),
        (Slicing(2, (("disease",), ("pai",))), "Did you mean 'pay'"),
        (Slicing(2, (("disease",),)), "lacks 'pay'"),
    ):
        with pytest.raises(OptionError, match=message):
            slice_persons(who.persons, who.levels, method)
    with pytest.raises(OptionError, match="The study has no sensitive attribute"):
        slice_persons(people({"age": ["1"]}, {}).persons, {}, Slicing(1))
