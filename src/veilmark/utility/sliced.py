"""Information loss of releases made for persons with many records, whatever the method: QI-NCP, SA-NCP, NIL.

All three are means in 0..1: 0 nothing lost, 1 everything. What counts as lost is the same for every method, so that
their figures can stand side by side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy import TOP, Levels
from veilmark.tables.persons import Fingerprints, PersonTable
from veilmark.utility import loss
from veilmark.utility.covers import RANGES, SINGLE
from veilmark.veil.mondrian import LISTED

FEW_NUMBERS = 30
"""Numbers of no more different values are codes of categories, unless most persons have one of their own."""


def counts_as_number(column: Fingerprints, levels: Levels) -> bool:
    """Whether an attribute is cut and measured as numbers: it holds numbers, and the labels of its levels are ranges."""
    if column.domain.numbers is None:
        return False
    return all(_is_range(labels) for labels in levels.labels[1:-1])


def _is_range(labels: pa.Array) -> bool:
    form = "|".join(re.sub(r"\?P<\w+>", "", pattern) for pattern in (*RANGES, SINGLE)) + rf"|^{re.escape(TOP)}$"
    return bool(pc.all(pc.match_substring_regex(labels, form)).as_py())


def is_amount(column: Fingerprints, levels: Levels) -> bool:
    """Whether NIL measures a sensitive attribute, and not SA-NCP: one number a person, many of them, no categories."""
    if not column.single or not counts_as_number(column, levels):
        return False
    return levels.height > 1 or len(column.domain) > min(FEW_NUMBERS, len(column) / 2)


def amounts(persons: PersonTable, levels: Mapping[str, Levels]) -> tuple[str, ...]:
    """The sensitive attributes that are amounts."""
    return tuple(name for name, column in persons.sensitive.items() if is_amount(column, levels[name]))


# Quasi-identifiers.


def qi_ncp(persons: PersonTable, levels: Mapping[str, Levels], part: np.ndarray, *, sets: bool = True) -> float:
    """QI-NCP: the share of an attribute that a person's class spans, as a mean over attributes and persons.

    `part[i]` is the class of person i. See `attribute_ncp` for what a class spans.
    """
    own = [attribute_ncp(column, levels[name], part, sets=sets) for name, column in persons.quasi.items()]
    return float(np.mean(own)) if own else 0.0


def attribute_ncp(
    column: Fingerprints, levels: Levels, part: np.ndarray, *, numeric: bool | None = None, sets: bool = True
) -> float:
    """The normalized certainty penalty of one attribute, a mean over persons.

    Numbers: largest less least in the class over the whole range, all of it where some are missing and some not.
    Categories: the leaves of the smallest node over the class's values, as a share of all; one value is 0. Without levels
    between values and top, and with `sets`, it is the set of values instead, as Mondrian writes it.
    """
    if not len(part):
        return 0.0
    parts = int(part.max()) + 1
    size = np.bincount(part, minlength=parts)
    if counts_as_number(column, levels) if numeric is None else numeric:
        width = _number_widths(column, part, parts)
    elif sets and levels.height == 1:
        width = _set_widths(column, part, parts)
    else:
        width = _node_widths(column, levels, part, parts)
    return float(np.dot(size, width)) / len(part)


def _extremes(codes: np.ndarray, part: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest code of each part."""
    low, high = np.full(parts, np.iinfo(np.int32).max, dtype=np.int32), np.zeros(parts, dtype=np.int32)
    np.minimum.at(low, part, codes)
    np.maximum.at(high, part, codes)
    empty = low > high
    low[empty] = high[empty]
    return low, high


def _number_widths(column: Fingerprints, part: np.ndarray, parts: int) -> np.ndarray:
    numbers, missing = column.domain.numbers, column.domain.missing
    if numbers is None:
        return np.zeros(parts)
    low, high = _extremes(column.values, part, parts)
    mixed = (low != high) & (high == (-1 if missing is None else missing))
    whole = np.nanmax(numbers) - np.nanmin(numbers) or 1.0
    return np.where(mixed, 1.0, np.nan_to_num(numbers[high] - numbers[low]) / whole)


