"""Hierarchies: how the values of a column become coarser, level by level, up to `*`.

What a study file holds under `hierarchy:`, one kind at a time:

    {intervals: [5, 10, 20]}                          numbers in bins of nested widths
    {mask: 5}                                         one more character hidden a level
    {dates: [month, year, decade]}                    coarser and coarser units of time
    {file: education.csv}                             ARX's form, value;level1;level2;…
    {levels: [{Male: Person, Female: Person}]}        maps from the labels of the level below

`resolve` turns one of them into the `Levels` of a domain. Level 0 is the value, the last level is one label
for all. A missing value is a category of its own below the top.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)

from veilmark.domain import NUMBER, Domain, as_text
from veilmark.errors import HierarchyError, did_you_mean, listing
from veilmark.output import whole_file

__all__ = [
    "TOP",
    "DateSpec",
    "FileSpec",
    "HierarchySpec",
    "IntervalSpec",
    "Levels",
    "MapSpec",
    "MaskSpec",
    "parse_spec",
    "resolve",
    "write_arx",
]

TOP = "*"
UNITS = ("day", "month", "quarter", "year", "decade", "century")
"""The units of a date hierarchy, from fine to coarse; each nests in the next."""

Codes: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """A hierarchy resolved on a domain.

    `labels` are the distinct labels of each level, those of level 0 the domain's own texts. `codes` give, for
    each level and domain value, the position of its label.
    """

    labels: tuple[pa.Array, ...]
    codes: tuple[Codes, ...]

    def __repr__(self) -> str:
        return f"Levels({' → '.join(str(len(labels)) for labels in self.labels)} labels)"

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.labels) - 1

    def up(self, lower: int, upper: int) -> Codes:
        """For each label of level `lower`, the position of the one above it in level `upper`."""
        return _above(self.codes[lower], self.codes[upper], len(self.labels[lower]))

    def leaves(self, level: int) -> Whole:
        """For each label of the level, how many domain values fall under it."""
        return np.bincount(self.codes[level], minlength=len(self.labels[level]))

    def of_values(self, level: int) -> pa.Array:
        """The label of each domain value at the level."""
        return self.labels[level].take(pa.array(self.codes[level]))


# --- what the study file holds -----------------------------------------------------------------------------


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number.")
    return value


def _number(value: Any) -> int | float:
    """A finite number, also one that was read as text; a whole one stays whole."""
    for kind in (int, float):
        if isinstance(value, str):
            with suppress(ValueError):
                value = kind(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"'{value}' is not a number.")
    return value


def _text(value: Any) -> Any:
    """The text of a YAML scalar, as a domain has it; a missing one is empty."""
    if isinstance(value, str | list | Mapping):
        return value
    try:
        return as_text(pa.array([value]))[0].as_py() or ""
    except (pa.ArrowException, OverflowError):
        return str(value)


def _text_map(value: Any) -> Any:
    """The map from text to text, whatever YAML made of its keys and labels."""
    if not isinstance(value, Mapping):
        return value
    texts: dict[str, Any] = {}
    for key, label in value.items():
        if texts.setdefault(_text(key), _text(label)) != _text(label):
            raise ValueError(f"'{_text(key)}' occurs twice with different labels. Keep one of them.")
    return texts


def _not_empty(items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not items:
        raise ValueError("The list is empty. Give it an item for each level.")
    return items


Number = Annotated[int | float, BeforeValidator(_number)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_not_bool)]
Label = Annotated[str, Field(min_length=1)]
LabelMap = Annotated[dict[str, Label], Field(min_length=1), BeforeValidator(_text_map)]
Others = Literal["*"] | None

# Tuples keep a spec frozen; they are written as the lists they came from.
_AS_LIST = (AfterValidator(_not_empty), PlainSerializer(list, return_type=list))


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class IntervalSpec(_Spec):
    """Numbers in bins that start at offset + i·width, one width a level."""

    intervals: Annotated[tuple[Number, ...], *_AS_LIST]
    offset: Number = 0
    others: Others = None

    @field_validator("intervals")
    @classmethod
    def _nested(cls, widths: tuple[int | float, ...]) -> tuple[int | float, ...]:
        if min(widths) <= 0:
            raise ValueError(f"{min(widths)} is not a width: widths are more than 0.")
        for fine, coarse in pairwise(widths):
            if coarse <= fine:
                raise ValueError(f"{coarse} is not more than {fine}: give the widths from fine to coarse.")
            if Fraction(str(coarse)) % Fraction(str(fine)):
                raise ValueError(f"{coarse} is not a multiple of {fine}, the width before it.")
        return widths

    @model_validator(mode="after")
    def _exact(self) -> IntervalSpec:
        grid = _grid(self)
        if grid.digits > 15 or max(abs(grid.offset), *grid.widths) >= _EXACT:
            raise ValueError("The widths and the offset have more than 15 digits between them. Use fewer.")
        return self


class MaskSpec(_Spec):
    """Texts with one more character hidden a level, up to `mask` of them."""

    mask: Count
    side: Literal["right", "left"] = "right"


class DateSpec(_Spec):
    """Dates in coarser and coarser units; `format` is strptime's, ISO where there is none."""

    dates: Annotated[tuple[str, ...], *_AS_LIST]
    format: str | None = None
    others: Others = None

    @field_validator("dates")
    @classmethod
    def _coarser_and_coarser(cls, dates: tuple[str, ...]) -> tuple[str, ...]:
        for unit in dates:
            if unit not in UNITS:
                hint = did_you_mean(unit, UNITS)
                raise ValueError(f"'{unit}' is not a unit of dates.{hint} The units are {_named(UNITS)}.")
        right = sorted(set(dates), key=UNITS.index)
        if list(dates) != right:
            raise ValueError(f"Give each unit once, from fine to coarse: [{', '.join(right)}].")
        return dates

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str | None) -> str | None:
        moment = datetime(2024, 3, 5, tzinfo=UTC)
        try:
            parsed = moment if value is None else datetime.strptime(moment.strftime(value), value)
        except ValueError as problem:
            raise ValueError(f"The date format '{value}' is not one of strptime's: {problem}.") from None
        if parsed.year != moment.year:
            raise ValueError(f"The date format '{value}' holds no year. Add %Y.")
        return value


