"""f-slip: the paper's worked example to the printed digit, and what `strict` promises, on any table."""

from __future__ import annotations

import math
import statistics
import warnings
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from people import CODES, People, people, some_people
from veilmark.errors import OptionError, VeilmarkWarning
from veilmark.utility.sliced import is_amount
from veilmark.veil.fslip import FSlip, slice_persons
from veilmark.veil.sliced import Sliced, parse_fingerprints

LETTERS = {"401": "D", "422": "C", "490": "D", "724": "G", "408": "D", "276": "B", "402": "D", "492": "D", "272": "B"}
LETTERS["404"] = "D"
SCHOOL = {"9th": "1-lower", "11th": "1-lower", "12th": "2-middle", "Bachelors": "2-middle", "Master": "3-upper"}
GROUPS = (("salary", "poverty"), ("education", "disease"))


def example(**changed: object) -> People:
    """The six persons of the paper's Table 4."""
    quasi = {
        "age": ["19", "13", "17", "30", "16", "32"],
        "zip": ["60000", "55000", "70000", "68000", "75000", "56000"],
        "gender": ["F", "M", "F", "F", "M", "M"],
    }
    sensitive = {
        "salary": [["20000"], ["10201"], ["17258"], ["25364"], ["19223"], ["21012"]],
        "poverty": [["medium"], ["high"], ["medium"], ["low"], ["medium"], ["low"]],
        "education": [["Bachelors"], ["9th"], ["12th"], ["Master"], ["11th"], ["Master"]],
        "disease": [["401"], ["422", "490"], ["724", "408"], ["276", "402"], ["492"], ["272", "404", "490"]],
    }
    specs = {"education": {"levels": [SCHOOL]}, "disease": {"levels": [LETTERS]}}
    return people(quasi, sensitive | changed, specs)


