"""A receipt is of one copy and one recipient, and is kept with its signature."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ledger.helpers import publish
from veilmark.errors import DataError, OptionError
from veilmark.ledger import Key, Ledger
from veilmark.ledger.chain import now
from veilmark.ledger.receipts import Receipt
from veilmark.ledger.signing import Signer, read_public_key, signed_by
from veilmark.workbench import custody

PUBLIC = {"recipients": [{"name": "ada", "file": "ada.csv"}, {"name": "bob", "file": "bob.csv"}]}


@pytest.fixture
def here(tmp_path):
    """A release, and a signing key of ada's."""
    ledger = Ledger.open(tmp_path / "l.db", create=True)
    publish(ledger, Key.open_or_make(tmp_path / "key"), tmp_path / "copies", PUBLIC)
    Signer.new().save(tmp_path / "ada")
    return tmp_path


def signed(here, copy="ada.csv", name="ada"):
    path = here / "receipt.json"
    path.unlink(missing_ok=True)
    custody.sign_receipt(here / "copies" / copy, name, here / "ada", path)
    return path


def test_a_receipt_is_kept(here):
    entry = custody.add_receipt(here / "l.db", here / "key", signed(here), here / "ada.pub")
    ledger = Ledger.open(here / "l.db")
    (release,) = ledger.releases()
    assert (entry.kind, entry.release, release.status) == ("receipt", release.id, "published")
    (kept,) = custody.receipts(here / "l.db")
    assert (kept["recipient"], kept["sha256"]) == ("ada", release.digests["ada.csv"])
    assert (kept["is_signed"], kept["key_expected"]) == (True, True)
    assert ledger.verify(Key.open(here / "key")).ok


def test_what_is_signed_is_what_the_words_say(here):
    receipt = Receipt.open(signed(here))
    fields = ["veilmark receipt 1", "ada", "ada.csv", receipt.sha256, receipt.time]
    message = json.dumps(fields, separators=(",", ":")).encode()
    assert signed_by(receipt.public_key, receipt.signature, message)


@pytest.mark.parametrize("field", ["recipient", "file", "sha256", "time", "public_key", "signature"])
def test_a_changed_receipt_is_refused(here, field):
    path = signed(here)
    content = json.loads(path.read_text())
    other = {"public_key": Signer.new().public, "signature": "AAAA"}
    path.write_text(json.dumps(content | {field: other.get(field, "bob")}))
    with pytest.raises(DataError, match="was changed after it was signed"):
        custody.add_receipt(here / "l.db", here / "key", path)
    assert custody.receipts(here / "l.db") == []


@pytest.mark.parametrize(("copy", "name"), [("bob.csv", "ada"), ("ada.csv", "bob"), ("ada.csv", "eve")])
def test_a_receipt_of_another_s_copy_is_refused(here, copy, name):
    with pytest.raises(DataError, match=f"No release gave '{name}' a copy"):
        custody.add_receipt(here / "l.db", here / "key", signed(here, copy, name))


def test_a_receipt_by_another_key_than_expected(here):
    Signer.new().save(here / "eve")
    with pytest.raises(DataError, match="signed with another key"):
        custody.add_receipt(here / "l.db", here / "key", signed(here), here / "eve.pub")


def points_of_small_order():
    """All encodings whose multiple by 8 is zero, by the curve's arithmetic: points times the order of the large group."""
    p, d = 2**255 - 19, -121665 * pow(121666, -1, 2**255 - 19) % (2**255 - 19)

    def x_of(y):
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(square, (p + 3) // 8, p)
        x = x if (x * x - square) % p == 0 else x * pow(2, (p - 1) // 4, p) % p
        return x if (x * x - square) % p == 0 else None

    def added(one, two):
        (a, b), (e, f) = one, two
        t = d * a * e * b * f
        return (a * f + b * e) * pow(1 + t, -1, p) % p, (b * f + a * e) * pow(1 - t, -1, p) % p

    def times(n, point):
        result = (0, 1)
        for bit in bin(n)[2:]:
            result = added(result, result)
            result = added(result, point) if bit == "1" else result
        return result

    order = 2**252 + 27742317777372353535851937790883648493
    torsion = {times(order, (x_of(y), y)) for y in range(2, 60) if x_of(y) is not None}
    torsion |= {times(k, point) for point in set(torsion) for k in range(8)}
    assert len(torsion) == 8
    values = {y for _, y in torsion}
    written = values | {y + p for y in values if y + p < 2**255}
    return sorted(y | sign << 255 for y in written for sign in (0, 1))


def test_public_keys_that_fit_every_signature_are_refused(here):
    """Points of small order: one signature fits all messages, or one in eight."""
    weak = points_of_small_order()
    assert len(weak) == 14
    signature = bytes([1]) + bytes(63)
    for number in weak:
        public = base64.b64encode(number.to_bytes(32, "little")).decode()
        assert not any(signed_by(public, signature, bytes([i])) for i in range(40))
        (here / "weak.pub").write_text(public)
        with pytest.raises(OptionError, match="is not an Ed25519 public key"):
            read_public_key(here / "weak.pub")


def test_a_receipt_by_a_weak_key(here):
    (release,) = Ledger.open(here / "l.db").releases()
    public = base64.b64encode(bytes([1]) + bytes(31)).decode()
    forged = Receipt("ada", "ada.csv", release.digests["ada.csv"], now(), public, bytes([1]) + bytes(63))
    forged.save(here / "forged.json")
    with pytest.raises(DataError, match="was changed after it was signed"):
        custody.add_receipt(here / "l.db", here / "key", here / "forged.json")


@pytest.mark.parametrize(("hours", "kept"), [(-9000, 0), (-2, 0), (-0.5, 1), (0.5, 1), (2, 0), (None, 0)])
def test_a_receipt_of_another_time(here, hours, kept):
    time = "yesterday" if hours is None else (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
    signer = Signer.open(here / "ada")
    plain = Receipt(
        "ada", "ada.csv", Ledger.open(here / "l.db").releases()[0].digests["ada.csv"], time, signer.public, b""
    )
    replace(plain, signature=signer.sign(plain.message)).save(here / "dated.json")
    if kept:
        custody.add_receipt(here / "l.db", here / "key", here / "dated.json")
    else:
        with pytest.raises(DataError, match="is dated"):
            custody.add_receipt(here / "l.db", here / "key", here / "dated.json")
    assert len(custody.receipts(here / "l.db")) == kept


def test_what_is_no_receipt(here):
    (here / "x").write_text("{}")
    with pytest.raises(DataError, match="is not a receipt"):
        Receipt.open(here / "x")
    with pytest.raises(OptionError, match="cannot be read"):
        Receipt.open(here / "gone")
    with pytest.raises(OptionError, match="cannot be read"):
        custody.sign_receipt(here / "gone", "ada", here / "ada", here / "r")
    signed(here)
    with pytest.raises(OptionError, match="exists already"):
        custody.sign_receipt(here / "copies" / "ada.csv", "ada", here / "ada", here / "receipt.json")
