"""Numbers in bins of nested widths."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy.levels import OFFER, Level, Numbers, Whole, check_covered, joined, spread
from veilmark.hierarchy.spec import EXACT, Grid, IntervalSpec, grid_of
from veilmark.tables.domain import NUMBER, Domain, as_text

_NEAR, _NEAR_AT_MOST = 1e-9, 1e-6
"""How near to the edge of a bin, relative to its number, counts as on it."""

_NESTED = ((2, 10, 20), (5, 10, 20), (10, 50, 100))
_WIDTHS = [tuple(width * 10**power for width in widths) for power in range(15) for widths in _NESTED]


def interval_levels(spec: IntervalSpec, domain: Domain, column: str) -> list[Level]:
    grid, numbers = grid_of(spec), _numbers(domain)
    with np.errstate(over="ignore"):
        covered = np.abs(numbers) * 10.0**grid.digits < EXACT
    if spec.others is None:
        fault = f"Column '{column}' has intervals, but these values are not numbers, or are too large:"
        remedy = f"Correct them, choose another kind of hierarchy, {OFFER}"
        check_covered(domain.text, covered, fault, remedy)
    numbers = numbers[covered]
    whole = grid.digits == 0 and bool((numbers == np.rint(numbers)).all())
    levels, bins = [], _finest_bins(numbers, grid)
    for finer, width in zip((grid.widths[0], *grid.widths), grid.widths, strict=False):
        bins = bins // (width // finer)
        levels.append(spread(_bin_level(bins, width, grid, whole), covered, domain.text))
    return levels


def _numbers(domain: Domain) -> Numbers:
    """The values as numbers, NaN where one is missing or not a number."""
    if domain.numbers is not None:
        return domain.numbers
    is_number = pc.match_substring_regex(domain.text, NUMBER)
    numbers = pc.cast(pc.if_else(is_number, domain.text, None), pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _finest_bins(numbers: Numbers, grid: Grid) -> Whole:
    """The number of each value's bin at the first width: exact where the values are short decimals."""
    width, offset = grid.widths[0], grid.offset
    for extra in range(16 - grid.digits):
        scale, finer = 10.0 ** (grid.digits + extra), 10**extra
        ticks = np.rint(numbers * scale)
        if max(np.abs(ticks).max(initial=0), abs(offset) * finer, width * finer) >= EXACT:
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


def _bin_level(bins: Whole, width: int, grid: Grid, whole: bool) -> Level:
    coded = pa.array(bins).dictionary_encode()
    low = grid.offset + coded.dictionary.to_numpy() * width
    return Level(_bin_labels(low, width, grid.digits, whole), coded.indices.to_numpy())


def _bin_labels(low: Whole, width: int, digits: int, whole: bool) -> pa.Array:
    """`20-24` or `20` for bins of whole numbers from 0 up, `[2.5, 5)` for all others."""
    first = _decimal(low, digits)
    closed = first if width == 1 else joined(first, "-", _decimal(low + width - 1, digits))
    if whole and low.min(initial=0) >= 0:
        return closed
    half_open = joined("[", first, ", ", _decimal(low + width, digits), ")")
    return pc.if_else(pa.array(whole & (low >= 0)), closed, half_open)


def _decimal(ticks: Whole, digits: int) -> pa.Array:
    """Ticks of 10**-digits as the shortest decimal text."""
    whole, part = np.divmod(np.abs(ticks), 10**digits)
    sign = pc.if_else(pa.array(ticks < 0), "-", "")
    tail = pc.ascii_lpad(as_text(pa.array(part)), digits, "0")
    text = joined(sign, as_text(pa.array(whole)), ".", tail)
    return pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")


def nested_widths(span: float) -> list[int]:
    """Up to three nested widths, the first the largest of which 15 go into the span."""
    chosen = max((widths for widths in _WIDTHS if widths[0] * 15 <= span), default=_WIDTHS[0])
    return [width for width in chosen if width < span]
