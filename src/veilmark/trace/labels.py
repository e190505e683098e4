"""Labels that were written another way: which of the release's labels each value of a leaked column stands for.

A column is compared in its normal forms, from the strictest to the loosest: as it is; without regard to case, blanks, dashes
and trailing zeros; without the characters that mask (`331**`, `331XX`, `331`); as ranges (`30-39`, `[30, 40)`, `30 to 39`);
by one end of its ranges; as dates in any order; as values within a range, or texts that begin as a masked label; as wider
ranges or shorter prefixes, of which each is made up of whole labels of ours. The form is taken by which most rows are read
and by which labels are about as frequent as in the release.

That choice follows from the leaked column and from what all copies have in common: the labels, their hierarchy, and how many
records the release has of each. No recipient's marks are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.tables.domain import Domain

ENOUGH = 0.05
"""At least this share of a column's rows must have labels of some level, or the column is passed over."""

MOST = 0.9
"""The lowest level is taken by which at least this share of what can be read at all is read."""

FINER = 0.3
"""Where a lower level reads this share, as in a leak merged with a coarser table, that level is tried too."""

_MARGIN = 0.08  # a looser form must fit better than a stricter one by so much,
_WIDE_MARGIN = 0.3  # and by so much where the stricter one reads almost all rows: part of a copy has other frequencies

ROWS_A_VALUE = 20
"""With fewer rows than this a value, frequencies decide nothing."""

Labels = Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class ColumnReading:
    """A leaked column as labels of the release: `codes` has the label number of each of its distinct values (-1: none), and
    `up` that of each of the release's own labels (-1: it has none there).

    `level`: how many levels above the release's labels these are, `form` how they are written. `share` of the rows are read;
    `distance`: how far their frequencies are from the release's, 0 to 1. `finer` is the reading at a lower level that reads
    fewer rows.
    """

    form: str
    level: int
    codes: np.ndarray
    up: np.ndarray
    share: float
    distance: float
    finer: ColumnReading | None = None

    @property
    def badness(self) -> float:
        return 1 - self.share * (1 - self.distance)


@dataclass(frozen=True, eq=False)
class Column:
    """A leaked column: its distinct values and how many rows have each."""

    texts: pa.Array
    counts: np.ndarray

    @property
    def margin(self) -> float:
        """By how much a reading must fit better than another that reads almost all rows too."""
        return _WIDE_MARGIN if self.counts.sum() >= ROWS_A_VALUE * len(self.texts) else 1.0


def read_column(column: Column, above: Labels, records: np.ndarray) -> ColumnReading | None:
    """The best reading of a column as labels, of which `records[i]` of the release have label i; None where it holds
    something else."""
    best = None
    for reading in _readings(column, above, records):
        margin = column.margin if best is not None and best.share >= MOST else _MARGIN
        if reading.share >= ENOUGH and (best is None or reading.badness < best.badness - margin):
            best = reading
        if best is not None and best.badness < _MARGIN:
            break
    return best


def _readings(column: Column, above: Labels, records: np.ndarray) -> Iterator[ColumnReading]:
    """By every form, the strictest first."""
    texts = [pa.array(labels, pa.string()) for labels in above]
    domains = [Domain.of(labels.unique()) for labels in texts]
    ups = [domain.codes_of(labels) for domain, labels in zip(domains, texts, strict=True)]
    exact = [domain.codes_of(column.texts) for domain in domains]
    yield _at_level("as written", column, exact, ups, records)
    for form, key in FORMS.items():
        theirs = key(column.texts)
        own = [_by_key(theirs, key(domain.text), codes) for domain, codes in zip(domains, exact, strict=True)]
        yield _at_level(form, column, own, ups, records)
    for form, ends in ENDS.items():
        own = [
            _by_key(plain(column.texts), ends(domain.text), codes) for domain, codes in zip(domains, exact, strict=True)
        ]
        yield _at_level(form, column, own, ups, records)
    yield from _narrower(column, texts[0], records)
    yield from _wider(column, texts[0], records)


