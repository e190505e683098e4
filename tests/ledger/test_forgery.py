"""Somebody who can write to the database, but has no key: every entry put in, and every seal taken away, is found."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.helpers import ONE, PUBLIC, SECRET, TWO, edit, forge, old_ledger, prepare, publish
from strength import examples
from veilmark.errors import DataError, OptionError
from veilmark.ledger import Key, Ledger, export, publishing, recover, restore
from veilmark.ledger.chain import BEGINNING, Link, hash_of
from veilmark.ledger.schema import SEALS
from veilmark.ledger.seals import is_sealed, sealed
from veilmark.ledger.secret import with_secret
from veilmark.ledger.signing import Signer, read_public_key, signed_by
from veilmark.ledger.store import insert_link
from veilmark.trace.accuse import Traced
from veilmark.workbench import ledger as verbs
from veilmark.workbench.trace_record import Trace, begin, end


def unpublished(ledger, key):
    """The second release has copies that are ready; it is as open to an `aborted` as to a `published`."""
    prepare(ledger, key, ONE)
    ledger.append("published", ONE, {}, key=key)
    prepare(ledger, key, TWO)


FORGERIES = {
    "aborted": ("aborted", TWO, {"recovered": True}),
    "published": ("published", TWO, {"files": 2}),
    "started": ("started", "r00000003", PUBLIC),
    "a trace": ("trace", None, {"who": "eve"}),
    "an operator": ("operator", None, {"name": "eve", "public_key": Signer.new().public}),
    "an upgrade": ("upgraded", None, {"entries": 5}),
}


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.parametrize("with_seal", [False, True])
def test_an_entry_put_in_without_the_key(ledger, key, other_key, what, with_seal):
    """It is well hashed, and in its turn; its seal is missing, or of a key of the forger's own."""
    unpublished(ledger, key)
    head = ledger.verify().head
    forge(ledger, *FORGERIES[what], **({"seal_key": key.id, "mac": bytes(32)} if with_seal else {}))
    found = ledger.verify(key, head=head)
    assert (found.ok, found.where, found.entries) == (False, 6, 5)
    assert "entry 6 has" in found.what
    assert "without the key" in found.what
    with pytest.raises(DataError, match="was changed"):
        ledger.append("started", "r00000009", {}, key=key)


@pytest.mark.parametrize("kind", ["started", "prepared", "published", "aborted"])
def test_a_step_out_of_turn_is_found_without_the_key(filled, key, kind):
    forge(filled, kind, ONE, {})
    for found in (filled.verify(), filled.verify(key)):
        assert (found.ok, found.where) == (False, 7)
        assert found.what == f"release '{ONE}' was published and cannot become {kind}"


@pytest.mark.parametrize("kind", ["prepared", "published", "aborted"])
def test_a_release_that_never_started(filled, kind):
    forge(filled, kind, "r00000009", {})
    assert filled.verify().what == f"release 'r00000009' was never started and cannot become {kind}"


def test_seals_are_what_the_words_say(filled, key):
    for link in filled.links():
        secret = None if link.secret is None else b64encode(link.secret).decode()
        fields = [link.previous, link.number, link.time, link.kind, link.release, link.body, secret, None, None]
        content = json.dumps(fields, separators=(",", ":")).encode()
        assert link.mac == hmac.new(key.subkey("ledger entries"), content, hashlib.sha256).digest()


FIELDS = [f for f in Link._fields if f not in ("hash", "key_id", "wrapped", "seal_key", "mac")]


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FIELDS), st.text(max_size=5), st.integers(0, 99), st.binary(max_size=5))
def test_a_seal_is_of_one_entry_and_one_key(key, other_key, field, text, number, blob):
    link = sealed(Link(3, "t", "note", ONE, "{}", b"secret", BEGINNING, ""), key)
    changed = link._replace(**{field: {"number": number, "secret": blob, "signature": blob}.get(field, text)})
    assert is_sealed(link, key)
    assert not is_sealed(link, other_key)
    assert is_sealed(changed, key) == (changed == link)


def written_anew(ledger, change):
    """All entries, some of them changed, with hashes that fit; the seals are left as they were."""
    previous, links = BEGINNING, []
    for link in map(change, ledger.links()):
        link = link._replace(previous=previous)
        link = link._replace(hash=hash_of(link))
        links.append(link)
        previous = link.hash
    edit(ledger, *(f"DELETE FROM veilmark_{t}" for t in ("seals", "wrapped_keys", "entries")))
    with ledger.database.writing() as connection:
        for link in links:
            insert_link(connection, link)


