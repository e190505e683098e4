"""The experiment of the f-slip paper's Section 9, and whether its claims on attacks hold.

The paper takes the whole of INFORMS, 42,999 persons; here it is the part of 2005, where it lies beside the project, and
else a generated hospital. The figures' values are not printed, so that only the claims the text makes of them, and the few
numbers it names, can be compared.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmark.errors import VeilmarkWarning
from veilmark.hierarchy import Levels
from veilmark.progress import step
from veilmark.reproduce.comparison import UNKNOWN, Mean, Reproduced, Row, verdict
from veilmark.reproduce.fslip_attacks import FALLS, Fought, attack_rows, fight
from veilmark.study.opening import engine_of, fold_persons
from veilmark.study.study import Study
from veilmark.tables.persons import PersonTable
from veilmark.veil.fslip import FSlip
from veilmark.veil.onemany import OneMany
from veilmark.veil.rmr import Rmr
from veilmark.veil.sliced import PersonsMethod
from veilmark.workbench.anonymize_persons import resolve_all

DATA = Path("../shared/data/informs_2005/fslip_view_2005.csv")
PERSONS_2005 = 26_854

PRINTED, STRICT, ONE_MANY, RMR = "f-slip as printed", "f-slip strict", "1:M-Generalization", "RMR"
METHODS = (PRINTED, STRICT, ONE_MANY, RMR)
SECONDS = {PRINTED: 28.0, ONE_MANY: 30.0, RMR: 1.2 * 3600}
"""What the paper measured, each a mean over all sizes."""
NCP, NIL, DELTA, QI_LESS, SA_LESS = 0.1443, 0.0797, 0.66, 0.09, 0.04
"""The paper's losses of categories and of numbers, the QI loss of RMR, and how much less f-slip loses than 1:M."""
STEADY = 0.05
"""A loss that varies by no more than this is called consistent."""


@dataclass(frozen=True)
class Scope:
    """Over which numbers of persons, k and f the experiment goes; beside each, the others stand at `k` and f computed."""

    sizes: tuple[int, ...] = (5_000, 10_000, 15_000, 20_000, 25_000)
    ks: tuple[int, ...] = (2, 5, 10, 15, 20, 25)
    fs: tuple[int, ...] = (2, 5, 10, 25, 50, 100)
    k: int = 5
    targets: int = 10_000
    generated: int = PERSONS_2005
    seed: int = 1


@dataclass(frozen=True)
class Run:
    """One release: the figure it belongs to, its method, the persons, k, f where it is given, and what came out."""

    figure: str
    method: str
    persons: int
    k: int
    f: int | None
    seconds: float
    loss: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "loss": dict(self.loss)}


@dataclass(frozen=True, eq=False)
class Experiment:
    """All runs, and the attacks."""

    source: str
    persons: int
    scope: Scope
    runs: Sequence[Run]
    fought: Sequence[Fought] = field(default=())

    def of(self, figure: str, method: str) -> list[Run]:
        return [run for run in self.runs if run.figure == figure and run.method == method]

    def mean(self, figure: str, method: str, what: str) -> float:
        """Of a loss, or of `seconds`, over a figure's runs."""
        return float(np.mean([_value(run, what) for run in self.of(figure, method)]))


def _value(run: Run, what: str) -> float:
    return run.seconds if what == "seconds" else run.loss[what]


# The data.


def informs(path: Path = DATA) -> Study:
    """The study of the paper's experiment: negative codes are missing values."""
    codes = [-1, -7, -8, -9]
    roles: dict[str, Any] = dict.fromkeys(("age", "race", "sex", "marry"), "quasi")
    roles["income"] = "sensitive"
    roles["poverty"] = {"role": "sensitive", "hierarchy": {"levels": [_poverty("12", "3", "45")]}}
    roles["education"] = {"role": "sensitive", "hierarchy": {"levels": [_years()]}, "missing": codes}
    roles["condition_code"] = {"role": "sensitive", "hierarchy": {"builtin": "icd9"}, "missing": codes}
    return Study.of(path, roles, person="person_id")


