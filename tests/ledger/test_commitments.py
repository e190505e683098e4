"""What was committed to before delivery is what is opened later, in one way only."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ledger.helpers import ONE, SECRET, old_ledger
from veilmark.errors import DataError, OptionError
from veilmark.ledger import Ledger
from veilmark.ledger.commitments import Commitment, Opened


@pytest.fixture
def opened(filled, key, tmp_path):
    Opened.of(filled, ONE, key).save(tmp_path / "opened.json")
    return tmp_path / "opened.json"


def test_a_commitment_opens(filled, opened):
    published = Commitment.of(filled, ONE)
    assert (published.entry, published.commitment) == (2, filled.entries()[1].hash)
    assert Opened.open(opened).secret(published.commitment) == SECRET
    assert opened.stat().st_mode & 0o777 == 0o600


def test_a_third_party_needs_no_veilmark(filled, opened):
    """As the words say: hash the entry, compare the data key's digest, decrypt."""
    content = json.loads(opened.read_text())
    entry, data_key = content["entry"], base64.b64decode(content["data_key"])
    fields = [entry[name] for name in ("previous", "number", "time", "kind", "release", "body")]
    text = json.dumps([*fields, entry["secret"]], separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == Commitment.of(filled, ONE).commitment
    secret = base64.b64decode(entry["secret"])
    assert (secret[:8], secret[8:40]) == (b"veilmk2\0", hashlib.sha256(data_key).digest())
    about = json.dumps(["veilmark secret 2", *fields], separators=(",", ":")).encode()
    assert json.loads(AESGCM(data_key).decrypt(secret[40:52], secret[52:], about)) == SECRET


def test_it_opens_after_the_key_was_changed(filled, key, other_key):
    published = Commitment.of(filled, ONE)
    filled.rotate(key, other_key)
    assert Commitment.of(filled, ONE) == published
    assert Opened.of(filled, ONE, other_key).secret(published.commitment) == SECRET


def test_another_commitment_is_refused(filled, opened):
    with pytest.raises(DataError, match="does not match what was published"):
        Opened.open(opened).secret("0" * 64)


@pytest.mark.parametrize("field", ["previous", "number", "time", "kind", "release", "body", "secret"])
def test_a_changed_entry_is_another_commitment(filled, opened, field):
    content = json.loads(opened.read_text())
    value = content["entry"][field]
    content["entry"][field] = value + 1 if field == "number" else value[:-8] + "AAAAAAA="
    opened.write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not match what was published"):
        Opened.open(opened).secret(Commitment.of(filled, ONE).commitment)


def test_another_data_key_does_not_open_it(filled, opened):
    """AES-GCM alone would allow a ciphertext that two keys open."""
    content = json.loads(opened.read_text())
    opened.write_text(json.dumps(content | {"data_key": base64.b64encode(bytes(32)).decode()}))
    with pytest.raises(DataError, match="cannot be decrypted"):
        Opened.open(opened).secret(Commitment.of(filled, ONE).commitment)


def test_the_key_of_the_ledger_is_not_given_away(filled, opened, key):
    text = opened.read_text()
    assert key.secret.hex() not in text
    assert base64.b64encode(key.secret).decode() not in text


def test_older_entries_are_no_commitments(tmp_path, key):
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared", "published"))
    with pytest.raises(DataError, match="are not binding commitments"):
        Commitment.of(ledger, ONE)


def test_what_is_not_opened(tmp_path, filled, opened, key):
    with pytest.raises(OptionError, match="exists already"):
        Opened.of(filled, ONE, key).save(opened)
    with pytest.raises(OptionError, match="cannot be read"):
        Opened.open(tmp_path / "gone")
    for content in ("", "{}", "[]", opened.read_text().replace("dmVpbG1r", "AAAAAAAA")):
        (tmp_path / "x").write_text(content)
        with pytest.raises(DataError, match="is not an opened commitment"):
            Opened.open(tmp_path / "x")
