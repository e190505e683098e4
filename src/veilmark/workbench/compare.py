"""The verb compare: several methods on one study, their loss, time, and what attackers learn from each release."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from veilmark.attack import ATTACKS, RULE, AttackResult, View, attack_view, without_targets
from veilmark.attack.view import view_of_sliced
from veilmark.charted import Charted
from veilmark.defaults import KNOWN, SUPPRESSION, TARGETS, K
from veilmark.errors import OptionError, did_you_mean
from veilmark.hierarchy import Levels
from veilmark.messages import Message
from veilmark.output import refuse_inputs
from veilmark.progress import step
from veilmark.readable import Grid, Summary, count, share
from veilmark.report import charts
from veilmark.scratch import Scratch
from veilmark.study.opening import engine_of, fold_persons, is_number
from veilmark.study.study import Study
from veilmark.tables.persons import PersonTable
from veilmark.utility.sliced import amounts
from veilmark.veil.anatomy import Anatomy
from veilmark.veil.folded import Generalization
from veilmark.veil.fslip import FSlip
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.onemany import OneMany
from veilmark.veil.rmr import Rmr
from veilmark.veil.sliced import Sliced
from veilmark.veil.slicing import Slicing
from veilmark.workbench.anonymize_persons import resolve_all
from veilmark.workbench.attack import check_attacks, persons_of_records


@dataclass(frozen=True)
class CompareRequest:
    """What every method is asked for, as far as it knows of it; without `l` each takes its own."""

    k: int = K
    l: float | None = None  # noqa: E741
    suppress: float = SUPPRESSION
    seed: int = 1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise OptionError(f"k must be a whole number of 1 or more, not {self.k}. Try 5.")
        if self.l is not None and not 1 <= self.l < float("inf"):
            raise OptionError(f"l must be a number of 1 or more, not {self.l:g}. Try 2.")
        if not 0 <= self.suppress <= 1:
            raise OptionError(
                f"The suppression limit is a share of the persons. It must be from 0 to 1, not {self.suppress:g}."
            )


def _fslip(asked: CompareRequest, **more: Any) -> FSlip:
    return FSlip(asked.k, 2 if asked.l is None else asked.l, seed=asked.seed, **more)


def _whole_l(asked: CompareRequest) -> int:
    if asked.l is not None and asked.l != int(asked.l):
        raise OptionError(f"This method counts sets, so l must be a whole number, not {asked.l:g}.")
    return 2 if asked.l is None else int(asked.l)


METHODS: Mapping[str, Callable[[CompareRequest], Any]] = {
    "ola": lambda asked: Generalization(asked.k, asked.l, Ola(asked.suppress), asked.seed),
    "mondrian": lambda asked: Generalization(asked.k, asked.l, Mondrian(), asked.seed),
    "fslip": _fslip,
    "fslip-linked": lambda asked: _fslip(asked, link="groups"),
    "fslip-paper": lambda asked: _fslip(asked, preset="paper"),
    "onemany": lambda asked: OneMany(asked.k, _whole_l(asked), asked.seed),
    "rmr": lambda asked: Rmr(asked.k, seed=asked.seed),
    "anatomy": lambda asked: Anatomy(_whole_l(asked), asked.seed),
    "slicing": lambda asked: Slicing(asked.k, seed=asked.seed),
}
"""Each with its tuning for what is asked."""

OF_RECORDS = ("ola", "mondrian")
"""Those that need no person column."""

DIGITS = 3
"""Of losses and risks as they are compared: a tenth of a percent, as they are shown."""

USUAL = ("ola", "mondrian", "fslip", "fslip-linked", "onemany", "rmr", "anatomy", "slicing")


@dataclass(frozen=True)
class Tried:
    """A method's release: `loss` by metric, the `seconds` it took to make, the attacks on it, and its `facts`.

    `k` is measured: the smallest class by the published quasi-identifiers. `sa_loss` is over all sensitive attributes,
    `linked` tells whether a person's row says which sensitive rows may be theirs, `meets_k` whether `k` is at least what was
    asked for. Where the method `refused`, that is its
    reason, and there is nothing else.
    """

    loss: Mapping[str, float] = field(default_factory=dict)
    sa_loss: float = 0.0
    seconds: float | None = None
    k: int | None = None
    attacks: Mapping[str, AttackResult] = field(default_factory=dict)
    linked: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: str | None = None
    meets_k: bool = True

    @property
    def total_loss(self) -> float:
        """The mean of what quasi-identifiers and sensitive attributes lose, 0 to 1."""
        return (self.loss["ncp"] + self.sa_loss) / 2

    @property
    def worst(self) -> str | None:
        """The attack that gains most over its control."""
        tried = {name: found.gain for name, found in self.attacks.items() if found.targets}
        return max(tried, key=lambda name: tried[name]) if tried else None

    @property
    def risk(self) -> float:
        """How much that attack gains."""
        return self.attacks[self.worst].gain if self.worst else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "loss": {**self.loss, "gcp": self.loss["ncp"], "sa": self.sa_loss, "total": self.total_loss}
            if self.loss
            else {},
            "seconds": self.seconds,
            "attacks": {name: found.to_dict() for name, found in self.attacks.items()},
            "k": self.k,
            "meets_k": self.meets_k if self.loss else None,
            "risk": self.risk if self.loss else None,
            "worst_attack": self.worst,
            "linked": self.linked,
            "facts": {name: value for name, value in self.facts.items() if name != "correlations"},
            "notes": list(self.notes),
            "refused": self.refused,
        }


@dataclass(frozen=True)
class Compared(Charted):
    """The methods on one study."""

    source: str
    persons: int
    records: int
    asked: CompareRequest
    methods: Mapping[str, Tried]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Usual methods that were not tried because the study does not allow them, each with the reason."""

    @property
    def made(self) -> dict[str, Tried]:
        """Those that did not refuse."""
        return {name: tried for name, tried in self.methods.items() if tried.refused is None}

    @property
    def reasons_left_out(self) -> dict[str, str]:
        """By reason, the methods that were left out, with commas between."""
        reasons = dict.fromkeys(self.left_out.values())
        return {why: ", ".join(name for name, of in self.left_out.items() if of == why) for why in reasons}

    @property
    def untargeted(self) -> list[str]:
        """Why attacks have no targets, where that is so; it is the same for all methods."""
        return without_targets(next(iter(self.made.values())).attacks) if self.made else []

    @property
    def below_k(self) -> list[str]:
        """Those whose release misses the k that was asked for; they are not on a frontier."""
        return [name for name, tried in self.made.items() if not tried.meets_k]

    def frontier(self, linked: bool = False) -> list[str]:
        """The methods that no other beats in both loss and risk, by loss, among those that reach k; with `linked`, among
        linked releases only."""
        of = {name: tried for name, tried in self.made.items() if tried.meets_k and (tried.linked or not linked)}
        best = [name for name in of if not any(_beats(other, of[name]) for other in of.values())]
        return sorted(best, key=lambda name: (of[name].total_loss, of[name].risk))

    def chart(self) -> Any:
        """The frontier of risk and loss."""
        from veilmark.report.frontier_chart import frontier

        return frontier(self)

    def summary(self) -> Summary:
        rows = []
        for name, tried in self.made.items():
            k = f"{tried.k:,}" if tried.meets_k else f"{tried.k:,} (you asked for {self.asked.k:,})"
            risk = f"{100 * tried.risk:+.1f}" if tried.worst else "-"
            rows.append((name, k, share(tried.total_loss), risk, tried.worst or "-", f"{tried.seconds or 0:.2f}"))
        best = f"On the frontier of loss and risk: {', '.join(self.frontier()) or 'none'}."
        refused = [f"{name} was not tried. {tried.refused}" for name, tried in self.methods.items() if tried.refused]
        refused += [f"Not tried: {names}. {why}" for why, names in self.reasons_left_out.items()]
        headline = f"{count(len(rows), 'method')} on {count(self.persons, 'person')}, k = {self.asked.k:,}."
        grid = Grid(("method", "k", "loss", "risk", "by attack", "seconds"), rows)
        return Summary(headline, (grid,), (best, *refused, *self.untargeted, RULE))

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "persons": self.persons,
            "records": self.records,
            "asked": dict(vars(self.asked)),
            "methods": {name: tried.to_dict() for name, tried in self.methods.items()},
            "left_out": dict(self.left_out),
            "below_k": self.below_k,
            "frontier": self.frontier(),
            "frontier_linked": self.frontier(linked=True),
        }


