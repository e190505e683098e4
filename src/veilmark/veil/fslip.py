"""f-slip: one row a person, quasi-identifiers k-anonymous, sensitive attributes in groups cut into slices.

(Jayapradha and Prakash.) Sensitive attributes that go together are published together, in a table of their own. Its rows
are sorted and cut into slices of f persons; in a slice numbers become their mean, and arrays of several values
(fingerprints) become their union, generalized one level below the top.

Two presets. `paper` does as printed, and its leaks are known: quasi-identifiers are k-anonymous by kind but not together,
and a slice may hold one value only. `strict` mends both: k holds for all quasi-identifiers together, every slice is
l-diverse in every attribute (see `veil/slices.py`), and all rows are shuffled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import OptionError, VeilmarkWarning, listing
from veilmark.hierarchy import Levels
from veilmark.privacy.models import KAnonymity
from veilmark.tables.cells import pack
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility.sliced import amounts, attribute_ncp, is_amount, nil, sa_ncp
from veilmark.veil.correlation import correlations, read_groups
from veilmark.veil.mondrian import partition
from veilmark.veil.sliced import GID, Sliced, fingerprint_texts
from veilmark.veil.slices import diverse_slices, diversity, fingerprint_kinds, ranks, runs, union_of_slices


@dataclass(frozen=True)
class FSlip:
    """What is asked for.

    `l`: in a slice no value has more than 1/l of the persons (strict only). `link`: `none` publishes unlinked tables,
    `groups` tells for each person which slices are theirs. `groups`: the sensitive attributes by table, by default two
    groups by correlation. `f`: persons in a slice, one number or one a group, by default computed.
    """

    k: int
    l: float = 2  # noqa: E741
    preset: Literal["strict", "paper"] = "strict"
    link: Literal["none", "groups"] = "none"
    groups: tuple[tuple[str, ...], ...] | None = None
    f: int | tuple[int, ...] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        sizes = () if self.f is None else (self.f,) if isinstance(self.f, int) else self.f
        if self.k < 1:
            raise OptionError(f"k must be a whole number of 1 or more, not {self.k}. Try 5.")
        if not 1 <= self.l < np.inf:
            raise OptionError(f"l must be a number of 1 or more, not {self.l:g}. Try 2; 1 is no limit.")
        if any(size < 2 for size in sizes):
            raise OptionError(f"f must be 2 or more, not {min(sizes)}, because a slice of one person protects nobody.")

    def slice_persons(self, persons: PersonTable, levels: Mapping[str, Levels]) -> Sliced:
        """The release of persons by this method."""
        return slice_persons(persons, levels, self)


def slice_persons(persons: PersonTable, levels: Mapping[str, Levels], method: FSlip) -> Sliced:
    """The persons' release; `levels` has the hierarchy of every quasi-identifier and sensitive attribute."""
    _check(persons, method)
    facets = {name: _facet(persons, levels, name) for name in persons.sensitive}
    if method.preset == "strict":
        _check_diverse(list(facets.values()), method.l)
    _note_bare([name for name, facet in facets.items() if not facet.numeric and levels[name].height < 2])
    found = correlations(persons, amounts(persons, levels)) if method.groups is None else None
    groups = found.groups() if found else read_groups(method.groups or (), list(facets))
    sizes = _sizes(method, len(groups))
    *rngs, last = np.random.default_rng(method.seed).spawn(len(groups) + 1)
    with ThreadPoolExecutor(2) as workers:
        members = [[facets[name] for name in group] for group in groups]
        cutting = workers.map(_cut, members, sizes, [method] * len(groups), rngs)
        quasi = _Quasi(persons, levels, method)
        cuts = list(cutting)
    rows = last.permutation(len(persons)) if method.preset == "strict" else np.arange(len(persons))
    links = {f"{GID}_{i}": cut.slices + 1 for i, cut in enumerate(cuts, 1)} if method.link == "groups" else {}
    table = quasi.table(rows, links)
    facts = _facts(method, table.select(list(persons.quasi)), cuts)
    if found:
        facts["correlations"] = found.to_dict()
    return Sliced(table, tuple(cut.table for cut in cuts), groups, facts, _loss(persons, levels, quasi, cuts))


