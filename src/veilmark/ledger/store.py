"""The ledger: entries are added at its end and never changed.

An entry has a public body and, where it must be, a secret under a random data key. The data key is wrapped by the key
file and kept outside the chain, so that changing the key file rewraps data keys and leaves all entries as they are.
"""

from __future__ import annotations

import json
import os
import secrets as random
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Select, bindparam, desc, select

from veilmark.errors import DataError, OptionError, OutputError, did_you_mean, listing
from veilmark.ledger import chain
from veilmark.ledger.chain import BEGINNING, Entry, Link, canonical, follow
from veilmark.ledger.database import Database, connect, exists
from veilmark.ledger.keys import SIZE, Key, SealError, seal, unseal
from veilmark.ledger.releases import Release, releases_of
from veilmark.ledger.schema import ENTRIES, WRAPPED
from veilmark.ledger.verification import Verification, changed_files

FOLLOWS: dict[str, tuple[str | None, ...]] = {
    "started": (None,),
    "prepared": ("started",),
    "published": ("prepared",),
    "aborted": ("started", "prepared"),
}
"""The kinds that say how far a release is, and what each may follow."""

PURPOSE = "ledger"
BATCH = 100


class OutOfTurnError(OutputError):
    """Another process has taken the release further meanwhile."""


class Ledger:
    """A ledger that is open; nothing needs to be closed."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, where: str | os.PathLike[str], create: bool = False) -> Ledger:
        """An SQLite file, a PostgreSQL URL, or `env:NAME` of a variable that holds one."""
        return cls(connect(where, create))

    @staticmethod
    def exists(where: str | os.PathLike[str]) -> bool:
        """Whether there is one; a place where none could be made is refused."""
        return exists(where)

    @property
    def label(self) -> str:
        """Its place, without a password."""
        return self.database.label

    def check_writable(self) -> None:
        """Refuse a ledger that can only be read; said before the work is done."""
        self.database.check_writable()

    # --- writing -------------------------------------------------------------------------------------------

    def append(
        self,
        kind: str,
        release: str | None,
        public: dict[str, Any],
        secret: dict[str, Any] | None = None,
        key: Key | None = None,
    ) -> Entry:
        """Add an entry; it is on disk when this returns. A secret needs the key."""
        with self.database.writing() as connection:
            return self._append(connection, kind, release, public, secret, key)

    def _append(
        self,
        connection: Connection,
        kind: str,
        release: str | None,
        public: dict[str, Any],
        secret: dict[str, Any] | None = None,
        key: Key | None = None,
    ) -> Entry:
        self._check_turn(connection, kind, release)
        newest = select(ENTRIES.c.number, ENTRIES.c.hash).order_by(desc(ENTRIES.c.number)).limit(1)
        number, previous = connection.execute(newest).one_or_none() or (0, BEGINNING)
        link = Link(number + 1, chain.now(), kind, release, canonical(public), None, previous, "")
        if secret is not None:
            if key is None:
                raise ValueError("A secret needs a key.")
            self._check_key(connection, key)
            link = _sealed(link, secret, key)
        link = link._replace(hash=chain.hash_of(link))
        insert_link(connection, link)
        return _entry(link)

    def _check_turn(self, connection: Connection, kind: str, release: str | None) -> None:
        if kind in FOLLOWS:
            state = _states(connection, release).get(release or "")
            if state not in FOLLOWS[kind]:
                raise OutOfTurnError(f"Release '{release}' is {state or 'not there'} and cannot become {kind}.")

    def rotate(self, old: Key, new: Key) -> int:
        """Change the key: from now on only the new one opens the secrets. Says how many there are."""
        if old.id == new.id:
            raise OptionError("The new key is the old one. Name another file for the new key; it is made.")
        with self.database.writing() as connection:
            self._check_key(connection, old)
            rows = connection.execute(select(WRAPPED)).all()
            data_keys = {row.entry: self._data_key(row.entry, row.wrapped, old) for row in rows}
            wraps = [{"n": n, "key_id": new.id, "wrapped": _wrap(key, n, new)} for n, key in data_keys.items()]
            if wraps:
                connection.execute(WRAPPED.update().where(WRAPPED.c.entry == bindparam("n")), wraps)
            self._append(connection, "rotated", None, {"from": old.id, "to": new.id, "secrets": len(wraps)})
        return len(wraps)

    # --- reading -------------------------------------------------------------------------------------------

    def entries(self, kind: str | None = None, release: str | None = None) -> list[Entry]:
        """The entries, oldest first, without their secrets."""
        columns = [c for c in ENTRIES.c if c.name != "secret"]
        query = select(*columns, ENTRIES.c.secret.is_not(None).label("sealed")).order_by(ENTRIES.c.number)
        if kind is not None:
            query = query.where(ENTRIES.c.kind == kind)
        if release is not None:
            query = query.where(ENTRIES.c.release == release)
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            Entry(r.number, r.time, r.kind, r.release, self._body(r.number, r.body), bool(r.sealed), r.hash)
            for r in rows
        ]

    def releases(self) -> list[Release]:
        """All releases, oldest first, those that did not end well too."""
        return releases_of(self.entries())

    def release(self, name: str) -> Release:
        """One release by its id."""
        found = releases_of(self.entries(release=name))
        if not found:
            raise self._unknown(name)
        return found[0]

    def unfinished(self) -> list[str]:
        """The releases that were started, and neither published nor given up."""
        with self.database.reading() as connection:
            return [name for name, state in _states(connection).items() if state in ("started", "prepared")]

    def _unknown(self, name: str) -> OptionError:
        with self.database.reading() as connection:
            known = list(_states(connection))
        if not known:
            return OptionError(f"The ledger '{self.label}' holds no release yet, so there is no '{name}'.")
        newest = listing(known[::-1])
        return OptionError(f"The ledger holds no release '{name}'.{did_you_mean(name, known)} It has {newest}.")

    def _body(self, number: int, text: str) -> dict[str, Any]:
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise DataError(f"Entry {number} of the ledger '{self.label}' was changed. See: veilmark ledger verify.")
        return body

    # --- secrets -------------------------------------------------------------------------------------------

    def key_id(self) -> str | None:
        """The id of the key that the ledger was written with; none where it holds no secret yet."""
        with self.database.reading() as connection:
            return _key_id(connection)

    def check_key(self, key: Key) -> None:
        """Refuse a key that the ledger was not written with."""
        with self.database.reading() as connection:
            self._check_key(connection, key)

    def _check_key(self, connection: Connection, key: Key) -> None:
        needed = _key_id(connection)
        if needed not in (None, key.id):
            raise OptionError(
                f"The ledger '{self.label}' was written with another key: it needs the key with the id {needed}, and "
                f"the one given has the id {key.id}. Give the right key file."
            )

    def secrets(self, name: str, key: Key) -> dict[str, Any]:
        """What a release keeps secret."""
        self.check_key(key)
        query = _links().where(ENTRIES.c.release == name, ENTRIES.c.secret.is_not(None))
        with self.database.reading() as connection:
            row = connection.execute(query.order_by(None).order_by(desc(ENTRIES.c.number)).limit(1)).one_or_none()
        if row is not None:
            return self._open(Link(*row), key)
        status = self.release(name).status
        raise OptionError(f"Release '{name}' ({status}) has no secrets: it ended before its copies were ready.")

    def _open(self, link: Link, key: Key) -> dict[str, Any]:
        if link.secret is None or link.wrapped is None:
            raise DataError(f"The data key of entry {link.number} is missing. Restore the ledger from a backup.")
        data_key = self._data_key(link.number, link.wrapped, key)
        try:
            content: dict[str, Any] = json.loads(unseal(data_key, link.secret, chain.about_secret(link)))
        except SealError:
            raise DataError(
                f"The secret of entry {link.number} does not open: the entry, or one before it, was changed. "
                "See: veilmark ledger verify."
            ) from None
        return content

    def _data_key(self, number: int, wrapped: bytes, key: Key) -> bytes:
        try:
            return unseal(key.subkey(PURPOSE), wrapped, chain.about_data_key(number, key.id))
        except SealError:
            raise DataError(
                f"The data key of entry {number} does not open: it was changed. Restore the ledger from a backup."
            ) from None

    # --- verifying -----------------------------------------------------------------------------------------

    def links(self) -> Iterator[Link]:
        """All entries as they are stored, oldest first, read in one statement and so of one moment."""
        with self.database.reading() as connection:
            for row in connection.execution_options(yield_per=BATCH).execute(_links()):
                yield Link(*row)

    def verify(self, key: Key | None = None, files: bool = False, head: str | None = None) -> Verification:
        """Whether the chain is whole; with a key, the secrets too; with `files`, the copies that are still there.

        `head` is a hash that was noted earlier: the chain must hold it.
        """
        if key is not None:
            self.check_key(key)
        count, opened, last = 0, 0, BEGINNING
        seen = head is None or head == BEGINNING
        for link, broken in follow(self.links()):
            if broken is not None:
                return Verification(count, last, broken.number, broken.what)
            if key is not None and link.secret is not None:
                try:
                    self._open(link, key)
                except DataError:
                    what = f"the secret of entry {link.number} does not open: the entry, one before it or its data key"
                    return Verification(count, last, link.number, f"{what} was changed")
                opened += 1
            count, last = count + 1, link.hash
            seen = seen or link.hash == head
        found = Verification(count, last, secrets=None if key is None else opened)
        if not seen:
            return found.failed(None, f"no entry has the hash {head}: entries were removed, or all were written anew")
        return changed_files(found, self.releases()) if files else found


def insert_link(connection: Connection, link: Link) -> None:
    """Store an entry as it is."""
    stored = {c.name: getattr(link, c.name) for c in ENTRIES.c}
    connection.execute(ENTRIES.insert().values(stored))
    if link.wrapped is not None:
        wrap = {"entry": link.number, "key_id": link.key_id, "wrapped": link.wrapped}
        connection.execute(WRAPPED.insert().values(wrap))


def _links() -> Select[Any]:
    joined = ENTRIES.outerjoin(WRAPPED, ENTRIES.c.number == WRAPPED.c.entry)
    return select(*ENTRIES.c, WRAPPED.c.key_id, WRAPPED.c.wrapped).select_from(joined).order_by(ENTRIES.c.number)


def _entry(link: Link) -> Entry:
    sealed = link.secret is not None
    return Entry(link.number, link.time, link.kind, link.release, json.loads(link.body), sealed, link.hash)


def _sealed(link: Link, secret: dict[str, Any], key: Key) -> Link:
    data_key = random.token_bytes(SIZE)
    content = seal(data_key, chain.as_given(secret).encode(), chain.about_secret(link))
    return link._replace(secret=content, key_id=key.id, wrapped=_wrap(data_key, link.number, key))


def _wrap(data_key: bytes, number: int, key: Key) -> bytes:
    return seal(key.subkey(PURPOSE), data_key, chain.about_data_key(number, key.id))


def _key_id(connection: Connection) -> str | None:
    ids = connection.execute(select(WRAPPED.c.key_id).distinct()).scalars().all()
    if len(ids) > 1:
        raise DataError("The ledger's data keys are of several keys, so it was changed. Restore it from a backup.")
    return ids[0] if ids else None


def _states(connection: Connection, release: str | None = None) -> dict[str, str]:
    """How far each release is, or the one asked for: the last kind that says so."""
    query = select(ENTRIES.c.release, ENTRIES.c.kind).where(ENTRIES.c.kind.in_(FOLLOWS)).order_by(ENTRIES.c.number)
    if release is not None:
        query = query.where(ENTRIES.c.release == release)
    return {row.release: row.kind for row in connection.execute(query)}