class FileSpec(_Spec):
    """A file in ARX's form."""

    file: Label
    others: Others = None


class MapSpec(_Spec):
    """Maps from the labels of the level below, the first from the values."""

    levels: Annotated[tuple[LabelMap, ...], *_AS_LIST]
    others: Others = None


KINDS: dict[str, type[_Spec]] = {
    "intervals": IntervalSpec,
    "mask": MaskSpec,
    "dates": DateSpec,
    "file": FileSpec,
    "levels": MapSpec,
}


def _named(words: Sequence[str]) -> str:
    return listing(words, limit=len(words))


def _kind(value: Any) -> str | None:
    fields = type(value).model_fields if isinstance(value, BaseModel) else value
    return next((kind for kind in KINDS if kind in fields), None)


def _check_keys(value: Any) -> Any:
    """The mapping unchanged, once its keys name one kind and only options of that kind."""
    if isinstance(value, _Spec):
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"A hierarchy is a mapping such as {{intervals: [5, 10]}}. The kinds are {_named([*KINDS])}."
        )
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) > 1:
        raise ValueError(
            f"A hierarchy is of one kind, and this is of {len(kinds)}: {_named(kinds)}. Keep one."
        )
    if not kinds:
        raise ValueError(_no_kind(value))
    _check_options(value, kinds[0])
    return value


def _no_kind(value: Mapping[Any, Any]) -> str:
    options = {option for kind in KINDS.values() for option in kind.model_fields}
    key = next((key for key in value if key not in options), next(iter(value)))
    return f"'{key}' is not a kind of hierarchy.{did_you_mean(key, KINDS)} The kinds are {_named([*KINDS])}."


