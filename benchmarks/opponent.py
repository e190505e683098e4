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
from veilmark.mark.discover import Linked
from veilmark.mark.marking import Marking
from veilmark.mark.plan import plan_marks
from veilmark.mark.simulate import strategy_table
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
attack("ZIP to two digits, and years of birth at twice the width")(_coarser({"zip": 1, "yob": 1}))
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


def _respelled(**changes: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> Trial:
    """The labels of some columns, written another way."""

    def change(random: np.random.Generator, leak: pa.Table) -> pa.Table:
        return pa.table({name: changes.get(name, lambda labels: labels)(leak[name]) for name in leak.column_names})

    return _disguised(change)


def _replaced(old: str, new: str) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    return lambda labels: pc.replace_substring(labels, old, new)


def _first(characters: int, then: str = "") -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    return lambda labels: pc.binary_join_element_wise(pc.utf8_slice_codeunits(labels, 0, characters), then, "")


def _capitals(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_rpad(pc.utf8_upper(labels), 12)


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
attack("331** written as 331")(_respelled(zip=_first(3)))
attack("331** written as 331XX")(_respelled(zip=_replaced("*", "X")))
attack("ranges with an en dash and blanks")(_respelled(yob=_replaced("-", " \u2013 ")))
attack("ranges by their lower ends")(_respelled(yob=_first(4)))
attack("capitals and trailing blanks")(_respelled(gender=_capitals, race=_capitals))
attack("all of these at once")(_respelled(zip=_first(3), yob=_first(4), race=_capitals))
attack("new codes for the labels of every column")(_disguised(_coded(labels=False)))
attack("labels of every column exchanged with each other")(_disguised(_coded(labels=True)))
attack("columns renamed, new codes in every column")(_disguised(lambda r, t: _renamed(r, _coded(labels=False)(r, t))))


attack("years of birth as decades, which cut across the labels")(_respelled(yob=_first(3, "0s")))


# Row by row.


def _row_by_row(change: Callable[[np.random.Generator, pa.Table], pa.Table]) -> Trial:
    """Rows that were alike need not stay alike."""

    def trial(random: np.random.Generator) -> Outcome:
        game, i = leaker(random)
        leak = table(game.copy(i))
        rows = leak.table.take(pa.array(np.repeat(np.arange(len(leak.counts)), leak.counts)))
        return game.traced(LeakedTable(change(random, rows)), {i})

    return trial


def _hidden(share: float, by: str | None) -> Callable[[np.random.Generator, pa.Table], pa.Table]:
    def change(random: np.random.Generator, leak: pa.Table) -> pa.Table:
        gone = {name: pa.array(random.random(len(leak)) < share) for name in leak.column_names}
        return pa.table({c: pc.if_else(gone[c], pa.scalar(by, pa.string()), leak[c]) for c in leak.column_names})

    return change


def _digits(zips: bool, years: bool) -> Callable[[np.random.Generator, pa.Table], pa.Table]:
    """Full ZIPs and single years, made up within the labels."""

    def change(random: np.random.Generator, leak: pa.Table) -> pa.Table:
        ends = pa.array([f"{i:02d}" for i in range(100)]).take(pa.array(random.integers(0, 100, len(leak))))
        first = pc.utf8_slice_codeunits(leak["yob"], 0, 4).cast(pa.int64())
        found = {c: leak[c] for c in leak.column_names}
        if zips:
            found["zip"] = pc.binary_join_element_wise(pc.utf8_slice_codeunits(leak["zip"], 0, 3), ends, "")
        if years:
            found["yob"] = pc.add(first, pa.array(random.integers(0, 4, len(leak)))).cast(pa.string())
        return pa.table(found)

    return change


def _own_regions(random: np.random.Generator, leak: pa.Table) -> pa.Table:
    old = leak["zip"].combine_chunks().dictionary_encode()
    new = pa.array([f"region {n}" for n in random.integers(0, 12, len(old.dictionary))])
    return leak.set_column(0, "zip", new.take(old.indices))


attack("* in 20 % of the cells")(_row_by_row(_hidden(0.2, "*")))
attack("20 % of the cells empty")(_row_by_row(_hidden(0.2, None)))
attack("40 % of the cells empty")(_row_by_row(_hidden(0.4, None)))
attack("331** written with two made-up digits")(_row_by_row(_digits(True, False)))
attack("a made-up year of birth within each range")(_row_by_row(_digits(False, True)))
attack("made-up digits of ZIPs, and made-up years of birth")(_row_by_row(_digits(True, True)))
attack("ZIPs joined to twelve regions, at random")(_row_by_row(_own_regions))
attack("each row three times")(_row_by_row(lambda random, leak: pa.concat_tables([leak] * 3)))
attack("each class once, without counts")(_row_by_row(lambda r, t: t.group_by(list(COLUMNS)).aggregate([])))
attack("a twentieth of the rows")(_row_by_row(lambda r, t: t.filter(pa.array(r.random(len(t)) < 0.05))))
attack("40 % of the cells swapped between rows")(_perturbed(0.4, uniform=False))


# Several copies.


def _mixed(strategy: str, coalition: int) -> Trial:
    """Some recipients put a leak together class by class."""

    def trial(random: np.random.Generator) -> Outcome:
        game = Game.new(random, coalition)
        leakers = random.choice(RECIPIENTS, coalition, replace=False)
        holding = game.marked.holds[leakers].sum(axis=0)
        stay = np.ones(len(game.sizes), dtype=bool)
        stay[game.marked.covers] = random.random(len(holding)) < strategy_table(strategy, coalition)[holding]
        rows = np.repeat(game.marked.class_codes[:, stay], game.sizes[stay], axis=1)
        return game.traced(table(rows), set(leakers.tolist()))

    return trial


for together in (2, 3, 5):
    for way in ("mix", "union", "intersection", "majority", "minority"):
        attack(f"{together} recipients mix their copies: {way}")(_mixed(way, together))


def next_release(random: np.random.Generator, turn: int, cover_key: bytes) -> Game:
    """A release of the same study after some time: a twentieth of the classes is not there, and sizes have moved. Its covers
    are drawn as `release` does it."""
    codes, sizes = source()
    sizes = np.maximum(SMALLEST, np.rint(sizes * random.normal(1, 0.05, len(sizes)))).astype(np.int64)
    there = random.random(len(sizes)) >= 0.05
    codes, sizes = codes[:, there], sizes[there]
    labels = tuple(pa.array(ABOVE[column][0]) for column in COLUMNS)
    linked = Linked(COLUMNS, labels, codes, sizes, np.zeros_like(sizes), 10 * sizes, np.arange(len(sizes)))
    marking = Marking(decoys=0, collusion=2).of_copies(NAMES, SMALLEST)
    marks = plan_marks(linked, marking, random.bytes(32), cover_key=cover_key)
    assert marks.code is not None
    secret: dict[str, Any] = {
        "columns": list(COLUMNS),
        "identity": [],
        "above": ABOVE,
        "classes": codes.tolist(),
        "sizes": sizes.tolist(),
        "covers": marks.covers.tolist(),
        "holds": {n: "".join("01"[int(b)] for b in row) for n, row in zip(NAMES, marks.holds, strict=True)},
        "code": {"kind": marks.code.kind, "coalition": 2, "p": marks.code.p.tolist()},
        "pool": [[] for _ in COLUMNS],
        "drawn": {n: [] for n in NAMES},
        "decoys": {n: [] for n in NAMES},
    }
    return Game(Marked.of(f"r{turn:08d}", secret), sizes)


def _own_copies(joined: Callable[[np.ndarray], np.ndarray]) -> Trial:
    """A recipient makes one table of its copies of three successive releases."""

    def trial(random: np.random.Generator) -> Outcome:
        cover_key, i = random.bytes(32), int(random.integers(RECIPIENTS))
        games = [next_release(random, turn, cover_key) for turn in range(3)]
        cells = [np.ravel_multi_index(tuple(game.copy(i)), SHAPE) for game in games]
        counts = joined(np.array([np.bincount(of, minlength=np.prod(SHAPE)) for of in cells]))
        rows = np.array(np.unravel_index(np.repeat(np.arange(len(counts)), counts), SHAPE))
        found = trace_file([game.marked for game in games], table(rows), FALSE_ACCUSATION)
        return outcome(set(found.accused), {NAMES[i]})

    return trial


attack("a recipient intersects its own three successive copies")(_own_copies(lambda counts: counts.min(axis=0)))
attack("a recipient joins its own three successive copies")(_own_copies(lambda counts: counts.max(axis=0)))


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
