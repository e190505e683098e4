"""Made-up persons to try things on: a voters' roll and a hospital's visits.

Nobody in these tables exists. The shape is what matters: many small classes in the roll, many rows a
person in the hospital. The same seed gives the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veilmark.errors import OptionError
from veilmark.output import whole_file

Codes = npt.NDArray[np.intp]
Shares = npt.NDArray[np.float64]

CHUNK = 1_000_000

GENDERS = ("F", "M", "U")
RACES = ("White", "Black", "Hispanic", "Asian", "American Indian", "Multiracial", "Other")
_HISPANIC, _ASIAN = RACES.index("Hispanic"), RACES.index("Asian")

_TEXT = pa.dictionary(pa.int32(), pa.string())
VOTERS_SCHEMA = pa.schema(
    {
        "voter_id": pa.string(),
        "first_name": _TEXT,
        "last_name": _TEXT,
        "zip": _TEXT,
        "gender": _TEXT,
        "yob": pa.int16(),
        "race": _TEXT,
    }
)
HOSPITAL_SCHEMA = pa.schema(
    {
        "patient_id": pa.string(),
        "name": pa.string(),
        "age": pa.int16(),
        "sex": pa.string(),
        "zip": pa.string(),
        "race": pa.string(),
        "marital": pa.string(),
        "visit_date": pa.date32(),
        "diagnosis": pa.string(),
        "income": pa.int32(),
        "poverty": pa.string(),
        "education": pa.string(),
    }
)


def _words(text: str) -> list[str]:
    return text.split()


# Names, the common ones first.

_WOMEN = _words("""
Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Karen Sarah Lisa Nancy Sandra Betty Ashley
Emily Kimberly Margaret Donna Michelle Carol Amanda Melissa Deborah Stephanie Rebecca Sharon Laura Cynthia
Dorothy Amy Kathleen Angela Shirley Emma Brenda Pamela Nicole Anna Samantha Katherine Christine Debra Rachel
Carolyn Janet Maria Olivia Heather Helen Catherine Diane Julie Victoria Joyce Lauren Kelly Christina Ruth
Joan Virginia Judith Evelyn Hannah Andrea Megan Cheryl Jacqueline Madison Teresa Abigail Sophia Martha Sara
Gloria Janice Kathryn Ann Isabella Judy Charlotte Julia Grace Amber Alice Jean Denise Frances Danielle
Marilyn Natalie Beverly Diana Brittany Theresa Kayla Alexis Doris Lori Tiffany
""")

_MEN = _words("""
James Robert John Michael David William Richard Joseph Thomas Christopher Charles Daniel Matthew Anthony
Mark Donald Steven Andrew Paul Joshua Kenneth Kevin Brian George Timothy Ronald Jason Edward Jeffrey Ryan
Jacob Gary Nicholas Eric Jonathan Stephen Larry Justin Scott Brandon Benjamin Samuel Gregory Alexander
Patrick Frank Raymond Jack Dennis Jerry Tyler Aaron Jose Adam Nathan Henry Zachary Douglas Peter Kyle Noah
Ethan Jeremy Christian Walter Keith Austin Roger Terry Sean Gerald Carl Dylan Harold Jordan Jesse Bryan
Lawrence Arthur Gabriel Bruce Logan Billy Joe Alan Juan Elijah Willie Albert Wayne Randy Mason Vincent Liam
Roy Bobby Caleb Bradley Russell Lucas
""")

_COMMON_LAST = _words("""
Smith Johnson Williams Brown Jones Davis Miller Wilson Anderson Thomas Taylor Moore Jackson Martin Thompson
White Harris Clark Lewis Robinson Walker Young Allen King Wright Scott Hill Green Adams Baker Nelson Hall
Campbell Mitchell Carter Roberts Phillips Evans Turner Parker Edwards Collins Stewart Morris Murphy Cook
Rogers Morgan Cooper Peterson Bailey Reed Kelly Howard Cox Ward Richardson Watson Brooks Wood James Bennett
Gray Hughes Price Myers Long Foster Sanders Ross Powell Sullivan Russell Perry Butler Barnes Fisher
Henderson Coleman Simmons Patterson Jordan Reynolds Hamilton Graham Wallace Cole West Bryant Gibson Ellis
Stevens Murray Ford Marshall Owens Harrison Kennedy Wells Woods Washington Henry Freeman Webb Tucker Burns
Crawford Olson Simpson Porter Hunter Gordon Shaw Snyder Mason Dixon Hunt Hicks Holmes Palmer Wagner Black
Robertson Boyd Stone Warren Fox Rose Rice Hayes Schmidt
""")

_HISPANIC_LAST = _words("""
Garcia Rodriguez Martinez Hernandez Lopez Gonzalez Perez Sanchez Ramirez Torres Flores Rivera Gomez Diaz
Cruz Reyes Morales Gutierrez Ortiz Ramos Ruiz Alvarez Mendoza Castillo Jimenez Vasquez Romero Herrera Medina
Aguilar Vargas Castro Fernandez Guzman Munoz Mendez Salazar Soto Delgado Pena Rios Alvarado Sandoval
Contreras Ortega Vega Dominguez Santiago
""")

_ASIAN_LAST = _words("""
Nguyen Patel Kim Lee Chen Tran Wong Singh Le Wang Pham Yang Chang Shah Park Li Khan Liu
""")

_FIRST = _WOMEN + _MEN
_LAST = _COMMON_LAST + _HISPANIC_LAST + _ASIAN_LAST

# The voters' state: (three-digit areas, size of a ZIP code, shares of RACES, shares of _AGE_PROFILES).

_REGIONS: tuple[tuple[str, float, tuple[float, ...], tuple[float, ...]], ...] = (
    ("320 321 322 323 324 325 326 344", 0.8, (72, 18, 4, 1.5, 0.3, 0.6, 2.4), (76, 9, 15)),
    ("327 328 329 335 336 337 338 346 347", 1.1, (69, 9, 15, 1.8, 0.2, 0.6, 2.6), (76, 6, 18)),
    ("330 331 332 333 334 349", 1.3, (46, 15, 33, 1.6, 0.2, 0.5, 2.4), (78, 6, 16)),
    ("339 341 342", 0.9, (86, 4, 7, 0.8, 0.2, 0.4, 1.6), (47, 3, 50)),
)
_ZIPS = 1_000
_ZIP_SPREAD = 0.85
_RACE_SPREAD = 0.95
_PROFILE_SPREAD = 0.8

_YEAR = 2020
_AGES = np.arange(18, 103)
_AGE_KNOTS = (18, 22, 30, 40, 50, 60, 70, 80, 90, 102)
_AGE_PROFILES = (
    (0.55, 0.80, 1.00, 0.95, 1.05, 1.05, 0.75, 0.38, 0.11, 0.004),  # settled
    (1.80, 3.00, 1.30, 0.70, 0.60, 0.50, 0.35, 0.18, 0.05, 0.002),  # college towns
    (0.20, 0.28, 0.32, 0.38, 0.60, 1.30, 1.90, 1.25, 0.40, 0.015),  # retirees
)
_GENDER_SHARES = (0.512, 0.466, 0.022)

# The state and the hospital's town are the same for every seed; the seed only decides who lives there.
_PLACE_SEED = 2020


def voters(rows: int, seed: int = 1) -> pa.Table:
    """A voters' roll shaped like Florida's, one row a person.

    13,000,000 rows fall in about 780,000 classes of (zip, gender, yob, race).
    """
    return pa.Table.from_batches(_voter_batches(rows, seed), schema=VOTERS_SCHEMA)


def write_voters(path: str | os.PathLike[str], rows: int, seed: int = 1) -> None:
    """Writes the rows of `voters(rows, seed)` to a Parquet file, a chunk at a time."""
    batches = _voter_batches(rows, seed)
    coded = [name for name in VOTERS_SCHEMA.names if name != "voter_id"]
    with (
        whole_file(Path(path)) as part,
        pq.ParquetWriter(part, VOTERS_SCHEMA, use_dictionary=coded) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def hospital(persons: int, seed: int = 1) -> pa.Table:
    """A hospital's visits over two years: one row a visit, one to ten visits a person, about four.

    All but `visit_date` and `diagnosis` is constant for a person. `income`, `poverty` and `education` are
    the household's, so that children have them too. About 1 % of `race` and `marital` is missing.
    """
    _refuse_negative(persons=persons, seed=seed)
    rng = np.random.default_rng(seed)
    age = _pick(rng, _curve(np.arange(_PATIENT_AGES), _PATIENT_KNOTS, _PATIENT_CURVE), persons)
    sex = _pick(rng, np.array(_SEX_SHARES), persons)
    person, day = _visits(rng, age)
    visits = _patients(rng, age, sex).take(pa.array(person))
    first_day = np.datetime64(_FIRST_DAY, "D")
    visits = visits.append_column("visit_date", pa.array(first_day + day))
    visits = visits.append_column("diagnosis", _plain(_diagnoses(rng, age, sex, person), _diagnosis_codes()))
    return visits.select(HOSPITAL_SCHEMA.names).cast(HOSPITAL_SCHEMA)


def _refuse_negative(**options: int) -> None:
    for name, value in options.items():
        if value < 0:
            raise OptionError(f"{name} is {value}; it must be 0 or more.")


# Draws.


def _pick(rng: np.random.Generator, shares: Shares, size: int) -> Codes:
    """`size` codes, each drawn with its share."""
    return _look_up(np.cumsum(shares), rng.random(size))


def _look_up(cumulated: Shares, uniform: Shares) -> Codes:
    codes = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    return _at_most(codes, len(cumulated) - 1)


def _pick_within(rng: np.random.Generator, shares: Shares, group: Codes) -> Codes:
    """One code for each member of `group`, drawn with the shares in that group's row."""
    cumulated = np.cumsum(shares, axis=1)
    cumulated /= cumulated[:, -1:]
    # Group g owns the stretch from g to g + 1 of one long line, so a single search serves all groups.
    line = (cumulated + np.arange(len(shares))[:, None]).ravel()
    codes = np.searchsorted(line, group + rng.random(len(group)), side="right") - group * shares.shape[1]
    return _at_most(codes, shares.shape[1] - 1)


