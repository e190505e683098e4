"""Whatever is changed behind the ledger's back is found, and is said where."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from ledger.helpers import ONE, edit
from veilmark.errors import DataError, OutputError
from veilmark.ledger.chain import BEGINNING, hash_of

EDITS = {
    "UPDATE veilmark_entries SET body = '{}' WHERE number = 2": (2, "was changed"),
    "UPDATE veilmark_entries SET body = body || ' ' WHERE number = 4": (4, "was changed"),
    "UPDATE veilmark_entries SET time = '2020-01-01T00:00:00.000Z' WHERE number = 3": (3, "was changed"),
    "UPDATE veilmark_entries SET kind = 'aborted' WHERE number = 6": (6, "was changed"),
    "UPDATE veilmark_entries SET release = 'r00000002' WHERE number = 1": (1, "was changed"),
    "UPDATE veilmark_entries SET secret = NULL WHERE number = 5": (5, "was changed"),
    "UPDATE veilmark_entries SET secret = (SELECT secret FROM veilmark_entries WHERE number = 2) WHERE number = 5": (
        5,
        "was changed",
    ),
    "UPDATE veilmark_entries SET hash = previous WHERE number = 3": (3, "was changed"),
    "UPDATE veilmark_entries SET previous = hash WHERE number = 4": (4, "does not follow"),
    "UPDATE veilmark_entries SET number = 9 WHERE number = 3": (3, "is missing"),
    "DELETE FROM veilmark_entries WHERE number = 1": (1, "is missing"),
    "DELETE FROM veilmark_entries WHERE number = 4": (4, "is missing"),
    "DELETE FROM veilmark_wrapped_keys WHERE entry = 5": (5, "data key of entry 5 is missing"),
    "INSERT INTO veilmark_entries SELECT 7, time, kind, release, body, secret, previous, hash FROM veilmark_entries "
    "WHERE number = 6": (7, "does not follow"),
}


@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_ledger_says_where(filled, statement):
    assert filled.verify().ok
    edit(filled, statement)
    found, (where, what) = filled.verify(), EDITS[statement]
    assert (found.ok, found.where, found.entries) == (False, where, where - 1)
    assert what in found.what


def test_entries_that_were_swapped(filled):
    numbers = [(2, 100), (5, 2), (100, 5)]
    edit(filled, *(f"UPDATE veilmark_entries SET number = {b} WHERE number = {a}" for a, b in numbers))
    assert filled.verify().where == 2


def written_anew(ledger):
    """Forge an entry, and compute all hashes again as the ledger does."""
    previous, statements = BEGINNING, []
    for link in ledger.links():
        link = link._replace(previous=previous, body=link.body.replace("ada", "eve"))
        previous = hash_of(link)
        fields = f"previous = '{link.previous}', body = '{link.body}', hash = '{previous}'"
        statements.append(f"UPDATE veilmark_entries SET {fields} WHERE number = {link.number}".replace(":", "\\:"))
    edit(ledger, *statements)


def test_a_chain_written_anew_is_found_by_the_key_or_by_a_head_that_was_noted(filled, key):
    head = filled.verify().head
    assert filled.verify(head=head).ok
    written_anew(filled)
    assert filled.release(ONE).recipients == ["eve", "bob"]
    assert filled.verify().ok
    assert filled.verify(key).where == 1
    assert "somebody without the key" in filled.verify(key).what
    assert "rewritten" in filled.verify(head=head).what
    with pytest.raises(DataError, match="cannot be decrypted"):
        filled.secrets(ONE, key)


def test_entries_cut_off_are_found_by_a_head_that_was_noted(filled, key):
    head = filled.verify().head
    edit(filled, "DELETE FROM veilmark_entries WHERE number = 6")
    assert filled.verify(key).ok
    found = filled.verify(key, head=head)
    assert (found.ok, found.where) == (False, None)
    assert "entries were removed" in found.what


def test_data_keys_that_were_swapped(filled, key):
    edit(
        filled,
        *(f"UPDATE veilmark_wrapped_keys SET entry = {b} WHERE entry = {a}" for a, b in [(2, 1), (5, 2), (1, 5)]),
    )
    assert filled.verify().ok
    assert filled.verify(key).where == 2
    with pytest.raises(DataError, match=r"data key of entry 2 cannot be decrypted"):
        filled.secrets(ONE, key)


def test_a_body_that_is_no_json_is_said_to_be_changed(filled):
    edit(filled, "UPDATE veilmark_entries SET body = 'x' WHERE number = 2")
    with pytest.raises(DataError, match=r"Entry 2 of the ledger .* was changed"):
        filled.releases()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE veilmark_entries SET body = '{}' WHERE number = 2",
        "DELETE FROM veilmark_entries WHERE number = 6",
        "DELETE FROM veilmark_wrapped_keys",
        "INSERT INTO veilmark_entries VALUES (6, '', '', '', '', NULL, '', '')",
    ],
)
def test_the_database_itself_refuses_changes(filled, statement):
    before = list(filled.links())
    with pytest.raises(OutputError) as caught, filled.database.writing() as connection:
        connection.execute(text(statement))
    assert "INSERT" not in str(caught.value)
    assert list(filled.links()) == before


def test_replacing_and_truncating_are_refused(filled):
    before = list(filled.links())
    sqlite = filled.label.endswith(".db")
    other = "INSERT OR REPLACE INTO veilmark_entries VALUES (6, '', '', '', '', NULL, '', '')"
    with pytest.raises(OutputError, match="never changed"), filled.database.writing() as connection:
        connection.execute(text(other if sqlite else "TRUNCATE veilmark_entries CASCADE"))
    assert list(filled.links()) == before
