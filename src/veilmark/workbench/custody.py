"""What a custodian does so that others need not believe it: the key in shares, receipts of recipients, commitments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Entry, Key, Ledger
from veilmark.ledger.commitments import Commitment, Opened
from veilmark.ledger.files import check_new_file
from veilmark.ledger.receipts import KIND, Receipt, check_time, release_of
from veilmark.ledger.shares import Share, join, split
from veilmark.ledger.signing import Signer, read_public_key
from veilmark.mark.redraw import check_draw
from veilmark.output import refuse_address
from veilmark.trace.accuse import Traced
from veilmark.trace.evidence import Marked
from veilmark.workbench.ledger import key_of, note_shown, open_to_read
from veilmark.workbench.trace import trace_marked

Place = str | os.PathLike[str]

BY_ITSELF = (
    "This check used release {release} alone. Its probabilities account for its {tested:,} recipients, but not "
    "for what later releases of the same ledger reveal about its decoys. The custodian's trace accounts for all "
    "releases, and may name fewer recipients. If there are later releases, rely on covers, or on that trace."
)


# The key in shares.


def split_key(key_file: Place, output: Place, shares: int, threshold: int) -> list[Path]:
    """Write the shares of a key into a new folder, a file each; the key file itself stays."""
    made = split(Key.open(key_file), shares, threshold)
    folder = Path(output)
    refuse_address(folder)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise OptionError(f"'{folder}' exists already. Name a new folder for the shares.") from None
    except OSError as error:
        raise OutputError(f"'{folder}' cannot be made: {error.strerror}. Check the folder above it.") from None
    paths = [folder / f"share-{share.number}-of-{shares}" for share in made]
    for share, path in zip(made, paths, strict=True):
        share.save(path)
    return paths


def join_key(shares: Sequence[Place], key_file: Place) -> Key:
    """Write the key file that enough shares give."""
    key = join([Share.open(path) for path in shares])
    try:
        key.save(key_file)
    except FileExistsError:
        raise OptionError(f"'{key_file}' exists already. Name a new file for the key.") from None
    return key


# Receipts.


def sign_receipt(copy: Place, recipient: str, sign_key: Place, output: Place) -> Receipt:
    """What a recipient does: sign the digest of its copy."""
    receipt = Receipt.sign(recipient, copy, Signer.open(sign_key))
    receipt.save(output)
    return receipt


def add_receipt(where: Place, key_file: Place, file: Place, public_key: Place | None = None) -> Entry:
    """Check a receipt, that it is of a recorded copy, and by the key that was expected; then keep it in the ledger."""
    receipt = Receipt.open(file)
    if public_key is not None and read_public_key(public_key) != receipt.public_key:
        raise DataError(f"The receipt '{file}' is signed with another key than '{public_key}'. Ask the recipient.")
    ledger = open_to_read(where, key_file)
    release = release_of(receipt, ledger.releases())
    check_time(receipt, release)
    body = {**receipt.to_dict(), "key_expected": public_key is not None}
    return ledger.append(KIND, release.id, body, key=key_of(ledger, key_file))


def receipts(where: Place, release: str | None = None) -> list[dict[str, Any]]:
    """The receipts that the ledger keeps, each checked again."""
    entries = Ledger.open(where).entries(kind=KIND, release=release)
    return [
        {"entry": e.number, "release": e.release, **e.public, "is_signed": Receipt.of(e.public).is_signed}
        for e in entries
    ]


# Commitments.


def commitment(where: Place, release: str) -> Commitment:
    """What is to be published of a release before its copies are delivered."""
    return Commitment.of(Ledger.open(where), release)


def open_commitment(where: Place, key_file: Place, release: str, output: Place) -> Opened:
    """Write what opens the commitment of a release: one entry and the key of its secret. It tells the decoys of this release
    alone, but the covers of all releases that have the same. The ledger notes it, and later releases have new covers."""
    ledger = open_to_read(where, key_file)
    opened = Opened.of(ledger, release, key_of(ledger, key_file))
    check_new_file(Path(output))
    note_shown(where, key_file, [release], "commitment")
    opened.save(output)
    return opened


def verify_commitment(
    file: Place,
    published: str,
    claims: Any = None,
    leak: Any = None,
    false_accusation: float = 1e-6,
    columns: Mapping[str, str] | None = None,
) -> Traced:
    """What a third party does: check what was opened against what was published, draw the marks anew by the keys that it was
    committed to, and trace with them, without the ledger. `columns` is as in `trace`."""
    opened = Opened.open(file)
    secret = opened.secret(published)
    notes = check_draw(secret, json.loads(opened.link.body))
    marked = Marked.of(str(opened.link.release), secret)
    found = trace_marked([marked], [marked], claims, leak, false_accusation, columns)
    by_itself = BY_ITSELF.format(release=marked.release, tested=found.tested)
    return replace(found, notes=(*found.notes, *notes, by_itself))
