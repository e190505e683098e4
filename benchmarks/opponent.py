"""What an opponent can do to tracing: one row an attack, each tried against fresh keys.

    python -m benchmarks.opponent [--trials 100] [--markdown] [NAME …]

An attack is a function of a random generator that plays one trial and returns an `Outcome`: whether a guilty one was named,
and whether an innocent one was. `@attack("name")` adds it to the table. Attacks on leaked files play with `Game`, a release
of 300,000 persons to 30 recipients in memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.opponent_claims import CLAIMS
from veilmark.mark.code import bits, derive, make_code, needed_length
from veilmark.trace.accuse import trace_file
from veilmark.trace.evidence import Marked
from veilmark.trace.leaked import LeakedTable

PERSONS, RECIPIENTS, SMALLEST = 300_000, 30, 5
FALSE_ACCUSATION = 1e-6
NAMES = tuple(f"recipient {i}" for i in range(RECIPIENTS))


@dataclass(frozen=True)
class Outcome:
    """Of one trial. `guilty_named` is None where nobody is guilty."""

    guilty_named: bool | None
    innocent_named: bool


Trial = Callable[[np.random.Generator], Outcome]
ATTACKS: dict[str, Trial] = {}


def attack(name: str) -> Callable[[Trial], Trial]:
    """Add a row to the table."""

    def added(trial: Trial) -> Trial:
        ATTACKS[name] = trial
        return trial

    return added


def outcome(accused: set[str], guilty: set[str]) -> Outcome:
    return Outcome(bool(accused & guilty) if guilty else None, bool(accused - guilty))


# A release in memory.


ABOVE: dict[str, list[list[str]]] = {
    "zip": [
        [f"{300 + i}**" for i in range(100)],
        [f"{30 + i // 10}***" for i in range(100)],
        ["3****"] * 100,
        ["*"] * 100,
    ],
    "gender": [["F", "M"], ["*", "*"]],
    "yob": [
        [f"{1920 + 4 * i}-{1923 + 4 * i}" for i in range(20)],
        [f"{1920 + 8 * (i // 2)}-{1927 + 8 * (i // 2)}" for i in range(20)],
        ["*"] * 20,
    ],
    "race": [["asian", "black", "hispanic", "other", "white"], ["*"] * 5],
}
COLUMNS = tuple(ABOVE)
SHAPE = tuple(len(levels[0]) for levels in ABOVE.values())


@cache
def source(persons: int = PERSONS, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The classes of a table with at least `SMALLEST` records, as columns of label numbers, and their sizes."""
    random = np.random.default_rng(seed)
    chances = [random.dirichlet(np.full(n, 1.5 if n > 2 else 50)) for n in SHAPE]
    places = chances[0][:, None, None, None] * random.gamma(4, 1, (SHAPE[0], 1, 1, SHAPE[3]))  # races live apart
    cells = places * chances[1][:, None, None] * chances[2][:, None] * chances[3]
    counts = random.multinomial(persons, cells.ravel() / cells.sum())
    kept = np.flatnonzero(counts >= SMALLEST)
    return np.array(np.unravel_index(kept, SHAPE)), counts[kept]


@dataclass(frozen=True, eq=False)
class Game:
    """A marked release, and what each recipient's copy holds."""

    marked: Marked
    sizes: np.ndarray

    @classmethod
    def new(cls, random: np.random.Generator, collusion: int = 2, decoys: int = 2, seed: int = 1) -> Game:
        """A fresh key for the table; covers lie in classes of all sizes."""
        codes, sizes = source(seed=seed)
        key = random.bytes(32)
        needed = needed_length(RECIPIENTS, collusion, FALSE_ACCUSATION)
        code = make_code(derive(key, "code"), needed.kind, collusion, needed.length)
        held = bits(derive(key, "code"), NAMES, code)
        pool = random.permutation(free_cells(seed))[: 10 * decoys * RECIPIENTS]
        drawn = random.permutation(len(pool))[: decoys * RECIPIENTS].reshape(RECIPIENTS, decoys)
        secret: dict[str, Any] = {
            "columns": list(COLUMNS),
            "identity": [],
            "above": ABOVE,
            "classes": codes.tolist(),
            "sizes": sizes.tolist(),
            "covers": random.permutation(len(sizes))[: code.length].tolist(),
            "holds": {n: "".join("01"[int(b)] for b in row) for n, row in zip(NAMES, held, strict=True)},
            "code": {"kind": code.kind, "coalition": collusion, "p": code.p.tolist()},
            "pool": np.array(np.unravel_index(pool, SHAPE)).tolist(),
            "drawn": {n: sorted(row.tolist()) for n, row in zip(NAMES, drawn, strict=True)},
            "decoys": {n: [] for n in NAMES},
        }
        return cls(Marked.of("r00000001", secret), sizes)

    @cached_property
    def decoy_sizes(self) -> np.ndarray:
        """Records of each class of the pool, were it drawn: as the release's classes have them."""
        return np.sort(self.sizes)[np.arange(self.marked.pool_codes.shape[1]) * 7919 % len(self.sizes)]

    def copy(self, recipient: int) -> np.ndarray:
        """The rows of a recipient's copy, as columns of label numbers."""
        stay = np.ones(len(self.sizes), dtype=bool)
        stay[self.marked.covers[~self.marked.holds[recipient]]] = False
        drawn = self.marked.drawn[recipient]
        real = np.repeat(self.marked.class_codes[:, stay], self.sizes[stay], axis=1)
        return np.concatenate(
            [real, np.repeat(self.marked.pool_codes[:, drawn], self.decoy_sizes[drawn], axis=1)], axis=1
        )

    def missing(self, recipient: int) -> np.ndarray:
        """The classes that a recipient's copy lacks, which somebody who saw others' copies may know."""
        return self.marked.class_codes[:, self.marked.covers[~self.marked.holds[recipient]]]

    def traced(self, leak: LeakedTable, guilty: set[int]) -> Outcome:
        found = trace_file([self.marked], leak, FALSE_ACCUSATION)
        return outcome(set(found.accused), {NAMES[i] for i in guilty})


