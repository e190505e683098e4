"""What an opponent can do with claims of re-identification: five recipients, five decoy classes each, a sealed pool of 150.

Each attack is a function of a random generator that draws decoys by a fresh key, makes claims, and returns who is named and
who is guilty. `benchmarks.opponent` puts them into its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.trace.claims import trace_claims
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import Values, seal_pool

POOL, DECOYS = 150, 5
NAMES = ("ada", "bob", "cyd", "dan", "eve")
LIMITS = (1e-3, 1e-6)

Claimant = Callable[[np.random.Generator, Marked], tuple[Iterable[str], set[str]]]
"""Makes claims, by name, and says who of the recipients is guilty."""


@cache
def sizes() -> np.ndarray:
    """How many persons of the register each class of the pool has."""
    return np.random.default_rng(1).integers(5, 30, POOL)


@cache
def sealed() -> dict[str, Any]:
    """The pool as the ledger keeps it: it is the same whatever is drawn."""
    owner = np.repeat(np.arange(POOL), sizes())
    texts = pa.array([f"z{i:03d}" for i in range(POOL)])
    values = Values.of(texts, np.arange(POOL), np.arange(POOL), np.empty(0, dtype=np.int64))
    persons = pa.table({"voter": [v for j in range(POOL) for v in voters(j)]})
    return {**seal_pool(persons, owner, POOL, {"zip": values}, bytes(32)), "earlier": [], "spared": [[]]}


def voters(group: int) -> list[str]:
    """The persons of a class of the pool."""
    return [f"V{group:03d}-{n}" for n in range(int(sizes()[group]))]


def drawn_by_a_fresh_key(random: np.random.Generator) -> Marked:
    order = random.permutation(POOL)[: DECOYS * len(NAMES)].reshape(len(NAMES), DECOYS)
    secret: dict[str, Any] = {
        "columns": ["zip"],
        "identity": ["voter"],
        "above": {"zip": [[f"{i:03d}**" for i in range(POOL)]]},
        "classes": [[]],
        "sizes": [],
        "covers": [],
        "holds": dict.fromkeys(NAMES, ""),
        "code": None,
        "pool": [list(range(POOL))],
        "drawn": {name: sorted(row.tolist()) for name, row in zip(NAMES, order, strict=True)},
        "decoys": {name: [] for name in NAMES},
        "sealed": sealed(),
    }
    return Marked.of("r00000001", secret)


def everybody(groups: Iterable[int]) -> list[str]:
    return [voter for group in groups for voter in voters(int(group))]


def own(marked: Marked, *names: str) -> set[int]:
    """The decoy classes of some recipients, which their copies show."""
    return set(np.flatnonzero(marked.drawn[[NAMES.index(name) for name in names]].any(axis=0)).tolist())


def whole_register(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
    return everybody(range(POOL)), set()


def smallest_groups(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
    return everybody(np.argsort(sizes(), kind="stable")[:12]), set()


def some_groups(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
    return everybody(random.permutation(POOL)[: random.integers(1, 30)]), set()


def scattered_persons(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
    """Somebody of most groups, and many of a few."""
    one_each = [voters(int(group))[0] for group in random.permutation(POOL)[:100]]
    return one_each + everybody(random.permutation(POOL)[:4]), set()


def framers(count: int, listed: int | None = None) -> Claimant:
    """So many recipients together list what is not their own: all of it, or so many groups. They have used their copies to
    leave out, so that nothing they claim is from one, and nobody is to be named."""

    def claims(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
        others = [group for group in range(POOL) if group not in own(marked, *NAMES[:count])]
        return everybody(random.permutation(others)[: listed or POOL]), set()

    return claims


def guilty(met: int, bystanders: int) -> Claimant:
    """A recipient lists persons of its riskiest classes, which are decoys, and of groups met by chance."""

    def claims(random: np.random.Generator, marked: Marked) -> tuple[list[str], set[str]]:
        name = NAMES[int(random.integers(len(NAMES)))]
        mine = sorted(own(marked, name))[:met]
        found = [voters(group)[int(random.integers(3))] for group in mine]
        return found + [voters(int(group))[0] for group in random.permutation(POOL)[:bystanders]], {name}

    return claims


CLAIMANTS: dict[str, Claimant] = {
    "an outsider lists the whole register": whole_register,
    "an outsider lists the twelve smallest groups": smallest_groups,
    "an outsider lists some groups": some_groups,
    "an outsider lists somebody of most groups": scattered_persons,
    "a recipient lists all groups but its own": framers(1),
    "a recipient lists ten groups, none its own": framers(1, 10),
    "two recipients list all groups but their own": framers(2),
    "four recipients list all groups but their own": framers(4),
    "four recipients list ten groups, none their own": framers(4, 10),
    "a recipient claims its decoys": guilty(DECOYS, 0),
    "a recipient claims its decoys and two groups more": guilty(DECOYS, 2),
    "a recipient claims four of its five decoy classes": guilty(4, 0),
}


def _trial(claimant: Claimant, limit: float) -> Callable[[np.random.Generator], tuple[set[str], set[str]]]:
    def trial(random: np.random.Generator) -> tuple[set[str], set[str]]:
        marked = drawn_by_a_fresh_key(random)
        claims, by = claimant(random, marked)
        return set(trace_claims([marked], pa.table({"voter": list(claims)}), limit).accused), by

    return trial


CLAIMS = {
    f"claims, limit {limit:g}: {name}": _trial(claimant, limit)
    for name, claimant in CLAIMANTS.items()
    for limit in LIMITS
}