def _by_key(theirs: pa.Array, ours: pa.Array, exact: np.ndarray) -> np.ndarray:
    """Labels by a key, where it stands for one of ours; all others as they are written."""
    counted = ours.value_counts()
    single = counted.field("values").filter(pc.equal(counted.field("counts"), 1)).drop_null()
    place = np.append(np.asarray(pc.index_in(single, value_set=ours), dtype=np.int64), -1)
    found = place[np.asarray(pc.index_in(theirs, value_set=single).fill_null(-1))]
    return np.where(found >= 0, found, exact)


def _at_level(
    form: str, column: Column, own: Sequence[np.ndarray], ups: Sequence[np.ndarray], records: np.ndarray
) -> ColumnReading:
    """At the lowest level that reads most; at a higher one where values are labels there as well and fit much better. A
    level of one label tells nothing: it is taken only where no other reads anything, or somebody who puts * into some cells
    would have the whole column read as *."""
    total = max(int(column.counts.sum()), 1)
    every = []
    for level in range(len(own)):
        codes = own[level]
        for lower in range(level - 1, -1, -1):
            lift = np.full(int(ups[lower].max(initial=0)) + 2, -1)  # the last for what is no label there
            lift[ups[lower]] = ups[level]
            codes = np.where(codes < 0, lift[own[lower]], codes)
        every.append(_measured(form, level, column, codes, ups[level], records))
    telling = [one for one, up in zip(every, ups, strict=True) if len(np.unique(up)) > 1 and one.share >= ENOUGH]
    most = max(one.share for one in telling or every)
    chosen = next(one for one in telling or every if one.share >= MOST * most)
    for level in range(chosen.level + 1, len(own)):
        direct = float(column.counts[own[level] >= 0].sum()) / total
        fits = every[level].badness < chosen.badness - column.margin and len(np.unique(ups[level])) > 1
        if direct >= MOST * most and fits:
            chosen = every[level]
    finer = next((one for one in every[: chosen.level] if one.share >= FINER * most), None)
    return replace(chosen, finer=finer)


def _measured(
    form: str, level: int, column: Column, codes: np.ndarray, up: np.ndarray, records: np.ndarray
) -> ColumnReading:
    """A reading with the share of rows that it reads, and how far their frequencies are off."""
    size = int(max(codes.max(initial=0), up.max(initial=0))) + 1
    read, known = codes >= 0, up >= 0
    theirs = np.bincount(codes[read], column.counts[read], size)
    ours = np.bincount(up[known], records[known], size)
    share = theirs.sum() / max(int(column.counts.sum()), 1)
    off = apart(np.append(theirs, 0), np.append(ours, records[~known].sum()))
    return ColumnReading(form, level, codes, up, float(share), off)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation distance of two tables of counts, 0 to 1."""
    if not one.sum() or not other.sum():
        return 1.0
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


# Normal forms: keys that are the same for labels that mean the same.


def _replaced(text: pa.Array, *rules: tuple[str, str]) -> pa.Array:
    for pattern, new in rules:
        text = pc.replace_substring_regex(text, pattern, new)
    return text


def plain(text: pa.Array) -> pa.Array:
    """Small letters, no blanks or quotes, one kind of dash, numbers without idle zeros."""
    text = pc.utf8_lower(pc.utf8_normalize(text, form="NFKC"))
    return _replaced(
        text,
        (r"[\s'\"`]+", ""),
        ("[‐‑‒–—−~]", "-"),
        (r"(\d)(?:to|bis|\.\.+|_|/)(\d)", r"\1-\2"),
        (r"^(\d+)s$", r"\1"),
        (r"(\d)\.0+([^0-9]|$)", r"\1\2"),
        (r"(\d\.\d*[1-9])0+([^0-9]|$)", r"\1\2"),
    )


def unmasked(text: pa.Array) -> pa.Array:
    """Without the characters that stand for hidden ones at the end."""
    return _replaced(
        plain(text), (r"^([0-9a-z-]*[0-9])[*x#?_.•-]+$", r"\1"), (r"^([^*]*)\*+$", r"\1"), (r"^[x#?•]{2,}$", "")
    )


def unpadded(text: pa.Array) -> pa.Array:
    """Without leading zeros, too, as spreadsheets drop them."""
    return _replaced(unmasked(text), (r"^0+([0-9])", r"\1"))


_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = rf"^(?P<open>[\[(]?)(?P<low>{_NUMBER})(?:[,;:-](?P<high>{_NUMBER}))?(?P<close>[\])]?)(?P<over>\+?)$"


def bounds(text: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The ends of ranges of numbers, both included; NaN where a text is no number or range. Open ranges end in infinity."""
    cleaned = _replaced(
        plain(text), (r"^(?:>=|≥)(.*)$", r"\1+"), (r"^(.*\d)(?:andover|andolder|orolder|ormore)$", r"\1+")
    )
    parts = pc.extract_regex(cleaned, _RANGE)
    low, high = (pc.struct_field(parts, name) for name in ("low", "high"))
    low, high = (pc.cast(pc.if_else(pc.equal(end, ""), None, end), pa.float64()) for end in (low, high))
    low, high = (end.to_numpy(zero_copy_only=False).astype(float) for end in (low, high))
    half_open = np.asarray(pc.equal(pc.struct_field(parts, "close"), ")").fill_null(False))
    endless = np.asarray(pc.equal(pc.struct_field(parts, "over"), "+").fill_null(False))
    whole = half_open & (low == np.rint(low)) & (high == np.rint(high))
    high = np.where(np.isnan(high), np.where(endless, np.inf, low), np.where(whole, high - 1, high))
    return low, high


