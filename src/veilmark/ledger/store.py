"""The ledger: entries are added at its end and never changed.

An entry has a public body and, where it must be, a secret under a random data key. The data key is wrapped by the key
file and kept outside the chain, as is the entry's seal; so changing the key file rewraps data keys, seals entries anew and
leaves all entries as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, desc, null, select

from veilmark.errors import DataError, OptionError, OutputError, did_you_mean, listing
from veilmark.ledger import chain
from veilmark.ledger.chain import BEGINNING, Entry, Link, canonical
from veilmark.ledger.checking import Known, check_links
from veilmark.ledger.database import Database, connect, exists
from veilmark.ledger.keys import Key
from veilmark.ledger.releases import Release, releases_of
from veilmark.ledger.schema import ENTRIES, SEALED, SEALS, WRAPPED
from veilmark.ledger.seals import UPGRADED, is_sealed, message_of, sealed
from veilmark.ledger.secret import open_secret, unwrap, with_secret, wrap
from veilmark.ledger.signing import Signer
from veilmark.ledger.states import FOLLOWS
from veilmark.ledger.strangers import stranger_in
from veilmark.ledger.verification import Verification, changed_files
from veilmark.messages import command

BATCH = 100


class OutOfTurnError(OutputError):
    """Another process has taken the release further meanwhile."""


class OvertakenError(OutputError):
    """Another release was made meanwhile, which this one does not know."""


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
        signer: Signer | None = None,
        beside: Collection[str] | None = None,
    ) -> Entry:
        """Add an entry; it is on disk when this returns. The key seals it, and `signer` signs it. Without a key, entries can
        be added only to a ledger that has none yet. If `beside` is given, no other releases than these may be out."""
        with self.database.writing() as connection:
            if beside is not None:
                _check_beside(connection, {*beside, release})
            written = self._append(connection, kind, release, public, secret, key, signer)
        with self.database.reading() as connection:
            _check_kept(connection, written)
        return _entry(written)

    def _append(
        self,
        connection: Connection,
        kind: str,
        release: str | None,
        public: dict[str, Any],
        secret: dict[str, Any] | None = None,
        key: Key | None = None,
        signer: Signer | None = None,
    ) -> Link:
        self._check_turn(connection, kind, release)
        if key is not None:
            self._check_key(connection, key)
            self._check_sealed(connection)
        elif secret is not None:
            raise ValueError("A secret needs a key. Give the ledger's key file.")
        elif _key_id(connection) is not None:
            raise OptionError(f"Every entry of the ledger '{self.label}' is sealed by its key. Give its key file.")
        newest = _newest(connection)
        if newest is not None and key is not None and not is_sealed(newest, key):
            raise self._broken(f"entry {newest.number} does not have the seal of the key")
        return _add(connection, newest, kind, release, public, secret, key, signer)

    def _check_turn(self, connection: Connection, kind: str, release: str | None) -> None:
        if kind in FOLLOWS:
            state = _states(connection, release).get(release or "")
            if state not in FOLLOWS[kind]:
                raise OutOfTurnError(f"Release '{release}' is {state or 'not in the ledger'} and cannot become {kind}.")

    def check_sealed(self) -> None:
        """Refuse to write to a ledger whose entries carry no seals; said before the work is done."""
        with self.database.reading() as connection:
            self._check_sealed(connection)

    @property
    def is_sealed(self) -> bool:
        """Whether its entries carry seals, or none is there yet."""
        with self.database.reading() as connection:
            return self._is_sealed(connection)

    def _is_sealed(self, connection: Connection) -> bool:
        if self.database.version >= SEALED and connection.execute(select(SEALS.c.entry).limit(1)).first() is not None:
            return True
        return connection.execute(select(ENTRIES.c.number).limit(1)).first() is None

    def _check_sealed(self, connection: Connection) -> None:
        """Sealing what is there is done on purpose alone: somebody without the key may have taken the seals away, and put
        entries in."""
        if not self._is_sealed(connection):
            raise OptionError(
                f"The entries of the ledger '{self.label}' have no seal: an older veilmark wrote it, or somebody "
                "removed the seals to add entries. Nothing was written. If you know that an older veilmark wrote "
                f"it, review its entries. {command('ledger upgrade', lead='Then seal it with')}"
            )

    def upgrade(self, key: Key) -> int:
        """Seal a ledger that an older veilmark wrote, if it is as it was written; says how many entries were sealed."""
        with self.database.writing() as connection:
            self._check_key(connection, key)
            return self._upgrade(connection, key)

    def _upgrade(self, connection: Connection, key: Key) -> int:
        newest = _newest(connection)
        if newest is None or connection.execute(select(SEALS.c.entry).limit(1)).first() is not None:
            return 0
        links = _read(connection)
        self._check_whole(links, key)
        connection.execute(SEALS.insert(), [_seal_row(sealed(link, key)) for link in links])
        _add(connection, newest, UPGRADED, None, {"entries": newest.number, "head": newest.hash}, key=key)
        self._check_whole(_read(connection), key)
        return len(links)

    def rotate(self, old: Key, new: Key) -> int:
        """Change the key: from now on only the new one opens the secrets. Says how many there are."""
        if old.id == new.id:
            raise OptionError("The new key is the same as the old one. Name a new file; the key is created there.")
        with self.database.writing() as connection:
            self._check_key(connection, old)
            self._check_sealed(connection)
            links = _read(connection)
            self._check_whole(links, old)
            secrets = [link for link in links if link.secret is not None]
            body = {"from": old.id, "to": new.id, "secrets": len(secrets)}
            # The first entry of the new key follows the last one of the old.
            _add(connection, links[-1] if links else None, "rotated", None, body, key=new)
            _rewrap(connection, secrets, old, new)
            _reseal(connection, links, new)
            self._check_whole(_read(connection), new)
        return len(secrets)

    def _check_whole(self, links: Iterable[Link], key: Key) -> None:
        """What was changed is not sealed anew, and so made to look right."""
        found = check_links(links, key)
        if not found.whole:
            raise self._broken(str(found.what))

    def _broken(self, what: str) -> DataError:
        return DataError(
            f"The ledger '{self.label}' was changed: {what}. Nothing was written. Restore it from a backup. "
            f"{command('ledger verify', lead='See')}"
        )

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
            return OptionError(f"The ledger '{self.label}' has no release yet, so there is no '{name}'.")
        newest = listing(known[::-1])
        return OptionError(f"The ledger has no release '{name}'.{did_you_mean(name, known)} It has {newest}.")

    def _body(self, number: int, text: str) -> dict[str, Any]:
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise DataError(
                f"Entry {number} of the ledger '{self.label}' was changed. {command('ledger verify', lead='See')}"
            )
        return body

    # --- secrets -------------------------------------------------------------------------------------------

    def key_id(self) -> str | None:
        """The id of the key that the ledger was written with; none where it holds no secret yet."""
        with self.database.reading() as connection:
            return _key_id(connection, self.database.version >= SEALED)

    def check_key(self, key: Key) -> None:
        """Refuse a key that the ledger was not written with."""
        with self.database.reading() as connection:
            self._check_key(connection, key)

    def _check_key(self, connection: Connection, key: Key) -> None:
        needed = _key_id(connection, self.database.version >= SEALED)
        if needed not in (None, key.id):
            raise OptionError(
                f"The ledger '{self.label}' was written with another key. It needs the key with the id {needed}, "
                f"but you gave the key with the id {key.id}. Give the right key file."
            )

    def secrets(self, name: str, key: Key) -> dict[str, Any]:
        """What a release keeps secret."""
        self.check_key(key)
        return open_secret(self.secret_link(name), key)

    def secret_link(self, name: str) -> Link:
        """The entry that holds what a release keeps secret."""
        query = self._links().where(ENTRIES.c.release == name, ENTRIES.c.secret.is_not(None))
        with self.database.reading() as connection:
            row = connection.execute(query.order_by(None).order_by(desc(ENTRIES.c.number)).limit(1)).one_or_none()
        if row is not None:
            return Link(*row)
        status = self.release(name).status
        raise OptionError(f"Release '{name}' ({status}) has no secrets: it ended before its copies were ready.")

    # --- verifying -----------------------------------------------------------------------------------------

    def links(self) -> Iterator[Link]:
        """All entries as they are stored, oldest first, read in one statement and so of one moment."""
        with self.database.reading() as connection:
            for row in connection.execution_options(yield_per=BATCH).execute(self._links()):
                yield Link(*row)

    def _links(self) -> Select[Any]:
        return _links(self.database.version >= SEALED)

    def verify(
        self,
        key: Key | None = None,
        files: bool = False,
        head: str | None = None,
        anchors: Sequence[Known] = (),
        operators: Sequence[str] = (),
    ) -> Verification:
        """Whether the chain is whole, and each release came about step by step; with a key, whether each entry carries its
        seal and the secrets open; with `files`, whether the copies that are still there are as they were published.

        `head` is a hash that was noted earlier, `anchors` are hashes with the number of entries then: the chain must hold
        them. `operators` are public keys: all secrets since they were named must be signed by one of them.
        """
        if key is not None:
            self.check_key(key)
        known = [*anchors, *([] if head is None else [Known(head)])]
        found = self._without_strangers(check_links(self.links(), key, known, operators))
        return changed_files(found, self.releases()) if files and found.whole else found

    def _without_strangers(self, found: Verification) -> Verification:
        with self.database.reading() as connection:
            stranger = stranger_in(connection)
        if stranger is None or not found.whole:
            return found
        return found.failed(
            None, f"its database has a {stranger} that veilmark did not make and that could drop entries"
        )


def insert_link(connection: Connection, link: Link) -> None:
    """Store an entry as it is."""
    stored = {c.name: getattr(link, c.name) for c in ENTRIES.c}
    connection.execute(ENTRIES.insert().values(stored))
    if link.wrapped is not None:
        wrapped = {"entry": link.number, "key_id": link.key_id, "wrapped": link.wrapped}
        connection.execute(WRAPPED.insert().values(wrapped))
    if link.mac is not None:
        connection.execute(SEALS.insert().values(_seal_row(link)))


def _add(
    connection: Connection,
    newest: Link | None,
    kind: str,
    release: str | None,
    public: dict[str, Any],
    secret: dict[str, Any] | None = None,
    key: Key | None = None,
    signer: Signer | None = None,
) -> Link:
    """Write the entry that follows the newest one."""
    number, previous = (0, BEGINNING) if newest is None else (newest.number, newest.hash)
    link = Link(number + 1, chain.now(), kind, release, canonical(public), None, previous, "")
    if secret is not None and key is not None:
        link = with_secret(link, secret, key)
    link = link._replace(hash=chain.hash_of(link))
    if signer is not None:
        link = link._replace(signer=signer.public, signature=signer.sign(message_of(link)))
    if key is not None:
        link = sealed(link, key)
    insert_link(connection, link)
    _check_kept(connection, link)
    return link


def _check_kept(connection: Connection, written: Link) -> None:
    """Read an entry back: a database can be made to take one, and not to keep it, its seal or its data key."""
    row = connection.execute(_links().where(ENTRIES.c.number == written.number)).one_or_none()
    if row is None or Link(*row) != written:
        raise DataError(
            f"The database did not store entry {written.number} correctly: somebody changed how it stores "
            "entries. Do not rely on what it records. Restore the ledger from a backup, in another database."
        )


def _newest(connection: Connection) -> Link | None:
    query = _links().order_by(None).order_by(desc(ENTRIES.c.number)).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Link(*row)


def _read(connection: Connection) -> list[Link]:
    return [Link(*row) for row in connection.execute(_links())]


def _rewrap(connection: Connection, links: Sequence[Link], old: Key, new: Key) -> None:
    wraps = [
        {"n": one.number, "key_id": new.id, "wrapped": wrap(unwrap(one.number, one.wrapped, old), one.number, new)}
        for one in links
    ]
    if wraps:
        connection.execute(WRAPPED.update().where(WRAPPED.c.entry == bindparam("n")), wraps)


def _reseal(connection: Connection, links: Sequence[Link], new: Key) -> None:
    rows = [_seal_row(sealed(link, new)) for link in links]
    seals = [{"n": row["entry"], "seal_key": row["seal_key"], "mac": row["mac"]} for row in rows]
    if seals:
        connection.execute(SEALS.update().where(SEALS.c.entry == bindparam("n")), seals)


def _seal_row(link: Link) -> dict[str, Any]:
    return {
        "entry": link.number,
        "seal_key": link.seal_key,
        "mac": link.mac,
        "signer": link.signer,
        "signature": link.signature,
    }


def _links(with_seals: bool = True) -> Select[Any]:
    """Entries with their data keys and seals, in the order of `Link`; a ledger that can only be read may have no seals."""
    joined = ENTRIES.outerjoin(WRAPPED, ENTRIES.c.number == WRAPPED.c.entry)
    own: list[Any] = [*ENTRIES.c, WRAPPED.c.key_id, WRAPPED.c.wrapped]
    if with_seals:
        joined = joined.outerjoin(SEALS, ENTRIES.c.number == SEALS.c.entry)
        own += [c for c in SEALS.c if c.name != "entry"]
    else:
        own += [null().label(c.name) for c in SEALS.c if c.name != "entry"]
    return select(*own).select_from(joined).order_by(ENTRIES.c.number)


def _entry(link: Link) -> Entry:
    is_secret = link.secret is not None
    return Entry(link.number, link.time, link.kind, link.release, json.loads(link.body), is_secret, link.hash)


def _key_id(connection: Connection, with_seals: bool = True) -> str | None:
    ids = set(connection.execute(select(WRAPPED.c.key_id).distinct()).scalars())
    if with_seals:
        ids |= set(connection.execute(select(SEALS.c.seal_key).distinct()).scalars())
    if len(ids) > 1:
        raise DataError(
            "The ledger's data keys belong to several keys, so the ledger was changed. Restore it from a backup."
        )
    return min(ids, default=None)


def _check_beside(connection: Connection, known: Collection[str | None]) -> None:
    states = _states(connection)
    new = [name for name, state in states.items() if state in ("prepared", "published") and name not in known]
    if new:
        raise OvertakenError(f"Release {listing(new)} was made in the meantime. Try again.")


def _states(connection: Connection, release: str | None = None) -> dict[str, str]:
    """How far each release is, or the one asked for: the last kind that says so."""
    query = select(ENTRIES.c.release, ENTRIES.c.kind).where(ENTRIES.c.kind.in_(FOLLOWS)).order_by(ENTRIES.c.number)
    if release is not None:
        query = query.where(ENTRIES.c.release == release)
    return {row.release: row.kind for row in connection.execute(query)}
