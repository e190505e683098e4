"""An anchor kept elsewhere finds a ledger that was put back to an older state, and a time stamp shows when it was made."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from ledger.helpers import TWO, edit, prepare
from ledger.responder import Authority, serving
from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger.anchors import Anchor
from veilmark.ledger.checking import Known
from veilmark.workbench import ledger as verbs

TABLES = (("seals", "entry"), ("wrapped_keys", "entry"), ("entries", "number"))


def rolled_back(ledger, entries):
    """The ledger as it was after so many entries."""
    edit(ledger, *(f"DELETE FROM veilmark_{table} WHERE {column} > {entries}" for table, column in TABLES))


@pytest.fixture
def anchored(filled, where, tmp_path):
    verbs.anchor(where, tmp_path / "anchor.json", tmp_path / "key")
    return tmp_path / "anchor.json"


def check(where, anchor, key=None, *certificates):
    return verbs.verify(where, key, noted=verbs.Noted(anchors=(anchor,), certificates=certificates))


def test_an_anchor_says_how_long_the_ledger_was(filled, where, anchored, tmp_path):
    content = json.loads(anchored.read_text())
    assert (content["entries"], content["head"], content["stamp"]) == (6, filled.verify().head, None)
    found = check(where, anchored, tmp_path / "key")
    assert (found.ok, found.anchors[0]["entries"]) == (True, 6)


def test_a_ledger_that_went_on_agrees_with_its_anchors(filled, where, anchored, key):
    prepare(filled, key, "r00000003")
    assert check(where, anchored).ok


@pytest.mark.parametrize("entries", range(6))
def test_a_ledger_put_back_is_found(filled, where, anchored, tmp_path, entries):
    rolled_back(filled, entries)
    assert verbs.verify(where, tmp_path / "key").ok
    found = check(where, anchored, tmp_path / "key")
    assert (found.ok, found.what) == (
        False,
        f"an anchor records 6 entries, but the ledger has {entries}: the others were removed",
    )


def test_a_ledger_put_back_and_continued_is_found(filled, where, anchored, tmp_path, key):
    """Even by somebody who has the key."""
    rolled_back(filled, 5)
    filled.append("aborted", TWO, {}, key=key)
    prepare(filled, key, "r00000003")
    assert verbs.verify(where, tmp_path / "key").ok
    assert "entry 6 does not have the hash" in check(where, anchored, tmp_path / "key").what


def test_the_same_head_at_another_place_is_not_enough(filled):
    head = filled.verify().head
    assert filled.verify(anchors=[Known(head, 6)]).ok
    assert not filled.verify(anchors=[Known(head, 5)]).ok


def test_a_changed_ledger_has_no_anchor(filled, where, tmp_path):
    edit(filled, "UPDATE veilmark_entries SET body = '{}' WHERE number = 2")
    with pytest.raises(DataError, match="There is nothing to anchor"):
        verbs.anchor(where, tmp_path / "anchor.json")
    assert not (tmp_path / "anchor.json").exists()


def test_anchors_are_not_replaced_and_others_are_refused(where, anchored, tmp_path):
    with pytest.raises(OptionError, match="exists already"):
        verbs.anchor(where, anchored)
    with pytest.raises(OptionError, match="cannot be read"):
        check(where, tmp_path / "gone")
    for content in (
        "",
        "{}",
        "[]",
        '{"veilmark_anchor": 9}',
        anchored.read_text().replace('"stamp": null', '"stamp": "!"'),
    ):
        (tmp_path / "x").write_text(content)
        with pytest.raises(DataError, match="is not an anchor"):
            check(where, tmp_path / "x")


# --- time stamps -------------------------------------------------------------------------------------------


@pytest.fixture
def stamped(filled, where, tmp_path):
    """An anchor with a time stamp, and the server's certificate."""
    authority = Authority()
    (tmp_path / "root.pem").write_bytes(authority.pem)
    with serving(authority) as url:
        verbs.anchor(where, tmp_path / "stamped.json", tmp_path / "key", url, [tmp_path / "root.pem"])
    return tmp_path / "stamped.json"


def test_a_time_stamp_is_checked_with_the_server_s_certificate(where, stamped, tmp_path):
    found = check(where, stamped, None, tmp_path / "root.pem")
    at = datetime.fromisoformat(found.anchors[0]["stamped"])
    assert found.ok
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    unchecked = check(where, stamped).anchors[0]
    assert (unchecked["has_stamp"], unchecked["stamped"]) == (True, None)


