"""Maps from the labels of the level below."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy.levels import OFFER, TOP, Level, check_covered, ground, level_of
from veilmark.hierarchy.spec import MapSpec
from veilmark.tables.domain import Domain, as_text


def map_levels(spec: MapSpec, domain: Domain, column: str) -> list[Level]:
    """The level of each map; the last is left out where it has one label only, for that is the top."""
    levels = [ground(domain.text)]
    for number, to in enumerate(spec.levels, start=1):
        below = levels[-1]
        if spec.others is None or number > 1:
            _check_mapped(below.labels, to, number, column)
        levels.append(level_of(_mapped(below.labels, to), below.codes))
    return levels[1:-1] if len(set(spec.levels[-1].values())) == 1 else levels[1:]


def _check_mapped(labels: pa.Array, to: Mapping[str, str], number: int, column: str) -> None:
    """Every label below has one above; `*`, where others went, has itself."""
    covered = np.asarray(_keys(labels, to).is_valid())
    if number == 1:
        fault = f"Column '{column}': the map of level 1 lacks the values"
        check_covered(labels, covered, fault, f"Add each to its keys, {OFFER}")
    else:
        covered |= np.asarray(pc.equal(labels, TOP).fill_null(False))
        fault = f"Column '{column}': the map of level {number} lacks, from level {number - 1},"
        check_covered(labels, covered, fault, "Add each to its keys.")


def _mapped(labels: pa.Array, to: Mapping[str, str]) -> pa.Array:
    """The labels above: what the map says, else missing for missing and `*` for all others."""
    places = _keys(labels, to)
    found = pa.array(list(to.values()), pa.string()).take(places)
    return pc.if_else(pc.or_(places.is_valid(), labels.is_null()), found, TOP)


def _keys(labels: pa.Array, to: Mapping[str, str]) -> pa.Array:
    """The position of each label among the map's keys, null where it is none of them."""
    return pc.index_in(labels, value_set=as_text(pa.array(list(to), pa.string())))