def _poverty(low: Sequence[str], middle: Sequence[str], high: Sequence[str]) -> dict[str, str]:
    groups = {"1 poor": low, "2 low income": middle, "3 middle or high income": high}
    return {value: label for label, values in groups.items() for value in values}


def _years() -> dict[str, str]:
    """Years of school by kind of school."""
    schools = {"1 elementary": range(9), "2 high school": range(9, 13), "3 college": range(13, 18)}
    return {str(year): school for school, years in schools.items() for year in years}


def hospital(persons: int, seed: int = 1) -> Study:
    """A generated table of the same shape."""
    from veilmark import sample

    schools = {"1 school": ("9th", "10th", "11th"), "2 college": ("12th", "Bachelors")}
    schools["3 university"] = ("Master", "Doctorate")
    kinds = {value: label for label, values in schools.items() for value in values}
    roles: dict[str, Any] = dict.fromkeys(("age", "race", "sex", "marital"), "quasi")
    roles["income"] = "sensitive"
    roles["poverty"] = {
        "role": "sensitive",
        "hierarchy": {"levels": [{"high": "poor", "medium": "not poor", "low": "not poor"}]},
    }
    roles["education"] = {"role": "sensitive", "hierarchy": {"levels": [kinds]}}
    roles["diagnosis"] = {"role": "sensitive", "hierarchy": {"builtin": "icd9"}}
    return Study.of(sample.hospital(persons, seed), roles, person="patient_id")


# The runs.


def experiment(scope: Scope | None = None, path: Path | None = None) -> Reproduced:
    """Section 9 beside ours, with Figures 7 to 9 redrawn, and the attacks of Section 4 on three kinds of release.

    `path` is the file of INFORMS; without one, it is looked for beside the project, and else a hospital is generated.
    """
    scope = scope or Scope()
    path = path or (DATA if DATA.is_file() else None)
    study = informs(path) if path else hospital(scope.generated, scope.seed)
    with engine_of(study) as engine:
        persons = fold_persons(engine, study)
    levels = resolve_all(study, persons)
    first, *rest = persons.sensitive
    groups = ((first, rest[0]), tuple(rest[1:]))
    with _quiet():
        runs = _runs(persons, levels, groups, scope)
        fought = fight(study, persons, levels, groups, scope.k, scope.targets, scope.seed)
    source = "INFORMS of 2005" if path else "a generated hospital"
    return _reproduced(Experiment(source, len(persons), scope, runs, fought))