def _at_most(codes: Codes, last: int) -> Codes:
    """The codes, where rounding may have pushed a number near 1 past the last of them."""
    return np.minimum(codes, last, out=codes)


def _vary(rng: np.random.Generator, shares: Shares, spread: float) -> Shares:
    """Each row of shares with a log-normal factor on every entry, summing to 1 again."""
    varied: Shares = shares * np.exp(spread * rng.standard_normal(shares.shape))
    varied /= varied.sum(axis=-1, keepdims=True)
    return varied


def _curve(points: npt.NDArray[Any], knots: Sequence[float], heights: Sequence[float]) -> Shares:
    """Heights at `points`, geometrically between the knots."""
    curve: Shares = np.exp(np.interp(points, knots, np.log(heights)))
    return curve


# Columns.


def _coded(codes: Codes, values: Sequence[str], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A text column as Arrow dictionary codes."""
    indices = pa.array(codes.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))


def _plain(codes: Codes, values: Sequence[str], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A text column as plain strings."""
    return _coded(codes, values, missing).dictionary_decode()


def _ids(letter: str, first: int, count: int, digits: int) -> pa.Array:
    """A letter and a number of fixed width: V00000001, V00000002, ..."""
    number = np.arange(first, first + count, dtype=np.int64)
    text = np.full((count, digits + 1), ord(letter), dtype=np.uint8)
    for place in range(digits, 0, -1):
        text[:, place] = number % 10 + ord("0")
        number //= 10
    ends = np.arange(count + 1, dtype=np.int32) * (digits + 1)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))


