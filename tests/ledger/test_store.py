"""Entries stay as they were written, secrets open with the key alone, and writers take turns, on both databases."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import date, time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from ledger.helpers import ONE, PUBLIC, SECRET, TWO, all_end_well, forked, prepare, rows_of
from strength import examples
from veilmark.errors import OptionError
from veilmark.ledger import Ledger
from veilmark.ledger.chain import BEGINNING, canonical
from veilmark.ledger.store import OutOfTurnError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


# --- entries -----------------------------------------------------------------------------------------------


def test_entries_are_read_as_they_were_written(filled):
    entries = filled.entries()
    assert [e.number for e in entries] == [1, 2, 3, 4, 5, 6]
    assert [e.kind for e in entries] == ["started", "prepared", "published"] * 2
    assert [e.sealed for e in entries] == [False, True, False] * 2
    assert entries[1].public == PUBLIC
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e.time) for e in entries)
    assert [e.number for e in filled.entries(kind="prepared")] == [2, 5]
    assert [e.number for e in filled.entries("published", TWO)] == [6]
    assert filled.entries("published", TWO)[0].to_dict()["release"] == TWO


def test_hashes_are_what_the_words_say(filled):
    previous = "0" * 64
    for link in filled.links():
        secret = None if link.secret is None else base64.b64encode(link.secret).decode()
        fields = [previous, link.number, link.time, link.kind, link.release, link.body, secret]
        previous = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
        assert link.hash == previous


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(), JSON, max_size=4), st.dictionaries(st.text(), JSON, max_size=4))
def test_any_json_comes_back(ledger, key, public, secret):
    entry = ledger.append("note", ONE, public, secret, key)
    assert ledger.entries()[-1] == entry
    assert entry.public == public
    assert ledger.secrets(ONE, key) == secret


def test_values_of_tables_are_taken():
    values = [np.int64(3), np.float32(0.5), np.array([True]), date(2026, 1, 2), time(3, 4), Decimal("1.50")]
    assert canonical(values) == '[3,0.5,[true],"2026-01-02","03:04:00","1.50"]'
    with pytest.raises(TypeError, match="not bytes"):
        canonical({"a": b"x"})


def test_a_secret_may_hold_what_is_not_a_number(ledger, key):
    ledger.append("note", ONE, {}, {"values": [float("nan"), float("inf")]}, key)
    assert str(ledger.secrets(ONE, key)) == "{'values': [nan, inf]}"


def test_an_entry_that_cannot_be_written_leaves_nothing(ledger, key):
    with pytest.raises(TypeError):
        ledger.append("note", ONE, {}, {"a": object()}, key)
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.append("note", ONE, {"a": float("nan")}, {}, key)
    with pytest.raises(ValueError, match="needs a key"):
        ledger.append("note", ONE, {}, SECRET)
    assert ledger.entries() == []
    assert (ledger.verify().ok, ledger.verify().head) == (True, BEGINNING)


@pytest.mark.parametrize("kinds", ["prepared", "published", "aborted", "started,started", "started,published"])
def test_a_release_goes_its_way_step_by_step(ledger, kinds):
    *before, last = kinds.split(",")
    for kind in before:
        ledger.append(kind, ONE, {})
    with pytest.raises(OutOfTurnError):
        ledger.append(last, ONE, {})
    assert len(ledger.entries()) == len(before)


def test_what_has_ended_stays_so(filled, key):
    for kind in ("started", "prepared", "published", "aborted"):
        with pytest.raises(OutOfTurnError):
            filled.append(kind, ONE, {}, key=key)


# --- releases ----------------------------------------------------------------------------------------------


def test_releases_are_told_from_entries(filled, key):
    filled.append("started", "r00000003", {"study": "s", "recipients": ["cyd"]}, key=key)
    filled.append("traced", TWO, {"accused": ["bob"]}, key=key)
    assert [(r.id, r.status, r.recipients) for r in filled.releases()] == [
        (ONE, "published", ["ada", "bob"]),
        (TWO, "published", ["ada", "bob"]),
        ("r00000003", "unfinished", ["cyd"]),
    ]
    assert filled.unfinished() == ["r00000003"]
    assert filled.release(TWO).to_dict()["history"][-1]["kind"] == "traced"
    assert filled.release(TWO).time == filled.entries("published", TWO)[0].time


def test_an_unknown_release(ledger, key):
    with pytest.raises(OptionError, match="has no release yet"):
        ledger.release(ONE)
    prepare(ledger, key, ONE)
    with pytest.raises(OptionError, match=f"no release 'r0000001'. Did you mean '{ONE}'\\? It has '{ONE}'"):
        ledger.release("r0000001")
    with pytest.raises(OptionError, match="has no release"):
        ledger.secrets("x", key)
    ledger.append("started", TWO, {}, key=key)
    with pytest.raises(OptionError, match=r"unfinished. has no secrets"):
        ledger.secrets(TWO, key)


# --- secrets and keys --------------------------------------------------------------------------------------


def test_secrets_need_the_key(filled, key, other_key):
    assert filled.secrets(ONE, key) == SECRET
    assert filled.key_id() == key.id
    for use in (filled.check_key, filled.verify, lambda k: filled.secrets(ONE, k)):
        with pytest.raises(
            OptionError, match=f"needs the key with the id {key.id}, .* gave the key with the id {other_key.id}"
        ):
            use(other_key)


def test_a_ledger_has_one_key(filled, key, other_key):
    filled.append("started", "r00000003", {}, key=key)
    with pytest.raises(OptionError, match="another key"):
        filled.append("prepared", "r00000003", {}, SECRET, other_key)
    assert filled.verify().entries == 7


def test_nothing_secret_is_in_the_file(tmp_path, key):
    ledger = Ledger.open(tmp_path / "l.db", create=True)
    prepare(ledger, key, ONE)
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name != "key")
    assert b"visits.yaml" in content
    for hidden in (b"V000123", b"V000456", b"130**", b"decoys", key.secret, key.secret.hex().encode()):
        assert hidden not in content
    assert (tmp_path / "l.db").stat().st_mode & 0o777 == 0o600


def test_the_same_secret_looks_different_each_time(filled):
    one, two = (link.secret[8:] for link in filled.links() if link.secret)
    assert not {one[i : i + 8] for i in range(len(one) - 8)} & {two[i : i + 8] for i in range(len(two) - 8)}


def test_rotation_makes_the_old_key_useless(filled, key, other_key):
    before = list(filled.links())
    assert filled.rotate(key, other_key) == 2
    assert filled.secrets(TWO, other_key) == SECRET
    assert filled.verify(other_key).secrets == 2
    with pytest.raises(OptionError, match="another key"):
        filled.secrets(TWO, key)
    after = list(filled.links())
    assert [link.hash for link in after[:-1]] == [link.hash for link in before]
    assert json.loads(after[-1].body) == {"from": key.id, "to": other_key.id, "secrets": 2}
    prepare(filled, other_key, "r00000003")
    with pytest.raises(OptionError, match="The new key is the same as the old one"):
        filled.rotate(other_key, other_key)
    with pytest.raises(OptionError, match="another key"):
        filled.rotate(key, other_key)


def test_rotation_leaves_no_old_data_key_in_the_file(tmp_path, key, other_key):
    ledger = Ledger.open(tmp_path / "l.db", create=True)
    for i in range(60):
        ledger.append("note", f"r{i:08x}", {}, SECRET, key)
    old = [link.wrapped for link in ledger.links()]
    ledger.rotate(key, other_key)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["key", "l.db", "other.key"]
    content = (tmp_path / "l.db").read_bytes()
    assert not any(wrapped[:16] in content or wrapped[-16:] in content for wrapped in old)


# --- several processes -------------------------------------------------------------------------------------


def test_writers_at_once_take_turns(where, key):
    def work(writer):
        mine = Ledger.open(where, create=True)
        for i in range(8):
            mine.append("note", f"r{writer:08x}", {"i": i}, {"i": i}, key)

    assert all_end_well([forked(work, writer) for writer in range(5)])
    ledger = Ledger.open(where)
    found = ledger.verify(key)
    assert (found.ok, found.entries, found.secrets) == (True, 40, 40)
    for writer in range(5):
        assert [e.public["i"] for e in ledger.entries(release=f"r{writer:08x}")] == list(range(8))


def test_a_reader_is_not_kept_waiting(filled):
    with filled.database.writing() as connection:
        connection.execute(text("UPDATE veilmark_schema SET version = version"))
        assert len(filled.entries()) == 6


def test_a_key_that_is_changed_meanwhile_is_no_longer_taken(filled, where, key, other_key):
    mine = Ledger.open(where)
    filled.rotate(key, other_key)
    with pytest.raises(OptionError, match="another key"):
        mine.append("note", ONE, {}, SECRET, key)


def test_sqlite_is_set_up_to_be_safe(tmp_path):
    ledger = Ledger.open(tmp_path / "l.db", create=True)
    with ledger.database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
    assert rows_of(tmp_path / "l.db", "PRAGMA integrity_check") == [("ok",)]
