"""Checking a ledger's entries in one pass: the chain, the life of each release, seals, signatures and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from veilmark.errors import DataError
from veilmark.ledger.chain import BEGINNING, Link, follow
from veilmark.ledger.keys import Key
from veilmark.ledger.seals import Seals
from veilmark.ledger.secret import open_secret
from veilmark.ledger.states import States
from veilmark.ledger.verification import Verification


@dataclass(frozen=True)
class Known:
    """What was noted of a ledger elsewhere: after so many entries (None: not noted) its head was `head`."""

    head: str
    entries: int | None = None


def check_links(
    links: Iterable[Link], key: Key | None = None, known: Sequence[Known] = (), operators: Sequence[str] = ()
) -> Verification:
    """What is wrong first, if anything is."""
    states, seals = States(), Seals(key, operators)
    count, secrets, head = 0, 0, BEGINNING
    met: set[Known] = {one for one in known if one.head == BEGINNING}
    for link, broken in follow(links):
        if broken is not None:
            return Verification(count, head, broken.number, broken.what)
        what = states.wrong(link.kind, link.release) or seals.wrong(link) or _wrong_secret(link, key)
        if what:
            return Verification(count, head, link.number, what)
        count, secrets, head = count + 1, secrets + (link.secret is not None), link.hash
        met |= {one for one in known if one.head == head and one.entries in (None, count)}
    found = Verification(
        count,
        head,
        secrets=None if key is None else secrets,
        sealed=None if key is None else seals.count,
        signed=seals.signed,
        lacks=seals.lacks(),
    )
    return _compare(found, [one for one in known if one not in met], seals)


def _compare(found: Verification, unmet: Sequence[Known], seals: Seals) -> Verification:
    """With what is known from elsewhere."""
    for one in unmet:
        if one.entries is None:
            what = f"no entry has the hash {one.head}: entries were removed, or all were rewritten"
        elif one.entries > found.entries:
            what = (
                f"an anchor records {one.entries} entries, but the ledger has {found.entries}: the others were removed"
            )
        else:
            what = f"entry {one.entries} does not have the hash {one.head} of the anchor: entries were rewritten"
        return found.failed(None, what)
    if (operator := seals.unknown_operator()) is not None:
        return found.failed(None, f"no entry names an operator with the public key {operator}")
    if (link := seals.unvouched) is not None:
        what = f"entry {link.number} is not signed by the operator whose public key was given"
        return found.failed(link.number, what)
    return found


def _wrong_secret(link: Link, key: Key | None) -> str | None:
    if link.secret is None or key is None:
        return None
    try:
        open_secret(link, key)
    except DataError:
        return (
            f"the secret of entry {link.number} cannot be decrypted: the entry, an earlier one or its data key "
            "was changed"
        )
    return None