def _check_options(value: Mapping[Any, Any], kind: str) -> None:
    options = [option for option in KINDS[kind].model_fields if option != kind]
    for key in value:
        if key != kind and key not in options:
            known = f"What may stand beside it: {_named(options)}."
            raise ValueError(f"'{key}' does not go with '{kind}'.{did_you_mean(key, options)} {known}")


HierarchySpec = Annotated[
    Annotated[IntervalSpec, Tag("intervals")]
    | Annotated[MaskSpec, Tag("mask")]
    | Annotated[DateSpec, Tag("dates")]
    | Annotated[FileSpec, Tag("file")]
    | Annotated[MapSpec, Tag("levels")],
    Discriminator(_kind),
    BeforeValidator(_check_keys),
]
"""What `hierarchy:` holds, as the type of a pydantic field."""

_ADAPTER: TypeAdapter[HierarchySpec] = TypeAdapter(HierarchySpec)


def parse_spec(content: Any) -> HierarchySpec:
    """The hierarchy that a mapping describes; a ValueError says what is wrong with it."""
    return _ADAPTER.validate_python(content)


# --- levels ------------------------------------------------------------------------------------------------


def resolve(spec: HierarchySpec | None, domain: Domain, column: str, folder: Path | None = None) -> Levels:
    """The levels of a column's domain; files are relative to `folder`. None gives the value and `*`."""
    match spec:
        case None:
            return _nest(domain, [], column)
        case IntervalSpec():
            return _nest(domain, _interval_levels(spec, domain, column), column)
        case MaskSpec():
            return _nest(domain, _mask_levels(spec, domain), column, top=_mask_top(spec, domain))
        case DateSpec():
            return _nest(domain, _date_levels(spec, domain, column), column)
        case FileSpec():
            return _nest(domain, _file_levels(spec, domain, column, folder or Path()), column)
        case MapSpec():
            return _nest(domain, _map_levels(spec, domain, column), column)


@dataclass(frozen=True, eq=False)
class _Level:
    """Distinct labels, each of them used, and the position of each value's label."""

    labels: pa.Array
    codes: Codes


def _level(labels: pa.Array, codes: npt.NDArray[np.integer[Any]]) -> _Level:
    """The level whose values have the labels at `codes`: equal labels are one, in the order of the values."""
    coded = labels.dictionary_encode(null_encoding="encode")
    used = pa.array(coded.indices.to_numpy()[codes]).dictionary_encode()
    return _Level(coded.dictionary.take(used.dictionary), used.indices.to_numpy())


def _ground(text: pa.Array) -> _Level:
    return _Level(text, np.arange(len(text), dtype=np.int32))


def _nest(domain: Domain, middle: Sequence[_Level], column: str, top: str = TOP) -> Levels:
    """The levels between the values and the top, checked and completed with both."""
    roof = _Level(pa.array([top]), np.zeros(len(domain), dtype=np.int32))
    levels = [_ground(domain.text), *middle, roof]
    _check_nested(levels, f"Column '{column}'")
    return Levels(tuple(level.labels for level in levels), tuple(level.codes for level in levels))


def _check_nested(levels: Sequence[_Level], where: str) -> None:
    """Each level must be a function of the one below, or rolling up would depend on the way."""
    for number, (lower, upper) in enumerate(pairwise(levels), start=1):
        above = _above(lower.codes, upper.codes, len(lower.labels))[lower.codes]
        wrong = np.flatnonzero(above != upper.codes)
        if len(wrong):
            label = _shown(lower.labels[lower.codes[wrong[0]]])
            both = " and ".join(_shown(upper.labels[codes[wrong[0]]]) for codes in (upper.codes, above))
            raise HierarchyError(
                f"{where}: the levels do not nest. {label} of level {number - 1} stands under both {both} "
                f"in level {number}. Give it one label there."
            )


def _above(lower: Codes, upper: Codes, count: int) -> Codes:
    above = np.zeros(count, dtype=np.int32)
    above[lower] = upper
    return above


