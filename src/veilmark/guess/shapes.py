"""Shapes: what the values of a column look like, judged by some different ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

FITS = 0.9
"""The share of values that must have a shape for the column to have it."""

MIXED = 0.02
"""The share of values that each of several date formats must fit."""

ISO_DAY, BARE_DAY = "%Y-%m-%d", "%Y%m%d"
_SLASHED, _SHORT = r"\d{1,2}/\d{1,2}/\d{4}", r"\d{1,2}/\d{1,2}/\d{2}"
DATE_FORMS = {
    ISO_DAY: r"\d{4}-\d{2}-\d{2}([ T]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?",
    BARE_DAY: r"\d{8}",
    "%m/%d/%Y": _SLASHED,
    "%d/%m/%Y": _SLASHED,
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%m/%d/%y": _SHORT,
    "%d/%m/%y": _SHORT,
    "%d.%m.%y": r"\d{1,2}\.\d{1,2}\.\d{2}",
}
"""Formats of dates, each with how all of such a value must look; its first ten characters are the day."""

PHONES = "telephone numbers"
ADDRESSES = ("e-mail addresses", "web addresses", "IP addresses", "social security numbers")
_NO_DATE_NOR_THOUSANDS = r"(?!\d{1,4}([./-])\d{1,2}\1\d{1,4}$)(?!\d{1,3}([ .]\d{3})+$)"
_PATTERNS = {
    "e-mail addresses": r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}",
    "web addresses": r"(https?://|www\.)\S+",
    "IP addresses": r"(\d{1,3}\.){3}\d{1,3}",
    "social security numbers": r"\d{3}-\d{2}-\d{4}",
    # With a leading zero it is a code, not a number.
    "integer": r"-?(0|[1-9]\d*)(\.0*)?",
    "decimal": r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?",
    PHONES: _NO_DATE_NOR_THOUSANDS + r"(?=(\D*\d){7,15}$)(\+|\(|\d+[ ./-]+\(?\d+\)?[ ./-])[\d ()./-]+",
}


@dataclass(frozen=True)
class Shape:
    """`formats` are a date's; they are `doubtful` where day and month may be the other way round."""

    name: str
    formats: tuple[str, ...] = ()
    doubtful: bool = False

    @property
    def numeric(self) -> bool:
        return self.name in ("integer", "decimal")


TEXT, INTEGER, DECIMAL, DATES = Shape("text"), Shape("integer"), Shape("decimal"), Shape("date", (ISO_DAY,))


def shape_of(values: Sequence[str], dated: bool) -> Shape:
    """The shape of some different values; only where the name is `dated` may bare digits be dates."""
    tests = ((name, partial(re.fullmatch, pattern, flags=re.ASCII)) for name, pattern in _PATTERNS.items())
    return _date_shape(values, dated) or next((Shape(name) for name, test in tests if _fit(values, test)), TEXT)


def _date_shape(values: Sequence[str], dated: bool) -> Shape | None:
    """The date format that fits most values."""
    fits = {form: _fit(values, partial(_is_date, form)) for form in DATE_FORMS if dated or form != BARE_DAY}
    best = max(fits.values())
    forms = [form for form, fit in fits.items() if fit == best]
    return Shape("date", (forms[0],), doubtful=len(forms) > 1) if best else _mixed_dates(values, [*fits])


def _mixed_dates(values: Sequence[str], forms: Sequence[str]) -> Shape | None:
    """The date formats that together fit most values, each of them many. Of two formats that differ in day and month alone,
    only the one that fits more is taken."""
    fitting = {form: {value for value in values if _is_date(form, value)} for form in forms}
    chosen: dict[str, str] = {}
    doubtful = False
    for form in sorted(forms, key=lambda form: -len(fitting[form])):
        twin = chosen.get(DATE_FORMS[form])
        if twin:
            doubtful |= len(fitting[form]) == len(fitting[twin]) or not fitting[form] <= fitting[twin]
        elif len(fitting[form]) >= MIXED * len(values):
            chosen[DATE_FORMS[form]] = form
    fit = _fit(values, set[str]().union(*(fitting[form] for form in chosen.values())).__contains__)
    # Years of two digits come first, because those of four would be read from them too.
    ordered = sorted(chosen.values(), key=lambda form: not form.endswith("%y"))
    return Shape("date", tuple(ordered), doubtful) if fit else None


def _fit(values: Sequence[str], test: Callable[[str], object]) -> int:
    """How many values pass the test, or 0 where too few do."""
    passed = sum(bool(test(value)) for value in values)
    return passed if passed >= FITS * len(values) else 0


def _is_date(form: str, value: str) -> bool:
    if not re.fullmatch(DATE_FORMS[form], value, re.ASCII):
        return False
    try:
        datetime.strptime(value[:10], form)
    except ValueError:
        return False
    return True
