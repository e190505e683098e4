"""Triggers, rules and views that somebody puts into the database, without the key, so that it drops what it is given."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from ledger.helpers import ONE, prepare, publish
from veilmark.errors import DataError, VeilmarkError
from veilmark.ledger import Ledger
from veilmark.ledger.strangers import stranger_in

QUIET = {"entries": "NEW.kind IN ('trace', 'receipt')", "wrapped_keys": "1", "seals": "1"}
IGNORING = (
    "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    "CREATE TRIGGER {name} BEFORE INSERT ON veilmark_{table} FOR EACH ROW EXECUTE FUNCTION quiet()",
)


def put_in(ledger, *statements):
    with ledger.database.reading() as connection:
        for statement in statements:
            connection.execute(text(statement))
        connection.commit()


def quiet(ledger, table, name="veilmark_quiet"):
    """A trigger by which rows are taken and not kept."""
    if ledger.database.is_local:
        when = f"BEFORE INSERT ON veilmark_{table} WHEN {QUIET[table]}"
        put_in(ledger, f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(IGNORE); END")
    else:
        put_in(ledger, *(statement.format(name=name, table=table) for statement in IGNORING))


@pytest.mark.parametrize("table", QUIET)
def test_a_trigger_that_is_not_ours(filled, where, key, table):
    quiet(filled, table)
    with pytest.raises(DataError, match="has a trigger 'veilmark_quiet' that veilmark did not make"):
        filled.append("trace", None, {"who": "eve"}, key=key)
    found = Ledger.open(where).verify(key)
    assert (found.ok, found.entries) == (False, 6)
    assert "a trigger 'veilmark_quiet' that veilmark did not make" in found.what


def test_a_trigger_in_place_of_ours(filled, key):
    if filled.database.is_local:
        put_in(filled, "DROP TRIGGER veilmark_at_the_end")
        quiet(filled, "entries", "veilmark_at_the_end")
    else:
        put_in(filled, "DROP TRIGGER veilmark_no_change ON veilmark_entries")
        quiet(filled, "entries", "veilmark_no_change")
    assert not filled.verify(key).ok


def test_a_view_or_rule_in_place_of_a_table(filled, key):
    if filled.database.is_local:
        put_in(
            filled,
            "ALTER TABLE veilmark_seals RENAME TO kept",
            "CREATE VIEW veilmark_seals AS SELECT * FROM kept",
            "CREATE TRIGGER quiet INSTEAD OF INSERT ON veilmark_seals BEGIN SELECT 1; END",
        )
    else:
        put_in(filled, "CREATE RULE quiet AS ON INSERT TO veilmark_seals DO INSTEAD NOTHING")
    with pytest.raises(DataError, match="that veilmark did not make"):
        filled.append("note", None, {}, key=key)
    assert "did not make" in filled.verify(key).what


def test_a_release_is_not_said_to_be_published_without_its_data_key(filled, key, tmp_path, monkeypatch):
    """Also where the trigger is not seen."""
    monkeypatch.setattr("veilmark.ledger.database.stranger_in", lambda _: None)
    quiet(filled, "wrapped_keys")
    with pytest.raises(DataError, match="did not store entry 8 correctly"):
        publish(filled, key, tmp_path / "copies")
    assert not (tmp_path / "copies").exists()


@pytest.mark.parametrize("table", ["entries", "seals"])
def test_what_was_written_is_read_back(filled, key, table, monkeypatch):
    monkeypatch.setattr("veilmark.ledger.database.stranger_in", lambda _: None)
    quiet(filled, table)
    foreign_key = "cannot be used: insert or update"  # PostgreSQL minds that a seal has no entry.
    with pytest.raises(VeilmarkError, match=f"did not store entry 7 correctly|{foreign_key}"):
        filled.append("trace", None, {}, key=key)


def test_rotation_is_read_back(filled, key, other_key, monkeypatch):
    monkeypatch.setattr("veilmark.ledger.database.stranger_in", lambda _: None)
    if not filled.database.is_local:
        pytest.skip("A trigger for each row is written otherwise there.")
    put_in(filled, "CREATE TRIGGER q BEFORE UPDATE ON veilmark_wrapped_keys BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(DataError, match="was changed"):
        filled.rotate(key, other_key)
    assert filled.key_id() == key.id


def test_triggers_of_other_tables_are_not_ours_to_judge(ledger, key):
    put_in(ledger, "CREATE TABLE mine (x INTEGER)", "CREATE VIEW yours AS SELECT * FROM mine")
    if ledger.database.is_local:
        put_in(ledger, "CREATE TRIGGER t BEFORE INSERT ON mine BEGIN SELECT 1; END")
    prepare(ledger, key, ONE)
    with ledger.database.reading() as connection:
        assert stranger_in(connection) is None
    assert ledger.verify(key).ok
