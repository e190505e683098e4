"""Claims: whose copy led to a list of persons, tested over the keyed draw of decoys.

The mechanism. Before decoys are drawn, the pool of classes that they can come from is fixed (`sealed`). A key, which nobody
but the custodian has, then draws d classes of the pool for each recipient, no class twice. Each choice is as likely as any
other.

The test of a recipient i. Let M be the classes of the pool that the claims meet, less those that decoys of other releases
may explain. Set the classes of all other recipients aside, as for files. Of the P classes that are left, i's are a random
choice: how many of them are in M is hypergeometric, and the probability is that of as many or more (`decoy_tail`, exact).

Why it holds, whatever is claimed. Let i be innocent: its copy was not used. Whoever made the claims knows the population,
the release, and at most the copies of all other recipients; so the claims are a function of these and of chance that has
nothing to do with the key. M follows from the claims and from the sealed pool, for whether a class is met is defined alike
for classes that were drawn and classes that were not. Given the classes of all others, M is independent of which of the
remaining classes are i's, and these are a uniform choice. In particular:

- *Everybody is listed*: M is the whole pool, all of i's classes are met by necessity, and the probability is 1.
- *Small groups, rare ones, near-duplicates*: they say which classes are in M, not whose they are. A class counts once.
- *Framers leave out their own classes*, any number of them together: these are set aside in any case. What counts is how
  many classes of the pool were not drawn for anybody: with d decoy classes and f of these, the probability can get as small
  as 1/C(f + d, d), and not smaller. `mark.enough` makes pools so large that this is enough.
- *Vague claims* (few columns, coarser values) meet many classes at once, drawn or not, and say less for it. So that one
  vague line does not drown the others, claims that fit a single class are tested by themselves too; each of the two tests
  gets half of the allowance. Where both see the same classes, they are one test.
- *Other releases*: decoys of a later release avoid classes of earlier ones, and so tell where these are not. Their classes
  are set aside, and the factor that remains (`draw_weight`) is multiplied in. What earlier releases drew was known before
  the pool was sealed.
- *Several releases of one recipient*: each probability holds given all draws of other releases, so their product is no
  smaller than that of independent uniform numbers. Half of the allowance goes to each release by itself, half to all
  together.

The claims may be true or false, and about persons in the data or not: only classes of the pool count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy import special

from veilmark.errors import DataError
from veilmark.trace.accuse import Finding, Traced, check_any, nothing_shared, ranked
from veilmark.trace.elsewhere import draw_weight, explained, same_draw
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import Met
from veilmark.trace.tails import decoy_tail

MEANING = (
    "A secret key drew the decoy classes at random from the pool that was sealed with the release. The "
    "probability is about this draw. It is valid for any list of claims from anybody who does not have this "
    "recipient's copy, even if all other recipients together try to frame this one."
)
"""What the probability of claims is, in the same words everywhere."""


def trace_claims(
    releases: Sequence[Marked], claims: pa.Table, false_accusation: float, others: Sequence[Marked] = ()
) -> Traced:
    """Whose copies led to these claims. `others` are further releases of the ledger, in which nobody is looked for."""
    every = list({marked.release: marked for marked in (*releases, *others)}.values())
    found: list[Finding] = []
    notes = []
    for marked in releases:
        note = _untraceable(marked, releases)
        met = None if note or marked.sealed is None else marked.sealed.meet(claims)
        if note or met is None:
            notes.append(note or nothing_shared(marked, (*marked.identity, *marked.columns)))
            continue
        found += _by_claims(marked, met, [other for other in every if not same_draw(marked, other)])
        notes.append(_said(marked, met))
    if all(_untraceable(marked, [marked]) for marked in releases):
        raise DataError(f"The claims cannot be compared with any release. {' '.join(notes)}")
    check_any(found, notes, "claims")
    return replace(ranked(_together(found), false_accusation, notes), meaning=MEANING)


def _untraceable(marked: Marked, releases: Sequence[Marked]) -> str:
    """Why claims are not looked for in a release; nothing where they are."""
    if not marked.drawn.any():
        return f"Release {marked.release} has no decoys, so claims cannot be traced in it. Leaked files can."
    if marked.sealed is None:
        return (
            f"Release {marked.release} was made by an earlier version of veilmark, which did not seal the pool of its "
            "decoys. Claims cannot be traced in it; leaked files can. Release again to make claims traceable."
        )
    first = next(other for other in releases if other is marked or same_draw(marked, other))
    if first is not marked:
        return f"Release {marked.release} has the same decoys as release {first.release}, which is checked instead."
    return ""


def _said(marked: Marked, met: Met) -> str:
    return (
        f"Release {marked.release}: the claims match {int(met.by_any.sum()):,} of the {len(met.by_any):,} classes "
        "of its sealed pool."
    )


def _by_claims(marked: Marked, met: Met, others: Sequence[Marked]) -> list[Finding]:
    """The tests of all recipients of a release."""
    free = ~explained(marked, others)
    weight = draw_weight(marked, free, others)
    kinds = [met.by_any] if np.array_equal(met.alone, met.by_any) else [met.alone, met.by_any]
    found = []
    for i, name in enumerate(marked.names):
        tails = [weight * claims_tail(marked.drawn, i, free, there) for there in kinds]
        p = min([1.0, *(len(kinds) * tail for tail in tails)])
        found.append(Finding(name, marked.release, p, "exact" if weight == 1 else "bound", _evidence(marked, met, i)))
    return found


def claims_tail(drawn: np.ndarray, recipient: int, free: np.ndarray, met: np.ndarray) -> float:
    """P(so many or more of a recipient's classes are met), over the draw from the `free` classes of a pool that no other
    recipient has."""
    left = free & ~np.delete(drawn, recipient, axis=0).any(axis=0)
    mine = drawn[recipient] & left
    return decoy_tail(int((mine & met).sum()), int(mine.sum()), int((left & met).sum()), int(left.sum()))


def _evidence(marked: Marked, met: Met, i: int) -> tuple[dict[str, object], ...]:
    mine = np.flatnonzero(marked.drawn[i] & met.by_any)
    rows = marked.texts(marked.pool_codes[:, mine])
    return tuple(
        {"kind": "decoy class claimed", "claims": int(met.claims[j]), **dict(zip(marked.columns, row, strict=True))}
        for j, row in zip(mine, rows, strict=True)
    )


def _together(found: Sequence[Finding]) -> list[Finding]:
    """With what a recipient's releases say together."""
    joint = []
    for one in found:
        of_name = [other.p_value for other in found if other.name == one.name]
        p = min(2 * one.p_value, 2 * product_tail(of_name)) if len(of_name) > 1 else one.p_value
        joint.append(replace(one, p_value=min(p, 1.0), tail="bound" if len(of_name) > 1 else one.tail))
    return joint


def product_tail(p_values: Sequence[float]) -> float:
    """P(a product of so many independent uniform numbers is as small): Fisher's combination."""
    logs = -sum(math.log(max(p, 1e-300)) for p in p_values)
    return float(special.gammaincc(len(p_values), logs)) if logs else 1.0