@contextmanager
def _quiet() -> Any:
    """Notes on missing hierarchies tell nothing new here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeilmarkWarning)
        yield


def _methods(k: int, groups: tuple[tuple[str, ...], ...]) -> dict[str, PersonsMethod]:
    sound = FSlip(k, groups=groups)
    return {PRINTED: replace(sound, preset="paper"), STRICT: sound, ONE_MANY: OneMany(k), RMR: Rmr(k, delta=DELTA)}


def _runs(
    persons: PersonTable, levels: dict[str, Levels], groups: tuple[tuple[str, ...], ...], scope: Scope
) -> list[Run]:
    mixed = np.random.default_rng(scope.seed).permutation(len(persons))
    runs = []
    for size in (*(size for size in scope.sizes if size < len(persons)), len(persons)):
        some = persons.take(np.sort(mixed[:size]))
        for name, method in _methods(scope.k, groups).items():
            runs.append(_run("7, 9", name, some, levels, method, scope.k))
    for k in scope.ks:
        for name, method in _methods(k, groups).items():
            runs.append(_run("8a", name, persons, levels, method, k))
    for f in scope.fs:
        sound = FSlip(scope.k, groups=groups, f=f)
        for name, method in ((PRINTED, replace(sound, preset="paper")), (STRICT, sound)):
            runs.append(_run("8b", name, persons, levels, method, scope.k, f))
    return runs


def _run(
    figure: str,
    name: str,
    persons: PersonTable,
    levels: dict[str, Levels],
    method: PersonsMethod,
    k: int,
    f: int | None = None,
) -> Run:
    with step(f"Figure {figure}: {name}, {len(persons):,} persons, k = {k}"):
        start = time.perf_counter()
        made = method.slice_persons(persons, levels)
        return Run(figure, name, len(persons), k, f, time.perf_counter() - start, made.loss)


# Beside the paper.


def _reproduced(found: Experiment) -> Reproduced:
    rows = [*_numbers(found), *_claims(found), *_figures(found), *attack_rows(found.fought)]
    notes = [
        f"Section 9 is measured on {found.source}, {found.persons:,} persons; the paper's figures are of 42,999. Its "
        "computer is not ours: of seconds, only their order can be compared.",
        "Loss is measured the same way for all: QI-NCP by what a class spans, SA-NCP by what a label covers, NIL by how far "
        "a number moved, as a share of its range. The paper measures f-slip's numbers by NIL and the others' by NCP.",
        "SA-NCP does not see f at all: f-slip generalizes arrays to one level whatever f is. What f costs are the values "
        "that a union adds; Figure 8b shows them.",
        f"A release falls to an attack that surely gains more than {100 * FALLS:.0f} points over guessing from its "
        "marginals. Linked tables are made to keep what quasi-identifiers tell of sensitive values, and that is what bk and "
        "qicorr gain there. k-anonymity of records is Table 2 in the example, and Mondrian's in the data.",
    ]
    details = {
        "source": found.source,
        "persons": found.persons,
        "runs": [run.to_dict() for run in found.runs],
        "attacks": [fought.to_dict() for fought in found.fought],
    }
    return Reproduced("fslip", "f-slip: the experiment of Section 9", rows, notes, details, _charts(found))


def _numbers(found: Experiment) -> list[Row]:
    """The numbers that the text names."""
    table, size = "Section 9: averages", "7, 9"
    lost = [found.mean(size, PRINTED, what) for what in ("ncp", "sa_ncp", "qi_nil", "sa_nil")]
    rmr = found.mean(size, RMR, "ncp")
    rows = [
        _near(table, "f-slip, NCP of categories", NCP, (lost[0] + lost[1]) / 2, f"QI {lost[0]:.2%}, SA {lost[1]:.2%}"),
        _near(table, "f-slip, NIL of numbers", NIL, (lost[2] + lost[3]) / 2, f"QI {lost[2]:.2%}, SA {lost[3]:.2%}"),
        _near(table, "RMR, QI-NCP (δ = 0.66)", DELTA, rmr, ""),
    ]
    for name, seconds in SECONDS.items():
        ours = found.mean(size, name, "seconds")
        printed = f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"
        rows.append(Row(table, f"{name}, time", printed, f"{ours:.2f} s", f"{seconds / ours:,.0f} times faster"))
    ours = found.mean(size, STRICT, "seconds")
    return [*rows, Row(table, f"{STRICT}, time", "", f"{ours:.2f} s", "beyond the paper")]


def _near(table: str, what: str, printed: float, ours: float, more: str) -> Row:
    said = verdict(Mean(100 * printed), Mean(100 * ours))
    parts = f" ({more})" if more else ""
    return Row(table, what, f"{printed:.2%}", f"{ours:.2%}{parts}", said)


def _claims(found: Experiment) -> list[Row]:
    """What the text says of its figures."""
    table, n = "Section 9: claims", "7, 9"
    means = {(name, what): found.mean(n, name, what) for name in METHODS for what in ("ncp", "sa_ncp", "seconds")}
    qi, sa = (means[PRINTED, what] - means[ONE_MANY, what] for what in ("ncp", "sa_ncp"))
    strict = means[STRICT, "ncp"] - means[ONE_MANY, "ncp"]
    slow = means[RMR, "seconds"] / means[PRINTED, "seconds"]
    order = means[RMR, "ncp"] > max(means[name, "ncp"] for name in (PRINTED, ONE_MANY))
    by_qi = f"{100 * qi:+.1f} points; strict {100 * strict:+.1f}"
    by_sa = f"{100 * sa:+.1f} points, but {found.mean(n, PRINTED, 'sa_added'):.0%} of its values are added by unions"
    times = f"{SECONDS[RMR] / SECONDS[PRINTED]:.0f} times"
    return [
        _claim(table, "RMR loses most of the quasi-identifiers", "66 %", f"{means[RMR, 'ncp']:.1%}", order),
        _claim(table, "f-slip loses less QI than 1:M", f"-{100 * QI_LESS:.0f} points", by_qi, qi < 0),
        _claim(table, "f-slip loses less SA than 1:M", f"-{100 * SA_LESS:.0f} points", by_sa, sa < 0),
        _steady(table, "f-slip's QI loss over n", found.of(n, PRINTED), "ncp"),
        _steady(table, "f-slip's QI loss over k", found.of("8a", PRINTED), "ncp"),
        _steady(table, "f-slip's SA loss over f, by SA-NCP", found.of("8b", PRINTED), "sa_ncp"),
        _steady(table, "f-slip's SA loss over f, by values added", found.of("8b", PRINTED), "sa_added"),
        _claim(table, "RMR is slower than f-slip", times, f"{slow:.1f} times", slow > 1),
    ]


def _claim(table: str, what: str, printed: str, ours: str, holds: bool) -> Row:
    return Row(table, what, printed, ours, "holds" if holds else "differs: does not hold")


def _steady(table: str, what: str, runs: Sequence[Run], of: str) -> Row:
    low, high = min(run.loss[of] for run in runs), max(run.loss[of] for run in runs)
    return _claim(table, what, "consistent", f"{low:.1%} to {high:.1%}", high - low <= STEADY)


PANELS = (
    ("7, 9", "Figure 7a: QI-NCP against persons", "n", "persons", "ncp"),
    ("7, 9", "Figure 7b: SA-NCP against persons", "n", "persons", "sa_ncp"),
    ("8a", "Figure 8a: QI-NCP against k", "k", "k", "ncp"),
    ("8b", "Figure 8b: NIL of amounts against f", "f", "f", "sa_nil"),
    ("8b", "Figure 8b: added values against f", "f", "f", "sa_added"),
    ("7, 9", "Figure 9: time against persons", "n", "persons", "seconds"),
)


def _figures(found: Experiment) -> list[Row]:
    """The figures' points, which the paper does not print."""
    points: dict[tuple[str, str], list[str]] = {}
    for figure, panel, letter, across, what in PANELS:
        for run in found.runs:
            if run.figure == figure:
                value = _value(run, what)
                text = f"{value:.2f} s" if what == "seconds" else f"{value:.2%}"
                points.setdefault((panel, f"{letter} = {getattr(run, across):,}"), []).append(f"{run.method} {text}")
    return [Row(panel, at, "", "; ".join(texts), UNKNOWN) for (panel, at), texts in points.items()]


def _charts(found: Experiment) -> dict[str, Callable[[], Any]]:
    """Drawn when a page asks for them."""

    def drawn(name: str, *arguments: Any) -> Callable[[], Any]:
        def draw() -> Any:
            from veilmark.report import fslip_charts

            return getattr(fslip_charts, name)(*arguments)

        return draw

    return {
        "Figure 7: loss against persons": drawn("against_size", found),
        "Figure 8: loss against k and f": drawn("against_k_and_f", found),
        "Figure 9: time against persons": drawn("time", found, SECONDS),
        "Attacks": drawn("attacks", found.fought),
    }
