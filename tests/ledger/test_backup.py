"""A backup is the ledger again, needs nothing to be checked, and a damaged one is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.helpers import ONE, SECRET, edit, prepare
from strength import examples
from veilmark.errors import DataError, OptionError
from veilmark.ledger import Key, Ledger, export, restore, verify_backup


@pytest.fixture
def backup(filled, tmp_path):
    export(filled, tmp_path / "backup.jsonl")
    return tmp_path / "backup.jsonl"


def test_a_restored_ledger_is_the_same_and_goes_on(filled, backup, places, key, other_key):
    restored = restore(backup, places())
    assert list(restored.links()) == list(filled.links())
    assert restored.verify(key) == filled.verify(key)
    assert restored.secrets(ONE, key) == SECRET
    with pytest.raises(OptionError, match="another key"):
        restored.check_key(other_key)
    prepare(restored, key, "r00000003")
    assert restored.verify(key).entries == 8


def test_a_backup_says_what_it_holds(filled, backup, tmp_path):
    found = verify_backup(backup)
    assert (found.ok, found.entries, found.head) == (True, 6, filled.verify().head)
    assert backup.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in backup.read_text().splitlines()]
    assert len(lines) == 8
    assert lines[2]["release"] == ONE
    assert not any(hidden in backup.read_text() for hidden in ("V000123", "130**"))
    assert export(filled, tmp_path / "again.jsonl") == found
    assert (tmp_path / "again.jsonl").read_bytes() == backup.read_bytes()


def test_an_empty_ledger_has_a_backup_too(ledger, places, tmp_path):
    assert export(ledger, tmp_path / "b").entries == 0
    assert restore(tmp_path / "b", places()).entries() == []


def test_nothing_is_replaced(filled, where, backup, tmp_path):
    before = backup.read_bytes()
    with pytest.raises(OptionError, match="exists already"):
        export(filled, backup)
    assert backup.read_bytes() == before
    with pytest.raises(OptionError, match="already"):
        restore(backup, where)
    assert filled.verify().entries == 6
    with pytest.raises(OptionError, match="there is no folder"):
        export(filled, tmp_path / "nowhere" / "b")


def test_a_broken_ledger_has_no_backup(filled, tmp_path):
    edit(filled, "UPDATE veilmark_entries SET body = '{}' WHERE number = 2")
    with pytest.raises(DataError, match="is not intact: entry 2 was changed"):
        export(filled, tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The lines of a backup of six entries, made once."""
    folder = tmp_path_factory.mktemp("sound")
    key, ledger = Key.open_or_make(folder / "key"), Ledger.open(folder / "l.db", create=True)
    for name in ("r00000001", "r00000002", "r00000003"):
        prepare(ledger, key, name)
    export(ledger, folder / "b")
    return (folder / "b").read_bytes()


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged|is not a backup"):
        verify_backup(path)
    with pytest.raises(DataError):
        restore(path, path.with_name("l.db"))
    return [p.name for p in path.parent.iterdir()] == [path.name]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_found(sound, fast_folder, data):
    place = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert refused(fast_folder / "b", bytes(changed))


@pytest.mark.parametrize(
    "damage", ["cut", "empty", "headless", "a line short", "swapped", "doubled", "more", "blank", "list"]
)
def test_what_is_no_whole_backup(sound, tmp_path, damage):
    lines = sound.splitlines(keepends=True)
    content = {
        "cut": sound[:-20],
        "empty": b"",
        "headless": b"".join(lines[1:]),
        "a line short": b"".join(lines[:-1]),
        "swapped": b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
        "doubled": b"".join([*lines[:2], lines[1], *lines[2:]]),
        "more": sound + lines[1],
        "blank": sound[:-1] + b" ",
        "list": lines[0] + b"[]\n",
    }
    assert refused(tmp_path / "b", content[damage])


def test_a_backup_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        restore(tmp_path / "b", tmp_path / "l.db")
    assert list(tmp_path.iterdir()) == []
