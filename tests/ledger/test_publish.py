"""Copies and ledger agree: published and there, or aborted and gone."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from ledger.helpers import PUBLIC, SECRET, all_end_well, edit, forge, forked, publish
from veilmark.errors import DataError, OptionError, OutputError
from veilmark.ledger import Ledger, new_release_id, publishing, recover
from veilmark.ledger import publish as module

OUTSIDE = frozenset(("close", "commit", "execute", "fetchall", "fsync", "open", "rename", "rmdir", "unlink"))


@pytest.fixture
def out(fast_folder):
    """The folder in which releases are published; nothing else is in it."""
    (fast_folder / "out").mkdir()
    return fast_folder / "out"


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


# --- when all goes well ------------------------------------------------------------------------------------


def test_a_release_is_in_the_ledger_and_on_disk(ledger, key, out):
    name = publish(ledger, key, out / "copies")
    assert names(out) == ["copies", "copies/ada.csv", "copies/bob.csv"]
    release = ledger.release(name)
    assert (release.status, release.public, release.folder) == ("published", PUBLIC, str(out / "copies"))
    assert release.digests == {
        f"{who}.csv": hashlib.sha256((out / "copies" / f"{who}.csv").read_bytes()).hexdigest() for who in ("ada", "bob")
    }
    assert [e.kind for e in release.history] == ["started", "prepared", "published"]
    assert ledger.secrets(name, key) == SECRET
    assert recover(ledger, key) == {}


def test_what_is_learned_while_writing_is_kept(ledger, key, out):
    with publishing(ledger, key, out / "copies", PUBLIC, {}, release="r0123abcd") as doing:
        (doing.folder / "deep").mkdir()
        (doing.folder / "deep" / "x.csv").write_text("x")
        doing.public["records"] = 1
        doing.secret["decoys"] = SECRET["decoys"]
        assert not doing.target.exists()
    assert doing.release == "r0123abcd"
    assert list(ledger.release("r0123abcd").digests) == list(doing.digests) == ["deep/x.csv"]
    assert ledger.release("r0123abcd").public == PUBLIC | {"records": 1}
    assert ledger.secrets("r0123abcd", key) == SECRET


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_copies_are_for_their_owner_alone_whatever_the_umask(ledger, key, out, mask):
    before = os.umask(mask)
    try:
        with publishing(ledger, key, out / "copies", PUBLIC, SECRET) as doing:
            assert stat.S_IMODE(doing.folder.parent.stat().st_mode) == 0o700
            (doing.folder / "spark").mkdir()
            for name in ("ada.csv", "spark/part-0.csv"):
                (doing.folder / name).write_text("x")
    finally:
        os.umask(before)
    paths = (out / "copies", *(out / "copies").rglob("*"))
    assert {(p.is_dir(), stat.S_IMODE(p.stat().st_mode)) for p in paths} == {(True, 0o700), (False, 0o600)}


def test_an_empty_folder_may_be_there(ledger, key, out, monkeypatch):
    (out / "there").mkdir()
    (out / "link").symlink_to("there")
    monkeypatch.chdir(out)
    publish(ledger, key, "link")
    assert names(out / "there") == ["ada.csv", "bob.csv"]
    assert (out / "link").is_symlink()


def test_ids_are_random_and_no_secret_is_in_a_name(ledger, key, out):
    assert re.fullmatch("r[0-9a-f]{8}", new_release_id())
    assert len({new_release_id() for _ in range(100)}) == 100
    with publishing(ledger, key, out / "copies", PUBLIC, SECRET) as doing:
        assert names(out) == [f".veilmark-{doing.release}" + rest for rest in ("", "/copies", "/lock")]


# --- when it does not --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OutputError])
def test_a_failure_leaves_nothing(ledger, key, out, error):
    def write_half(doing):
        (doing.folder / "ada.csv").write_text("half")
        raise error("half")

    with pytest.raises(error), publishing(ledger, key, out / "copies", PUBLIC, SECRET) as doing:
        write_half(doing)
    assert names(out) == []
    assert [(r.status, r.recipients) for r in ledger.releases()] == [("aborted", ["ada", "bob"])]


def interrupting(number, target):
    """A profiler that presses Ctrl-C at the n-th step outside since the folder got its name."""
    left = number

    def profile(frame, event, function):
        nonlocal left
        if event in ("c_call", "c_return") and function.__name__ in OUTSIDE and target.exists():
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    return profile


def test_ctrl_c_is_too_late_once_the_folder_has_its_name(key, fast_folder, out):
    ledger, seen = Ledger.open(fast_folder / "l.db", create=True), []
    for number in range(1_000):
        target, late = out / str(number), False
        try:
            with publishing(ledger, key, target, PUBLIC, SECRET) as doing:
                (doing.folder / "ada.csv").write_text("x")
                sys.setprofile(interrupting(number, target))
        except KeyboardInterrupt:
            late = True  # In the very last step, when nothing is left to be done.
        unhurt = sys.getprofile() is not None
        sys.setprofile(None)
        assert doing.published
        assert ledger.release(doing.release).status == "published"
        assert [p.name for p in out.iterdir() if p.name.startswith(".")] == []
        if unhurt:
            break
        seen.append(late)
    assert len(seen) > 20
    assert not any(seen[:-3])
    assert ledger.verify(key, files=True).ok


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(ledger, key, out, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(out))
    with (
        pytest.raises(OutputError, match=r"is not writable\. Check the folder"),
        publishing(ledger, key, out / "copies", PUBLIC, SECRET),
    ):
        pytest.fail("it was let in")
    assert ledger.entries() == []


def test_a_target_that_is_taken_is_refused_at_once(ledger, key, out):
    (out / "full").mkdir()
    (out / "full" / "x").touch()
    for target, message in [("full", "not an empty folder"), ("full/x", "not an empty"), ("no/copies", "no folder")]:
        with pytest.raises(OptionError, match=message), publishing(ledger, key, out / target, PUBLIC, SECRET):
            pytest.fail("it was let in")
    assert names(out) == ["full", "full/x"]
    assert ledger.entries() == []


def test_a_target_that_is_taken_meanwhile_is_not_replaced(ledger, key, out):
    def publish_two():
        with publishing(ledger, key, out / "copies", PUBLIC, SECRET) as doing:
            (doing.folder / "ada.csv").write_text("late")
            publish(ledger, key, out / "copies")

    with pytest.raises(OutputError, match="cannot be written: Directory not empty"):
        publish_two()
    assert names(out) == ["copies", "copies/ada.csv", "copies/bob.csv"]
    assert [r.status for r in ledger.releases()] == ["aborted", "published"]
    assert ledger.verify(key, files=True).files == 2


def test_another_key_is_refused_at_once(ledger, key, other_key, out):
    publish(ledger, key, out / "one")
    with pytest.raises(OptionError, match="another key"):
        publish(ledger, other_key, out / "two")
    assert "two" not in names(out)


@pytest.mark.parametrize("release", ["x", "r123", "../../r00000000", "r0000000G", "r00000000\n"])
def test_an_id_that_is_none(ledger, key, out, release):
    refused = pytest.raises(OptionError, match="is not the id of a release")
    with refused, publishing(ledger, key, out / "copies", PUBLIC, SECRET, release):
        pytest.fail("it was let in")
    assert names(out) == []


def test_an_id_that_is_taken(ledger, key, out):
    name = publish(ledger, key, out / "one")
    with pytest.raises(OutputError), publishing(ledger, key, out / "two", PUBLIC, SECRET, name):
        pytest.fail("it was let in")
    assert names(out) == ["one", "one/ada.csv", "one/bob.csv"]
    assert ledger.release(name).status == "published"


def test_what_the_ledger_itself_writes_cannot_be_given(ledger, key, out):
    with pytest.raises(ValueError, match="itself writes"):
        publish(ledger, key, out / "copies", {"digests": {}})


# --- recovering --------------------------------------------------------------------------------------------


def cut_short(monkeypatch, ledger, key, target, kind):
    """A release whose process died before the ledger was told of `kind`."""

    class DeadError(BaseException):
        pass

    append = Ledger.append

    def dying(self, what, *arguments):
        if what == kind:
            raise DeadError
        return append(self, what, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", dying)
        patch.setattr(module, "_settle", lambda *_, **__: "")
        with pytest.raises(DeadError):
            publish(ledger, key, target)
    return ledger.unfinished()[-1]


def test_a_folder_that_was_renamed_is_published(ledger, key, out, monkeypatch):
    name = cut_short(monkeypatch, ledger, key, out / "copies", "published")
    assert ledger.release(name).status == "unfinished"
    assert recover(ledger, key) == {name: "published"}
    assert names(out) == ["copies", "copies/ada.csv", "copies/bob.csv"]
    assert ledger.release(name).status == "published"
    assert recover(ledger, key) == {}


def test_copies_without_an_entry_are_removed(ledger, key, out, monkeypatch):
    name = cut_short(monkeypatch, ledger, key, out / "copies", "prepared")
    assert f".veilmark-{name}/copies/ada.csv" in names(out)
    assert recover(ledger, key) == {name: "aborted"}
    assert names(out) == []


@pytest.mark.parametrize("change", ["edited", "one given away", "all given away"])
def test_copies_that_have_left_are_published_whatever_became_of_them(ledger, key, out, monkeypatch, change):
    """They may be in somebody's hands: undone, they could no longer be traced."""
    name = cut_short(monkeypatch, ledger, key, out / "copies", "published")
    if change == "edited":
        (out / "copies" / "ada.csv").write_text("changed")
    elif change == "one given away":
        (out / "copies" / "ada.csv").unlink()
    else:
        shutil.rmtree(out / "copies")
    before = names(out / "copies")
    assert recover(ledger, key) == {name: "published"}
    assert (names(out / "copies"), ledger.secrets(name, key)) == (before, SECRET)
    assert not (out / f".veilmark-{name}").exists()