def _shown(label: Any) -> str:
    return f"'{label}'" if label.is_valid else "the missing value"


def _spread(level: _Level, covered: Flags, text: pa.Array) -> _Level:
    """A level of the covered values on the whole domain: missing stays missing, all else becomes `*`."""
    if covered.all():
        return level
    labels = pa.concat_arrays([level.labels, pa.array([TOP, None], pa.string())])
    codes = len(level.labels) + np.asarray(text.is_null())
    codes[covered] = level.codes
    return _level(labels, codes)


_OFFER = f'or set others: "{TOP}" to let them become {TOP} at every level.'


def _check_covered(text: pa.Array, covered: Flags, fault: str, remedy: str) -> None:
    """Raise for the present values that are not covered; `fault` ends where they are listed."""
    lost = text.filter(pa.array(~covered & np.asarray(text.is_valid())))
    if len(lost):
        raise HierarchyError(f"{fault} {listing(lost)}. {remedy}")


# --- intervals ---------------------------------------------------------------------------------------------

_EXACT = 2**53
"""Below it every whole number has a float64 of its own."""

_NEAR, _NEAR_AT_MOST = 1e-9, 1e-6
"""How near to the edge of a bin, relative to its number, counts as on it."""


@dataclass(frozen=True)
class _Grid:
    """Widths and offset as whole numbers of ticks of 10**-digits."""

    digits: int
    offset: int
    widths: tuple[int, ...]


def _grid(spec: IntervalSpec) -> _Grid:
    numbers = [Decimal(str(number)) for number in (spec.offset, *spec.intervals)]
    digits = max(0, *(-int(number.normalize().as_tuple().exponent) for number in numbers))
    offset, *widths = (int(number.scaleb(digits)) for number in numbers)
    return _Grid(digits, offset, tuple(widths))


def _interval_levels(spec: IntervalSpec, domain: Domain, column: str) -> list[_Level]:
    grid, numbers = _grid(spec), _numbers(domain)
    with np.errstate(over="ignore"):
        covered = np.abs(numbers) * 10.0**grid.digits < _EXACT
    if spec.others is None:
        fault = f"Column '{column}' has intervals, but these values are not numbers, or too large:"
        remedy = f"Mend them, choose another kind of hierarchy, {_OFFER}"
        _check_covered(domain.text, covered, fault, remedy)
    numbers = numbers[covered]
    whole = grid.digits == 0 and bool((numbers == np.rint(numbers)).all())
    levels, bins = [], _finest_bins(numbers, grid)
    for finer, width in zip((grid.widths[0], *grid.widths), grid.widths, strict=False):
        bins = bins // (width // finer)
        levels.append(_spread(_bin_level(bins, width, grid, whole), covered, domain.text))
    return levels


