"""Whether the f-slip paper's claims on attacks hold: on its own example, and on the data of its experiment.

It claims that k-anonymity made for one record a person (its Table 2) falls to five attacks, and that f-slip resists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from veilmark.attack import ATTACKS, AttackResult, attack_view
from veilmark.attack.view import view_of_sliced
from veilmark.hierarchy import Levels
from veilmark.progress import step
from veilmark.reproduce.comparison import Row
from veilmark.reproduce.fslip import COLUMNS, GROUPS, example_study
from veilmark.study.opening import engine_of, fold_persons
from veilmark.study.study import Study
from veilmark.tables.persons import PersonTable
from veilmark.veil.fslip import FSlip
from veilmark.veil.mondrian import Mondrian
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.anonymize_persons import resolve_all
from veilmark.workbench.attack import attack

TABLE_2 = """
15-20 F 50000-60000 20000 medium Bachelors 401
15-20 M 50000-60000 10201 high 9th 422
10-19 M 55000-75000 10201 high 9th 490
10-19 F 55000-75000 17258 medium 12th 724
17 {F,_M} 60000-70000 17258 medium 12th 408
30 {F,_M} 60000-70000 25364 low Master 276
30 F 68000 25364 low Master 402
16 M 75000 19223 medium 11th 492
32 M 56000 21012 low Master 272
30-39 * 50000-59999 21012 low Master 404
30-39 * 50000-59999 21012 low Master 490
"""
"""The paper's, with `1*` written as 10-19 and so on. Alan, of 13 years, stands in a class 15-20 there."""

CLAIMED = ("bk", "msacorr", "qicorr", "mcorr", "nmcorr")
FALLS = 0.05
"""A release falls to an attack whose gain over guessing is surely more than this."""
FEW = 100
"""Fewer targets cannot show that a release resists."""
RECORDS = "k-anonymity of records"
EXAMPLE, WHOLE = "the paper's example", "the data of Section 9"


@dataclass(frozen=True)
class Fought:
    """Attacks on one release of one table. `k` was asked for; `facts` are k and l as they came out."""

    source: str
    release: str
    k: int
    facts: Mapping[str, float]
    attacks: Mapping[str, AttackResult]

    @property
    def falls_to(self) -> list[str]:
        """The attacks that surely gain more than a little."""
        return [n for n, a in self.attacks.items() if n in CLAIMED and a.targets and a.interval[0] - a.control > FALLS]

    @property
    def broken(self) -> list[str]:
        """What is wrong with it, whatever attackers make of that."""
        short = [f"k is {self.facts['k']:g}, not {self.k}"] if self.facts["k"] < self.k else []
        return short + (["a slice holds one value only"] if self.facts.get("l") == 1 else [])

    def to_dict(self) -> dict[str, Any]:
        found = {name: result.to_dict() for name, result in self.attacks.items()}
        own = {"k": self.k, "facts": dict(self.facts), "attacks": found}
        return {"source": self.source, "release": self.release, **own, "falls_to": self.falls_to}


def fight(
    study: Study,
    persons: PersonTable,
    levels: dict[str, Levels],
    groups: tuple[tuple[str, ...], ...],
    k: int,
    targets: int,
    seed: int,
) -> list[Fought]:
    """The attacks on the paper's example, and on the study's."""
    example = example_study()
    with engine_of(example) as engine:
        six = fold_persons(engine, example)
    found = [_of_records(EXAMPLE, example, _table_2(), 2, targets, seed)]
    found += _of_fslip(EXAMPLE, six, resolve_all(example, six), GROUPS, 2, targets, seed)
    with step(f"Anonymizing: {RECORDS}"):
        alone = replace(study, spec=study.spec.model_copy(update={"person": None}))
        release = anonymize(alone, method=Mondrian(k=k)).table()
    found.append(_of_records(WHOLE, study, release, k, targets, seed))
    return found + _of_fslip(WHOLE, persons, levels, groups, k, targets, seed)


def _table_2() -> pa.Table:
    rows = [[cell.replace("_", " ") for cell in line.split()] for line in TABLE_2.split("\n") if line]
    return pa.table(dict(zip(COLUMNS[2:], zip(*rows, strict=True), strict=True)))


def _of_records(source: str, study: Study, release: pa.Table, k: int, targets: int, seed: int) -> Fought:
    found = attack(study, release, ATTACKS, targets, seed=seed)
    sizes = release.group_by(study.quasi).aggregate([([], "count_all")])["count_all"]
    return Fought(source, RECORDS, k, {"k": pc.min(sizes).as_py()}, found.attacks)


def _of_fslip(
    source: str,
    persons: PersonTable,
    levels: dict[str, Levels],
    groups: tuple[tuple[str, ...], ...],
    k: int,
    targets: int,
    seed: int,
) -> list[Fought]:
    found = []
    sound = FSlip(k, groups=groups)
    printed = replace(sound, preset="paper")
    for words, method in (
        ("f-slip as printed", printed),
        ("f-slip strict", sound),
        ("f-slip as printed, linked", replace(printed, link="groups")),
        ("f-slip strict, linked", replace(sound, link="groups")),
    ):
        release = method.slice_persons(persons, levels)
        view = view_of_sliced(release, persons, levels)
        results = attack_view(view, persons, levels, ATTACKS, targets, seed=seed)
        found.append(Fought(source, words, k, {name: release.facts[name] for name in ("k", "l")}, results))
    return found


def attack_rows(fought: Sequence[Fought]) -> list[Row]:
    """A row a release: what the paper claims of it, and what the attacks came to, with guessing in brackets."""
    return [_row(of) for of in fought]


def _row(of: Fought) -> Row:
    shown = ", ".join(
        f"{name} {found.success:.0%} ({found.control:.0%})" for name, found in of.attacks.items() if found.targets
    )
    facts = ", ".join(f"{name} = {value:g}" for name, value in of.facts.items())
    return Row(f"Attacks on {of.source}", of.release, _claim(of), f"{facts}; {shown}", _verdict(of))


def _claim(of: Fought) -> str:
    if "strict" in of.release:
        return ""
    return "falls to all five" if of.release == RECORDS else "resists all five"


def _verdict(of: Fought) -> str:
    """What is promised and not kept, and to which attacks it falls; `differs` where the paper says otherwise."""
    falls, claim = of.falls_to, _claim(of)
    found = [*of.broken, *([f"falls to {', '.join(falls)}"] if falls else []), *_most(of)]
    wrong = not falls if claim.startswith("falls") else bool(claim) and bool(falls or of.broken)
    return ("differs: " if wrong else "") + "; ".join(found)


def _most(of: Fought) -> list[str]:
    """What is gained most by the attacks that it does not fall to."""
    gains = {name: of.attacks[name].gain for name in CLAIMED if name in of.attacks and name not in of.falls_to}
    if not gains:
        return []
    worst = max(gains, key=lambda name: gains[name])
    few = any(of.attacks[name].targets < FEW for name in gains)
    rest = "too few persons to tell" if few else "resists" if not of.falls_to else "resists the rest"
    return [f"{rest}, gaining at most {100 * gains[worst]:+.1f} points by {worst}"]
