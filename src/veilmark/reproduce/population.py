"""Populations like those of the AnonTokens paper: voters' rolls of three U.S. states, as classes and their sizes.

The paper does not name its states. Their sizes, their numbers of classes and the 25 first-three-digits of State 1's ZIP
codes fit Florida, Michigan and Colorado. Two public files describe them (`zcta_combined.csv`: persons, races and median age
of each ZIP area; `county_sex_age7_fl_mi_co.csv`: ages by county and sex); without these, the built-in voters of
`veilmark.sample` stand in. Only the classes matter here, so nobody is made up one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from veilmark import sample
from veilmark.errors import DataError
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.output import written_batches
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain

DATA = Path("../shared/data/zcta_us")
ZIPS, COUNTIES = "zcta_combined.csv", "county_sex_age7_fl_mi_co.csv"

HIERARCHIES: dict[str, dict[str, Any]] = {"zip": {"mask": 5}, "yob": {"intervals": [2, 4, 8]}}
"""Table 3; gender and race are the value or nothing."""

GENDERS = ("F", "M", "U")
RACES = ("American Indian", "Asian", "Black", "Hispanic", "Multiracial", "Other", "Unknown", "White")
YEARS = np.arange(1900, 2000)
"""Of birth, of voters in 2017."""
CHUNK = 1_000_000

_AGES = 2017 - YEARS
_BANDS = ("18-24", "25-34", "35-44", "45-54", "55-64", "65+")
_BAND_STARTS = np.array([18, 25, 35, 45, 55, 65])
_OLD, _ODD = 65, 103
_ODD_SHARE = 1e-4
"""Rolls have a few impossible birth years. They are why nothing is left of it where nobody may be suppressed."""
_REGISTERED = ((18, 20, 25, 35, 50, 65, 80), (0.35, 0.6, 0.62, 0.7, 0.76, 0.82, 0.85))
_TILT = 0.0015
"""How much the share of an age grows by year of age and by year that the ZIP area's median age lies above its county's.
This and the odd share were chosen by how near Table 5 came."""
_RACE_COLUMNS = ("native", "api", "black", "hispanic", "multiple", "white")
_RACES_REGISTERED = np.array([0.8, 0.7, 0.95, 0.75, 0.35, 1.06])
_RACE_OTHER, _RACE_UNKNOWN = 0.017, 0.022


@dataclass(frozen=True)
class State:
    """A population of the paper (Table 2). `unknown` is the share of persons whose gender is not known, such that the number
    of classes comes near the paper's; `areas` are the built-in voters' ZIP areas."""

    name: str
    code: str
    voters: int
    printed_classes: int
    unknown: float
    areas: int
    columns: tuple[str, ...] = ("zip", "gender", "yob")


STATES = (
    State("State 1", "FL", 13_000_000, 777_655, 0.0055, 1_000, ("zip", "gender", "yob", "race")),
    State("State 2", "MI", 7_000_000, 153_092, 0.0008, 900),
    State("State 3", "CO", 3_500_000, 73_587, 0.0038, 430),
)


@dataclass(frozen=True, eq=False)
class _Place:
    """Who lives where: `shares[z]` of each (gender, year of birth, race) in ZIP area z, which has `people[z]` of all."""

    zips: list[str]
    years: np.ndarray
    races: tuple[str, ...]
    people: np.ndarray
    shares: np.ndarray


def population(state: State, seed: int = 1, folder: Path | None = None) -> ClassTable:
    """The classes of a state's voters; `folder` holds the two files, without it the built-in voters are taken."""
    place = _built_in(state) if folder is None else _from_files(state, folder)
    domains = [Domain.of(pa.array(of)) for of in (place.zips, GENDERS, place.years, place.races)][: len(state.columns)]
    shares = place.shares if "race" in state.columns else place.shares.sum(axis=3)
    rng = np.random.default_rng([seed, state.voters])
    settled = rng.multinomial(state.voters, place.people / place.people.sum())
    cells = rng.multinomial(settled, shares.reshape(len(settled), -1)).ravel()
    there = np.flatnonzero(cells)
    codes = np.array(np.unravel_index(there, shares.shape), dtype=np.int32)
    return ClassTable(state.columns, tuple(domains), codes, Tally(cells[there]))


