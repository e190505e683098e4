"""Populations like those of the AnonTokens paper: voters' rolls of three U.S. states, as classes and their sizes.

The paper does not name its states. Their sizes, their numbers of classes and the 25 first-three-digits of State 1's ZIP
codes fit Florida, Michigan and Colorado. Two public files describe them (`zcta_combined.csv`: persons, races and median age
of each ZIP area; `county_sex_age7_fl_mi_co.csv`: ages by county and sex); without these, the built-in voters of
`veilmark.sample` stand in. Only the classes matter here, so nobody is made up one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from veilmark import sample
from veilmark.classes import ClassTable, Tally
from veilmark.domain import Domain
from veilmark.errors import DataError
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.output import written_batches

DATA = Path("../shared/data/zcta_us")
ZIPS, COUNTIES = "zcta_combined.csv", "county_sex_age7_fl_mi_co.csv"

HIERARCHIES: dict[str, dict[str, Any]] = {"zip": {"mask": 5}, "yob": {"intervals": [2, 4, 8]}}
"""Table 3; gender and race are the value or nothing."""

GENDERS = ("F", "M", "U")
RACES = ("White", "Black", "Hispanic", "Asian", "American Indian", "Multiracial", "Other", "Unknown")
YEAR = 2017
AGES = np.arange(18, 118)
CHUNK = 1_000_000

_BANDS = ("18-24", "25-34", "35-44", "45-54", "55-64", "65+")
_BAND_STARTS = np.array([18, 25, 35, 45, 55, 65, 103])
_OLD, _ODD = 65, 103
_ODD_SHARE = 1e-4
"""Rolls have a few impossible birth years. They are why nothing but `*` is left of it where nobody may be suppressed."""
_REGISTERED = ((18, 20, 25, 35, 50, 65, 80, 117), (0.35, 0.6, 0.62, 0.7, 0.76, 0.82, 0.85, 0.85))
_TILT = 0.0025
"""How much the share of an age grows by year of age and year that the ZIP area's median age lies above the county's."""
_ZIP_RACES = ("white", "black", "hispanic", "api", "native", "multiple")
_REGISTERED_RACES = (1.06, 0.95, 0.75, 0.7, 0.8, 0.35)
_OTHER_RACES = (0.017, 0.022)


@dataclass(frozen=True)
class State:
    """A population of the paper (Table 2) and what ours is made from; `unknown` is the share of persons of gender U, so that
    the number of classes comes near the paper's."""

    name: str
    code: str
    voters: int
    printed_classes: int
    unknown: float
    races: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return ("zip", "gender", "yob", *(["race"] if self.races else []))


STATES = (
    State("State 1", "FL", 13_000_000, 777_655, 0.0055, True),
    State("State 2", "MI", 7_000_000, 153_092, 0.0008, False),
    State("State 3", "CO", 3_500_000, 73_587, 0.0038, False),
)


def population(state: State, seed: int = 1, folder: Path | None = None, voters: int | None = None) -> ClassTable:
    """The classes of a state's voters; `folder` holds the two files, `voters` is their number if not the paper's."""
    zips, people, shares = _built_in() if folder is None else _from_files(state, folder)
    if not state.races:
        shares = shares.sum(axis=-1, keepdims=True)
    rng = np.random.default_rng([seed, state.voters])
    settled = rng.multinomial(state.voters if voters is None else voters, people / people.sum())
    cells = rng.multinomial(settled, shares.reshape(len(zips), -1)).reshape(shares.shape)
    where = np.nonzero(cells)
    values: list[Any] = [zips, GENDERS, np.arange(YEAR - AGES[-1], YEAR - AGES[0] + 1), RACES]
    domains = tuple(Domain.of(pa.array(of)) for of in values[: len(state.columns)])
    # A domain's order need not be that of the list: years ascend, races are sorted.
    codes = [d.codes_of(Domain.of(pa.array(of)).text.take(pa.array(np.arange(len(d))))) for d, of in zip(domains, values, strict=False)]
    return ClassTable(state.columns, domains, np.array(codes), Tally(cells[where]))