def _beats(one: Tried, other: Tried) -> bool:
    """Not worse in both, and better in one; what is shown alike is a tie."""
    first, second = ((round(of.total_loss, DIGITS), round(of.risk, DIGITS)) for of in (one, other))
    return first != second and first[0] <= second[0] and first[1] <= second[1]


def compare_methods(
    study: Study,
    methods: Sequence[str] = USUAL,
    asked: CompareRequest | None = None,
    attacks: Sequence[str] = ATTACKS,
    targets: int = TARGETS,
    known: int = KNOWN,
    chart: str | os.PathLike[str] | None = None,
) -> Compared:
    """Make a release by each method, one row a person, and attack it as read from its files, which are then removed.

    Without a person column each record is a person, and of the usual methods those are left out that need one. A method
    that cannot do what is asked is told of, with its reason; if none can, that is an error. `chart` is a file to draw the
    frontier of risk and loss to.
    """
    asked = asked or CompareRequest()
    _check(study, methods, attacks, targets, known)
    if chart is not None:
        charts.check_path(Path(chart))
        refuse_inputs(Path(chart), [study.source()[0]])
    with engine_of(study) as engine:
        persons = fold_persons(engine, study) if study.person else persons_of_records(engine, study)
    _refuse_impossible(asked.k, len(persons), "records" if study.person is None else "persons")
    left_out = _left_out(study) if tuple(methods) == USUAL else {}
    levels = resolve_all(study, persons)
    numeric = {name: is_number(study, name, column.domain) for name, column in persons.quasi.items()}
    trial = _Trial(persons, levels, numeric, attacks, targets, known, asked.seed)
    tried = {name: trial.run(name, asked) for name in methods if name not in left_out}
    found = Compared(study.label, len(persons), persons.records, asked, tried, left_out)
    if not found.made:
        reasons = " ".join(f"{name}: {tried.refused}" for name, tried in found.methods.items())
        raise OptionError(f"No method can meet these requirements. {reasons}")
    if chart is not None:
        from veilmark.report.frontier_chart import frontier

        charts.save(frontier(found), Path(chart))
    return found