def stripped(link):
    return link._replace(seal_key=None, mac=None, signer=None, signature=None)


def test_seals_taken_away_do_not_make_an_older_ledger(filled, key):
    """Otherwise the next release would seal what was put in meanwhile."""
    written_anew(filled, stripped)
    forge(filled, "started", "r00000009", {})
    for found in (filled.verify(), filled.verify(key)):
        assert (found.ok, found.where) == (False, 2)
        assert "entries 1 to 1 have no seal, but later ones do" in found.what
    with pytest.raises(DataError, match="was changed"):
        filled.upgrade(key)
    with pytest.raises(OptionError, match="removed the seals"):
        filled.append("note", None, {}, key=key)


def test_a_secret_of_today_cannot_be_passed_off_as_an_older_one(filled, key):
    written_anew(filled, lambda link: stripped(link)._replace(secret=link.secret and link.secret[40:]))
    assert filled.verify().ok
    assert "cannot be decrypted" in filled.verify(key).what


def test_a_seal_taken_away(filled, key):
    edit(filled, "DELETE FROM veilmark_seals WHERE entry = 6")
    assert "entry 6 has no seal" in filled.verify().what
    edit(filled, "DELETE FROM veilmark_seals WHERE entry = 1")
    assert "entries 1 to 1 have no seal" in filled.verify(key).what


def test_no_entry_is_added_without_the_key(filled):
    with pytest.raises(OptionError, match="is sealed by its key"):
        filled.append("note", None, {})
    assert filled.verify().entries == 6


def test_rotation_does_not_seal_what_was_put_in(ledger, key, other_key):
    unpublished(ledger, key)
    forge(ledger, "aborted", TWO, {})
    with pytest.raises(DataError, match="entry 6 has no seal"):
        ledger.rotate(key, other_key)
    assert ledger.key_id() == key.id


def test_rotation_seals_all_entries_anew(filled, key, other_key):
    filled.rotate(key, other_key)
    found = filled.verify(other_key)
    assert (found.ok, found.sealed, found.entries) == (True, 7, 7)
    forge(filled, "note", None, {}, seal_key=other_key.id, mac=bytes(32))
    assert not filled.verify(other_key).ok


def test_a_backup_keeps_seals(filled, key, places, tmp_path):
    export(filled, tmp_path / "b")
    assert restore(tmp_path / "b", places()).verify(key).sealed == 6


# --- older ledgers -----------------------------------------------------------------------------------------


def test_an_older_ledger_is_read_and_says_what_it_lacks(tmp_path, key):
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared", "published"))
    found = ledger.verify(key)
    assert (found.ok, found.sealed, found.secrets) == (True, 0, 1)
    assert "have no seal: an older veilmark wrote them, or somebody removed the seals" in found.lacks
    assert ledger.secrets(ONE, key) == SECRET


@pytest.mark.parametrize("then", ["nothing", "a release", "rotation"])
def test_an_older_ledger_is_sealed(tmp_path, key, other_key, then):
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared", "published"))
    before = [link.hash for link in ledger.links()]
    assert (ledger.upgrade(key), ledger.upgrade(key)) == (3, 0)
    if then == "a release":
        publish(ledger, key, tmp_path / "copies")
    elif then == "rotation":
        ledger.rotate(key, other_key)
        key = other_key
    found = ledger.verify(key)
    assert (found.ok, found.sealed) == (True, found.entries)
    assert [link.hash for link in ledger.links()][:3] == before
    upgraded = ledger.entries(kind="upgraded")
    assert [entry.public for entry in upgraded] == [{"entries": 3, "head": before[-1]}]
    assert f"Entries 1 to 3 were written by an older veilmark and sealed on {upgraded[0].time}" in found.lacks
    assert ledger.secrets(ONE, key) == SECRET


@pytest.mark.parametrize("work", ["a release", "rotation", "an entry"])
def test_an_older_ledger_is_sealed_on_purpose_alone(tmp_path, key, other_key, work):
    """What was put in meanwhile would be sealed with it."""
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared"))
    doing = {
        "a release": lambda: publish(ledger, key, tmp_path / "copies"),
        "rotation": lambda: ledger.rotate(key, other_key),
        "an entry": lambda: ledger.append("operator", None, {"name": "olga"}, key=key),
    }
    with pytest.raises(OptionError, match="or somebody removed the seals to add entries"):
        doing[work]()
    assert recover(ledger, key) == {}
    assert [link.mac for link in ledger.links()] == [None, None]
    with pytest.raises(OptionError, match="have no seal"):
        verbs.plan_to_publish(tmp_path / "old.db", tmp_path / "key")