def _facts(method: FSlip, quasi: pa.Table, cuts: Sequence[_Cut]) -> dict[str, Any]:
    """What was asked for, and what came of it: k and l as they are in the tables."""
    sizes = quasi.group_by(quasi.column_names).aggregate([([], "count_all")])["count_all"]
    return {
        "method": "fslip",
        "preset": method.preset,
        "link": method.link,
        "k": pc.min(sizes).as_py(),
        "classes": len(sizes),
        "l": min(cut.l for cut in cuts),
        "f": [cut.f for cut in cuts],
        "slices": [cut.count for cut in cuts],
        "asked": {"k": method.k, "l": method.l if method.preset == "strict" else None},
    }


def _check(persons: PersonTable, method: FSlip) -> None:
    if not persons.quasi or not persons.sensitive:
        what = "sensitive attribute" if persons.quasi else "quasi-identifier"
        raise OptionError(f"f-slip needs at least one {what}, but the study has none. Give a column that role.")
    if len(persons) < method.k:
        raise OptionError(
            f"There are {len(persons):,} persons, fewer than k = {method.k}: no class can be that large. Lower k."
        )


def _sizes(method: FSlip, groups: int) -> Sequence[int | None]:
    if method.f is None or isinstance(method.f, int):
        return [method.f] * groups
    if len(method.f) != groups:
        raise OptionError(
            f"f has {len(method.f)} numbers, but there are {groups} groups. Give one number for each group, or "
            "one for all."
        )
    return method.f


# Sensitive attributes.


@dataclass(frozen=True, eq=False)
class Facet:
    """A sensitive attribute as it is sliced.

    `column` is what slices are made of: arrays are generalized, single values are not. `rough` are the single values
    generalized, to sort by.
    """

    name: str
    column: Fingerprints
    level: int
    numeric: bool
    rough: np.ndarray

    @property
    def several(self) -> bool:
        return not self.column.single

    @cached_property
    def kinds(self) -> np.ndarray:
        """A number for each person, equal for equal values or arrays, ascending in their order."""
        return fingerprint_kinds(self.column)


def _facet(persons: PersonTable, levels: Mapping[str, Levels], name: str) -> Facet:
    column, of = persons.sensitive[name], levels[name]
    level = max(of.height - 1, 0)
    if is_amount(column, of):
        return Facet(name, column, 0, True, column.values)
    labels = of.labels[level]
    domain = Domain.of(labels)
    codes = domain.codes_of(labels)[of.codes[level]]
    if column.single:
        return Facet(name, column, 0, False, codes[column.values])
    return Facet(name, column.recode(codes, domain), level, False, np.empty(0))


def _note_bare(names: Sequence[str]) -> None:
    if names:
        have, their = ("has", "its") if len(names) == 1 else ("have", "their")
        warnings.warn(
            f"{listing(names)} {have} no hierarchy, so {their} values are not generalized. With a hierarchy, similar "
            "values are put together and fingerprints are generalized.",
            VeilmarkWarning,
            stacklevel=3,
        )


def _packed(keys: Sequence[np.ndarray]) -> np.ndarray:
    return keys[0] if len(keys) == 1 else pack(keys, [int(of.max()) + 1 for of in keys])[0]


@dataclass(frozen=True, eq=False)
class _Cut:
    """A group, cut: its table, the slice of each person, and what became of the attributes."""

    facets: Sequence[Facet]
    f: int
    l: float  # noqa: E741
    slices: np.ndarray
    count: int
    table: pa.Table
    means: Mapping[str, np.ndarray]
    added: Sequence[float]


def _cut(facets: Sequence[Facet], size: int | None, method: FSlip, rng: np.random.Generator) -> _Cut:
    size = min(size or frequency(facets), len(facets[0].column))
    strict = method.preset == "strict"
    order = rng.permutation(len(facets[0].column)) if strict else np.lexsort(_sort_keys(facets)[::-1])
    if strict:
        found = _strict_slices(facets, size, method, rng, order)
        slices = rng.permutation(int(found.max()) + 1)[found]
    else:
        slices = np.empty(len(order), dtype=np.int64)
        slices[order] = runs(len(order), size)
    count = int(slices.max()) + 1
    least = math.ceil(method.l) if strict else 1
    means = {facet.name: _means(facet, slices, count, least) for facet in facets if facet.numeric}
    unions = {facet.name: union_of_slices(facet.column, slices, count) for facet in facets if facet.several}
    table = _table(facets, order, slices[order], means, unions)
    added = [_added(facet.column, unions[facet.name], slices) for facet in facets if facet.several]
    return _Cut(facets, size, diversity(slices, [facet.kinds for facet in facets]), slices, count, table, means, added)