@pytest.mark.parametrize("change", ["entries", "head", "time"])
def test_a_time_stamp_is_of_one_anchor(where, stamped, tmp_path, change):
    content = json.loads(stamped.read_text())
    content[change] = {"entries": 5, "head": "0" * 64, "time": "2020-01-01T00:00:00.000Z"}[change]
    (tmp_path / "x").write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not belong to this message"):
        check(where, tmp_path / "x", None, tmp_path / "root.pem")


def test_a_server_that_is_not_trusted(where, stamped, tmp_path):
    (tmp_path / "other.pem").write_bytes(Authority().pem)
    with pytest.raises(DataError, match="its server is not the one of the certificate"):
        check(where, stamped, None, tmp_path / "other.pem")


@pytest.mark.parametrize(("wrong", "message"), [("refused", "refused"), ("nonce", "an answer to another request")])
def test_a_server_that_does_not_answer_what_was_asked(filled, where, tmp_path, wrong, message):
    authority = Authority(wrong)
    (tmp_path / "root.pem").write_bytes(authority.pem)
    with serving(authority) as url, pytest.raises((DataError, OutputError), match=message):
        verbs.anchor(where, tmp_path / "a.json", server=url, certificates=[tmp_path / "root.pem"])
    assert not (tmp_path / "a.json").exists()


def test_a_stamp_that_is_not_signed_rightly(filled, where, tmp_path):
    authority = Authority("signature")
    (tmp_path / "root.pem").write_bytes(authority.pem)
    with serving(authority) as url, pytest.raises(DataError, match="does not belong to this message"):
        verbs.anchor(where, tmp_path / "a.json", server=url, certificates=[tmp_path / "root.pem"])
    assert not (tmp_path / "a.json").exists()


def test_a_stamp_is_checked_when_it_is_made(filled, where, tmp_path):
    """A bad one could not be mended later."""
    with (
        serving(Authority("signature")) as url,
        pytest.raises(OptionError, match="which needs the server's certificate"),
    ):
        verbs.anchor(where, tmp_path / "a.json", server=url)
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("removed", ["stamp", "stamp and time"])
def test_a_stamp_taken_away_is_missed(where, stamped, tmp_path, removed):
    content = json.loads(stamped.read_text()) | {"stamp": None, "server": None}
    content |= {"time": "2020-01-01T00:00:00.000Z"} if removed != "stamp" else {}
    (tmp_path / "x").write_text(json.dumps(content))
    with pytest.raises(DataError, match="has no time stamp, so nothing proves when it was made"):
        check(where, tmp_path / "x", None, tmp_path / "root.pem")
    assert check(where, tmp_path / "x").anchors[0]["has_stamp"] is False


@pytest.mark.parametrize(("days", "fits"), [(-400, False), (-0.03, True), (0.03, True), (1, False)])
def test_a_stamp_of_another_time_than_the_anchor_s(filled, where, tmp_path, monkeypatch, days, fits):
    class Elsewhen(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr("ledger.responder.datetime", Elsewhen)
    authority = Authority()
    (tmp_path / "root.pem").write_bytes(authority.pem)
    with serving(authority) as url:
        asked = where, tmp_path / "a.json", None, url, [tmp_path / "root.pem"]
        if fits:
            verbs.anchor(*asked)
        else:
            with pytest.raises(DataError, match="One of the two clocks is wrong"):
                verbs.anchor(*asked)
    assert (tmp_path / "a.json").exists() == fits


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://"])
def test_what_is_no_address(filled, where, tmp_path, url):
    (tmp_path / "root.pem").write_bytes(Authority().pem)
    with pytest.raises(OptionError, match="must begin with https"):
        verbs.anchor(where, tmp_path / "a.json", server=url, certificates=[tmp_path / "root.pem"])


def test_a_server_that_is_not_there(tmp_path):
    with serving(Authority()) as url:
        pass
    with pytest.raises(OutputError, match="cannot be reached") as caught:
        Anchor.of(0, "0" * 64, url.replace("//", "//me:hush@"))
    assert "hush" not in str(caught.value)


def test_the_package_is_asked_for_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(OptionError, match=r"pip install 'veilmark\[timestamp\]'"):
        Anchor.of(0, "0" * 64, "http://127.0.0.1:1")
    assert Anchor.of(0, "0" * 64).stamp is None


def test_certificates_that_are_none(filled, where, tmp_path):
    (tmp_path / "x.pem").write_text("hello")
    for name, message in (("x.pem", "contains no certificate"), ("gone.pem", "cannot be read")):
        with pytest.raises(OptionError, match=message):
            verbs.anchor(where, tmp_path / "a", server="http://127.0.0.1:1", certificates=[tmp_path / name])
    assert not (tmp_path / "a").exists()
