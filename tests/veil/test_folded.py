"""OLA and Mondrian on folded persons: what is published and what is lost, by plain counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from people import People, by_gid, people, rows_by_gid, some_people
from veilmark.errors import OptionError
from veilmark.privacy.models import KAnonymity
from veilmark.utility.sliced import amounts, counts_as_number
from veilmark.veil.folded import Generalization, slice_persons
from veilmark.veil.mondrian import Mondrian, partition
from veilmark.veil.ola import Ola
from veilmark.veil.sliced import Sliced

SEARCHES = (Ola(loss="gcp"), Ola(0.3, "gcp"), Mondrian())


def made(who: People, method: Generalization) -> Sliced:
    try:
        return slice_persons(who.persons, who.levels, method)
    except OptionError:
        assume(False)
        raise


def labels_at(who: People, name: str, level: int) -> list[str | None]:
    """The label of each person's value."""
    of = who.levels[name]
    texts = of.labels[level].to_pylist()
    return [texts[of.codes[level][code]] for code in who.persons.quasi[name].values]


def fingerprints_of(who: People, person: int) -> tuple[tuple[str | None, ...], ...]:
    """As they are published."""
    order = {name: column.domain.text.to_pylist().index for name, column in who.persons.sensitive.items()}
    return tuple(tuple(sorted(of[person], key=order[name])) for name, of in who.sensitive.items())


@given(some_people(), st.integers(1, 6), st.sampled_from(SEARCHES), st.integers(0, 3))
def test_classes_have_k_persons_and_all_are_published(who: People, k: int, search: Ola | Mondrian, seed: int) -> None:
    release = made(who, Generalization(k, search=search, seed=seed))
    rows = rows_by_gid(release)
    assert all(len(of) >= k and len(set(of)) == 1 for of in rows.values())
    assert len({of[0] for of in rows.values()}) == len(rows) == release.facts["classes"]
    assert len(release) == len(who) - release.facts["suppressed"]
    if not (isinstance(search, Ola) and search.suppression):
        expected = Counter(fingerprints_of(who, i) for i in range(len(who)))
        assert Counter(sets for of in by_gid(release).values() for sets in of) == expected


@given(some_people(), st.integers(1, 6), st.sampled_from([0.0, 0.1, 0.4]))
def test_ola_publishes_the_labels_of_everybody_in_a_large_class(who: People, k: int, suppression: float) -> None:
    release = made(who, Generalization(k, search=Ola(suppression, "gcp")))
    published = [labels_at(who, name, release.facts["levels"][name]) for name in who.quasi]
    rows = list(zip(*published, strict=True))
    kept = [i for i in range(len(who)) if rows.count(rows[i]) >= k]
    label = {gid: of[0] for gid, of in rows_by_gid(release).items()}
    found = Counter((label[gid], sets) for gid, of in by_gid(release).items() for sets in of)
    assert found == Counter((rows[i], fingerprints_of(who, i)) for i in kept)


def width(who: People, name: str, values: Sequence[str | None]) -> float:
    """The share of an attribute that some values under one label are."""
    domain, distinct = set(who.quasi[name]), set(values)
    if len(distinct) == 1:
        return 0.0
    if not counts_as_number(who.persons.quasi[name], who.levels[name]):
        return len(distinct) / len(domain)
    if None in distinct:
        return 1.0
    numbers, all_numbers = ([int(v) for v in of if v is not None] for of in (distinct, domain))
    return (max(numbers) - min(numbers)) / (max(all_numbers) - min(all_numbers))


def middle(values: Sequence[str | None]) -> float:
    numbers = [int(v) for v in values if v is not None]
    return (min(numbers) + max(numbers)) / 2


@given(some_people(), st.integers(1, 6), st.sampled_from([0.0, 0.1, 0.4]))
def test_loss_of_ola_counts_the_suppressed_in_full(who: People, k: int, suppression: float) -> None:
    release = made(who, Generalization(k, search=Ola(suppression, "gcp")))
    published = {name: labels_at(who, name, release.facts["levels"][name]) for name in who.quasi}
    rows = list(zip(*published.values(), strict=True))
    kept = [rows.count(row) >= k for row in rows]
    under = {
        name: [[v for v, other in zip(who.quasi[name], of, strict=True) if other == label] for label in of]
        for name, of in published.items()
    }
    shares = [width(who, name, under[name][i]) if kept[i] else 1.0 for name in who.quasi for i in range(len(who))]
    assert release.loss["ncp"] == pytest.approx(np.mean(shares))
    words = [name for name in who.sensitive if name not in amounts(who.persons, who.levels)]
    leaves = {name: len({v for of in who.sensitive[name] for v in of}) for name in words}
    items = [
        not kept[i] and leaves[name] > 1 for name in words for i in range(len(who)) for _ in who.sensitive[name][i]
    ]
    assert release.loss["sa_ncp"] == pytest.approx(np.mean(items))
    ages = who.quasi["age"]
    there = [i for i in range(len(who)) if ages[i] is not None]
    if there and counts_as_number(who.persons.quasi["age"], who.levels["age"]):
        numbers = [int(ages[i] or 0) for i in there]
        moved = [abs(int(ages[i] or 0) - middle(under["age"][i] if kept[i] else ages)) for i in there]
        assert release.loss["qi_nil"] == pytest.approx(np.mean(moved) / (max(numbers) - min(numbers) or 1))


@given(some_people(), st.integers(1, 6))
def test_loss_of_mondrian_is_the_width_of_its_parts(who: People, k: int) -> None:
    assume(None not in who.quasi["age"])  # Mondrian reckons its own widths with a missing number beside the others
    release = made(who, Generalization(k, search=Mondrian()))
    levels = [who.levels[name] for name in who.quasi]
    numeric = [counts_as_number(column, of) for column, of in zip(who.persons.quasi.values(), levels, strict=True)]
    found = partition(who.persons.classes, levels, numeric, [KAnonymity(k)])
    size = np.bincount(found.part[who.persons.class_of], minlength=found.parts)
    assert release.loss["ncp"] == pytest.approx(float(np.mean(found.widths @ size)) / len(who))
    assert release.loss["sa_ncp"] == release.loss["sa_nil"] == 0


@given(some_people(least=8), st.sampled_from([1.5, 2, 3]), st.sampled_from(SEARCHES))
def test_with_l_no_fingerprint_has_more_than_its_share_of_a_class(
    who: People, least: float, search: Ola | Mondrian
) -> None:
    release = made(who, Generalization(2, least, search))
    for sets in by_gid(release).values():
        for column in zip(*sets, strict=True):
            assert max(Counter(column).values()) <= len(sets) / least + 1e-9


def test_too_few_persons_and_too_much_l_are_refused() -> None:
    who = people({"age": ["20", "30", "40"]}, {"disease": [["A"], ["A"], ["B"]]})
    with pytest.raises(OptionError, match="fewer than k = 4"):
        slice_persons(who.persons, who.levels, Generalization(4))
    with pytest.raises(OptionError, match="disease"):
        slice_persons(who.persons, who.levels, Generalization(1, 2, Mondrian()))