def sliced(who: People, method: FSlip) -> Sliced:
    """The release; that hierarchies are missing is not news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeilmarkWarning)
        return slice_persons(who.persons, who.levels, method)


def rows(table: pa.Table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]


# The worked example.


def test_the_papers_tables():
    made = sliced(example(), FSlip(2, preset="paper", groups=GROUPS))
    ages, zips, genders = zip(*rows(made.quasi), strict=True)
    assert ages == (16, 16, 23.5, 23.5, 24, 24)
    assert zips == (57500, 57500, 69000, 69000, 65500, 65500)
    assert genders == ("F", "M", "F", "F", "M", "M")
    low, high = 15560.67, 22125.33
    assert rows(made.sensitive[0]) == [
        (1, low, "high"),
        (1, low, "medium"),
        (1, low, "medium"),
        (2, high, "medium"),
        (2, high, "low"),
        (2, high, "low"),
    ]
    assert rows(made.sensitive[1]) == [
        (1, "9th", "C|D"),
        (1, "11th", "C|D"),
        (2, "Bachelors", "D|G"),
        (2, "12th", "D|G"),
        (3, "Master", "B|D|D"),
        (3, "Master", "B|D|D"),
    ]
    assert made.facts["f"] == [3, 2]
    assert made.facts["slices"] == [2, 3]
    assert made.groups == GROUPS


def test_the_papers_two_leaks_are_measured_and_strict_mends_them():
    paper = sliced(example(), FSlip(2, preset="paper", groups=GROUPS))
    assert (paper.facts["k"], paper.facts["l"]) == (1, 1)
    strict = sliced(example(), FSlip(2, groups=GROUPS, link="groups"))
    assert strict.facts["k"] >= 2
    assert strict.facts["l"] >= 2
    education = defaultdict(set)
    for gid, school, _ in rows(strict.sensitive[1]):
        education[gid].add(school)
    assert all(len(of) > 1 for of in education.values())


def test_f_is_given_or_computed():
    assert sliced(example(), FSlip(2, preset="paper", groups=GROUPS, f=4)).facts["slices"] == [1, 1]
    assert sliced(example(), FSlip(2, preset="paper", groups=GROUPS, f=(2, 3))).facts["slices"] == [3, 2]
    alone = sliced(example(), FSlip(2, preset="paper", groups=(("salary",), ("poverty", "education", "disease"))))
    assert alone.facts["f"] == [2, 2]


# Any table.


def slow_kinds(who: People, name: str) -> list[tuple]:
    """What diversity is about: arrays generalized, single values as they are."""
    levels = who.levels[name]
    column = who.persons.sensitive[name]
    if column.single:
        return [(str(v),) for of in who.sensitive[name] for v in of]
    label = dict(
        zip(levels.labels[0].to_pylist(), levels.of_values(max(levels.height - 1, 0)).to_pylist(), strict=True)
    )
    return [tuple(sorted((label[v] for v in of), key=order_of)) for of in who.sensitive[name]]


def order_of(label: str | None, number: bool = False) -> tuple:
    """Missing last; numbers by size."""
    return (label is None, float(label or 0) if number else label or "")


def named(who: People) -> People:
    """The same persons with a name that tells each apart."""
    names = [f"p{i}" for i in range(len(who))]
    return people({"who": names, **who.quasi}, who.sensitive, specs_of(who))


def specs_of(who: People) -> dict[str, object]:
    of = who.levels["disease"]
    if of.height < 2:
        return {}
    return {"disease": {"levels": [{c: CODES[c] for c in of.labels[0].to_pylist()}]}}


@given(some_people(), st.sampled_from([1, 1.5, 2, 3]), st.sampled_from([None, 2, 3, 5]))
def test_strict_slices_are_what_they_say(who, l, f):  # noqa: E741
    who = named(who)
    kinds = {name: slow_kinds(who, name) for name in who.sensitive}
    assume(all(max(Counter(of).values()) * l <= len(who) for of in kinds.values()))
    made = sliced(who, FSlip(1, l=l, link="groups", f=f))
    place = {f"p{i}": i for i in range(len(who))}
    for i, group in enumerate(made.groups):
        members, published = defaultdict(list), defaultdict(list)
        for row in made.quasi.to_pylist():
            members[row[f"gid_{i + 1}"]].append(place[row["who"]])
        for row in made.sensitive[i].to_pylist():
            published[row["gid"]].append(row)
        assert members.keys() == published.keys()
        assert len(members) == made.facts["slices"][i]
        for gid, of in members.items():
            assert len(of) == len(published[gid]) >= min(made.facts["f"][i], len(who))
            check_slice(who, {name: kinds[name] for name in group}, of, published[gid], l)


def check_slice(who: People, group, members, published, l) -> None:  # noqa: E741
    for name, of in group.items():
        kinds = [of[p] for p in members]
        assert max(Counter(kinds).values()) * l <= len(members) + 1e-9
        column = who.persons.sensitive[name]
        shown = [row[name] for row in published]
        if is_amount(column, who.levels[name]):
            numbers = [float(who.sensitive[name][p][0]) for p in members if who.sensitive[name][p][0] is not None]
            told = len(set(numbers)) >= l  # the mean of fewer would be somebody's number
            assert set(shown) == {round(statistics.fmean(numbers), 2) if told else None}
        elif column.single:
            assert Counter(shown) == Counter(who.sensitive[name][p][0] for p in members)
        else:
            union: Counter = Counter()
            for kind in kinds:
                union |= Counter(kind)
            labels = parse_fingerprints(pa.array(shown[:1]))[1].to_pylist()
            assert labels == sorted(union.elements(), key=order_of)
            assert len(set(shown)) == 1


@given(some_people(), st.integers(1, 6), st.sampled_from(["none", "groups"]))
def test_strict_is_k_anonymous_on_all_quasi_identifiers_together(who, k, link):
    assume(len(who) >= k)
    made = sliced(who, FSlip(k, l=1, link=link))
    names = list(who.quasi)
    sizes = Counter(rows(made.quasi.select(names)))
    assert min(sizes.values()) == made.facts["k"] >= k
    assert len(sizes) == made.facts["classes"]
    assert len(made.quasi) == len(who) == sum(sizes.values())
    links = [f"gid_{i + 1}" for i in range(len(made.groups))] if link == "groups" else []
    assert made.quasi.column_names == [*names, *links]
    assert [len(table) for table in made.sensitive] == [len(who)] * len(made.groups)
    assert sorted(name for group in made.groups for name in group) == sorted(who.sensitive)
    assert all(0 <= value <= 1 for value in made.loss.values())


@given(some_people(), st.integers(1, 4))
def test_paper_by_the_obvious_way(who, k):
    assume(len(who) >= k)
    made = sliced(who, FSlip(k, preset="paper", link="groups"))
    count = len(who)
    for name, column in who.persons.quasi.items():
        if is_amount(column, who.levels[name]):
            run = [min(i // k, max(count // k, 1) - 1) for i in range(count)]
            for i, row in enumerate(made.quasi[name].to_pylist()):
                own = [float(v) for j, v in enumerate(who.quasi[name]) if run[j] == run[i] and v is not None]
                assert row == (round(statistics.fmean(own), 2) if own else None)
    categories = [name for name, column in who.persons.quasi.items() if not is_amount(column, who.levels[name])]
    assert min(Counter(rows(made.quasi.select(categories))).values(), default=k) >= k
    kinds = {name: slow_kinds(who, name) for name in who.sensitive}
    for i, group in enumerate(made.groups):
        order, f = slow_order(who, group, kinds), slow_f(who, group, kinds)
        assert made.facts["f"][i] == min(f, count)
        gid = [min(j // made.facts["f"][i], max(count // made.facts["f"][i], 1) - 1) + 1 for j in range(count)]
        assert made.sensitive[i]["gid"].to_pylist() == gid
        own = dict(zip(order, gid, strict=True))
        assert made.quasi[f"gid_{i + 1}"].to_pylist() == [own[p] for p in range(count)]
        for number in set(gid):
            members = [p for p in order if own[p] == number]
            shown = [row for row in made.sensitive[i].to_pylist() if row["gid"] == number]
            check_slice(who, {name: kinds[name] for name in group}, members, shown, 1)


def sides(who: People, group) -> tuple[list[str], list[str], list[str]]:
    columns = who.persons.sensitive
    numbers = [name for name in group if is_amount(columns[name], who.levels[name])]
    single = [name for name in group if name not in numbers and columns[name].single]
    return numbers, single, [name for name in group if not columns[name].single]


def rough(who: People, name: str) -> list[tuple]:
    levels = who.levels[name]
    label = dict(
        zip(levels.labels[0].to_pylist(), levels.of_values(max(levels.height - 1, 0)).to_pylist(), strict=True)
    )
    number = all(text is None or text.lstrip("-").isdigit() for text in label.values())
    return [order_of(label[of[0]], number) for of in who.sensitive[name]]


def slow_order(who: People, group, kinds) -> list[int]:
    numbers, single, several = sides(who, group)
    scalars = [rough(who, name) for name in single]

    def key(person: int) -> list:
        amounts = [who.sensitive[name][person][0] for name in numbers]
        arrays = [[order_of(label) for label in kinds[name][person]] for name in several]
        return [*(math.inf if a is None else float(a) for a in amounts), *(of[person] for of in scalars), *arrays]

    return sorted(range(len(who)), key=key)


def slow_f(who: People, group, kinds) -> int:
    numbers, single, several = sides(who, group)
    if numbers:
        beside = several or single or numbers
        often = [n for name in beside for n in Counter(kinds[name]).values() if n > 1]
        typical = statistics.fmean(often) if often else 2
    else:
        columns = [kinds[name] for name in several] or [rough(who, name) for name in single]
        often = [n for n in Counter(zip(*columns, strict=True)).values() if n > 1]
        typical = statistics.median(often) if often else 2
    return max(math.floor(typical + 0.5), 2)


def test_the_seed_decides():
    who = example()
    method = FSlip(2, groups=GROUPS, link="groups", seed=1)
    first, again = sliced(who, method), sliced(who, method)
    assert rows(first.quasi) == rows(again.quasi)
    assert [rows(t) for t in first.sensitive] == [rows(t) for t in again.sensitive]
    for changed in (replace(method, seed=2), replace(method, seed=None)):
        others = [sliced(who, replace(changed, seed=changed.seed and changed.seed + i)) for i in range(5)]
        assert any(rows(first.quasi) != rows(other.quasi) for other in others)
    assert "seed" not in first.facts["asked"]


def test_detail_is_kept():
    rng = np.random.default_rng(3)
    ages = [str(v) for v in rng.integers(18, 90, 600)]
    sexes, races = ([str(v) for v in rng.choice(of, 600)] for of in (["F", "M"], ["w", "b", "o"]))
    who = people({"age": ages, "sex": sexes, "race": races}, {"code": [[str(v)] for v in rng.integers(1, 40, 600)]})
    for k in (3, 10):
        assert sliced(who, FSlip(k)).facts["classes"] >= 600 / (4 * k)


# What is not possible, and what is worth knowing.


def test_a_value_too_common_is_named_with_the_largest_l():
    poverty = [["low"]] * 4 + [["high"]] * 2
    with pytest.raises(
        OptionError, match=r"4 of 6 persons have the same value of 'poverty'.*largest possible l is 1\.5"
    ):
        sliced(example(poverty=poverty), FSlip(2))
    assert sliced(example(poverty=poverty), FSlip(2, l=1.5)).facts["l"] >= 1.5
    sliced(example(poverty=poverty), FSlip(2, preset="paper"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 7}, "There are 6 persons, fewer than k = 7"),
        ({"k": 0}, "k must be a whole number of 1 or more"),
        ({"k": 2, "l": 0.5}, "l must be a number of 1 or more"),
        ({"k": 2, "f": 1}, "f must be 2 or more"),
        ({"k": 2, "f": (2, 2, 2)}, "f has 3 numbers, but there are 2 groups"),
        ({"k": 2, "groups": (("salary",),)}, "lacks 'poverty', 'education', 'disease'"),
        (
            {"k": 2, "groups": (("salary", "povrety"),)},
            "'povrety' of groups= is not .* Did you mean 'poverty'",
        ),
        ({"k": 2, "groups": (*GROUPS, ("salary",))}, "'salary' is in groups= more than once"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(OptionError, match=message):
        sliced(example(), FSlip(**options))


def test_roles_that_are_missing():
    who = people({"age": ["1", "2"]}, {})
    with pytest.raises(OptionError, match="at least one sensitive attribute"):
        sliced(who, FSlip(1))
    who = people({}, {"code": [["a"], ["b"]]})
    with pytest.raises(OptionError, match="at least one quasi-identifier"):
        sliced(who, FSlip(1))


def test_one_sensitive_attribute_is_one_group():
    who = people({"age": ["1", "2", "3", "4"]}, {"code": [["a"], ["b"], ["a", "b"], ["c"]]})
    made = sliced(who, FSlip(2))
    assert made.groups == (("code",),)
    assert len(made.sensitive) == 1


def test_attributes_without_hierarchy_are_named_once():
    who = example()
    with pytest.warns(VeilmarkWarning) as caught:
        slice_persons(who.persons, who.levels, FSlip(2))
    assert len(caught) == 1
    assert "'poverty' has no hierarchy" in str(caught[0].message)


def test_an_attribute_called_gid_is_refused():
    who = people({"age": ["1", "2"]}, {"gid": [["a"], ["b"]]})
    with pytest.raises(OptionError, match="has the name 'gid'"):
        sliced(who, FSlip(1))


def test_bars_in_labels_are_escaped_also_of_single_values():
    who = people({"age": ["1", "2"]}, {"code": [["a|b"], ["c"]]})
    assert sorted(sliced(who, FSlip(1)).sensitive[0]["code"].to_pylist()) == ["a\\|b", "c"]


def test_missing_numbers_do_not_count_in_means():
    amounts = [[None], ["10"], ["20"], [None], ["35"], [None]]
    quasi = {"age": ["19", None, "17", "30", None, None], "sex": ["F", "F", "F", "M", "M", "M"]}
    who = people(quasi, {"income": amounts})
    made = sliced(who, FSlip(2, preset="paper", f=2))
    assert made.quasi["age"].to_pylist() == [19, 19, 23.5, 23.5, None, None]
    assert made.sensitive[0]["income"].to_pylist() == [15, 15, 35, 35, None, None]
