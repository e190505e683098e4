"""What an opponent can do to the ledger: one row an attack, each tried on fresh ledgers with fresh keys.

    python -m benchmarks.opponent_ledger [--trials 100] [--markdown]

The opponent can write to the database: no guard of it holds. `trace` refuses a ledger that is found to be changed, and so
neither names nor clears anybody by it. "With an anchor": the custodian kept one elsewhere.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from benchmarks.opponent import interval
from veilmark.ledger import Key, Ledger, publishing
from veilmark.ledger.chain import BEGINNING, Link, canonical, hash_of, now
from veilmark.ledger.seals import sealed
from veilmark.ledger.signing import Signer
from veilmark.ledger.store import insert_link
from veilmark.workbench import ledger as verbs

TABLES = (("seals", "entry"), ("wrapped_keys", "entry"), ("entries", "number"))


class Scene:
    """A ledger with a published release and one whose copies are ready, its key, and an anchor that is kept elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.where, self.key_file, self.anchor = folder / "ledger.db", folder / "key", folder / "anchor.json"
        self.ledger, self.key = Ledger.open(self.where, create=True), Key.open_or_make(self.key_file)
        with publishing(self.ledger, self.key, folder / "copies", {"recipients": ["ada"]}, {"decoys": {}}) as doing:
            (doing.folder / "ada.csv").write_text("x")
        self.published = doing.release
        self.ledger.append("started", "r0000aaaa", {"folder": "elsewhere", "host": "other"}, key=self.key)
        self.ledger.append("prepared", "r0000aaaa", {"folder": "elsewhere", "host": "other"}, {"decoys": {}}, self.key)
        verbs.anchor(self.where, self.anchor, self.key_file)

    def found(self, anchored: bool) -> bool:
        noted = verbs.Noted(anchors=(self.anchor,) if anchored else ())
        return not verbs.verify(self.where, self.key_file, noted=noted).ok

    def edit(self, *statements: str) -> None:
        with self.ledger.database.writing() as connection:
            names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
            for statement in (*(f"DROP TRIGGER {name}" for name in names), *statements):
                connection.execute(text(statement))

    def add(self, kind: str, release: str | None, key: Key | None = None) -> None:
        """A well-hashed entry at the end, without a seal or with one of another key."""
        last = list(self.ledger.links())[-1]
        link = Link(last.number + 1, now(), kind, release, canonical({"recovered": True}), None, last.hash, "")
        link = link._replace(hash=hash_of(link))
        with self.ledger.database.writing() as connection:
            insert_link(connection, link if key is None else sealed(link, key)._replace(seal_key=self.key.id))

    def write_anew(self, change: Callable[[Link], Link]) -> None:
        """All entries changed, with hashes that fit."""
        previous, links = BEGINNING, []
        for link in map(change, self.ledger.links()):
            link = link._replace(previous=previous)
            links.append(link._replace(hash=hash_of(link)))
            previous = links[-1].hash
        self.edit(*(f"DELETE FROM veilmark_{table}" for table, _ in TABLES))
        with self.ledger.database.writing() as connection:
            for link in links:
                insert_link(connection, link)

    def cut(self, entries: int) -> None:
        self.edit(*(f"DELETE FROM veilmark_{table} WHERE {column} > {entries}" for table, column in TABLES))


def stripped(link: Link) -> Link:
    return link._replace(seal_key=None, mac=None)


def strip_and_abort(scene: Scene) -> None:
    scene.write_anew(stripped)
    scene.add("aborted", "r0000aaaa")


def roll_back_and_go_on(scene: Scene) -> None:
    """By somebody who has the key."""
    scene.cut(4)
    scene.ledger.append("aborted", "r0000aaaa", {}, key=scene.key)


ATTACKS: dict[str, Callable[[Scene], None]] = {
    "nothing (a false alarm?)": lambda scene: None,
    "a well-hashed `aborted` for a release whose copies are ready": lambda s: s.add("aborted", "r0000aaaa"),
    "the same, sealed with a key of the opponent's own": lambda s: s.add("aborted", "r0000aaaa", Key.new()),
    "a well-hashed `aborted` for a published release": lambda s: s.add("aborted", s.published),
    "a well-hashed `published`": lambda s: s.add("published", "r0000aaaa"),
    "a well-hashed `started` of a release that never was": lambda s: s.add("started", "r0000bbbb"),
    "an operator of the opponent's own": lambda s: s.edit(
        "UPDATE veilmark_seals SET signer = '" + Signer.new().public + "', signature = mac WHERE entry = 2"
    ),
    "all entries written anew with another name": lambda s: s.write_anew(
        lambda link: link._replace(body=link.body.replace("ada", "eve"))
    ),
    "all seals taken away, as if an older veilmark had written it": lambda s: s.write_anew(stripped),
    "all seals taken away, then `aborted`": strip_and_abort,
    "the last entries cut off": lambda s: s.cut(3),
    "entries cut off, and another history written with the key": roll_back_and_go_on,
}


def play(name: str, trials: int, anchored: bool) -> int:
    """In how many trials the attack is found."""
    found = 0
    for _ in range(trials):
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(Path(folder))
            ATTACKS[name](scene)
            found += scene.found(anchored)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    line = "| {} | {} | {} | {} |" if options.markdown else "{:64} {:>6}  {:28} {}"
    print(line.format("attack on the ledger", "trials", "found with the key", "with an anchor, too"))
    if options.markdown:
        print(line.format(*["---"] * 4))
    for name in ATTACKS:
        counts = [play(name, options.trials, anchored) for anchored in (False, True)]
        shown = [f"{found} of {options.trials} {interval(found, options.trials)}" for found in counts]
        print(line.format(name, options.trials, *shown), flush=True)


if __name__ == "__main__":
    main()
