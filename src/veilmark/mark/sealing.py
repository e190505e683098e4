"""The pool that decoys are drawn from: chosen before the draw, and sealed in the ledger with all that tells, of any claim,
which of its classes it is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.ledger import Key, Ledger, Release
from veilmark.mark.code import derive
from veilmark.mark.linking import Ground
from veilmark.mark.marking import CopyMarking
from veilmark.mark.pool import candidate_pool
from veilmark.trace.elsewhere import Classes, used_before
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import Values, seal_pool
from veilmark.trace.shown import RENEWED, next_epoch

CROWDED = (
    "Too few classes are left without decoys in earlier releases of this ledger, so some are used again. Claims "
    "about these classes may come from several copies, so they do not count. Leaked files can still be traced."
)


@dataclass(frozen=True, eq=False)
class Pool:
    """The `classes` that decoys are drawn from, and those that would do but held decoys in `earlier` releases (`spared`).
    `crowded`: too few would be left, so that none are spared. `again`: the release that this one repeats. `beside`: all
    releases that were out when the pool was chosen. `epoch` is that of the covers; `renewed`: earlier ones were shown."""

    classes: np.ndarray
    spared: np.ndarray
    earlier: tuple[str, ...] = ()
    crowded: bool = False
    again: Release | None = None
    beside: tuple[str, ...] = ()
    epoch: int = 0
    renewed: bool = False

    def notes(self, digests: Mapping[str, str]) -> Iterator[str]:
        """What ties the marks of a release, whose files have these digests, to those of others, or no longer does."""
        if self.crowded:
            yield CROWDED
        if self.renewed:
            yield RENEWED
        if self.again is not None and self.again.digests != digests:
            yield (
                f"Release {self.again.id} has the same decoy classes: it has the same seed, recipients and "
                "classes, but its copies differ in other values or in their format. Claims cannot distinguish "
                "the two releases. Use another seed, or none, for new data."
            )


def open_pool(ground: Ground, marking: CopyMarking, earlier: Sequence[Marked]) -> Pool:
    """The candidates without those in classes that held decoys before: a claim should point to one recipient of one release.
    It depends on no draw but the earlier ones."""
    names = tuple(marked.release for marked in earlier)
    if not marking.decoys:
        return Pool(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), names)
    every = candidate_pool(ground.linked, marking)
    labels = Classes(ground.linked.columns, ground.above(), ground.linked.codes[:, every], pool_values(ground, every))
    used = used_before(labels, earlier)
    if (~used).sum() < marking.decoys * len(marking.recipients):
        return Pool(every, every[:0], names, crowded=bool(used.any()))
    return Pool(every[~used], every[used], names)


def pool_after(ground: Ground, marking: CopyMarking, book: Ledger | None, key: Key, seed: str) -> Pool:
    """The pool for a new release of a ledger. The same release made again, by its seed and from the same data, gets the pool
    that it had."""
    earlier: list[Marked] = []
    if book is None:
        return open_pool(ground, marking, earlier)
    out = [release for release in book.releases() if release.is_out]
    beside = tuple(release.id for release in out)
    epochs: dict[str, int] = {}
    for release in out:
        secret = book.secrets(release.id, key)
        epochs[release.id] = secret.get("epoch", 0)
        if release.public["parameters"]["seed"] == seed and release.recipients == list(marking.recipients):
            pool = open_pool(ground, marking, earlier)
            if secret.get("sealed", {}).get("fingerprint") == fingerprint(ground, marking, pool):
                return replace(pool, again=release, beside=beside, epoch=epochs[release.id])
        earlier.append(Marked.of(release.id, secret))
    epoch = next_epoch(out, epochs)
    renewed = epoch > max(epochs.values(), default=0)
    return replace(open_pool(ground, marking, earlier), beside=beside, epoch=epoch, renewed=renewed)


def fingerprint(ground: Ground, marking: CopyMarking, pool: Pool) -> str:
    """What the draw depends on beside key and seed: the released classes, the pool, and what was asked for."""
    linked = ground.linked
    released = np.flatnonzero(linked.published > 0)
    parts = (
        asdict(marking),
        linked.columns,
        linked.texts(released),
        linked.published[released].tolist(),
        linked.texts(pool.classes),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def sealed_entry(ground: Ground, marking: CopyMarking, pool: Pool, key: bytes) -> dict[str, Any]:
    """What the ledger's secret keeps of the pool."""
    columns = [f"i{i}" for i in range(len(ground.identity))]
    owner = ground.everyone.column("class").to_numpy() if len(pool.classes) else np.empty(0, dtype=np.int64)
    chosen = np.flatnonzero(np.isin(owner, pool.classes))
    persons = ground.everyone.select(columns).take(pa.array(chosen)).rename_columns(list(ground.identity))
    place = np.searchsorted(pool.classes, owner[chosen])
    values = pool_values(ground, np.concatenate([pool.classes, pool.spared]))
    return {
        **seal_pool(persons, place, len(pool.classes), values, derive(key, "identities")),
        "earlier": list(pool.earlier),
        "spared": ground.linked.codes[:, pool.spared].tolist(),
        "fingerprint": fingerprint(ground, marking, pool),
    }


def pool_values(ground: Ground, classes: np.ndarray) -> dict[str, Values]:
    """For each quasi-identifier, what the labels of some classes stand for in source and population."""
    found = {}
    for i, column in enumerate(ground.linked.columns):
        text = ground.domains[i].text
        present = np.asarray(text.is_valid())
        labels = np.unique(ground.linked.codes[i, classes])
        stands = ground.covered(i, labels)
        whole = np.array([present[codes].sum() == present.sum() for codes in stands], dtype=bool)
        parts = [(label, codes) for label, codes, all_of in zip(labels, stands, whole, strict=True) if not all_of]
        owner = np.repeat([label for label, _ in parts], [len(codes) for _, codes in parts]).astype(np.int64)
        codes = np.concatenate([np.empty(0, dtype=np.int64), *(codes for _, codes in parts)])
        found[column] = Values.of(text.cast(pa.string()), owner, codes, labels[whole])
    return found