def test_a_trace_by_an_older_ledger_says_that_it_is_not_recorded(tmp_path, key):
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared", "published"))
    asked = Trace("leak", (), None, 1e-6, "olga", {})
    assert begin(ledger, key, asked) is None
    (note,) = end(ledger, key, None, asked, Traced((), (), 1e-6, 1)).notes
    assert "not recorded: the ledger's entries have no seal" in note
    assert ledger.upgrade(key) == 3
    assert begin(ledger, key, asked).number == 5


def test_seals_taken_away_before_the_first_release(ledger, key, tmp_path):
    """No secret says yet that there were seals; the opponent's operator must not be sealed by the next release."""
    ledger.append("operator", None, {"name": "olga", "public_key": Signer.new().public}, key=key)
    edit(ledger, "DELETE FROM veilmark_seals")
    forge(ledger, "operator", None, {"name": "olga", "public_key": Signer.new().public})
    with pytest.raises(OptionError, match="removed the seals"):
        publish(ledger, key, tmp_path / "copies")
    assert "removed the seals" in ledger.verify(key).lacks
    assert not (tmp_path / "copies").exists()


def test_an_older_ledger_that_was_changed_is_not_sealed(tmp_path, key):
    path = old_ledger(tmp_path / "old.db", key, "started", "prepared")
    edit(Ledger.open(path), "UPDATE veilmark_entries SET body = '{}' WHERE number = 1")
    with pytest.raises(DataError, match="entry 1 was changed"):
        verbs.upgrade(path, tmp_path / "key")
    assert Ledger.open(path).entries(kind="upgraded") == []


def test_seals_taken_from_a_ledger_that_was_upgraded(tmp_path, key):
    ledger = Ledger.open(old_ledger(tmp_path / "old.db", key, "started", "prepared"))
    ledger.upgrade(key)
    edit(ledger, "DELETE FROM veilmark_seals")
    forge(ledger, "aborted", ONE, {})
    assert (ledger.verify(key).ok, ledger.verify(key).where) == (False, 3)
    with pytest.raises(DataError):
        ledger.upgrade(key)


# --- operators ---------------------------------------------------------------------------------------------


@pytest.fixture
def signer(tmp_path):
    Signer.new().save(tmp_path / "operator")
    return Signer.open(tmp_path / "operator")


@pytest.fixture
def signed(ledger, key, signer, tmp_path):
    """A ledger with an operator, and a release that the operator signed."""
    ledger.append("operator", None, {"name": "olga", "public_key": signer.public}, key=key)
    with publishing(ledger, key, tmp_path / "copies", PUBLIC, SECRET, signer=signer) as doing:
        (doing.folder / "ada.csv").write_text("x")
    return ledger


def test_an_operator_signs(signed, key, signer):
    found = signed.verify(key, operators=[signer.public])
    assert (found.ok, found.signed) == (True, 3)
    for link in list(signed.links())[1:]:
        assert signed_by(signer.public, link.signature, f"veilmark entry {link.hash}".encode())


def test_a_release_that_the_operator_did_not_sign(signed, key, signer, tmp_path):
    publish(signed, key, tmp_path / "more")
    assert signed.verify(key).ok
    found = signed.verify(key, operators=[signer.public])
    assert (found.where, found.what) == (6, "entry 6 is not signed by the operator whose public key was given")


def test_another_operator_s_signature(signed, key, signer, tmp_path):
    stranger = Signer.new()
    with publishing(signed, key, tmp_path / "more", PUBLIC, SECRET, signer=stranger):
        pass
    assert "a signature that is not by an operator" in signed.verify(key).what


def test_an_operator_nobody_knows(signed, key):
    found = signed.verify(key, operators=[Signer.new().public])
    assert "no entry names an operator with the public key" in found.what


def test_a_signature_taken_away_or_moved(signed, key, signer):
    edit(signed, "UPDATE veilmark_seals SET signature = NULL, signer = NULL WHERE entry = 3")
    assert "without the key" in signed.verify(key).what
    assert "is not signed" in signed.verify(operators=[signer.public]).what