def _text_of(*numbers: np.ndarray) -> pa.Array:
    """Numbers as one key, missing where one is not a number."""
    bad = np.any(np.isnan(numbers), axis=0)
    texts = [pa.array(np.where(bad, 0.0, n).astype("U24"), pa.string()) for n in numbers]
    return pc.if_else(pa.array(bad), None, pc.binary_join_element_wise(*texts, ":") if len(texts) > 1 else texts[0])


def _as_range(text: pa.Array) -> pa.Array:
    return _text_of(*bounds(text))


def _end(side: int, text: pa.Array) -> pa.Array:
    """One end of each range, written as numbers are; -1 for the middle."""
    low, high = bounds(text)
    value = (low + high) / 2 if side < 0 else (low, high)[side]
    finite = np.isfinite(value)
    number = pa.array(np.where(finite, value, 0.0))
    return pc.if_else(pa.array(finite), plain(pc.cast(number, pa.string())), None)


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _date(day_first: bool, text: pa.Array) -> pa.Array:
    """Dates, months and years as ISO has them, from texts in another order."""
    text = _replaced(pc.utf8_lower(text), (r"^\s+|\s+$", ""), (r"[ t]00:00(:00(\.0*)?)?z?$", ""))
    for i, name in enumerate(_MONTHS, 1):
        text = _replaced(text, (rf"(?:^|[ ./-]){name}[a-z]*[ .,/-]+", f"-{i:02d}-"))
    text = _replaced(text, (r"^-?(\d\d)-(\d{4})$", r"\2-\1"), (r"^-?(\d\d)-(\d\d?)[, ]+(\d{4})$", r"\3-\1-\2"))
    text = _replaced(text, (r"^(\d\d?)-(\d\d)-(\d{4})$", r"\3-\2-\1") if day_first else ("^$", ""))
    order = r"\3-\2-\1" if day_first else r"\3-\1-\2"
    return _replaced(
        text,
        (r"^(\d\d?)[./ -](\d\d?)[./ -](\d{4})$", order),
        (r"^(\d\d?)[./ -](\d{4})$", r"\2-\1"),
        (r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3"),
        (r"^(\d{4})[./ ](\d\d?)(?:[./ ](\d\d?))?$", r"\1-\2-\3"),
        (r"-(\d)(-|$)", r"-0\1\2"),
        (r"-(\d)(-|$)", r"-0\1\2"),
        (r"-$", ""),
    )


FORMS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "spelled another way": plain,
    "without mask characters": unmasked,
    "without leading zeros": unpadded,
    "as ranges written another way": _as_range,
    "as dates, day first": partial(_date, True),
    "as dates, month first": partial(_date, False),
}
ENDS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "by the lower ends of ranges": partial(_end, 0),
    "by the upper ends of ranges": partial(_end, 1),
    "by the middles of ranges": partial(_end, -1),
}


# Values that lie within one of our labels: years made up within ranges, digits made up for those that were masked.