def _refuse_impossible(k: int, persons: int, unit: str) -> None:
    if k > persons:
        raise OptionError(
            f"k = {k:,} cannot be reached: the table has only {persons:,} {unit}. Use a k of at most {persons:,}."
        )


def _left_out(study: Study) -> dict[str, str]:
    """Usual methods that `anonymize` refuses for this study."""
    if study.person is not None:
        return {}
    why = (
        f"They publish one row per person, but {study.name} has no person column. If a column identifies the "
        "person, name it: person: COLUMN."
    )
    return {name: why for name in USUAL if name not in OF_RECORDS}


def _check(study: Study, methods: Sequence[str], attacks: Sequence[str], targets: int, known: int) -> None:
    for name in methods:
        if name not in METHODS:
            raise OptionError(
                f"'{name}' is not a method to compare.{did_you_mean(name, METHODS)} Use one of: {', '.join(METHODS)}."
            )
    if not methods:
        raise OptionError("Give at least one method to compare.")
    check_attacks(study, attacks, targets, known)


@dataclass(frozen=True, eq=False)
class _Trial:
    """The persons, and how they are attacked."""

    persons: PersonTable
    levels: dict[str, Levels]
    numeric: Mapping[str, bool]
    attacks: Sequence[str]
    targets: int
    known: int
    seed: int

    def run(self, name: str, asked: CompareRequest) -> Tried:
        with step(f"Anonymizing: {name}"):
            start = time.perf_counter()
            try:
                method = METHODS[name](asked)
                if isinstance(method, Generalization):
                    method = replace(method, numeric=self.numeric)
                release = method.slice_persons(self.persons, self.levels)
            except OptionError as error:
                return Tried(refused=Message(error))
            seconds = time.perf_counter() - start
        view = self._published(release)
        persons, levels = self.persons, self.levels
        found = attack_view(view, persons, levels, self.attacks, self.targets, self.known, None, self.seed)
        loss = sa_loss(persons, levels, release.loss)
        k = int(view.size.min())
        made = (release.loss, loss, seconds, k, found, release.linked, release.facts, view.notes)
        return Tried(*made, meets_k=k >= asked.k)

    def _published(self, release: Sliced) -> View:
        """What an attacker sees, read from the files."""
        with Scratch() as folder:
            release.write(folder / "release")
            return view_of_sliced(Sliced.open(folder / "release"), self.persons, self.levels)


def sa_loss(persons: PersonTable, levels: Mapping[str, Levels], loss: Mapping[str, float]) -> float:
    """What the sensitive attributes lose, a mean over them: of an amount NIL, of others SA-NCP, and of arrays also the
    share of their published values that are other persons'."""
    numbers = len(amounts(persons, levels))
    arrays = sum(not column.single for column in persons.sensitive.values())
    words = len(persons.sensitive) - numbers
    added = loss.get("sa_added", 0.0) * (1 - loss["sa_ncp"])
    return (numbers * loss["sa_nil"] + words * loss["sa_ncp"] + arrays * added) / len(persons.sensitive)