def test_a_signer_without_a_signature(ledger, key, signer):
    """By somebody who has the ledger's key, and not the operator's."""
    ledger.append("operator", None, {"name": "olga", "public_key": signer.public}, key=key)
    prepare(ledger, key, ONE)
    (link,) = [link for link in ledger.links() if link.kind == "prepared"]
    forged = sealed(link._replace(signer=signer.public), key)
    with ledger.database.writing() as connection:
        connection.execute(
            SEALS.update().where(SEALS.c.entry == link.number).values(mac=forged.mac, signer=forged.signer)
        )
    assert "a signature that is not by an operator" in ledger.verify(key, operators=[signer.public]).what


def resealed(ledger, key, links):
    """All written anew by somebody who has the ledger's key, and not the operator's."""
    previous, written = BEGINNING, []
    for number, link in enumerate(links, 1):
        new = stripped(link)._replace(number=number, previous=previous, secret=None, wrapped=None, key_id=None)
        new = new if link.secret is None else with_secret(new, SECRET, key)
        written.append(sealed(new._replace(hash=hash_of(new)), key))
        previous = written[-1].hash
    edit(ledger, *(f"DELETE FROM veilmark_{t}" for t in ("seals", "wrapped_keys", "entries")))
    with ledger.database.writing() as connection:
        for link in written:
            insert_link(connection, link)


@pytest.mark.parametrize("named", ["first", "last"])
def test_unsigned_releases_before_the_operator_was_named(signed, key, signer, named):
    links = list(signed.links())
    resealed(signed, key, links if named == "first" else [*links[1:], links[0]])
    assert signed.verify(key).ok
    found = signed.verify(key, operators=[signer.public])
    assert (
        found.what == f"entry {3 if named == 'first' else 2} is not signed by the operator whose public key was given"
    )


def test_an_operator_vouches_for_what_is_there(filled, where, key, signer, tmp_path):
    verbs.add_operator(where, tmp_path / "key", "olga", public_key=tmp_path / "operator.pub")
    assert "entry 2 is not signed" in filled.verify(key, operators=[signer.public]).what
    verbs.add_operator(where, tmp_path / "key", "olga", sign_key=tmp_path / "operator")
    assert (filled.verify(key, operators=[signer.public]).ok, filled.verify(key).signed) == (True, 1)
    prepare(filled, key, "r00000003")
    assert "entry 10 is not signed" in filled.verify(key, operators=[signer.public]).what


def test_another_operator_vouches_for_nothing(filled, where, key, signer, tmp_path):
    Signer.new().save(tmp_path / "eve")
    verbs.add_operator(where, tmp_path / "key", "olga", public_key=tmp_path / "operator.pub")
    verbs.add_operator(where, tmp_path / "key", "eve", sign_key=tmp_path / "eve")
    assert "entry 2 is not signed" in filled.verify(key, operators=[signer.public]).what
    for both in ({}, {"public_key": tmp_path / "operator.pub", "sign_key": tmp_path / "operator"}):
        with pytest.raises(OptionError, match="You gave"):
            verbs.add_operator(where, tmp_path / "key", "olga", **both)


def test_signing_keys_are_private_and_whole(tmp_path, signer):
    assert (tmp_path / "operator").stat().st_mode & 0o777 == 0o600
    assert read_public_key(tmp_path / "operator.pub") == signer.public
    with pytest.raises(OptionError, match="exists already"):
        Signer.new().save(tmp_path / "operator")
    (tmp_path / "operator").chmod(0o644)
    with pytest.raises(OptionError, match="Other users can read"):
        Signer.open(tmp_path / "operator")
    for read, name in ((Signer.open, "x"), (read_public_key, "x"), (Signer.open, "gone"), (read_public_key, "gone")):
        (tmp_path / "x").write_text("hello")
        (tmp_path / "x").chmod(0o600)
        with pytest.raises(OptionError, match=r"is not an Ed25519|There is no") as caught:
            read(tmp_path / name)
        assert "hello" not in str(caught.value)


@given(st.binary(max_size=64), st.binary(max_size=40))
def test_what_is_no_signature(signature, message):
    assert not signed_by(Signer.new().public, signature, message)
    assert not signed_by("no key", signature, message)


def test_a_key_shows_nothing(signer):
    assert "PRIVATE" not in repr(signer)
    assert Key.new().secret.hex() not in repr(signer)
