"""What a study file holds under `hierarchy:`, checked before there is any data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal

import pyarrow as pa
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

from veilmark.errors import did_you_mean, listing
from veilmark.tables.domain import as_text

UNITS = ("day", "month", "quarter", "year", "decade", "century")
"""The units of a date hierarchy, from fine to coarse; each nests in the next."""

EXACT = 2**53
"""Below it every whole number has a float64 of its own."""


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
        raise ValueError("The list is empty. Add an item for each level.")
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
            raise ValueError(f"{min(widths)} is not a width. A width must be above 0.")
        for fine, coarse in pairwise(widths):
            if coarse <= fine:
                raise ValueError(f"{coarse} is not above {fine}. List the widths from small to large.")
            if Fraction(str(coarse)) % Fraction(str(fine)):
                raise ValueError(f"{coarse} is not a multiple of {fine}, the width before it.")
        return widths

    @model_validator(mode="after")
    def _exact(self) -> IntervalSpec:
        grid = grid_of(self)
        if grid.digits > 15 or max(abs(grid.offset), *grid.widths) >= EXACT:
            raise ValueError("The widths and the offset together need more than 15 digits. Use fewer.")
        return self


@dataclass(frozen=True)
class Grid:
    """Widths and offset as whole numbers of ticks of 10**-digits."""

    digits: int
    offset: int
    widths: tuple[int, ...]


def grid_of(spec: IntervalSpec) -> Grid:
    numbers = [Decimal(str(number)) for number in (spec.offset, *spec.intervals)]
    digits = max(0, *(-int(number.normalize().as_tuple().exponent) for number in numbers))
    offset, *widths = (int(number.scaleb(digits)) for number in numbers)
    return Grid(digits, offset, tuple(widths))


class MaskSpec(_Spec):
    """Texts with one more character hidden a level, up to `mask` of them."""

    mask: Count
    side: Literal["right", "left"] = "right"


class DateSpec(_Spec):
    """Dates in coarser and coarser units; `format` is strptime's, ISO where there is none.

    Of several formats, the first that fits a value counts.
    """

    dates: Annotated[tuple[str, ...], *_AS_LIST]
    format: str | Annotated[tuple[str, ...], PlainSerializer(list, return_type=list)] | None = None
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
    def _known_formats(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if value == ():
            raise ValueError("The list of date formats is empty. Give it a format such as '%d.%m.%Y', or leave it out.")
        for form in (value,) if isinstance(value, str) else value or ():
            _check_date_format(form)
        return value

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats, none where dates are ISO's."""
        return (self.format,) if isinstance(self.format, str) else self.format or ()


def _check_date_format(form: str) -> None:
    moment = datetime(2024, 3, 5, tzinfo=UTC)
    try:
        parsed = datetime.strptime(moment.strftime(form), form)
    except ValueError as problem:
        raise ValueError(f"The date format '{form}' is not a valid strptime format: {problem}.") from None
    if parsed.year != moment.year:
        raise ValueError(f"The date format '{form}' has no year. Add %Y.")


class FileSpec(_Spec):
    """A file in ARX's form."""

    file: Label
    others: Others = None


class MapSpec(_Spec):
    """Maps from the labels of the level below, the first from the values."""

    levels: Annotated[tuple[LabelMap, ...], *_AS_LIST]
    others: Others = None


class BuiltinSpec(_Spec):
    """A hierarchy that veilmark knows by its name."""

    builtin: Literal["icd9"]
    others: Others = None


KINDS: dict[str, type[_Spec]] = {
    "intervals": IntervalSpec,
    "mask": MaskSpec,
    "dates": DateSpec,
    "file": FileSpec,
    "levels": MapSpec,
    "builtin": BuiltinSpec,
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
        raise ValueError(f"A hierarchy is a mapping such as {{intervals: [5, 10]}}. The kinds are {_named([*KINDS])}.")
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) > 1:
        raise ValueError(f"A hierarchy has one kind, but this one has {len(kinds)}: {_named(kinds)}. Keep one.")
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
            known = f"Its options are {_named(options)}."
            raise ValueError(f"'{key}' is not an option of '{kind}'.{did_you_mean(key, options)} {known}")


HierarchySpec = Annotated[
    Annotated[IntervalSpec, Tag("intervals")]
    | Annotated[MaskSpec, Tag("mask")]
    | Annotated[DateSpec, Tag("dates")]
    | Annotated[FileSpec, Tag("file")]
    | Annotated[MapSpec, Tag("levels")]
    | Annotated[BuiltinSpec, Tag("builtin")],
    Discriminator(_kind),
    BeforeValidator(_check_keys),
]
"""What `hierarchy:` holds, as the type of a pydantic field."""

_ADAPTER: TypeAdapter[HierarchySpec] = TypeAdapter(HierarchySpec)


def parse_spec(content: Any) -> HierarchySpec:
    """The hierarchy that a mapping describes; a ValueError says what is wrong with it."""
    return _ADAPTER.validate_python(content)