def _table(
    facets: Sequence[Facet],
    rows: np.ndarray,
    slices: np.ndarray,
    means: Mapping[str, np.ndarray],
    unions: Mapping[str, Fingerprints],
) -> pa.Table:
    """What is published of a group: these persons in this order, with the slice of each."""
    columns: dict[str, Any] = {GID: pa.array(slices + 1)}
    for facet in facets:
        if facet.name == GID:
            raise OptionError(
                f"A sensitive attribute has the name '{GID}', which the release uses for slice numbers. Rename "
                "that column."
            )
        if facet.numeric:
            columns[facet.name] = pa.array(means[facet.name][slices], from_pandas=True)
        elif facet.several:
            columns[facet.name] = _take(fingerprint_texts(unions[facet.name]), slices)
        else:
            labels = Fingerprints.of_codes(facet.column.domain, np.arange(len(facet.column.domain), dtype=np.int32))
            columns[facet.name] = _take(fingerprint_texts(labels), facet.column.values[rows])
    return pa.table(columns)


def _take(texts: pa.Array, chosen: np.ndarray) -> pa.Array:
    """Some of the texts, each written once: copying millions of long ones takes longer than all else."""
    coded = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices.take(pa.array(chosen)), coded.dictionary)


def _sort_keys(facets: Sequence[Facet]) -> list[np.ndarray]:
    """As the paper sorts: numbers, then generalized single values, then arrays."""
    numbers = [facet.rough for facet in facets if facet.numeric]
    single = [facet.rough for facet in facets if not facet.numeric and not facet.several]
    return [*numbers, *single, *(facet.kinds for facet in facets if facet.several)]


def _strict_slices(
    facets: Sequence[Facet], size: int, method: FSlip, rng: np.random.Generator, mixed: np.ndarray
) -> np.ndarray:
    """Like beside like where something is lost by slicing: numbers, then arrays; equals in random order."""
    merged = [facet for facet in facets if facet.numeric] + [facet for facet in facets if facet.several]
    keys = [facet.kinds for facet in merged] or [facet.rough for facet in facets]
    order = mixed[np.argsort(_packed(keys)[mixed], kind="stable")]
    return diverse_slices(order, [facet.kinds for facet in facets], size, method.l, rng)


def _check_diverse(facets: Sequence[Facet], l: float) -> None:  # noqa: E741
    """The table as a single slice must be l-diverse, or no slicing is."""
    often = [int(np.bincount(facet.kinds).max()) for facet in facets]
    worst, most, persons = facets[int(np.argmax(often))].name, max(often), len(facets[0].kinds)
    if most * l > persons + 1e-9:
        raise OptionError(
            f"{most:,} of {persons:,} persons have the same value of '{worst}', so no slicing is {l:g}-diverse: "
            f"in some slice its share would exceed 1/{l:g}. The largest possible l is "
            f"{np.floor(persons / most * 100) / 100:g}. Lower l, or give '{worst}' another role."
        )


def frequency(facets: Sequence[Facet]) -> int:
    """f: the mean frequency of what stands beside numbers, arrays or else single values; without numbers, the median
    frequency of equal arrays, or else of equal generalized values. What occurs once does not count; at least 2."""
    several = [facet.kinds for facet in facets if facet.several]
    if any(facet.numeric for facet in facets):
        beside = several or [facet.kinds for facet in facets if not facet.numeric] or [facet.kinds for facet in facets]
        often = np.concatenate([np.bincount(of) for of in beside])
    else:
        keys = several or [facet.rough for facet in facets]
        often = np.bincount(keys[0] if len(keys) == 1 else ranks(_packed(keys))[0])
    often = often[often > 1]
    if not len(often):
        return 2
    typical = np.mean(often) if any(facet.numeric for facet in facets) else np.median(often)
    return max(int(np.floor(typical + 0.5)), 2)


