"""Mondrian against a recursive version in plain Python, which cuts rows one part at a time by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import OptionError, VeilmarkError, VeilmarkWarning
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.privacy.models import (
    DeltaDisclosure,
    DeltaPresence,
    DistinctL,
    KAnonymity,
    KMap,
    PrivacyModel,
    TCloseness,
)
from veilmark.sample import voters
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.veil import cuts
from veilmark.veil.mondrian import Mondrian, Partition, partition

Value = str | None
Row = Mapping[str, Value]
Safe = Callable[[list[Row]], bool]

ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult"


# --- the recursive version ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attribute:
    """A quasi-identifier as the oracle sees it: its values in order, and what each is called at each level."""

    name: str
    values: list[Value]
    numeric: bool = False
    maps: Sequence[Mapping[Value, str]] = ()

    def levels(self, value: Value) -> list[Value]:
        middle = [None if value is None else to[value] for to in self.maps]
        return [value, *middle, "*"]

    @property
    def free(self) -> bool:
        return not self.numeric and not self.maps

    @property
    def numbers(self) -> list[float]:
        return [float(v) for v in self.values if v is not None]

    def meeting(self, present: Sequence[Value]) -> int:
        return next(i for i, labels in enumerate(zip(*map(self.levels, present), strict=True)) if len(set(labels)) == 1)

    def under(self, present: Sequence[Value]) -> int:
        """How many values the smallest node over these has."""
        level = self.meeting(present)
        node = self.levels(present[0])[level]
        return sum(self.levels(v)[level] == node for v in self.values)

    def spot(self, value: Value) -> float:
        gap = (self.numbers[-1] - self.numbers[0]) / (len(self.numbers) - 1) if len(self.numbers) > 1 else 1
        return self.numbers[-1] + gap if value is None else float(value)

    def span(self, present: Sequence[Value]) -> float:
        """By which the widest is chosen."""
        if len(set(present)) == 1:
            return 0
        places = sorted(self.values.index(v) for v in present)
        if self.numeric:
            ends = [self.spot(self.values[i]) for i in (0, places[0], places[-1], -1)]
            return (ends[2] - ends[1]) / (ends[3] - ends[0])
        return (places[-1] - places[0] + 1 if self.free else self.under(present)) / len(self.values)

    def label(self, present: Sequence[Value]) -> tuple[Value, float]:
        """The label of a part with these values, and its width."""
        shown = sorted(set(present), key=self.values.index)
        if len(shown) == 1:
            return shown[0], 0
        if self.numeric:
            return self._range(shown)
        if not self.free:
            return self.levels(shown[0])[self.meeting(shown)], self.under(shown) / len(self.values)
        return self._set(shown)

    def _range(self, shown: list[Value]) -> tuple[Value, float]:
        ends = [v for v in shown if v is not None]
        low, high = ends[0], ends[-1]
        hyphen = low.isdigit() and high.isdigit()
        label = low if low == high else f"{low}-{high}" if hyphen else f"[{low}, {high}]"
        width = (float(high) - float(low)) / ((self.numbers[-1] - self.numbers[0]) or 1)
        if None not in shown:
            return label, width
        return f"{label} or missing", min(width + 1 / len(self.values), 1)

    def _set(self, shown: list[Value]) -> tuple[Value, float]:
        names = ["missing" if v is None else v for v in shown]
        run = self.values.index(shown[-1]) - self.values.index(shown[0]) + 1
        if len(shown) < len(self.values) and len(shown) <= 5:
            return f"{{{', '.join(names)}}}", len(shown) / len(self.values)
        return "*" if run == len(self.values) else f"{names[0]}…{names[-1]} ({run} values)", run / len(self.values)


@dataclass(frozen=True)
class Recursion:
    attributes: list[Attribute]
    safe: Safe
    relaxed: bool = False
    person: str | None = None
    order: Callable[[Row], tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        key = lambda row: tuple(a.values.index(row[a.name]) for a in self.attributes)  # noqa: E731
        object.__setattr__(self, "order", key)

    def run(self, rows: list[Row]) -> list[list[Row]]:
        for attribute in self.widest(rows):
            for sides in self.ways(attribute, rows):
                if all(map(self.safe, sides)):
                    return [part for side in sides for part in self.run(side)]
        return [rows]

    def widest(self, rows: list[Row]) -> list[Attribute]:
        span = {a.name: a.span([row[a.name] for row in rows]) for a in self.attributes}
        return sorted((a for a in self.attributes if span[a.name]), key=lambda a: -span[a.name])

    def ways(self, attribute: Attribute, rows: list[Row]) -> Iterator[list[list[Row]]]:
        name = attribute.name
        present = {row[name] for row in rows}
        if not attribute.numeric:
            level = attribute.meeting([row[name] for row in rows]) - 1
            yield grouped(rows, lambda row: str(attribute.levels(row[name])[level]))
            if attribute.free and len(present) > 2:
                yield self.halves(attribute, rows)
            return
        if None in present:
            yield [[r for r in rows if r[name] is not None], [r for r in rows if r[name] is None]]
        yield self.halves(attribute, rows)

    def halves(self, attribute: Attribute, rows: list[Row]) -> list[list[Row]]:
        """Of the ways to cut between two values (relaxed: classes), the one whose sides are most even."""
        place = lambda row: attribute.values.index(row[attribute.name])  # noqa: E731
        whole = self.relaxed and attribute.numeric
        blocks = grouped(rows, lambda row: (place(row), self.order(row)) if whole else place(row))
        cuts = [(blocks[:i], blocks[i:]) for i in range(1, len(blocks))]
        uneven = lambda cut: abs(sum(map(self.weight, cut[0])) - sum(map(self.weight, cut[1])))  # noqa: E731
        return [[row for block in side for row in block] for side in min(cuts, key=uneven)]

    def weight(self, rows: list[Row]) -> int:
        """Persons, class by class, or rows."""
        return sum(size(members, self.person) for members in grouped(rows, self.order))


def grouped(rows: list[Row], key: Callable[[Row], object]) -> list[list[Row]]:
    return [list(members) for _, members in groupby(sorted(rows, key=key), key=key)]


def size(rows: list[Row], person: str | None) -> int:
    return len(rows) if person is None else len({row[person] for row in rows})


def expected(recursion: Recursion, rows: list[Row]) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    """The labels of each class."""
    found = {}
    for members in recursion.run(rows):
        labels = tuple(a.label([row[a.name] for row in members])[0] for a in recursion.attributes)
        found |= {tuple(row[a.name] for a in recursion.attributes): labels for row in members}
    return found


# --- tables and models -------------------------------------------------------------------------------------

VALUES: dict[str, list[Value]] = {
    "age": ["-3", "2.5", "10", "11", "20", "40", None],
    "zip": ["110", "111", "120", "121", "210", None],
    "sex": ["F", "M", "X", None],
    "town": list("abcdefghij"),
    "illness": ["cold", "flu", "hiv"],
}
QUASI = ("town", "age", "zip", "sex")
ZIP = [{z: z[:2] + "*" for z in VALUES["zip"] if z}, {"11*": "1**", "12*": "1**", "21*": "2**"}]


def attributes(rows: Sequence[Row], quasi: Sequence[str]) -> list[Attribute]:
    found = []
    for name in quasi:
        values = [v for v in VALUES[name] if any(row[name] == v for row in rows)]
        maps = [ZIP[0], {z: ZIP[1][to] for z, to in ZIP[0].items()}] if name == "zip" else ()
        found.append(Attribute(name, values, name == "age", maps))
    return found


def levels_of(table: ClassTable) -> list[Levels]:
    specs = {"zip": parse_spec({"levels": ZIP})}
    pairs = zip(table.columns, table.domains, strict=True)
    return [resolve(specs.get(name), domain, name) for name, domain in pairs]


def run(table: ClassTable, models: Sequence[PrivacyModel], method: Mondrian | None = None) -> Partition:
    return partition(table, levels_of(table), [c == "age" for c in table.columns], models, method)


def published(table: ClassTable, found: Partition) -> dict[tuple[Value, ...], tuple[Value, ...]]:
    labels = list(zip(*(of.to_pylist() for of in found.labels), strict=True))
    return oracle.by_class(table, [labels[p] for p in found.part])


@dataclass(frozen=True)
class Case:
    rows: list[Row]
    quasi: list[str]
    person: str | None
    models: list[PrivacyModel]
    safe: Safe
    table: ClassTable


@st.composite
def cases(draw: Callable[..., object]) -> Case:
    row = {name: st.sampled_from(values) for name, values in VALUES.items()}
    row["person"] = st.sampled_from([f"p{i}" for i in range(15)])
    rows = draw(st.lists(st.fixed_dictionaries(row), min_size=1, max_size=60))
    quasi = draw(st.lists(st.sampled_from(QUASI), unique=True, min_size=1))
    person = draw(st.sampled_from([None, "person"]))
    models, safe = limits(rows, person, draw(st.integers(1, 5)), draw(st.sampled_from([None, "l", "t"])))
    return Case(rows, quasi, person, models, safe, oracle.class_table(rows, quasi, ["illness"], person))


def limits(rows: list[Row], person: str | None, k: int, other: str | None) -> tuple[list[PrivacyModel], Safe]:
    """Models that the whole table meets, and the same for the oracle."""
    k = min(k, size(rows, person))
    table = oracle.shares(rows, "illness")
    l = min(2, len(table))  # noqa: E741

    def safe(part: list[Row]) -> bool:
        here = oracle.shares(part, "illness")
        distance = sum(abs(here.get(v, Fraction(0)) - p) for v, p in table.items()) / 2
        return (
            size(part, person) >= k
            and (other != "l" or len(here) >= l)
            and (other != "t" or distance <= Fraction(3, 10))
        )

    more: dict[str | None, PrivacyModel] = {"l": DistinctL("illness", l), "t": TCloseness("illness", 0.3)}
    return [KAnonymity(k)] + ([more[other]] if other else []), safe


# --- the two agree -----------------------------------------------------------------------------------------


@given(cases(), st.booleans())
def test_cuts_as_the_recursive_version_does(case: Case, relaxed: bool):
    found = run(case.table, case.models, Mondrian(relaxed=relaxed))
    recursion = Recursion(attributes(case.rows, case.quasi), case.safe, relaxed, case.person)
    assert published(case.table, found) == expected(recursion, case.rows)


@given(cases(), st.booleans())
def test_every_part_meets_the_models_and_none_is_lost(case: Case, relaxed: bool):
    found = run(case.table, case.models, Mondrian(relaxed=relaxed))
    assert sorted(set(found.part)) == list(range(found.parts))
    labels = list(zip(*(of.to_pylist() for of in found.labels), strict=True))
    assert len(labels) == len(set(labels)) == found.parts
    assert all(case.safe(members) for members in members_of(case, found))


@given(cases())
def test_no_part_can_be_cut_further(case: Case):
    recursion = Recursion(attributes(case.rows, case.quasi), case.safe, person=case.person)
    for members in members_of(case, run(case.table, case.models)):
        for attribute in recursion.widest(members):
            assert not any(all(map(case.safe, sides)) for sides in recursion.ways(attribute, members))


@given(cases())
def test_widths_are_those_of_the_labels(case: Case):
    found = run(case.table, case.models)
    for i, attribute in enumerate(attributes(case.rows, case.quasi)):
        for members, width in zip(members_of(case, found), found.widths[i], strict=True):
            assert width == pytest.approx(attribute.label([row[attribute.name] for row in members])[1])


def members_of(case: Case, found: Partition) -> list[list[Row]]:
    part = oracle.by_class(case.table, found.part)
    members: list[list[Row]] = [[] for _ in range(found.parts)]
    for row in case.rows:
        members[part[tuple(row[q] for q in case.quasi)]].append(row)
    return members


def test_empty_bins_are_left_out_where_they_are_too_many(monkeypatch):
    rng = np.random.default_rng(1)
    rows = [{"town": f"t{rng.integers(40)}", "age": str(i)} for i in range(300)]
    table = oracle.class_table(rows, ["town", "age"])
    dense = [run(table, [KAnonymity(2)], Mondrian(relaxed=r)) for r in (False, True)]
    monkeypatch.setattr(cuts, "DENSE_LIMIT", 0)
    monkeypatch.setattr(cuts, "DENSE_SHARE", 1)
    for before, relaxed in zip(dense, (False, True), strict=True):
        assert (before.part == run(table, [KAnonymity(2)], Mondrian(relaxed=relaxed)).part).all()


# --- loss --------------------------------------------------------------------------------------------------


def textbook(rows: list[Row], k: int, quasi: Sequence[Attribute]) -> list[list[Row]]:
    """Strict Mondrian as in the paper: numbers at the plain median, categories by their hierarchy."""
    span = {a.name: a.span([row[a.name] for row in rows]) for a in quasi}
    for attribute in sorted(quasi, key=lambda a: -span[a.name]):
        name = attribute.name
        if not span[name]:
            continue
        if attribute.numeric:
            ordered = sorted(float(row[name]) for row in rows)
            median = ordered[(len(rows) - 1) // 2]
            sides = [[r for r in rows if float(r[name]) <= median], [r for r in rows if float(r[name]) > median]]
        else:
            level = attribute.meeting([row[name] for row in rows]) - 1
            sides = grouped(rows, lambda row, n=name, a=attribute, level=level: str(a.levels(row[n])[level]))
        if all(len(side) >= k for side in sides):
            return [part for side in sides for part in textbook(side, k, quasi)]
    return [rows]


def ncp(table: ClassTable, found: Partition) -> float:
    return float(found.widths.mean(axis=0)[found.part] @ table.records / table.total_records)


@pytest.mark.parametrize("relaxed", [False, True])
def test_loses_no_more_than_the_textbook_does(relaxed: bool):
    rng = np.random.default_rng(7)
    rows = [{q: str(rng.choice([v for v in VALUES[q] if v])) for q in QUASI} for _ in range(1000)]
    quasi = attributes(rows, QUASI)
    table = oracle.class_table(rows, QUASI)
    for k in (2, 5, 20):
        parts = textbook(rows, k, quasi)
        loss = sum(len(part) * a.label([r[a.name] for r in part])[1] for part in parts for a in quasi)
        assert ncp(table, run(table, [KAnonymity(k)], Mondrian(relaxed=relaxed))) <= 1.03 * loss / len(rows) / len(
            quasi
        )


# --- by hand -----------------------------------------------------------------------------------------------


def table_of(**columns: Sequence[Value]) -> ClassTable:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return oracle.class_table(rows, list(columns))


def labels_of(found: Partition, column: int = 0) -> list[Value]:
    return found.labels[column].to_pylist()


def test_numbers_are_cut_at_the_middle():
    table = table_of(age=["30", "31", "35", "36", "40", "41"])
    assert labels_of(run(table, [KAnonymity(3)])) == ["30-35", "36-41"]
    assert labels_of(run(table, [KAnonymity(4)])) == ["30-41"]
    assert labels_of(run(table, [])) == ["30", "31", "35", "36", "40", "41"]


def test_equal_numbers_stay_together_unless_relaxed():
    table = table_of(age=["30", "35", "35", "35", "40"], zip=["110", "110", "111", "120", "210"])
    strict, relaxed = (run(table, [KAnonymity(2)], Mondrian(relaxed=r)) for r in (False, True))
    assert labels_of(strict) == ["30-40"]
    assert labels_of(relaxed) == ["30-35", "35-40"]


def test_ranges_with_a_sign_or_a_fraction_stand_in_brackets():
    table = table_of(age=["-5", "-5", "2.5", "7", "8"])
    assert labels_of(run(table, [KAnonymity(5)])) == ["[-5, 8]"]
    assert labels_of(run(table, [KAnonymity(2)])) == ["-5", "[2.5, 8]"]


def test_missing_numbers_have_a_part_of_their_own_where_that_is_safe():
    ages = ["30", "31", "40", "41"]
    assert labels_of(run(table_of(age=[*ages, None, None]), [KAnonymity(2)])) == ["30-31", "40-41", None]
    assert labels_of(run(table_of(age=[*ages, None]), [KAnonymity(2)])) == ["30-31", "40-41 or missing"]
    assert labels_of(run(table_of(age=[None, None]), [KAnonymity(2)])) == [None]


def test_categories_are_cut_by_their_hierarchy():
    table = table_of(zip=["110", "110", "111", "120", "210", "210"])
    assert labels_of(run(table, [KAnonymity(2)])) == ["1**", "210"]
    assert labels_of(run(table, [KAnonymity(3)])) == ["*"]


def test_values_that_cannot_stand_alone_become_sets():
    table = table_of(town=list("aabcdefghijj"))
    assert labels_of(run(table, [KAnonymity(2)])) == ["{a, b}", "{c, d, e}", "{f, g, h}", "{i, j}"]
    assert labels_of(run(table, [KAnonymity(6)])) == ["{a, b, c, d, e}", "{f, g, h, i, j}"]
    assert labels_of(run(table, [KAnonymity(7)])) == ["*"]
    assert labels_of(run(table, [KAnonymity(2)], Mondrian(sets=False))) == ["*"]


def test_large_sets_are_runs_of_values():
    table = table_of(town=[*"abcdef", *"ghijkl", None])
    assert labels_of(run(table, [KAnonymity(6)])) == ["a…f (6 values)", "g…missing (7 values)"]


def test_the_median_counts_persons_where_they_are_known():
    rows = [{"age": a, "person": p} for a, p in [("1", "a"), *[("2", "b")] * 9, ("3", "c"), ("4", "d")]]
    table = oracle.class_table(rows, ["age"], person="person")
    assert labels_of(run(table, [KAnonymity(2)])) == ["1-2", "3-4"]


def test_parts_stand_in_the_order_of_their_first_classes():
    found = run(table_of(age=["1", "2", "3", "4"], sex=["F", "M", "F", "M"]), [KAnonymity(2)])
    assert found.part.tolist() == [0, 0, 1, 1]
    assert repr(found) == "Partition(2 parts of 4 classes)"


def echoing(domain: Domain) -> Levels:
    """Values a, b, c, d of which a and b together are called c."""
    codes = [np.arange(4), [0, 0, 1, 1], [0, 0, 0, 0]]
    labels = domain.text, pa.array(["c", "y"]), pa.array(["*"])
    return Levels(labels, tuple(np.array(of, dtype=np.int32) for of in codes))


def test_parts_with_the_same_labels_are_one():
    table = table_of(place=list("abccdd"))
    found = partition(table, [echoing(table.domains[0])], [False], [KAnonymity(2)])
    assert labels_of(found) == ["c", "d"]
    assert found.part.tolist() == [0, 0, 0, 1]


def test_models_that_such_parts_do_not_meet_together_are_reported():
    """c has no v and d much of it: each passes, but a, b and c together have too little."""
    counts = {"a": (1, 4), "b": (1, 4), "c": (0, 10), "d": (16, 24)}
    rows = [
        {"place": p, "s": s} for p, both in counts.items() for s, n in zip("vo", both, strict=True) for _ in range(n)
    ]
    table = oracle.class_table(rows, ["place"], ["s"])
    with pytest.raises(VeilmarkError, match=r"same labels merge, and then do not meet 'δ < 0\.44 for s'"):
        partition(table, [echoing(table.domains[0])], [False], [KAnonymity(6), DeltaDisclosure("s", 0.44)])


@pytest.mark.parametrize(("seed", "count", "ages"), [(668, 42, 2), (761, 47, 3)])
def test_overlapping_ranges_that_would_break_a_limit_are_cut_without_overlap(seed, count, ages):
    """Two parts with equal labels each meet δ, and not together."""
    rng, letters = np.random.default_rng(seed), list("abcdefgh")
    assert (int(rng.integers(15, 60)), int(rng.integers(2, 4))) == (count, ages)
    illnesses = list("abc")[: int(rng.integers(2, 4))]
    models = [KAnonymity(2), DeltaDisclosure("s", float(rng.choice([0.5, 1.0, 1.5])))]
    rows = [
        {"c": str(rng.choice(letters)), "age": str(20 + rng.integers(0, ages)), "s": str(rng.choice(illnesses))}
        for _ in range(count)
    ]
    table = oracle.class_table(rows, ["c", "age"], ["s"])
    kinds = parse_spec({"levels": [{c: "XY"[i % 2] for i, c in enumerate(letters)}]})
    levels = [resolve(kinds, table.domains[0], "c"), resolve(None, table.domains[1], "age")]
    with pytest.warns(VeilmarkWarning, match="the release has no overlapping ranges"):
        found = partition(table, levels, [False, True], models, Mondrian(relaxed=True))
    strict = partition(table, levels, [False, True], models)
    assert found.part.tolist() == strict.part.tolist()
    parts = [
        [row for row, p in zip(table.codes.T.tolist(), found.part, strict=True) if p == i] for i in range(found.parts)
    ]
    assert sum(map(len, parts)) == len(table)


# --- edges and errors --------------------------------------------------------------------------------------


def test_an_empty_table_has_no_parts():
    empty = table_of(age=["1"], sex=["F"]).take(np.array([False]))
    found = run(empty, [KAnonymity(2)])
    assert (found.parts, len(found.part), [len(of) for of in found.labels]) == (0, 0, [0, 0])
    columns = ("age", "zip", "sex")
    nothing = Domain.of(pa.array([], pa.string()))
    void = ClassTable(columns, (nothing,) * 3, np.empty((3, 0), dtype=np.int32), Tally(np.empty(0, dtype=np.int64)))
    assert run(void, [KAnonymity(2)]).parts == 0


def test_a_table_without_quasi_identifiers_is_one_part():
    found = run(oracle.class_table([{"x": "1"}] * 3, []), [KAnonymity(2)])
    assert (found.parts, found.part.tolist(), found.labels) == (1, [0], ())


def test_says_that_not_even_the_whole_table_meets_a_model():
    with pytest.raises(OptionError, match="Even a single class of all 2 records does not meet 'k ≥ 5'"):
        run(table_of(age=["1", "2"]), [KAnonymity(5)])


@pytest.mark.parametrize("model", [KMap(2), DeltaPresence(0, 1)])
def test_models_about_a_population_are_refused(model: PrivacyModel):
    with pytest.raises(OptionError, match="does not support limits that need a population"):
        run(table_of(age=["1", "2"]), [model])


def test_only_numbers_can_be_cut_as_numbers():
    table = table_of(sex=["F", "M"])
    with pytest.raises(OptionError, match="'sex' must contain only numbers"):
        partition(table, levels_of(table), [True], [KAnonymity(1)])


# --- real shapes -------------------------------------------------------------------------------------------


def smallest(table: ClassTable, found: Partition) -> int:
    return int(np.bincount(found.part, table.records).min())


@pytest.mark.parametrize("relaxed", [False, True])
def test_voters(relaxed: bool):
    with DuckDB(threads=1) as engine:
        table = ClassTable.build(engine.open(voters(20_000)), ["zip", "gender", "yob", "race"])
    levels = [resolve(None, d, c) for c, d in zip(table.columns, table.domains, strict=True)]
    found = partition(table, levels, [True, False, True, False], [KAnonymity(10)], Mondrian(relaxed=relaxed))
    assert smallest(table, found) >= 10
    assert found.parts > 20_000 / 20
    assert ncp(table, found) < 0.05


@pytest.mark.skipif(not ADULT.exists(), reason="shared/data/adult is not here")
def test_adult():
    quasi = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
    with DuckDB(threads=1) as engine:
        table = ClassTable.build(engine.open(ADULT / "adult_arx_30162.csv"), quasi)
    files = [ADULT / "hierarchies_arx" / f"adult_hierarchy_{q}.csv" for q in quasi]
    specs = [parse_spec({"file": str(file)}) for file in files]
    levels = [resolve(s, d, q) for s, d, q in zip(specs, table.domains, quasi, strict=True)]
    for k, most in ((5, 0.11), (10, 0.19)):
        found = partition(table, levels, [q == "age" for q in quasi], [KAnonymity(k)])
        assert smallest(table, found) >= k
        assert ncp(table, found) < most
