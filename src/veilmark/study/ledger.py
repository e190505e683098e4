"""Ledger: the record of releases, as Python users hold it. Each verb loads what it needs when it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from veilmark.defaults import FALSE_ACCUSATION
from veilmark.readable import Grid, Readable, Summary, count

if TYPE_CHECKING:
    from veilmark.ledger import Release, Verification
    from veilmark.trace.accuse import Traced

Place = str | os.PathLike[str]


class Ledger(Readable):
    """The record of who was given which copy, and the key to its secrets.

        with Ledger("ledger.db", key="ledger.key") as ledger:
            study.release(["ada", "bob"], Ola(k=5), marking=Marking(decoys=0, covers=8), ledger=ledger, folder="copies")
            verdict = ledger.trace("leak.csv")

    `place` is an SQLite file, a PostgreSQL URL, or `env:NAME` of an environment variable that holds one; `key` is the key
    file. Both are made where there are none. Keep the key apart from the ledger: nobody can trace without it. Without a
    `key`, a ledger that exists can be listed and verified.
    """

    def __init__(self, place: Place, key: Place | None = None) -> None:
        from veilmark.workbench.ledger import open_or_make

        self.place = place
        self.key = key
        self.label = open_or_make(place, key).label
        """Its place, without a password."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open between two calls."""

    def releases(self) -> list[Release]:
        """All releases, in the order in which they were started."""
        from veilmark.workbench.ledger import releases

        return releases(self.place, self.key)

    def release(self, release_id: str) -> Release:
        """One release by its id."""
        from veilmark.workbench.ledger import release

        return release(self.place, release_id, self.key)

    def decoys(self, release_id: str) -> dict[str, list[dict[str, Any]]]:
        """The decoys of a release by recipient: who they are and what was published of them. Needs the key."""
        from veilmark.workbench.ledger import decoys

        return decoys(self.place, release_id, self.key)

    def verify(self, files: bool = False) -> Verification:
        """Check that no entry was changed; with `files`, that the published files were not either."""
        from veilmark.workbench.ledger import verify

        return verify(self.place, self.key, files)

    def export(self, path: Place) -> Verification:
        """Write a backup, whole or not at all. Secrets in it stay encrypted: keep a copy of the key file as well."""
        from veilmark.workbench.ledger import export

        return export(self.place, path)

    def trace(
        self,
        leak: Any = None,
        *,
        claims: Any = None,
        release: str | None = None,
        false_accusation: float = FALSE_ACCUSATION,
        columns: Mapping[str, str] | None = None,
        who: str | None = None,
    ) -> Traced:
        """Whose copy leaked: `verdict.accused` are the names, `verdict.recipients` all with their probabilities.

            ledger.trace("leak.csv")
            ledger.trace(claims=df)

        `leak` is a leaked table, `claims` a table of persons whom somebody claims to have found: a file or a frame, one of
        the two. Nobody is named above the probability `false_accusation` of naming anyone innocent. `release` is the id of
        one release, by default all are looked into. `columns` maps names in the leak to the release's; without it they are
        matched by name, else by their values. The ledger records the trace, and `who` traced.
        """
        from veilmark.workbench.trace import trace, trace_key

        key = trace_key(self.key)
        given = {"claims": claims, "file": leak, "release": release, "false_accusation": false_accusation}
        return trace(self.place, key, **given, who=who, columns=columns)

    def summary(self) -> Summary:
        listed = [(r.id, r.time, r.status, ", ".join(r.recipients)) for r in self.releases()]
        headline = f"The ledger {self.label}: {count(len(listed), 'release')}."
        return Summary(headline, (Grid(("release", "time", "status", "recipients"), listed),))

    def to_dict(self) -> dict[str, Any]:
        """The releases, without what is secret."""
        return {"releases": [release.summary() for release in self.releases()]}