def _means(facet: Facet, slices: np.ndarray, count: int, least: int) -> np.ndarray:
    """The mean number of each slice, missing ones left out; to the hundredth where the numbers are whole.

    A mean of fewer than `least` different numbers would tell one of them: it is missing.
    """
    numbers = facet.column.domain.numbers
    assert numbers is not None
    means = group_means(numbers, facet.column.values, slices, count)
    there = facet.column.values != (-1 if facet.column.domain.missing is None else facet.column.domain.missing)
    pairs = np.unique(slices[there] * len(numbers) + facet.column.values[there])
    means[np.bincount(pairs // len(numbers), minlength=count) < least] = np.nan
    return means


def group_means(numbers: np.ndarray, codes: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    own = numbers[codes]
    there = ~np.isnan(own)
    size = np.bincount(group, weights=there, minlength=count)
    total = np.bincount(group, weights=np.where(there, own, 0.0), minlength=count)
    means = np.divide(total, size, out=np.full(count, np.nan), where=size > 0)
    present = numbers[~np.isnan(numbers)]
    return np.round(means, 2) if np.array_equal(present, np.round(present)) else means


def _added(column: Fingerprints, union: Fingerprints, slices: np.ndarray) -> float:
    """The share of the published values that are other persons'."""
    published = float(union.lengths[slices].sum())
    return (published - len(column.values)) / published


# Quasi-identifiers.


class _Quasi:
    """The class of each person in each quasi-identifier, and what is published there."""

    def __init__(self, persons: PersonTable, levels: Mapping[str, Levels], method: FSlip) -> None:
        self._columns = persons.quasi
        self.numeric = [name for name, column in persons.quasi.items() if is_amount(column, levels[name])]
        self.part: dict[str, np.ndarray] = {}
        self._labels: dict[str, pa.Array] = {}
        if method.preset == "strict":
            self._cut(persons, levels, list(persons.quasi), method.k)
        else:
            self._cut(persons, levels, [name for name in persons.quasi if name not in self.numeric], method.k)
            self.part |= dict.fromkeys(self.numeric, runs(len(persons), method.k))
        self.means = {name: self._mean(name) for name in self.numeric}

    def _cut(self, persons: PersonTable, levels: Mapping[str, Levels], names: Sequence[str], k: int) -> None:
        """Cut the persons by some quasi-identifiers into classes of at least k."""
        if not names:
            return
        whole = persons if len(names) == len(persons.quasi) else _keep(persons, names)
        flags = [name in self.numeric for name in names]
        found = partition(whole.classes, [levels[name] for name in names], flags, [KAnonymity(k)])
        self.part |= dict.fromkeys(names, found.part[whole.class_of])
        self._labels |= dict(zip(names, found.labels, strict=True))

    def _mean(self, name: str) -> np.ndarray:
        column, part = self._columns[name], self.part[name]
        assert column.domain.numbers is not None
        return group_means(column.domain.numbers, column.values, part, int(part.max()) + 1)

    def table(self, rows: np.ndarray, links: Mapping[str, np.ndarray]) -> pa.Table:
        """What is published, in this order; `links` are columns to add."""
        columns: dict[str, Any] = {}
        for name in self._columns:
            part = self.part[name][rows]
            if name in self.means:
                columns[name] = pa.array(self.means[name][part], from_pandas=True)
            else:
                columns[name] = _take(self._labels[name], part)
        linked = [pa.array(gid[rows]) for gid in links.values()]
        return pa.Table.from_arrays([*columns.values(), *linked], [*columns, *links])


def _keep(persons: PersonTable, names: Sequence[str]) -> PersonTable:
    return PersonTable({name: persons.quasi[name] for name in names}, {}, persons.records)


# What is lost.


def _loss(persons: PersonTable, levels: Mapping[str, Levels], quasi: _Quasi, cuts: Sequence[_Cut]) -> dict[str, float]:
    """NCP of the quasi-identifiers and of the sensitive attributes, NIL of the numbers, and the share of values added."""
    ncp = [attribute_ncp(column, levels[name], quasi.part[name]) for name, column in persons.quasi.items()]
    categories = {facet.name: facet.level for cut in cuts for facet in cut.facets if not facet.numeric}
    sensitive = {name: means[cut.slices] for cut in cuts for name, means in cut.means.items()}
    identifying = {name: means[quasi.part[name]] for name, means in quasi.means.items()}
    added = [share for cut in cuts for share in cut.added]
    return {
        "ncp": float(np.mean(ncp)),
        "sa_ncp": sa_ncp(persons, levels, categories),
        "nil": nil(persons, {**identifying, **sensitive}),
        "qi_nil": nil(persons, identifying),
        "sa_nil": nil(persons, sensitive),
        "sa_added": float(np.mean(added)) if added else 0.0,
    }