def _digits(count: int) -> int:
    return max(8, len(str(count)))


def _by_rank(count: int) -> Shares:
    """Shares that fall with the rank, as those of names do."""
    return 1.0 / np.arange(10.0, 10.0 + count)


def _first_names(rng: np.random.Generator, gender: Codes) -> Codes:
    """Codes in _FIRST; gender U draws from all of them."""
    shares = np.concatenate([_by_rank(len(_WOMEN)), _by_rank(len(_MEN))])
    woman = np.arange(len(_FIRST)) < len(_WOMEN)
    return _pick_within(rng, shares * np.array([woman, ~woman, woman | ~woman]), gender)


def _last_names(rng: np.random.Generator, race: Codes) -> Codes:
    """Codes in _LAST; Hispanic and Asian persons mostly have the names common among them."""
    lists = (_COMMON_LAST, _HISPANIC_LAST, _ASIAN_LAST)
    mix = np.tile([0.96, 0.03, 0.01], (len(RACES), 1))
    mix[_HISPANIC] = 0.15, 0.84, 0.01
    mix[_ASIAN] = 0.30, 0.04, 0.66
    ranks = [_by_rank(len(names)) for names in lists]
    shares = np.hstack([mix[:, [i]] * rank / rank.sum() for i, rank in enumerate(ranks)])
    return _pick_within(rng, shares, race)


