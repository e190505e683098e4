"""Dates in coarser and coarser units of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy.levels import OFFER, Level, check_covered, joined, level_of, spread
from veilmark.hierarchy.spec import DateSpec
from veilmark.tables.domain import Domain

_ISO = "%Y-%m-%d"
_ISO_MOMENT = r"^\d{4}-\d{2}-\d{2}([ T]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"


def date_levels(spec: DateSpec, domain: Domain, column: str) -> list[Level]:
    days = _days(domain.text, spec.formats)
    covered = np.asarray(days.is_valid())
    if spec.others is None:
        form = " or ".join(spec.formats) or "2024-03-05 or 2024-03-05 10:11:12"
        fault = f"Column '{column}' has a hierarchy of dates, but these values are not dates in the format {form}:"
        check_covered(domain.text, covered, fault, f"Correct them, set format to the right one, {OFFER}")
    coded = days.drop_null().dictionary_encode()
    iso, codes = pc.cast(coded.dictionary, pa.string()), coded.indices.to_numpy()
    return [spread(level_of(_unit(iso, unit), codes), covered, domain.text) for unit in spec.dates]


def _days(text: pa.Array, formats: Sequence[str]) -> pa.Array:
    """The day of each text by the first format that fits it, else null; without a format, of ISO dates and moments."""
    days = _format_days(text, formats[0]) if formats and formats[0] != _ISO else _iso_days(text)
    for form in formats[1:]:
        unread = pc.and_(days.is_null(), text.is_valid())
        days = pc.replace_with_mask(days, unread, _days(text.filter(unread), [form]))
    return days


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
        return joined(_start(iso, 4), "-Q", pc.cast(pc.quarter(pc.cast(iso, pa.date32())), pa.string()))
    if unit == "decade":
        return joined(_start(iso, 3), "0-", _start(iso, 3), "9")
    if unit == "century":
        return joined(_start(iso, 2), "00-", _start(iso, 2), "99")
    return _start(iso, {"day": 10, "month": 7, "year": 4}[unit])


def _start(text: pa.Array, length: int) -> pa.Array:
    return pc.utf8_slice_codeunits(text, 0, length)