def _narrower(column: Column, labels: pa.Array, records: np.ndarray) -> Iterator[ColumnReading]:
    """Numbers or ranges, each inside one range of ours, and texts that begin as one masked label of ours."""
    own = np.arange(len(labels))
    low, high = bounds(column.texts)
    ours = bounds(labels)
    order = np.argsort(ours[0], kind="stable")[: int(np.isfinite(ours[0]).sum())]
    starts, ends = ours[0][order], ours[1][order]
    apart_from_each_other = bool((starts[1:] > ends[:-1]).all())
    if len(order) and apart_from_each_other and bool((ends > starts).any()) and np.isfinite(low).any():
        place = np.searchsorted(starts, np.where(np.isfinite(low), low, -np.inf), side="right") - 1
        inside = np.isfinite(low) & (place >= 0) & (high <= ends[place])
        yield _measured("by values within ranges", 0, column, np.where(inside, order[place], -1), own, records)
    begun, whole = unmasked(labels), plain(labels)
    masked = np.asarray(pc.not_equal(begun, whole).fill_null(False))
    lengths = np.asarray(pc.utf8_length(begun).fill_null(0))
    if masked.any() and (length := int(np.bincount(lengths[masked]).argmax())):
        heads = pc.if_else(pa.array(masked & (lengths == length)), begun, None)
        theirs = pc.utf8_slice_codeunits(unmasked(column.texts), 0, length)
        codes = _by_key(theirs, heads, np.full(len(column.texts), -1))
        yield _measured("by what masked labels begin with", 0, column, codes, own, records)


# Labels that are made up of several of ours.


def _wider(column: Column, labels: pa.Array, records: np.ndarray) -> Iterator[ColumnReading]:
    """Wider ranges, as such or by their lower ends alone, and shorter prefixes than any level has."""
    low, high = bounds(column.texts)
    ours = bounds(labels)
    if 2 * np.isfinite(low).sum() >= max(len(low), 1) and np.isfinite(ours[0]).any():
        yield _containing("as wider ranges", column, (low, high), ours, records)
        low = np.where(high == low, low, np.nan)
        ends = np.unique(low[np.isfinite(low)])
        if len(ends) > 1:
            until = np.append(ends[1:], np.inf)[np.searchsorted(ends, low).clip(max=len(ends) - 1)]
            theirs = low, np.nextafter(until, -np.inf)
            yield _containing("by the lower ends of wider ranges", column, theirs, ours, records)
    yield from _shorter(column, labels, records)


def _containing(
    form: str,
    column: Column,
    theirs: tuple[np.ndarray, np.ndarray],
    ours: tuple[np.ndarray, np.ndarray],
    records: np.ndarray,
) -> ColumnReading:
    """Each of our ranges goes to the one of theirs that holds all of it, if there is one."""
    usable = np.flatnonzero(np.isfinite(theirs[0]))
    starts, nth = np.unique(theirs[0][usable], return_inverse=True)
    ends = np.full(len(starts), -np.inf)
    np.maximum.at(ends, nth, theirs[1][usable])
    codes = np.full(len(column.texts), -1)
    codes[usable] = nth
    place = np.searchsorted(starts, ours[0], side="right") - 1
    inside = np.isfinite(ours[0]) & (place >= 0) & (ours[1] <= ends[place])
    return _measured(form, 1, column, codes, np.where(inside, place, -1), records)


def _shorter(column: Column, labels: pa.Array, records: np.ndarray) -> Iterator[ColumnReading]:
    theirs, ours = unmasked(column.texts), unmasked(labels)
    lengths = np.asarray(pc.utf8_length(theirs).fill_null(0))
    if not len(lengths) or not column.counts.sum():
        return
    usual = int(np.bincount(lengths, column.counts).argmax())
    if 0 < usual < int(pc.max(pc.utf8_length(ours)).as_py() or 0):
        domain = pc.utf8_slice_codeunits(ours, 0, usual).unique().drop_null()
        codes, up = (
            np.asarray(pc.index_in(of, value_set=domain).fill_null(-1), dtype=np.int64)
            for of in (theirs, pc.utf8_slice_codeunits(ours, 0, usual))
        )
        yield _measured("as shorter prefixes", 1, column, codes, up, records)