def _numbers(domain: Domain) -> Numbers:
    """The values as numbers, NaN where one is missing or not a number."""
    if domain.numbers is not None:
        return domain.numbers
    is_number = pc.match_substring_regex(domain.text, NUMBER)
    numbers = pc.cast(pc.if_else(is_number, domain.text, None), pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _finest_bins(numbers: Numbers, grid: _Grid) -> Whole:
    """The number of each value's bin at the first width: exact where the values are short decimals."""
    width, offset = grid.widths[0], grid.offset
    for extra in range(16 - grid.digits):
        scale, finer = 10.0 ** (grid.digits + extra), 10**extra
        ticks = np.rint(numbers * scale)
        if max(np.abs(ticks).max(initial=0), abs(offset) * finer, width * finer) >= _EXACT:
            break
        if (ticks / scale == numbers).all():
            return np.asarray((ticks.astype(np.int64) - offset * finer) // (width * finer))
    return _nearest_bins((numbers * 10.0**grid.digits - offset) / width)


def _nearest_bins(position: Numbers) -> Whole:
    """Whole numbers below the positions; a position that float error keeps just off one is on it."""
    nearest = np.rint(position)
    reach = np.minimum(_NEAR * np.maximum(np.abs(nearest), 1), _NEAR_AT_MOST)
    on_edge = np.abs(position - nearest) <= reach
    return np.where(on_edge, nearest, np.floor(position)).astype(np.int64)


def _bin_level(bins: Whole, width: int, grid: _Grid, whole: bool) -> _Level:
    coded = pa.array(bins).dictionary_encode()
    low = grid.offset + coded.dictionary.to_numpy() * width
    return _Level(_bin_labels(low, width, grid.digits, whole), coded.indices.to_numpy())


def _bin_labels(low: Whole, width: int, digits: int, whole: bool) -> pa.Array:
    """`20-24` or `20` for bins of whole numbers from 0 up, `[2.5, 5)` for all others."""
    first = _decimal(low, digits)
    closed = first if width == 1 else _joined(first, "-", _decimal(low + width - 1, digits))
    if whole and low.min(initial=0) >= 0:
        return closed
    half_open = _joined("[", first, ", ", _decimal(low + width, digits), ")")
    return pc.if_else(pa.array(whole & (low >= 0)), closed, half_open)


def _decimal(ticks: Whole, digits: int) -> pa.Array:
    """Ticks of 10**-digits as the shortest decimal text."""
    whole, part = np.divmod(np.abs(ticks), 10**digits)
    sign = pc.if_else(pa.array(ticks < 0), "-", "")
    tail = pc.ascii_lpad(as_text(pa.array(part)), digits, "0")
    text = _joined(sign, as_text(pa.array(whole)), ".", tail)
    return pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


# --- masks -------------------------------------------------------------------------------------------------


def _mask_levels(spec: MaskSpec, domain: Domain) -> list[_Level]:
    """The levels below the top, each from the one below: a masked label tells all that the next needs."""
    levels = [_ground(domain.text)]
    for hidden in range(1, spec.mask + (not _hides_all(spec, domain))):
        labels = _masked(levels[-1].labels, hidden, spec.side)
        levels.append(_level(labels, levels[-1].codes))
    return levels[1:]


def _mask_top(spec: MaskSpec, domain: Domain) -> str:
    return TOP * spec.mask if _hides_all(spec, domain) else TOP


def _hides_all(spec: MaskSpec, domain: Domain) -> bool:
    longest = pc.max(pc.utf8_length(domain.text)).as_py() or 0
    return bool(longest <= spec.mask)


def _masked(text: pa.Array, hidden: int, side: str) -> pa.Array:
    stars = TOP * hidden
    if side == "left":
        return _joined(stars, pc.utf8_slice_codeunits(text, start=hidden))
    return _joined(pc.utf8_slice_codeunits(text, start=0, stop=-hidden), stars)


# --- dates -------------------------------------------------------------------------------------------------

_ISO = "%Y-%m-%d"
_ISO_MOMENT = (
    r"^\d{4}-\d{2}-\d{2}([ T]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
)


def _date_levels(spec: DateSpec, domain: Domain, column: str) -> list[_Level]:
    days = _iso_days(domain.text) if spec.format is None else _format_days(domain.text, spec.format)
    covered = np.asarray(days.is_valid())
    if spec.others is None:
        form = spec.format or "2024-03-05 or 2024-03-05 10:11:12"
        fault = f"Column '{column}' has a hierarchy of dates, but these are not dates of the form {form}:"
        _check_covered(domain.text, covered, fault, f"Mend them, set format to theirs, {_OFFER}")
    coded = days.drop_null().dictionary_encode()
    iso, codes = pc.cast(coded.dictionary, pa.string()), coded.indices.to_numpy()
    return [_spread(_level(_unit(iso, unit), codes), covered, domain.text) for unit in spec.dates]


def _iso_days(text: pa.Array) -> pa.Array:
    moments = pc.if_else(pc.match_substring_regex(text, _ISO_MOMENT), text, None)
    coded = _start(moments, 10).dictionary_encode()
    return _exact_days(coded.dictionary, _ISO).take(coded.indices)


def _exact_days(text: pa.Array, form: str) -> pa.Array:
    """The days of texts that print as they were read, else null: Arrow takes 30 February for 1 March."""
    moments = pc.strptime(text, format=form, unit="s", error_is_null=True)
    same = pc.equal(pc.strftime(moments, format=form), text)
    return pc.cast(pc.if_else(same, moments, None), pa.date32())


def _format_days(text: pa.Array, form: str) -> pa.Array:
    """Days by a format; where Arrow's reading leaves doubt (no leading zeros, say), Python's decides."""
    days = _exact_days(text, form)
    doubtful = np.asarray(days.is_null()) & np.asarray(text.is_valid())
    found = [_python_day(value, form) for value in text.filter(pa.array(doubtful)).to_pylist()]
    return pc.replace_with_mask(days, pa.array(doubtful), pa.array(found, pa.date32()))


def _python_day(value: str, form: str) -> date | None:
    try:
        return datetime.strptime(value, form).date()
    except ValueError:
        return None


def _unit(iso: pa.Array, unit: str) -> pa.Array:
    """The label of each ISO date in the unit."""
    if unit == "quarter":
        return _joined(_start(iso, 4), "-Q", pc.cast(pc.quarter(pc.cast(iso, pa.date32())), pa.string()))
    if unit == "decade":
        return _joined(_start(iso, 3), "0-", _start(iso, 3), "9")
    if unit == "century":
        return _joined(_start(iso, 2), "00-", _start(iso, 2), "99")
    return _start(iso, {"day": 10, "month": 7, "year": 4}[unit])


def _start(text: pa.Array, length: int) -> pa.Array:
    return pc.utf8_slice_codeunits(text, 0, length)


# --- maps --------------------------------------------------------------------------------------------------


def _map_levels(spec: MapSpec, domain: Domain, column: str) -> list[_Level]:
    """The level of each map; the last is left out where it has one label only, for that is the top."""
    levels = [_ground(domain.text)]
    for number, to in enumerate(spec.levels, start=1):
        below = levels[-1]
        if spec.others is None or number > 1:
            _check_mapped(below.labels, to, number, column)
        levels.append(_level(_mapped(below.labels, to), below.codes))
    return levels[1:-1] if len(set(spec.levels[-1].values())) == 1 else levels[1:]


def _check_mapped(labels: pa.Array, to: Mapping[str, str], number: int, column: str) -> None:
    """Every label below has one above; `*`, where others went, has itself."""
    covered = np.asarray(_keys(labels, to).is_valid())
    if number == 1:
        fault = f"Column '{column}': the map of level 1 lacks the values"
        _check_covered(labels, covered, fault, f"Add each to its keys, {_OFFER}")
    else:
        covered |= np.asarray(pc.equal(labels, TOP).fill_null(False))
        fault = f"Column '{column}': the map of level {number} lacks, from level {number - 1},"
        _check_covered(labels, covered, fault, "Add each to its keys.")


def _mapped(labels: pa.Array, to: Mapping[str, str]) -> pa.Array:
    """The labels above: what the map says, else missing for missing and `*` for all others."""
    places = _keys(labels, to)
    found = pa.array(list(to.values()), pa.string()).take(places)
    return pc.if_else(pc.or_(places.is_valid(), labels.is_null()), found, TOP)


def _keys(labels: pa.Array, to: Mapping[str, str]) -> pa.Array:
    """The position of each label among the map's keys, null where it is none of them."""
    return pc.index_in(labels, value_set=as_text(pa.array(list(to), pa.string())))


# --- files -------------------------------------------------------------------------------------------------


def _file_levels(spec: FileSpec, domain: Domain, column: str, folder: Path) -> list[_Level]:
    path = folder / spec.file
    values, *middle = _read_arx(path, f"Column '{column}', hierarchy file {path}")
    lines = pc.index_in(domain.text, value_set=values)
    covered = np.asarray(lines.is_valid())
    if spec.others is None:
        fault = f"Column '{column}': the hierarchy file {path} lacks the values"
        _check_covered(domain.text, covered, fault, f"Add a line for each, {_OFFER}")
    codes = lines.drop_null().to_numpy()
    return [_spread(_level(labels, codes), covered, domain.text) for labels in middle]


def _read_arx(path: Path, where: str) -> list[pa.Array]:
    """The distinct values of the file and their labels, level by level, without the top."""
    rows = _rows(_file_text(path, where), where)
    columns = [as_text(pa.array([row[i] for row in rows], pa.string())) for i in range(len(rows[0]))]
    columns = _distinct_lines(columns, where)
    _check_nested([_level(labels, np.arange(len(labels))) for labels in columns], where)
    uniform = len(columns) > 1 and len(columns[-1].unique()) == 1
    return columns[:-1] if uniform else columns


def _file_text(path: Path, where: str) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HierarchyError(f"{where} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except FileNotFoundError:
        raise HierarchyError(f"{where} does not exist. Correct the path, or put the file there.") from None
    except OSError as problem:
        raise HierarchyError(f"{where} cannot be read: {problem.strerror}.") from None
    if not text.strip("\r\n"):
        raise HierarchyError(f"{where} is empty. Give it a line for each value: value;level1;level2;…")
    return text


def _rows(text: str, where: str) -> list[list[str]]:
    """The lines that are not blank, all with as many levels as the first."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            rows.append(row)
            if len(row) != len(rows[0]):
                raise HierarchyError(
                    f"{where}, line {reader.line_num}: '{row[0]}' has {len(row) - 1} levels above it, but "
                    f"the first line has {len(rows[0]) - 1}. Give every value as many."
                )
    except csv.Error as problem:
        raise HierarchyError(f"{where}, line {reader.line_num}: {problem}. Check the quotes there.") from None
    return rows


def _delimiter(text: str) -> str:
    """The delimiter of the first line, by what stands outside quotes; a line may run on within them."""
    first = re.match(r'(?:"[^"]*"|[^\r\n])*', text.lstrip("\r\n"))
    bare = re.sub(r'"[^"]*"', "", first[0] if first else "")
    return ";" if ";" in bare else max(",\t", key=bare.count)


def _distinct_lines(columns: list[pa.Array], where: str) -> list[pa.Array]:
    """One line a value; a value twice is right only where both lines say the same."""
    value = columns[0].dictionary_encode(null_encoding="encode").indices.to_numpy()
    first = np.unique(value, return_index=True)[1]
    for labels in columns[1:]:
        codes = labels.dictionary_encode(null_encoding="encode").indices.to_numpy()
        wrong = np.flatnonzero(codes[first[value]] != codes)
        if len(wrong):
            line = int(wrong[0])
            both = f"{_shown(labels[first[value[line]]])} and {_shown(labels[line])}"
            twice = f"{_shown(columns[0][line])} occurs twice with different levels, {both}"
            raise HierarchyError(f"{where}: {twice}. Keep one line.")
    return [labels.take(pa.array(first)) for labels in columns]


def write_arx(levels: Levels, path: str | os.PathLike[str]) -> None:
    """Write ARX's form, `value;level1;…;*`, a line a value; the file appears whole or not at all."""
    columns = [_quoted(levels.of_values(level)) for level in range(levels.height + 1)]
    lines = pc.binary_join_element_wise(*columns, ";")
    with whole_file(Path(path)) as temporary:
        content = "".join(f"{line}\n" for line in lines.to_pylist())
        temporary.write_text(content, encoding="utf-8", newline="")


def _quoted(text: pa.Array) -> pa.Array:
    """Cells of a CSV file: in quotes where they need them, empty where missing."""
    doubled = _joined('"', pc.replace_substring(text, '"', '""'), '"')
    return pc.if_else(pc.match_substring_regex(text, '[;"\r\n]'), doubled, text).fill_null("")