# Voters.


def _voter_batches(rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """The roll in chunks, each with a seed of its own."""
    _refuse_negative(rows=rows, seed=seed)
    starts = range(0, rows, CHUNK)
    seeds = np.random.SeedSequence(seed).spawn(len(starts))
    digits = _digits(rows)
    return (
        _voter_batch(start, min(CHUNK, rows - start), digits, np.random.default_rng(child))
        for start, child in zip(starts, seeds, strict=True)
    )


def _voter_batch(start: int, count: int, digits: int, rng: np.random.Generator) -> pa.RecordBatch:
    cell = _look_up(_population(), rng.random(count))
    place, gender, age, race = np.unravel_index(cell, (_ZIPS, len(GENDERS), len(_AGES), len(RACES)))
    columns = [
        _ids("V", start + 1, count, digits),
        _coded(_first_names(rng, gender), _FIRST),
        _coded(_last_names(rng, race), _LAST),
        _coded(place, _voter_zips()),
        _coded(gender, GENDERS),
        pa.array((_YEAR - _AGES[0] - age).astype(np.int16)),
        _coded(race, RACES),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=VOTERS_SCHEMA)


@cache
def _zip_numbers() -> Codes:
    """The state's ZIP codes as numbers, in order."""
    areas = [int(area) for region in _REGIONS for area in region[0].split()]
    numbers = (np.array(areas)[:, None] * 100 + np.arange(100)).ravel()
    rng = np.random.default_rng(_PLACE_SEED)
    return np.sort(rng.permutation(numbers)[:_ZIPS])


@cache
def _voter_zips() -> list[str]:
    return [f"{number:05d}" for number in _zip_numbers()]


@cache
def _population() -> Shares:
    """Cumulated shares of all cells (zip, gender, age, race) of the state."""
    rng = np.random.default_rng(_PLACE_SEED + 1)
    region_of = {int(area): i for i, region in enumerate(_REGIONS) for area in region[0].split()}
    region = np.array([region_of[number // 100] for number in _zip_numbers().tolist()])
    size, race, profile = (np.array([r[part] for r in _REGIONS], float)[region] for part in (1, 2, 3))
    size = _vary(rng, size, _ZIP_SPREAD)
    race = _vary(rng, race, _RACE_SPREAD)
    age = np.einsum("zp,pga->zga", _vary(rng, profile, _PROFILE_SPREAD), _age_shares())
    cells: Shares = np.einsum("z,zga,zr->zgar", size, age, race)
    return np.cumsum(cells)


def _age_shares() -> Shares:
    """Shares of (gender, age) within each profile; women outlive men."""
    profiles = np.array([_curve(_AGES, _AGE_KNOTS, heights) for heights in _AGE_PROFILES])
    old = np.maximum(_AGES - 60, 0)
    survival = np.exp(np.outer((0.010, -0.012, 0.0), old))
    shares: Shares = np.array(_GENDER_SHARES)[:, None] * profiles[:, None, :] * survival
    shares /= shares.sum(axis=(1, 2), keepdims=True)
    return shares


# Hospital.

SEXES = ("Female", "Male")
MARITAL = ("Never married", "Married", "Divorced", "Separated", "Widowed")
POVERTY = ("high", "medium", "low")
EDUCATION = ("9th", "10th", "11th", "12th", "Bachelors", "Master", "Doctorate")

_FIRST_DAY, _DAYS = "2010-01-01", 730
_MOST_VISITS = 10
_MISSING = 0.01
_SEX_SHARES = (0.54, 0.46)
_PATIENT_AGES = 96
_PATIENT_KNOTS = (0, 1, 12, 25, 40, 55, 70, 85, 95)
_PATIENT_CURVE = (3.0, 1.2, 0.5, 0.9, 1.0, 1.2, 1.4, 0.9, 0.15)

_TOWN_ZIPS = [f"{area}{number}" for area in ("012", "013", "014", "120", "121", "128") for number in range(30, 40)]
_TOWN_RACES = (70, 11, 10, 5, 0.6, 1.4, 2)

_MARITAL_FROM_AGE = (18, 30, 45, 65)
_MARITAL_SHARES = (
    (1, 0, 0, 0, 0),
    (74, 21, 3, 2, 0.1),
    (28, 55, 12, 4, 1),
    (13, 61, 18, 3, 5),
    (5, 54, 12, 1, 28),
)
_EDUCATION_CUTS = (-1.6, -1.15, -0.75, 0.45, 1.35, 2.1)
_POVERTY_CUTS = (-0.9, 0.3)
_HOME_EFFECT = 0.3

# ICD-9 category, weight, age at the peak, spread in years, women's share.
_DIAGNOSES = _words("""
V30 90 0 .5 .49   770 15 0 .5 .45   V20 40 1 2 .49    382 30 3 4 .48    466 22 2 9 .48    493 30 14 28 .52
008 10 8 25 .50   465 30 8 20 .52   462 18 14 16 .54  314 14 11 5 .28   477 14 22 22 .54  540 12 19 14 .43
558 20 25 32 .55  692 14 25 30 .53  345 9 30 30 .50   346 12 34 14 .78  V22 60 28 5 1     650 45 28 5 1
644 14 27 5 1     626 18 33 11 1    218 12 43 8 1     627 12 54 7 1     174 16 62 13 .99  185 22 70 9 0
600 24 69 11 0    550 12 58 20 .12  042 6 41 10 .27   070 6 45 13 .40   295 9 40 15 .42   296 26 42 17 .61
300 22 39 17 .64  311 22 45 19 .66  303 12 46 12 .26  304 10 34 11 .36  278 16 44 15 .64  250 62 61 16 .49
244 18 57 18 .82  272 40 61 14 .48  274 8 62 14 .22   276 20 70 22 .55  280 10 56 24 .66  285 16 66 22 .57
401 85 63 16 .53  410 20 68 13 .38  414 46 70 12 .36  427 32 74 13 .47  428 36 77 11 .51  434 18 74 12 .51
486 32 66 38 .50  491 22 70 11 .51  530 26 56 18 .54  562 16 66 13 .58  571 10 55 12 .36  574 18 50 18 .70
584 14 73 16 .46  585 18 70 15 .46  592 14 47 15 .38  599 24 62 28 .72  038 14 72 20 .50  331 12 82 7 .62
715 34 68 12 .62  724 30 50 16 .54  733 14 74 11 .84  820 12 82 9 .72   682 16 48 24 .44  786 34 54 22 .52
""")
_SAME_AGAIN = 0.35


def _visits(rng: np.random.Generator, age: Codes) -> tuple[Codes, Codes]:
    """For each visit, whose it is and on which day, in this order; the old come oftener."""
    count = 1 + rng.binomial(_MOST_VISITS - 1, 0.16 + 0.004 * age)
    person = np.repeat(np.arange(len(age)), count)
    moment = np.sort(person * _DAYS + rng.integers(_DAYS, size=len(person)))
    return person, moment % _DAYS


def _diagnosis_codes() -> list[str]:
    return _DIAGNOSES[::5]


def _diagnosis_shares() -> Shares:
    """Shares of the diagnoses for each sex and age: women aged 0 to 95, then men."""
    weight, peak, spread, women = (np.array(_DIAGNOSES[i::5], float) for i in (1, 2, 3, 4))
    by_age = weight * np.exp(-0.5 * ((np.arange(_PATIENT_AGES)[:, None] - peak) / spread) ** 2)
    return np.concatenate([by_age * women, by_age * (1 - women)])


def _diagnoses(rng: np.random.Generator, age: Codes, sex: Codes, person: Codes) -> Codes:
    """A diagnosis for each visit: the person's main one again and again, and others between."""
    shares, group = _diagnosis_shares(), sex * _PATIENT_AGES + age
    main = _pick_within(rng, shares, group)
    other = _pick_within(rng, shares, group[person])
    return np.where(rng.random(len(person)) < _SAME_AGAIN, main[person], other)


@cache
def _town() -> tuple[Shares, Shares, Shares]:
    """The town's ZIP codes: shares of persons, shares of races, and how well off each is."""
    rng = np.random.default_rng(_PLACE_SEED + 2)
    count = len(_TOWN_ZIPS)
    size = _vary(rng, np.ones(count), 0.7)
    race = _vary(rng, np.tile(np.array(_TOWN_RACES, float), (count, 1)), 0.6)
    return size, race, _HOME_EFFECT * rng.standard_normal(count)


def _patients(rng: np.random.Generator, age: Codes, sex: Codes) -> pa.Table:
    """What is constant for a person, one row each."""
    count = len(age)
    size, races, wealth = _town()
    home = _pick(rng, size, count)
    race = _pick_within(rng, races, home)
    first, last = _plain(_first_names(rng, sex), _FIRST), _plain(_last_names(rng, race), _LAST)
    marital = _pick_within(rng, np.array(_MARITAL_SHARES, float), np.digitize(age, _MARITAL_FROM_AGE))
    fixed = {
        "patient_id": _ids("P", 1, count, _digits(count)),
        "name": pc.binary_join_element_wise(first, last, " "),
        "age": age,
        "sex": _plain(sex, SEXES),
        "zip": _plain(home, _TOWN_ZIPS),
        "race": _plain(race, RACES, rng.random(count) < _MISSING),
        "marital": _plain(marital, MARITAL, rng.random(count) < _MISSING),
    }
    return pa.table(fixed | _means(rng, wealth[home]))


def _means(rng: np.random.Generator, wealth: Shares) -> dict[str, Any]:
    """Income, poverty and education, all following one hidden standing of the household."""
    standing = wealth + rng.standard_normal(len(wealth))
    schooling, comfort = standing + 0.6 * rng.standard_normal((2, len(wealth)))
    return {
        "income": (np.exp(10.7 + 0.65 * standing) / 100).astype(np.int32) * 100,
        "poverty": _plain(np.digitize(comfort, _POVERTY_CUTS), POVERTY),
        "education": _plain(np.digitize(schooling, _EDUCATION_CUTS), EDUCATION),
    }