@pytest.mark.parametrize("put", ["an empty folder", "other files", "the same files"])
def test_a_folder_put_in_the_place_of_copies_that_have_left(ledger, key, out, monkeypatch, put):
    """By somebody without the key, so that the release looks as if it had never left."""
    name = cut_short(monkeypatch, ledger, key, out / "copies", "published")
    hidden = out / f".veilmark-{name}" / "copies"
    if put == "the same files":
        shutil.copytree(out / "copies", hidden)
    else:
        hidden.mkdir()
    if put == "other files":
        (hidden / "ada.csv").write_text("another")
        shutil.rmtree(out / "copies")
    assert recover(ledger, key) == {name: "published"}
    assert not hidden.exists()


@pytest.mark.parametrize("empty", [False, True])
def test_copies_that_never_left_are_undone(ledger, key, out, monkeypatch, empty):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_rename", lambda *_: None)
        name = cut_short(patch, ledger, key, out / "copies", "published")
    if empty:
        (out / "copies").mkdir()
    assert recover(ledger, key) == {name: "aborted"}
    assert names(out) == (["copies"] if empty else [])


def test_copies_of_which_nothing_can_be_seen_stay_unfinished(ledger, key, out, monkeypatch):
    """Nobody can tell whether they were given away."""
    name = cut_short(monkeypatch, ledger, key, out / "copies", "published")
    os.rename(out, out.with_name("unseen"))
    assert recover(ledger, key) == {}
    assert ledger.release(name).status == "unfinished"
    os.rename(out.with_name("unseen"), out)
    assert recover(ledger, key) == {name: "published"}


