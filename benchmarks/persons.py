"""Many records a person: folding and f-slip against one bare group-by by person, and the rivals of f-slip.

Records are 10/13 of the rows asked for, so that the usual 13 million voters are 10 million visits of 2.5 million persons.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import FOLDER
from benchmarks.foundation import bare_group_by
from benchmarks.growth import Growth
from benchmarks.harness import Comparison, alone, compare

if TYPE_CHECKING:
    from veilmark.study.study import Study

VISITS = 4
"""Records a person, as a mean."""
INFORMS = "informs"
"""The data of the f-slip paper, where they lie beside the project; else as many generated patients."""


@dataclass(frozen=True)
class Timed:
    """Seconds against a limit in seconds."""

    name: str
    seconds: float
    mebibytes: float
    limit: float

    def __str__(self) -> str:
        return f"{self.name:44} {self.seconds:6.2f} s  (goal {self.limit:g} s)   peak {self.mebibytes:6,.0f} MiB"


# The data.


def visits(records: int) -> Path:
    """Parquet with one row a visit, in random order: id, age, sex, race, marital, income, poverty, education, code."""
    path = FOLDER / f"visits-{records}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        pq.write_table(_visits(records), path, row_group_size=1_000_000)
    return path


def _visits(records: int) -> pa.Table:
    rng = np.random.default_rng(1)
    persons = max(records // VISITS, 1)
    owner = np.concatenate([np.arange(persons), rng.integers(persons, size=records - persons)])
    rng.shuffle(owner)
    standing = rng.standard_normal(persons)
    years = np.clip(12 + 3 * standing + 2 * rng.standard_normal(persons), 0, 17).astype(np.int8)
    poverty = 1 + np.digitize(standing + rng.standard_normal(persons), [-1.2, -0.6, 0.2, 1.0])
    income = (np.exp(10.2 + 0.7 * standing + 0.4 * rng.standard_normal(persons)) / 10).astype(np.int32) * 10
    sick = rng.gamma(0.4, size=800)
    codes = rng.choice(len(sick), records, p=sick / sick.sum())
    ids = pc.binary_join_element_wise("P", pc.utf8_lpad(pa.array(owner).cast(pa.string()), 8, "0"), "")
    return pa.table(
        {
            "id": ids,
            "age": rng.integers(0, 90, persons).astype(np.int8)[owner],
            "sex": _words(rng.integers(2, size=persons)[owner], "F M"),
            "race": _words(
                rng.choice(5, persons, p=[0.6, 0.15, 0.15, 0.07, 0.03])[owner], "white black hispanic asian other"
            ),
            "marital": _words(rng.integers(4, size=persons)[owner], "never married divorced widowed"),
            "income": income[owner],
            "poverty": poverty.astype(np.int8)[owner],
            "education": years[owner],
            "code": pa.DictionaryArray.from_arrays(codes.astype(np.int32), [f"{100 + i}" for i in range(len(sick))]),
        }
    )


def _words(codes: np.ndarray, words: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), words.split())


def study_of(source: str) -> Study:
    """The study of a file of visits, or of INFORMS."""
    from veilmark.reproduce.fslip_experiment import DATA, PERSONS_2005, hospital, informs
    from veilmark.study.study import Settings, Study

    warnings.simplefilter("ignore")
    if source == INFORMS:
        return informs() if DATA.is_file() else hospital(PERSONS_2005)
    roles: dict[str, Any] = dict.fromkeys(("age", "sex", "race", "marital"), "quasi")
    roles |= dict.fromkeys(("income", "poverty", "education"), "sensitive")
    roles["code"] = {"role": "sensitive", "hierarchy": {"builtin": "icd9"}}
    return Study.of(source, roles, person="id", settings=Settings(threads=2))


# The jobs.


def folded(source: str) -> Callable[[], object]:
    from veilmark.study.opening import engine_of, fold_persons

    study = study_of(source)

    def run() -> None:
        with engine_of(study) as engine:
            fold_persons(engine, study)

    return run


def by_person(source: str) -> Callable[[], object]:
    return bare_group_by(source, ["id"])


def by_fslip(source: str) -> Callable[[], object]:
    from veilmark.veil.fslip import FSlip

    return _released(source, FSlip(5))


def by_onemany(source: str) -> Callable[[], object]:
    from veilmark.veil.onemany import OneMany

    return _released(source, OneMany(5))


def by_rmr(source: str) -> Callable[[], object]:
    from veilmark.veil.rmr import Rmr

    return _released(source, Rmr(5))


def _released(source: str, method: Any) -> Callable[[], object]:
    """From the file to a written release; imports are done before."""
    import scipy.sparse
    import scipy.stats  # noqa: F401

    from veilmark.workbench.anonymize_persons import anonymize_persons

    study = study_of(source)
    target = Path(tempfile.mkdtemp()) / "release"
    return lambda: anonymize_persons(study, method, target, "csv" if source == INFORMS else "parquet")


def run(rows: int) -> Iterator[Comparison | Timed | Growth]:
    records = rows * 10 // 13
    path, tenth = str(visits(records)), str(visits(records // 10))
    yield compare(f"fold {records:,} records", by_person, folded, path, limit=4, repeat=3)
    yield compare(f"f-slip strict, {records:,} records", by_person, by_fslip, path, limit=12, repeat=3)
    sizes = [records // 10, records * 3 // 10, records]
    times = [alone(by_fslip, str(visits(size))).seconds for size in sizes]
    yield Growth("f-slip strict against records (goal 1.15)", sizes, times)
    yield _timed("f-slip strict, INFORMS, file to file", by_fslip, limit=1)
    yield compare("1:M on INFORMS (floor: f-slip)", by_fslip, by_onemany, INFORMS, limit=10, repeat=3)
    yield compare(f"1:M on {records // 10:,} records (floor: f-slip)", by_fslip, by_onemany, tenth, limit=10, repeat=3)
    yield _timed("RMR, INFORMS, file to file", by_rmr, limit=60)


def _timed(name: str, job: Callable[..., Any], limit: float) -> Timed:
    """The middle one of three runs."""
    runs = sorted((alone(job, INFORMS) for _ in range(3)), key=lambda found: found.seconds)
    return Timed(name, runs[1].seconds, max(found.mebibytes for found in runs), limit)
