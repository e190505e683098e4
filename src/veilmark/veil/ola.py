"""OLA: the full-domain generalization with the least loss (El Emam et al. 2009), made exact for any metric and model.

The lattice is searched along chains by bisection. Where the models allow it, a node that passes or fails decides all
above or below it. A floor under each node's loss (what it would lose if nothing were suppressed; for discernibility,
what a node below it loses) rules out the rest, so that the result equals that of trying every node.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from veilmark import progress
from veilmark.defaults import LOSS, SECONDS, SUPPRESSION, Metric
from veilmark.errors import OptionError, did_you_mean
from veilmark.hierarchy import Levels
from veilmark.privacy.models import KAnonymity, PrivacyModel, all_monotone, failing_classes
from veilmark.tables.classes import ClassTable
from veilmark.tables.recoding import Unit, counted
from veilmark.utility.loss import METRICS, NodeLoss
from veilmark.veil.keyed import KeyedSizes
from veilmark.veil.lattice import FAILS, UNKNOWN, Bounds, Lattice, Node, NodeTables

LARGEST_LATTICE = 4_000_000
BLOCK = 2_000
"""How far short of the best a node of a larger lattice may fall is proven by sub-lattices of so many nodes."""


@dataclass(frozen=True)
class Ola:
    """Tuning of the search. `suppression` is the share of records that may be left out; `loss` decides; `weights` say
    how much each attribute counts in it; `levels` fixes an attribute's level or bounds it: {"sex": 0, "zip": (0, 3)};
    after `seconds` the best node so far is taken, by default after a minute where the lattice is too large to try all of
    it (math.inf: never). With `unit` persons, `suppression` is the share of persons who may
    lose a record. `k` and `models` are what the release must meet."""

    suppression: float = SUPPRESSION
    loss: Metric = LOSS
    weights: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, int | tuple[int, int]] = field(default_factory=dict)
    seconds: float | None = None
    unit: Unit = field(default="records", kw_only=True)
    k: int | None = field(default=None, kw_only=True)
    models: Sequence[PrivacyModel] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not 0 <= self.suppression <= 1:
            raise OptionError(f"The suppression limit is a share of the records, 0 to 1, not {self.suppression:g}.")
        if self.loss not in METRICS:
            known = ", ".join(METRICS)
            raise OptionError(f"'{self.loss}' is not a loss metric.{did_you_mean(self.loss, METRICS)} Known: {known}.")
        if self.seconds is not None and not self.seconds > 0:
            raise OptionError(f"The time limit must be more than 0 seconds, not {self.seconds:g}.")
        for name, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise OptionError(
                    f"The weight of '{name}' in the loss must be a number of 0 or more, not {weight:g}. Try 1."
                )


@dataclass(frozen=True)
class Evaluated:
    """A node that was tried: whether it passes, the records it suppresses, its classes, Σ|E|² over all of them
    (where discernibility decides) and, where it passes and publishes something, its loss."""

    node: Node
    passes: bool
    suppressed: int
    classes: int
    squares: float
    loss: float | None

    def to_dict(self) -> dict[str, Any]:
        return {"levels": list(self.node), **{k: v for k, v in vars(self).items() if k not in ("node", "squares")}}


@dataclass(frozen=True, eq=False)
class BestNode:
    """The best node with its class table and suppressed classes; `gap` is how far below its loss another node could
    still lie, as a share (0: proven best); `explored` are all nodes that were tried. All classes are suppressed only where
    no node publishes anything."""

    node: Node
    table: ClassTable
    failing: np.ndarray
    loss: float
    gap: float
    lattice_size: int
    explored: tuple[Evaluated, ...]


def search(classes: ClassTable, levels: Sequence[Levels], models: Sequence[PrivacyModel], method: Ola) -> BestNode:
    """The node of least loss among all whose failing records stay within the suppression limit."""
    bounds = level_bounds(classes, levels, method)
    task = _Search(classes, levels, models, method, bounds)
    with progress.step("Searching the lattice", task.share_done):
        if bounds.size > LARGEST_LATTICE:
            task.descend()
        else:
            task.run()
    return task.result()


def level_bounds(classes: ClassTable, levels: Sequence[Levels], method: Ola) -> Bounds:
    """The part of the lattice that the method allows."""
    unknown = [name for name in (*method.levels, *method.weights) if name not in classes.columns]
    if unknown:
        raise OptionError(
            f"'{unknown[0]}' is not a quasi-identifier of the study.{did_you_mean(unknown[0], classes.columns)}"
        )
    low, high = [], []
    for name, of in zip(classes.columns, levels, strict=True):
        given = method.levels.get(name, (0, of.height))
        least, most = (given, given) if isinstance(given, int) else given
        if not 0 <= least <= most <= of.height:
            raise OptionError(f"'{name}' has the levels 0 to {of.height}, not {given}.")
        low.append(least)
        high.append(most)
    return Bounds(tuple(low), tuple(high))


class _Search:
    """One search: its class tables, what is known of the lattice, and the best node so far."""

    def __init__(
        self,
        classes: ClassTable,
        levels: Sequence[Levels],
        models: Sequence[PrivacyModel],
        method: Ola,
        bounds: Bounds,
    ) -> None:
        self.models, self.levels, self.method, self.bounds = list(models), levels, method, bounds
        self.limit = method.suppression * counted(classes.tally, method.unit) + 1e-9
        wander = len(classes.tally.wander_group) > 0
        self.deciding = [m for m in models if all_monotone([m], method.suppression > 0, wander)]
        self.all_decide = len(self.deciding) == len(self.models)
        self.tables = NodeTables(classes, levels, bounds.low)
        self.sizes = KeyedSizes(classes, levels) if self._sizes_suffice(classes) else None
        self.losses = NodeLoss(classes, levels, method.weights)
        self.best: tuple[float, Node] | None = None
        self.least_failing: tuple[int, Node] | None = None
        self.explored: list[Evaluated] = []
        self.emptied: Node | None = None
        self.everyone = classes.total_records
        self.gap = 0.0
        self.lattice: Lattice | None = None
        seconds = method.seconds or (SECONDS if bounds.size > LARGEST_LATTICE else None)
        self.deadline = time.monotonic() + seconds if seconds else None

    @property
    def largest_failing(self) -> int | None:
        """How many records a failing class can have, where that is known."""
        plain = all(isinstance(m, KAnonymity) for m in self.models) and self.sizes is not None
        return max(m.k for m in self.models if isinstance(m, KAnonymity)) - 1 if plain else None

    def _sizes_suffice(self, classes: ClassTable) -> bool:
        """Whether class sizes alone decide, so that keys will do for class tables."""
        plain = classes.tally.settled is None and classes.population is None and self.method.unit == "records"
        return plain and all(isinstance(m, KAnonymity) for m in self.models) and KeyedSizes.fits(classes, self.levels)

    # What is known

    def floors(self) -> np.ndarray:
        """A floor under each node's loss, before any is tried."""
        spans = list(zip(self.bounds.low, self.bounds.high, strict=True))
        if self.method.loss in ("dm", "dm_star"):
            return self._discernibility_floors(spans) * (1 - 1e-12)
        floor = np.zeros(self.bounds.shape)
        for i, (low, high) in enumerate(spans):
            floor += self._along(i, self.losses.floor(self.method.loss, i)[low : high + 1])
        return floor * (1 - 1e-12)

    def _discernibility_floors(self, spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """Σ|E|² is least where each label of one attribute is split evenly by all labels of the others."""
        labels = np.ones(self.bounds.shape)
        for i, (low, high) in enumerate(spans):
            labels *= self._along(i, np.array([len(self.levels[i].labels[n]) for n in range(low, high + 1)]))
        floor = np.zeros(self.bounds.shape)
        for i, (low, high) in enumerate(spans):
            own = np.array([len(self.levels[i].labels[n]) for n in range(low, high + 1)])
            np.maximum(floor, self._along(i, self.losses.squares(i)[low : high + 1] * own) / labels, out=floor)
        return floor

    def _along(self, axis: int, values: np.ndarray) -> np.ndarray:
        """Values of one attribute's levels, shaped to spread over the lattice."""
        shape = [1] * len(self.bounds.shape)
        shape[axis] = -1
        return values.reshape(shape)

    def dearer(self) -> np.ndarray:
        """What each suppressed record adds at least to a node's loss."""
        result = np.zeros(self.bounds.shape)
        if self.method.loss == "dm" and self.all_decide and self.largest_failing is not None:
            return result + max(self.everyone - 2 * self.largest_failing, 0)
        if self.method.loss in ("dm", "dm_star") or not self.all_decide:
            return result
        for i, (low, high) in enumerate(zip(self.bounds.low, self.bounds.high, strict=True)):
            result += self._along(i, self.losses.dearer(self.method.loss, i)[low : high + 1])
        return result * (1 - 1e-12)

    def evaluate(self, node: Node) -> Evaluated:
        """Try a node, and note what it decides."""
        found = self._by_table(node) if self.sizes is None else self._by_sizes(node, self.sizes)
        self.explored.append(found)
        if found.loss is not None and (self.best is None or (found.loss, node) < self.best):
            self.best = (found.loss, node)
        if found.passes and found.loss is None:
            self.emptied = node
        if not found.passes and (self.least_failing is None or found.suppressed < self.least_failing[0]):
            self.least_failing = (found.suppressed, node)
        return found

    def _by_sizes(self, node: Node, sizes: KeyedSizes) -> Evaluated:
        keys, records = sizes.at(node)
        failing = records < max(m.k for m in self.models if isinstance(m, KAnonymity))
        lost = records[failing]
        suppressed = int(lost.sum())
        loss = None
        if suppressed <= self.limit and suppressed < self.everyone:
            loss = self._loss(node, records, failing, lambda: sizes.codes(keys[failing]))
        return Evaluated(node, suppressed <= self.limit, suppressed, len(records), self._squares(records), loss)

    def _by_table(self, node: Node) -> Evaluated:
        table = self.tables.table(node)
        failing = self.failing(table)
        passes = counted(table.tally.take(failing), self.method.unit) <= self.limit
        suppressed, classes = int(table.records[failing].sum()), int((table.records > 0).sum())
        loss = None
        if passes and suppressed < self.everyone:
            loss = self._loss(node, table.records, failing, lambda: table.codes[:, failing])
        return Evaluated(node, passes, suppressed, classes, self._squares(table.records), loss)

    def _squares(self, records: np.ndarray) -> float:
        """Σ|E|², where discernibility decides: no generalization has less of it, by either kind."""
        if self.method.loss not in ("dm", "dm_star"):
            return 0.0
        sizes = records.astype(np.float64)
        return float(np.square(sizes, out=sizes).sum())

    def _loss(
        self,
        node: Node,
        records: np.ndarray,
        failing: np.ndarray,
        codes: Callable[[], Sequence[np.ndarray] | np.ndarray],
    ) -> float:
        if self.method.loss in ("dm", "dm_star"):
            return self.losses.discernibility(self.method.loss, records, failing)
        return self.losses.additive(self.method.loss, node, records[failing], codes())

    def failing(self, table: ClassTable, models: Sequence[PrivacyModel] | None = None) -> np.ndarray:
        """The classes that must go; classes of the population alone hold no record and never matter."""
        models = self.models if models is None else models
        if table.population is None:
            return failing_classes(models, table)
        present = table.records > 0
        failing = np.zeros(len(table), dtype=bool)
        failing[present] = failing_classes(models, table.take(present))
        return failing

    def decide(self, lattice: Lattice, found: Evaluated) -> None:
        """What a tried node says of others."""
        place = self.bounds.place(found.node)
        lattice.seen[place] = True
        if self.method.loss in ("dm", "dm_star"):
            lattice.raise_floor(found.node, found.squares * (1 - 1e-12))
        if self.all_decide:
            lattice.raise_lost(found.node, found.suppressed)
        if found.passes and self.all_decide:
            lattice.mark_above(found.node)
        elif not found.passes:
            lattice.state[place] = FAILS
            if self.all_decide or self.fails_for_good(found.node):
                lattice.mark_below(found.node)

    def fails_for_good(self, node: Node) -> bool:
        """Whether the models that decide for all below fail here by themselves."""
        if not self.deciding:
            return False
        table = self.tables.table(node)
        return counted(table.tally.take(self.failing(table, self.deciding)), self.method.unit) > self.limit

    # The search

    def run(self) -> None:
        """Try nodes until none is left that could be better."""
        self.lattice = lattice = Lattice(self.bounds, self.floors(), self.dearer())
        if self.deadline is not None:
            self.decide(lattice, self.evaluate(self.bounds.high))
        while True:
            best = np.inf if self.best is None else self.best[0]
            candidates = lattice.open(best)
            if not candidates.any():
                return
            if self.out_of_time():
                lowest = float(lattice.floor[candidates].min())
                self.gap = 1 - lowest / best if self.best is not None and best > 0 else 1.0
                return
            unknown = candidates & (lattice.state == UNKNOWN)
            if self.all_decide and unknown.any():
                self.bisect(lattice, self.chain(unknown))
            else:
                self.decide(lattice, self.evaluate(self.cheapest(lattice, candidates)))

    def chain(self, unknown: np.ndarray) -> list[Node]:
        """A chain of unknown nodes from a lowest one upwards, one step in one attribute at a time."""
        heights = _heights(unknown.shape)
        place = np.unravel_index(int(np.argmin(np.where(unknown, heights, np.iinfo(np.int32).max))), unknown.shape)
        chain = [tuple(int(p) for p in place)]
        while True:
            above = ((*chain[-1][:i], p + 1, *chain[-1][i + 1 :]) for i, p in enumerate(chain[-1]))
            step = next((a for a in above if _within(a, unknown.shape) and unknown[a]), None)
            if step is None:
                return [self.bounds.node(p) for p in chain]
            chain.append(step)

    def bisect(self, lattice: Lattice, chain: list[Node]) -> None:
        """Find where a chain begins to pass."""
        low, high = 0, len(chain)
        while low < high and not self.out_of_time():
            middle = (low + high) // 2
            found = self.evaluate(chain[middle])
            self.decide(lattice, found)
            low, high = (low, middle) if found.passes else (middle + 1, high)

    def cheapest(self, lattice: Lattice, candidates: np.ndarray) -> Node:
        """The candidate with the lowest floor, the most general among equals."""
        floors = np.where(candidates, lattice.floor, np.inf)
        lowest = floors == floors.min()
        place = np.unravel_index(int(np.argmax(np.where(lowest, _heights(candidates.shape), -1))), candidates.shape)
        return self.bounds.node([int(p) for p in place])

    # Lattices too large to hold

    def descend(self) -> None:
        """From the top, always the best step down that still passes; then exchanges of one level for another."""
        self.gap = 1.0
        found: Evaluated | None = self.evaluate(self.bounds.high)
        if found is None or not found.passes:
            return
        while found is not None and not self.out_of_time():
            node = found.node
            found = self.best_of(self.steps(node, down=1)) or self.better(self.exchanges(node))
        self.gap = self.proven_gap()

    def steps(self, node: Node, down: int) -> Iterator[Node]:
        """The node with one attribute a level lower (or, down -1, higher)."""
        for i, level in enumerate(node):
            if self.bounds.low[i] <= level - down <= self.bounds.high[i]:
                yield (*node[:i], level - down, *node[i + 1 :])

    def exchanges(self, node: Node) -> Iterator[Node]:
        """One attribute a level higher, and another a level lower."""
        return (lower for higher in self.steps(node, down=-1) for lower in self.steps(higher, down=1) if lower != node)

    def best_of(self, nodes: Iterable[Node]) -> Evaluated | None:
        """The node that passes with the least loss."""
        tried = []
        for node in nodes:
            if self.out_of_time():
                break
            found = self.evaluate(node)
            tried += [found] if found.loss is not None else []
        return min(tried, key=lambda found: found.loss or 0.0, default=None)

    def better(self, nodes: Iterable[Node]) -> Evaluated | None:
        """The best of the nodes, if nothing before was as good."""
        before = self.best
        found = self.best_of(nodes)
        return found if found is not None and self.best != before else None

    def proven_gap(self) -> float:
        """By what share another node could lose less: in any node that passes, each block of attributes has levels that
        pass with all others at the top, which costs at least what the cheapest such levels do."""
        if self.best is None or self.best[0] <= 0 or not self.all_decide or self.method.loss in ("dm", "dm_star"):
            return 1.0
        blocks: list[list[int]] = [[]]
        for i, size in enumerate(self.bounds.shape):
            if blocks[-1] and size * math.prod(self.bounds.shape[j] for j in blocks[-1]) > BLOCK:
                blocks.append([])
            blocks[-1].append(i)
        return max(0.0, 1 - sum(map(self.cheapest_block, blocks)) / self.best[0])

    def cheapest_block(self, block: Sequence[int]) -> float:
        """The least loss, suppression aside, of some attributes' levels that pass with all others at the top."""
        cost = np.zeros([self.bounds.shape[i] for i in block])
        for axis, i in enumerate(block):
            low, high = self.bounds.low[i], self.bounds.high[i]
            own = self.losses.floor(self.method.loss, i)[low : high + 1]
            cost += own.reshape([-1 if a == axis else 1 for a in range(len(block))])
        while True:
            place = np.unravel_index(int(np.argmin(cost)), cost.shape)
            node = list(self.bounds.high)
            for i, p in zip(block, place, strict=True):
                node[i] = self.bounds.low[i] + int(p)
            if self.out_of_time():
                return float(cost.min())
            if self.evaluate(tuple(node)).passes:
                return float(cost[place])
            cost[tuple(slice(None, p + 1) for p in place)] = np.inf

    def out_of_time(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def share_done(self) -> float | None:
        """For the progress bar: the share of the lattice that is settled."""
        if self.lattice is None:
            return None
        best = np.inf if self.best is None else self.best[0]
        return 1 - float(self.lattice.open(best).mean())

    def result(self) -> BestNode:
        """The best node, or an error that says how near the search came."""
        if self.best is None and self.emptied is None:
            raise OptionError(self.no_node())
        node = self.emptied if self.best is None else self.best[1]
        assert node is not None
        table = self.tables.table(node)
        failing = self.failing(table)
        loss = self.losses.of(self.method.loss, table, node, failing) if self.best is None else self.best[0]
        return BestNode(node, table, failing, loss, self.gap, self.bounds.size, tuple(self.explored))

    def no_node(self) -> str:
        wanted = " and ".join(map(str, self.models))
        if self.least_failing is None:
            return f"The time limit ended before a generalization with {wanted} was found. Allow more seconds."
        suppressed, node = self.least_failing
        share = suppressed / max(int(self.tables.table(node).records.sum()), 1)
        return (
            f"No generalization reaches {wanted} with at most {self.method.suppression:.1%} of the records "
            f"suppressed: the closest one would suppress {suppressed:,} ({share:.1%}). Relax the limits, allow "
            "more suppression, or give an attribute a coarser hierarchy."
        )


@cache
def _heights(shape: tuple[int, ...]) -> np.ndarray:
    """The sum of the levels of each node."""
    heights = np.zeros(shape, dtype=np.int32)
    for axis in np.meshgrid(*map(np.arange, shape), indexing="ij", sparse=True):
        heights += axis
    return heights


def _within(place: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(p < s for p, s in zip(place, shape, strict=True))
