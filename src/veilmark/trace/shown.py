"""Marks that were shown: whoever has seen who holds which covers can build a leak that points to somebody else.

Covers follow from a key that stays over releases of one ledger, an epoch. Where a commitment is opened or every mark behind
a trace is written out, the ledger notes it (an entry `shown`), and the next release begins a new epoch, with new covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from veilmark.ledger import Key, Release
from veilmark.trace.evidence import Marked

SHOWN = "shown"

RENEWED = (
    "The covers of earlier releases were disclosed (a commitment was opened, or the marks of a trace were "
    "written). This release has new covers."
)


def cover_key(key: Key, epoch: int) -> bytes:
    """The key of the covers of an epoch; it tells nothing of other epochs'."""
    return key.subkey(f"covers {epoch}" if epoch else "covers")


def was_shown(release: Release) -> bool:
    """Whether anybody may have seen the marks of a release."""
    return any(entry.kind == SHOWN for entry in release.history)


def next_epoch(releases: Iterable[Release], epochs: Mapping[str, int]) -> int:
    """The epoch of a new release: the latest, or a new one where covers of that were shown."""
    latest = max(epochs.values(), default=0)
    return latest + any(was_shown(release) for release in releases if epochs.get(release.id) == latest)


def same_covers(named: Iterable[str], every: Iterable[Marked]) -> list[str]:
    """That covers cannot tell from which of several releases a named recipient's copy is."""
    together: dict[str | None, list[Marked]] = {}
    for marked in every:
        if marked.coded:
            together.setdefault(marked.cover_key, []).append(marked)
    notes = []
    for name in named:
        for sharing in together.values():
            ids = [marked.release for marked in sharing if name in marked.names]
            if len(ids) > 1:
                listed = f"{', '.join(ids[:-1])} and {ids[-1]}"
                notes.append(
                    f"The copies of {name} in releases {listed} have the same covers. The covers point to {name}, "
                    "but not to one of these copies."
                )
    return notes


def shown_before(releases: Iterable[Release], marked: Iterable[Marked], looked_into: Iterable[str]) -> list[str]:
    """Since when covers of releases that were looked into are known to others than the custodian."""
    keys = {of.release: of.cover_key for of in marked if of.coded}
    since: dict[str | None, str] = {}
    for release in releases:
        for entry in release.history:
            if entry.kind == SHOWN and release.id in keys:
                key = keys[release.id]
                since[key] = min(since.get(key, entry.time), entry.time)
    return [
        f"The covers of release {of} were disclosed on {since[keys[of]]} (a commitment was opened, or marks were "
        "written). Anyone who saw them could build a file that points to any recipient. Covers are evidence only "
        "for files that surfaced before."
        for of in looked_into
        if keys.get(of, "") in since
    ]