def test_hidden_folders_that_are_left_behind_are_removed(ledger, key, out, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        name = publish(ledger, key, out / "copies")
    assert (out / f".veilmark-{name}").is_dir()
    recover(ledger, key)
    assert names(out) == ["copies", "copies/ada.csv", "copies/bob.csv"]


@pytest.mark.parametrize(("inside", "old", "stays"), [
    ([], True, False),
    (["copies/"], True, False),
    (["copies/", "lock"], True, False),
    (["copies/", "lock"], False, True),
    (["lock"], True, True),
    (["copies/", "copies/ada.csv", "lock"], True, True),
])  # fmt: skip
def test_folders_of_processes_killed_at_once_are_removed(ledger, key, out, inside, old, stays):
    """Of a ledger that this one does not know, only what never held anything."""
    work = out / ".veilmark-r0000dead"
    work.mkdir()
    for name in inside:
        (work / name).mkdir() if name.endswith("/") else (work / name).touch()
    if old:
        os.utime(work, (0, 0))
    publish(ledger, key, out / "copies")
    assert work.exists() == stays


def test_a_locked_folder_is_not_removed(ledger, key, out):
    with publishing(Ledger.open(out / "other.db", create=True), key, out / "others", PUBLIC, SECRET) as doing:
        os.utime(doing.folder.parent, (0, 0))
        publish(ledger, key, out / "copies")
        assert doing.folder.is_dir()


def test_the_same_files_of_another_release_are_not_taken_for_it(ledger, key, out, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_rename", lambda *_: None)
        first = cut_short(patch, ledger, key, out / "copies", "published")
    second = publish(ledger, key, out / "copies")
    assert {r.id: r.status for r in ledger.releases()} == {first: "aborted", second: "published"}


def test_a_release_in_the_making_is_left_alone(ledger, where, key, out):
    with publishing(ledger, key, out / "copies", PUBLIC, SECRET) as doing:
        assert recover(Ledger.open(where), key) == {}
        assert all_end_well([forked(recover, Ledger.open(where), key)])
        assert doing.folder.exists()
    assert ledger.release(doing.release).status == "published"


def test_what_another_computer_has_begun_is_left_to_it(ledger, key, out, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: "elsewhere")
        name = cut_short(patch, ledger, key, out / "copies", "prepared")
    os.rename(out, out.with_name("unseen"))
    assert recover(ledger, key) == {}
    assert ledger.release(name).status == "unfinished"
    os.rename(out.with_name("unseen"), out)
    assert recover(ledger, key) == {name: "aborted"}


def test_a_folder_that_is_gone_is_given_up_where_nobody_else_can_have_it(ledger, key, out, monkeypatch):
    name = cut_short(monkeypatch, ledger, key, out / "copies", "prepared")
    os.rename(out, out.with_name("unseen"))
    assert recover(ledger, key) == ({name: "aborted"} if ledger.database.is_local else {})


def test_a_forged_entry_removes_nothing_of_others(ledger, key, out):
    (out / "mine").mkdir()
    (out / "mine" / "x").touch()
    (out / ".veilmark-r00000001").mkdir()
    body = {"folder": str(out / "mine"), "host": platform.node(), "work": str(out), "digests": {"x": "0"}}
    publish(ledger, key, out / "copies")
    forge(ledger, "started", "r00000001", body)
    forge(ledger, "prepared", "r00000001", body)
    before = names(out)
    assert recover(ledger, key) == {}
    assert names(out) == before


def test_publishers_at_once(ledger, where, key, out):
    def work(i):
        mine = Ledger.open(where)
        for j in range(3):
            publish(mine, key, out / f"{i}-{j}")

    assert all_end_well([forked(work, i) for i in range(4)])
    assert {r.status for r in ledger.releases()} == {"published"}
    found = ledger.verify(key, files=True)
    assert (found.ok, found.entries, found.secrets, found.files) == (True, 36, 12, 24)


# --- files -------------------------------------------------------------------------------------------------


def test_files_are_compared_where_they_still_are(ledger, key, out):
    publish(ledger, key, out / "one")
    publish(ledger, key, out / "two")
    assert ledger.verify(files=True).files == 4
    (out / "one" / "ada.csv").unlink()
    found = ledger.verify(files=True)
    assert (found.ok, found.files, found.missing) == (True, 3, (str(out / "one" / "ada.csv"),))
    changed = tuple(str(out / where) for where in ("one/bob.csv", "two/bob.csv"))
    for path in changed:
        Path(path).write_text("changed")
    found = ledger.verify(files=True)
    assert (found.ok, found.whole, found.where, found.what) == (False, True, None, None)
    assert (found.changed, len(found.missing), found.entries) == (changed, 1, 6)
    assert ledger.verify().ok


def test_a_release_that_lost_its_data_key(ledger, key, out):
    name = publish(ledger, key, out / "one")
    publish(ledger, key, out / "two")
    edit(ledger, "DELETE FROM veilmark_wrapped_keys WHERE entry = 2")
    with pytest.raises(DataError, match="data key of entry 2 is missing"):
        ledger.secrets(name, key)
