"""Domain: the distinct values of one column, in one order that every engine agrees on.

A code is a position in a domain. A missing value is a value like any other and stands last; an empty text and
a not-a-number are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.errors import DataError

NUMBER = r"^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True, eq=False)
class Domain:
    """`values` as the engine holds them and `text` as they are compared and printed, both in canonical order."""

    values: pa.Array
    text: pa.Array

    @classmethod
    def of(cls, values: pa.Array, column: str = "") -> Domain:
        """The domain of distinct engine values; numbers sort as numbers, all else by code point."""
        if values.type == pa.string_view():
            values = pc.cast(values, pa.large_string())
        try:
            text = as_text(values)
        except pa.ArrowNotImplementedError:
            raise DataError(
                f"Column '{column}' has values of the type {values.type}, which cannot be compared. Convert the "
                "column to text or to numbers, or give it the role other."
            ) from None
        if pc.any(pc.match_substring(text, "\0")).as_py():
            raise DataError(
                f"Column '{column}' contains a NUL byte (\\0). The file is damaged, binary, or in an encoding "
                "that was not recognized. Export it again as UTF-8 text."
            )
        text, first = _distinct(text)
        order = canonical_order(text)
        text = text.take(order)
        return cls(pc.if_else(text.is_valid(), values.take(first).take(order), None), text)

    def __len__(self) -> int:
        return len(self.text)

    def __repr__(self) -> str:
        more = ", …" if len(self) > 4 else ""
        return f"Domain({len(self)} values: {', '.join(map(str, self.text[:4].to_pylist()))}{more})"

    @property
    def missing(self) -> int | None:
        """The code of the missing value, where there is one."""
        return len(self) - 1 if self.text.null_count else None

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The values as numbers (NaN for missing), or None where one is not a number."""
        return to_numbers(self.text)

    def code_of(self, value: object) -> int:
        """The code of one Python value, -1 where the domain lacks it."""
        return int(self.codes_of(pa.array([value]))[0])

    def codes_of(self, values: pa.Array) -> np.ndarray:
        """The code of each value, -1 where the domain lacks it.

        A value that is written in another way than in the domain is found by `loose_texts`, where that is unambiguous.
        """
        text = as_text(values)
        found = np.array(pc.index_in(text, value_set=self.text).fill_null(-1), dtype=np.int32)
        lost = np.flatnonzero(found < 0)
        if len(lost):
            loosely = pc.index_in(_loose(text.take(lost)), value_set=self._loose)
            found[lost] = np.append(self._loose_codes, -1)[loosely.fill_null(-1).to_numpy(zero_copy_only=False)]
        return found

    @cached_property
    def _loose(self) -> pa.Array:
        """The loose texts that stand for one value only."""
        counted = _loose(self.text).value_counts()
        return counted.field("values").filter(pc.equal(counted.field("counts"), 1)).drop_null()

    @cached_property
    def _loose_codes(self) -> np.ndarray:
        return np.asarray(pc.index_in(self._loose, value_set=_loose(self.text)), dtype=np.int32)


def loose_texts(text: pa.Array) -> pa.Array:
    """Texts as they are compared where writing may differ."""
    return _loose(text)


def _loose(text: pa.Array) -> pa.Array:
    numbers = pc.match_substring_regex(text, r"^-?\d+\.\d*$").fill_null(False)
    text = pc.if_else(numbers, _trim_fraction(text), text)
    text = pc.replace_substring_regex(text, r"^(\d{4}-\d\d-\d\d)[ T]00:00:00(\.0*)?$", r"\1")
    truths = pc.match_substring_regex(text, r"(?i)^(true|false)$").fill_null(False)
    return pc.if_else(truths, pc.utf8_lower(text), text)


def as_text(values: pa.Array) -> pa.Array:
    """The text that stands for each value in every engine and file; missing stays missing."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number_text(values)
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            values = values.cast(pa.timestamp(kind.unit, "UTC"))
        return _trim_fraction(pc.strftime(values, format="%Y-%m-%d %H:%M:%S"))
    if pa.types.is_time(kind):
        return _trim_fraction(pc.cast(values, pa.string()))
    text = pc.cast(values, pa.string())
    return pc.if_else(pc.equal(text, ""), None, text)


def _number_text(values: pa.Array) -> pa.Array:
    """Numbers without needless zeros, and without an exponent where one can do without."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    text = pc.cast(values, pa.string())
    exponents = pc.match_substring(text, "e", ignore_case=True).fill_null(False)
    if pc.any(exponents).as_py():
        plain = [_without_exponent(t) for t in text.filter(exponents).to_pylist()]
        text = pc.replace_with_mask(text, exponents, pa.array(plain, pa.string()))
    return _trim_fraction(text)


def _without_exponent(text: str) -> str:
    number = Decimal(text)
    return f"{number:f}" if number.is_finite() and -7 <= number.adjusted() <= 21 else text


def _trim_fraction(text: pa.Array) -> pa.Array:
    """12.50 and 12.5 are one number, and so are -0 and 0."""
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+$", r"\1")
    text = pc.replace_substring_regex(text, r"\.$", "")
    return pc.if_else(pc.equal(text, "-0"), "0", text)


def to_numbers(text: pa.Array) -> np.ndarray | None:
    """Texts as numbers, NaN for missing; None where one is not a finite number, or all are missing."""
    present = text.drop_null()
    if not len(present) or not pc.all(pc.match_substring_regex(present, NUMBER)).as_py():
        return None
    numbers = np.asarray(pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False))
    return None if np.isinf(numbers).any() else numbers


def canonical_order(text: pa.Array) -> np.ndarray:
    """Numbers by size, then all by code point; missing last."""
    by_text = np.asarray(pc.array_sort_indices(text))
    numbers = to_numbers(text)
    if numbers is None:
        return by_text
    return by_text[np.argsort(numbers[by_text], kind="stable")]


def _distinct(text: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """The distinct texts and where each stands first: two engine values may share one text."""
    coded = text.dictionary_encode(null_encoding="encode")
    if len(coded.dictionary) == len(text):
        return text, np.arange(len(text))
    first = np.unique(coded.indices.to_numpy(), return_index=True)[1]
    return text.take(first), first