def _node_widths(column: Fingerprints, levels: Levels, part: np.ndarray, parts: int) -> np.ndarray:
    width = np.ones(parts)
    for level in reversed(range(levels.height)):
        low, high = _extremes(levels.codes[level][column.values], part, parts)
        width = np.where(low == high, label_widths(levels, level)[low], width)
    return width


def _set_widths(column: Fingerprints, part: np.ndarray, parts: int) -> np.ndarray:
    values = len(column.domain)
    pairs = np.sort(part.astype(np.int64) * values + column.values)
    first = np.concatenate([[True], pairs[1:] != pairs[:-1]])
    count = np.bincount(pairs[first] // values, minlength=parts)
    low, high = _extremes(column.values, part, parts)
    return np.where(count > 1, np.where(count <= LISTED, count, high - low + 1) / values, 0.0)


# Sensitive attributes.


def label_widths(levels: Levels, level: int) -> np.ndarray:
    """For each label of a level the share of the attribute's values under it; 0 for a single value."""
    leaves = levels.leaves(level)
    return np.where(leaves > 1, leaves / max(len(levels.codes[0]), 1), 0.0)


def sa_ncp(persons: PersonTable, levels: Mapping[str, Levels], published: Mapping[str, int | np.ndarray]) -> float:
    """SA-NCP: Σ leaves(g(t))/leaves(*) over all items t of all persons, by the number of items.

    An item is one value of one person, in any of the attributes that `published` names; g(t) is its label at the level
    given there, for the whole attribute or for each of its values in the order of `Fingerprints.values`. Leaves are the
    domain's values, a missing one included, of numbers too; an item published as itself counts 0.
    """
    lost, items = 0.0, 0
    for name, level in published.items():
        values, of = persons.sensitive[name].values, levels[name]
        widths = np.array([label_widths(of, at)[codes] for at, codes in enumerate(of.codes)])
        lost += float(widths[level, values].sum())
        items += len(values)
    return lost / items if items else 0.0


# Numbers that were replaced.


def nil(persons: PersonTable, published: Mapping[str, np.ndarray]) -> float:
    """Numeric information loss, Σ|old - new|/(n·range), as a mean over the attributes that `published` names.

    It holds the new numbers of each: one a person, or one a value in the order of `Fingerprints.values`. A range is read
    as its middle: see `class_middles`.
    """
    own = [loss.nil(*_pairs(persons, name, new)) for name, new in published.items()]
    return float(np.mean(own)) if own else 0.0


def nil_as_printed(persons: PersonTable, published: Mapping[str, np.ndarray]) -> float:
    """Σ|old - new|/(distinct old values), as the f-slip paper prints it, as a mean over attributes; not in 0..1."""
    own = [loss.nil_as_printed(*_pairs(persons, name, new)) for name, new in published.items()]
    return float(np.mean(own)) if own else 0.0


def class_middles(numbers: np.ndarray, part: np.ndarray) -> np.ndarray:
    """For each number the middle between the least and the largest of its class, what a range tells of it.

    A missing number (NaN) is not looked at, and stays missing.
    """
    parts = int(part.max(initial=-1)) + 1
    there = ~np.isnan(numbers)
    low, high = np.full(parts, np.inf), np.full(parts, -np.inf)
    np.minimum.at(low, part[there], numbers[there])
    np.maximum.at(high, part[there], numbers[there])
    middle = np.where(there, 0.0, np.nan)
    middle[there] = (low[part[there]] + high[part[there]]) / 2
    return middle


def _pairs(persons: PersonTable, name: str, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    column = persons.quasi[name] if name in persons.quasi else persons.sensitive[name]
    numbers = column.domain.numbers
    if numbers is None:
        numbers = np.full(len(column.domain), np.nan)
    return numbers[column.values], new if len(new) == len(column.values) else new[column.owner]
