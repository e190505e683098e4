"""The AnonTokens paper's experiment: samples of three populations, anonymized at 25 settings, and what decoys they can have.

A setting is a k and a limit of suppression. OLA chooses by DM*. The class sizes of a sample at all 60 or 120 nodes of the
lattice serve all settings; the population's classes at a node serve all samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from veilmark import progress
from veilmark.errors import OptionError
from veilmark.hierarchy import Levels
from veilmark.mark.discover import Linked
from veilmark.mark.reports import Detectability, detectability
from veilmark.reproduce import anontokens_paper as paper
from veilmark.reproduce.comparison import Mean, Reproduced, Row, compare
from veilmark.reproduce.population import DATA, STATES, State, draw_sample, levels_of, population
from veilmark.tables.classes import ClassTable
from veilmark.veil.keyed import KeyedSizes
from veilmark.veil.lattice import Node

KS = (2, 5, 10, 20, 50)
SUPPRESSIONS = (0.0, 0.02, 0.05, 0.10, 0.15)
SHARE = 0.01
"""Of the population, in a sample."""
FIGURE_2_KS = (2, 10, 20)
FIGURE_3 = (10, 0.05)

TITLE = "AnonTokens: tracing re-identification attacks through decoy records (Antonatos et al.)"

TABLES = {
    "2": "2: classes of the populations",
    "4": f"4: {' / '.join(paper.FEASIBILITY)}",
    "5": f"5: {' / '.join(paper.DETECTABILITY)}",
    "Figure 2": "Figure 2: risks of candidates, as the text tells them",
}


class SampleNodes:
    """The class sizes of a table at every node of the lattice, and so OLA's choice by DM* for any k and suppression."""

    def __init__(self, classes: ClassTable, levels: Sequence[Levels], largest_k: int) -> None:
        self._sizes = KeyedSizes(classes, levels)
        self._everyone = classes.total_records
        self.nodes: list[Node] = list(product(*(range(of.height + 1) for of in levels)))
        self._squares = np.empty(len(self.nodes))
        self._smaller = np.empty((len(self.nodes), largest_k))
        # From the bottom up, so that each node is made from one just below it.
        for i in sorted(range(len(self.nodes)), key=lambda i: sum(self.nodes[i])):
            records = self.at(self.nodes[i])[1]
            self._squares[i] = np.square(records, dtype=np.float64).sum()
            by_size = np.bincount(np.minimum(records, largest_k), minlength=largest_k + 1)[:largest_k]
            self._smaller[i] = np.cumsum(by_size * np.arange(largest_k))

    def at(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """The keys of a node's classes, ascending, and their records."""
        return self._sizes.at(node)

    def best(self, k: int, suppression: float) -> Node:
        """The node of least Σ|E|² with at most this share of the records in classes smaller than k; of equals, the first."""
        passes = self._smaller[:, k - 1] <= suppression * self._everyone + 1e-9
        if not passes.any():
            raise OptionError(f"No generalization reaches k = {k}: there are {self._everyone:,} records.")
        return self.nodes[int(np.argmin(np.where(passes, self._squares, np.inf)))]


class PeopleNodes:
    """The classes of a population at the nodes that were asked for."""

    def __init__(self, classes: ClassTable, levels: Sequence[Levels]) -> None:
        self.columns = classes.columns
        self._sizes = KeyedSizes(classes, levels)
        self._found: dict[Node, tuple[np.ndarray, np.ndarray]] = {}

    def at(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        if node not in self._found:
            self._found[node] = self._sizes.at(node)
        return self._found[node]

    def link(self, sample: SampleNodes, node: Node, k: int) -> Linked:
        """A sample at a node, classes smaller than k suppressed, linked to this population, from which it was drawn."""
        keys, people = self.at(node)
        own, records = sample.at(node)
        published, suppressed = np.zeros((2, len(keys)), dtype=np.int64)
        place = np.searchsorted(keys, own)
        published[place] = np.where(records >= k, records, 0)
        suppressed[place] = np.where(records >= k, 0, records)
        nothing = np.empty((len(self.columns), 0), dtype=np.int32)
        return Linked(self.columns, (), nothing, published, suppressed, people, nothing[0])


@dataclass(frozen=True)
class Outcome:
    """One sample at one setting; candidates are counted as the paper does, with classes that suppression emptied, and
    `usable` are those without."""

    node: Node
    suppressed: float
    min_link: int
    records: int
    usable: int
    seen: Detectability


@dataclass(frozen=True, eq=False)
class Setting:
    """All samples of a state at one setting."""

    state: str
    k: int
    suppression: float
    levels: Mapping[str, int]
    outcomes: tuple[Outcome, ...]

    @property
    def key(self) -> paper.Key:
        return self.state, self.k, self.suppression

    @property
    def label(self) -> str:
        return f"{self.state}, k = {self.k}, {self.suppression:.0%}"

    def feasibility(self) -> dict[str, Mean]:
        """Table 4."""
        found = self.outcomes
        columns = ([o.min_link for o in found], [o.seen.candidates for o in found], [o.records for o in found])
        return dict(zip(paper.FEASIBILITY, map(mean, columns), strict=True))

    def detectability(self) -> dict[str, Mean]:
        """Table 5."""
        columns = [o.seen.classes for o in self.outcomes], [o.seen.near_k for o in self.outcomes]
        return dict(zip(paper.DETECTABILITY, map(mean, columns), strict=True))

    def to_dict(self) -> dict[str, Any]:
        first = self.outcomes[0]
        figures = {**self.feasibility(), **self.detectability()}
        return {
            "state": self.state,
            "k": self.k,
            "suppression": self.suppression,
            "levels": dict(self.levels),
            "suppressed": mean([o.suppressed for o in self.outcomes]).to_dict(),
            "usable": mean([o.usable for o in self.outcomes]).to_dict(),
            "figures": {name: of.to_dict() for name, of in figures.items()},
            "first_sample": first.seen.to_dict(),
        }


def mean(values: Sequence[float]) -> Mean:
    """Mean and standard deviation, of the samples themselves."""
    return Mean(float(np.mean(values)), float(np.std(values)))


def run(
    samples: int = 50,
    seed: int = 1,
    folder: Path | None = None,
    states: Sequence[State] = STATES,
    ks: Sequence[int] = KS,
    suppressions: Sequence[float] = SUPPRESSIONS,
) -> Reproduced:
    """The paper's Tables 2, 4 and 5 and Figures 2 and 3 beside ours.

    `folder` holds the files that the populations are made from; if not given, it is looked for in its usual place, and the
    built-in voters stand in where it is not there.
    """
    if samples < 1:
        raise OptionError(f"There must be at least one sample, not {samples}.")
    folder = folder or (DATA if DATA.is_dir() else None)
    started = time.perf_counter()
    rows: list[Row] = []
    settings: list[Setting] = []
    sizes: dict[str, int] = {}
    done = 0
    with progress.step("Anonymizing samples", lambda: done / (samples * len(states))):
        for state in states:
            people = population(state, seed, folder)
            sizes[state.name] = len(people)
            levels = levels_of(people)
            nodes = PeopleNodes(people, levels)
            found = []
            for i in range(samples):
                found.append(grid(people, levels, nodes, int(SHARE * state.voters), [seed, i], ks, suppressions))
                done += 1
            settings += _settings(state, people.columns, found)
            rows.append(compare(TABLES["2"], state.name, {"": Mean(state.printed_classes)}, {"": Mean(len(people))}))
    rows += _tables(settings) + _claims(settings)
    seconds = time.perf_counter() - started
    return Reproduced(
        "anontokens",
        TITLE,
        rows,
        _notes(samples, folder, seconds),
        {
            "samples": samples,
            "seed": seed,
            "seconds": seconds,
            "populations": sizes,
            "settings": [setting.to_dict() for setting in settings],
        },
        {
            "Figure 2: risk multiplication factor of candidates": partial(_figure_2, settings),
            "Figure 3: sizes of the anonymized samples' classes, k = 10, 5 %": partial(_figure_3, settings),
        },
    )


def grid(
    people: ClassTable,
    levels: Sequence[Levels],
    nodes: PeopleNodes,
    records: int,
    seed: Sequence[int],
    ks: Sequence[int] = KS,
    suppressions: Sequence[float] = SUPPRESSIONS,
) -> dict[tuple[int, float], Outcome]:
    """One sample at all settings."""
    sample = SampleNodes(draw_sample(people, records, seed), levels, max(ks))
    found: dict[tuple[int, float], Outcome] = {}
    linked: dict[tuple[int, Node], Outcome] = {}
    for k, suppression in product(ks, suppressions):
        node = sample.best(k, suppression)
        if (k, node) not in linked:
            linked[k, node] = _outcome(nodes.link(sample, node, k), node, k)
        found[k, suppression] = linked[k, node]
    return found


def _outcome(linked: Linked, node: Node, k: int) -> Outcome:
    candidates = linked.found(k)
    lost = int(linked.suppressed.sum())
    return Outcome(
        node,
        lost / (lost + int(linked.published.sum())),
        linked.min_link,
        int(linked.population[candidates].sum()),
        int(linked.candidates(k).sum()),
        detectability(linked, k, candidates),
    )


def _settings(
    state: State, columns: Sequence[str], found: Sequence[Mapping[tuple[int, float], Outcome]]
) -> list[Setting]:
    return [
        Setting(state.name, *key, dict(zip(columns, found[0][key].node, strict=True)), tuple(of[key] for of in found))
        for key in found[0]
    ]


# Beside the paper.


def _tables(settings: Sequence[Setting]) -> list[Row]:
    four = paper.printed(paper.TABLE_4, paper.FEASIBILITY)
    five = paper.printed(paper.TABLE_5, paper.DETECTABILITY)
    rows = [compare(TABLES["4"], s.label, four.get(s.key, {}), s.feasibility()) for s in settings]
    return rows + [compare(TABLES["5"], s.label, five.get(s.key, {}), s.detectability()) for s in settings]


def _claims(settings: Sequence[Setting]) -> list[Row]:
    """What the text says of Figure 2; of risks above four times it can only mean k = 10 and 20."""
    rows = []
    for name in dict.fromkeys(s.state for s in settings):
        shown = [s for s in settings if s.state == name and s.k in FIGURE_2_KS and s.suppression]
        seen = {s.key: s.outcomes[0].seen for s in shown if s.outcomes[0].seen.candidates}
        highest = [of.highest or 0.0 for of in seen.values()]
        up_to = [100 * of.up_to_1_5 / of.candidates for of in seen.values()]
        above = [100 * of.above_4 / of.candidates for key, of in seen.items() if key[1] >= 10]
        rows += _claim(f"{name}: highest multiple", paper.HIGHEST_MULTIPLE[name], highest, max)
        rows += _claim(f"{name}: % up to 1.5 times, at least", paper.LEAST_SHARE_UP_TO_1_5[name], up_to, min)
        rows += _claim(f"{name}: % above 4 times, at least", paper.SHARE_ABOVE_4[name], above, min)
    for s in settings:
        if s.key == (paper.STATES[0], 10, 0.10):
            found = [o.seen.up_to_1_2 for o in s.outcomes]
            what = f"{s.label}: candidates up to 1.2 times"
            rows.append(compare(TABLES["Figure 2"], what, {"": Mean(paper.UP_TO_1_2)}, {"": mean(found)}))
    return rows


def _claim(what: str, printed: float, ours: Sequence[float], pick: Callable[[Sequence[float]], float]) -> list[Row]:
    return [compare(TABLES["Figure 2"], what, {"": Mean(printed)}, {"": Mean(pick(ours))})] if ours else []


def _notes(samples: int, folder: Path | None, seconds: float) -> list[str]:
    made = (
        "The populations are made from public figures of Florida's, Michigan's and Colorado's ZIP areas and counties, as "
        "the paper's own rolls are not public. Unknown genders were fitted to Table 2, odd birth years and the spread of "
        "ages to Table 5: that these agree is no independent proof."
        if folder
        else "The files of ZIP areas are not here, so that built-in voters, shaped like Florida's, stand in for all three "
        "states: compare magnitudes."
    )
    return [
        made,
        f"Means and, in brackets, standard deviations of {samples:,} samples of 1 % a state (the paper: 50), made in "
        f"{seconds:.1f} s. Figures 2 and 3 are of the first sample.",
        "Agrees: off by 10 % at most; within the spread: by two standard deviations, and not by a factor of 3; near: by "
        "25 %. – is not legible in our copy of Table 4.",
        "minLink is the smallest of thousands of counts, and what lies below it varies with it: compare magnitudes.",
    ]


def _figure_2(settings: Sequence[Setting]) -> Any:
    from veilmark.report.decoy_charts import risk_curves

    shown = [s for s in settings if s.k in FIGURE_2_KS and s.suppression]
    return risk_curves([(s.state, s.k, s.suppression, s.outcomes[0].seen) for s in shown])


def _figure_3(settings: Sequence[Setting]) -> Any:
    from veilmark.report.decoy_charts import size_bars

    return size_bars([(s.state, s.outcomes[0].seen) for s in settings if (s.k, s.suppression) == FIGURE_3])