def levels_of(classes: ClassTable) -> list[Levels]:
    """The paper's Table 3 on a population."""
    specs = [parse_spec(HIERARCHIES[name]) if name in HIERARCHIES else None for name in classes.columns]
    return [
        resolve(spec, domain, name) for spec, domain, name in zip(specs, classes.domains, classes.columns, strict=True)
    ]


def draw_sample(classes: ClassTable, records: int, seed: Sequence[int]) -> ClassTable:
    """The classes of a random sample of the population's records, each drawn at most once."""
    rows = np.random.default_rng(seed).choice(classes.total_records, records, replace=False, shuffle=False)
    drawn = np.searchsorted(np.cumsum(classes.records), rows, side="right")
    counts = np.bincount(drawn, minlength=len(classes))
    there = counts > 0
    return ClassTable(classes.columns, classes.domains, classes.codes[:, there], Tally(counts[there]))


def write_population(classes: ClassTable, path: Path) -> None:
    """Write a population as rows, CSV or Parquet by the suffix: a voter_id and the columns, in the order of the classes."""
    with written_batches(_row_batches(classes), path):
        pass


def _row_batches(classes: ClassTable) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(classes.records)
    for start in range(0, classes.total_records, CHUNK):
        rows = np.arange(start, min(start + CHUNK, classes.total_records))
        owner = np.searchsorted(ends, rows, side="right")
        columns = {
            "voter_id": pc.binary_join_element_wise("V", pc.utf8_lpad(pa.array(rows + 1).cast(pa.string()), 8, "0"), "")
        }
        for name, domain, code in zip(classes.columns, classes.domains, classes.codes, strict=True):
            columns[name] = domain.values.take(pa.array(code[owner]))
        yield pa.RecordBatch.from_pydict(columns)


# Out of the public files.


def _from_files(state: State, folder: Path) -> _Place:
    areas = _read(folder / ZIPS, ("zcta", "pop2010", "median_age", "state_abbr", "county.fips.numeric", *_RACE_COLUMNS))
    areas = areas.filter((pc.field("state_abbr") == state.code) & (pc.field("pop2010") > 0)).sort_by("zcta")
    if not len(areas):
        raise DataError(f"'{folder / ZIPS}' has no ZIP areas of {state.code}. Name the folder with the right files.")
    numbers = {name: areas[name].to_numpy() for name in areas.column_names if name not in ("zcta", "state_abbr")}
    people = numbers["pop2010"].astype(np.float64)
    ages = _ages(state, folder, numbers)
    with_unknown = np.concatenate([ages * (1 - state.unknown), ages.sum(axis=1, keepdims=True) * state.unknown], axis=1)
    races = _races(np.column_stack([numbers[name] for name in _RACE_COLUMNS]))
    shares = with_unknown[:, :, :, None] * races[:, None, None, :]
    return _Place(areas["zcta"].to_pylist(), YEARS, RACES, people, shares)


def _read(path: Path, columns: Sequence[str]) -> pa.Table:
    texts = {"zcta": pa.string(), "fips": pa.int64(), "county.fips.numeric": pa.float64(), "pop2010": pa.float64()}
    options = pa_csv.ConvertOptions(include_columns=list(columns), column_types=texts)
    try:
        return pa_csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"'{path}' cannot be read: {reason}. Name the folder that has {ZIPS} and {COUNTIES}.") from None


def _ages(state: State, folder: Path, areas: Mapping[str, np.ndarray]) -> np.ndarray:
    """Shares of (sex, year of birth) in each ZIP area: its county's, tilted towards its own median age."""
    fips, curves = _counties(state, folder)
    place = np.searchsorted(fips, areas["county.fips.numeric"])
    place = np.minimum(place, len(fips) - 1)
    known = fips[place] == areas["county.fips.numeric"]
    base = np.where(known[:, None, None], curves[place], curves.sum(axis=0))
    above = np.nan_to_num(areas["median_age"] - _county_medians(place, areas))
    shares = base * np.exp(_TILT * above[:, None, None] * (_AGES - 50))
    return np.asarray(shares / shares.sum(axis=(1, 2), keepdims=True))