@cache
def free_cells(seed: int) -> np.ndarray:
    """The cells that no released class has, from which decoys are drawn."""
    taken = np.ravel_multi_index(tuple(source(seed=seed)[0]), SHAPE)
    return np.setdiff1d(np.arange(np.prod(SHAPE)), taken)


def table(rows: np.ndarray, levels: dict[str, int] | None = None) -> LeakedTable:
    """Rows of label numbers as a table of labels, at some levels; each combination once, with its count."""
    distinct, counts = np.unique(np.ravel_multi_index(tuple(rows), SHAPE), return_counts=True)
    found = {}
    for column, codes in zip(COLUMNS, np.unravel_index(distinct, SHAPE), strict=True):
        labels = pa.array(ABOVE[column][(levels or {}).get(column, 0)])
        found[column] = pa.DictionaryArray.from_arrays(pa.array(codes), labels).dictionary_decode()
    return LeakedTable(pa.table(found), counts)


def leaker(random: np.random.Generator) -> tuple[Game, int]:
    return Game.new(random), int(random.integers(RECIPIENTS))


# Attacks on a leaked file: counts.


@attack("a copy as it is")
def as_it_is(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    return game.traced(table(game.copy(i)), {i})


@attack("a tenth of the rows")
def tenth(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    rows = game.copy(i)
    return game.traced(table(rows[:, random.random(rows.shape[1]) < 0.1]), {i})


def _padded(each: int, mimic: bool = False) -> Trial:
    """Made-up rows for every class that the copy lacks; `mimic`: as many as some class of the copy has, taken at random."""

    def trial(random: np.random.Generator) -> Outcome:
        game, i = leaker(random)
        lacking = game.missing(i)
        many = random.choice(game.sizes, lacking.shape[1]) if mimic else np.full(lacking.shape[1], each)
        return game.traced(table(np.concatenate([game.copy(i), np.repeat(lacking, many, axis=1)], axis=1)), {i})

    return trial


for rows_each in (1, 3, 8, 20):
    attack(f"{rows_each} made-up row{'s' if rows_each > 1 else ''} for each missing class")(_padded(rows_each))
attack("made-up rows for each missing class, as many as other classes have")(_padded(0, mimic=True))


def _perturbed(share: float, uniform: bool) -> Trial:
    """Cells replaced by another row's value, or by any label."""

    def trial(random: np.random.Generator) -> Outcome:
        game, i = leaker(random)
        rows = game.copy(i).copy()
        for column, labels in zip(rows, SHAPE, strict=True):
            other = random.integers(0, labels, len(column)) if uniform else random.permutation(column)
            column[:] = np.where(random.random(len(column)) < share, other, column)
        return game.traced(table(rows), {i})

    return trial


attack("20 % of the cells swapped between rows")(_perturbed(0.2, uniform=False))
attack("20 % of the cells replaced by any label")(_perturbed(0.2, uniform=True))


@attack("merged with an unmarked release of the study")
def merged_unmarked(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    every = np.repeat(game.marked.class_codes, game.sizes, axis=1)
    return game.traced(table(np.concatenate([game.copy(i), every], axis=1)), {i})


@attack("merged with the leaker's copy of another release")
def merged_other(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    return game.traced(table(np.concatenate([game.copy(i), Game.new(random).copy(i)], axis=1)), {i})


@attack("merged with a coarser release of the study")
def merged_coarser(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    other = table(Game.new(random).copy(i), {"zip": 1, "yob": 1})
    own = table(game.copy(i))
    merged = pa.concat_tables([own.table, other.table])
    return game.traced(LeakedTable(merged, np.append(own.counts, other.counts)), {i})


@attack("the smallest 25 % of the classes dropped")
def smallest_dropped(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    _, nth, counts = np.unique(
        np.ravel_multi_index(tuple(game.copy(i)), SHAPE), return_inverse=True, return_counts=True
    )
    small = np.argsort(counts, kind="stable")[: len(counts) // 4]
    return game.traced(table(game.copy(i)[:, ~np.isin(nth, small)]), {i})


@attack("one region only")
def one_region(random: np.random.Generator) -> Outcome:
    game, i = leaker(random)
    rows = game.copy(i)
    return game.traced(table(rows[:, rows[0] // 10 < 4]), {i})


# Coarser leaks.


def _coarser(levels: dict[str, int], dropped: tuple[str, ...] = ()) -> Trial:
    def trial(random: np.random.Generator) -> Outcome:
        game, i = leaker(random)
        leak = table(game.copy(i), levels)
        return game.traced(LeakedTable(leak.table.drop_columns(list(dropped)), leak.counts), {i})

    return trial


attack("ZIP to two digits")(_coarser({"zip": 1}))
attack("years of birth at twice the width")(_coarser({"yob": 1}))
attack("gender dropped")(_coarser({}, ("gender",)))


# Disguises.


def _disguised(change: Callable[[np.random.Generator, pa.Table], pa.Table]) -> Trial:
    def trial(random: np.random.Generator) -> Outcome:
        game, i = leaker(random)
        leak = table(game.copy(i))
        return game.traced(LeakedTable(change(random, leak.table), leak.counts), {i})

    return trial


def _renamed(random: np.random.Generator, leak: pa.Table) -> pa.Table:
    return leak.rename_columns(["a", "b", "c", "d"]).select(random.permutation(["a", "b", "c", "d"]).tolist())


def _respelled(random: np.random.Generator, leak: pa.Table) -> pa.Table:
    """331** as 331, ranges by their lower ends, capitals and blanks."""
    new = {
        "zip": pc.utf8_slice_codeunits(leak["zip"], 0, 3),
        "gender": leak["gender"],
        "yob": pc.utf8_slice_codeunits(leak["yob"], 0, 4),
        "race": pc.utf8_rpad(pc.utf8_upper(leak["race"]), 12),
    }
    return pa.table(new)


def _coded(labels: bool) -> Callable[[np.random.Generator, pa.Table], pa.Table]:
    """Every column's values exchanged one for one, for new codes or for each other."""

    def change(random: np.random.Generator, leak: pa.Table) -> pa.Table:
        found = {}
        for name in leak.column_names:
            old = leak[name].combine_chunks().dictionary_encode()
            new = old.dictionary if labels else pa.array([f"{name[0]}{i}" for i in range(len(old.dictionary))])
            found[name] = new.take(pa.array(random.permutation(len(new)))).take(old.indices)
        return pa.table(found)

    return change


attack("columns renamed and in another order")(_disguised(_renamed))
attack("labels spelled another way, ranges by their lower ends")(_disguised(_respelled))
attack("new codes for the labels of every column")(_disguised(_coded(labels=False)))
attack("labels of every column exchanged with each other")(_disguised(_coded(labels=True)))
attack("columns renamed, new codes in every column")(_disguised(lambda r, t: _renamed(r, _coded(labels=False)(r, t))))


# Claims.


def _by_claims(trial: Callable[[np.random.Generator], tuple[set[str], set[str]]]) -> Trial:
    return lambda random: outcome(*trial(random))


for _name, _trial in CLAIMS.items():
    attack(_name)(_by_claims(_trial))


# The table.


@dataclass(frozen=True)
class Row:
    """What came of the trials of one attack."""

    name: str
    trials: int
    guilty: int
    named: int
    innocent: int

    def cells(self) -> tuple[str, ...]:
        named = f"{self.named} of {self.guilty} {interval(self.named, self.guilty)}" if self.guilty else "nobody guilty"
        return self.name, str(self.trials), named, f"{self.innocent} {interval(self.innocent, self.trials)}"


def interval(hits: int, trials: int, z: float = 1.96) -> str:
    """Wilson's interval of 95 %."""
    if not trials:
        return ""
    share, grown = hits / trials, 1 + z**2 / trials
    middle = (share + z**2 / (2 * trials)) / grown
    wide = z * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / grown
    return f"({max(middle - wide, 0):.3f} to {min(middle + wide, 1):.3f})"


def play(name: str, trials: int, seed: int = 0) -> Row:
    """Try an attack again and again; each trial has a generator of its own."""
    played = [ATTACKS[name](np.random.default_rng([seed, n])) for n in range(trials)]
    guilty = [one.guilty_named for one in played if one.guilty_named is not None]
    return Row(name, trials, len(guilty), sum(guilty), sum(one.innocent_named for one in played))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="parts of names of attacks")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    chosen = [n for n in ATTACKS if not options.names or any(part in n for part in options.names)]
    heads = ("attack", "trials", "leaker named", "trials with an innocent named")
    line = "| {} | {} | {} | {} |" if options.markdown else "{:68} {:>6}  {:28} {}"
    print(line.format(*heads), *(["| --- | --- | --- | --- |"] if options.markdown else []), sep="\n")
    for name in chosen:
        print(line.format(*play(name, options.trials, options.seed).cells()), flush=True)


if __name__ == "__main__":
    main()
