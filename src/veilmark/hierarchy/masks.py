"""Texts with one more character hidden a level."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy.levels import TOP, Level, ground, joined, level_of
from veilmark.hierarchy.spec import MaskSpec
from veilmark.tables.domain import Domain


def mask_levels(spec: MaskSpec, domain: Domain) -> list[Level]:
    """The levels below the top, each from the one below: a masked label tells all that the next needs."""
    levels = [ground(domain.text)]
    for hidden in range(1, spec.mask + (not _hides_all(spec, domain))):
        labels = _masked(levels[-1].labels, hidden, spec.side)
        levels.append(level_of(labels, levels[-1].codes))
    return levels[1:]


def mask_top(spec: MaskSpec, domain: Domain) -> str:
    return TOP * spec.mask if _hides_all(spec, domain) else TOP


def _hides_all(spec: MaskSpec, domain: Domain) -> bool:
    longest = pc.max(pc.utf8_length(domain.text)).as_py() or 0
    return bool(longest <= spec.mask)


def _masked(text: pa.Array, hidden: int, side: str) -> pa.Array:
    stars = TOP * hidden
    if side == "left":
        return joined(stars, pc.utf8_slice_codeunits(text, start=hidden))
    return joined(pc.utf8_slice_codeunits(text, start=0, stop=-hidden), stars)