def _county_medians(place: np.ndarray, areas: Mapping[str, np.ndarray]) -> np.ndarray:
    """For each ZIP area the mean median age in its county."""
    median, people = areas["median_age"], areas["pop2010"]
    weight = np.where(np.isnan(median), 0.0, people)
    total = np.bincount(place, weights=weight * np.nan_to_num(median))
    return np.asarray((total / np.maximum(np.bincount(place, weights=weight), 1.0))[place])


def _counties(state: State, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The counties' numbers, and their voters by sex and year of birth."""
    table = _read(folder / COUNTIES, ("fips", "gender", "ageGroup", "population", "state"))
    table = table.filter((pc.field("state") == state.code) & pc.field("ageGroup").isin(list(_BANDS)))
    fips, county = np.unique(table["fips"].to_numpy(), return_inverse=True)
    sex = pc.index_in(table["gender"], value_set=pa.array(["Female", "Male"])).to_numpy()
    band = pc.index_in(table["ageGroup"], value_set=pa.array(_BANDS)).to_numpy()
    people = np.zeros((len(fips), 2, len(_BANDS)))
    people[county, sex, band] = table["population"].to_numpy()
    return fips, _by_year(people)


def _by_year(people: np.ndarray) -> np.ndarray:
    """Voters by year of birth from persons by age band: smooth within the bands, dying out above, a few odd years."""
    band = np.searchsorted(_BAND_STARTS, _AGES, side="right") - 1
    widths = np.diff(_BAND_STARTS)
    middles = _BAND_STARTS[:-1] + widths / 2
    density = people[:, :, :-1] / widths
    # Linear between the middles of the bands, for all counties at once.
    upper = np.clip(np.searchsorted(middles, _AGES + 0.5), 1, len(middles) - 1)
    weight = np.clip((_AGES + 0.5 - middles[upper - 1]) / (middles[upper] - middles[upper - 1]), 0, 1)
    shape = density[:, :, upper - 1] * (1 - weight) + density[:, :, upper] * weight + 1e-9
    shape = np.where(_AGES >= _OLD, _survival(), shape)
    totals = np.stack([shape[:, :, band == b].sum(axis=2) for b in range(len(_BANDS))], axis=2)
    voters = shape * (people / totals)[:, :, band] * np.interp(_AGES, *_REGISTERED)
    odd = _AGES >= _ODD
    voters[:, :, odd] = 0
    voters[:, :, odd] = voters.sum(axis=2, keepdims=True) * _ODD_SHARE / odd.sum()
    return voters


def _survival() -> np.ndarray:
    """How many of those who were 65 are left at each age, women and men, births before 1952 falling off too."""
    years = np.maximum(_AGES - _OLD, 0)
    slope, force = np.array([[0.035], [0.045]]), np.array([[0.024], [0.030]])
    return np.asarray(np.exp(-slope * years - force * np.exp(0.115 * years)))


def _races(shares: np.ndarray) -> np.ndarray:
    """Shares of the roll's races from those of the census."""
    registered = shares * _RACES_REGISTERED
    registered *= (1 - _RACE_OTHER - _RACE_UNKNOWN) / registered.sum(axis=1, keepdims=True)
    column = {"Other": _RACE_OTHER, "Unknown": _RACE_UNKNOWN}
    known = iter(registered.T)
    return np.column_stack([np.full(len(shares), column[name]) if name in column else next(known) for name in RACES])


# Built in.


def _built_in(state: State) -> _Place:
    """Voters like Florida's in some of the ZIP areas; of a smaller state, with fewer unknown genders."""
    shape = (len(sample._voter_zips()), len(sample.GENDERS), len(sample._AGES), len(sample.RACES))
    chosen = np.linspace(0, shape[0] - 1, state.areas).round().astype(np.int64)
    order = np.argsort(sample.RACES)
    shares = np.diff(sample._population(), prepend=0.0).reshape(shape)[chosen][:, :, ::-1, order]
    if state.areas < shape[0]:
        shares[:, -1] *= state.unknown * shares.sum() / shares[:, -1].sum()
    people = shares.sum(axis=(1, 2, 3))
    years = sample._YEAR - sample._AGES[::-1]
    zips = [sample._voter_zips()[i] for i in chosen]
    races = tuple(sample.RACES[i] for i in order)
    return _Place(zips, years, races, people, shares / people[:, None, None, None])
