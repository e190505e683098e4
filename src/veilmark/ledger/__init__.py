"""The ledger of releases: what was given to whom, with the secrets that tell copies apart."""

from veilmark.ledger.backup import export, restore, verify_backup
from veilmark.ledger.chain import Entry
from veilmark.ledger.keys import Key
from veilmark.ledger.publish import Publication, check_target, new_release_id, publishing, recover
from veilmark.ledger.releases import Release
from veilmark.ledger.store import Ledger
from veilmark.ledger.verification import Verification

__all__ = [
    "Entry",
    "Key",
    "Ledger",
    "Publication",
    "Release",
    "Verification",
    "check_target",
    "export",
    "new_release_id",
    "publishing",
    "recover",
    "restore",
    "verify_backup",
]
